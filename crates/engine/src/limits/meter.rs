//! What the client's transcripts tell of a session's use, brought up to date before something is judged.
//!
//! Owns the reading under the ledger's lock, so that hooks that come at once count nothing twice, and the file that says how far was
//! read (`usage`), which can be lost: then everything is read again. Refuses to take unknown for nothing (R70). Invariant: what the state
//! says never falls, unless a human changed a price. Page: `spec/limits.md`.

use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde::Serialize;
use writ_clients::Client;
use writ_clients::meter::{AgentUse, Meter};
use writ_clients::transcript::{MAIN, TranscriptError, Transcripts};
use writ_clients::usage::{Rate, Tokens};
use writ_core::{Digest, Event, EventKind, Money, SessionId};
use writ_policy::{Measure, Usage};
use writ_store::{Store, regular_file};

use super::prices::Prices;
use crate::session::rows::PRICED;
use crate::session::{Session, SessionError};

/// How far was read, in the session's folder.
const KEPT: &str = "usage";
/// Largest such file.
const MAX_KEPT: u64 = 64 << 20;
/// Longest reason that every row repeats.
const MAX_WHY: usize = 160;
/// How long a call waits for its client to begin its transcript, and how often that is looked for.
const PATIENCE: (Duration, u32) = (Duration::from_millis(20), 15);

/// Where a session keeps a table of prices.
pub fn prices_file(digest: Digest) -> String {
    format!("prices/{}.json", digest.hex())
}

/// What was read so far of a session's transcripts.
pub fn kept(store: &Store, id: &SessionId) -> Option<Meter> {
    let bytes = regular_file::read(&store.folder(id).join(KEPT), MAX_KEPT).ok()?;
    Meter::from_bytes(&bytes)
}

/// Brings the session's use up to date, where its policies limit what the client tells. Returns the count then.
pub fn measure(session: &mut Session<'_>, input: &Event) -> Result<Option<Meter>, SessionError> {
    let Ok(in_force) = session.policy() else { return Ok(None) };
    let limited = |measure: Measure| {
        in_force.policies().iter().any(|policy| policy.limits().iter().any(|limit| limit.measure == measure))
    };
    let spend = limited(Measure::Spend);
    if !spend && !limited(Measure::TokensIn) && !limited(Measure::TokensOut) {
        return Ok(None);
    }
    let mut usage = session.state.usage.clone().unwrap_or_default();
    usage.unknown = None;
    let known = kept(session.store, &session.id);
    let mut meter = known.clone().unwrap_or_default();
    match read(&mut meter, input, session.client, &usage) {
        Ok(()) if meter.unread() > 0 => {
            usage.unknown = Some(format!("{} lines or transcripts that tell of it cannot be read", meter.unread()));
        }
        Ok(()) => {}
        Err(why) => usage.unknown = Some(why.chars().take(MAX_WHY).collect()),
    }
    let agents = meter.agents();
    let all = agents.values().fold(Tokens::default(), |sum, agent| sum.plus(agent.tokens()));
    usage.tokens_in = usage.tokens_in.max(all.all_input());
    usage.tokens_out = usage.tokens_out.max(all.output);
    if spend {
        price(session, &mut meter, agents.values(), &mut usage)?;
    }
    if known.as_ref() != Some(&meter) {
        session.keep_soon(KEPT, &meter.to_bytes())?;
    }
    session.state.usage = Some(usage);
    Ok(Some(meter))
}

fn read(meter: &mut Meter, input: &Event, client: Option<&dyn Client>, before: &Usage) -> Result<(), String> {
    let client = client.ok_or("the session's client is not known to this version of Writ")?;
    let transcripts = client
        .transcripts()
        .ok_or_else(|| format!("the client `{}` keeps no transcript that tells it", client.name()))?;
    let Some(main) = input.transcript.as_deref().map(Path::new) else {
        return Err("the client names no transcript".to_owned());
    };
    let is_call = matches!(input.kind, EventKind::PreToolUse(_));
    match patiently(meter, transcripts, main, is_call) {
        Ok(()) => Ok(()),
        // Before the first answer there may be no transcript yet, and nothing was used.
        Err(TranscriptError::Io { path, source })
            if path == main && source.kind() == ErrorKind::NotFound && !is_call && *before == Usage::default() =>
        {
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Reads; a call whose transcript is not there yet waits a little: its client is about to write it.
fn patiently(
    meter: &mut Meter,
    transcripts: &dyn Transcripts,
    main: &Path,
    is_call: bool,
) -> Result<(), TranscriptError> {
    let (pause, times) = PATIENCE;
    for _ in 0..times {
        if !is_call || main.exists() {
            break;
        }
        sleep(pause);
    }
    meter.read(transcripts, main).map(drop)
}

/// Says what it cost. The prices are kept with the session, and a row names them when they are others than before.
fn price<'a>(
    session: &mut Session<'_>,
    meter: &mut Meter,
    agents: impl Iterator<Item = &'a AgentUse>,
    usage: &mut Usage,
) -> Result<(), SessionError> {
    let prices = match session
        .home
        .state()
        .map_err(|error| error.to_string())
        .and_then(|state| Prices::open(state).map_err(|error| error.to_string()))
    {
        Ok(prices) => prices,
        Err(why) => {
            usage.unknown = Some(why.chars().take(MAX_WHY).collect());
            return Ok(());
        }
    };
    let digest = prices.digest();
    let same = meter.note == Some(digest);
    usage.unpriced = None;
    let mut sum = Money::default();
    for agent in agents {
        match prices.cost(agent) {
            Ok(cost) => sum = [sum, cost].into_iter().sum(),
            Err(model) => usage.unpriced = Some(model),
        }
    }
    usage.spend = if same { usage.spend.max(sum) } else { sum };
    if !same {
        session.keep(&prices_file(digest), &prices.to_bytes())?;
        let draft = session.event(PRICED, Priced { prices: digest });
        session.append(draft)?;
        meter.note = Some(digest);
    }
    Ok(())
}

#[derive(Serialize)]
struct Priced {
    prices: Digest,
}

/// What one agent used at one rate, as a row says it.
#[derive(Clone, Debug, Serialize)]
pub struct Used {
    #[serde(flatten)]
    rate: Rate,
    #[serde(flatten)]
    tokens: Tokens,
}

/// What the agent of an event used in all.
pub fn used_by(meter: &Meter, input: &Event) -> Vec<Used> {
    let name = input.agent.as_ref().map_or(MAIN, |agent| agent.id.as_str());
    let agent = meter.agents().remove(name).unwrap_or_default();
    agent.used.into_iter().map(|(rate, tokens)| Used { rate, tokens }).collect()
}
