//! Benches: what Writ costs, each figure beside a baseline measured in the same run.
//!
//! Owns the inputs and the printing. Refuses to measure an answer that is wrong. Invariant: every figure stands beside a
//! baseline of the same machine at the same time, so that figures of two machines can be compared by their ratios. Run them
//! with `cargo xtask bench`; nothing here is asserted in a test.

mod agentfile;
mod claims;
mod clients;
mod confined;
mod consequence;
mod decide;
mod egress;
mod hook;
mod ledger;
mod limits;
mod mcp;
mod measure;
mod notary;
mod package;
mod policy;
mod serve;
mod shell;
mod turns;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::measure::Figure;

/// A group of figures and what measures it.
type Group = (&'static str, fn() -> Result<Vec<Figure>>);

const GROUPS: [Group; 18] = [
    ("hook", hook::run),
    ("confined", confined::run),
    ("agentfile", agentfile::run),
    ("claims", claims::run),
    ("clients", clients::run),
    ("consequence", consequence::run),
    ("decide", decide::run),
    ("egress", egress::run),
    ("package", package::run),
    ("policy", policy::run),
    ("shell", shell::run),
    ("ledger", ledger::run),
    ("limits", limits::run),
    ("mcp", mcp::run),
    ("notary", notary::run),
    ("serve", serve::run),
    ("tree", turns::tree),
    ("turns", turns::run),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures the groups whose names hold one of `words`, or all. A group that fails does not keep the others from running.
fn run(words: &[String]) -> Result<()> {
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut failed = Vec::new();
    say(&measure::header());
    for (name, measure) in GROUPS.into_iter().filter(|(name, _)| chosen(name)) {
        match measure() {
            Ok(figures) => figures.iter().for_each(|figure| say(&figure.to_string())),
            Err(error) => {
                complain(&format!("{name}: {error:#}"));
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("not measured: {}", failed.join(", ")) }
}

#[expect(clippy::print_stdout, reason = "figures go to the terminal")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "errors go to the terminal")]
fn complain(text: &str) {
    eprintln!("{text}");
}
