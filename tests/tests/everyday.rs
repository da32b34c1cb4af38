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

/// Under each policy as without Writ.
fn is_as_without(sample: &Sample, user: bool) {
    let plain = work(sample, None, user);
    let mut wrong = Vec::new();
    for (name, policy) in policies() {
        let held = work(sample, Some((name, &policy)), user);
        assert_eq!(held.said.len(), sample.lines.len());
        for (said, without) in held.said.iter().zip(&plain.said).filter(|(said, without)| said != without) {
            wrong.push(format!("{name}: {said}\n  without: {without}"));
        }
        let names = |one: &Outcome, other: &Outcome| {
            let differs = |(path, kind): &(&String, &String)| other.names.get(*path) != Some(*kind);
            one.names.iter().filter(differs).map(|(path, kind)| format!("{path} {kind}")).collect::<Vec<_>>()
        };
        let (more, less) = (names(&held, &plain), names(&plain, &held));
        if !more.is_empty() || !less.is_empty() {
            wrong.push(format!("{name}: there is {more:?} and not {less:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

macro_rules! samples {
    ($($name:ident: $sample:ident),* $(,)?) => {
        /// As who runs the tests.
        mod own {
            $(#[test]
            fn $name() {
                super::is_as_without(&super::repositories::$sample, false);
            })*
        }

        /// As an ordinary user, where the tests are root's.
        mod ordinary {
            $(#[test]
            fn $name() {
                super::is_as_without(&super::repositories::$sample, super::is_root());
            })*
        }
    };
}

samples! {
    packages_of_npm: NPM,
    a_workspace_of_cargo: CARGO,
    tests_of_python: PYTHON,
    a_build_by_make: MAKE,
    commits_and_pushes: GIT,
    many_packages: MANY,
    a_server_that_goes_on: SERVER,
    classes_of_java: JAVA,
}
