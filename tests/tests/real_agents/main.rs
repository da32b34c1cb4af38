//! Real agents' clients other than Claude Code, under hooks that `writ init` installed, against a scripted model on 127.0.0.1.
//!
//! Each client comes from npm in a pinned version, and asks a model on this machine alone. Each is run three times: doing work of which
//! some is denied, with a hook that dies, and with one that waits in vain.

mod codex;
mod copilot;
mod gemini;
mod mock;
mod opencode;
mod place;
mod qwen;

mod common {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::Command;

    use serde_json::{Value, json};

    use crate::mock::{Script, serve, text};
    use crate::place::{Place, said};

    /// A client in these tests.
    pub trait Agent {
        /// Its name.
        fn name(&self) -> &'static str;
        /// Writes the settings that it needs to ask the model on this port.
        fn prepare(&self, place: &Place, port: u16);
        /// The command that hands it a prompt.
        fn command(&self, place: &Place, port: u16, prompt: &str) -> Command;
        /// A call of its shell.
        fn shell(&self, line: &str) -> Value;
        /// The settings files that `writ init` changes.
        fn settings(&self, place: &Place) -> Vec<PathBuf>;
    }

    /// Installs the hooks for an agent that asks this script. Taking them out right away brings every file back to the byte.
    pub fn begin(agent: &dyn Agent, place: &Place, scripts: Vec<Script>) -> u16 {
        let port = serve(scripts);
        agent.prepare(place, port);
        let files = || agent.settings(place).iter().map(|path| fs::read_to_string(path).ok()).collect::<Vec<_>>();
        let before = files();
        place.install();
        assert_ne!(files(), before);
        undo(agent, place);
        assert_eq!(files(), before);
        let doctor = place.install();
        let name = agent.name();
        assert!(doctor.contains(&format!("hooks of `{name}` are installed in")), "{doctor}");
        port
    }

    fn undo(agent: &dyn Agent, place: &Place) {
        let (done, told) = place.writ(&["init", "--client", agent.name(), "--undo"]);
        assert!(done, "{told}");
    }

    /// Takes the hooks out: whatever the client wrote into its settings meanwhile stays, and nothing of Writ's.
    pub fn end(agent: &dyn Agent, place: &Place) {
        undo(agent, place);
        for path in agent.settings(place) {
            let left = fs::read_to_string(&path).unwrap_or_default();
            assert!(!left.contains("writ hook") && !left.contains("writ init"), "{}: {left}", path.display());
        }
        fs::remove_dir_all(&place.root).unwrap();
    }

    /// The report of `writ verify`; what it holds is shown where a test fails.
    pub fn verified(place: &Place) -> Value {
        let report = place.json(&["verify", "--format", "json"]);
        assert_eq!(report["verified"], true, "{report:#}");
        assert_eq!(report["coverage"]["unobserved"], json!([]), "{report:#}");
        report
    }

    /// `writ replay` finds the session by itself, and stops none of what the hooks let run. `untold` are denials that the transcript does
    /// not call so.
    pub fn looked_back(place: &Place, untold: u64) {
        let found = place.json(&["replay", "--format", "json"]);
        let told = [&found["sessions"], &found["newlyStopped"], &found["notJudged"]["unreadable"]];
        assert_eq!(told, [&json!(1), &json!(untold), &json!(0)], "{found:#}");
        assert!(found["denied"].as_u64() > Some(1) && found["allowed"].as_u64() > Some(1), "{found:#}");
    }

    pub fn phase<'a>(report: &'a Value, name: &str) -> &'a Value {
        let phases = report["phases"].as_array().unwrap();
        phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}: {report:#}"))
    }

    /// A hook whose program dies, then one that is gone: neither lets a line run.
    pub fn a_hook_that_dies_denies(agent: &dyn Agent) {
        let place = Place::new(agent.name(), "dies");
        let turns = vec![vec![agent.shell("echo ran >> ran.txt")], vec![text("Done.")]];
        let scripts = vec![Script { word: "DIES:", turns }];
        let port = begin(agent, &place, scripts);
        let program = place.at("bin/writ");
        fs::rename(&program, place.at("bin/kept")).unwrap();
        for dies in ["#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho not JSON; exit 70\n", ""] {
            if dies.is_empty() {
                fs::remove_file(&program).unwrap();
            } else {
                fs::write(&program, dies).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let ran = place.run(agent.command(&place, port, "DIES: go"));
            assert_eq!(place.file("ran.txt"), None, "{dies:?}: {}", said(&ran));
        }
        fs::rename(place.at("bin/kept"), &program).unwrap();
        let ran = place.run(agent.command(&place, port, "DIES: go"));
        assert_eq!(place.file("ran.txt").as_deref(), Some("ran\n"), "with its hook back the line runs: {}", said(&ran));
        fs::remove_dir_all(&place.root).unwrap();
    }

    /// A hook that waits in vain denies before the client loses its patience.
    pub fn a_hook_that_hangs_denies(agent: &dyn Agent) {
        let place = Place::new(agent.name(), "hangs");
        let turns = vec![
            vec![agent.shell("echo one >> ran.txt")],
            vec![agent.shell("echo two >> ran.txt")],
            vec![text("Done.")],
        ];
        let port = begin(agent, &place, vec![Script { word: "HANGS:", turns }]);
        let held = place.hold_ledger_after(r#""decision":"COMPLETED""#);
        let ran = place.run(agent.command(&place, port, "HANGS: go"));
        assert!(held.release(), "nothing was held: {}", said(&ran));
        assert_eq!(place.file("ran.txt").as_deref(), Some("one\n"), "{}", said(&ran));
        fs::remove_dir_all(&place.root).unwrap();
    }

    /// In a mount namespace with an `/etc` of its own: the administrator's hooks are put in, the client runs, they are taken out again.
    const ADMINISTRATOR: &str = r#"set -e
        mount -t tmpfs none "$1"; cp -a /etc/. "$1"; mount --bind "$1" /etc
        writ init --client "$2" --managed
        shift
        client=$1; shift
        "$@"
        writ init --client "$client" --managed --undo
        grep -rlE "writ (hook|init)" /etc > ../left || true"#;

    /// Hooks that root puts into the client's managed place hold a user who has none, and are taken out again.
    pub fn the_administrators_hooks_hold(agent: &dyn Agent) {
        let place = Place::new(agent.name(), "managed");
        let turns = vec![
            vec![agent.shell("echo one >> said.txt")],
            vec![agent.shell("cat secrets/key.pem > ran.txt")],
            vec![text("Done.")],
        ];
        let port = serve(vec![Script { word: "MANAGED:", turns }]);
        agent.prepare(&place, port);
        let client = agent.command(&place, port, "MANAGED: go");
        let etc = place.at("etc");
        fs::create_dir_all(&etc).unwrap();
        let mut command = place.command("unshare".as_ref());
        command.args(["--mount", "--propagation", "private", "sh", "-c", ADMINISTRATOR, "sh"]).arg(&etc);
        command.arg(agent.name()).arg(client.get_program()).args(client.get_args());
        command.envs(client.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let told = said(&place.run(command));
        assert_eq!(place.file("said.txt").as_deref(), Some("one\n"), "{told}");
        assert_eq!(place.file("ran.txt"), None, "{told}");
        let denied = place.rows().into_iter().filter(|row| row["decision"] == "DENIED").count();
        assert_eq!(denied, 1, "{told}");
        let left =
            fs::read_to_string(place.at("left")).unwrap_or_else(|_| panic!("it did not come to its end: {told}"));
        assert_eq!(left, "");
        fs::remove_dir_all(&place.root).unwrap();
    }
}
