//! A shell line that was decided, run.
//!
//! Owns its limits of time and output, and its end with all that it started. Decides nothing. Invariant: nothing of it is left when its
//! result is told.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest text of either stream that is given back where nobody says.
pub const MOST: u64 = 1 << 20;
/// How long is waited for what a line left running with its streams open.
const AFTER: Duration = Duration::from_millis(500);

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
    /// Whether more was written than is given back.
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
        let streams = (collect(child.stdout.take(), self.most)?, collect(child.stderr.take(), self.most)?);
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
        let first = status.is_some().then(|| (streams.0.recv_timeout(AFTER), streams.1.recv_timeout(AFTER)));
        // What is still running has nobody to speak to. A group that is gone is no error.
        let _gone = kill_process_group(group, Signal::KILL).is_err();
        child.wait()?;
        let text = |early: Option<Result<Collected, _>>, stream: &mpsc::Receiver<Collected>| {
            early.and_then(Result::ok).or_else(|| stream.recv_timeout(AFTER).ok()).unwrap_or_default()
        };
        let (out, err) = match first {
            Some((out, err)) => (text(Some(out), &streams.0), text(Some(err), &streams.1)),
            None => (text(None, &streams.0), text(None, &streams.1)),
        };
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

/// Reads a stream to its end, and keeps as much of it as is given back.
fn collect(stream: Option<impl Read + Send + 'static>, most: u64) -> io::Result<mpsc::Receiver<Collected>> {
    let mut stream = stream.ok_or_else(|| io::Error::other("the shell has no pipes"))?;
    let (tell, told) = mpsc::sync_channel(1);
    let read = move || {
        let mut bytes = Vec::new();
        let kept = stream.by_ref().take(most).read_to_end(&mut bytes);
        let cut = kept.is_ok() && io::copy(&mut stream, &mut io::sink()).is_ok_and(|more| more > 0);
        // Whoever waited has given up.
        drop(tell.send(Collected { bytes, cut }));
    };
    thread::Builder::new().name("stream".to_owned()).spawn(read)?;
    Ok(told)
}
