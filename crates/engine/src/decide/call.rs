//! A tool call before and after it runs: decide, record, answer — in this order.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;
use writ_clients::shell_calls::ShellCalls;
use writ_core::json::{self, Value};
use writ_core::secret::mask_id;
use writ_core::{
    Answer, Decision, Digest, Event, Matched, Reason, Reply, Subject, ToolCall, ToolKind, ToolUse, Verdict,
};
use writ_evidence::row::RowDecision;
use writ_policy::{Enforce, Enforced, Facts, Flow, Grant, Held, Policy, enforce};

use super::leads::leads;
use super::outcome::{
    POLICY_UNUSABLE, after_a_word, and_custody, and_lost, and_pending, and_turns, flows, is_limited, row_decision,
    rules, wanted_custody,
};
use super::rates::Counted;
use super::reply::{denial, explain, reply};
use super::surveyed::{JudgedLayer, Surveyed};
use super::{answered, approvals, authored, rates, starts};
use crate::attest::proofs::Proof;
use crate::claims::tests_run;
use crate::confine::order::{self, Prepared, Whole};
use crate::confine::tested;
use crate::governing::layers::Caller;
use crate::governing::{Governing, in_force};
use crate::limits::meter;
use crate::session::rows::{CALL, IdentityRef, RUN, Who};
use crate::session::shown::Rules;
use crate::session::state::{Action, Uses};
use crate::session::{Blocked, Session, SessionError, agents, taint};

/// Decides a call, records it, answers.
pub fn before(session: &mut Session<'_>, input: &Event, used: &ToolUse) -> Result<Answer, SessionError> {
    meter::measure(session, input)?;
    let Recorded { decision, sandbox, action, policy, .. } = record(session, input, used, None)?;
    let answer = reply(session, input, rules_of(policy.as_ref()), &decision, action);
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
    let why = explain(session, rules_of(policy.as_ref()), &decision);
    Ok(DecidedRun { verdict: decision.verdict, why, action, sandbox })
}

/// A call with its row.
struct Recorded {
    decision: Decision,
    /// The right to run it in what was prepared.
    sandbox: Option<(Grant, Prepared)>,
    action: Digest,
    policy: Option<Governing>,
}

/// Decides and records.
fn record(
    session: &mut Session<'_>,
    input: &Event,
    used: &ToolUse,
    whole: Option<&Whole<'_>>,
) -> Result<Recorded, SessionError> {
    let ToolUse { id, call } = used;
    let folder = resolved(&input.cwd);
    let (tool, cwd) = (mask_id(&call.tool), mask_id(&folder));
    let digest = call.digest();
    let caller = Caller::of(input.agent.as_ref());
    if let Some(test) = test_due(session, call, caller, whole) {
        tested::record(session, test)?;
    }
    let DecidedCall { mut decision, judged, proofs, policy, mode, sandbox, rates, agents, starts } =
        decide(session, call, caller, Some(id), whole);
    let layers: Vec<Digest> = judged.layers.iter().map(|layer| layer.file).collect();
    // Only what asks is approved.
    let asks = decision.verdict == Verdict::Ask;
    let leads = if asks { leads(call, session.setting.home.as_deref(), judged.facts()) } else { None };
    let asking = if asks { rules(&decision) } else { Vec::new() };
    let action = Action {
        session: session.id.as_str(),
        tool: &tool,
        input: digest,
        cwd: &cwd,
        agent: input.agent.as_ref().map(|agent| agent.id.as_str()),
        policy: session.state.policy.as_ref().map(|policy| policy.file),
        layers: &layers,
        leads,
        redefined: session.redefined,
        flows: &flows(&asking),
    };
    let action = action.digest();
    for proof in &proofs {
        proof.keep(session)?;
    }
    let given = if asks { approvals::given(session, action)? } else { None };
    let granted = given.is_some_and(|uses| uses != Uses::Never);
    if let Some(uses) = given {
        session.state.spend(action);
        decision = after_a_word(decision, uses);
    }
    let rules = rules(&decision);
    let Enforced { decision, observed } = enforce(mode, decision);
    let sandbox = match whole {
        Some(_) => sandbox.filter(|_| decision.verdict == Verdict::Allow),
        None => sandbox_of(session, call, caller, (&decision, granted), sandbox),
    };
    let sandbox = match sandbox {
        Some(prepared) => prepared.grant(session, &decision, call)?.map(|grant| (grant, prepared)),
        None => None,
    };
    session.state.observed += u64::from(observed.is_some());
    if whole.is_none() {
        count(session, &decision, &agents);
        let counted = rates.iter().filter(|_| decision.verdict != Verdict::Deny);
        counted.for_each(|rate| rate.spend(&mut session.state, session.now));
        agents::start(&mut session.state.agents, starts.iter().map(String::as_str), decision.verdict);
    }
    if decision.verdict != Verdict::Deny {
        taint::take(session, &judged.flow())?;
    }
    let runs = if let ToolKind::Shell { command } = &call.kind { tests_run::runs(command) } else { Vec::new() };
    let detail = Detail {
        judged,
        granted,
        sandbox: sandbox.as_ref().map(|(grant, _)| *grant),
        lasts: sandbox.is_some() && shell_calls(session).is_some_and(|client| client.lasts(&call.input)),
        run: session.within.as_ref().map(|within| within.run.as_str()),
        identity: session.named,
        input: digest,
        cwd: &cwd,
        leads,
        redefined: session.redefined,
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
    approvals::text::keep_asked(session, decision.verdict, action, call);
    Ok(Recorded { decision, sandbox, action, policy })
}

/// The folder that a path leads to now: an approval is for what is there, not for a link that leads elsewhere later.
pub fn resolved(cwd: &str) -> Cow<'_, str> {
    let found = Path::new(cwd).is_absolute().then(|| fs::canonicalize(cwd).ok()).flatten();
    found.and_then(|path| path.into_os_string().into_string().ok()).map_or(Cow::Borrowed(cwd), Cow::Owned)
}

/// What a self-test of the sandbox came to, where one is due before the call.
fn test_due(
    session: &Session<'_>,
    call: &ToolCall,
    caller: Caller<'_>,
    whole: Option<&Whole<'_>>,
) -> Option<tested::Outcome> {
    let layers = session.policy().ok()?.policies(caller);
    match (&session.within, whole) {
        (Some(_), _) => None,
        (None, Some(whole)) => tested::due_whole(session, call, &layers, whole),
        (None, None) => tested::due(session, call, &layers),
    }
}

/// Answers a permission prompt: a call the policy denies is refused there too, everything else is left to the human.
pub fn permission(session: &mut Session<'_>, input: &Event, call: &ToolCall) -> Result<Answer, SessionError> {
    let caller = Caller::of(input.agent.as_ref());
    let DecidedCall { decision: judged, policy, mode, .. } = decide(session, call, caller, None, None);
    let Enforced { decision, observed } = enforce(mode, judged.clone());
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
        Verdict::Deny => {
            Reply::DenyPermission { reason: explain(session, rules_of(policy.as_ref()), &decision) }.into()
        }
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
    answered::came(session, &used.id)?;
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
    /// Who makes it, where a policy asks for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityRef>,
    /// [`ToolCall::digest`].
    input: Digest,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    leads: Option<Digest>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redefined: bool,
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
    /// The policies beside the root that were asked too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<JudgedLayer>,
    /// Goes before the names of the agent's attestations.
    #[serde(rename = "attestationPrefix", skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
}

impl Judged {
    /// What each policy's survey found.
    fn facts(&self) -> impl Iterator<Item = &Facts> {
        self.facts.iter().chain(self.layers.iter().map(|layer| &layer.facts))
    }

    /// What the call takes in and lets go, by all policies' labels.
    fn flow(&self) -> Flow {
        Flow::all(self.facts().map(Facts::flow))
    }
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
    /// The policy it was judged by; `None` where that could not be had.
    policy: Option<Governing>,
    /// What becomes of the decision. A policy that cannot be had observes nothing: the refusal stands.
    mode: Enforce,
    /// What it is to run in.
    sandbox: Option<Prepared>,
    /// Rates that it counts for.
    rates: Vec<Counted>,
    /// Layers that count it for agents of one type.
    agents: BTreeSet<String>,
    /// Layers that count it as a turn of the agents that it gives a task to.
    starts: BTreeSet<String>,
}

fn rules_of(policy: Option<&Governing>) -> Option<&dyn Rules> {
    policy.map(|policy| policy as &dyn Rules)
}

/// Decides somebody's call. A call that is about to run, and so has an id, is attested where a policy wants that.
fn decide(
    session: &Session<'_>,
    call: &ToolCall,
    caller: Caller<'_>,
    id: Option<&str>,
    whole: Option<&Whole<'_>>,
) -> DecidedCall {
    let event = if whole.is_some() { RUN } else { CALL };
    let mut judged = Judged { event, attestation: None, facts: None, layers: Vec::new(), prefix: None };
    let in_force = match session.policy() {
        Ok(in_force) => in_force,
        Err(blocked) => {
            let decision = Decision::from_reasons(vec![blocked_reason(session, blocked)]);
            let (policy, mode) = (None, Enforce::Decide);
            let (agents, starts) = (BTreeSet::new(), BTreeSet::new());
            let (proofs, rates) = (Vec::new(), Vec::new());
            return DecidedCall { decision, judged, proofs, policy, mode, sandbox: None, rates, agents, starts };
        }
    };
    let speaking = in_force.speaking(caller);
    let mut surveyed = Surveyed::of(session, call, &speaking, &in_force.labelling(caller));
    let known_as = call.known_as();
    let names = [call.tool.as_str(), known_as.as_deref().unwrap_or(&call.tool)];
    let counting = speaking.iter().filter(|_| whole.is_none());
    let rates = rates::of(counting.map(|speaks| (speaks.name.as_deref(), speaks.policy)), names);
    surveyed.rates(&rates, session);
    if let Some(id) = id {
        judged.attestation = surveyed.attest(session, id, call);
    }
    let policies: Vec<&Policy> = speaking.iter().map(|speaks| speaks.policy).collect();
    let (mut sandbox, mut held) = (None, Held::default());
    let prepared = match (&session.within, whole) {
        // A sandbox inside a sandbox cannot be: the run's holds it.
        (Some(within), _) => {
            held = within.held;
            None
        }
        (None, Some(whole)) => Some(order::prepare_whole(session, call, &policies, whole)),
        (None, None) => order::prepare(session, call, &policies, false),
    };
    match prepared {
        None => {}
        Some(Ok(prepared)) => (held, sandbox) = (prepared.held, Some(prepared)),
        Some(Err(why)) => surveyed.unconfined(why),
    }
    surveyed.settle(held, session, whole.is_some());
    let begun = starts::limited(&in_force.accepted, surveyed.starts().filter(|_| whole.is_none()));
    let own = begun.iter().map(|(own, policy)| (own.layer, *policy, own.own(&session.state.agents, session.moment())));
    let decision = and_turns(surveyed.judge(session), own);
    let lost = starts::lost(&in_force.accepted, caller, surveyed.starts().filter(|_| whole.is_none()));
    let decision = and_lost(decision, lost, surveyed.starts());
    let starts = begun.iter().map(|(own, _)| own.layer.to_owned()).collect();
    let decision = and_pending(decision, session.state.pending);
    let decision = and_custody(decision, wanted_custody(policies.iter().copied()), session.state.custody());
    let mode = in_force.enforce(caller);
    let agents = in_force::counted(&speaking);
    let (facts, layers, proofs) = surveyed.recorded();
    (judged.facts, judged.layers) = (facts, layers);
    judged.prefix = in_force.accepted.prefix(caller).map(str::to_owned);
    let policy = Some(in_force.accepted.clone());
    DecidedCall { decision, judged, proofs, policy, mode, sandbox, rates, agents, starts }
}

/// What an allowed call runs in. Where a human says yes, it may use what the policies leave to them.
fn sandbox_of(
    session: &Session<'_>,
    call: &ToolCall,
    caller: Caller<'_>,
    (decision, granted): (&Decision, bool),
    prepared: Option<Prepared>,
) -> Option<Prepared> {
    let prepared = prepared?;
    if !granted && decision.verdict != Verdict::Ask {
        return Some(prepared);
    }
    let layers = session.policy().ok()?.policies(caller);
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

fn count(session: &mut Session<'_>, decision: &Decision, agents: &BTreeSet<String>) {
    match decision.verdict {
        Verdict::Allow => session.state.calls += 1,
        Verdict::Ask => session.state.asked += 1,
        Verdict::Deny => session.state.denied += 1,
    }
    let limited = is_limited(decision);
    if limited {
        session.state.refuse_call();
    }
    let (layers, now) = (agents.iter().map(String::as_str), session.moment());
    agents::count(&mut session.state.agents, layers, decision.verdict, limited, now);
}
