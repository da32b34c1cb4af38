//! What Writ knows of each program: the entries of `data/programs/*.toml`, as the build script sorted them.
//!
//! Owns the shape of an entry and how it is found; what it leads to is for the readers of operands, of inner commands and of
//! variables. Invariant: nothing is read or sorted at start-up. Page: `spec/programs.md`.

pub(crate) mod shown;
pub(crate) mod words;

use crate::options::Spec;
use crate::programs::entries::words::{Operands, Prints, Role, Run, Stdin, Variable};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

/// One program, or several whose entry is the same.
#[derive(Debug)]
pub struct Entry {
    /// The file it stands in, without its ending.
    pub family: &'static str,
    /// `sort`, or with a blank a subcommand: `docker exec`.
    pub names: &'static [&'static str],
    /// What its operands and the values of its options are.
    pub uses: Option<Uses>,
    /// What it runs besides itself.
    pub runs: Option<Runs>,
    /// The program whose entry says what it runs, for its subcommands too.
    pub runs_like: Option<&'static str>,
    /// Its options as a reader of its own takes them.
    pub own: Option<Spec>,
    /// What it prints by its arguments, in which `*` is any text.
    pub prints: &'static [(&'static str, Prints)],
    /// The kinds of a project's own files that it runs, with blanks between them.
    pub project_files: &'static str,
    /// What sends although no word is a host.
    pub sends: &'static [Sends],
    /// The variables that steer it: names with blanks between them, and texts that make them count.
    pub variables: &'static [(Variable, &'static str, &'static str)],
}

/// What operands and the values of options are.
#[derive(Debug)]
pub struct Uses {
    pub operands: &'static [Operands],
    pub options: Spec,
    /// Options that mean everything below, with blanks between them.
    pub recursive: &'static str,
    /// Standard input may hold commands and names of files.
    pub reads_input: bool,
    /// Options are words behind one dash; only their first letter may have its value glued to it.
    pub dash_words: bool,
}

/// What of a program sends something to a host that none of its words is.
#[derive(Debug)]
pub struct Sends {
    /// What the operands begin with, where `*` is any word; without a word they may be any.
    pub words: &'static [&'static str],
    /// The host; empty where settings say which it is.
    pub to: &'static str,
    /// Options that name another, and `URL` for an operand that does, with blanks between them.
    pub named_by: &'static str,
    /// Words with which nothing is sent, with blanks between them.
    pub unless: &'static str,
    /// Options without one of which nothing is sent, with blanks between them; empty where none is needed.
    pub given: &'static str,
    /// Options that send standard input, with blanks between them; empty where more than that is sent.
    pub input: &'static str,
}

/// What a program runs besides itself.
#[derive(Debug)]
pub struct Runs {
    /// Where it stands among the operands; of several, the first that fits.
    pub operands: &'static [Run],
    pub options: Spec,
    /// Behind so many operands.
    pub after: Option<usize>,
    /// On another machine.
    pub remote: bool,
    /// An option that is not listed may take a value: the command may begin at several places.
    pub unsure: bool,
    pub input: Option<Stdin>,
}

/// A variable that steers programs.
#[derive(Debug)]
pub struct ProgramVariable {
    /// With `*` for any text.
    pub name: &'static str,
    pub holds: Variable,
    /// The program of [`Variable::Options`], or the texts of [`Variable::SteersWhere`].
    pub detail: &'static str,
}

/// The entry of a program or, with a blank, of a subcommand.
pub fn entry(name: &str) -> Option<&'static Entry> {
    found(ENTRIES, name, |(own, _)| own).map(|(_, entry)| *entry)
}

/// The name that a program's entries go by.
pub fn canonical(base: &str) -> &str {
    let listed = |name: &str| entry(name).filter(|entry| entry.runs.is_some() || entry.runs_like.is_some());
    let version = base.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let (known, found) = match listed(base) {
        None if version != base => (version, listed(version)),
        found => (base, found),
    };
    found.and_then(|entry| entry.runs_like).unwrap_or(known)
}

/// What a program, or one of its subcommands, runs.
pub fn runs(name: &str) -> Option<&'static Runs> {
    entry(name)?.runs.as_ref()
}

/// Whether an entry says what a program runs.
pub fn is_listed(base: &str) -> bool {
    runs(canonical(base)).is_some()
}

/// Whether an entry says what a program reads on standard input.
pub fn reads_input(base: &str) -> bool {
    runs(canonical(base)).is_some_and(|runs| runs.input.is_some())
}

/// Every entry, in the order of the files.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    IN_ORDER.iter().copied()
}

/// What a variable holds, where it steers a program.
pub fn variable(name: &str) -> Option<&'static ProgramVariable> {
    let fits = |pattern: &ProgramVariable| {
        let (start, end) = pattern.name.split_once('*').unwrap_or((pattern.name, ""));
        name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
    };
    found(VARIABLES, name, |steering| steering.name).or_else(|| PATTERNS.iter().find(|pattern| fits(pattern)))
}

/// The options as a program's own reader takes them.
pub fn own(name: &str) -> &'static Spec {
    static NONE: Spec = Spec::NONE;
    entry(name).and_then(|entry| entry.own.as_ref()).unwrap_or(&NONE)
}

/// Names, endings that begin with a dot and beginnings that end in `*`, of the files of a kind; blanks stand between them.
pub fn file_kind(kind: &str) -> &'static str {
    found(FILE_KINDS, kind, |(name, _)| name).map_or("", |(_, files)| files)
}

fn found<T>(table: &'static [T], name: &str, own: impl Fn(&T) -> &'static str) -> Option<&'static T> {
    table.get(table.binary_search_by(|row| own(row).cmp(name)).ok()?)
}
