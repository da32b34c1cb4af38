//! One hook call that leaves nothing behind: the command line of the settings, a state folder of its own, a harmless read.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use writ_clients::Client;
use writ_clients::settings::{Start, TIMEOUT_SECONDS};
use writ_core::json::{self, Value};
use writ_engine::governing::{self, Trust};

/// How often it is asked whether the hook has ended.
const STEP: Duration = Duration::from_millis(10);

/// Starts the hook as the client would; says why when its answer is none.
pub fn call(client: &dyn Client, start: &Start, cwd: &Path) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("writ-doctor-{}", std::process::id()));
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let answer = answer(client, start, cwd, &folder);
    let removed = fs::remove_dir_all(&folder);
    let text = answer?;
    removed.map_err(|error| format!("{}: {error}", folder.display()))?;
    let value =
        json::parse(text.trim().as_bytes()).map_err(|_not_json| "it prints something else than one JSON object")?;
    match (value.as_object(), refusal(&value)) {
        (None, _) => Err("it prints something else than one JSON object".to_owned()),
        // Where the policy is broken the hook has to say so, and that is told as the policy's own trouble.
        (Some(_), Some(reason)) if !is_broken(cwd) => Err(reason.to_owned()),
        (Some(_), _) => Ok(()),
    }
}

/// A text anywhere in an answer that says that nothing could be decided.
fn refusal(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text.as_str()).filter(|text| text.starts_with("writ denies what it cannot")),
        Value::Object(members) => members.iter().find_map(|(_, value)| refusal(value)),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether the policy here cannot be used, whoever signed it.
fn is_broken(cwd: &Path) -> bool {
    governing::find(cwd).is_some_and(|path| governing::open(&path, None, &Trust::open(None)).is_err())
}

fn answer(client: &dyn Client, start: &Start, cwd: &Path, state: &Path) -> Result<String, String> {
    let mut command = match &start.args {
        Some(args) => {
            let mut command = Command::new(&start.command);
            command.args(args);
            command
        }
        None => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &start.command]);
            command
        }
    };
    command.current_dir(cwd).env("WRIT_STATE_DIR", state);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A program that reads nothing may be gone before it got everything.
        drop(input.write_all(client.sample(&cwd.to_string_lossy()).as_bytes()));
    }
    let until = Instant::now() + Duration::from_secs(TIMEOUT_SECONDS);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(STEP),
            Ok(None) => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!("it takes more than {TIMEOUT_SECONDS} seconds"));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    let mut text = String::new();
    if let Some(out) = child.stdout.take() {
        out.take(1 << 20).read_to_string(&mut text).map_err(|error| error.to_string())?;
    }
    if status.success() { Ok(text) } else { Err(format!("it ends with {status}")) }
}
