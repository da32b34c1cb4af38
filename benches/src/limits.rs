//! What limits cost: a hook under each, and a transcript of 100 MB read again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use writ_clients::Client;
use writ_clients::claude_code::ClaudeCode;
use writ_clients::meter::Meter;

use crate::hook;
use crate::measure::{Bar, Figure, percentile};

/// How often it is read again.
const RUNS: usize = 50;
/// Size of the transcript.
const SIZE: usize = 100_000_000;

/// Measures both.
pub fn run() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let main = folder.path().join("talk.jsonl");
    let filler = "x".repeat(4000);
    let line = |number: usize| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{number:024}","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{filler}"}}],"usage":{{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":70000}}}}}}"#
        ) + "\n"
    };
    let mut text = String::with_capacity(SIZE + filler.len() * 2);
    let mut messages = 0;
    while text.len() < SIZE {
        text.push_str(&line(messages));
        messages += 1;
    }
    fs::write(&main, text)?;
    let transcripts = ClaudeCode.transcripts().context("this client keeps transcripts")?;
    let begun = Instant::now();
    let mut meter = Meter::default();
    meter.read(transcripts, &main)?;
    let first = begun.elapsed();
    let mut kept = meter.to_bytes();
    let mut again = Vec::new();
    for _ in 0..RUNS {
        OpenOptions::new().append(true).open(&main)?.write_all(line(messages).as_bytes())?;
        messages += 1;
        let begun = Instant::now();
        let mut meter = Meter::from_bytes(&kept).context("what was kept reads")?;
        meter.read(transcripts, &main)?;
        kept = meter.to_bytes();
        again.push(begun.elapsed());
        let output: u64 = meter.agents().values().map(|agent| agent.tokens().output).sum();
        ensure!(output == messages as u64 * 5, "{output} of {messages} messages");
    }
    let again = Figure::time(
        "limits: 100 MB of transcript read again",
        percentile(&mut again, 50),
        ("read for the first time", first),
        Bar::AtMost(Duration::from_millis(5)),
    );
    let mut figures = vec![again];
    figures.extend(hook::limited(&main)?);
    Ok(figures)
}
