//! What a line does, put on record: each thing once, and not without end.

use std::hash::{BuildHasher, Hash};

use writ_core::Span;

use super::{Eval, MAX_COMMANDS, MAX_USES};
use crate::action::{Access, Command, Dir, FileUse, NetTarget, NetUse, Unresolved, UnresolvedKind, Word};

impl Eval<'_> {
    /// Puts a command on record.
    pub(crate) fn record(&mut self, words: &[Word], via: &[String], span: Span) -> bool {
        if self.out.commands.len() >= MAX_COMMANDS {
            if !self.out.unresolved.iter().any(|open| open.kind == UnresolvedKind::Limit) {
                self.unresolved(UnresolvedKind::Limit, "too many commands", span);
            }
            return false;
        }
        self.out.commands.push(Command { words: words.to_vec(), span, via: via.to_vec() });
        true
    }

    pub(crate) fn unresolved(&mut self, kind: UnresolvedKind, what: &str, span: Span) {
        self.unresolved_with(kind, what, span, Vec::new());
    }

    pub(crate) fn unresolved_with(&mut self, kind: UnresolvedKind, what: &str, span: Span, mentions: Vec<Word>) {
        let open = Unresolved { kind, what: what.to_owned(), span, mentions };
        if self.is_new(&open) {
            self.out.unresolved.push(open);
        }
    }

    pub(crate) fn file(&mut self, path: Word, access: Access, tree: bool) {
        let Some(file) = self.place(path, access, tree) else { return };
        let lost = file.dirs.contains(&Dir::Unknown) && file.path.literal().is_some_and(|text| !text.starts_with('/'));
        let span = file.span;
        if self.out.files.len() >= MAX_USES {
            return self.unresolved(UnresolvedKind::Limit, "too many files", Span { start: 0, end: 0 });
        }
        if self.is_new(&file) {
            self.out.files.push(file);
        }
        if lost && access != Access::List {
            self.unresolved(UnresolvedKind::Directory, "a folder that is not known", span);
        }
    }

    /// A use of a file here, which is put on record by whoever asks; `None` on another machine.
    pub(crate) fn place(&self, path: Word, access: Access, tree: bool) -> Option<FileUse> {
        if self.remote > 0 || path.parts.is_empty() {
            return None;
        }
        let tree = tree || (self.trees > 0 && access != Access::List);
        let (span, dirs) = (path.span, self.dirs.clone());
        Some(FileUse { path, dirs, access, tree, span })
    }

    pub(crate) fn net(&mut self, target: NetTarget, span: Span) {
        let net = NetUse { target, span };
        if self.out.nets.len() >= MAX_USES {
            return self.unresolved(UnresolvedKind::Limit, "too many hosts", Span { start: 0, end: 0 });
        }
        if self.is_new(&net) {
            self.out.nets.push(net);
        }
    }

    fn is_new(&mut self, item: &impl Hash) -> bool {
        let hash = self.hasher.hash_one(item);
        self.seen.insert(hash)
    }
}
