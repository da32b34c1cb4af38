//! `writ decide`: calls as JSON in, decisions as JSON out.

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_clients::DEFAULT;
use writ_core::json::{self, Limits, Value};
use writ_core::{Decision, ToolCall, Verdict};
use writ_engine::governing::Governing;
use writ_engine::governing::layers::Caller;

use crate::args::DecideArgs;
use crate::commands::policy::open;
use crate::environment;
use crate::exit::Failure;
use crate::input::{self, Line};
use crate::output;

/// Longest line of standard input.
const MAX_LINE: u64 = 16 << 20;

/// Decides one call, or one a line.
pub fn run(args: &DecideArgs) -> Result<(), Failure> {
    let governing = open(&args.policy, args.root.as_deref())?;
    let root = folder(&governing, args.root.as_deref())?;
    if let (Some(tool), Some(input)) = (&args.tool, &args.input) {
        if tool.is_empty() {
            return Err(Failure::malformed("`--tool` is empty: give a tool's name".to_owned()));
        }
        let call = ToolCall::new(tool.clone(), input_value(input)?, root);
        let decision = decide(&governing, &call, Caller::Main);
        output::print_json_line(&decision);
        return if decision.verdict == Verdict::Allow { Ok(()) } else { Err(Failure::No) };
    }
    let mut stdin = std::io::stdin().lock();
    let mut wrong = 0;
    for number in 1.. {
        let Some(line) = input::line(&mut stdin, MAX_LINE)? else { break };
        let call = match line {
            Line::Whole(line) => read_call(&line, &root),
            Line::Blank => continue,
            Line::TooLong => Err(format!("longer than {} MiB", MAX_LINE >> 20)),
        };
        output::print_json_line(&match call {
            Ok(call) => json::to_value(&decide(&governing, &call, Caller::Main)),
            Err(why) => {
                wrong += 1;
                malformed(number, &why)
            }
        });
    }
    if wrong == 0 {
        Ok(())
    } else {
        Err(Failure::malformed(format!("{wrong} lines are no calls; each was denied in its place")))
    }
}

/// Decides under the user's own surroundings.
pub fn decide(governing: &Governing, call: &ToolCall, caller: Caller<'_>) -> Decision {
    writ_engine::decide::now(governing, call, caller, DEFAULT, &environment::home())
}

/// The folder calls hang off: the given root, else the policy's own folder, absolute.
pub fn folder(governing: &Governing, root: Option<&Path>) -> Result<String, Failure> {
    let folder = root.map_or_else(|| governing.path.parent().map(Path::to_owned), |root| Some(root.to_owned()));
    let folder = folder.unwrap_or_else(|| PathBuf::from("/"));
    let absolute = std::path::absolute(&folder)?;
    Ok(absolute.to_string_lossy().into_owned())
}

/// Reads a tool's input.
pub fn input_value(text: &str) -> Result<Value, Failure> {
    input::json("--input", text.as_bytes(), Limits::FOREIGN)
}

fn read_call(line: &[u8], root: &str) -> Result<ToolCall, String> {
    let value = json::parse_with(line, Limits::FOREIGN).map_err(|error| input::told(line, &error))?;
    let tool = value.get("tool").and_then(Value::as_str).filter(|tool| !tool.is_empty());
    let tool = tool.ok_or("no member `tool` with a tool's name")?;
    let input = value.get("input").cloned().ok_or("no member `input`")?;
    let cwd = match value.get("cwd") {
        None | Some(Value::Null) => root.to_owned(),
        Some(cwd) => {
            let cwd = cwd.as_str().ok_or("`cwd` is not a string")?;
            Path::new(root).join(cwd).to_string_lossy().into_owned()
        }
    };
    Ok(ToolCall::new(tool, input, cwd))
}

/// A line that is no call is denied in its place, so that answers and lines stay in step.
#[derive(Serialize)]
struct Malformed {
    #[serde(flatten)]
    decision: Decision,
    error: String,
}

fn malformed(number: usize, why: &str) -> Value {
    let decision = Decision { verdict: Verdict::Deny, reasons: Vec::new() };
    json::to_value(&Malformed { decision, error: format!("line {number}: {why}") })
}
