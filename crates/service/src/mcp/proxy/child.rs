//! A server that is a child of this process, on its standard input and output.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::relay::Relay;
use super::{Client, each_line, when_stopped};
use crate::mcp::line_transport::{Next, next};

/// How long a server has to end when its client has nothing more to say, and again when it is told to.
const GRACE: Duration = Duration::from_millis(800);

/// Starts the server and relays until one of the two ends. What the server ended with.
pub fn run(
    relay: Relay,
    words: &[OsString],
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    tell: fn(&str),
) -> io::Result<ExitStatus> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let (Some(mut to_server), Some(from_server)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the server has no pipes"));
    };
    let (relay, client) = (Arc::new(relay), Arc::new(Client::new(output, tell)));
    when_stopped(move || end(group))?;
    let (sent, told) = (Arc::clone(&relay), Arc::clone(&client));
    let send = move || {
        let ended = each_line(BufReader::new(input), &told, |line| {
            let step = sent.from_client(line);
            told.note(step.note.as_deref());
            told.lines(&step.back)?;
            step.on.map_or(Ok(()), |bytes| to_server.write_all(&bytes).and_then(|()| to_server.flush()))
        });
        // A server that has ended is told about where its output ends.
        drop((ended, to_server));
        thread::sleep(GRACE);
        end(group);
    };
    thread::Builder::new().name("client".to_owned()).spawn(send)?;
    let relayed = receive(&relay, &client, BufReader::new(from_server));
    end_soon(&mut child, group);
    let status = child.wait()?;
    // A client that is gone is told nothing; the record is.
    let _gone = client.lines(&relay.gone(&format!("the server has ended ({status})"))).is_err();
    relay.gate().close();
    relayed.map(|()| status)
}

/// Relays what the server says until it says no more.
fn receive<W: Write>(relay: &Relay, client: &Client<W>, mut input: BufReader<impl Read>) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        match next(&mut input, &mut line)? {
            Next::End => return Ok(()),
            Next::TooLong => client.note(Some("a line of the server's is too long and is not relayed")),
            Next::Line => {
                let step = relay.from_server(&line);
                client.note(step.note.as_deref());
                if let Some(bytes) = step.on
                    && client.write(&bytes).is_err()
                {
                    // The client is gone: what the server still says is for nobody, but its calls are on record.
                    return Ok(());
                }
            }
        }
    }
}

/// Ends the server's whole group: a launcher's child outlives its launcher. One that is gone already is no error.
fn end(group: Pid) {
    for signal in [Signal::TERM, Signal::KILL] {
        if kill_process_group(group, signal).is_err() {
            return;
        }
        thread::sleep(GRACE);
    }
}

/// Gives a server whose output has ended a moment, then ends it.
fn end_soon(child: &mut Child, group: Pid) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    // What the launcher left behind, too.
    let _gone = kill_process_group(group, Signal::KILL).is_err();
}
