//! Names that a program finds on the disk: what a listing that a text comes from can hold (R70).
//!
//! Owns the description; whoever has the disk looks. Invariant: a [`Listing`] holds every name that the program could print,
//! and may hold more only where a [`Test::Maybe`] says so. Page: `spec/shell.md`.

use crate::word::{Dir, Part, Word};

/// Names that a program finds on the disk: `ls`, `find`, `git ls-files`, `grep -l`; or files that it searches by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The folder, or the file, as the program gets it; a shell's glob is everything it matches.
    pub folder: Word,
    /// The folders that the program may run in. Never empty.
    pub dirs: Vec<Dir>,
    /// Which entries it prints, and into which folders it does not look.
    pub test: Test,
    /// Everything below the folder, not only what is in it.
    pub tree: bool,
    /// Names that begin with a dot, and what is below them.
    pub hidden: bool,
    /// What is left out because a file says so.
    pub ignores: Ignores,
    /// How an entry is printed.
    pub printed: Printed,
}

/// Which files are left out because a file says so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ignores {
    /// None.
    Nothing,
    /// What `.gitignore` names and git does not track.
    Git,
    /// What `.gitignore`, `.ignore` and `.rgignore` name.
    Search,
}

/// How an entry of a listing is printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Printed {
    /// The folder as written, then the path below it.
    Path,
    /// The path below the folder.
    Relative,
    /// The last name.
    Name,
}

/// A search's expression. Each test is yes, no or perhaps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Yes.
    Always,
    /// Perhaps: a test that looks at content, dates, sizes.
    Maybe,
    /// A pattern of `*`, `?` and `[…]`, which match a leading dot.
    Name {
        /// The pattern.
        pattern: String,
        /// The whole path as printed is compared, where `*` matches a slash too; else the last name.
        path: bool,
        /// Upper and lower case are alike.
        folded: bool,
    },
    /// It is a folder.
    Folder,
    /// It is a symbolic link.
    Link,
    /// It lies at least and at most so deep below the folder, which itself is at depth 0.
    Depth(u16, u16),
    /// All of them; the first that fails ends it.
    All(Vec<Test>),
    /// One of them; the first that holds ends it.
    Either(Vec<Test>),
    /// The opposite.
    Not(Box<Test>),
    /// Yes, and a folder is not looked into.
    Prune,
    /// Yes: an entry that comes here is printed, or acted on.
    Here,
}

impl Test {
    /// An entry's last name against a pattern.
    pub fn name(pattern: &str) -> Self {
        Self::Name { pattern: pattern.to_owned(), path: false, folded: false }
    }

    /// Everything that passes `first` and then these.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self::All(vec![self, more])
    }

    /// Whether it lets every file through.
    fn is_open(&self) -> bool {
        match self {
            Self::Always | Self::Here | Self::Depth(0 | 1, u16::MAX) => true,
            Self::All(tests) => tests.iter().all(Self::is_open),
            Self::Not(inner) => matches!(**inner, Self::Folder | Self::Link),
            Self::Maybe
            | Self::Name { .. }
            | Self::Folder
            | Self::Link
            | Self::Depth(..)
            | Self::Either(_)
            | Self::Prune => false,
        }
    }

    /// The patterns of names of which it asks for one.
    fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::Name { pattern, path: false, .. } => Some(vec![pattern.clone()]),
            Self::All(tests) => tests.iter().find_map(Self::names),
            Self::Either(tests) => Some(tests.iter().map(Self::names).collect::<Option<Vec<_>>>()?.concat()),
            _ => None,
        }
    }
}

impl Listing {
    /// Shell's globs for its entries, or the folder itself and everything below, as far as that can be said so.
    pub fn as_globs(&self) -> (Vec<Word>, bool) {
        if self.tree && self.test.is_open() {
            return (vec![self.folder.clone()], true);
        }
        let names = self.test.names();
        let below = self.tree && names.is_none();
        let word = |name: &String| {
            let glob = if self.tree { format!("**/{name}") } else { name.clone() };
            let parts = [self.folder.parts.as_slice(), &[Part::Text("/".to_owned()), Part::Glob(glob)]].concat();
            Word { parts, span: self.folder.span }
        };
        (names.unwrap_or_else(|| vec!["*".to_owned()]).iter().map(word).collect(), below)
    }
}
