//! What is known of text that is not: where it comes from, and what a listing that it comes from can hold (R70).
//!
//! Owns the description; whoever has the disk looks. Invariant: a [`Listing`] holds every name that the program could print,
//! and may hold more only where a [`Test::Maybe`] says so. Page: `spec/shell.md`.

use crate::action::{Analysis, Dir, FileUse, Part, Word};

/// Where text that is not known comes from, which says what it can be (R70).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// Letters, digits, `-`, `_` and `:`, at least one: arithmetic, `$?`, `date +%s`, a commit's name. No dot, no slash.
    Number,
    /// Letters and digits that `mktemp` chose, so that nothing had the name before: whoever wrote the line cannot know them.
    Fresh,
    /// The name of a file: no slash, neither `.` nor `..`, perhaps empty.
    Name,
    /// A value from outside the line, as of a variable that nobody in it assigned: anything without `..` in it.
    Outside,
    /// Each of the names of a listing, by its place in [`Analysis::listings`].
    Listed(u16),
    /// Any text, in one word: what the line itself decodes, reads or makes.
    Any,
    /// The same without quotes: any number of words.
    Words,
    /// Shell code by which a known program sets up the shell for itself (`ssh-agent -s`); any text where it is no code.
    Setup,
}

impl Source {
    /// What text of both, one behind the other, can be; also what is either of the two.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Listed(_), _) | (_, Self::Listed(_)) => Self::Any,
            // What is left of chosen letters may be any.
            (Self::Fresh, other) | (other, Self::Fresh) => {
                Self::Number.with(if other == Self::Fresh { Self::Number } else { other })
            }
            (Self::Setup, other) | (other, Self::Setup) => {
                if other == Self::Words {
                    other
                } else {
                    Self::Any
                }
            }
            (one, other) if one.width() >= other.width() => one,
            (_, other) => other,
        }
    }

    const fn width(self) -> u8 {
        match self {
            Self::Number | Self::Fresh => 0,
            Self::Name => 1,
            Self::Outside => 2,
            Self::Listed(_) | Self::Any | Self::Setup => 3,
            Self::Words => 4,
        }
    }

    /// Whether the line itself may have made it to be what it likes.
    #[must_use]
    pub const fn is_made(self) -> bool {
        matches!(self, Self::Any | Self::Words | Self::Setup)
    }
}

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
            Self::Not(inner) => **inner == Self::Folder,
            Self::Maybe | Self::Name { .. } | Self::Folder | Self::Depth(..) | Self::Either(_) | Self::Prune => false,
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
    pub fn rough(&self) -> (Vec<Word>, bool) {
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

impl Analysis {
    /// The listing that a word is one entry of.
    pub fn listing_of(&self, word: &Word) -> Option<&Listing> {
        match word.parts.as_slice() {
            [Part::Unknown(Source::Listed(at))] => self.listings.get(usize::from(*at)),
            _ => None,
        }
    }

    /// The same with each entry of a listing as a shell's glob, for whoever does not look at the disk.
    #[must_use]
    pub fn with_rough_listings(mut self) -> Self {
        let listings = std::mem::take(&mut self.listings);
        let place = |dir: &mut Dir| {
            if matches!(dir, Dir::Open(_)) {
                *dir = Dir::Unknown;
            }
        };
        let rough = |file: FileUse| {
            let [Part::Unknown(Source::Listed(at))] = file.path.parts.as_slice() else { return vec![file] };
            let Some(listing) = listings.get(usize::from(*at)) else { return vec![file] };
            let (words, tree) = listing.rough();
            let one = |word: Word| FileUse {
                path: Word { span: file.span, ..word },
                tree: file.tree || tree,
                dirs: listing.dirs.clone(),
                ..file.clone()
            };
            words.into_iter().map(one).collect()
        };
        self.files = self.files.into_iter().flat_map(rough).collect();
        for command in &mut self.commands {
            for word in &mut command.words {
                if let [Part::Unknown(Source::Listed(at))] = word.parts.as_slice()
                    && let Some(listing) = listings.get(usize::from(*at))
                {
                    word.parts = listing.rough().0.into_iter().next().unwrap_or_else(|| listing.folder.clone()).parts;
                }
            }
        }
        let targets = self.arrivals.iter_mut().map(|arrival| &mut arrival.target);
        let files = self.files.iter_mut().chain(targets).flat_map(|file| file.dirs.iter_mut());
        files.chain(self.commands.iter_mut().flat_map(|command| command.dirs.iter_mut())).for_each(place);
        self.listings = listings;
        self
    }
}
