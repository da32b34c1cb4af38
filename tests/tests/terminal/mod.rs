//! `writ` at a terminal that a test makes.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::workplace::Workplace;

pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// `writ` with these words at a terminal of its own, which types `typed`; `before` are words in front of the terminal.
pub fn at_a_terminal(place: &Workplace, before: &[&str], words: &str, typed: &str) -> (bool, String) {
    let writ = place.command(&[]);
    let line = format!("{} {words}", writ.get_program().display());
    let log = place.folder.join("terminal.log");
    let whole = [before, &["script", "-qefc", &line, log.to_str().unwrap()]].concat();
    let mut command = Command::new(whole[0]);
    command.args(&whole[1..]).current_dir(place.folder.join("repository")).env_clear().env("PATH", PATH);
    command.envs(writ.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("script(1)");
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sent, drawn) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(1..) = screen.read(&mut part) {
            sent.send(()).ok();
        }
    });
    for line in typed.split_inclusive('\n') {
        // As a person does, who types when asked: something is shown, however long it takes, and then nothing more.
        if drawn.recv_timeout(Duration::from_secs(20)).is_ok() {
            while drawn.recv_timeout(Duration::from_millis(500)).is_ok() {}
        }
        // Who is refused at the first question is not asked the second.
        drop(keys.write_all(line.as_bytes()));
    }
    drop(keys);
    let done = child.wait().unwrap().success();
    reader.join().unwrap();
    (done, fs::read_to_string(log).unwrap_or_default())
}
