//! A shell line that was decided, run.
//!
//! Owns its limits of time and output, and its end with all that stayed in its process group; what left that for a session of its own
//! goes on. Decides nothing. Invariant: what it wrote while it ran is given back, whoever still holds its streams.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest text of either stream that is given back where nobody says.
pub const MOST: u64 = 1 << 20;
/// How long is waited for what a line left running with its streams open.
const AFTER: Duration = Duration::from_millis(500);
/// Read at once.
const PIECE: usize = 64 << 10;

/// A line, and what it is run with.
pub struct Spawn<'a> {
    line: &'a str,
    cwd: &'a Path,
    time: Duration,
    /// What it reads on its standard input; nothing else.
    pub input: Vec<u8>,
    /// Its variables, where they are not the caller's.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Longest text of either stream that is given back.
    pub most: u64,
}

/// How a line ended.
pub struct Finished {
    /// `None` where its time was up, or a signal ended it.
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
    /// Whether more was written than is given back, or may be: somebody still holds a stream.
    pub cut: bool,
    pub timed_out: bool,
}

impl<'a> Spawn<'a> {
    pub fn new(line: &'a str, cwd: &'a Path, time: Duration) -> Self {
        Self { line, cwd, time, input: Vec::new(), environment: None, most: MOST }
    }

    /// Runs it until it ends or its time is up.
    pub fn run(self) -> io::Result<Finished> {
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(self.line).current_dir(self.cwd);
        if let Some(environment) = self.environment {
            command.env_clear().envs(environment);
        }
        command.stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        let streams =
            [Stream::collect(child.stdout.take(), self.most)?, Stream::collect(child.stderr.take(), self.most)?];
        if let Some(mut stdin) = child.stdin.take() {
            let input = self.input;
            // Whoever does not read its input has no use for it.
            let write = move || drop(stdin.write_all(&input));
            thread::Builder::new().name("input".to_owned()).spawn(write)?;
        }
        let until = Instant::now() + self.time;
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if Instant::now() >= until => break None,
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        let ended = status.is_some() && streams.iter().all(|stream| stream.ends_within(AFTER));
        // What is still running has nobody to speak to. A group that is gone is no error.
        let _gone = kill_process_group(group, Signal::KILL).is_err();
        child.wait()?;
        let [out, err] = streams.map(|stream| {
            let whole = ended || stream.ends_within(AFTER);
            let mut collected = stream.take();
            collected.cut |= !whole;
            collected
        });
        Ok(Finished {
            code: status.and_then(|status| status.code()),
            cut: out.cut || err.cut,
            out: out.bytes,
            err: err.bytes,
            timed_out: status.is_none(),
        })
    }
}

/// What a stream held.
#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    cut: bool,
}

/// A stream that is being read.
struct Stream {
    collected: Arc<Mutex<Collected>>,
    /// Cut off when it has come to its end.
    reading: mpsc::Receiver<()>,
}

impl Stream {
    /// Reads a stream to its end, and keeps at most so much of it.
    fn collect(stream: Option<impl Read + Send + 'static>, most: u64) -> io::Result<Self> {
        let mut stream = stream.ok_or_else(|| io::Error::other("the shell has no pipes"))?;
        let (reads, reading) = mpsc::channel();
        let collected = Arc::new(Mutex::new(Collected::default()));
        let into = Arc::clone(&collected);
        let read = move || {
            let _reads: mpsc::Sender<()> = reads;
            let mut piece = vec![0; PIECE];
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
                let left = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(into.bytes.len());
                let kept = piece.get(..length.min(left)).unwrap_or_default();
                into.bytes.extend_from_slice(kept);
                into.cut |= kept.len() < length;
            }
        };
        thread::Builder::new().name("stream".to_owned()).spawn(read)?;
        Ok(Self { collected, reading })
    }

    /// Waits for its end. Returns whether it came.
    fn ends_within(&self, time: Duration) -> bool {
        !matches!(self.reading.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// What it held so far.
    fn take(&self) -> Collected {
        std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
