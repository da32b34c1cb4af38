//! The workflow runs to its end and is verified; with a call that its policy denies it is not.

use std::process::Command;

#[test]
fn the_workflow_runs_and_is_verified() {
    let output = Command::new(env!("CARGO_BIN_EXE_writ-example-workflow")).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{said}");
    for told in ["✓ turns", "✓ evaluators", "all 1 rules pass", "✓ required", "\nverified, except: "] {
        assert!(said.contains(told), "{told}: {said}");
    }
}
