//! A repository with a policy, an empty state folder, and the `writ` binary that works in them.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const POLICY: &str = r#"{"version":"1.0","name":"workplace","files":{"allow":["src/**"],"deny":["**/.env"]}}"#;

/// What a client is of in these tests: a process of its own above the hook, so that the test itself, which is the human, is none.
const CLIENT: &str = "\"$@\"\nexit $?\n";

/// The only session in it.
pub const SESSION: &str = "workplace";

/// A folder of its own for one test; removed when the test passes, kept for a look when it fails.
pub struct Workplace {
    pub folder: PathBuf,
    writ: PathBuf,
    /// Whether all is an ordinary user's, where the tests are root's.
    user: bool,
}

/// Whom an ordinary user's commands are run as.
const USER: &str = "12345";

impl Workplace {
    pub fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("repository/src")).unwrap();
        let place = Self { folder, writ: binary(), user: false };
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(place.repository()).status();
        assert!(git.expect("this test needs git").success());
        fs::write(place.repository().join(".aflock"), POLICY).unwrap();
        fs::write(place.folder.join("client"), CLIENT).unwrap();
        place
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Gives all of it to an ordinary user, where the tests are root's.
    pub fn give(&mut self) {
        self.user = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        if self.user {
            let given = Command::new("chown").args(["-R", &format!("{USER}:{USER}")]).arg(&self.folder).status();
            assert!(given.unwrap().success());
        }
    }

    /// A program, as whoever all of it is.
    pub fn program(&self, program: &Path) -> Command {
        if !self.user {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
        command
    }

    /// `writ` with these arguments, ready to start, with nothing of this process's environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(&self.writ);
        command.args(args).current_dir(self.repository()).env_clear();
        command.env("HOME", &self.folder).env("WRIT_STATE_DIR", self.folder.join("state"));
        if self.user {
            command.env("PATH", "/usr/bin:/bin");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What the client sends for an event; `members` is more JSON, beginning with a comma, or empty.
    pub fn payload(&self, event: &str, members: &str) -> String {
        let cwd = self.repository();
        let cwd = cwd.display();
        format!(
            r#"{{"session_id":"{SESSION}","transcript_path":"{cwd}/none.jsonl","cwd":"{cwd}","permission_mode":"default","hook_event_name":"{event}"{members}}}"#
        )
    }

    /// The payload of a call that writes `file`.
    pub fn write_call(&self, id: &str, file: &str) -> String {
        let cwd = self.repository();
        let input = format!(r#"{{"file_path":"{}/{file}","content":"text"}}"#, cwd.display());
        self.payload("PreToolUse", &format!(r#","tool_name":"Write","tool_input":{input},"tool_use_id":"{id}""#))
    }

    /// Runs the hook on a payload and gives its answer, one JSON object.
    pub fn answer(&self, payload: &str) -> String {
        let hook = self.command(&["hook"]);
        let mut client = Command::new("/bin/sh");
        client.arg(self.folder.join("client")).arg(hook.get_program()).args(hook.get_args());
        client.current_dir(self.repository()).env_clear();
        client.envs(hook.get_envs().filter_map(|(name, value)| Some((name, value?))));
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = client.spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.starts_with('{') && text.ends_with('}'), "{} {text}", output.status);
        text
    }

    /// Starts the session, as the client does before anything else.
    pub fn start(&self) {
        self.answer(&self.payload("SessionStart", r#","source":"startup""#));
    }

    /// Runs the hook on a call that the policy allows.
    pub fn allowed(&self, id: &str) {
        let text = self.answer(&self.write_call(id, "src/module.rs"));
        assert!(!text.contains("deny"), "call {id}: {text}");
    }

    /// Runs `writ` to its end.
    pub fn writ(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// The session's folder.
    pub fn session(&self) -> PathBuf {
        self.session_of(SESSION)
    }

    /// Another session's folder.
    pub fn session_of(&self, id: &str) -> PathBuf {
        self.folder.join("state/sessions").join(id)
    }

    /// Ids of the calls that have an approving row, in the ledger's order, once `writ verify` found the rows intact.
    pub fn approved(&self) -> Vec<String> {
        let ledger = self.session().join("ledger.jsonl");
        let verified = self.writ(&["ledger", "verify", ledger.to_str().unwrap()]);
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
        let text = fs::read_to_string(ledger).unwrap();
        let rows = text.lines().filter(|row| row.contains(r#","decision":"APPROVED","#));
        let id =
            |row: &str| row.split(r#""callId":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
        rows.map(id).collect()
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(fs::remove_dir_all(&self.folder));
        }
    }
}

/// `$WRIT_BIN`, else the binary that cargo puts beside the tests.
fn binary() -> PathBuf {
    let beside = || env::current_exe().unwrap().ancestors().nth(2).unwrap().join("writ");
    let path = env::var_os("WRIT_BIN").map_or_else(beside, PathBuf::from);
    assert!(
        path.is_file(),
        "there is no `writ` at {}: run `cargo build -p writ` or `cargo xtask test`",
        path.display()
    );
    path
}
