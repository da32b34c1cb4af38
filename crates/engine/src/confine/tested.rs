//! The self-test of a session's sandbox, before anything runs in it.
//!
//! Owns when it is tried and what its row says. Refuses what a test found a way out of, or could not try. Invariant: whatever runs
//! confined has a row before it that names the machine's features and what each attack came to on it (R80).

use std::ffi::OsString;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, ToolCall};
use writ_policy::Policy;
use writ_sandbox::{AttackResult, Features, Host, Level, SelfTest, Suite, self_test};

use super::order::{self, Order, Wanted, Whole};
use crate::session::state::Tested;
use crate::session::{Session, SessionError};

/// The event of its row.
pub const TESTED: &str = "sandbox-tested";
/// The hidden words by which Writ's own program attacks.
const ATTACK: [&str; 2] = ["sandbox", "attack"];
/// Longest text of an error in a row.
const MAX_TEXT: usize = 300;

/// What the row of a self-test says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The level that was tested.
    pub level: Level,
    /// What the machine allows.
    pub features: Features,
    /// Digest of the plan that was tested.
    pub order: Digest,
    /// Which list of attacks; `None` where it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Attacks that succeeded outside and not inside.
    pub held: Vec<String>,
    /// Attacks that succeeded inside.
    pub escaped: Vec<String>,
    /// Attacks that succeeded nowhere, and so say nothing.
    pub not_testable: Vec<String>,
    /// Attacks that do what the plan allows.
    pub granted: Vec<String>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub milliseconds: u64,
}

impl Outcome {
    /// Reads a row's detail.
    pub fn of(detail: &Value) -> Option<Self> {
        json::from_value(detail).ok()
    }

    /// What the session goes by.
    pub fn result(&self) -> Tested {
        let features = Digest::of(json::to_canonical(&self.features).as_bytes());
        let refused = match (&self.error, self.escaped.as_slice()) {
            (Some(error), _) => Some(format!("its self-test could not be run: {error}")),
            (None, []) => None,
            (None, escaped) => Some(format!("its self-test got out: {}", escaped.join(", "))),
        };
        Tested { features, refused }
    }
}

/// Tests what a call is to run in: once for each state of the machine, and again after a test that refused.
pub fn due(session: &Session<'_>, call: &ToolCall, layers: &[&Policy]) -> Option<Outcome> {
    let wanted = order::wanted(session, call, layers)?.ok().filter(|wanted| is_due(session, wanted))?;
    // What cannot be planned is denied with the reason by the decision itself.
    let order = order::order(session, call, layers, false, &wanted).ok()?;
    Some(test(session, &order, wanted.features, wanted.level))
}

/// The same for what is run as a whole.
pub fn due_whole(session: &Session<'_>, call: &ToolCall, layers: &[&Policy], whole: &Whole<'_>) -> Option<Outcome> {
    let wanted = order::wanted_whole(session, layers).ok().filter(|wanted| is_due(session, wanted))?;
    let order = order::order_whole(session, call, layers, whole, &wanted).ok()?;
    Some(test(session, &order, wanted.features, wanted.level))
}

fn is_due(session: &Session<'_>, wanted: &Wanted) -> bool {
    let now = Digest::of(json::to_canonical(&wanted.features).as_bytes());
    !session.state.tested.as_ref().is_some_and(|tested| tested.features == now && tested.refused.is_none())
}

/// Tests a plan.
fn test(session: &Session<'_>, order: &Order, features: Features, level: Level) -> Outcome {
    let begun = Instant::now();
    let host = Host { features: &features, state: session.store.root() };
    let test = self_test(&order.confinement, Suite::Quick, &ATTACK.map(OsString::from), host);
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let error = test.as_ref().err().map(|error| error.to_string().chars().take(MAX_TEXT).collect());
    let of = |wanted| test.as_ref().map_or_else(|_| Vec::new(), |test| named(test, wanted));
    Outcome {
        level,
        order: order.digest(),
        version: test.as_ref().ok().map(|test| test.version),
        held: of(AttackResult::Held),
        escaped: of(AttackResult::Escaped),
        not_testable: of(AttackResult::NotTestable),
        granted: of(AttackResult::Granted),
        error,
        milliseconds,
        features,
    }
}

/// Writes its row, and has the session go by it.
pub fn record(session: &mut Session<'_>, outcome: Outcome) -> Result<(), SessionError> {
    session.state.tested = Some(outcome.result());
    let draft = session.event(TESTED, outcome);
    session.append(draft)?;
    Ok(())
}

fn named(test: &SelfTest, wanted: AttackResult) -> Vec<String> {
    test.results.iter().filter(|(_, result)| **result == wanted).map(|(id, _)| id.clone()).collect()
}

/// In one line, for people.
pub fn words(outcome: &Outcome) -> String {
    let all = outcome.held.len() + outcome.escaped.len() + outcome.not_testable.len() + outcome.granted.len();
    let mut text = format!("{} of {all} attacks held", outcome.held.len());
    let rest = [("granted", &outcome.granted), ("not testable", &outcome.not_testable), ("escaped", &outcome.escaped)];
    for (word, ids) in rest.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        text.push_str(&format!(", {} {word}", ids.len()));
    }
    text
}
