//! Turns: the tree over a transcript against hashing its bytes, and 10,000 statements verified against their bare signatures.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use writ_clients::Client;
use writ_clients::claude_code::ClaudeCode;
use writ_clients::transcript;
use writ_core::{Digest, SessionId};
use writ_engine::turns::predicate::{PREDICATE_TYPE, Turn};
use writ_engine::turns::reading::Reader;
use writ_engine::verify::{self, Options, Status};
use writ_engine::{Home, hook};
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::PublicKey;
use writ_store::Store;

use crate::measure::{Bar, Figure};

/// Size of the transcript.
const SIZE: u64 = 1_000_000_000;
/// Turns of the long session.
const TURNS: u64 = 10_000;
/// How often each is measured.
const RUNS: usize = 3;

/// Measures the tree.
pub fn tree() -> Result<Vec<Figure>> {
    Ok(vec![over(tempfile::tempdir()?.path())?])
}

/// Measures the statements.
pub fn run() -> Result<Vec<Figure>> {
    statements(tempfile::tempdir()?.path())
}

/// The least time of a few runs.
fn least<T>(mut work: impl FnMut() -> Result<T>) -> Result<(Duration, T)> {
    let mut best: Option<(Duration, T)> = None;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let out = work()?;
        let took = begun.elapsed();
        if best.as_ref().is_none_or(|(known, _)| took < *known) {
            best = Some((took, out));
        }
    }
    best.context("nothing was measured")
}

/// A transcript as a client writes it: prompts, answers with their usage, results of tools.
fn write_transcript(path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut size, mut number) = (0, 0_u64);
    let result = "a line of a file that a tool gave back\\n".repeat(100);
    while size < SIZE {
        let prompt = format!(
            r#"{{"type":"user","message":{{"role":"user","content":"prompt {number}"}},"timestamp":"2026-01-18T10:30:00.000Z"}}"#
        );
        writeln!(out, "{prompt}")?;
        size += prompt.len() as u64 + 1;
        for call in 0..10 {
            let said = format!(
                r#"{{"type":"assistant","message":{{"id":"msg_{number}_{call}","model":"claude-sonnet-4-5","content":[{{"type":"tool_use","id":"toolu_{number}_{call}","name":"Read","input":{{"file_path":"/w/src/{call}.rs"}}}}],"usage":{{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":70000}}}}}}"#
            );
            let got = format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{number}_{call}","content":"{result}"}}]}}}}"#
            );
            writeln!(out, "{said}\n{got}")?;
            size += (said.len() + got.len()) as u64 + 2;
        }
        number += 1;
    }
    Ok(out.flush()?)
}

fn over(folder: &Path) -> Result<Figure> {
    let main = folder.join("talk.jsonl");
    write_transcript(&main)?;
    let bytes = fs::metadata(&main)?.len();
    let transcripts = ClaudeCode.transcripts().context("this client keeps transcripts")?;
    let (hashed, digest) = least(|| Ok(transcript::digest(&main, 0, bytes)?))?;
    ensure!(digest.is_some(), "the transcript is shorter than it was written");
    let (took, at) = least(|| {
        let mut reader = Reader::<Digest>::default();
        reader.read(transcripts, &main)?;
        Ok(reader.at())
    })?;
    ensure!(at == bytes, "{at} of {bytes} bytes were read");
    fs::remove_file(&main)?;
    let name = "tree: over a transcript of 1 GB";
    let figure = Figure::time(name, took, ("SHA-256 of the same bytes", hashed), Bar::SpeedOfBaseline(0.5));
    Ok(Figure { bytes: Some(usize::try_from(bytes)?), ..figure })
}

/// A policy that wants turns attested, and one that does not.
const POLICIES: [&str; 2] =
    [r#"{"version":"1.0","name":"turns","attestationsFrom":["turn-*"]}"#, r#"{"version":"1.0","name":"turns"}"#];

/// A session of many turns, as hooks leave it.
struct Talk {
    home: Home,
    repository: PathBuf,
    transcript: PathBuf,
}

impl Talk {
    fn begin(folder: &Path, policy: &str) -> Result<Self> {
        let repository = folder.join("repository");
        fs::create_dir_all(&repository)?;
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status()?;
        ensure!(git.success(), "`git init` failed");
        fs::write(repository.join(".aflock"), policy)?;
        let home = Home { state: Some(folder.join("state")), user: Some(folder.to_owned()), ..Home::default() };
        Ok(Self { home, repository, transcript: folder.join("turns.jsonl") })
    }

    fn tell(&self, event: &str, members: &str) {
        let (cwd, transcript) = (self.repository.display(), self.transcript.display());
        let payload = format!(
            r#"{{"session_id":"bench","transcript_path":"{transcript}","cwd":"{cwd}","permission_mode":"default","hook_event_name":"{event}"{members}}}"#
        );
        drop(hook::answer(payload.as_bytes(), &ClaudeCode, &self.home, &self.repository));
    }

    /// The session's folder.
    fn session(&self) -> Result<PathBuf> {
        let state = self.home.state.clone().context("it has a state folder")?;
        Ok(Store::open(state)?.folder(&SessionId::new("bench")))
    }

    fn turns(&self) -> Result<()> {
        let mut out = File::create(&self.transcript)?;
        self.tell("SessionStart", r#","source":"startup""#);
        for number in 0..TURNS {
            self.tell("UserPromptSubmit", r#","prompt":"go on""#);
            writeln!(
                out,
                r#"{{"type":"user","message":{{"role":"user","content":"go on"}},"timestamp":"2026-01-18T10:30:00.000Z"}}
{{"type":"assistant","message":{{"id":"m-{number}","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"Done."}}],"usage":{{"input_tokens":3,"output_tokens":5}}}}}}"#
            )?;
            self.tell("Stop", r#","stop_hook_active":false"#);
        }
        Ok(())
    }
}

fn statements(folder: &Path) -> Result<Vec<Figure>> {
    let [with, without] = POLICIES.map(|policy| {
        let folder = folder.join(Digest::of(policy.as_bytes()).hex());
        Talk::begin(&folder, policy)
    });
    let (talk, other) = (with?, without?);
    let begun = Instant::now();
    talk.turns()?;
    let made = begun.elapsed() / u32::try_from(TURNS)?;
    other.turns()?;
    let session = talk.session()?;
    let key = PublicKey::from_pem(&fs::read_to_string(session.join("ledger.pub"))?)?;
    let files: Vec<PathBuf> = fs::read_dir(session.join("attestations"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    ensure!(files.len() as u64 == TURNS, "{} statements of {TURNS} turns", files.len());
    let (bare, _) = least(|| {
        for file in &files {
            let envelope = Envelope::parse(&fs::read(file)?)?;
            drop(envelope.verify_statement_of::<Turn>(PREDICATE_TYPE, std::slice::from_ref(&key))?);
        }
        Ok(())
    })?;
    let verified = |talk: &Talk| {
        let key = PublicKey::from_pem(&fs::read_to_string(talk.session()?.join("ledger.pub"))?)?;
        Ok(verify::folder(&talk.session()?, &talk.home, &Options { key: Some(key), ..Options::default() })?)
    };
    let (rows, _) = least(|| verified(&other))?;
    let (whole, report) = least(|| verified(&talk))?;
    ensure!(report.status == Status::Verified, "{:?}", report.status);
    let passed = report.phases.iter().any(|phase| phase.summary.starts_with(&format!("{TURNS} attestations of turns")));
    ensure!(passed, "not every turn is attested");
    // What the same session costs without them is no part of it.
    let name = format!("turns: {TURNS} statements verified");
    let rest = whole.saturating_sub(rows);
    Ok(vec![
        Figure::time(name, rest, ("their signatures and parsing", bare), Bar::TimesBaseline(1.2)),
        Figure::time(
            "turns: a turn's two hooks, in process",
            made,
            ("a statement verified", bare / u32::try_from(TURNS)?),
            Bar::None,
        ),
    ])
}
