//! Policies: documents with a given number of rules, and how long reading one takes.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use writ_core::json;
use writ_policy::Policy;

use crate::measure::{Bar, Figure, per_call};

/// Measures parsing against parsing the JSON alone.
pub fn run() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (rules, bar) in [(20, Bar::None), (100, Bar::AtMost(Duration::from_micros(100)))] {
        let text = document(rules);
        let parsed = parse(&text)?;
        ensure!(parsed.warnings().is_empty(), "the policy has warnings: {:?}", parsed.warnings());
        let policy = per_call(|| Policy::parse(black_box(text.as_bytes()), "/work").is_ok());
        let json = per_call(|| json::parse(black_box(text.as_bytes())).is_ok());
        figures.push(Figure::time(format!("policy: parse, {rules} rules"), policy, ("its JSON alone", json), bar));
    }
    Ok(figures)
}

/// Parses a document made by [`document`].
pub fn parse(text: &str) -> Result<Policy> {
    Policy::parse(text.as_bytes(), "/work").map_err(|error| anyhow::anyhow!("the policy does not parse: {error}"))
}

/// A policy with `rules` rules, a multiple of ten: 20 % for tools, 20 % for approval, 30 % allow files, 20 % deny them, 10 %
/// hosts. It allows files below `src/dir0`, `src/dir1`, …
pub fn document(rules: usize) -> String {
    let list = |count: usize, rule: fn(usize) -> String| {
        (0..count).map(|number| format!("\"{}\"", rule(number))).collect::<Vec<_>>().join(",")
    };
    let tenth = rules / 10;
    format!(
        r#"{{"version":"1.0","name":"bench","expires":"2099-01-01T00:00:00Z",
"tools":{{"deny":[{}],"requireApproval":[{}]}},
"files":{{"allow":[{}],"deny":[{}]}},
"domains":{{"allow":[{}]}}}}"#,
        list(tenth * 2, |number| format!("Bash:danger{number} *")),
        list(tenth * 2, |number| format!("Bash:deploy{number} --to *")),
        list(tenth * 3, |number| format!("src/dir{number}/**")),
        list(tenth * 2, |number| format!("**/*.secret{number}")),
        list(tenth, |number| format!("*.host{number}.example")),
    )
}
