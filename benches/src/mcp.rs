//! A call through `writ mcp proxy`, against the same call to the server itself. The server is a line editor: what is measured is the
//! way. The record lies in memory, since what a flush costs is the disk's figure and not the proxy's.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::measure::{Bar, Figure, percentile};
use crate::policy::document;

/// Measured calls of each, in turns.
const RUNS: usize = 2000;
/// Calls before that.
const WARM_UP: usize = 50;
/// A server whose every answer is an empty result.
const SERVER: [&str; 3] = ["sed", "-u", r#"s/.*"id":\([0-9]*\).*/{"jsonrpc":"2.0","id":\1,"result":{"content":[]}}/"#];
/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// Measures allowed calls of one session under 20 rules.
pub fn run() -> Result<Vec<Figure>> {
    let writ = env::var_os("WRIT_BIN").context("WRIT_BIN does not say where the release `writ` is")?;
    ensure!(Path::new(MEMORY).is_dir(), "there is no {MEMORY}");
    let folder = tempfile::tempdir_in(MEMORY)?;
    let git = Command::new("git").args(["init", "--quiet"]).current_dir(folder.path()).status()?;
    ensure!(git.success(), "`git init` failed");
    fs::write(folder.path().join(".aflock"), document(20))?;
    let mut proxy = Command::new(writ);
    proxy.args(["mcp", "proxy", "--name", "bench", "--"]).args(SERVER).current_dir(folder.path());
    proxy.env("HOME", folder.path()).env("WRIT_STATE_DIR", folder.path().join("state"));
    let mut server = Command::new(SERVER[0]);
    server.args(&SERVER[1..]);
    let (mut through, mut straight) = (Client::start(proxy)?, Client::start(server)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + RUNS {
        let (one, other) = (through.call(number)?, straight.call(number)?);
        if number >= WARM_UP {
            ours.push(one);
            theirs.push(other);
        }
    }
    through.end()?;
    straight.end()?;
    let mut figure = |percent, bar| {
        let (ours, theirs) = (percentile(&mut ours, percent), percentile(&mut theirs, percent));
        Figure::time(format!("mcp proxy: a call and its rows, p{percent}"), ours, ("the server itself", theirs), bar)
    };
    Ok(vec![figure(50, Bar::AboveBaseline(Duration::from_micros(500))), figure(99, Bar::None)])
}

struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn call(&mut self, number: usize) -> Result<Duration> {
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{{\"name\":\"read\",\"arguments\":\
             {{\"path\":\"src/dir0/module.rs\"}}}}}}\n"
        );
        let start = Instant::now();
        self.input.write_all(call.as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let took = start.elapsed();
        ensure!(line.contains("\"result\"") && line.contains(&format!("\"id\":{number},")), "no result: {line}");
        Ok(took)
    }

    fn end(mut self) -> Result<()> {
        drop(self.input);
        ensure!(self.child.wait()?.success(), "the program ended badly");
        Ok(())
    }
}
