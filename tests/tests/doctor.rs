//! Broken installations: `writ doctor` finds each, and the mend it names mends it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const POLICY: &str = r#"{"version":"1.0","name":"x","files":{"deny":["**/.env"]}}"#;

/// A repository with Writ installed in it.
struct Place {
    root: PathBuf,
    /// What `WRIT_STATE_DIR` says.
    state: String,
    /// What `SHELL` says.
    shell: &'static str,
}

impl Place {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doctor-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        for folder in ["repository", "bin", "home"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let beside = || std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("writ");
        symlink(std::env::var_os("WRIT_BIN").map_or_else(beside, PathBuf::from), root.join("bin/writ")).unwrap();
        let state = root.join("state").display().to_string();
        let place = Self { root, state, shell: "/bin/bash" };
        assert!(place.sh("git init --quiet").0);
        fs::write(place.at("repository/.aflock"), POLICY).unwrap();
        assert!(place.sh("writ init").0);
        assert!(place.sh(&format!("echo '{}' | writ hook", place.start())).0, "a session");
        let (good, text) = place.sh("writ doctor");
        assert!(good, "before anything is broken: {text}");
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn settings(&self) -> PathBuf {
        self.at("repository/.claude/settings.json")
    }

    fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.settings()).unwrap();
        let edited = text.replace(from, to);
        assert_ne!(text, edited, "{from}");
        fs::write(self.settings(), edited).unwrap();
    }

    /// As if no session had ever begun here.
    fn forget(&self) {
        for folder in ["sessions", "begun"] {
            fs::remove_dir_all(self.at("state").join(folder)).unwrap();
        }
    }

    fn start(&self) -> String {
        let cwd = self.at("repository");
        format!(r#"{{"session_id":"s","cwd":"{}","hook_event_name":"SessionStart","source":"startup"}}"#, cwd.display())
    }

    /// Runs a line as a person would who works in the repository.
    fn sh(&self, line: &str) -> (bool, String) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.at("repository")).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.at("bin").display()));
        command.env("HOME", self.at("home")).env("WRIT_STATE_DIR", &self.state).env("SHELL", self.shell);
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    /// What is wrong, with what to do.
    fn findings(&self) -> Vec<(String, String)> {
        let (_, text) = self.sh("writ doctor --format json");
        let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let words = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
        all.iter()
            .filter(|finding| finding["good"] == false)
            .map(|finding| (words(finding, "text"), words(finding, "remedy")))
            .collect()
    }

    /// Finds what was broken, does what it says, and finds nothing any more. `by_hand` is what no command can do.
    fn mends(&mut self, words: &str, by_hand: Option<fn(&mut Self)>) {
        let found = self.findings();
        let (text, remedy) =
            found.iter().find(|(text, _)| text.contains(words)).unwrap_or_else(|| panic!("{words}: {found:?}")).clone();
        let alone = by_hand.is_none();
        by_hand.into_iter().for_each(|mend| mend(self));
        // What stands between backticks is to be run as it stands.
        let command =
            |text: &&str| ["writ init", "writ keys", "chmod ", "mv "].iter().any(|start| text.starts_with(start));
        let lines: Vec<&str> = remedy.split('`').skip(1).step_by(2).filter(command).collect();
        assert!(!alone || !lines.is_empty(), "{text}: {remedy}");
        for line in lines {
            let (done, said) = self.sh(line);
            assert!(done, "{line}: {said}");
        }
        let left = self.findings();
        assert!(left.is_empty(), "{text}, mended by {remedy}: {left:?}");
        fs::remove_dir_all(&self.root).unwrap();
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

macro_rules! broken {
    ($($name:ident: $words:expr, $break:expr, $by_hand:expr;)*) => { $(
        #[test]
        fn $name() {
            let mut place = Place::new(stringify!($name));
            let breaks: fn(&mut Place) = $break;
            breaks(&mut place);
            place.mends($words, $by_hand);
        }
    )* };
}

broken! {
    missing_program: "which is not there", |place| place.edit("\"command\": \"writ\"", "\"command\": \"/nowhere/writ\""), None;
    program_that_is_no_hook: "does not answer as a hook", |place| {
        fs::create_dir_all(place.at("other")).unwrap();
        fs::write(place.at("other/writ"), "#!/bin/sh\ncat > /dev/null; echo hello\n").unwrap();
        mode(&place.at("other/writ"), 0o755);
        let other = place.at("other/writ");
        place.edit("\"command\": \"writ\"", &format!("\"command\": \"{}\"", other.display()));
    }, None;
    program_that_cannot_be_started: "does not answer as a hook", |place| {
        fs::create_dir_all(place.at("other")).unwrap();
        fs::write(place.at("other/writ"), "no program").unwrap();
        let other = place.at("other/writ");
        place.edit("\"command\": \"writ\"", &format!("\"command\": \"{}\"", other.display()));
    }, None;
    older_entries: "older form", |place| {
        let text = fs::read_to_string(place.settings()).unwrap();
        let mut settings: Value = serde_json::from_str(&text).unwrap();
        for groups in settings["hooks"].as_object_mut().unwrap().values_mut() {
            groups[0]["hooks"][0] = serde_json::json!({ "type": "command", "command": "writ hook", "timeout": 30, "onFailure": "block" });
        }
        fs::write(place.settings(), settings.to_string()).unwrap();
    }, None;
    settings_that_are_no_json: "ignores every hook", |place| place.edit("{\n  \"hooks\"", "{\n  // mine\n  \"hooks\""),
        Some(|place| place.edit("  // mine\n", ""));
    hooks_switched_off: "switches all hooks off", |place| place.edit("{\n  \"hooks\"", "{\n  \"disableAllHooks\": true,\n  \"hooks\""),
        Some(|place| place.edit("  \"disableAllHooks\": true,\n", ""));
    hooks_in_the_wrong_file: "does not read them there", |place| {
        fs::rename(place.settings(), place.at("repository/.claude/hooks.json")).unwrap();
    }, None;
    state_that_is_no_folder: "cannot be written", |place| {
        fs::remove_dir_all(place.at("state")).unwrap();
        fs::write(place.at("state"), "x").unwrap();
    }, None;
    state_that_others_can_write: "others can write", |place| mode(&place.at("state"), 0o777), None;
    key_that_others_can_read: "others can use the key", |place| mode(&place.at("state/keys/ledger.pem"), 0o644), None;
    lost_key: "is gone", |place| fs::remove_file(place.at("state/keys/ledger.pem")).unwrap(), None;
    foreign_key: "not the key", |place| {
        fs::remove_file(place.at("state/keys/ledger.pem")).unwrap();
        assert!(place.sh("writ keys generate \"$WRIT_STATE_DIR/keys/ledger.pem\"").0);
    }, None;
    broken_key: "does not read", |place| fs::write(place.at("state/keys/ledger.pem"), "x").unwrap(), None;
    no_policy: "no policy governs here", |place| {
        place.forget();
        fs::remove_file(place.at("repository/.aflock")).unwrap();
    }, None;
    lost_session: "is gone", |place| fs::remove_dir_all(place.at("state/sessions")).unwrap(), Some(|place| {
        let start = place.start().replace("\"s\"", "\"t\"");
        assert!(place.sh(&format!("echo '{start}' | writ hook")).0);
    });
    policy_that_is_no_file: "not a plain file", |place| {
        place.forget();
        fs::remove_file(place.at("repository/.aflock")).unwrap();
        fs::create_dir(place.at("repository/.aflock")).unwrap();
    }, Some(|place| {
        fs::remove_dir(place.at("repository/.aflock")).unwrap();
        fs::write(place.at("repository/.aflock"), POLICY).unwrap();
    });
    damaged_ledger: "is damaged", |place| {
        fs::write(place.at("state/sessions/s/ledger.jsonl"), "{}\n").unwrap();
    }, Some(|place| {
        let start = place.start().replace("\"s\"", "\"t\"");
        assert!(place.sh(&format!("echo '{start}' | writ hook")).0);
    });
    policy_that_vanished: "goes on governing", |place| fs::remove_file(place.at("repository/.aflock")).unwrap(),
        Some(|place| fs::write(place.at("repository/.aflock"), POLICY).unwrap());
    expired_policy: "has expired", |place| {
        place.forget();
        fs::write(place.at("repository/.aflock"), POLICY.replace("\"name\"", "\"expires\":\"2020-01-01T00:00:00Z\",\"name\"")).unwrap();
    }, Some(|place| fs::write(place.at("repository/.aflock"), POLICY).unwrap());
    invalid_policy: "is not valid", |place| fs::write(place.at("repository/.aflock"), POLICY.replace("files", "fils")).unwrap(),
        Some(|place| fs::write(place.at("repository/.aflock"), POLICY).unwrap());
    unsigned_where_signatures_are_required: "is not signed, and your settings require that it is trusted", |place| {
        place.forget();
        assert!(place.sh("writ keys require-signed on").0);
    }, None;
    missing_event: "lacks hooks for PreToolUse", |place| place.edit("\"PreToolUse\"", "\"Notification\""), None;
    hurried_hook: "too little time", |place| place.edit("\"timeout\": 30", "\"timeout\": 1"), None;
    hook_that_fails_open: "lets the tool run", |place| place.edit(",\n            \"onFailure\": \"block\"", ""), None;
    narrowed_hook: "does not see every call", |place| place.edit("\"matcher\": \"*\"", "\"matcher\": \"Read\""), None;
    relative_state_folder: "no absolute path", |place| place.state = "state".to_owned(),
        Some(|place| place.state = place.at("state").display().to_string());
    state_moved_by_settings: "sets WRIT_STATE_DIR", |place| place.edit("\"env\": {", "\"env\": {\n    \"WRIT_STATE_DIR\": \"/tmp/x\","),
        Some(|place| place.edit("\n    \"WRIT_STATE_DIR\": \"/tmp/x\",", ""));
    another_shell: "lines are read as bash reads them", |place| place.edit("\"CLAUDE_CODE_SHELL\": \"bash\"", "\"CLAUDE_CODE_SHELL\": \"zsh\""), None;
    zsh_without_a_pin: "the client runs zsh here", |place| {
        place.edit("\"CLAUDE_CODE_SHELL\"", "\"OTHER\"");
        fs::write(place.at("bin/zsh"), "#!/bin/sh\n").unwrap();
        place.shell = "/usr/bin/fish";
    }, None;
    installed_twice: "installed twice", |place| assert!(place.sh("writ init --user").0), None;
}

/// What is found follows from what is broken, and from nothing else that is fine.
#[test]
fn one_trouble_is_one_finding() {
    let place = Place::new("one-trouble");
    mode(&place.at("state/keys/ledger.pem"), 0o644);
    assert_eq!(place.findings().len(), 1, "{:?}", place.findings());
    mode(&place.at("state/keys/ledger.pem"), 0o600);
    fs::remove_file(place.at("repository/.aflock")).unwrap();
    let found = place.findings();
    assert!(found.len() == 1 && found[0].0.contains("goes on governing"), "{found:?}");
    fs::write(place.at("repository/.aflock"), "{").unwrap();
    let found = place.findings();
    assert!(!found.is_empty() && found.iter().all(|(text, _)| text.contains("is not valid")), "{found:?}");
    // `status` says the same of the hooks.
    fs::remove_file(place.settings()).unwrap();
    assert!(place.sh("writ status").1.contains("the client never asks"));
    fs::remove_dir_all(&place.root).unwrap();
}
