//! Decisions, without a process or a ledger around them.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use writ_core::json::{Object, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_engine::decide::FileSystem;
use writ_policy::{Lexical, Policy, Setting, World, decide};

use crate::measure::{Bar, Figure, per_call};
use crate::policy::{document, parse};
use crate::shell::{TEN_COMMANDS, analyzed};

/// Measures a file call and a shell line under 100 rules.
pub fn run() -> Result<Vec<Figure>> {
    let (large, small) = (parse(&document(100))?, parse(&document(10))?);
    let file = call("Write", "file_path", "/work/src/dir0/deep/er/module.rs");
    let line = call("Bash", "command", TEN_COMMANDS);
    let ten = ("the same under 10 rules", time(&small, &file, &Lexical)?);
    let analysis = analyzed(TEN_COMMANDS, 10)?;
    let (short, long) = (Bar::AtMost(Duration::from_micros(10)), Bar::AtMost(Duration::from_micros(100)));
    Ok(vec![
        Figure::time("decide: file, 100 rules", time(&large, &file, &Lexical)?, ten, short),
        Figure::time("decide: file, 100 rules, on disk", time(&large, &file, &FileSystem::default())?, ten, Bar::None),
        Figure::time(
            "decide: ten commands, 100 rules",
            time(&large, &line, &Lexical)?,
            ("their analysis alone", analysis),
            long,
        ),
    ])
}

fn time(policy: &Policy, call: &ToolCall, world: &dyn World) -> Result<Duration> {
    let setting = Setting { now: Timestamp::now(), home: Some("/home/agent".to_owned()), protected: Vec::new() };
    let decision = decide(policy, call, &setting, world);
    ensure!(decision.verdict == Verdict::Allow, "not allowed: {:?}", decision.reasons);
    Ok(per_call(|| decide(black_box(policy), black_box(call), &setting, world)))
}

fn call(tool: &str, name: &str, text: &str) -> ToolCall {
    let mut input = Object::new();
    input.push(name, Value::from(text));
    ToolCall::new(tool, Value::from(input), "/work")
}
