//! A long transcript, read and parsed by one thread while another works on the lines before.
//!
//! Owns the way of lines from one to the other. Refuses to start a thread for a short one. Invariant: the same lines are told in the same
//! order, with or without it. Page: `spec/turns.md`.

use std::io;
use std::mem;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread;

use writ_core::Timestamp;

use crate::transcript::{Line, Reach, TranscriptError, Transcripts};
use crate::usage::Spoken;

/// From how many bytes on a transcript is long.
const LONG: u64 = 4 << 20;
/// Bytes that are handed over at once; a line that is longer goes as it is.
const BATCH: usize = 256 << 10;
/// Lines at most: empty ones have next to no bytes.
const MOST_LINES: usize = 4096;

/// Lines on their way.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    lines: Vec<Held>,
}

/// A line without its bytes.
struct Held {
    length: usize,
    ends: bool,
    end: u64,
    prompt: Option<Option<Timestamp>>,
    spoken: Option<Spoken>,
}

impl Batch {
    fn add(&mut self, line: Line<'_>) {
        let Line { bytes, ends, end, prompt, spoken } = line;
        self.bytes.extend_from_slice(bytes);
        self.lines.push(Held { length: bytes.len(), ends, end, prompt, spoken });
    }

    fn tell(self, take: &mut dyn FnMut(Line<'_>)) {
        let mut rest = self.bytes.as_slice();
        for Held { length, ends, end, prompt, spoken } in self.lines {
            let (bytes, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            take(Line { bytes, ends, end, prompt, spoken });
            rest = behind;
        }
    }
}

/// Tells what [`Transcripts::lines`] tells.
pub fn lines(
    transcripts: &dyn Transcripts,
    path: &Path,
    from: u64,
    take: &mut dyn FnMut(Line<'_>),
) -> Result<Reach, TranscriptError> {
    if path.metadata().is_ok_and(|found| found.len().saturating_sub(from) >= LONG) {
        told_ahead(transcripts, path, from, take)
    } else {
        transcripts.lines(path, from, take)
    }
}

fn told_ahead(
    transcripts: &dyn Transcripts,
    path: &Path,
    from: u64,
    take: &mut dyn FnMut(Line<'_>),
) -> Result<Reach, TranscriptError> {
    thread::scope(|scope| {
        // One batch waits while another is worked on.
        let (send, receive) = sync_channel::<Batch>(1);
        let read = move || {
            let mut batch = Batch::default();
            let reach = transcripts.lines(path, from, &mut |line| {
                batch.add(line);
                if batch.bytes.len() >= BATCH || batch.lines.len() >= MOST_LINES {
                    // It is waited for as long as this thread runs.
                    drop(send.send(mem::take(&mut batch)));
                }
            });
            drop(send.send(batch));
            reach
        };
        match thread::Builder::new().name("transcript".to_owned()).spawn_scoped(scope, read) {
            Ok(reading) => {
                receive.into_iter().for_each(|batch| batch.tell(take));
                let ended = || io::Error::other("the thread that reads it ended");
                reading.join().unwrap_or_else(|_| Err(TranscriptError::Io { path: path.to_owned(), source: ended() }))
            }
            Err(_) => transcripts.lines(path, from, take),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use crate::claude_code::ClaudeCode;

    type Take<'a> = &'a mut dyn FnMut(Line<'_>);

    #[test]
    fn the_same_is_told_with_a_thread_and_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.jsonl");
        let mut text = String::new();
        for number in 0..3000 {
            text += &format!(
                r#"{{"type":"user","message":{{"role":"user","content":"prompt {number}"}},"timestamp":"2026-01-18T10:30:00.000Z"}}"#
            );
            text += "\nnot json \"usage\"\n\n";
            text += &format!(
                r#"{{"type":"assistant","message":{{"id":"m{number}","model":"x","content":"{}","usage":{{"output_tokens":{number}}}}}}}"#,
                "a".repeat(number)
            );
            text += "\n";
        }
        std::fs::write(&path, text + "{\"cut\":").unwrap();
        let kept = ClaudeCode.transcripts().unwrap();
        let told = |tell: &dyn Fn(Take<'_>) -> Reach| {
            let mut all = Vec::new();
            let reach = tell(&mut |line| all.push(format!("{line:?}")));
            (all, reach)
        };
        for from in [0, path.metadata().unwrap().len() / 2] {
            let plain = told(&|take| kept.lines(&path, from, take).unwrap());
            assert!(plain.0.len() > 1000 && plain.1.torn);
            assert!(plain == told(&|take| told_ahead(kept, &path, from, take).unwrap()));
            assert!(plain == told(&|take| lines(kept, &path, from, take).unwrap()));
        }
        let gone = folder.path().join("gone");
        assert!(told_ahead(kept, &gone, 0, &mut |_line| ()).is_err());
    }
}
