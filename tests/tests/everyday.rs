//! Everyday work in eight sample repositories, under four policies: nothing is asked, and all comes out as without Writ.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod samples;

use samples::{Outcome, Sample, is_root, repositories, work};
use serde_json::{Value, json};

fn policies() -> [(&'static str, Value); 4] {
    let policy = |name: &str, more: Value| {
        let mut policy = json!({"version": "1.0", "name": name, "enforce": "calls"});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy
    };
    [
        ("calls", policy("calls", json!({}))),
        ("deny", policy("deny", json!({"files": {"deny": ["**/.env", "secrets/**"]}}))),
        ("allow", policy("allow", json!({"files": {"allow": ["**"], "deny": ["**/.env", "secrets/**"]}}))),
        ("domains", policy("domains", json!({"domains": {"allow": ["registry.example"]}}))),
    ]
}

/// As root where the tests are root's, and as an ordinary user.
fn is_as_without(sample: &Sample) {
    let users: &[bool] = if is_root() { &[false, true] } else { &[false] };
    let mut wrong = Vec::new();
    for user in users {
        let plain = work(sample, None, *user);
        assert!(!plain.said.is_empty());
        for (name, policy) in policies() {
            let held = work(sample, Some((name, &policy)), *user);
            let who = if *user { " (ordinary user)" } else { "" };
            for (said, without) in held.said.iter().zip(&plain.said).filter(|(said, without)| said != without) {
                wrong.push(format!("{name}{who}: {said}\n  without: {without}"));
            }
            let names = |one: &Outcome, other: &Outcome| {
                let differs = |(path, kind): &(&String, &String)| other.names.get(*path) != Some(*kind);
                one.names.iter().filter(differs).map(|(path, kind)| format!("{path} {kind}")).collect::<Vec<_>>()
            };
            let (more, less) = (names(&held, &plain), names(&plain, &held));
            if !more.is_empty() || !less.is_empty() {
                wrong.push(format!("{name}{who}: there is {more:?} and not {less:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn packages_of_npm() {
    is_as_without(&repositories::NPM);
}

#[test]
fn a_workspace_of_cargo() {
    is_as_without(&repositories::CARGO);
}

#[test]
fn tests_of_python() {
    is_as_without(&repositories::PYTHON);
}

#[test]
fn a_build_by_make() {
    is_as_without(&repositories::MAKE);
}

#[test]
fn commits_and_pushes() {
    is_as_without(&repositories::GIT);
}

#[test]
fn many_packages() {
    is_as_without(&repositories::MANY);
}

#[test]
fn a_server_that_goes_on() {
    is_as_without(&repositories::SERVER);
}

#[test]
fn classes_of_java() {
    is_as_without(&repositories::JAVA);
}
