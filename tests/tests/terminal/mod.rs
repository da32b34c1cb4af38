//! `writ` at a terminal that a test makes.

use std::fs;
use std::process::{Command, Stdio};

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
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("script(1)");
    let mut keys = child.stdin.take().unwrap();
    for line in typed.split_inclusive('\n') {
        // As a person does, who types when asked.
        std::thread::sleep(std::time::Duration::from_millis(1000));
        // Who is refused at the first question is not asked the second.
        drop(std::io::Write::write_all(&mut keys, line.as_bytes()));
    }
    drop(keys);
    let output = child.wait_with_output().unwrap();
    (output.status.success(), fs::read_to_string(log).unwrap_or_default())
}
