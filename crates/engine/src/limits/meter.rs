//! What the client's transcripts tell of a session's use, brought up to date before something is judged.
//!
//! Owns the reading under the ledger's lock, so that hooks that come at once count nothing twice, and the file that says how far was
//! read (`usage`), which can be lost: then everything is read again. Refuses to take unknown for nothing (R70). Invariant: what the state
//! says never falls. Page: `spec/limits.md`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use writ_clients::Client;
use writ_clients::meter::{AgentUse, Meter};
use writ_clients::transcript::{MAIN, TranscriptError, Transcripts};
use writ_clients::usage::{Rate, Tokens};
use writ_core::{Digest, Event, EventKind, Money, SessionId};
use writ_policy::{Action, Limit, Measure, Tally, Usage, near, refusals};
use writ_store::{Store, regular_file};

use super::prices::Prices;
use crate::governing::layers::{self, Caller, LayerRef};
use crate::lag;
use crate::session::rows::PRICED;
use crate::session::{Session, SessionError, drawn};

/// How far was read, in the session's folder.
const KEPT: &str = "usage";
/// Largest such file.
const MAX_KEPT: u64 = 64 << 20;
/// Longest reason that every row repeats.
const MAX_WHY: usize = 160;
/// How many messages a client may be behind with, where each of its calls is done at once.
const BEHIND: u64 = 2;
/// How many of the last messages are looked at for how large one is.
const LATE: usize = 8;

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
    let mains = in_force.policies(Caller::Main);
    let limited = |measure: Measure| {
        let mut all = mains.iter().flat_map(|policy| policy.limits());
        let of_agents = || {
            in_force.accepted.of_agents().any(|(_, agent)| agent.limits.iter().any(|limit| limit.measure == measure))
        };
        all.any(|limit| limit.measure == measure) || of_agents()
    };
    let spend = limited(Measure::Spend);
    if !spend && !limited(Measure::TokensIn) && !limited(Measure::TokensOut) {
        return Ok(None);
    }
    let known = kept(session.store, &session.id);
    let mut meter = known.clone().unwrap_or_default();
    count(session, &mut meter, input, spend)?;
    if is_nearly_reached(session, &ahead(session, &meter, spend)) && is_told_soon(session, input) {
        count(session, &mut meter, input, spend)?;
    }
    if known.as_ref() != Some(&meter) {
        session.keep_soon(KEPT, &meter.to_bytes())?;
    }
    Ok(Some(meter))
}

/// Reads what is new, and says in the state what was used in all.
fn count(session: &mut Session<'_>, meter: &mut Meter, input: &Event, spend: bool) -> Result<(), SessionError> {
    let mut usage = session.state.usage.clone().unwrap_or_default();
    usage.unknown = None;
    match read(meter, input, session.client, &usage) {
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
        price(session, &agents, &mut usage)?;
    }
    session.state.usage = Some(usage);
    count_agents(session, &agents, spend);
    Ok(())
}

/// Says what the agents used that layers of their own limit. An agent whose type is not told may be any.
fn count_agents(session: &mut Session<'_>, agents: &BTreeMap<String, AgentUse>, spend: bool) {
    let Ok(in_force) = session.policy() else { return };
    let list = in_force.accepted.list();
    let refs: Vec<&LayerRef> = list.iter().collect();
    let prices = spend.then(|| begun_with(session).ok()).flatten();
    let all = session.state.usage.clone().unwrap_or_default();
    let mut counted = Vec::new();
    for (layer, of_agent) in in_force.accepted.of_agents() {
        if !of_agent.limits.iter().any(|limit| limit.measure.is_told_by_client()) {
            continue;
        }
        let before = session.state.agents.get(of_agent.layer).and_then(|count| count.usage.clone()).unwrap_or_default();
        let theirs = used_under(&refs, &layer.at.name, agents);
        let told = usage_of(theirs.into_iter(), prices.as_ref());
        let usage = Usage {
            tokens_in: told.tokens_in.max(before.tokens_in),
            tokens_out: told.tokens_out.max(before.tokens_out),
            spend: told.spend.max(before.spend),
            // Whose lines those are that cannot be read is not known either.
            unknown: all.unknown.clone(),
            unpriced: told.unpriced,
        };
        counted.push((of_agent.layer.to_owned(), usage));
    }
    for (layer, usage) in counted {
        session.state.agents.entry(layer).or_default().usage = Some(usage);
    }
}

/// What those agents used on whose calls a layer speaks.
pub fn used_under<'a>(list: &[&LayerRef], layer: &str, agents: &'a BTreeMap<String, AgentUse>) -> Vec<&'a AgentUse> {
    let speaks = |agent: &AgentUse| {
        let applying = layers::applying(list, Caller::typed(agent.note.kind.as_deref()));
        applying.iter().any(|at| list.get(*at).is_some_and(|at| at.name == layer))
    };
    agents.iter().filter(|(name, agent)| *name != MAIN && speaks(agent)).map(|(_, agent)| agent).collect()
}

/// What agents used together.
pub fn usage_of<'a>(agents: impl Iterator<Item = &'a AgentUse>, prices: Option<&Prices>) -> Usage {
    let mut usage = Usage::default();
    for agent in agents {
        let tokens = agent.tokens();
        usage.tokens_in = usage.tokens_in.saturating_add(tokens.all_input());
        usage.tokens_out = usage.tokens_out.saturating_add(tokens.output);
        match prices.map(|prices| prices.cost(agent)) {
            Some(Ok(cost)) => usage.spend = [usage.spend, cost].into_iter().sum(),
            Some(Err(model)) => usage.unpriced = Some(model.chars().take(MAX_WHY).collect()),
            None => {}
        }
    }
    usage
}

/// What messages may have used that the client has not written down yet, as many as it is behind, each as large as the largest of late.
fn ahead(session: &Session<'_>, meter: &Meter, spend: bool) -> Usage {
    let prices = spend.then(|| begun_with(session).ok()).flatten();
    let mut most = Usage::default();
    for (rate, tokens) in meter.last_messages().take(LATE) {
        let mut message = AgentUse::default();
        message.add(rate, tokens);
        let used = usage_of(std::iter::once(&message), prices.as_ref());
        most.tokens_in = most.tokens_in.max(used.tokens_in);
        most.tokens_out = most.tokens_out.max(used.tokens_out);
        most.spend = most.spend.max(used.spend);
    }
    Usage {
        tokens_in: most.tokens_in.saturating_mul(BEHIND),
        tokens_out: most.tokens_out.saturating_mul(BEHIND),
        spend: (0..BEHIND).map(|_message| most.spend).sum(),
        ..most
    }
}

/// Whether a limit that would refuse is near and not reached, so that the next answer counts; or would be near with what is `ahead`.
fn is_nearly_reached(session: &Session<'_>, ahead: &Usage) -> bool {
    let Ok(in_force) = session.policy() else { return false };
    let tally = session.tally();
    let near = |limits: &[Limit], tally: Tally<'_>| {
        let usage = tally.usage.map(|usage| Usage {
            tokens_in: usage.tokens_in.saturating_add(ahead.tokens_in),
            tokens_out: usage.tokens_out.saturating_add(ahead.tokens_out),
            spend: [usage.spend, ahead.spend].into_iter().sum(),
            ..usage.clone()
        });
        let measures = near(limits, Tally { usage: usage.as_ref(), ..tally });
        measures.iter().any(|(measure, _)| measure.is_told_by_client())
    };
    let near_of_agents = in_force
        .accepted
        .of_agents()
        .any(|(_, agent)| near(&agent.limits, agent.own(&session.state.agents, session.moment()).tally));
    (near_of_agents || in_force.policies(Caller::Main).iter().any(|policy| near(policy.limits(), tally)))
        && in_force.policies(Caller::Main).iter().all(|policy| refusals(policy, tally, Action::Request).is_empty())
}

/// Waits a little for the message that made the calls at hand: the client asks its hooks before it writes that down. Returns whether
/// it is there now.
fn is_told_soon(session: &Session<'_>, input: &Event) -> bool {
    let last = if let EventKind::PostToolBatch { calls } = &input.kind { calls.last() } else { None };
    let used = if let EventKind::PreToolUse(used) = &input.kind { Some(used) } else { last.map(|last| &last.call) };
    // What the hook calls it by is in no transcript where the client tells no ids.
    let call = used.map(|used| &used.id).filter(|_| session.client.is_some_and(|client| client.tells_ids()));
    let transcripts = session.client.and_then(Client::transcripts);
    let (Some(call), Some(transcripts), Some(main)) = (call, transcripts, input.transcript.as_deref()) else {
        return false;
    };
    let name = input.agent.as_ref().map_or(MAIN, |agent| agent.id.as_str());
    // It may have come between the count and this look.
    let told = lag::wait_for(|| {
        let files = transcripts.files(Path::new(main)).map(|listing| listing.files).unwrap_or_default();
        files.iter().any(|(agent, path)| agent == name && transcripts.tells_of(path, call)).then_some(())
    });
    told.is_some()
}

fn read(meter: &mut Meter, input: &Event, client: Option<&dyn Client>, before: &Usage) -> Result<(), String> {
    drawn::refresh(client, input.transcript.as_deref()).map_err(|error| error.to_string())?;
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
    if is_call {
        let _there = lag::wait_for(|| main.exists().then_some(()));
    }
    meter.read(transcripts, main).map(drop)
}

/// Says what it cost. A session goes on with the prices that it began with; only a model that had none takes the one that it has now.
fn price(
    session: &mut Session<'_>,
    agents: &BTreeMap<String, AgentUse>,
    usage: &mut Usage,
) -> Result<(), SessionError> {
    let mut prices = match begun_with(session) {
        Ok(prices) => prices,
        Err(why) => {
            usage.unknown = Some(why.chars().take(MAX_WHY).collect());
            return Ok(());
        }
    };
    usage.unpriced = None;
    let mut learnt = session.state.prices.is_none();
    let mut sum = Money::default();
    for agent in agents.values() {
        let cost = match prices.cost(agent) {
            Err(_) => {
                learnt = true;
                let now = Prices::open(session.store.root());
                now.map(|now| prices.learn(agent, &now))
                    .map_or_else(|error| Err(error.to_string()), |()| prices.cost(agent))
            }
            known => known,
        };
        match cost {
            Ok(cost) => sum = [sum, cost].into_iter().sum(),
            Err(model) => usage.unpriced = Some(model.chars().take(MAX_WHY).collect()),
        }
    }
    usage.spend = usage.spend.max(sum);
    let digest = learnt.then(|| prices.digest()).filter(|digest| session.state.prices != Some(*digest));
    if let Some(digest) = digest {
        session.keep(&prices_file(digest), &prices.to_bytes())?;
        session.state.prices = Some(digest);
        let draft = session.event(PRICED, Priced { prices: digest });
        session.append(draft)?;
    }
    Ok(())
}

/// The prices that the session began with, or those of now where it begins.
fn begun_with(session: &Session<'_>) -> Result<Prices, String> {
    match session.state.prices {
        None => Prices::open(session.store.root()).map_err(|error| error.to_string()),
        Some(digest) => prices_of(&session.store.folder(&session.id), digest),
    }
}

/// The prices that a session kept.
pub fn prices_of(folder: &Path, digest: Digest) -> Result<Prices, String> {
    let bytes = regular_file::read(&folder.join(prices_file(digest)), MAX_KEPT);
    let bytes = bytes.ok().filter(|bytes| Digest::of(bytes) == digest);
    bytes.and_then(|bytes| Prices::kept(&bytes)).ok_or_else(|| "the prices that the session kept are gone".to_owned())
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
