//! The examples run to their end, and come out as they say.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::path::Path;
use std::process::Command;

use workplace::Workplace;

/// What an example says, which has to run to its end.
fn run(name: &str) -> String {
    let place = Workplace::new(&format!("examples-{name}"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/{name}/run.py"));
    let writ = place.command(&[]);
    let output = Command::new("/usr/bin/python3").arg(script).env("WRIT", writ.get_program()).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn feature_search_is_allowed_judged_and_proved() {
    let said = run("feature-search");
    assert!(said.contains("status: verified") && said.contains("breached"), "{said}");
}

#[test]
fn controls_are_assessed_judged_and_proved() {
    let said = run("oscal");
    assert!(said.contains("status: verified") && said.contains("the rule names it: True"), "{said}");
}
