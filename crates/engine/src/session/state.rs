//! The session's state, which lives in the last row's `detail.state` (R43): there is no second file to disagree with.
//!
//! Owns the shape of that member and its reading; refuses to guess — a state that does not read is an error, and an
//! error denies (R6). Invariant: its size has a bound, however long the session and however many its agents; what would grow
//! lies in files that it names by digest. Format page: `spec/ledger.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Custody, Digest, Timestamp};
use writ_policy::{Measure, Raised, Refused, Tally, Usage};

use super::agents::{self, Agents};
use super::millis_between;
use super::process::{self, ClientProcess};
use crate::governing::in_force::PolicyRef;

/// Most words of humans that may be open at once.
pub const MAX_GRANTS: usize = 8;
/// Most processes of clients that a state names.
const MAX_CLIENTS: usize = 3;
/// How many digits of a digest name a call or a grant in a command.
const SHORT: usize = 12;

/// The first digits of a digest, as `writ approve` takes them.
pub fn short(digest: Digest) -> String {
    digest.hex().chars().take(SHORT).collect()
}

/// What an approval is for: another value of any of these is another action (R71).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Action<'a> {
    /// The session.
    pub session: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// [`writ_core::ToolCall::digest`].
    pub input: Digest,
    /// The folder it would run in.
    pub cwd: &'a str,
    /// The subagent, if it is one's.
    pub agent: Option<&'a str>,
    /// Digest of the accepted policy's file.
    pub policy: Option<Digest>,
    /// Digests of the files of all layers that are judged too, in their order.
    pub layers: &'a [Digest],
    /// Where symlinks lead its words: one that leads elsewhere makes another action of the same words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads: Option<Digest>,
    /// Whether the tool's server defines it in another way than was accepted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redefined: bool,
    /// The rules that what the session has taken in speaks for: more of them make another action of the same call.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub flows: &'a [&'a str],
}

impl Action<'_> {
    /// SHA-256 of the canonical JSON of all members.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }
}

/// How often the action of an approval may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Uses {
    /// Once.
    #[default]
    Once,
    /// As often as it is called while the approval lasts.
    Any,
    /// Never: a human said no.
    Never,
}

impl Uses {
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}

/// What a human said of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// How often it may run.
    #[serde(default, skip_serializing_if = "Uses::is_once")]
    pub uses: Uses,
    /// After this moment their word is void; without it, it lasts as long as the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Given {
    /// Whether it stands at this moment.
    pub fn stands(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now <= until)
    }
}

/// How often agents were sent back because of a false DONE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// In the whole session.
    pub total: u64,
    /// Digest of the counts of the single agents, which lie in the session's folder.
    pub agents: Digest,
}

/// A key that signs, and what keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What keeps it.
    pub kept: Custody,
    /// It.
    pub key: Digest,
}

/// What the last self-test of the session's sandbox came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    /// Digest of the machine's features that it was run with.
    pub features: Digest,
    /// Why nothing may run in it, if nothing may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Everything the next decision needs to know of the session so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The accepted policy; `None` where none governs and only claims are on record.
    // Not a default: a state that says nothing of its policy does not read.
    #[serde(deserialize_with = "Option::deserialize")]
    pub policy: Option<PolicyRef>,
    /// Calls that were allowed. Denied calls do not count as tool calls (R17).
    pub calls: u64,
    /// Calls that were asked about.
    pub asked: u64,
    /// How many of those a human's word here answered, and are not known to have run all the same: what runs of them counts by itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered: u64,
    /// Calls that were denied.
    pub denied: u64,
    /// Calls that ran and would have been stopped, had the policy not only observed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed: u64,
    /// Human prompts so far.
    pub turns: u64,
    /// What humans said of actions, by the digest of the whole action: approvals not used yet, and refusals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<Digest, Given>,
    /// How often agents were sent back to work because of a false DONE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// The processes of the clients that were seen to begin or go on with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientProcess>,
    /// Not all of them are named: more ran at once, or one could not be seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crowded: bool,
    /// What became of the policy's files, as the human was last told: the digest of what the row says of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// It began while an earlier session's change of policy was not settled: every call asks until a human settles it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// The last self-test of its sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
    /// The key that signs, where it is not the machine's own in its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custody: Option<Held>,
    /// What it used by its client's own word, where its policy limits that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Digest of the prices that it is counted with, where its policy limits what it spends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Digest>,
    /// Limits that a human raised.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub raised: Raised,
    /// What was refused last because a limit was reached, until a prompt is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// What sub-agents used, by the layers that limit it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: Agents,
    /// It has ended, and nobody has gone on with it since: rows that still come are sealed one by one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
    /// Digest of the labels of what it has taken in, which lie in its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<Digest>,
    /// There were calls before another policy was accepted, which gave labels of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relabelled: bool,
    /// Limits of which the agent was told that four fifths are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warned: Vec<Measure>,
    /// What is left of rates, by tool and seconds, behind the layer's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, Bucket>,
    /// By how many milliseconds the clock was put back between its rows, in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub back: u64,
}

/// What is left of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Thousandths of a call,
    pub left: u64,
    /// at this moment.
    pub at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A last row whose state does not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {sequence} of the ledger holds no readable state: move the session's folder away, then start a new session"
)]
pub struct StateError {
    /// The row.
    pub sequence: u64,
}

impl State {
    /// What keeps the key that signs.
    pub fn custody(&self) -> Custody {
        self.custody.as_ref().map(|held| held.kept).unwrap_or_default()
    }

    /// A moment on a clock that nobody puts back: what a session used of its time does not fall.
    pub fn steady(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.millis().saturating_add(i64::try_from(self.back).unwrap_or(i64::MAX)))
    }

    /// Takes in how far the clock is put back where the row before is of a later moment.
    pub fn put_back(&mut self, last: Timestamp, now: Timestamp) {
        self.back = self.back.saturating_add(millis_between(now, last));
    }

    /// The state before a row, with what the row `after` it took in of the clock: as much as it can have been put back, at most. Rows of
    /// earlier versions took in none of it.
    pub fn with_clock(mut self, after: &Self, last: Timestamp, now: Timestamp) -> Self {
        let before = self.back;
        self.put_back(last, now);
        self.back = after.back.clamp(before, self.back);
        self
    }

    /// What the session has used, so many milliseconds after it began, for the policies' limits.
    pub fn tally(&self, millis: u64) -> Tally<'_> {
        Tally {
            calls: (self.calls + self.asked).saturating_sub(self.answered),
            turns: self.turns,
            millis,
            refused: self.refused,
            usage: self.usage.as_ref(),
            raised: Some(&self.raised),
            taint: None,
            unread: self.relabelled,
        }
    }

    /// Counts an asked call no more that a human's word answered, for the session and for the layers that counted it as a call or as a turn
    /// of their agents; `again` where it ran all the same.
    pub fn answer(&mut self, calls: &BTreeSet<&str>, turns: &BTreeSet<&str>, again: bool) {
        self.answered = if again { self.answered.saturating_sub(1) } else { self.answered + 1 };
        agents::answer(&mut self.agents, calls, turns, again);
    }

    /// Notes that a call was refused because a limit was reached.
    pub fn refuse_call(&mut self) {
        self.refused = self.refused.or(Some(Refused::Call));
    }

    /// Takes a limit that a human raised.
    pub fn raise(&mut self, measure: Measure, to: u64) {
        self.raised.insert(measure, to);
        self.warned.retain(|warned| *warned != measure);
        self.refused = None;
    }

    /// Notes that another policy governs from now on.
    pub const fn relabel(&mut self) {
        self.relabelled |= self.calls + self.asked > 0;
    }

    /// Forgets what was said about another policy's limits. What sub-agents used stays, under the layers that limit their types `now`.
    pub fn forget_limits(&mut self, before: &[agents::Limits<'_>], now: &[agents::Limits<'_>]) {
        self.raised.clear();
        self.warned.clear();
        agents::follow(&mut self.agents, before, now);
        self.rates.clear();
        self.refused = None;
    }

    /// A fresh session under `policy`, if there is one.
    pub const fn fresh(policy: Option<PolicyRef>) -> Self {
        Self {
            policy,
            calls: 0,
            asked: 0,
            answered: 0,
            denied: 0,
            observed: 0,
            turns: 0,
            grants: BTreeMap::new(),
            blocks: None,
            clients: Vec::new(),
            crowded: false,
            told: None,
            pending: false,
            back: 0,
            tested: None,
            usage: None,
            custody: None,
            prices: None,
            raised: Raised::new(),
            refused: None,
            agents: Agents::new(),
            warned: Vec::new(),
            rates: BTreeMap::new(),
            over: false,
            taint: None,
            relabelled: false,
        }
    }

    /// Notes the process of a client that begins or goes on with the session. One that runs is never forgotten for another: whoever makes up
    /// clients must not push the real one out.
    pub fn see_client(&mut self, client: ClientProcess) {
        if self.clients.contains(&client) {
            return;
        }
        if self.clients.len() >= MAX_CLIENTS {
            self.clients = process::running(&self.clients);
        }
        if self.clients.len() >= MAX_CLIENTS {
            self.crowded = true;
        } else {
            self.clients.push(client);
        }
    }

    /// How policy is called, for people.
    pub fn policy_name(&self) -> &str {
        self.policy.as_ref().map_or("none", |policy| policy.name.as_str())
    }

    /// Reads `detail.state`.
    pub fn from_detail(detail: &Value) -> Option<Self> {
        json::from_value(detail.get("state")?).ok()
    }

    /// What a human said of exactly this action that stands at this moment.
    pub fn given(&self, action: Digest, now: Timestamp) -> Option<Given> {
        self.grants.get(&action).copied().filter(|given| given.stands(now))
    }

    /// Adds a human's word and drops those that have ended. `None` when too many are open: every row repeats them.
    #[must_use]
    pub fn give(&mut self, action: Digest, given: Given, now: Timestamp) -> Option<()> {
        self.grants.retain(|_, given| given.stands(now));
        if self.grants.len() >= MAX_GRANTS && !self.grants.contains_key(&action) {
            return None;
        }
        self.grants.insert(action, given);
        Some(())
    }

    /// Takes an approval for one run away once that run is allowed.
    pub fn spend(&mut self, action: Digest) {
        if self.grants.get(&action).is_some_and(|given| given.uses == Uses::Once) {
            self.grants.remove(&action);
        }
    }

    /// The session has ended; so have the words that last as long as it does.
    pub fn end(&mut self) {
        self.grants.retain(|_, given| given.until.is_some());
        self.over = true;
    }

    /// Takes a human's word away.
    pub fn take_back(&mut self, action: Digest) -> Option<Given> {
        self.grants.remove(&action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::Money;

    /// Whatever a session has come to, what every row repeats stays below two and a half kibibytes, or three and a half where
    /// its policy limits what it may use.
    #[test]
    fn the_state_has_a_bound() {
        let digest = Digest::of(b"");
        let policy = PolicyRef {
            path: format!("/{}/.aflock", "folder/".repeat(20)).into(),
            name: "n".repeat(64),
            file: digest,
            digest,
            signed: "no-functionary".to_owned(),
            anchor: Some(digest),
            layers: Some(digest),
            own: false,
            limited: true,
            attests: true,
        };
        let (now, until) = (Timestamp::from_millis(0), Timestamp::from_millis(4_000_000_000_123));
        let mut state = State::fresh(Some(policy));
        let given = Given { uses: Uses::Never, until: Some(until) };
        for number in 0..MAX_GRANTS {
            assert_eq!(state.give(Digest::of(&[u8::try_from(number).unwrap()]), given, now), Some(()));
        }
        assert_eq!(state.give(digest, given, now), None);
        assert_eq!(state.give(Digest::of(&[0]), given, now), Some(()), "one that is open is only prolonged");
        let counts = u64::MAX >> 12;
        (state.calls, state.asked, state.denied, state.observed, state.turns) =
            (counts, counts, counts, counts, counts);
        state.answered = counts;
        (state.taint, state.relabelled, state.over) = (Some(digest), true, true);
        (state.blocks, state.pending) = (Some(Blocks { total: counts, agents: digest }), true);
        state.told = Some(digest.to_string());
        let known = |id: u32| ClientProcess { id: 4_194_304 - id, started: 4_000_000_000_000 };
        (state.clients, state.crowded) = ((0..3).map(known).collect(), true);
        let text = json::to_canonical(&state);
        assert!(text.len() <= 5 << 9, "{}: {text}", text.len());
        let why = Some("w".repeat(160));
        state.usage = Some(Usage {
            tokens_in: counts,
            tokens_out: counts,
            spend: Money::from_micros(counts),
            unknown: why.clone(),
            unpriced: why,
        });
        Measure::ALL.into_iter().for_each(|measure| state.raise(measure, counts));
        (state.warned, state.refused) = (Measure::ALL.to_vec(), Some(Refused::Prompt));
        state.prices = Some(digest);
        let text = json::to_canonical(&state);
        assert!(text.len() <= 7 << 9, "{}: {text}", text.len());
        let later = Timestamp::from_millis(until.millis() + 1);
        assert_eq!(state.give(digest, Given::default(), later), Some(()), "those that have ended make room");
        assert_eq!(state.grants.len(), 1);
        assert_eq!(state.given(digest, later), Some(Given::default()), "as long as the session");
        state.spend(digest);
        assert_eq!(state.given(digest, later), None);
    }
}
