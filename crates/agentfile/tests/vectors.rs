//! The cases of `conformance/core.jsonl`: each is accepted, accepted with a warning, or refused, for the reason it names.

use std::collections::BTreeSet;

use serde::Deserialize;
use writ_agentfile::{Options, lint};
use writ_core::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    profile: String,
    section: String,
    input: Input,
    expected: Expected,
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    agentfile: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// `ok`, `warn` or `error`.
    result: String,
    /// The codes that have to be among the findings.
    #[serde(default)]
    codes: Vec<String>,
    /// The line of the first of them.
    #[serde(default)]
    line: Option<usize>,
}

#[test]
fn every_case_is_judged_as_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/core.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        let case: Case = json::from_slice(line.as_bytes()).unwrap();
        let linted = lint(case.input.agentfile.as_bytes(), "Agentfile", &Options::default());
        let found = match linted.counts() {
            (0, 0) => "ok",
            (0, _) => "warn",
            _ => "error",
        };
        assert!(case.profile == "core" && case.section.starts_with('§'), "{}", case.id);
        let expected = &case.expected;
        let codes: Vec<&str> = linted.found.iter().map(|found| found.code).collect();
        let named = expected.codes.iter().all(|code| codes.contains(&code.as_str()));
        let first = linted.found.iter().find(|found| expected.codes.iter().any(|code| code == found.code));
        let placed = expected.line.is_none_or(|line| first.is_some_and(|found| found.place.line == line));
        if found != expected.result || !named || !placed {
            wrong.push(format!(
                "{}: {found} {:?}, expected {} {:?} line {:?}",
                case.id, linted.found, expected.result, expected.codes, expected.line
            ));
        }
        assert!(kinds.insert(case.id.clone()), "{} twice", case.id);
    }
    assert!(kinds.len() > 100, "{}", kinds.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), kinds.len(), wrong.join("\n"));
}
