//! What a call would touch on this machine, and what it would lose.

use std::path::Path;

use writ_clients::Client;
use writ_consequence::Report;
use writ_core::json::{Object, Value};
use writ_core::{ToolCall, ToolKind};
use writ_policy::{Facts, Loss, Policy, Setting};

use super::applies;
use super::file_system::FileSystem;
use super::own_server;
use super::probe::DiskProbe;
use crate::Home;
use crate::attest::proofs::Proof;
use crate::attest::subject::Subject;

/// Where a call is looked at.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    pub setting: &'a Setting,
    pub home: &'a Home,
    /// The agent's client, where it is known.
    pub client: Option<&'a dyn Client>,
    /// The session's folder, where there is one: what its agent wrote is looked into when it is run.
    pub session: Option<&'a Path>,
    /// The only work tree that git is asked about, where others may have been made to harm.
    pub repository: Option<&'a Path>,
}

/// What a look at the world yields for one call.
pub struct Looked {
    pub facts: Facts,
    /// What would be lost, where the policy asks for that.
    pub report: Option<Report>,
    /// The attestations that its facts rest on.
    pub proofs: Vec<Proof>,
}

/// What a call would touch on this machine; where the policy asks for it, what would be lost and which plans are applied.
pub fn look(policy: &Policy, call: &ToolCall, surroundings: &CallContext<'_>) -> Looked {
    let CallContext { setting, home, client, session, repository } = *surroundings;
    // What Writ's own tools are asked about is not done.
    let ours = client.is_some_and(|client| own_server::is_ours(call, client, home));
    let question = ours.then(|| ToolCall { input: Value::Object(Object::new()), ..call.clone() });
    let call = question.as_ref().unwrap_or(call);
    let mut facts = writ_policy::survey(policy, call, setting, &FileSystem::guarding(setting).remembering(session));
    if home.zsh
        && let ToolKind::Shell { command: line } = &call.kind
    {
        let env = writ_shell::Env { home: setting.home.clone(), cwd: Some(call.cwd.clone()), ..Default::default() };
        if let Some((what, span)) = writ_shell::differs_in_zsh(line, &env) {
            facts = facts.with_other_shell(what, span);
        }
    }
    let wanted = policy.consequences();
    let (mut report, mut proofs) = (None, Vec::new());
    if wanted.any() {
        let (subject, probe) = (Subject::of(call), DiskProbe::of_session(session).within(repository));
        report = subject.and_then(|subject| subject.evaluate(setting.home.as_deref(), &probe).ok());
        facts = match report.as_ref().and_then(loss) {
            Some(loss) => facts.with_loss(loss),
            None => facts,
        };
    }
    if wanted.attested_apply.is_some()
        && let Some(Subject::Shell { line, cwd }) = Subject::of(call)
    {
        let env =
            writ_shell::Env { home: setting.home.clone(), cwd: cwd.map(str::to_owned), ..writ_shell::Env::default() };
        let (applies, found) = applies::find(line, &env, home.state.as_deref(), setting.now);
        (facts, proofs) = (facts.with_applies(applies), found);
    }
    Looked { facts, report, proofs }
}

/// The worst of what would be lost.
fn loss(report: &Report) -> Option<Loss> {
    let worst = report.worst()?;
    let rule = worst.intent.metadata.rule.as_deref().unwrap_or(&worst.intent.action);
    Some(Loss { tier: worst.recoverability.tier.number(), rule: rule.to_owned() })
}
