//! A workflow of two steps under a policy, verified at its end: the specification's chapter on integration, with Writ as a library.
//!
//! `implement` is an agent of this program's own: each of its calls is decided by [`writ_engine::hook`] before it is made. `check` is a
//! command that [`writ_engine::steps`] runs and attests. Then [`writ_engine::verify`] holds the session to its policy. Nothing here starts
//! `writ`: this program is its own client. Page: `examples/README.md`, "As a library".

mod workflow;

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use writ_engine::verify::Status;
use writ_evaluators::rego::child;

use workflow::Workflow;

/// Two steps have to be attested, a rule judges the turns, and the agent may write in `src` alone.
const POLICY: &str = r#"{
  "version": "1.0",
  "name": "search-feature",
  "files": {"allow": ["src/**", "tests/**"], "deny": ["**/.env"]},
  "tools": {"requireApproval": ["Bash:git push"]},
  "limits": {"maxToolCalls": {"value": 20, "enforcement": "fail-fast"}},
  "requiredAttestations": ["implement", "check"],
  "attestationsFrom": ["turn-*", "implement", "check"],
  "evaluators": {"rego": [{"name": "only allowed tools",
    "policy": "package search\nimport rego.v1\ndeny contains msg if {\n  some t in input.attestationsFrom[\"turn-*\"]\n  some tool in t.predicate.tools\n  not tool.allowed\n  msg := sprintf(\"turn %d used %s, which was denied\", [t.predicate.turn, tool.name])\n}"}]}
}"#;

fn main() -> ExitCode {
    // A policy's Rego rules run in a process of their own, which is this program again.
    if std::env::args().nth(1).as_deref() == Some(child::COMMAND) {
        return match child::serve(io::stdin(), io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_no_job) => ExitCode::FAILURE,
        };
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let room = tempfile::tempdir()?;
    let repository = room.path().join("repository");
    fs::create_dir_all(repository.join("src"))?;
    fs::create_dir_all(repository.join("tests"))?;
    fs::write(repository.join("src/search.sh"), "echo nothing found\n")?;
    fs::write(repository.join("tests/search.sh"), "test \"$(sh src/search.sh needle)\" = \"found needle\"\n")?;
    fs::write(repository.join("policy.aflock"), POLICY)?;
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status()?;
    ensure!(git.success(), "git init ended with {git}");

    let workflow = Workflow::new("search-feature", &room.path().join("state"), &repository)?;
    say(&format!("policy {}", workflow.policy()?));
    let missing = workflow.verify()?;
    ensure!(missing.status != Status::Verified, "what is required is not there yet: {:?}", missing.status);

    workflow.run("implement", implement)?;
    workflow.step("check", &["sh", "tests/search.sh"])?;
    workflow.finish()?;

    let report = workflow.verify()?;
    for phase in &report.phases {
        say(&format!("{} {:<12} {}", phase.outcome.mark(), phase.name, phase.summary));
    }
    say(&report.verdict());
    // These agents leave no transcript that Writ reads: the last line says what therefore is not spoken for.
    if report.holds() { Ok(()) } else { bail!("the workflow is not verified") }
}

/// The agent: a model would choose these calls. Each is asked about before it is made.
fn implement(agent: &mut workflow::Agent<'_>) -> Result<()> {
    agent.prompted("Implement the search feature")?;
    let search = agent.repository().join("src/search.sh");
    agent.write(&search, "echo \"found $1\"\n")?.context("the policy lets it write in `src`")?;
    let code = agent.shell("sh tests/search.sh")?.context("and run what is there")?;
    ensure!(code == 0, "its own test ended with {code}");
    agent.stops()
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn say(text: &str) {
    println!("{text}");
}

/// A folder that has to be absolute: what rows name is found again from anywhere.
fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    path.canonicalize().with_context(|| path.display().to_string())
}
