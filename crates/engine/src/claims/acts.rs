//! An agent's actions, as far as they prove something about files.
//!
//! A shell command counts as harmless only when every program in it is known to leave files alone; what it surely writes is
//! named; anything else may have changed everything.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use writ_claims::{Act, Edit, Repository, resolved};
use writ_clients::work::{Action, Change, Replacement, Work};
use writ_core::{Timestamp, ToolKind};
use writ_shell::{Access, Analysis, Command, Dir, Env, analyze};

/// Programs that put nothing back: they read, or write only what they are told to.
const KNOWN_EFFECTS: &str = include_str!("known_effects.txt");

/// Most folders of an agent that a claimed path is tried from.
const MAX_FOLDERS: usize = 64;

/// The acts of one agent, in order.
pub fn of(work: &Work, home: Option<&str>) -> Vec<Act> {
    let mut out: Vec<Act> = work.actions.iter().filter_map(|action| act(action, home)).collect();
    let lasting = |action: &Action| action.lasting && act(action, home) == Some(Act::Unknown);
    if !work.whole || work.actions.iter().any(lasting) {
        out.push(Act::Unknown);
    }
    out
}

/// The folders an agent worked in, absolute: those of its calls, and those its commands went to.
pub fn folders(work: &Work, home: Option<&str>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        if folder.is_absolute() && out.len() < MAX_FOLDERS && !out.contains(&folder) {
            out.push(folder);
        }
    };
    for action in &work.actions {
        let cwd = action.cwd.clone().map(PathBuf::from).unwrap_or_default();
        add(cwd.clone());
        let ToolKind::Shell { command: line } = &action.kind else { continue };
        if !line.contains("cd ") && !line.contains("-C") {
            continue;
        }
        let env = Env { home: home.map(str::to_owned), cwd: action.cwd.clone(), ..Env::default() };
        let analysis = analyze(line, &env);
        let dirs = analysis.commands.iter().flat_map(|command| &command.dirs);
        let dirs = dirs.chain(analysis.files.iter().flat_map(|file| &file.dirs));
        for dir in dirs {
            if let Dir::Start(dir) = dir {
                add(resolved(&cwd.join(dir)));
            }
        }
        for command in &analysis.commands {
            let words: Vec<String> = command.words.iter().filter_map(writ_shell::Word::literal).collect();
            let given = words.windows(2).filter_map(|pair| pair.split_first()).filter(|(option, _)| *option == "-C");
            given.filter_map(|(_, folder)| folder.first()).for_each(|folder| add(resolved(&cwd.join(folder))));
        }
    }
    out
}

/// What other agents did meanwhile.
#[derive(Default)]
pub struct Others {
    /// The files they wrote, or ran commands on.
    pub written: BTreeSet<PathBuf>,
    /// Whether one ran a command that may have changed anything.
    pub unknown: bool,
}

/// What other agents did since then. An agent that only waits for another one does nothing.
pub fn others(works: impl Iterator<Item = Work>, home: Option<&str>, since: Option<Timestamp>) -> Others {
    let mut out = Others::default();
    let meanwhile = |action: &Action| action.ended.is_none_or(|ended| since.is_none_or(|since| ended >= since));
    let waits = |action: &Action| matches!(action.kind, ToolKind::Delegate { .. });
    for action in works.flat_map(|work| work.actions).filter(|action| meanwhile(action) && !waits(action)) {
        match act(&action, home) {
            Some(Act::Touched { paths }) => out.written.extend(paths),
            Some(Act::Unknown) => out.unknown = true,
            Some(Act::Wrote { path, .. } | Act::Edited { path, .. }) => drop(out.written.insert(path)),
            None => {}
        }
    }
    out
}

fn act(action: &Action, home: Option<&str>) -> Option<Act> {
    let paths = match &action.kind {
        ToolKind::Shell { command: line } => return command(line, action.cwd.as_deref(), home),
        ToolKind::Write { paths } | ToolKind::Edit { paths, .. } => paths,
        // A call without what its tool needs does nothing.
        ToolKind::Malformed { .. } => return None,
        ToolKind::Read { .. }
        | ToolKind::Search(_)
        | ToolKind::Fetch { .. }
        | ToolKind::WebSearch
        | ToolKind::Delegate { .. }
        | ToolKind::Mcp { .. }
        | ToolKind::Own
        | ToolKind::Other => return Some(Act::Unknown),
    };
    let cwd = Path::new(action.cwd.as_deref().unwrap_or("/"));
    let mut paths: Vec<PathBuf> = paths.iter().map(|path| resolved(&cwd.join(path))).collect();
    match action.succeeded {
        Some(false) => return None,
        Some(true) if !action.altered && paths.len() == 1 => {}
        Some(true) | None => return Some(Act::Touched { paths }),
    }
    let edit = |part: &Replacement| Edit { old: part.old.clone(), new: part.new.clone(), all: part.all };
    match &action.change {
        Change::Unknown => Some(Act::Touched { paths }),
        Change::Content(content) => paths.pop().map(|path| Act::Wrote { path, content: content.clone() }),
        Change::Edits(edits) => paths.pop().map(|path| Act::Edited { path, edits: edits.iter().map(edit).collect() }),
    }
}

fn command(line: &str, cwd: Option<&str>, home: Option<&str>) -> Option<Act> {
    let env = Env { home: home.map(str::to_owned), cwd: cwd.map(str::to_owned), ..Env::default() };
    let analysis = analyze(line, &env);
    let known = analysis.syntax_error.is_none() && analysis.unresolved.is_empty();
    if !known || !analysis.commands.iter().all(is_quiet) {
        return Some(Act::Unknown);
    }
    if analysis.commands.iter().any(|command| runs_git_hooks(command, Path::new(cwd.unwrap_or("/")), home)) {
        return Some(Act::Unknown);
    }
    let paths = writes(&analysis, Path::new(cwd.unwrap_or("/")));
    match paths {
        None => Some(Act::Unknown),
        Some(paths) if paths.is_empty() => None,
        Some(paths) => Some(Act::Touched { paths }),
    }
}

/// What a command writes; `None` when that is not known to the last path.
fn writes(analysis: &Analysis, cwd: &Path) -> Option<Vec<PathBuf>> {
    let mut out = Vec::new();
    for file in analysis.files.iter().filter(|file| file.access == Access::Write) {
        let path = file.path.literal().filter(|_| !file.path.is_glob())?;
        for dir in &file.dirs {
            let Dir::Start(dir) = dir else { return None };
            out.push(resolved(&cwd.join(dir).join(&path)));
        }
    }
    Some(out)
}

fn is_quiet(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let Some((program, words)) = words.split_first() else { return false };
    let base = program.rsplit('/').next().unwrap_or_default();
    let first = words.iter().find(|word| !word.starts_with('-'));
    if words.iter().any(|word| is_writing(base, word)) {
        return false;
    }
    KNOWN_EFFECTS.lines().filter(|line| !line.starts_with('#')).any(|line| {
        let mut own = line.split_whitespace();
        let named = own.next() == Some(base);
        let mut own = own.peekable();
        let given = |own: &str| {
            if own.starts_with('-') {
                words.iter().any(|word| word == own)
            } else {
                first.is_some_and(|first| first == own)
            }
        };
        named && (own.peek().is_none() || own.any(given))
    })
}

/// Whether a command has git run hooks that are there: a formatter before the commit, say.
fn runs_git_hooks(command: &Command, cwd: &Path, home: Option<&str>) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(writ_shell::Word::literal).collect();
    let is_git = words.first().is_some_and(|program| program.rsplit('/').next() == Some("git"));
    if !is_git || !words.iter().any(|word| matches!(word.as_str(), "commit" | "push")) {
        return false;
    }
    let dirs = command.dirs.iter().map(|dir| match dir {
        Dir::Start(dir) => cwd.join(dir),
        Dir::Open(_) | Dir::Unknown => cwd.to_owned(),
    });
    let mut repositories = dirs.filter_map(|dir| Repository::containing(&dir).ok());
    repositories.any(|repository| {
        let configured =
            |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.to_ascii_lowercase().contains("hookspath"));
        let hook = |entry: fs::DirEntry| {
            let sample = entry.path().extension().is_some_and(|kind| kind == "sample");
            !sample && entry.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        configured(&repository.common.join("config"))
            || home.is_some_and(|home| configured(&Path::new(home).join(".gitconfig")))
            || fs::read_dir(repository.common.join("hooks")).into_iter().flatten().flatten().any(hook)
    })
}

/// Whether a word makes a program that reads one that writes, or runs another.
fn is_writing(program: &str, word: &str) -> bool {
    let any = ["--fix", "--write", "--update", "--snapshot-update", "--output", "--in-place", "--inplace"];
    let of_program: &[&str] = match program {
        "find" => &["-delete", "-exec", "-ok", "-fprint", "-fls"],
        "fd" => &["-x", "-X", "--exec"],
        "jest" | "vitest" => &["-u"],
        "tree" => &["-o"],
        _ => &[],
    };
    any.iter().chain(of_program).any(|mark| word.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_harmless_named_or_unknown() {
        let act = |line: &str| command(line, Some("/w"), None);
        for quiet in
            ["ls -la", "cargo test && git status", "git add . && git commit -m x", "cat a | grep b", "pytest -q"]
        {
            assert_eq!(act(quiet), None, "{quiet}");
        }
        for unknown in [
            "git checkout -- a",
            "git stash",
            "prettier --write .",
            "./run.sh",
            "eval $X",
            "make",
            "git reset --hard",
            "rm *.py",
            "find . -delete",
            "cargo clippy --fix",
            "tsc -p .",
        ] {
            assert_eq!(act(unknown), Some(Act::Unknown), "{unknown}");
        }
        let touched = |path: &str| Some(Act::Touched { paths: vec![PathBuf::from(path)] });
        assert_eq!(act("echo x > b/c"), touched("/w/b/c"));
        assert_eq!(act("rm old.py"), touched("/w/old.py"));
        assert_eq!(act("rm -rf ../w/old"), touched("/w/old"));
        assert_eq!(act("tsc --noEmit"), None);
    }
}
