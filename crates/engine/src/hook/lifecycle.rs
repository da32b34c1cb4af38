//! What happens to a session between its calls: prompts, subagents, stops, its end.

use std::path::Path;

use serde::Serialize;
use writ_clients::cursor::Reading;
use writ_core::{Answer, Digest, Event, EventKind, Reply, Verdict, visible};

use writ_evidence::tally::listed;
use writ_policy::{Action, Enforce, Policy};

use super::Prepared;
use super::stops::{self, Checked};
use crate::Asker;
use crate::claims;
use crate::confine::layers;
use crate::decide::approvals::text;
use crate::governing::layers::{Caller, LayerRef};
use crate::governing::{Governing, unenforced};
use crate::identity;
use crate::identity::image::{self, Image};
use crate::identity::workload::Told;
use crate::limits::meter::{self, Used};
use crate::session::observed::Observed;
use crate::session::process::{self, ClientProcess};
use crate::session::rows::{IdentityRef, PROMPT, RESUMED, SEEN, SESSION_END, STARTED, Who};
use crate::session::{Session, SessionError, seal, unhooked};
use crate::setup::watch;
use crate::turns::attest as turns;

/// Most lines that a message at the end has.
const TOLD: usize = 8;
/// Most fields that nothing enforces which it names.
const IDLE: usize = 64;

/// Whether the client begins a conversation, and does not go on with one.
fn starts(source: Option<&str>) -> bool {
    !matches!(source, Some("resume" | "compact"))
}

/// Records an event that is no call, and does what belongs to it: look for calls no hook saw, seal at a stop.
pub fn record(
    session: &mut Session<'_>,
    input: &Event,
    event: &EventKind,
    prepared: Prepared,
) -> Result<Answer, SessionError> {
    // An agent that is sent back has not stopped: its claim is all there is to record.
    let answer = claims::record(session, input, prepared.claims)?;
    if matches!(answer.reply, Reply::Block { .. }) || matches!(event, EventKind::SubagentStart) {
        return Ok(answer);
    }
    let who = Who::of(input);
    let (name, about) = match event {
        EventKind::SessionStart { source } => {
            if let Some(image) = &prepared.image {
                session.keep(image::file_name(), &image::to_bytes(image))?;
            }
            start(session, input, source.as_deref(), (prepared.workload, prepared.image))
        }
        EventKind::UserPromptSubmit { prompt } => {
            let observed = match stops::check(session, input, Action::Prompt)? {
                Checked::Refuses(answer) => return Ok(answer),
                Checked::Lets { observed } => observed,
            };
            (session.state.turns, session.state.refused) = (session.state.turns + 1, None);
            session.state.over = false;
            (PROMPT, About::Prompt { prompt: Digest::of(prompt.as_bytes()), observed })
        }
        EventKind::PostToolBatch { calls } => {
            unhooked::batch(session, input, calls)?;
            return stops::request(session, input);
        }
        EventKind::SubagentStop { .. } => ("subagent-stop", About::Nothing {}),
        EventKind::PreCompact { trigger } => ("compact", About::Compact { trigger: trigger.as_deref() }),
        EventKind::ConfigChange { source, file } => {
            let blocked = weakened(session, input, file.as_deref())?;
            let about = About::Change { source: source.as_deref(), file: file.as_deref(), blocked: blocked.as_deref() };
            if let Some(why) = &blocked {
                let draft = session.event(
                    "config-change",
                    Happened { who, about, transcripts: None, used: Vec::new(), identity: None },
                );
                session.append(draft)?;
                let reason = format!(
                    "writ keeps the settings this session began with: {why}. `writ doctor` says how to mend them"
                );
                return Ok(Answer::from(Reply::Block { reason: reason.clone() }).with_message(reason));
            }
            ("config-change", About::Change { source: source.as_deref(), file: file.as_deref(), blocked: None })
        }
        EventKind::Stop { .. } => ("stop", About::Nothing {}),
        EventKind::SessionEnd { reason } => {
            let name = if session.within.is_some() { "client-ended" } else { SESSION_END };
            (name, About::End { reason: reason.as_deref() })
        }
        EventKind::PreToolUse(_)
        | EventKind::PostToolUse { .. }
        | EventKind::PostToolUseFailure { .. }
        | EventKind::PermissionRequest { .. }
        | EventKind::SubagentStart
        | EventKind::Other(_) => return Ok(Reply::Silent.into()),
    };
    let transcripts = match prepared.news {
        Some(news) => unhooked::transcripts(session, input, news)?,
        None => None,
    };
    let used = used(session, input)?;
    let tells =
        matches!(name, STARTED | RESUMED) || matches!(event, EventKind::Stop { .. } | EventKind::SubagentStop { .. });
    let identity = if tells { identity::of_event(session, input)? } else { None };
    // What was found out before came before the end.
    if name == SESSION_END {
        session.state.end();
    }
    let draft = session.event(name, Happened { who, about, transcripts, used, identity });
    session.append(draft)?;
    turns::attest(session, input, prepared.tree)?;
    if unhooked::ends_turn(event) {
        seal::seal(session)?;
    }
    // A run goes on until its own end.
    if matches!(event, EventKind::SessionEnd { .. }) && session.within.is_none() {
        layers::remove(session.store, &session.id);
        text::forget_all(&session.store.folder(&session.id));
    }
    let started = name == STARTED;
    last_word(session, input, started, answer)
}

/// A client that begins or goes on. In a run its session begins later than the record, and is one of several.
fn start<'a>(
    session: &mut Session<'_>,
    input: &'a Event,
    source: Option<&'a str>,
    (workload, image): (Option<Told>, Option<Image>),
) -> (&'static str, About<'a>) {
    let began = session.fresh || session.within.is_some() && starts(source);
    let transcript = session.within.as_ref().and(input.transcript.as_deref());
    // A client in a run is held by its sandbox; what is above this process then is a human's.
    let process = if session.within.is_none() { process::client(session.home.asker) } else { None };
    process.iter().for_each(|process| session.state.see_client(process.clone()));
    session.state.over = false;
    (if began { STARTED } else { RESUMED }, About::Start { source, transcript, process, workload, image })
}

#[derive(Serialize)]
struct Seen {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ClientProcess>,
}

/// Notes the client of calls that are posted, for it posts none when it starts; or that it is not known.
pub fn see(session: &mut Session<'_>) -> Result<(), SessionError> {
    let posted = matches!(session.home.asker, Asker::Client(_) | Asker::Unknown);
    if !posted || session.within.is_some() || session.state.crowded || !session.state.clients.is_empty() {
        return Ok(());
    }
    let process = process::client(session.home.asker);
    match &process {
        Some(process) => session.state.see_client(process.clone()),
        None => session.state.crowded = true,
    }
    let draft = session.event(SEEN, Seen { process });
    session.append_unflushed(draft).map(drop)
}

/// What is said once the row is there.
fn last_word(session: &mut Session<'_>, input: &Event, started: bool, answer: Answer) -> Result<Answer, SessionError> {
    if started {
        return Ok(welcome(session));
    }
    if matches!(input.kind, EventKind::SessionEnd { .. }) {
        return Ok(farewell(session, answer));
    }
    if matches!(input.kind, EventKind::UserPromptSubmit { .. }) && answer.reply == Reply::Silent {
        return stops::warn(session, input, "UserPromptSubmit");
    }
    Ok(answer)
}

/// The detail of a row about an event that is no call.
#[derive(Serialize)]
struct Happened<'a> {
    #[serde(flatten)]
    who: Who<'a>,
    #[serde(flatten)]
    about: About<'a>,
    /// What was read of the client's own record.
    #[serde(skip_serializing_if = "Option::is_none")]
    transcripts: Option<Reading>,
    /// What the agent that stops used in all, where the policy limits that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    used: Vec<Used>,
    /// Who the agent is.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityRef>,
}

/// What the agent that stops used.
fn used(session: &mut Session<'_>, input: &Event) -> Result<Vec<Used>, SessionError> {
    let stops =
        matches!(input.kind, EventKind::Stop { .. } | EventKind::SubagentStop { .. } | EventKind::SessionEnd { .. });
    if !stops || !session.state.policy.as_ref().is_some_and(|policy| policy.limited) {
        return Ok(Vec::new());
    }
    let meter = meter::measure(session, input)?;
    Ok(meter.map(|meter| meter::used_by(&meter, input)).unwrap_or_default())
}

#[derive(Serialize)]
#[serde(untagged)]
enum About<'a> {
    Start {
        source: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        transcript: Option<&'a str>,
        /// The client's process, as the kernel shows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        process: Option<ClientProcess>,
        /// What the Workload API says that its processes are.
        #[serde(skip_serializing_if = "Option::is_none")]
        workload: Option<Told>,
        /// What an engine tells of its container.
        #[serde(skip_serializing_if = "Option::is_none")]
        image: Option<Image>,
    },
    Prompt {
        prompt: Digest,
        /// What it would have come to, had the policy not only observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<Verdict>,
    },
    Compact {
        trigger: Option<&'a str>,
    },
    Change {
        source: Option<&'a str>,
        file: Option<&'a str>,
        /// Why the client was told to keep what it has.
        #[serde(skip_serializing_if = "Option::is_none")]
        blocked: Option<&'a str>,
    },
    End {
        reason: Option<&'a str>,
    },
    Nothing {},
}

/// Tells the user at the end what a policy that observes would have stopped.
fn farewell(session: &Session<'_>, answer: Answer) -> Answer {
    let observes =
        session.policy().ok().map(|in_force| &in_force.accepted).filter(|policy| policy.enforce() == Enforce::Observe);
    let observed = observes.and_then(|policy| Observed::of(session.store, &session.id, policy).ok());
    let Some(observed) = observed else { return answer };
    let lines = observed.lines();
    let all = lines.len() as u64;
    let lines = listed(lines.into_iter().take(TOLD).collect(), all);
    let ours = format!("writ: {}\n{}", observed.summary(), lines.join("\n"));
    let message = answer.message.iter().map(String::as_str).chain([ours.trim_end()]).collect::<Vec<_>>().join("\n");
    answer.with_message(message)
}

/// Whether changed settings would loosen the hooks that the session began with.
fn weakened(session: &Session<'_>, input: &Event, changed: Option<&str>) -> Result<Option<String>, SessionError> {
    let Some(client) = session.client else { return Ok(None) };
    let genesis = session.store.first_row(&session.id)?;
    let hooks = genesis.as_ref().map(|row| watch::recorded(&row.detail)).unwrap_or_default();
    Ok(watch::weakened(session.home, client, Path::new(&input.cwd), &hooks, changed.map(Path::new)))
}

/// Tells the user, once, which policy governs; loudly when nobody they trust signed it, or when it has expired.
fn welcome(session: &Session<'_>) -> Answer {
    let Some(policy) = &session.state.policy else { return Reply::Silent.into() };
    let name = visible::line(&policy.name);
    let accepted = session.policy().ok().map(|in_force| &in_force.accepted);
    let speaking = accepted.map(|accepted| accepted.policies(Caller::Main)).unwrap_or_default();
    let over = |policy: &&Policy| policy.expires().is_some_and(|(at, _)| session.now > at);
    if let Some((policy, (_, text))) =
        speaking.into_iter().find(over).and_then(|policy| Some((policy, policy.expires()?)))
    {
        let name = visible::line(policy.name());
        let message = format!("writ: policy `{name}` expired on {text}: every call is denied");
        return Answer::from(Reply::Silent).with_message(message);
    }
    let observes = session.policy().is_ok_and(|in_force| in_force.accepted.enforce() == Enforce::Observe);
    let trusted = match policy.signed.as_str() {
        "trusted" => None,
        "unknown-key" => Some(format!("writ: policy `{name}` is signed, but not by a key you trust")),
        "no-functionary" => Some(format!("writ: policy `{name}` is signed by none of the functionaries it names")),
        _ => Some(format!("writ: policy `{name}` is not signed")),
    };
    let observing =
        observes.then(|| format!("writ: policy `{name}` only observes: calls are recorded, and none is stopped"));
    // Where nobody vouches for the first, that is said already.
    let layers = accepted.filter(|accepted| accepted.signed.is_trusted()).map(Governing::list);
    let weak = |layer: &LayerRef| (layer.path.is_some() || layer.address.is_some()) && layer.signed != "trusted";
    let unsigned = layers.unwrap_or_default().into_iter().filter(weak);
    let unsigned = unsigned.map(|layer| {
        format!(
            "writ: policy `{}`, which `{name}` leads to, is not signed by a key you trust",
            visible::line(&layer.name)
        )
    });
    let idle = accepted.map(|accepted| unenforced::of(accepted, session.client)).unwrap_or_default();
    let idle = (!idle.is_empty()).then(|| {
        let all = idle.len() as u64;
        let told =
            listed(idle.into_iter().take(IDLE).map(|field| format!("`{}`", visible::line(&field))).collect(), all);
        format!("writ: nothing enforces {} of policy `{name}` here", told.join(", "))
    });
    let messages: Vec<String> = trusted.into_iter().chain(unsigned).chain(observing).chain(idle).collect();
    if messages.is_empty() {
        return Reply::Silent.into();
    }
    Answer::from(Reply::Silent).with_message(messages.join("\n"))
}
