//! The log: one line an event, written by a thread of its own.
//!
//! `tracing-subscriber` makes the lines, as text or JSON. The writer is by hand: `tracing-appender` bounds lines and not bytes, wakes its
//! thread and calls the system for each line, and tells nobody how many it lost. Refuses to make a request wait for whoever reads the
//! log: what does not fit into the queue is counted and left out. Invariant: no body, no header and no query of a request is in it.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter};

use super::is_ours;

/// Most bytes that wait.
const WAITING: usize = 1 << 20;
/// How long a line may wait for others: waking a thread for each costs more than the line.
const GATHER: Duration = Duration::from_millis(20);

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// `time level name=value …`
    Text,
    /// One JSON object a line.
    Json,
}

/// Where lines wait to be written.
#[derive(Clone, Debug, Default)]
pub struct LogQueue(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    text: String,
    lost: u64,
    writing: bool,
    ended: bool,
}

/// What turns events into lines.
pub fn lines<S>(style: Style, queue: LogQueue) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let ours = filter::filter_fn(|metadata| metadata.is_event() && is_ours(metadata));
    let layer = layer().with_writer(queue).with_ansi(false).with_target(false);
    match style {
        Style::Text => layer.with_filter(ours).boxed(),
        Style::Json => {
            layer.json().flatten_event(true).with_current_span(false).with_span_list(false).with_filter(ours).boxed()
        }
    }
}

impl LogQueue {
    /// Starts the thread that writes. It ends at [`LogQueue::end`].
    pub fn write_to(&self, sink: Box<dyn Write + Send>) -> io::Result<JoinHandle<()>> {
        let queue = self.clone();
        std::thread::Builder::new().name("writ-log".to_owned()).spawn(move || queue.work(sink))
    }

    /// Waits until what waits is written, but not longer than a second.
    pub fn flush(&self) {
        let unwritten = |lines: &mut Lines| lines.writing || !lines.text.is_empty();
        drop(self.0.changed.wait_timeout_while(self.lines(), Duration::from_secs(1), unwritten));
    }

    /// Lets the thread write what waits, and end.
    pub fn end(&self) {
        self.lines().ended = true;
        self.0.changed.notify_all();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, mut sink: Box<dyn Write + Send>) {
        loop {
            let waits = |lines: &mut Lines| lines.text.is_empty() && !lines.ended;
            let lines = self.0.changed.wait_while(self.lines(), waits).unwrap_or_else(PoisonError::into_inner);
            let waited = self.0.changed.wait_timeout_while(lines, GATHER, |lines| !lines.ended);
            let mut lines = waited.unwrap_or_else(PoisonError::into_inner).0;
            let (text, lost) = (std::mem::take(&mut lines.text), std::mem::take(&mut lines.lost));
            if text.is_empty() {
                return;
            }
            lines.writing = true;
            drop(lines);
            // There is nobody left to tell.
            drop(sink.write_all(text.as_bytes()).and_then(|()| sink.flush()));
            self.lines().writing = false;
            self.0.changed.notify_all();
            if lost > 0 {
                tracing::warn!(event = "log_lines_lost", count = lost);
            }
        }
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &LogQueue {
    /// Takes a whole line, or leaves it out.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut lines = self.lines();
        if lines.text.len() + text.len() > WAITING {
            lines.lost += 1;
            return Ok(line.len());
        }
        let first = lines.text.is_empty();
        lines.text.push_str(&text);
        drop(lines);
        if first {
            self.0.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// A reader that takes nothing until it is let go.
    struct Stuck(mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().ok();
            self.1.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_nobody_reads_hold_nothing_up() {
        let (queue, (go, stuck)) = (LogQueue::default(), mpsc::channel());
        let written = Arc::new(Mutex::new(Vec::new()));
        let thread = queue.write_to(Box::new(Stuck(stuck, Arc::clone(&written)))).unwrap();
        let subscriber = tracing_subscriber::registry().with(lines(Style::Json, queue.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let long = "x".repeat(1000);
            (0..3000).for_each(|number| tracing::info!(event = "answered", number, long));
            tracing::info!(target: "hyper", event = "foreign");
        });
        drop(go);
        queue.end();
        thread.join().unwrap();
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let (mut count, mut last) = (0, None);
        for line in written.lines() {
            let line = writ_core::json::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(line.get("event").and_then(writ_core::json::Value::as_str), Some("answered"));
            (count, last) = (count + 1, Some(line));
        }
        assert!((500..2500).contains(&count), "{count}");
        assert!(last.unwrap().get("level").is_some());
    }
}
