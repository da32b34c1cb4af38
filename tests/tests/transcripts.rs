//! What the commands print and how they end, as a user at a shell sees it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn binary() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("writ");
    std::env::var_os("WRIT_BIN").map_or_else(beside, PathBuf::from)
}

/// Runs `writ` in an empty folder of its own and gives exit code and standard output.
fn writ(folder: &Path, arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .env("WRIT_STATE_DIR", folder.join("state"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("transcript-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn exit_codes_are_stable() {
    let at = folder("codes");
    fs::write(at.join("good.aflock"), r#"{"version":"1.0","name":"x","files":{"deny":["**/.env"]}}"#).unwrap();
    fs::write(at.join("bad.aflock"), r#"{"version":"1.0","nam":"x"}"#).unwrap();
    let input = r#"{"file_path":".env"}"#;
    for (arguments, input, expected) in [
        (&["policy", "check", "good.aflock"][..], "", 0),
        (&["policy", "check", "bad.aflock"], "", 4),
        (&["policy", "check", "none.aflock"], "", 1),
        (&["policy", "chek"], "", 2),
        (&["decide", "-p", "good.aflock", "--tool", "Read", "--input", input], "", 3),
        (&["decide", "-p", "good.aflock"], "{}\n", 4),
        (&["verify", "nobody"], "", 1),
        (&["verify", "."], "", 4),
        (&["approve", "3f9a"], "", 1),
        (&["evaluate", "shell", "ls"], "", 0),
        (&["evaluate", "shell", "dd if=/dev/zero of=/dev/sda"], "", 3),
        (&["evaluate", "shell", "git push --force", "--fail-on", "warn"], "", 3),
        (&["evaluate", "terraform"], "{}", 4),
        (&["evaluate", "mcp"], r#"{"tool":"list_files"}"#, 0),
        (&["claim", "parse"], "Status: DONE", 0),
        (&["consequences", "show", "git/none"], "", 1),
    ] {
        assert_eq!(writ(&at, arguments, input).0, Some(expected), "{arguments:?}");
    }
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn json_is_json_and_nothing_is_coloured() {
    let at = folder("json");
    fs::write(at.join(".aflock"), r#"{"version":"1.0","name":"x"}"#).unwrap();
    for arguments in [
        &["policy", "check", ".aflock", "--format", "json"][..],
        &["policy", "show", ".aflock", "--format", "json"],
        &["policy", "schema"],
        &["keys", "list", "--format", "json"],
        &["session", "list", "--format", "json"],
        &["shell", "explain", "a | b > c", "--format", "json"],
        &["evaluate", "shell", "rm -rf /", "--format", "json"],
        &["evaluate", "shell", "rm -rf /", "--format", "sarif"],
    ] {
        let (_, out) = writ(&at, arguments, "");
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{arguments:?}: {out}");
        assert!(!out.contains('\u{1b}'), "{arguments:?}");
    }
    let (_, out) = writ(&at, &["evaluate", "shell", "rm -rf /"], "");
    assert!(out.starts_with("block  delete folder /\n") && !out.contains('\u{1b}'), "{out}");
    fs::remove_dir_all(at).unwrap();
}

#[test]
fn the_pages_of_rules_are_those_in_the_repository() {
    let at = folder("pages");
    assert_eq!(writ(&at, &["consequences", "pages", "out"], "").0, Some(0));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/consequences");
    for page in fs::read_dir(at.join("out")).unwrap() {
        let page = page.unwrap();
        let known = fs::read(kept.join(page.file_name())).unwrap_or_default();
        assert!(
            known == fs::read(page.path()).unwrap(),
            "run `writ consequences pages`: {:?} is out of date",
            page.file_name()
        );
    }
    fs::remove_dir_all(at).unwrap();
}
