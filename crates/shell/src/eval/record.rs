//! What goes on record: each fact once, and not more than can be judged.

use std::hash::{BuildHasher, Hash};

use writ_core::Span;

use crate::action::{
    Access, Command, FileUse, NetTarget, NetUse, RepositoryAct, RepositoryUse, UnknownUse, UnknownUseKind, Unresolved,
    UnresolvedKind, VariableUse,
};
use crate::eval::Eval;
use crate::word::{Dir, Part, Source, Word};

/// Most commands that one line is followed to.
const MAX_COMMANDS: usize = 2000;
/// Most files, most hosts and most things not known.
const MAX_FACTS: usize = 4096;
/// Most texts of files that the line wrote and reads.
const MAX_INPUTS: usize = 64;

impl Eval<'_> {
    /// Puts a command on record.
    pub(crate) fn record(&mut self, words: &[Word], via: &[String], span: Span) -> bool {
        let assigns = std::mem::take(&mut self.assigning);
        if self.quiet > 0 || !self.spend(4 + words.len()) {
            return false;
        }
        let known = !self.first_time((&words, via, span, assigns));
        if known && self.repeats > 0 {
            let same = |command: &&mut Command| {
                command.span == span && command.words == words && command.via == via && command.assigns == assigns
            };
            let dirs = self.dirs.iter();
            if let Some(command) = self.out.commands.iter_mut().rev().find(same) {
                let new: Vec<Dir> = dirs.filter(|dir| !command.dirs.contains(dir)).cloned().collect();
                command.dirs.extend(new);
            }
            return true;
        }
        if self.out.commands.len() >= MAX_COMMANDS {
            self.limit("too many commands");
            return false;
        }
        let (words, via, dirs) = (words.to_vec(), via.to_vec(), self.dirs.clone());
        self.out.commands.push(Command { words, span, via, dirs, assigns });
        true
    }

    /// Whether this is not yet on record.
    fn first_time(&mut self, fact: impl Hash) -> bool {
        let hash = self.keys.hash_one(fact);
        self.seen.insert(hash)
    }

    pub(crate) fn unresolved(&mut self, kind: UnresolvedKind, what: &str, span: Span) {
        self.unresolved_with(kind, what, span, Vec::new());
    }

    pub(crate) fn unresolved_with(&mut self, kind: UnresolvedKind, what: &str, span: Span, mentions: Vec<Word>) {
        let full = self.out.unresolved.len() >= MAX_FACTS && kind != UnresolvedKind::Limit;
        if self.quiet > 0 && kind != UnresolvedKind::Limit || !self.first_time((kind, what, span, &mentions)) {
            return;
        }
        if full {
            return self.limit("too many things not known");
        }
        self.out.unresolved.push(Unresolved { kind, what: what.to_owned(), span, mentions });
    }

    pub(crate) fn file(&mut self, path: Word, access: Access, tree: bool) {
        if self.quiet > 0 || path.parts.is_empty() {
            return;
        }
        if let ([Part::Unknown(Source::Listed(at))], true) = (path.parts.as_slice(), self.remote > 0)
            && let Some(listing) = self.out.listings.get(usize::from(*at))
        {
            // What is mounted there is told by its path.
            let (words, below) = listing.as_globs();
            return words.into_iter().for_each(|word| self.file(word, access, tree || below));
        }
        if access == Access::Read
            && self.out.inputs.len() < MAX_INPUTS
            && self.written.holds_any()
            && let Some(text) = self.text_in(&path)
        {
            self.out.inputs.push((path.span, text));
        }
        if self.remote > 0 {
            for (path, dirs, access) in self.mounts.outside(&path, &self.dirs, access, tree) {
                self.file_in(path, access, tree, dirs);
            }
            return;
        }
        if access == Access::Write {
            self.note_write(&path);
        }
        self.reopened(&path, access);
        if access != Access::List {
            for from in self.linked_from(&path) {
                self.file_in(Word { parts: vec![Part::Text(from)], span: path.span }, access, tree, vec![start()]);
            }
        }
        let dirs = self.dirs.clone();
        self.file_in(path, access, tree, dirs);
    }

    /// A use of a file here, which is put on record by whoever asks; `None` where files are not looked at.
    pub(crate) fn place(&mut self, path: Word, access: Access, tree: bool) -> Option<FileUse> {
        if self.quiet > 0 || path.parts.is_empty() {
            return None;
        }
        self.reopened(&path, access);
        if self.remote > 0 {
            let (path, dirs, access) = self.mounts.outside(&path, &self.dirs, access, tree).into_iter().next()?;
            return Some(FileUse { span: path.span, path, dirs, unlikely: Vec::new(), access, tree });
        }
        let (span, dirs, unlikely) = (path.span, self.dirs.clone(), self.unlikely.clone());
        Some(FileUse { path, dirs, unlikely, access, tree, span })
    }

    /// An operand that may be a path: it counts where there is such a file, or where a rule names it.
    pub(crate) fn guess(&mut self, word: &Word, access: Access, tree: bool) {
        if let Some(file) = self.place(word.clone(), access, tree).filter(|file| !self.out.guesses.contains(file)) {
            self.out.guesses.push(file);
        }
    }

    pub(crate) fn file_in(&mut self, path: Word, access: Access, tree: bool, dirs: Vec<Dir>) {
        let span = path.span;
        let open = |dir: &Dir| match dir {
            Dir::Unknown => true,
            Dir::Open(parts) => parts.iter().any(Part::is_unknown),
            Dir::Start(_) => false,
        };
        let lost = dirs.iter().any(open) && path.literal().is_some_and(|text| !text.starts_with('/'));
        let long = |dir: &Dir| if let Dir::Start(dir) = dir { 1 + dir.len() / 2 } else { 1 };
        if !self.first_time((&path, &dirs, access, tree)) || !self.spend(dirs.iter().map(long).sum()) {
            return;
        }
        if self.out.files.len() >= MAX_FACTS {
            return self.limit("too many files");
        }
        let unlikely = if dirs == self.dirs { self.unlikely.clone() } else { Vec::new() };
        self.out.files.push(FileUse { path, dirs, unlikely, access, tree, span });
        if lost && access != Access::List {
            self.unresolved(UnresolvedKind::Directory, "a folder that is not known", span);
        }
    }

    /// Puts on record what a program gets although nothing says what it does with it.
    pub(crate) fn unknown_use(&mut self, kind: UnknownUseKind, words: Vec<Word>, span: Span) {
        let blank = words.iter().all(|word| word.parts.is_empty());
        if self.quiet > 0
            || blank
            || !self.seen.insert(self.keys.hash_one((kind, &words, &self.dirs, span)))
            || !self.spend(words.len())
        {
            return;
        }
        if self.out.unknown_uses.len() >= MAX_FACTS {
            return self.limit("too many programs that are not known");
        }
        let dirs = if self.remote > 0 { Vec::new() } else { self.dirs.clone() };
        self.out.unknown_uses.push(UnknownUse { kind, words, dirs, span });
    }

    /// Puts on record what git does with a whole repository.
    pub(crate) fn repository(&mut self, act: RepositoryAct, revisions: Vec<Word>, paths: Vec<Word>, span: Span) {
        self.commits(act, revisions, paths, None, span);
    }

    /// The same for so many commits at most.
    pub(crate) fn commits(
        &mut self,
        act: RepositoryAct,
        revisions: Vec<Word>,
        paths: Vec<Word>,
        most: Option<u32>,
        span: Span,
    ) {
        // A later contact may go elsewhere, as the line changes settings in between.
        let place = matches!(act, RepositoryAct::Contact | RepositoryAct::Submodules).then_some(span);
        if self.quiet > 0 || self.remote > 0 || !self.first_time((act, &revisions, &paths, self.dirs.clone(), place)) {
            return;
        }
        if self.out.repositories.len() >= MAX_FACTS {
            return self.limit("too many uses of repositories");
        }
        self.out.repositories.push(RepositoryUse { act, revisions, paths, most, dirs: self.dirs.clone(), span });
    }

    /// A variable is read whose value the line need not have made itself.
    pub(crate) fn variable_read(&mut self, name: &str) {
        let span = self.span(self.here);
        if self.quiet > 0 || !self.first_time(("variable", name, span)) {
            return;
        }
        if self.out.variables.len() >= MAX_FACTS {
            return self.limit("too many variables");
        }
        self.out.variables.push(VariableUse { name: name.to_owned(), span });
    }

    pub(crate) fn net(&mut self, target: NetTarget, span: Span) {
        if self.quiet > 0 || !self.first_time((&target, span)) {
            return;
        }
        if self.out.nets.len() >= MAX_FACTS {
            return self.limit("too many hosts");
        }
        self.out.nets.push(NetUse { target, span });
    }
}

/// The folder the line starts in.
const fn start() -> Dir {
    Dir::Start(String::new())
}
