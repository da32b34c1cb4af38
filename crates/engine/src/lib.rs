//! The room that composes the verbs: find the policy, open the session, decide, record, seal, verify.
//!
//! Every client, command and (later) service goes through here, so there is one place that decides, one that records and one
//! that checks. It reads no environment variables and prints nothing. Invariant: an allowing answer has its row on disk
//! before it leaves. Format pages: `spec/ledger.md`, `spec/verify.md`.

pub mod applies;
pub mod approval;
pub mod archive;
pub mod attested;
mod authored;
mod call;
pub mod claims;
mod disk;
pub mod governing;
mod home;
pub mod hook;
pub mod human;
pub mod install;
mod lifecycle;
pub mod matter;
pub mod notary;
pub mod observed;
mod own;
mod proof;
pub mod protect;
mod rows;
mod seal;
mod session;
pub mod shown;
mod sight;
pub mod standing;
pub mod starter;
pub mod state;
mod sweep;
mod trust;
mod verdicts;
pub mod verify;
pub mod watch;

use std::path::Path;

use writ_clients::Client;
use writ_consequence::Report;
use writ_core::json::{Object, Value};
use writ_core::{Decision, Timestamp, ToolCall, ToolKind};
use writ_policy::{Facts, Loss, Policy, Setting};

pub use call::cite;
pub use disk::Disk;
pub use governing::Governing;
pub use home::{Home, NoStateDir};
pub use session::namespace;
pub use sight::Sight;
pub use trust::{Trust, TrustError};

use matter::Subject;
use proof::Proof;

/// Decides one call of a client's agent under a policy, now, on this machine's file system, without a session and without a
/// record.
pub fn decide(governing: &Governing, call: &ToolCall, client: &dyn Client, home: &Home) -> Decision {
    let setting = protect::setting(home, &governing.path, Timestamp::now());
    let looked =
        look(&governing.policy, call, &Surroundings { setting: &setting, home, client: Some(client), session: None });
    writ_policy::judge(&governing.policy, &setting, &looked.facts)
}

/// Where a call is looked at.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    setting: &'a Setting,
    home: &'a Home,
    /// The agent's client, where it is known.
    client: Option<&'a dyn Client>,
    /// The session's folder, where there is one: what its agent wrote is looked into when it is run.
    session: Option<&'a Path>,
}

/// What a look at the world yields for one call.
struct Looked {
    facts: Facts,
    /// What would be lost, where the policy asks for that.
    report: Option<Report>,
    /// The attestations that its facts rest on.
    proofs: Vec<Proof>,
}

/// What a call would touch on this machine; where the policy asks for it, what would be lost and which plans are applied.
fn look(policy: &Policy, call: &ToolCall, surroundings: &Surroundings<'_>) -> Looked {
    let Surroundings { setting, home, client, session } = *surroundings;
    // What Writ's own tools are asked about is not done.
    let ours = client.is_some_and(|client| own::is_ours(call, client, home));
    let question = ours.then(|| ToolCall { input: Value::Object(Object::new()), ..call.clone() });
    let call = question.as_ref().unwrap_or(call);
    let mut facts = writ_policy::survey(policy, call, setting, &Disk::guarding(setting).remembering(session));
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
        let (subject, sight) = (Subject::of(call), Sight::of_session(session));
        report = subject.and_then(|subject| subject.evaluate(setting.home.as_deref(), &sight).ok());
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
