//! Files whose text nothing in the line changes: what is in them now is what a command will read there.
//!
//! Only where every command so far does nothing but look, at once: what runs a program, writes, fetches or waits leaves time and
//! ways to put something else there. Such a text is taken for a list of names where each line is the path of a file.

use writ_core::Span;

use crate::action::{Access, Command, Dir, Word};
use crate::eval::Eval;

/// Programs that only look, and end by themselves.
const LOOKING: [&str; 38] = [
    "[",
    "[[",
    ":",
    "basename",
    "cat",
    "cd",
    "column",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "file",
    "grep",
    "egrep",
    "fgrep",
    "head",
    "jq",
    "ls",
    "mapfile",
    "md5sum",
    "nl",
    "patch",
    "printf",
    "pwd",
    "read",
    "readarray",
    "rg",
    "set",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "test",
    "true",
    "uniq",
    "wc",
];
/// Subcommands of git that do.
const LOOKS: [&str; 10] =
    ["status", "diff", "log", "show", "rev-parse", "ls-files", "blame", "describe", "branch", "apply"];

impl Eval<'_> {
    /// The text of a file that is a list of paths, where nothing in the line so far may change it.
    pub(crate) fn names_in(&mut self, file: &Word) -> Option<String> {
        let path = file.literal().filter(|_| !file.is_glob() && self.only_looks(None))?;
        let [Dir::Start(dir)] = self.dirs.as_slice() else { return None };
        let folder = crate::eval::dirs::below(&self.start_dir()?, dir);
        let place = crate::eval::dirs::below(&folder, &path);
        let text = self.sources.names(&place, &folder)?;
        self.lists += 1;
        Some(text)
    }

    /// Whether every command so far, or before this one, only looks at files.
    pub(crate) fn only_looks(&self, before: Option<Span>) -> bool {
        let earlier = |span: Span| before.is_none_or(|before| span.end <= before.start);
        let device = |path: String| matches!(path.as_str(), "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty");
        let files = self.out.files.iter().filter(|file| file.access == Access::Write && earlier(file.span));
        self.remote == 0
            && self.out.unresolved.is_empty()
            && self.functions.is_empty()
            && self.aliases.is_empty()
            && self.out.commands.iter().filter(|command| earlier(command.span)).all(looks)
            && files.map(|file| file.path.place()).all(|path| path.is_some_and(device))
    }
}

fn looks(command: &Command) -> bool {
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let Some((name, arguments)) = words.split_first() else { return false };
    let operand = arguments.iter().find(|text| !text.starts_with('-'));
    let has = |flag: &str| arguments.iter().any(|text| text == flag);
    match name.as_str() {
        "git" => operand.is_some_and(|sub| {
            LOOKS.contains(&sub.as_str()) && (sub != "apply" || has("--check") || has("--stat") || has("--numstat"))
        }),
        "patch" => has("--dry-run"),
        // What it runs is a command of its own.
        "xargs" => true,
        name => LOOKING.contains(&name),
    }
}
