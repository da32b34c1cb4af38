//! Agentfiles: one request decided with Cedar, and a long file linted.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use writ_agentfile::cedar::Request;
use writ_agentfile::{Linted, Options, lint};
use writ_core::json;

use crate::measure::{Bar, Figure, per_call};

/// Policies of the file that requests are held against.
const POLICIES: usize = 50;
/// Lines of the file that is linted.
const LINES: usize = 500;

/// Measures a decision against reading its request, and a lint against its text's digest.
pub fn run() -> Result<Vec<Figure>> {
    let linted = checked(&with_policies())?;
    let text = r#"{"action":"tool.invoke","resource":"tool7","context":{"path":"/work/src/a.rs","mode":"read","caller":"","host":""}}"#;
    let request = Request::parse(text.as_bytes())?;
    let decided = linted.rules.decide(&linted.agent, &request);
    ensure!(decided.is_allowed() && decided.rules.len() == 1, "not allowed by one rule: {decided:?}");
    let decide = per_call(|| linted.rules.decide(black_box(&linted.agent), black_box(&request)).is_allowed());
    let read = per_call(|| json::parse(black_box(text.as_bytes())).is_ok());
    let name = format!("agentfile: decide, {POLICIES} policies");
    let mut figures =
        vec![Figure::time(name, decide, ("its JSON alone", read), Bar::AtMost(Duration::from_micros(60)))];
    let text = long();
    checked(&text)?;
    let whole = per_call(|| lint(black_box(text.as_bytes()), "Agentfile", &Options::default()).found.len());
    let format = per_call(|| writ_agentfile::format(black_box(&text)).is_some());
    let bar = Bar::AtMost(Duration::from_millis(10));
    figures.push(Figure::time(format!("agentfile: lint, {LINES} lines"), whole, ("formatting them", format), bar));
    Ok(figures)
}

fn checked(text: &str) -> Result<Linted> {
    let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
    ensure!(!linted.has_errors(), "the file has errors: {:?}", linted.found);
    Ok(linted)
}

/// An agent with as many tools, each permitted by a policy of its own where its path is below a folder.
fn with_policies() -> String {
    let mut text = "AGENT bench\nAUDIT basic\nMOUNT /work rw\n".to_owned();
    for number in 0..POLICIES {
        let _infallible = writeln!(text, "TOOL utcp:tool{number}");
    }
    text.push_str("POLICY\n");
    for number in 0..POLICIES {
        let _infallible = writeln!(
            text,
            "permit(principal == AgentRC::Agent::\"bench\", action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"tool{number}\") when {{ context.path like \"/work/src/*\" }};"
        );
    }
    text + "END\n"
}

/// A file of 500 lines: tools, hosts, mounts, limits, shorthand and Cedar.
fn long() -> String {
    let mut text = "AGENT bench\nAUDIT basic\nCMD true\n".to_owned();
    for number in 0..80 {
        let _infallible = writeln!(
            text,
            "TOOL utcp:tool{number}\nALLOW invoke tool{number}\nURL https://host{number}.example\nMOUNT /data/{number} ro\nRATELIMIT tool{number} 5/min"
        );
    }
    text.push_str("POLICY\n");
    let left = LINES - 1 - text.lines().count();
    for number in 0..left {
        let _infallible = writeln!(
            text,
            "forbid(principal, action == AgentRC::Action::\"network.egress\", resource == AgentRC::Host::\"bad{number}.example\");"
        );
    }
    text + "END\n"
}
