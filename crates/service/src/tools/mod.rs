//! A declared tool, called: its line run, its request sent, its server asked.
//!
//! Owns what comes of a call once it was let through, and that it is on record. Decides nothing: the gate does, before anything is run or
//! sent. Invariant: nothing is run or sent without a row on disk, every call that was let through has its result there, and no secret's value
//! is in a result, an error or a row (R8). Page: `spec/tools.md`.

mod request;

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use writ_agentfile::tool::{Description, Request};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::{ToolCall, Verdict};
use writ_engine::mcp::{Gate, Passed, Ruling, Wanted};
use zeroize::Zeroizing;

use crate::mcp::ask::Server;
use crate::spawn::{Finished, MOST, Spawn};

/// Longest result when nobody says, and at most.
pub const OUTPUT: [u64; 2] = [MOST, 16 << 20];
/// Most letters of an answer that is an error.
const QUOTED: usize = 500;
/// What a program needs to find its way.
const VARIABLES: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM"];

/// What holds a call beside its policy.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long it may take.
    pub time: Duration,
    /// Longest result, in bytes.
    pub output: u64,
}

/// What came of a call.
#[derive(Debug)]
pub enum Called {
    /// It was not let through.
    Refused {
        /// Whether a human could let it.
        verdict: Verdict,
        /// Which rule, and why.
        reason: String,
    },
    /// It was, and is on record with its result.
    Done(Done),
}

/// A call that was let through.
#[derive(Debug)]
pub struct Done {
    /// Its result; or why there is none.
    pub result: Result<Value, String>,
    /// What a program wrote to its standard output, where it failed, and to its standard error.
    pub streams: [String; 2],
    /// What the human is to be told.
    pub note: Option<String>,
}

impl Done {
    fn of(result: Result<Value, String>) -> Self {
        Self { result, streams: [String::new(), String::new()], note: None }
    }
}

/// What a line is run with.
#[derive(Debug, Default)]
pub struct Given {
    /// What it reads on its standard input.
    pub input: Vec<u8>,
    /// Variables of the caller's beside those that every program gets.
    pub inherited: Vec<String>,
    /// Variables of the caller's that it never gets.
    pub withheld: Vec<String>,
}

/// Where the values of a request's variables come from: asked when the request is let through.
pub type Values<'a> = dyn Fn() -> Result<Vec<(String, Zeroizing<String>)>, String> + 'a;

/// Calls a tool that is a shell line. `call` holds the line; in a sandbox where the decision says so.
pub fn line(gate: &Gate, call: ToolCall, given: Given, tool: &Description, bounds: Bounds) -> Called {
    let text = call.text("command").unwrap_or_default().to_owned();
    let cwd = call.cwd.clone();
    decided(gate.own(call), gate, |passed| {
        let granted = passed.input.as_ref().and_then(|input| input.get("command")).and_then(Value::as_str);
        let mut spawn = Spawn::new(granted.unwrap_or(&text), Path::new(&cwd), bounds.time);
        spawn.environment = Some(environment(&given, granted.is_some()));
        (spawn.input, spawn.most) = (given.input, bounds.output);
        match spawn.run() {
            Ok(finished) => ended(&finished, tool, bounds),
            Err(error) => Done::of(Err(format!("it cannot be run: {error}"))),
        }
    })
}

/// Calls a tool that is an HTTP request.
pub fn http(
    gate: &Gate,
    call: ToolCall,
    (request, values): (&Request, &Values<'_>),
    tool: &Description,
    bounds: Bounds,
) -> Called {
    decided(gate.own(call), gate, |_passed| {
        let sent = values().and_then(|values| request::send(request, &values, bounds));
        Done::of(sent.and_then(|result| fits(tool, result)))
    })
}

/// Calls a tool of an MCP server.
pub fn server(
    gate: &Gate,
    server: &mut Server,
    (name, arguments): (&str, &Object),
    tool: &Description,
    bounds: Bounds,
) -> Called {
    decided(gate.before(Wanted::tool(name, Value::Object(arguments.clone())), None), gate, |_passed| {
        let answer = server.call(name, arguments, bounds.time);
        Done::of(answer.and_then(|answer| answered(&answer, bounds)).and_then(|result| fits(tool, result)))
    })
}

/// Does what was let through, and puts what came of it on record.
fn decided(ruling: Ruling, gate: &Gate, call: impl FnOnce(&Passed) -> Done) -> Called {
    match ruling {
        Ruling::Refused { verdict, reason } => Called::Refused { verdict, reason },
        Ruling::Pass(passed) => {
            let mut done = call(&passed);
            done.note = gate.after(&passed, done.result.clone());
            Called::Done(done)
        }
    }
}

/// What a program gets of the caller's variables. In a sandbox that is the sandbox's to say, but for what is withheld from all.
fn environment(given: &Given, confined: bool) -> Vec<(OsString, OsString)> {
    let wanted = |name: &str| {
        let named = VARIABLES.contains(&name) || given.inherited.iter().any(|one| one == name);
        (confined || named) && !given.withheld.iter().any(|one| one == name)
    };
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(wanted)).collect()
}

/// What a program's end comes to.
fn ended(finished: &Finished, tool: &Description, bounds: Bounds) -> Done {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let result = match finished {
        Finished { timed_out: true, .. } => Err(format!("its time was up after {} s", bounds.time.as_secs())),
        Finished { code: Some(0), cut: true, .. } => Err(too_long(bounds)),
        Finished { code: Some(0), .. } => match std::str::from_utf8(&finished.out) {
            Ok(out) => fits(tool, read(out, tool)),
            Err(_) => Err("its output is no text in UTF-8".to_owned()),
        },
        Finished { code: Some(code), .. } => Err(format!("it ended with exit code {code}")),
        Finished { code: None, .. } => Err("a signal ended it".to_owned()),
    };
    let out = if finished.code != Some(0) { text(&finished.out) } else { String::new() };
    Done { result, streams: [out, text(&finished.err)], note: None }
}

fn too_long(bounds: Bounds) -> String {
    format!("its result is longer than {} bytes (`LIMIT max_output`)", bounds.output)
}

/// JSON where it is some, else the text; a tool that gives a text gives that.
fn read(out: &str, tool: &Description) -> Value {
    let text = out.strip_suffix('\n').unwrap_or(out);
    let kind = tool.outputs.as_ref().and_then(|outputs| outputs.get("type")).and_then(Value::as_str);
    let parsed = json::parse_with(text.trim().as_bytes(), Limits::FOREIGN).ok().filter(|_| kind != Some("string"));
    parsed.unwrap_or_else(|| Value::from(text))
}

/// A result that is what its tool gives.
fn fits(tool: &Description, result: Value) -> Result<Value, String> {
    let told = |wrong: Vec<writ_agentfile::tool::Mismatch>| {
        let told: Vec<String> = wrong.iter().map(|one| format!("`{}` {}", one.pointer, one.why)).collect();
        format!("its result is not what its description says: {}", told.join("; "))
    };
    tool.result(&result).map_err(told).map(|()| result)
}

/// What a server's answer comes to: its structured content, else its text, else all of its content.
fn answered(answer: &Value, bounds: Bounds) -> Result<Value, String> {
    let content = answer.get("content").and_then(Value::as_array).unwrap_or_default();
    let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    let texts: Option<Vec<String>> = content.iter().map(text).collect();
    if answer.get("isError").and_then(Value::as_bool) == Some(true) {
        let told = texts.unwrap_or_default().join("\n");
        return Err(format!("the tool says: {}", told.chars().take(QUOTED).collect::<String>()));
    }
    let result = match (answer.get("structuredContent"), texts) {
        (Some(structured), _) => structured.clone(),
        (None, Some(texts)) => Value::from(texts.join("\n")),
        (None, None) => Value::Array(content.to_vec()),
    };
    if json::compact(&result).len() as u64 > bounds.output { Err(too_long(bounds)) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    const BOUNDS: Bounds = Bounds { time: Duration::from_secs(1), output: 40 };

    #[test]
    fn an_answer_is_its_structure_its_text_or_all_of_it() {
        for (answer, expected) in [
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, Ok(r#""a\nb""#)),
            (r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{"a":1}}"#, Ok(r#"{"a":1}"#)),
            (r#"{"content":[{"type":"image","data":"AA"}]}"#, Ok(r#"[{"type":"image","data":"AA"}]"#)),
            (r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#, Err("the tool says: no")),
            (
                r#"{"content":[{"type":"text","text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}"#,
                Err("longer than 40"),
            ),
        ] {
            match (answered(&value(answer), BOUNDS), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, value(expected)),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{answer}: {found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn a_programs_text_stays_one_where_that_is_what_it_gives() {
        let tool = |outputs: &str| Description::of(&value(&format!(r#"{{"outputs":{outputs}}}"#))).unwrap();
        assert_eq!(read("42\n", &tool(r#"{"type":"string"}"#)), Value::from("42"));
        assert_eq!(read("42\n", &tool("{}")), Value::Number(42.0));
        assert_eq!(read("a b\n\n", &tool("{}")), Value::from("a b\n"));
        assert!(fits(&tool(r#"{"type":"object"}"#), Value::from("x")).unwrap_err().contains("description"));
    }
}
