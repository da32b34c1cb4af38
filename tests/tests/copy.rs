//! `writ run --copy`: the folder stays as it is, and what was written is shown, applied or thrown away.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use workplace::Workplace;

/// Somebody who is not root.
const USER: &str = "65532";

/// A repository under a policy, and who works in it.
struct Lab {
    place: Workplace,
    user: bool,
}

/// Root, where the tests are root's, and somebody.
fn everybody() -> Vec<bool> {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout == b"0\n" { vec![false, true] } else { vec![false] }
}

impl Lab {
    fn new(name: &str, user: bool, policy: &Value) -> Self {
        let lab = Self { place: Workplace::new(&format!("{name}-{user}")), user };
        let root = lab.root();
        fs::write(root.join(".aflock"), policy.to_string()).unwrap();
        fs::write(root.join(".env"), "KEY=secret\n").unwrap();
        for folder in ["src", "kept", "gone/deep", "swapped"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (name, text) in [
            ("src/text", "one\ntwo\nthree\n"),
            ("kept/file", "kept\n"),
            ("gone/deep/file", "gone\n"),
            ("gone/other", "gone\n"),
            ("swapped/old", "old\n"),
            ("old", "old\n"),
            ("run.sh", "exit 0\n"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        if user {
            let chown = Command::new("chown").args(["-R", "65532:65532"]).arg(&lab.place.folder).status().unwrap();
            assert!(chown.success());
        }
        lab
    }

    fn root(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn writ(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let plain = self.place.command(words);
        let mut command = Command::new(if self.user { "setpriv".into() } else { plain.get_program().to_owned() });
        if self.user {
            command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(plain.get_program());
        }
        command.args(plain.get_args()).current_dir(self.root()).env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap());
        }
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let ran = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ran.status.code(), text(ran.stdout), text(ran.stderr))
    }

    /// Runs a script in a copy.
    fn copy(&self, script: &str) -> (Option<i32>, String, String) {
        fs::write(self.root().join("run.sh"), script).unwrap();
        self.writ(&["run", "--copy", "--", "sh", "./run.sh"])
    }

    fn diff(&self) -> BTreeMap<String, Value> {
        let (code, out, err) = self.writ(&["sandbox", "diff", "--format", "json"]);
        assert_eq!(code, Some(0), "{out}{err}");
        let shown: Value = serde_json::from_str(&out).unwrap();
        let root = format!("{}/", self.root().display());
        let name = |entry: &Value| entry["path"].as_str().unwrap().strip_prefix(&root).unwrap().to_owned();
        shown["changes"].as_array().unwrap().iter().map(|entry| (name(entry), entry.clone())).collect()
    }

    /// Everything in the folder: what it is, its rights, when it was written, and its bytes.
    fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let found = path.symlink_metadata().unwrap();
                let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                let head = format!("{:o} {} {} {}", found.mode(), found.uid(), found.mtime(), found.mtime_nsec());
                all.insert(path.clone(), format!("{head} {bytes:?}"));
                if found.is_dir() {
                    folders.push(path);
                }
            }
        }
        all
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    fn verify(&self) -> Value {
        let report: Value = serde_json::from_str(&self.writ(&["verify", "--format", "json"]).1).unwrap();
        let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "sandbox").cloned();
        assert_eq!(report["verified"], true, "{report:#}");
        phase.unwrap()
    }

    fn layers(&self) -> Vec<PathBuf> {
        let sessions = fs::read_dir(self.place.folder.join("state/sessions")).unwrap();
        let all = sessions.flat_map(|session| fs::read_dir(session.unwrap().path()).unwrap());
        let all = all.map(|entry| entry.unwrap().path());
        let is_layer = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("copy-") || name.starts_with("layer-")
        };
        all.filter(is_layer).collect()
    }
}

fn policy() -> Value {
    json!({"version": "1.0", "name": "copy", "files": {"deny": ["**/.env"], "readOnly": ["kept/**"]}})
}

const CHANGES: &str = "set -e
    echo four >> src/text; chmod 755 src/text
    rm old; rm -r gone
    rm -r swapped; mkdir swapped; echo new > swapped/new
    mkdir -p made/deep; echo made > made/deep/file; chmod 700 made; ln -s ../nowhere link
    head -c 300000 /dev/zero > large; printf 'a\\000b' > bytes
    mkdir -p node_modules/.bin; echo x > node_modules/.bin/ls; echo 'all:' > Makefile
    ! cat .env; ! echo x > kept/file; ! echo x > .git/hooks/pre-commit; ! echo x > .git/config
    cat src/text; ls";

#[test]
fn the_folder_stays_as_it_is_until_a_human_applies() {
    for user in everybody() {
        let lab = Lab::new("copy", user, &policy());
        fs::write(lab.root().join("run.sh"), CHANGES).unwrap();
        let before = lab.state();
        let (code, out, err) = lab.writ(&["run", "--copy", "--", "sh", "./run.sh"]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.starts_with("one\ntwo\nthree\nfour\n") && !out.contains("old\n"), "{out}");
        assert!(err.contains("writ sandbox diff run-"), "{err}");
        assert_eq!(lab.state(), before, "user {user}");
        let summary = lab.verify()["summary"].to_string();
        assert!(summary.contains("a copy waits"), "{summary}");

        let diff = lab.diff();
        let word = |name: &str| diff[name]["change"].as_str().unwrap();
        let names: Vec<&str> = diff.keys().map(String::as_str).collect();
        let expected = [
            "Makefile",
            "bytes",
            "gone",
            "large",
            "link",
            "made",
            "made/deep",
            "made/deep/file",
            "node_modules",
            "node_modules/.bin",
            "node_modules/.bin/ls",
            "old",
            "src/text",
            "swapped/new",
            "swapped/old",
        ];
        assert_eq!(names, expected);
        assert_eq!([word("gone"), word("old"), word("swapped/old")], ["removed"; 3]);
        assert_eq!([word("made/deep/file"), word("link"), word("swapped/new")], ["made"; 3]);
        assert_eq!(diff["src/text"]["diff"], "@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n");
        assert_eq!(diff["src/text"]["later"], "can be run now");
        assert_eq!(diff["Makefile"]["later"], "build");
        assert!(diff["node_modules/.bin/ls"]["later"].is_string() && diff["old"]["later"].is_null());
        assert_eq!((&diff["large"]["diff"], &diff["large"]["after"]["size"]), (&Value::Null, &json!(300_000)));
        let shown = lab.writ(&["sandbox", "diff"]).1;
        assert!(!shown.contains('\u{1b}'), "no colours where nobody looks");
        let at = |text: &str| shown.find(text).unwrap();
        assert!(at("would run outside later") < at("Makefile") && at("Makefile") < at("changes:"), "{shown}");

        assert_eq!(lab.writ(&["sandbox", "apply"]).0, Some(3), "nobody said yes");
        assert_eq!(lab.state(), before);
        let (code, out, err) = lab.writ(&["sandbox", "apply", "--yes"]);
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(lab.read("src/text"), "one\ntwo\nthree\nfour\n");
        assert_eq!(lab.read("made/deep/file"), "made\n");
        let mode = |name: &str| lab.root().join(name).symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode("src/text"), mode("made")), (0o755, 0o700));
        assert_eq!(fs::read_link(lab.root().join("link")).unwrap(), Path::new("../nowhere"));
        assert_eq!(fs::read(lab.root().join("large")).unwrap().len(), 300_000);
        for name in ["old", "gone", "swapped/old"] {
            assert!(lab.root().join(name).symlink_metadata().is_err(), "{name}");
        }
        let owner = lab.root().metadata().unwrap().uid();
        assert_eq!(lab.root().join("made/deep/file").metadata().unwrap().uid(), owner);
        assert!(lab.state().keys().all(|path| !path.to_string_lossy().contains(".writ-")));
        let summary = lab.verify()["summary"].to_string();
        assert!(summary.contains("was applied"), "{summary}");
        assert_eq!(lab.layers(), Vec::<PathBuf>::new());
        let (code, _, err) = lab.writ(&["sandbox", "diff"]);
        assert_eq!(code, Some(1), "{err}");
    }
}

#[test]
fn what_is_protected_needs_more_than_yes() {
    let lab = Lab::new("copy-protected", false, &policy());
    // What is kept is not there yet, so that a layer takes it.
    let script =
        "echo x > .envrc; mkdir .vscode; echo '{}' > .vscode/tasks.json; git init -q nested; echo y > deep.aflock
        mkdir sub; echo K > sub/.env; cp /bin/true suid; mkdir bare; echo ref > bare/HEAD; mkdir bare/objects bare/refs
        echo '[core]' > bare/config; echo 'gitdir: x' > sub/.git; echo fine > fine";
    let (code, out, err) = lab.copy(script);
    assert_eq!(code, Some(0), "{out}{err}");
    // The sandbox lets nobody set such a bit; a layer may have it all the same.
    let layer = lab.layers().pop().unwrap();
    fs::set_permissions(layer.join("changes/suid"), fs::Permissions::from_mode(0o4755)).unwrap();
    let diff = lab.diff();
    let protected = |name: &str| diff.get(name).is_some_and(|entry| entry["protected"] == true);
    for name in [
        ".envrc",
        ".vscode/tasks.json",
        "nested/.git/config",
        "deep.aflock",
        "sub/.env",
        "suid",
        "bare/config",
        "sub/.git",
    ] {
        assert!(protected(name), "{name}: {diff:#?}");
    }
    assert!(!protected("fine") && !protected("bare/HEAD"));
    let before = lab.state();
    let (code, _, err) = lab.writ(&["sandbox", "apply", "--yes"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains(".envrc") && err.contains("bare/config") && err.contains("--all"), "{err}");
    for more in ["--all", "--over"] {
        let (code, _, err) = lab.writ(&["sandbox", "apply", "--yes", more]);
        assert_eq!(code, Some(3), "{err}");
        assert!(err.contains("only a human"), "{err}");
    }
    assert_eq!(lab.state(), before);
    assert_eq!(lab.writ(&["sandbox", "apply", "--discard"]).0, Some(3));
    assert_eq!(lab.writ(&["sandbox", "apply", "--discard", "--yes"]).0, Some(0));
    assert_eq!(lab.state(), before);
    assert!(lab.verify()["summary"].to_string().contains("was thrown away"));
    assert_eq!(lab.layers(), Vec::<PathBuf>::new());
}

#[test]
fn what_changed_outside_is_not_overwritten() {
    type Outside = fn(&Path);
    let cases: [(&str, &str, Outside); 7] = [
        ("src/text", "echo x >> src/text", |root| fs::write(root.join("src/text"), "outside\n").unwrap()),
        ("new", "echo x > new", |root| fs::write(root.join("new"), "outside\n").unwrap()),
        ("old", "rm old", |root| fs::write(root.join("old"), "outside\n").unwrap()),
        ("gone/deep/more", "rm -r gone", |root| fs::write(root.join("gone/deep/more"), "outside\n").unwrap()),
        ("src/text", "echo x >> src/text", |root| fs::remove_file(root.join("src/text")).unwrap()),
        ("src", "echo x > src/new", |root| {
            fs::rename(root.join("src"), root.join("aside")).unwrap();
            symlink("aside", root.join("src")).unwrap();
        }),
        ("old", "chmod 700 old", |root| {
            fs::set_permissions(root.join("old"), fs::Permissions::from_mode(0o600)).unwrap()
        }),
    ];
    for (number, (name, script, outside)) in cases.into_iter().enumerate() {
        let lab = Lab::new(&format!("copy-outside-{number}"), false, &policy());
        assert_eq!(lab.copy(&format!("{script}; echo also > also")).0, Some(0));
        outside(&lab.root());
        let before = lab.state();
        let (code, _, err) = lab.writ(&["sandbox", "apply", "--yes"]);
        assert_eq!(code, Some(3), "{number}: {err}");
        assert!(err.contains("changed outside") && err.contains(name), "{number}: {err}");
        assert_eq!(lab.state(), before, "{number}");
    }
}

/// What else there is in a plan: single files, folders that can be written in ones that cannot, reading that is closed.
#[test]
fn everything_writable_is_layered() {
    for user in everybody() {
        let files = json!({"allow": ["src/**", "old", "run.sh", "kept/**", "swapped/deep/**"], "readOnly": ["kept/file", "run.sh"]});
        let lab = Lab::new("copy-nested", user, &json!({"version": "1.0", "name": "nested", "files": files}));
        fs::create_dir_all(lab.root().join("swapped/deep")).unwrap();
        fs::write(lab.root().join("swapped/deep/file"), "deep\n").unwrap();
        if user {
            let chown = Command::new("chown").args(["-R", "65532:65532"]).arg(lab.root()).status().unwrap();
            assert!(chown.success());
        }
        let script =
            "echo x >> src/text; echo x >> old; echo x > kept/file; echo x > kept/new; echo x >> swapped/deep/file
            echo x > elsewhere; git add src; cat old swapped/deep/file; true";
        fs::write(lab.root().join("run.sh"), script).unwrap();
        let before = lab.state();
        let (code, out, err) = lab.writ(&["run", "--copy", "--", "sh", "./run.sh"]);
        assert_eq!((code, out.as_str()), (Some(0), "old\nx\ndeep\nx\n"), "{err}");
        assert_eq!(lab.state(), before, "user {user}");
        let diff = lab.diff();
        for name in ["src/text", "old", "kept/new", "swapped/deep/file"] {
            assert!(diff.contains_key(name), "{name}: {diff:#?}");
        }
        assert!(!diff.contains_key("kept/file") && !diff.contains_key("elsewhere"));
        let (code, _, err) = lab.writ(&["sandbox", "apply", "--yes"]);
        assert_eq!(code, Some(0), "{err}");
        assert_eq!((lab.read("old"), lab.read("swapped/deep/file")), ("old\nx\n".to_owned(), "deep\nx\n".to_owned()));
        assert_eq!(lab.read("kept/file"), "kept\n");
    }
}

/// A folder that nobody may look into is no way to keep a layer.
#[test]
fn what_has_no_rights_is_thrown_away_too() {
    for user in everybody() {
        let lab = Lab::new("copy-rights", user, &policy());
        assert_eq!(lab.copy("mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a").0, Some(0));
        if user {
            assert_eq!(lab.writ(&["sandbox", "diff"]).0, Some(1), "what cannot be read is not shown as nothing");
        }
        let code = lab.writ(&["sandbox", "apply", "--discard", "--yes"]).0;
        assert_eq!((code, lab.layers()), (Some(0), Vec::new()), "user {user}");
    }
}

/// A layer that somebody changed by hand, and a record that is not what it was.
#[test]
fn bad_input_is_an_error() {
    let lab = Lab::new("copy-bad", false, &policy());
    assert_eq!(lab.copy("mkdir d; echo x > d/f; echo x >> src/text").0, Some(0));
    let layer = lab.layers().into_iter().find(|path| path.to_string_lossy().contains("copy-")).unwrap();
    let changes = layer.join("changes");
    // A link in the place of a folder leads nowhere.
    fs::rename(changes.join("d"), changes.join("aside")).unwrap();
    symlink("/etc", changes.join("d")).unwrap();
    assert!(lab.diff()["d"]["after"]["target"] == "/etc" && !lab.diff().contains_key("d/passwd"));
    fs::remove_file(changes.join("d")).unwrap();
    let made = Command::new("mkfifo").arg(changes.join("pipe")).status().unwrap();
    assert!(made.success());
    let (code, _, err) = lab.writ(&["sandbox", "apply", "--yes"]);
    assert!(code == Some(3) && err.contains("pipe"), "{err}");
    fs::remove_file(changes.join("pipe")).unwrap();
    let mut deep = changes.clone();
    (0..140).for_each(|_| deep.push("d"));
    fs::create_dir_all(&deep).unwrap();
    let (code, _, err) = lab.writ(&["sandbox", "diff"]);
    assert!(code == Some(1) && err.contains("deep"), "{err}");
    fs::remove_dir_all(changes.join("d")).unwrap();
    let list = layer.parent().unwrap().join("copies/begun");
    let bytes = fs::read(&list).unwrap();
    fs::write(&list, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(lab.writ(&["sandbox", "diff"]).0, Some(4));
    fs::write(&list, &bytes).unwrap();
    fs::remove_dir_all(&changes).unwrap();
    symlink("/etc", &changes).unwrap();
    assert_eq!(lab.writ(&["sandbox", "diff"]).0, Some(1));
    let (code, _, err) = lab.writ(&["sandbox", "diff", "no-such-session"]);
    assert_eq!(code, Some(1), "{err}");
}

/// Nobody inside applies, and no agent's line does.
#[test]
fn an_agent_does_not_apply_for_itself() {
    let lab = Lab::new("copy-agent", false, &policy());
    assert_eq!(lab.copy("echo x > made").0, Some(0));
    let writ = lab.place.command(&[]).get_program().to_string_lossy().into_owned();
    let (code, _, err) = lab.writ(&["run", "--", "env", &writ, "sandbox", "diff"]);
    assert_ne!(code, Some(125), "{err}");
    fs::write(lab.root().join("run.sh"), format!("{writ} sandbox apply --yes; echo $?")).unwrap();
    let (_, out, err) = lab.writ(&["run", "--", "sh", "./run.sh"]);
    assert_eq!(out, "3\n", "{err}");
    assert!(lab.root().join("made").symlink_metadata().is_err());
    let decided = lab.writ(&["why", "-p", ".aflock", "writ sandbox apply --yes"]);
    assert_eq!(decided.0, Some(3), "{decided:?}");
}
