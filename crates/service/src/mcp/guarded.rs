//! Tools that Writ runs itself: a shell line, a file that is read, a file that is written.
//!
//! Owns what they take and give. Decides and records nothing itself: the gate does, under the canonical tools `Bash`, `Read` and
//! `Write`, and a line is run in a sandbox where the policy wants that. Invariant: the file that is touched is the one that was
//! judged, whatever becomes of its name in between. Page: `spec/mcp.md`.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use writ_core::json::{self, Object, Value};
use writ_core::{Search, ToolCall, ToolKind};
use writ_engine::mcp::{Gate, Passed, Ruling};
use writ_engine::notary::attest::{self, Begun};
use writ_engine::steps::{Reported, Step};

use super::arguments::{Refusal, text, text_of};
use crate::spawn::{Finished, MOST, Spawn};

/// How long a line may take when nobody says, and at most.
const SECONDS: [f64; 2] = [120.0, 600.0];
/// The code of a step whose time was up, as `timeout(1)` has it.
const TIMED_OUT: i32 = 124;

/// Runs a shell line.
pub fn bash(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let line = Line::of(gate, arguments)?;
    let passed = line.decided(gate)?;
    finish(gate, &passed, line.run(&passed))
}

/// Runs a shell line as a step, and attests it: Writ sees what goes in, how it ends and what comes out.
pub fn attest_step(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let line = Line::of(gate, arguments)?;
    let files = |name: &str| paths(arguments, name);
    let command = ["bash", "-c", line.text].map(OsString::from).to_vec();
    let name = text(arguments, "name")?.to_owned();
    let (materials, products) = (files("materials")?, files("products")?);
    let step = Step { name, command, materials, products, cwd: line.cwd.clone() };
    readable(gate, &step.cwd, step.materials.iter().chain(&step.products))?;
    let passed = line.decided(gate)?;
    let told = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let ran = || {
        let (store, session, home) = gate.of_session().ok_or_else(|| io::Error::other("there is no state folder"))?;
        let begun = Begun::of(&store, &session, home, &step).map_err(|error| told(&error))?;
        let ran = line.run(&passed)?;
        // What came of it may lead elsewhere than what was there before.
        readable(gate, &step.cwd, &step.products).map_err(|Refusal(why)| io::Error::other(why))?;
        let code = ran.get("exitCode").and_then(Value::as_f64).map_or(TIMED_OUT, |code| code as i32);
        let attested = begun.ended(code).map_err(|error| told(&error))?;
        Ok(object([("attested", json::to_value(&attested)), ("ran", ran)]))
    };
    finish(gate, &passed, ran())
}

/// Signs what the agent says of a step that the policy names, as the agent's word.
pub fn sign_attestation(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let Some((store, session, home)) = gate.of_session().filter(|_| gate.is_governed()) else {
        return Err(Refusal("no policy governs this folder, so no step is named here".to_owned()));
    };
    let cwd = folder(gate, arguments)?;
    let predicate = match arguments.get("predicate") {
        Some(predicate @ Value::Object(_)) => predicate,
        _ => return Err(Refusal("`predicate` is not an object".to_owned())),
    };
    let said = Reported {
        name: text(arguments, "name")?,
        kind: text(arguments, "predicateType")?,
        predicate,
        products: paths(arguments, "products")?,
        cwd: &cwd,
    };
    readable(gate, &cwd, &said.products)?;
    gate.begin();
    let attested = attest::sign(&store, &session, home, &said).map_err(|error| Refusal(error.to_string()))?;
    Ok(object([("attested", json::to_value(&attested))]))
}

/// Has each file and folder decided as one that is read: its digest tells of it. One that is not there yet is judged by its name.
fn readable<'p>(gate: &Gate, cwd: &Path, paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Refusal> {
    for written in paths {
        let path = cwd.join(written);
        let real = fs::canonicalize(&path).unwrap_or(path);
        let (written, at) = (written.to_string_lossy().into_owned(), real.to_string_lossy().into_owned());
        let call = if real.is_dir() {
            let mut input = Object::new();
            input.push("path", Value::from(at.as_str()));
            let kind =
                ToolKind::Search(Search::Contents { path: Some(at), others: Vec::new(), glob: None, file_type: None });
            ToolCall::of("Grep", kind, Value::Object(input), cwd.to_string_lossy())
        } else {
            file_call(gate, "Read", ToolKind::Read { paths: vec![written, at] }, &real, None)
        };
        let passed = decided(gate, call)?;
        finish(gate, &passed, Ok(Value::Null))?;
    }
    Ok(())
}

/// Files that an argument lists.
fn paths(arguments: &Object, name: &str) -> Result<Vec<PathBuf>, Refusal> {
    let wrong = || Refusal(format!("`{name}` is not a list of paths"));
    let items = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(items) => items.as_array().ok_or_else(wrong)?,
    };
    items.iter().map(|item| item.as_str().map(PathBuf::from).ok_or_else(wrong)).collect()
}

/// A shell line that is to be run.
struct Line<'a> {
    text: &'a str,
    cwd: PathBuf,
    time: Duration,
}

impl<'a> Line<'a> {
    fn of(gate: &Gate, arguments: &'a Object) -> Result<Self, Refusal> {
        let [usual, most] = SECONDS;
        let seconds = match arguments.get("timeout_seconds") {
            None | Some(Value::Null) => usual,
            Some(Value::Number(number)) if *number > 0.0 => number.min(most),
            Some(_) => return Err(Refusal("`timeout_seconds` is not a positive number".to_owned())),
        };
        let (text, cwd) = (text(arguments, "command")?, folder(gate, arguments)?);
        Ok(Self { text, cwd, time: Duration::from_secs_f64(seconds) })
    }

    fn decided(&self, gate: &Gate) -> Result<Box<Passed>, Refusal> {
        let mut input = Object::new();
        input.push("command", Value::from(self.text));
        decided(gate, ToolCall::new("Bash", Value::Object(input), self.cwd.to_string_lossy().into_owned()))
    }

    /// In a sandbox where the decision says so.
    fn run(&self, passed: &Passed) -> io::Result<Value> {
        let granted = passed.input.as_ref().and_then(|input| input.get("command")).and_then(Value::as_str);
        let line = granted.unwrap_or(self.text);
        Ok(told(&Spawn::new(line, &self.cwd, self.time).run()?))
    }
}

/// Reads a file.
pub fn read_file(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let (written, real) = place(gate, arguments)?;
    let kind = ToolKind::Read { paths: vec![written, real.to_string_lossy().into_owned()] };
    let passed = decided(gate, file_call(gate, "Read", kind, &real, None))?;
    let read = || {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&real)?;
        same(&file, &real)?;
        let mut bytes = Vec::new();
        file.take(MOST + 1).read_to_end(&mut bytes)?;
        let cut = bytes.len() as u64 > MOST;
        bytes.truncate(usize::try_from(MOST).unwrap_or(usize::MAX));
        let text = String::from_utf8(bytes).map_err(|_bytes| io::Error::other("it is no text in UTF-8"))?;
        Ok(object([("content", Value::from(text)), ("truncated", Value::Bool(cut))]))
    };
    finish(gate, &passed, read())
}

/// Writes a whole file.
pub fn write_file(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    let content = text(arguments, "content")?;
    let (written, real) = place(gate, arguments)?;
    let kind = ToolKind::Write { paths: vec![written, real.to_string_lossy().into_owned()] };
    let passed = decided(gate, file_call(gate, "Write", kind, &real, Some(content)))?;
    let write = || {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).custom_flags(flags.bits().cast_signed());
        let mut file = options.open(&real)?;
        same(&file, &real)?;
        file.set_len(0)?;
        file.write_all(content.as_bytes())?;
        Ok(object([("bytes", Value::Number(content.len() as f64))]))
    };
    finish(gate, &passed, write())
}

/// Asks for a human's yes to an action that is not run here. Whether it waits is said, with the command that lets it run.
pub fn request_approval(gate: &Gate, arguments: &Object) -> Result<Value, Refusal> {
    match gate.own(named(gate, arguments)?) {
        Ruling::Pass(passed) => {
            gate.after(&passed, Err("it was asked about, and not run".to_owned()));
            Ok(object([("status", Value::from("allowed")), ("detail", Value::from("it needs no approval"))]))
        }
        Ruling::Refused { verdict, reason } => {
            let status = if verdict == writ_core::Verdict::Ask { "waiting" } else { "denied" };
            Ok(object([("status", Value::from(status)), ("detail", Value::from(reason))]))
        }
    }
}

/// The call that `tool` and `input` name.
pub fn named(gate: &Gate, arguments: &Object) -> Result<ToolCall, Refusal> {
    let input = match arguments.get("input") {
        None | Some(Value::Null) => Value::Object(Object::new()),
        Some(input @ Value::Object(_)) => input.clone(),
        Some(other) => return Err(Refusal(format!("`input` is of type {}, not an object", other.kind()))),
    };
    let cwd = folder(gate, arguments)?;
    Ok(ToolCall::new(text(arguments, "tool")?, input, cwd.to_string_lossy().into_owned()))
}

pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn folder(gate: &Gate, arguments: &Object) -> Result<PathBuf, Refusal> {
    Ok(text_of(arguments, "cwd")?.map_or_else(|| gate.cwd().to_owned(), |cwd| gate.cwd().join(cwd)))
}

/// Nothing runs where no policy says what may.
fn decided(gate: &Gate, call: ToolCall) -> Result<Box<Passed>, Refusal> {
    if !gate.is_governed() {
        return Err(Refusal(
            "no policy governs this folder, so Writ runs nothing here: `writ init` makes one".to_owned(),
        ));
    }
    match gate.own(call) {
        Ruling::Pass(passed) => Ok(passed),
        Ruling::Refused { reason, .. } => Err(Refusal(reason)),
    }
}

/// Puts what came of a call on record, then gives it, with what there is to say beside: it has run, whatever that is.
fn finish(gate: &Gate, passed: &Passed, done: io::Result<Value>) -> Result<Value, Refusal> {
    let told = done.as_ref().map(Clone::clone).map_err(ToString::to_string);
    let note = gate.after(passed, told);
    match (done, note) {
        (Ok(Value::Object(mut result)), Some(note)) => {
            result.push("note", Value::from(note));
            Ok(Value::Object(result))
        }
        (Ok(result), _) => Ok(result),
        (Err(error), Some(note)) => Err(Refusal(format!("{error}\n{note}"))),
        (Err(error), None) => Err(Refusal(error.to_string())),
    }
}

/// The path as it was written, and the file that it means now: both are judged.
fn place(gate: &Gate, arguments: &Object) -> Result<(String, PathBuf), Refusal> {
    let written = text(arguments, "path")?;
    let path = gate.cwd().join(written);
    let told = |error: io::Error| Refusal(format!("`{written}`: {error}"));
    let real = match fs::canonicalize(&path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&path).is_err() => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(told(error)) };
            fs::canonicalize(parent).map_err(told)?.join(name)
        }
        Err(error) => return Err(told(error)),
    };
    Ok((written.to_owned(), real))
}

fn file_call(gate: &Gate, tool: &str, kind: ToolKind, real: &Path, content: Option<&str>) -> ToolCall {
    let mut input = Object::new();
    input.push("file_path", Value::from(real.to_string_lossy().into_owned()));
    if let Some(content) = content {
        input.push("content", Value::from(content));
    }
    let cwd = gate.cwd().to_string_lossy().into_owned();
    ToolCall::of(tool, kind, Value::Object(input), cwd)
}

/// Refuses a file that is another than the one that was judged, and what is no plain file.
fn same(file: &File, judged: &Path) -> io::Result<()> {
    let opened = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    if opened != judged {
        return Err(io::Error::other("its name led to another file in the meantime"));
    }
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is no plain file")) }
}

/// How a line ended.
fn told(finished: &Finished) -> Value {
    let code = finished.code.map_or(Value::Null, |code| Value::Number(code.into()));
    let shown = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes).into_owned());
    object([
        ("exitCode", code),
        ("stdout", shown(&finished.out)),
        ("stderr", shown(&finished.err)),
        ("truncated", Value::Bool(finished.cut)),
        ("timedOut", Value::Bool(finished.timed_out)),
    ])
}
