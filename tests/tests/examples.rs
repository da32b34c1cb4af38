//! The examples run to their end, and come out as they say.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::path::Path;
use std::process::Command;

use workplace::Workplace;

#[test]
fn feature_search_is_allowed_judged_and_proved() {
    let place = Workplace::new("examples");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/feature-search/run.py");
    let writ = place.command(&[]);
    let output = Command::new("/usr/bin/python3").arg(script).env("WRIT", writ.get_program()).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && said.contains("status: verified") && said.contains("breached"), "{said}");
}
