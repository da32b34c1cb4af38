//! The client's settings: whether each event reaches one hook of Writ's, and whether that hook answers.

use std::path::{Path, PathBuf};

use writ_clients::claude_code::ClaudeCode;
use writ_clients::claude_code::settings::{SHELL_VARIABLE, inspect};
use writ_clients::settings::{Installed, Start, is_bash};
use writ_clients::{CLIENTS, DEFAULT};
use writ_core::regular_file;
use writ_engine::{Home, governing};

use super::{Finding, Look, bad, better, client, dry_run, good};
use crate::environment;

/// Files that look like settings, and in which the client reads no hooks.
const MISPLACED: [&str; 6] = [
    ".claude.json",
    ".claude/hooks.json",
    ".claude/hooks/hooks.json",
    ".claude/settings.hooks.json",
    ".claude/config.json",
    "settings.json",
];
/// Largest settings file.
const MAX_SETTINGS: u64 = 64 << 20;
const AGAIN: &str = "run `writ init`";

/// Everything about the hooks of every client that is here.
pub fn check(home: &Home, cwd: &Path, how: Look) -> Vec<Finding> {
    let others: Vec<_> = CLIENTS
        .into_iter()
        .filter(|client| client.name() != DEFAULT.name())
        .filter_map(|client| client::check(client, home, cwd, how))
        .collect();
    let held = others.iter().any(|client| client.installed);
    let own = claude_code(home, cwd, how, held);
    own.into_iter().chain(others.into_iter().flat_map(|client| client.findings)).collect()
}

/// Everything about the hooks of Claude Code. `held` says that another client has hooks here.
fn claude_code(home: &Home, cwd: &Path, how: Look, held: bool) -> Vec<Finding> {
    let project = governing::repository(cwd);
    let Some(places) = home.places(&ClaudeCode, project) else {
        return vec![bad("cannot tell where the client's settings are", "set HOME")];
    };
    let mut findings = Vec::new();
    let mut installed: Vec<&PathBuf> = Vec::new();
    let mut shell = None;
    for path in &places.settings {
        let Ok(text) = regular_file::text(path, MAX_SETTINGS) else { continue };
        match inspect(Some(&text)) {
            Err(error) => findings.push(bad(
                format!("{}: {error}{}, and ignores every hook in it", path.display(), cause(&error)),
                format!("repair the JSON in {}, then run `writ init`", path.display()),
            )),
            Ok(found) => {
                shell = found.shell.clone().or(shell);
                findings.extend(switches(path, &found));
                if !found.starts.is_empty() {
                    installed.push(path);
                    findings.extend(look(path, &found, cwd, how));
                }
            }
        }
    }
    match installed.as_slice() {
        [] if held => findings
            .push(better("no settings file installs hooks for Claude Code", "if it is used here, run `writ init`")),
        [] => findings.push(nowhere(home, project, cwd)),
        [_] => {}
        [one, ..] => findings.push(bad(
            format!("the hooks are installed twice, also in {}: every call is recorded twice", one.display()),
            if *one == &places.user { "run `writ init --undo --user`" } else { "run `writ init --undo`" },
        )),
    }
    findings.extend(which_shell(shell.as_deref()));
    findings
}

fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(String::new, |source| format!(" ({source})"))
}

/// Switches that take the hooks' effect away.
fn switches(path: &Path, found: &Installed) -> Vec<Finding> {
    let mut out = Vec::new();
    let shown = path.display();
    if found.disabled {
        out.push(bad(format!("{shown} switches all hooks off"), format!("remove `disableAllHooks` from {shown}")));
    }
    for pointer in &found.posted_open {
        out.push(bad(
            format!("{shown}: the entry at {pointer} posts to a notary, and lets the tool run when it does not answer"),
            format!("add `\"onFailure\": \"block\"` to the entry at {pointer} in {shown}"),
        ));
    }
    for name in &found.moves {
        let text = format!("{shown} sets {name}, so that hooks look for their state elsewhere than commands do");
        out.push(bad(text, format!("remove {name} from `env` in {shown}")));
    }
    out
}

/// No settings file installs the hooks; perhaps one that the client does not read does.
fn nowhere(home: &Home, project: &Path, cwd: &Path) -> Finding {
    let above = cwd.ancestors().skip_while(|dir| *dir == project).map(|dir| dir.join(".claude/settings.json"));
    let beside = [Some(project.to_owned()), home.user.clone()].into_iter().flatten();
    let near = beside
        .flat_map(|dir| MISPLACED.map(|name| dir.join(name)))
        .chain(above.filter(|path| !path.starts_with(project.join(".claude"))));
    let misplaced = near.into_iter().find(|path| {
        let found = regular_file::text(path, MAX_SETTINGS).ok().and_then(|text| inspect(Some(&text)).ok());
        found.is_some_and(|found| !found.starts.is_empty())
    });
    match misplaced {
        Some(path) => {
            bad(format!("{} holds the hooks, and the client does not read them there", path.display()), AGAIN)
        }
        None => bad("no settings file installs the hooks: the client never asks", AGAIN),
    }
}

fn look(path: &Path, found: &Installed, cwd: &Path, how: Look) -> Vec<Finding> {
    let mut out = Vec::new();
    let shown = path.display();
    let mut say = |text: String| out.push(bad(text, AGAIN));
    if !found.missing.is_empty() {
        say(format!("{shown} lacks hooks for {}", found.missing.join(", ")));
    }
    if !found.twice.is_empty() {
        say(format!("{shown} has more than one hook for {}", found.twice.join(", ")));
    }
    if !found.hurried.is_empty() {
        say(format!(
            "{shown} gives the hook too little time for {}: the client kills it and runs the tool",
            found.hurried.join(", ")
        ));
    }
    if !found.fails_open.is_empty() {
        say(format!("{shown}: a hook that crashes lets the tool run ({})", found.fails_open.join(", ")));
    }
    for pointer in &found.narrowed {
        say(format!("{shown}: the hook at {pointer} does not see every call"));
    }
    if found.starts.len() > 1 || found.starts.iter().any(|start| start.args.is_none()) {
        say(format!("{shown} holds hook entries of an older form"));
    }
    for pointer in &found.rejected {
        let remedy = format!("mend or remove the entry at {pointer} in {shown}, then run `writ init`");
        out.push(bad(
            format!("{shown}: the client refuses the entry at {pointer}, and with it every hook of that event"),
            remedy,
        ));
    }
    for start in &found.starts {
        out.extend(starts(path, start, cwd, how));
    }
    if out.is_empty() {
        let answer = if how == Look::Answers { ", and answer" } else { "" };
        out.push(good(format!("hooks are installed in {shown}{answer}")));
    }
    out
}

/// Whether the very command line in the settings answers.
fn starts(path: &Path, start: &Start, cwd: &Path, how: Look) -> Option<Finding> {
    let shown = path.display();
    let program = &start.command;
    if start.args.is_some() {
        let place = if program.contains('/') {
            Some(PathBuf::from(program)).filter(|path| path.is_file())
        } else {
            environment::search_path().into_iter().map(|dir| dir.join(program)).find(|path| path.is_file())
        };
        if place.is_none() {
            return Some(bad(format!("{shown} starts `{program}`, which is not there"), AGAIN));
        }
    }
    if how == Look::Settings {
        return None;
    }
    dry_run::call(DEFAULT, start, cwd)
        .err()
        .map(|why| bad(format!("{shown} starts `{program}`, which does not answer as a hook: {why}"), AGAIN))
}

/// The shell that the client runs its lines with.
fn which_shell(pinned: Option<&str>) -> Option<Finding> {
    match pinned {
        Some(shell) if !is_bash(shell) => Some(bad(
            format!("{SHELL_VARIABLE} has the client run `{shell}`: lines are read as bash reads them"),
            AGAIN,
        )),
        None if environment::runs_zsh() => Some(bad(
            "the client runs zsh here: lines that bash and zsh read differently ask",
            "run `writ init`, which has it run bash",
        )),
        Some(_) | None => None,
    }
}
