//! An agent's deeds, as far as they prove something about files.
//!
//! A shell command counts as harmless only when every program in it is known to leave files alone; what it surely writes is
//! named; anything else may have changed everything.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use writ_claims::{Act, Edit, Repository, resolved};
use writ_clients::claude_code::story::{self, Deed, EDITED, Story};
use writ_core::Timestamp;
use writ_core::json::Value;
use writ_shell::{Access, Analysis, Command, Dir, Env, analyze};

/// Programs that put nothing back: they read, or write only what they are told to.
const QUIET: &str = include_str!("quiet.txt");

/// Most folders of an agent that a claimed path is tried from.
const MAX_FOLDERS: usize = 64;

/// The acts of one agent, in order.
pub fn of(story: &Story, home: Option<&str>) -> Vec<Act> {
    let mut out: Vec<Act> = story.deeds.iter().filter_map(|deed| act(deed, home)).collect();
    let lasting = |deed: &Deed| is_lasting(deed) && act(deed, home) == Some(Act::Unknown);
    if !story.whole || story.deeds.iter().any(lasting) {
        out.push(Act::Unknown);
    }
    out
}

/// Whether a call may still be at work after its result: in the background, or another agent.
fn is_lasting(deed: &Deed) -> bool {
    let background = deed.input.get("run_in_background").and_then(Value::as_bool).unwrap_or(false);
    background || matches!(deed.tool.as_str(), "Agent" | "Task")
}

/// The folders an agent worked in, absolute: those of its calls, and those its commands went to.
pub fn folders(story: &Story, home: Option<&str>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        if folder.is_absolute() && out.len() < MAX_FOLDERS && !out.contains(&folder) {
            out.push(folder);
        }
    };
    for deed in &story.deeds {
        let cwd = deed.cwd.clone().map(PathBuf::from).unwrap_or_default();
        add(cwd.clone());
        let line = deed.input.get("command").and_then(Value::as_str).filter(|_| deed.tool == "Bash");
        let Some(line) = line.filter(|line| line.contains("cd ") || line.contains("-C")) else { continue };
        let env = Env { home: home.map(str::to_owned), cwd: deed.cwd.clone(), ..Env::default() };
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

/// What the agents of these transcripts did since then. An agent that only waits for another one does nothing.
pub fn others(transcripts: &[PathBuf], home: Option<&str>, since: Option<Timestamp>) -> Others {
    let mut out = Others::default();
    let deeds = transcripts.iter().filter_map(|path| story::read(path)).flat_map(|story| story.deeds);
    let meanwhile = |deed: &Deed| deed.ended.is_none_or(|ended| since.is_none_or(|since| ended >= since));
    for deed in deeds.filter(|deed| meanwhile(deed) && !matches!(deed.tool.as_str(), "Agent" | "Task")) {
        match act(&deed, home) {
            Some(Act::Touched { paths }) => out.written.extend(paths),
            Some(Act::Unknown) => out.unknown = true,
            Some(Act::Wrote { path, .. } | Act::Edited { path, .. }) => drop(out.written.insert(path)),
            None => {}
        }
    }
    out
}

fn act(deed: &Deed, home: Option<&str>) -> Option<Act> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if deed.tool == "Bash" {
        return command(&text(&deed.input, "command"), deed.cwd.as_deref(), home);
    }
    if !matches!(deed.tool.as_str(), "Write" | "Edit" | "MultiEdit" | "NotebookEdit" | EDITED) {
        return Some(Act::Unknown);
    }
    let path = path(deed)?;
    match deed.succeeded {
        Some(false) => return None,
        None => return Some(Act::Touched { paths: vec![path] }),
        Some(true) if deed.altered => return Some(Act::Touched { paths: vec![path] }),
        Some(true) => {}
    }
    let edit = |value: &Value| Edit {
        old: text(value, "old_string"),
        new: text(value, "new_string"),
        all: value.get("replace_all").and_then(Value::as_bool).unwrap_or(false),
    };
    Some(match deed.tool.as_str() {
        "Write" => Act::Wrote { path, content: text(&deed.input, "content") },
        // An edit of nothing makes the file.
        "Edit" if text(&deed.input, "old_string").is_empty() => {
            Act::Wrote { path, content: text(&deed.input, "new_string") }
        }
        "Edit" => Act::Edited { path, edits: vec![edit(&deed.input)] },
        "MultiEdit" => {
            let edits = deed.input.get("edits").and_then(Value::as_array).unwrap_or_default();
            Act::Edited { path, edits: edits.iter().map(edit).collect() }
        }
        _ => Act::Touched { paths: vec![path] },
    })
}

fn path(deed: &Deed) -> Option<PathBuf> {
    let name = if deed.tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
    let path = Path::new(deed.input.get(name)?.as_str()?);
    Some(resolved(&Path::new(deed.cwd.as_deref().unwrap_or("/")).join(path)))
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
    QUIET.lines().filter(|line| !line.starts_with('#')).any(|line| {
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
    let mut repositories = dirs.filter_map(|dir| Repository::around(&dir).ok());
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
