//! The room that composes the verbs: find the policy, open the session, decide, record, seal, verify.
//!
//! Every client, command and (later) service goes through here, so there is one place that decides, one that records and one
//! that checks. It reads no environment variables and prints nothing. Invariant: an allowing answer has its row on disk
//! before it leaves. Format pages: `spec/ledger.md`, `spec/verify.md`.

pub mod archive;
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
pub mod protect;
mod seal;
mod session;
mod sight;
pub mod starter;
pub mod state;
mod sweep;
mod trust;
pub mod verify;

use writ_consequence::{Report, mcp, shell};
use writ_core::json::Value;
use writ_core::{Decision, Timestamp, ToolCall};
use writ_policy::{Facts, Loss, Policy, Setting};

pub use disk::Disk;
pub use governing::Governing;
pub use home::{Home, NoStateDir};
pub use sight::Sight;
pub use trust::{Trust, TrustError};

/// Decides one call under a policy, now, on this machine's file system, without a session and without a record.
pub fn decide(governing: &Governing, call: &ToolCall, home: &Home) -> Decision {
    let setting = protect::setting(home, &governing.path, Timestamp::now());
    let facts = facts(&governing.policy, call, &setting);
    writ_policy::judge(&governing.policy, &setting, &facts)
}

/// What a call would touch on this machine, and, where the policy asks for that, what would be lost.
fn facts(policy: &Policy, call: &ToolCall, setting: &Setting) -> Facts {
    let facts = writ_policy::survey(policy, call, setting, &Disk::guarding(setting));
    if !policy.consequences().any() {
        return facts;
    }
    match loss(call, setting) {
        Some(loss) => facts.with_loss(loss),
        None => facts,
    }
}

/// The worst of what a shell line or a call to a server would lose.
fn loss(call: &ToolCall, setting: &Setting) -> Option<Loss> {
    let env = writ_shell::Env { home: setting.home.clone(), cwd: Some(call.cwd.clone()) };
    let report: Report = if call.tool == "Bash" {
        shell::evaluate(call.text("command")?, &env, &Sight::default())
    } else if call.tool.starts_with("mcp__") {
        let call = mcp::Call { tool: &call.tool, server: None, arguments: &call.input, annotations: None };
        mcp::evaluate(&call, &env, &Sight::default())
    } else {
        return None;
    };
    let worst = report.worst()?;
    let rule = worst.intent.metadata.get("rule").and_then(Value::as_str).unwrap_or(&worst.intent.action);
    Some(Loss { tier: worst.recoverability.tier.number(), rule: rule.to_owned() })
}
