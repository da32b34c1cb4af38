//! `writ policy learn`: the tightest policy that lets the calls of past sessions through.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use writ_core::json::{self, Value};
use writ_engine::governing;
use writ_engine::past::PastSession;
use writ_engine::run::learn::calls::{Learn, LearntCalls, learn};

use super::report;
use crate::args::{Format, LearnArgs};
use crate::commands::past::{failure, transcripts};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Most entries of a list that are told on a terminal.
const TOLD: usize = 40;

/// The policy and what was learnt, as one document.
#[derive(Serialize)]
struct Document<'a> {
    policy: Value,
    #[serde(flatten)]
    learnt: &'a LearntCalls,
}

/// Learns it.
pub fn run(args: &LearnArgs) -> Result<(), Failure> {
    human_check::outside_agent("write policies")?;
    let transcripts = transcripts(&args.past)?;
    let home = environment::home();
    let progress = output::Steps::new("sessions", transcripts.len());
    let mut sessions: Vec<PastSession> = Vec::new();
    for (at, transcript) in transcripts.iter().enumerate() {
        progress.reach(at);
        sessions.push(transcript.session().map_err(failure)?);
    }
    progress.reach(transcripts.len());
    let calls: Vec<Learn<'_>> = sessions
        .iter()
        .zip(&transcripts)
        .flat_map(|(session, from)| session.calls.iter().map(|call| Learn { call, client: from.client }))
        .collect();
    let cwd = environment::cwd()?;
    let root = args.past.root.clone().unwrap_or_else(|| governing::repository(&cwd).to_owned());
    let root = std::path::absolute(root)?;
    let learnt = learn(&calls, &root, &home).map_err(report)?;
    let file = std::path::absolute(args.output.as_deref().unwrap_or(&cwd.join(".aflock")))?;
    if args.format.format == Format::Human && file.parent() != Some(root.as_path()) {
        output::note(format!(
            "the patterns start from {}: put the policy there, or learn with `--root` for another folder",
            output::plain(&root.to_string_lossy())
        ));
    }
    if args.format.format == Format::Json {
        let policy = json::parse(learnt.policy.as_bytes()).map_err(Failure::could_not)?;
        let document = Document { policy, learnt: &learnt };
        return match &args.output {
            Some(file) => write(file, &(json::pretty(&json::to_value(&document)) + "\n")),
            None => {
                output::print_json(&document);
                Ok(())
            }
        };
    }
    match &args.output {
        Some(file) => write(file, &learnt.policy)?,
        None => output::document(learnt.policy.trim_end()),
    }
    match &args.notes {
        Some(file) => write(file, &notes(&learnt, usize::MAX))?,
        None => output::note(notes(&learnt, TOLD)),
    }
    Ok(())
}

/// A new file: what is there may govern.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let written = made.and_then(|mut made| made.write_all(text.as_bytes()));
    written.map_err(|error| Failure::could_not(format!("{}: {error}", file.display())))
}

/// What each entry is for, as Markdown. JSON has no comments, and a policy takes no member that is none of its own.
fn notes(learnt: &LearntCalls, most: usize) -> String {
    let mut out = format!("# Learnt from {} calls\n", learnt.calls);
    for (pointer, entries) in &learnt.lists {
        if entries.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {pointer}\n\n"));
        for entry in entries.iter().take(most) {
            let why = match (entry.calls, entry.example.as_str()) {
                (0, _) => String::new(),
                (calls, "") => format!(" — {calls} calls"),
                (calls, example) => format!(" — {calls} calls, as `{}`", output::plain(example)),
            };
            out.push_str(&format!("- `{}`{why}\n", output::plain(&entry.text)));
        }
        let more = entries.len().saturating_sub(most);
        if more > 0 {
            out.push_str(&format!("- and {more} more: `--notes FILE` writes all\n"));
        }
    }
    if !learnt.left_out.is_empty() {
        out.push_str("\n## Left out\n\n");
    }
    for left in &learnt.left_out {
        out.push_str(&format!("- {} calls: {}\n", left.calls, output::plain(&left.why)));
        left.examples.iter().for_each(|example| out.push_str(&format!("  - `{}`\n", output::plain(example))));
    }
    out.push_str("\n## To look at\n\n");
    learnt.remarks.iter().for_each(|remark| out.push_str(&format!("- {}\n", output::plain(remark))));
    out
}
