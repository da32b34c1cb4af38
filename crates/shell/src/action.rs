//! What a command line would do, in words that a policy can judge.
//!
//! Owns the result types of [`crate::analyze`]; knows nothing of rules. Every span is a byte range of the line that was
//! analysed (for code inside code — `sh -c '…'`, `eval` — the range of the outermost word that carries it).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use writ_core::Span;

use crate::listing::Listing;
use crate::word::{Dir, Part, Source, Word};

/// What is known about the shell's surroundings before the line starts.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `$HOME` and `~`, absolute.
    pub home: Option<String>,
    /// `$PWD`: the directory the line starts in, absolute.
    pub cwd: Option<String>,
    /// The work tree that it lies in, absolute: what `git rev-parse --show-toplevel` prints.
    pub toplevel: Option<String>,
}

/// One simple command the shell would run, at whatever depth it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments: quotes and escapes removed, assignments and known expansions applied, wrappers peeled
    /// off (`sudo -u x rm y` occurs as itself and as `rm y`). Never empty.
    pub words: Vec<Word>,
    /// Where it stands in the line.
    pub span: Span,
    /// The wrappers it was found under, outermost first: `["sudo", "xargs"]`. Empty for a plain command.
    pub via: Vec<String>,
    /// Every directory it may run in: several when an earlier `cd` may have failed. Never empty.
    pub dirs: Vec<Dir>,
    /// Assignments stand in it that are no words of it: `export A=b`.
    pub assigns: bool,
}

/// What happens to a file. Ordered by how much it asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Its name, existence or metadata is looked at.
    List,
    /// It is run as a program.
    Exec,
    /// Its content is read.
    Read,
    /// It is created, changed, moved away or deleted.
    Write,
}

/// One file or tree that the line would touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// The path as the program would get it, `~` expanded.
    pub path: Word,
    /// Every directory the command may run in: two when an earlier `cd` may have failed. Never empty.
    pub dirs: Vec<Dir>,
    /// Directories it runs in only if a `cd` failed whose success the line takes for granted (`cd x && a; b`).
    pub unlikely: Vec<Dir>,
    /// What happens to it.
    pub access: Access,
    /// Whether everything below it is meant too (`grep -r`, `rm -r`, `cp -r`).
    pub tree: bool,
    /// Where it stands in the line.
    pub span: Span,
}

/// Something that lands in a folder under its own name, or takes the place of what is no folder: the target of `cp`, `mv`,
/// `ln`, of a download, of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The target as written.
    pub target: FileUse,
    /// What gives it its name; `None` where only its content knows the names (an archive, `x/.`).
    pub source: Option<Word>,
    /// Whether the target is surely a folder.
    pub in_folder: bool,
    /// It is a symbolic link: a relative source hangs off the folder that the link is in.
    pub link: bool,
}

/// What a network use aims at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NetTarget {
    /// A URL, as the program would get it (it may lack its scheme).
    Url(Word),
    /// A host name or address, without user or port.
    Host(Word),
    /// A host that is not known: the program's own default, or an expansion.
    Unknown,
}

/// One host the line would contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetUse {
    /// The host or URL.
    pub target: NetTarget,
    /// Where it stands in the line.
    pub span: Span,
}

/// A variable that the line reads and did not surely assign before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableUse {
    /// Its name; empty where that is not known (`${!x}`).
    pub name: String,
    /// Where it stands in the line.
    pub span: Span,
}

/// Why something cannot be known before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnresolvedKind {
    /// The program's name stays an expansion.
    Program,
    /// Inline code for an interpreter that is not a shell (`python -c`, `perl -e`).
    Code,
    /// Text that is not known is fed to a shell or interpreter as code (`… | sh`, `eval "$X"`, `bash <(…)`).
    Script,
    /// The environment is changed so that another program may run (`PATH=`, `LD_PRELOAD=`, `BASH_ENV=`).
    Environment,
    /// The directory is not known and a relative path hangs off it.
    Directory,
    /// The line is too large or too deep to be followed to its end.
    Limit,
}

/// Something that cannot be known before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Why.
    pub kind: UnresolvedKind,
    /// The program or construct, for the message: `python3 -c`, `$X`, `| sh`.
    pub what: String,
    /// Where it stands in the line.
    pub span: Span,
    /// Texts inside foreign code that look like paths or URLs. They count against deny rules only.
    pub mentions: Vec<Word>,
}

/// Something that a program is given although nothing says what it does with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownUse {
    /// What it is.
    pub kind: UnknownUseKind,
    /// Arguments in order, or one text.
    pub words: Vec<Word>,
    /// Every directory the program may run in; none where its files are another machine's.
    pub dirs: Vec<Dir>,
    /// Where it stands in the line.
    pub span: Span,
}

/// What a program is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnknownUseKind {
    /// The arguments of a program that the tables do not list: a command may begin at each, and each may be a file that is
    /// read or written.
    Arguments,
    /// The value of an option that a listed program's line does not name: a command's text, or a file that is read.
    Option,
    /// Operands of a listed program which mostly are no files: one that a rule names is read.
    Operands,
    /// The same, which may be written too.
    Files,
    /// A text for such a program, by standard input or by its environment: it may hold commands and names of files.
    Text,
    /// A text in code that may be a command.
    Command,
}

/// A git command that reads or writes more of its repository than the files it names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RepositoryUse {
    /// What it does.
    pub act: RepositoryAct,
    /// Commits, trees and objects as written; none means the commit that is checked out.
    pub revisions: Vec<Word>,
    /// Pathspecs; none means everything. Where a revision is none, it is a pathspec.
    pub paths: Vec<Word>,
    /// How many commits are looked at, at most.
    pub most: Option<u32>,
    /// Every directory git may run in.
    pub dirs: Vec<Dir>,
    /// Where it stands in the line.
    pub span: Span,
}

/// What becomes of a repository's files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RepositoryAct {
    /// Tracked files get the content that they have in the index or in a commit, whatever they hold now.
    Restore,
    /// The same, but what was changed in the work tree stays.
    Switch,
    /// What a branch changed since it parted is brought here: a merge, a rebase.
    Bring,
    /// What single commits changed is done once more, or undone.
    Pick,
    /// Any tracked file may be written, or vanish.
    Write,
    /// Files that are not tracked vanish, those that are ignored excepted.
    Clean,
    /// Files that are not tracked vanish, also those that are ignored.
    CleanAll,
    /// A patch that is not known is applied.
    Patch,
    /// The content of tracked files is read, as it is in the work tree and the index.
    Search,
    /// What the given commits changed is shown; with two, what differs between them.
    Show,
    /// What differs between work tree, index and the given commits is shown.
    Differ,
    /// What every commit behind the given ones changed is shown.
    History,
    /// All content of the given commits is read.
    Content,
    /// Single objects are printed.
    Object,
    /// A subcommand that git does not have: what stands for it in the settings runs, with `paths` as its arguments.
    Alias,
    /// What the remotes with these names lead to is contacted.
    Contact,
    /// The same, and what its submodules' settings lead to.
    Submodules,
}

/// Everything a line would do.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// Every simple command, in the order it stands in the line.
    pub commands: Vec<Command>,
    /// Every file and tree.
    pub files: Vec<FileUse>,
    /// Operands that may be paths or something else: they count where such a file is, or where a rule names them.
    pub guesses: Vec<FileUse>,
    /// Everything that lands in a folder.
    pub arrivals: Vec<Arrival>,
    /// What programs get although nothing says what they do with it.
    pub unknown_uses: Vec<UnknownUse>,
    /// What git does with whole repositories.
    pub repositories: Vec<RepositoryUse>,
    /// Every host.
    pub nets: Vec<NetUse>,
    /// Variables whose value is from outside the line.
    pub variables: Vec<VariableUse>,
    /// What cannot be known.
    pub unresolved: Vec<Unresolved>,
    /// What parts that are [`Source::Listed`] stand for.
    pub listings: Vec<Listing>,
    /// Texts in code that the agent wrote before, and that look like paths or URLs. They count against deny rules only.
    pub mentions: Vec<Word>,
    /// Texts of files that the line wrote and then reads, and where it names them.
    pub inputs: Vec<(Span, String)>,
    /// Texts that the line writes into files, as far as they are known.
    pub written: Vec<String>,
    /// Code in the line loads modules that nothing is known of.
    pub loads: bool,
    /// Functions of the line's own that it calls, and that are nothing else for certain.
    pub functions: BTreeSet<String>,
    /// Why the line is no shell program, when it is none: the message and where.
    pub syntax_error: Option<(String, Span)>,
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
    pub fn with_listings_as_globs(mut self) -> Self {
        let listings = std::mem::take(&mut self.listings);
        let place = |dir: &mut Dir| {
            if matches!(dir, Dir::Open(_)) {
                *dir = Dir::Unknown;
            }
        };
        let rough = |file: FileUse| {
            let [Part::Unknown(Source::Listed(at))] = file.path.parts.as_slice() else { return vec![file] };
            let Some(listing) = listings.get(usize::from(*at)) else { return vec![file] };
            let (words, tree) = listing.as_globs();
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
                    word.parts =
                        listing.as_globs().0.into_iter().next().unwrap_or_else(|| listing.folder.clone()).parts;
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

/// A command without its spelling choices: `git -C x push -f` and `git push --force` have the same program,
/// subcommand and flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// Base name of the program; empty when it is not known.
    pub program: String,
    /// Flags in one spelling each (`-r` for `-R` and `--recursive` where the table says they are the same; clusters
    /// split; `--x=y` as `--x`), sorted and unique.
    pub flags: Vec<String>,
    /// What is neither program nor flag nor a global option's value, in order; subcommands come first.
    pub operands: Vec<Word>,
}
