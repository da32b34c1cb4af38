//! The hook as each client starts it, for the same shell line, against Claude Code's.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::hook::{Bench, timed};
use crate::measure::{Bar, Figure, percentile};

/// Measured starts of each client's hook, in turns.
const RUNS: usize = 500;
/// Starts before that.
const WARM_UP: usize = 20;
/// The client that the others are held against.
const FIRST: &str = "claude-code";
/// The others.
const OTHERS: [&str; 5] = ["codex", "copilot", "gemini", "opencode", "qwen"];

/// Measures an allowed shell line in a session of each client, under 20 rules.
pub fn run() -> Result<Vec<Figure>> {
    let bench = Bench::new()?;
    let names: Vec<&str> = [FIRST].into_iter().chain(OTHERS).collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); names.len()];
    for number in 0..WARM_UP + RUNS {
        for (name, times) in names.iter().zip(&mut times) {
            let payload = payload(name, &bench.repository().display(), number);
            let (time, output) = timed(bench.command_of(&["hook", "--client", name]), payload.as_bytes())?;
            let text = String::from_utf8_lossy(&output.stdout);
            let refused = ["deny", "block", "refused", "ask"].iter().any(|word| text.contains(word));
            ensure!(output.status.success() && !refused, "the hook of {name} ended with {}: {text}", output.status);
            if number >= WARM_UP {
                times.push(time);
            }
        }
    }
    let rows = bench.rows()?;
    ensure!(rows >= names.len() * (WARM_UP + RUNS), "{rows} rows");
    let mut medians = times.iter_mut().map(|times| percentile(times, 50));
    let first = medians.next().unwrap_or_default();
    let figure = |(name, median): (&str, Duration)| {
        Figure::time(format!("hook of {name}, p50"), median, ("Claude Code's", first), Bar::TimesBaseline(1.1))
    };
    Ok(OTHERS.into_iter().zip(medians).map(figure).collect())
}

/// What a client says before it runs `git status`.
fn payload(client: &str, folder: &dyn Display, number: usize) -> String {
    let line = "git status --short";
    let common = format!(r#""session_id":"bench-{client}","cwd":"{folder}""#);
    match client {
        "copilot" => format!(
            r#"{{"sessionId":"bench-{client}","timestamp":{number},"cwd":"{folder}","toolName":"bash","toolArgs":{{"command":"{line}"}}}}"#
        ),
        "gemini" => format!(
            r#"{{{common},"hook_event_name":"BeforeTool","timestamp":"2026-11-22T02:08:33.403Z","tool_name":"run_shell_command","tool_input":{{"command":"{line}"}}}}"#
        ),
        "opencode" => format!(
            r#"{{"event":"before-call","session":"bench-{client}","cwd":"{folder}","call":{{"id":"call_{number}","tool":"bash","input":{{"command":"{line}"}}}}}}"#
        ),
        _ => {
            let tool = if client == "qwen" { "run_shell_command" } else { "Bash" };
            format!(
                r#"{{{common},"hook_event_name":"PreToolUse","permission_mode":"default","tool_name":"{tool}","tool_input":{{"command":"{line}"}},"tool_use_id":"call_{number}","tool_call_id":"call_{number}"}}"#
            )
        }
    }
}
