//! A repository, a home and a state folder for one run of a client, with a `writ` of its own in `PATH`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A stdio MCP server with one tool that echoes, and notes each call.
const MCP_SERVER: &str = r#"
const lines = require('readline').createInterface({ input: process.stdin });
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n');
lines.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } });
  else if (method === 'tools/list') send(id, { tools: [{ name: 'echo', description: 'echo', annotations: { readOnlyHint: true }, inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }] });
  else if (method === 'tools/call') { require('fs').appendFileSync(process.argv[2], params.arguments.text + '\n'); send(id, { content: [{ type: 'text', text: String(params.arguments.text) }] }); }
  else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } }) + '\n');
});
"#;

/// Writing is allowed but for `.env`; so is every tool of the server but with this name.
const POLICY: &str =
    r#"{"version":"1.0","name":"agents","files":{"deny":["**/.env","secrets/**"]},"tools":{"deny":["Bash:curl *"]}}"#;

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(150);

pub struct Place {
    pub root: PathBuf,
    pub work: PathBuf,
    /// The client's name.
    client: &'static str,
}

impl Place {
    pub fn new(client: &'static str, test: &str) -> Self {
        let root =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{client}-{test}-{}", std::process::id()));
        drop(fs::remove_dir_all(&root));
        let work = root.join("work");
        for folder in ["work/secrets", "home", "tmp", "bin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let root = root.canonicalize().unwrap();
        fs::write(work.join("hello.txt"), "hello world\n").unwrap();
        fs::write(work.join("secrets/key.pem"), "not a key\n").unwrap();
        fs::write(work.join(".aflock"), POLICY).unwrap();
        fs::write(root.join("mcp.js"), MCP_SERVER).unwrap();
        let git = "git init --quiet && git -c user.email=a@b -c user.name=a commit --quiet --allow-empty -m base";
        assert!(Command::new("sh").args(["-c", git]).current_dir(&work).status().unwrap().success());
        // Another name of the binary, which a test can put something else in the place of.
        fs::hard_link(binary(), root.join("bin/writ"))
            .or_else(|_| fs::copy(binary(), root.join("bin/writ")).map(drop))
            .unwrap();
        let place = Self { work: root.join("work"), root, client };
        fs::create_dir_all(place.home()).unwrap();
        place
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// What the work folder's file holds.
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.work.join(name)).ok()
    }

    /// What the server was called with.
    pub fn echoed(&self) -> String {
        fs::read_to_string(self.at("echoed")).unwrap_or_default()
    }

    /// The command line of the server.
    pub fn server(&self) -> Value {
        json!({ "command": "node", "args": [self.at("mcp.js"), self.at("echoed")] })
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        command.current_dir(&self.work).env_clear().env("PATH", path).env("HOME", self.home());
        command.env("TMPDIR", self.at("tmp")).env("LANG", "C.UTF-8").env("TERM", "dumb").env("SHELL", "/bin/bash");
        command.env("WRIT_STATE_DIR", self.at("state")).stdin(Stdio::null());
        command
    }

    /// `writ` with these arguments: whether it said yes, and what it said.
    pub fn writ(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.command(&self.at("bin/writ")).args(arguments).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), said)
    }

    /// Installs the hooks; what `writ doctor` says of them.
    pub fn install(&self) -> String {
        let (done, said) = self.writ(&["init", "--client", self.client]);
        assert!(done, "{said}");
        let (_, said) = self.writ(&["doctor"]);
        said
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(&self.at("bin/writ")).args(arguments).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    pub fn rows(&self) -> Vec<Value> {
        self.json(&["session", "show", "--format", "json"]).as_array().unwrap().clone()
    }

    /// Whether a row says this of a tool.
    pub fn has(&self, decision: &str, tool: &str) -> bool {
        self.rows().iter().any(|row| row["decision"] == decision && row["toolName"] == tool)
    }

    /// Runs a client to its end, and says what it said.
    pub fn run(&self, mut command: Command) -> Output {
        let (out, err) = (self.at("stdout"), self.at("stderr"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let mut child = command.spawn().expect("the client starts");
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                None => {
                    child.kill().unwrap();
                    break child.wait().unwrap();
                }
            }
        };
        Output { status, stdout: fs::read(out).unwrap(), stderr: fs::read(err).unwrap() }
    }

    /// Holds every ledger from the moment it has a row that says so, so that hooks after that wait in vain.
    pub fn hold_ledger_after(&self, word: &'static str) -> Held {
        let sessions = self.at("state/sessions");
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                for session in fs::read_dir(&sessions).into_iter().flatten().flatten() {
                    let path = session.path().join("ledger.jsonl");
                    if fs::read_to_string(&path).is_ok_and(|rows| rows.contains(word)) {
                        let file = File::open(&path).unwrap();
                        file.lock().unwrap();
                        assert!(stopped.recv().is_err(), "nothing is said, the end alone");
                        return true;
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            false
        });
        Held { stop, thread }
    }
}

/// Whoever holds a ledger.
pub struct Held {
    stop: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<bool>,
}

impl Held {
    /// Lets go. Returns whether anything was held.
    pub fn release(self) -> bool {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

/// Both outputs.
pub fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The `writ` under test: the one `cargo xtask test` built, or the one in the target folder.
fn binary() -> PathBuf {
    let named = std::env::var_os("WRIT_BIN").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|test| Some(test.parent()?.parent()?.join("writ")));
    let found = named.or(beside).filter(|path| path.is_file());
    found.expect("no `writ` to test: run `cargo build -p writ` first, or `cargo xtask test`")
}

/// A package from npm, installed into the repository's cache once.
pub fn package(name: &str, version: &str) -> PathBuf {
    let short = name.rsplit('/').next().unwrap();
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../.cache/{short}-{version}"));
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let there = cache.join("node_modules").join(name).join("package.json").is_file();
    if !there {
        let manifest =
            json!({ "name": "client", "private": true, "version": "0.0.0", "dependencies": { name: version } });
        fs::write(cache.join("package.json"), manifest.to_string()).unwrap();
        let npm = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .current_dir(&cache)
            .output();
        let npm = npm.expect("npm is needed to install the client");
        assert!(npm.status.success(), "{name} cannot be installed: {}", String::from_utf8_lossy(&npm.stderr));
    }
    cache.canonicalize().unwrap().join("node_modules")
}
