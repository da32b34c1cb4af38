//! A tool call before and after it runs: decide, record, answer — in this order.

use std::borrow::Cow;

use serde::Serialize;
use writ_clients::shell_calls::ShellCalls;
use writ_core::json::{self, Value};
use writ_core::secret::mask_id;
use writ_core::{
    Answer, Decision, Digest, Event, Matched, Reason, Reply, Subject, ToolCall, ToolKind, ToolUse, Verdict,
};
use writ_evidence::row::RowDecision;
use writ_policy::{Enforced, Facts, Grant, Held, Layer, Policy, enforce, judge};

use super::authored;
use super::look::{CallContext, Looked, look};
use super::outcome::{POLICY_UNUSABLE, and_pending, approved, changed_policy, is_limited, row_decision, rules};
use super::reply::{denial, explain, reply};
use crate::attest::proofs::Proof;
use crate::attest::{subject, verdicts};
use crate::claims::tests_run;
use crate::confine::order::{self, Prepared, Whole};
use crate::confine::tested;
use crate::governing;
use crate::governing::in_force::Change;
use crate::limits::meter;
use crate::session::rows::Who;
use crate::session::state::Action;
use crate::session::{Blocked, Session, SessionError};

/// The event of the row of a call.
pub const CALL: &str = "tool-call";
/// The event of the row of what is run as a whole.
pub const RUN: &str = "run";

/// Decides a call, records it, answers.
pub fn before(session: &mut Session<'_>, input: &Event, used: &ToolUse) -> Result<Answer, SessionError> {
    meter::measure(session, input)?;
    let Recorded { decision, sandbox, action, policy, .. } = record(session, input, used, None)?;
    let answer = reply(session, input, policy.as_ref(), &decision, action);
    Ok(if sandbox.is_some() { order::answer(session, &used.call, &used.id, answer) } else { answer })
}

/// What was decided of a run, and recorded.
pub struct DecidedRun {
    /// Whether it may run.
    pub verdict: Verdict,
    /// Why not, in words.
    pub why: String,
    /// What a human's yes would be for.
    pub action: Digest,
    /// The right to run it, and in what.
    pub sandbox: Option<(Grant, Prepared)>,
}

/// Decides what is run as a whole, and records that.
pub fn whole(
    session: &mut Session<'_>,
    input: &Event,
    used: &ToolUse,
    whole: &Whole<'_>,
) -> Result<DecidedRun, SessionError> {
    let Recorded { decision, sandbox, action, policy } = record(session, input, used, Some(whole))?;
    let why = explain(session, policy.as_ref(), &decision);
    Ok(DecidedRun { verdict: decision.verdict, why, action, sandbox })
}

/// A call with its row.
struct Recorded {
    decision: Decision,
    /// The right to run it in what was prepared.
    sandbox: Option<(Grant, Prepared)>,
    action: Digest,
    policy: Option<Policy>,
}

/// Decides and records.
fn record(
    session: &mut Session<'_>,
    input: &Event,
    used: &ToolUse,
    whole: Option<&Whole<'_>>,
) -> Result<Recorded, SessionError> {
    let ToolUse { id, call } = used;
    let (tool, cwd) = (mask_id(&call.tool), mask_id(&input.cwd));
    let digest = call.digest();
    let test = session.policy().ok().and_then(|in_force| {
        let layers = in_force.policies();
        match (&session.within, whole) {
            (Some(_), _) => None,
            (None, Some(whole)) => tested::due_whole(session, call, &layers, whole),
            (None, None) => tested::due(session, call, &layers),
        }
    });
    if let Some(test) = test {
        tested::record(session, test)?;
    }
    let DecidedCall { mut decision, judged, proofs, layer, policy, sandbox } = decide(session, call, Some(id), whole);
    let action = Action {
        session: session.id.as_str(),
        tool: &tool,
        input: digest,
        cwd: &cwd,
        agent: input.agent.as_ref().map(|agent| agent.id.as_str()),
        policy: session.state.policy.as_ref().map(|policy| policy.file),
        layer,
    };
    let action = action.digest();
    for proof in &proofs {
        proof.keep(session)?;
    }
    let granted = decision.verdict == Verdict::Ask && session.state.granted(action, session.now);
    if granted {
        session.state.spend(action);
        decision = approved(decision);
    }
    let rules = rules(&decision);
    let Enforced { decision, observed } = told(policy.as_ref(), decision);
    let sandbox = match whole {
        Some(_) => sandbox.filter(|_| decision.verdict == Verdict::Allow),
        None => sandbox_of(session, call, &decision, granted, sandbox),
    };
    let sandbox = match sandbox {
        Some(prepared) => prepared.grant(session, &decision, call)?.map(|grant| (grant, prepared)),
        None => None,
    };
    session.state.observed += u64::from(observed.is_some());
    if whole.is_none() {
        count(session, &decision);
    }
    let runs = if let ToolKind::Shell { command } = &call.kind { tests_run::runs(command) } else { Vec::new() };
    let detail = Detail {
        judged,
        granted,
        sandbox: sandbox.as_ref().map(|(grant, _)| *grant),
        lasts: sandbox.is_some() && shell_calls(session).is_some_and(|client| client.lasts(&call.input)),
        run: session.within.as_ref().map(|within| within.run.as_str()),
        input: digest,
        cwd: &cwd,
        action,
        rules,
        observed,
        standing: "advised",
        who: Who::of(input),
        tests: tests_run::told(runs),
    };
    let mut draft = session.draft(row_decision(decision.verdict), detail);
    draft.call_id = Some(id.clone());
    draft.tool_name = Some(tool.into_owned());
    draft.denial_reason = denial(&decision);
    session.append(draft)?;
    Ok(Recorded { decision, sandbox, action, policy })
}

/// Answers a permission prompt: a call the policy denies is refused there too, everything else is left to the human.
pub fn permission(session: &mut Session<'_>, input: &Event, call: &ToolCall) -> Result<Answer, SessionError> {
    let DecidedCall { decision: judged, policy, .. } = decide(session, call, None, None);
    let Enforced { decision, observed } = told(policy.as_ref(), judged.clone());
    let detail = Asked {
        tool: mask_id(&call.tool),
        input: call.digest(),
        verdict: decision.verdict,
        rules: rules(&judged),
        observed,
        who: Who::of(input),
    };
    let draft = session.event("permission-request", detail);
    session.append(draft)?;
    Ok(match decision.verdict {
        Verdict::Deny => Reply::DenyPermission { reason: explain(session, policy.as_ref(), &decision) }.into(),
        Verdict::Ask | Verdict::Allow => Reply::Silent.into(),
    })
}

/// Records what came of a call: the digest of its result, or of its error.
pub fn after(
    session: &mut Session<'_>,
    input: &Event,
    used: &ToolUse,
    outcome: Result<&Value, &String>,
) -> Result<(), SessionError> {
    let exit = outcome.err().and_then(|error| shell_calls(session)?.exit_code(error));
    let exit = exit.filter(|_| matches!(used.call.kind, ToolKind::Shell { .. }));
    let detail = ResultDetail { event: "tool-result", exit, standing: "observed", who: Who::of(input) };
    let (decision, result) = match outcome {
        Ok(response) => (RowDecision::Completed, Digest::of(json::canonical(response).as_bytes())),
        Err(error) => (RowDecision::Failed, Digest::of(error.as_bytes())),
    };
    let mut draft = session.draft(decision, detail);
    draft.call_id = Some(used.id.clone());
    draft.tool_name = Some(used.call.tool.clone());
    draft.result_hash = Some(result);
    session.append(draft)?;
    authored::remember(session, &used.call, outcome.is_ok())
}

/// The client's own way with lines, where it takes others than the model's.
fn shell_calls(session: &Session<'_>) -> Option<&'static dyn ShellCalls> {
    session.client?.shell_calls()
}

/// What the row of a call says before it runs.
#[derive(Serialize)]
struct Detail<'a> {
    #[serde(flatten)]
    judged: Judged,
    /// Whether a human had let it run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    granted: bool,
    /// The right to run it in a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<Grant>,
    /// Whether its result comes while it runs there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lasts: bool,
    /// The run that it is part of, and held by.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    /// [`ToolCall::digest`].
    input: Digest,
    cwd: &'a str,
    /// Digest of all that an approval of it is for.
    action: Digest,
    rules: Vec<String>,
    /// What it would have come to, had the policy not only observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<Verdict>,
    standing: &'static str,
    #[serde(flatten)]
    who: Who<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<tests_run::Run>,
}

/// What a call was judged on.
#[derive(Serialize)]
struct Judged {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation: Option<Proof>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Facts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<ChangedPolicy>,
}

/// A changed policy that was asked, too.
#[derive(Serialize)]
struct ChangedPolicy {
    file: Digest,
    facts: Facts,
}

/// What the row of a permission prompt says.
#[derive(Serialize)]
struct Asked<'a> {
    tool: Cow<'a, str>,
    input: Digest,
    verdict: Verdict,
    rules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<Verdict>,
    #[serde(flatten)]
    who: Who<'a>,
}

/// What the row of a call says after it ran.
#[derive(Serialize)]
struct ResultDetail<'a> {
    event: &'static str,
    /// Of a line that failed, the exit code that the client was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
    standing: &'static str,
    #[serde(flatten)]
    who: Who<'a>,
}

/// A decision, what its row says of it, and the attestations it rests on.
struct DecidedCall {
    decision: Decision,
    judged: Judged,
    proofs: Vec<Proof>,
    /// Digest of the changed policy that was judged too.
    layer: Option<Digest>,
    /// The policy it was judged by; `None` where that could not be had.
    policy: Option<Policy>,
    /// What it is to run in.
    sandbox: Option<Prepared>,
}

/// What the client is told. A policy that cannot be had observes nothing: the refusal stands.
fn told(policy: Option<&Policy>, decision: Decision) -> Enforced {
    match policy {
        Some(policy) => enforce(policy.enforce(), decision),
        None => Enforced { decision, observed: None },
    }
}

/// Decides a call. A call that is about to run, and so has an id, is attested where the policy wants that.
fn decide(session: &Session<'_>, call: &ToolCall, id: Option<&str>, whole: Option<&Whole<'_>>) -> DecidedCall {
    let event = if whole.is_some() { RUN } else { CALL };
    let mut judged = Judged { event, attestation: None, facts: None, layer: None };
    let in_force = match session.policy() {
        Ok(in_force) => in_force,
        Err(blocked) => {
            let decision = Decision::from_reasons(vec![blocked_reason(session, blocked)]);
            return DecidedCall { decision, judged, proofs: Vec::new(), layer: None, policy: None, sandbox: None };
        }
    };
    let governing = &in_force.accepted;
    let folder = session.store.folder(&session.id);
    // What a confined call writes may be the settings of a repository that it made.
    let confined = governing.policy.confine().and(session.state.policy.as_ref());
    let repository = match &session.within {
        Some(within) => Some(within.repository.clone()),
        None => confined.map(|policy| governing::repository(policy.root()).to_owned()),
    };
    let surroundings = CallContext {
        setting: &session.setting,
        home: session.home,
        client: session.client,
        session: Some(&folder),
        repository: repository.as_deref(),
    };
    let Looked { mut facts, report, mut proofs } = look(&governing.policy, call, &surroundings);
    let wanted = id.filter(|_| governing.policy.consequences().attest);
    if let (Some(id), Some(report), Some(subject)) = (wanted, report, subject::Subject::of(call)) {
        let shown = subject::Detail::hash_only(governing.policy.consequences().hash_only);
        match verdicts::attest(session, id, &subject, call.digest(), &report, shown) {
            Ok(proof) => {
                judged.attestation = Some(proof.clone());
                proofs.push(proof);
            }
            Err(error) => facts = facts.unattested(error.to_string()),
        }
    }
    let change = in_force.change.as_ref().and_then(Change::layer);
    let mut changed = change.map(|change| look(&change.policy, call, &surroundings));
    let (mut sandbox, mut held) = (None, Held::default());
    let layers = in_force.policies();
    let prepared = match (&session.within, whole) {
        // A sandbox inside a sandbox cannot be: the run's holds it.
        (Some(within), _) => {
            held = within.held;
            None
        }
        (None, Some(whole)) => Some(order::prepare_whole(session, call, &layers, whole)),
        (None, None) => order::prepare(session, call, &layers, false),
    };
    match prepared {
        None => {}
        Some(Ok(prepared)) => (held, sandbox) = (prepared.held, Some(prepared)),
        Some(Err(why)) => facts = facts.unconfined(why),
    }
    let settled = |facts: Facts| {
        let facts = facts.held(held).redefined(session.redefined);
        if whole.is_some() { facts.by_a_human() } else { facts }
    };
    facts = settled(facts);
    if let Some(looked) = &mut changed {
        looked.facts = settled(std::mem::take(&mut looked.facts));
    }
    let mut layers = vec![Layer::own(&governing.policy, &facts)];
    layers.extend(change.zip(changed.as_ref()).map(|(change, look)| changed_policy(&change.policy, &look.facts)));
    let decision = and_pending(judge(&layers, &session.setting, session.tally()), session.state.pending);
    judged.facts = Some(facts);
    let file = change.map(|change| change.file);
    if let Some((file, looked)) = file.zip(changed) {
        proofs.extend(looked.proofs);
        judged.layer = Some(ChangedPolicy { file, facts: looked.facts });
    }
    DecidedCall { decision, judged, proofs, layer: file, policy: Some(governing.policy.clone()), sandbox }
}

/// What an allowed call runs in. Where a human says yes, it may use what the policies leave to them.
fn sandbox_of(
    session: &Session<'_>,
    call: &ToolCall,
    decision: &Decision,
    granted: bool,
    prepared: Option<Prepared>,
) -> Option<Prepared> {
    let prepared = prepared?;
    if !granted && decision.verdict != Verdict::Ask {
        return Some(prepared);
    }
    let layers = session.policy().ok()?.policies();
    order::prepare(session, call, &layers, true).and_then(Result::ok).or(Some(prepared))
}

fn blocked_reason(session: &Session<'_>, blocked: &Blocked) -> Reason {
    let policy = session.state.policy.as_ref();
    let path = policy.map_or_else(String::new, |policy| policy.path.to_string_lossy().into_owned());
    let message = match blocked {
        Blocked::Unusable(error) => error.to_string(),
        Blocked::Ungoverned => "this session is under no policy".to_owned(),
    };
    Reason {
        verdict: Verdict::Deny,
        rule: POLICY_UNUSABLE.to_owned(),
        matched: Matched { subject: Subject::Policy, text: path, span: None },
        message,
        instead: "have a human run `writ doctor` in a terminal".to_owned(),
    }
}

fn count(session: &mut Session<'_>, decision: &Decision) {
    match decision.verdict {
        Verdict::Allow => session.state.calls += 1,
        Verdict::Ask => session.state.asked += 1,
        Verdict::Deny => session.state.denied += 1,
    }
    if is_limited(decision) {
        session.state.refuse_call();
    }
}
