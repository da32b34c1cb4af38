//! An agent's deeds, as far as they prove something about files.
//!
//! A shell command counts as harmless only when every program in it is known to leave files alone; what it surely writes is
//! named; anything else may have changed everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use writ_claims::{Act, Edit};
use writ_clients::claude_code::story::{self, Deed, Story};
use writ_core::json::Value;
use writ_shell::{Access, Analysis, Command, Dir, Env, Word, analyze};

/// Programs that put nothing back: they read, or write only what they are told to.
const QUIET: &str = include_str!("quiet.txt");

/// The acts of one agent, in order.
pub fn of(story: &Story, home: Option<&str>) -> Vec<Act> {
    let mut out: Vec<Act> = story.deeds.iter().filter_map(|deed| act(deed, home)).collect();
    if !story.whole {
        out.push(Act::Unknown);
    }
    out
}

/// The files that the agents of these transcripts wrote.
pub fn written(transcripts: &[PathBuf]) -> BTreeSet<PathBuf> {
    let stories = transcripts.iter().filter_map(|path| story::read(path));
    let deeds = stories.flat_map(|story| story.deeds).filter(|deed| deed.tool != "Bash");
    deeds.filter_map(|deed| path(&deed)).collect()
}

fn act(deed: &Deed, home: Option<&str>) -> Option<Act> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if deed.tool == "Bash" {
        return command(&text(&deed.input, "command"), deed.cwd.as_deref(), home);
    }
    let path = path(deed)?;
    match deed.succeeded {
        Some(false) => return None,
        None => return Some(Act::Touched { paths: vec![path] }),
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
    Some(Path::new(deed.cwd.as_deref().unwrap_or("/")).join(path))
}

fn command(line: &str, cwd: Option<&str>, home: Option<&str>) -> Option<Act> {
    let env = Env { home: home.map(str::to_owned), cwd: cwd.map(str::to_owned) };
    let analysis = analyze(line, &env);
    let known = analysis.syntax_error.is_none() && analysis.unresolved.is_empty();
    if !known || !analysis.commands.iter().all(is_quiet) {
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
        let path = file.path.literal()?;
        for dir in &file.dirs {
            let Dir::Start(dir) = dir else { return None };
            out.push(cwd.join(dir).join(&path));
        }
    }
    Some(out)
}

fn is_quiet(command: &Command) -> bool {
    let word = |at: usize| command.words.get(at).and_then(Word::literal);
    let Some(program) = word(0) else { return false };
    let base = program.rsplit('/').next().unwrap_or_default();
    let first = command.words.iter().skip(1).filter_map(Word::literal).find(|text| !text.starts_with('-'));
    QUIET.lines().filter(|line| !line.starts_with('#')).any(|line| {
        let mut words = line.split_whitespace();
        let named = words.next() == Some(base);
        let mut subcommands = words.peekable();
        named
            && (subcommands.peek().is_none()
                || first.as_deref().is_some_and(|first| subcommands.any(|own| own == first)))
    })
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
        for unknown in
            ["git checkout -- a", "git stash", "prettier --write .", "./run.sh", "eval $X", "make", "git reset --hard"]
        {
            assert_eq!(act(unknown), Some(Act::Unknown), "{unknown}");
        }
        let touched = |path: &str| Some(Act::Touched { paths: vec![PathBuf::from(path)] });
        assert_eq!(act("echo x > b/c"), touched("/w/b/c"));
        assert_eq!(act("rm old.py"), touched("/w/old.py"));
    }
}
