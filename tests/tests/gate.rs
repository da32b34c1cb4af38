//! The gate for CI, by hand and as the action runs it.

#[cfg(test)]
#[expect(dead_code, reason = "no session is recorded here")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use workplace::Workplace;

/// A workplace with an attested command, and the registry that speaks for it.
fn attested(name: &str, line: &str, more: &[&str]) -> Workplace {
    let place = Workplace::new(name);
    let args = ["evaluate", "shell", line, "--attest", "--attest-to", "a.json", "--fail-on", "block"];
    let output = place.writ(&[&args, more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    let registry = place.writ(&["keys", "registry"]).stdout;
    fs::write(file(&place, "registry.json"), registry).unwrap();
    place
}

fn file(place: &Workplace, name: &str) -> PathBuf {
    place.folder.join("repository").join(name)
}

fn gate(place: &Workplace, words: &[&str]) -> i32 {
    place.writ(&[&["gate", "--require-attestation", "a.json"], words].concat()).status.code().unwrap()
}

#[test]
fn exactly_this_command_at_this_risk_and_age() {
    let place = attested("gate", "git push --force", &[]);
    let line = ["--command", "git push --force"];
    assert_eq!(gate(&place, &[&line[..], &["--max-risk", "warn"]].concat()), 0);
    for (words, code) in [
        (vec!["--command", "git push --force"], 3),
        (vec!["--command", "git push --force ", "--max-risk", "block"], 3),
        (vec!["--plan", "a.json", "--max-risk", "block"], 3),
        (vec!["--command", "git push --force", "--plan-json", "a.json", "--max-risk", "block"], 3),
        (vec!["--command", "git push --force", "--max-risk", "warn", "--registry", "registry.json"], 0),
        (vec!["--max-risk", "warn"], 2),
        (vec!["--command", "git push --force", "--max-age", "soon"], 2),
    ] {
        assert_eq!(gate(&place, &words), code, "{words:?}");
    }
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(gate(&place, &[&line[..], &["--max-risk", "warn", "--max-age", "1s"]].concat()), 3);
}

#[test]
fn once_is_once() {
    let place = attested("gate-once", "ls", &[]);
    assert_eq!(gate(&place, &["--command", "ls", "--once"]), 0);
    assert_eq!(gate(&place, &["--command", "ls", "--once"]), 3);
    assert_eq!(gate(&place, &["--command", "ls"]), 0);
}

#[test]
fn strangers_forgeries_and_the_dead_do_not_pass() {
    let (place, stranger) = (attested("gate-own", "ls", &[]), attested("gate-stranger", "ls", &[]));
    let genuine = fs::read_to_string(file(&place, "a.json")).unwrap();
    fs::copy(file(&stranger, "a.json"), file(&place, "a.json")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 3, "another instance's key");
    fs::write(file(&place, "a.json"), genuine.replace("\"allow\"", "\"Allow\"")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls", "--max-risk", "block"]), 3, "an edited verdict");
    fs::write(file(&place, "a.json"), "{}").unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 3, "no attestation at all");
    fs::remove_file(file(&place, "a.json")).unwrap();
    assert_eq!(gate(&place, &["--command", "ls"]), 1);
    let place = attested("gate-ended", "ls", &["--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(gate(&place, &["--command", "ls"]), 3);
    assert_eq!(gate(&place, &["--command", "ls", "--trust", "https://127.0.0.1:9"]), 3, "not even with others trusted");
}

/// The action's script on these inputs.
fn action(place: &Workplace, inputs: &[(&str, &str)]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../action/gate.sh");
    let writ = place.command(&[]);
    let mut command = Command::new("bash");
    command.arg(script).current_dir(place.folder.join("repository")).env_clear().env("PATH", "/usr/bin:/bin");
    command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("GATE_WRIT", writ.get_program()).env("GITHUB_OUTPUT", place.folder.join("output"));
    command.envs(inputs.iter().copied()).output().unwrap()
}

#[test]
fn the_action_fails_closed() {
    let place = attested("action", "make deploy; echo \"$(id)\" 'x'", &[]);
    let line = ("GATE_COMMAND", "make deploy; echo \"$(id)\" 'x'");
    let named = ("GATE_ATTESTATION", "a.json");
    let passed = action(&place, &[named, line, ("GATE_MAX_RISK", "block")]);
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
    let output = fs::read_to_string(place.folder.join("output")).unwrap();
    assert!(
        output.starts_with("result={") && output.contains("\"passes\": true") && output.lines().count() == 1,
        "{output}"
    );
    for inputs in [
        vec![line],
        vec![named],
        vec![named, ("GATE_COMMAND", "make deploy")],
        vec![named, line, ("GATE_MAX_RISK", "none")],
        vec![named, line, ("GATE_CROSS_CHECK", "maybe")],
        vec![named, line, ("GATE_REGISTRY", "missing.json")],
        vec![named, line, ("GATE_WRIT", "no-such-program")],
        vec![named, ("GATE_PLAN", "a.json")],
    ] {
        assert!(!action(&place, &inputs).status.success(), "{inputs:?}");
    }
}
