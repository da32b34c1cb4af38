//! Shell lines: what analysing them takes.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use writ_shell::{Env, analyze};

use crate::measure::{Bar, Figure, per_call};

/// Ten commands as an agent chains them; it writes only below `src/dir0`.
pub const TEN_COMMANDS: &str = "cd src/dir0 && git status --short && cargo build --release 2>&1 | tee build.log; \
    npm test -- --watch=false && grep -rn 'TODO' . | sort | uniq -c > todo.txt && mkdir -p out && cp todo.txt out/";

/// Measures one command and ten.
pub fn run() -> Result<Vec<Figure>> {
    let bar = Bar::AtMost(Duration::from_micros(50));
    Ok(vec![figure("one command", "git status --short", 1, Bar::None)?, figure("ten commands", TEN_COMMANDS, 10, bar)?])
}

fn figure(name: &str, line: &str, commands: usize, bar: Bar) -> Result<Figure> {
    let words = per_call(|| black_box(line).split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    Ok(Figure::time(format!("shell: {name}"), analyzed(line, commands)?, ("split at white space", words), bar))
}

/// How long the analysis of a line takes, once it has found the commands that are there.
pub fn analyzed(line: &str, commands: usize) -> Result<Duration> {
    let env = Env { home: Some("/home/agent".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() };
    let found = analyze(line, &env).commands.len();
    ensure!(found == commands, "{found} commands found in a line that has {commands}: {line}");
    Ok(per_call(|| analyze(black_box(line), &env)))
}
