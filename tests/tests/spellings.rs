//! Paths as other clients read them: a rule holds however their tools let a file be named.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use workplace::Workplace;

const POLICY: &str =
    r#"{"version":"1.0","name":"s","files":{"deny":["**/.env","priv/**"],"readOnly":["Cargo.lock","locked/**"]}}"#;

fn place(name: &str) -> Workplace {
    let place = Workplace::new(name);
    let file = |path: &str| {
        let path = place.folder.join("repository").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "text\n").unwrap();
    };
    ["src/a.rs", "docs/b.md", "secret/.env", "priv/f.txt", "locked/rules.txt", "Cargo.lock"]
        .iter()
        .for_each(|one| file(one));
    fs::write(place.folder.join("repository/.aflock"), POLICY).unwrap();
    place
}

/// Whether a call is refused.
fn refused(place: &Workplace, client: &str, tool: &str, input: &Value) -> bool {
    let cwd = place.folder.join("repository");
    let payload = match client {
        "copilot" => json!({ "sessionId": "s", "timestamp": 1, "cwd": cwd, "toolName": tool, "toolArgs": input }),
        _ => json!({ "session_id": "s", "transcript_path": "/none", "cwd": cwd, "hook_event_name": "BeforeTool",
            "timestamp": "2026-11-22T02:08:23.373Z", "tool_name": tool, "tool_input": input }),
    };
    let mut child = place.command(&["hook", "--client", client]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text == "{}\n" || text == "{}" || text.contains("deny"), "{tool} {input}: {text}");
    text.contains("deny")
}

fn check(place: &Workplace, client: &str, cases: &[(&str, Value, bool)]) {
    for (tool, input, denied) in cases {
        assert_eq!(refused(place, client, tool, input), *denied, "{client}: {tool} {input}");
    }
}

#[test]
fn geminis_paths_are_judged_as_it_reads_them() {
    let place = place("spellings-gemini");
    let whole = place.folder.join("repository/src/none.rs");
    check(
        &place,
        "gemini",
        &[
            ("read_file", json!({ "file_path": "src/a.rs" }), false),
            ("read_file", json!({ "file_path": "@src/a.rs" }), false),
            ("read_file", json!({ "file_path": "docs/100%.md" }), false),
            ("read_file", json!({ "file_path": "@priv/f.txt" }), true),
            ("read_file", json!({ "file_path": "@/priv/f.txt" }), true),
            ("read_file", json!({ "file_path": "%70riv/f.txt" }), true),
            ("read_file", json!({ "file_path": "@%70riv%2Ff.txt" }), true),
            ("write_file", json!({ "file_path": "@Cargo.lock", "content": "x" }), true),
            ("write_file", json!({ "file_path": "%2Eaflock", "content": "{}" }), true),
            ("write_file", json!({ "file_path": "@.gemini/settings.json", "content": "{}" }), true),
            ("glob", json!({ "pattern": "*", "dir_path": "%70riv" }), true),
            ("grep_search", json!({ "pattern": "x", "dir_path": "@priv" }), true),
            ("list_directory", json!({ "dir_path": "%70riv" }), true),
            ("grep_search", json!({ "pattern": "x", "dir_path": "src" }), false),
            ("run_shell_command", json!({ "command": "ls", "dir_path": "%70riv" }), true),
            ("run_shell_command", json!({ "command": "ls", "dir_path": "src" }), false),
            ("read_many_files", json!({ "include": ["@priv/f.txt"] }), true),
            // One that is not there it looks for by the end of its name.
            ("replace", json!({ "file_path": "src/a.rs", "old_string": "a", "new_string": "b" }), false),
            ("replace", json!({ "file_path": "f.txt", "old_string": "a", "new_string": "b" }), true),
            ("replace", json!({ "file_path": "iv/f.txt", "old_string": "a", "new_string": "b" }), true),
            ("replace", json!({ "file_path": "@rules.txt", "old_string": "a", "new_string": "b" }), true),
            ("replace", json!({ "file_path": whole, "old_string": "", "new_string": "b" }), false),
        ],
    );
}

#[test]
fn copilots_patches_and_lists_are_judged_whole() {
    let place = place("spellings-copilot");
    let patch = |body: &str| json!(format!("*** Begin Patch\n{body}*** End Patch\n"));
    check(
        &place,
        "copilot",
        &[
            ("apply_patch", patch("*** Update File: src/a.rs\n@@\n-text\n+x\n"), false),
            ("apply_patch", patch("*** Add File: src/new.rs\n+x\n"), false),
            ("apply_patch", patch("*** Update File: secret/.env\n*** Move to: plain.txt\n@@\n text\n"), true),
            ("apply_patch", patch("*** Update File: Cargo.lock\n*** Move to: gone.lock\n@@\n text\n"), true),
            ("apply_patch", patch("*** Update File: .aflock\n*** Move to: old.json\n@@\n text\n"), true),
            ("apply_patch", patch("*** Delete File: priv/f.txt\n"), true),
            ("apply_patch", json!("no patch"), true),
            ("grep", json!({ "pattern": "x", "paths": ["src", "docs"] }), false),
            ("grep", json!({ "pattern": "x", "paths": "src" }), false),
            ("grep", json!({ "pattern": "x", "paths": ["src", "priv"] }), true),
            ("rg", json!({ "pattern": "x", "paths": "secret/.env" }), true),
            ("glob", json!({ "pattern": "*", "paths": ["priv"] }), true),
            ("grep", json!({ "pattern": "x", "paths": [1] }), true),
        ],
    );
}

/// Gemini CLI and Qwen Code take a project's `.env` into their environment, and hooks have theirs from them.
#[test]
fn a_projects_variables_do_not_move_the_record() {
    let place = place("spellings-variables");
    let repository = place.folder.join("repository");
    let call = |client: &str, name: &str, value: &str| {
        let payload = json!({ "session_id": "s", "transcript_path": "/none", "cwd": repository, "hook_event_name": "BeforeTool",
            "timestamp": "2026-11-22T02:08:23.373Z", "tool_name": "read_file", "tool_input": { "file_path": "src/a.rs" } });
        let payload =
            payload.to_string().replace("BeforeTool", if client == "gemini" { "BeforeTool" } else { "PreToolUse" });
        let mut child = place.command(&["hook", "--client", client]).env(name, value).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    // What is the user's own is, whatever stands in files of other programs.
    assert!(!call("gemini", "XDG_STATE_HOME", "/tmp").contains("deny"));
    for (file, text) in [
        (".env", "export XDG_STATE_HOME=/tmp"),
        (".gemini/.env", "A=1\n  XDG_STATE_HOME: /tmp"),
        (".env", "A=1\rexport\tXDG_STATE_HOME=/tmp"),
        (".env", "XDG_STATE_HOME=/tmp"),
    ] {
        fs::create_dir_all(repository.join(".gemini")).unwrap();
        fs::write(repository.join(file), format!("{text}\n")).unwrap();
        let said = call("gemini", "XDG_STATE_HOME", "/tmp");
        assert!(said.contains("deny") && said.contains("XDG_STATE_HOME"), "{text}: {said}");
        // One that the file names and nothing set moves nothing.
        assert!(!call("gemini", "XDG_DATA_HOME", "/tmp").contains("deny"));
        fs::remove_file(repository.join(file)).unwrap();
    }
    fs::write(repository.join(".env"), "XDG_STATE_HOME=/tmp\n").unwrap();
    assert!(call("qwen", "XDG_STATE_HOME", "/tmp").contains("deny"));
    assert!(!call("claude-code", "XDG_STATE_HOME", "/tmp").contains("XDG_STATE_HOME"));
}
