//! The log: one line an event, written by a thread of its own.
//!
//! Refuses to make a request wait for whoever reads the log: what does not fit into the queue is counted and left out. Invariant: no
//! body, no header and no query of a request is in it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use writ_core::Timestamp;
use writ_core::json::write_string;

/// Most lines that wait.
const WAITING: usize = 8192;

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `time event name=value …`
    Text,
    /// One JSON object a line.
    Json,
}

/// A value of an event.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// A text.
    Text(&'a str),
    /// A number.
    Number(u64),
}

/// Where events go.
#[derive(Clone, Debug)]
pub struct Log {
    style: Style,
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
}

impl Log {
    /// Starts the thread. It ends when the last log is dropped.
    pub fn open(style: Style, sink: Box<dyn Write + Send>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let log = Self { style, lines, lost: Arc::clone(&lost) };
        let thread = std::thread::Builder::new().name("writ-log".to_owned());
        let thread = thread.spawn(move || write(sink, &waiting, style, &lost))?;
        Ok((log, thread))
    }

    /// One event.
    pub fn event(&self, event: &str, fields: &[(&str, Field<'_>)]) {
        if self.lines.try_send(line(self.style, event, fields)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(mut sink: Box<dyn Write + Send>, waiting: &Receiver<String>, style: Style, lost: &AtomicU64) {
    while let Ok(first) = waiting.recv() {
        let mut text = first;
        while text.len() < 1 << 16 {
            let Ok(next) = waiting.try_recv() else { break };
            text.push_str(&next);
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            text.push_str(&line(style, "log_lines_lost", &[("count", Field::Number(lost))]));
        }
        // There is nobody left to tell.
        drop(sink.write_all(text.as_bytes()).and_then(|()| sink.flush()));
    }
}

fn line(style: Style, event: &str, fields: &[(&str, Field<'_>)]) -> String {
    let now = Timestamp::now();
    let mut out = String::with_capacity(160);
    match style {
        Style::Json => out.push_str(&format!("{{\"time\":\"{now}\",\"event\":\"{event}\"")),
        Style::Text => out.push_str(&format!("{now} {event}")),
    }
    for (name, value) in fields {
        match style {
            Style::Json => out.push_str(&format!(",\"{name}\":")),
            Style::Text => out.push_str(&format!(" {name}=")),
        }
        match value {
            Field::Number(number) => out.push_str(&number.to_string()),
            Field::Text(text) if style == Style::Text && plain(text) => out.push_str(text),
            Field::Text(text) => write_string(text, &mut out),
        }
    }
    out.push_str(if style == Style::Json { "}\n" } else { "\n" });
    out
}

/// Whether a text is one word that cannot be taken for something else.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"=\\".contains(&byte))
}
