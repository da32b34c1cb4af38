//! The log: one line an event, written by a thread of its own.
//!
//! Refuses to make a request wait for whoever reads the log: what does not fit into the queue is counted and left out. Invariant: no
//! body, no header and no query of a request is in it.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use writ_core::Timestamp;
use writ_core::json::write_string;

/// Most bytes that wait.
const WAITING: usize = 1 << 20;
/// How long a line may wait for others: waking a thread for each costs more than the line.
const GATHER: Duration = Duration::from_millis(20);

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
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Mutex<Lines>,
    come: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    text: String,
    lost: u64,
    ended: bool,
}

impl Log {
    /// Starts the thread. It ends at [`Log::end`].
    pub fn open(style: Style, sink: Box<dyn Write + Send>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let log = Self { style, queue: Arc::default() };
        let queue = Arc::clone(&log.queue);
        let thread = std::thread::Builder::new().name("writ-log".to_owned());
        let thread = thread.spawn(move || write(sink, &queue, style))?;
        Ok((log, thread))
    }

    /// One event.
    pub fn event(&self, event: &str, fields: &[(&str, Field<'_>)]) {
        let line = line(self.style, event, fields);
        let mut lines = self.queue.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.text.len() + line.len() > WAITING {
            lines.lost += 1;
            return;
        }
        let first = lines.text.is_empty();
        lines.text.push_str(&line);
        drop(lines);
        if first {
            self.queue.come.notify_one();
        }
    }

    /// Lets the thread write what waits, and end.
    pub fn end(&self) {
        self.queue.lines.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.queue.come.notify_one();
    }
}

fn write(mut sink: Box<dyn Write + Send>, queue: &Queue, style: Style) {
    let mut ended = false;
    while !ended {
        let lines = queue.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |lines: &mut Lines| lines.text.is_empty() && !lines.ended;
        let lines = queue.come.wait_while(lines, waits).unwrap_or_else(PoisonError::into_inner);
        let waited = queue.come.wait_timeout_while(lines, GATHER, |lines| !lines.ended);
        let mut lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        ended = lines.ended;
        let mut text = std::mem::take(&mut lines.text);
        let lost = std::mem::take(&mut lines.lost);
        drop(lines);
        if lost > 0 {
            text.push_str(&line(style, "log_lines_lost", &[("count", Field::Number(lost))]));
        }
        if !text.is_empty() {
            // There is nobody left to tell.
            drop(sink.write_all(text.as_bytes()).and_then(|()| sink.flush()));
        }
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
