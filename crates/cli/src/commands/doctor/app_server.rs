//! What Codex itself says that it would run: `hooks/list` of its app server, which needs no network.
//!
//! Owns the question and the reading of its answer, each with a limit. Refuses to take silence for consent: a client that cannot be asked is
//! said to be one.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use writ_clients::codex;
use writ_core::json::{self, Limits, Loose, Value};
use writ_engine::Home;

use super::{Finding, bad, good};

/// How long the client is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// Most bytes of its answers.
const MOST: u64 = 16 << 20;

/// What is asked, a line each.
const GREETING: &str = r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"writ","title":"Writ","version":"0"},"capabilities":{"experimentalApi":true}}}
{"method":"initialized"}
"#;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    id: Loose<u64>,
    result: Loose<Listed>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    data: Loose<Vec<Folder>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Folder {
    hooks: Loose<Vec<Hook>>,
    errors: Loose<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hook {
    event_name: Loose<String>,
    source_path: Loose<String>,
    command: Loose<String>,
    enabled: Loose<bool>,
    is_managed: Loose<bool>,
    trust_status: Loose<String>,
}

impl Hook {
    fn runs(&self) -> bool {
        let trusted = self.is_managed.0 == Some(true) || self.trust_status.0.as_deref() == Some("trusted");
        self.enabled.0 != Some(false) && trusted
    }
}

/// Whether the client would run Writ's hooks, by its own word; nothing where it is not there to be asked.
pub fn check(home: &Home, cwd: &Path, installed: &[&PathBuf], again: &str) -> Option<Finding> {
    let program = home.search.iter().map(|folder| folder.join(codex::NAME)).find(|path| path.is_file())?;
    let folders = match ask(&program, cwd) {
        Ok(folders) => folders,
        Err(why) => {
            let text = format!("`codex` does not say which hooks it would run: {why}");
            return Some(bad(text, "run `codex app-server` and see what it says"));
        }
    };
    let hooks = || folders.iter().flat_map(|folder| folder.hooks.0.iter().flatten());
    let names: Vec<String> = installed.iter().map(|path| path.display().to_string()).collect();
    let real: Vec<String> =
        installed.iter().filter_map(|path| path.canonicalize().ok()).map(|path| path.display().to_string()).collect();
    let ours = |hook: &&Hook| {
        let from = hook.source_path.0.as_deref().unwrap_or_default();
        let writ = hook.command.0.as_deref().is_some_and(|line| writ_clients::guard::is_of(line, codex::NAME));
        writ && names.iter().chain(&real).any(|name| name == from)
    };
    let left_out: Vec<&str> =
        hooks().filter(ours).filter(|hook| !hook.runs()).filter_map(|hook| hook.event_name.0.as_deref()).collect();
    let errors = folders.iter().any(|folder| folder.errors.0.as_ref().is_some_and(|errors| !errors.is_empty()));
    Some(match (hooks().filter(ours).count(), left_out.as_slice()) {
        (0, _) => bad("`codex` knows no hook of Writ's here, by its own word", again),
        (_, [_, ..]) => {
            bad(format!("`codex` would leave out Writ's hooks for {}, by its own word", left_out.join(", ")), again)
        }
        (_, []) if errors => bad("`codex` says that it cannot read all hooks", "run `codex` and type `/hooks`"),
        (count, []) => good(format!("`codex` would run all {count} hooks of Writ's, by its own word")),
    })
}

/// Asks the client; it is ended before this returns.
fn ask(program: &Path, cwd: &Path) -> Result<Vec<Folder>, String> {
    let mut command = Command::new(program);
    command.arg("app-server").current_dir(cwd);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let answer = exchange(&mut child, cwd);
    drop(child.kill());
    drop(child.wait());
    answer
}

fn exchange(child: &mut Child, cwd: &Path) -> Result<Vec<Folder>, String> {
    let (input, output) = (child.stdin.as_mut(), child.stdout.take());
    let (Some(input), Some(output)) = (input, output) else { return Err("it cannot be spoken to".to_owned()) };
    let folder = json::to_compact(cwd.to_string_lossy().as_ref());
    let asked = format!("{GREETING}{{\"id\":2,\"method\":\"hooks/list\",\"params\":{{\"cwds\":[{folder}]}}}}\n");
    input.write_all(asked.as_bytes()).and_then(|()| input.flush()).map_err(|error| error.to_string())?;
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output.take(MOST)).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + PATIENCE;
    while let Ok(line) = told.recv_timeout(until.saturating_duration_since(Instant::now())) {
        let answer: Answer = json::from_slice_with(line.as_bytes(), Limits::FOREIGN).unwrap_or_default();
        if answer.id.0 == Some(2) {
            return answer
                .result
                .0
                .and_then(|listed| listed.data.0)
                .ok_or_else(|| "it knows no such question".to_owned());
        }
    }
    Err(format!("it does not answer within {} seconds", PATIENCE.as_secs()))
}
