//! Which of the tracked files that a rule names a git command touches: revisions told from paths, trees and contents compared.

use writ_core::Span;
use writ_shell::{RepositoryAct, RepositoryUse, Word};

use crate::repository::{Id, Index, Kind, Pathspecs, Repository};

/// One use, at one place it may happen at.
pub(super) struct Look<'l> {
    pub repo: &'l Repository<'l>,
    pub index: Index,
    /// The folder git runs in.
    pub folder: &'l str,
    pub act: &'l RepositoryUse,
    pub span: Span,
    /// Earlier parts of the line move what names of commits stand for.
    pub moved: bool,
}

/// What was found out.
pub(super) enum Found {
    /// These paths are touched.
    Touched(Vec<String>),
    /// What is touched cannot be told.
    Open,
}

/// Whether files are written, and not only read.
pub(super) const fn writes(act: RepositoryAct) -> bool {
    matches!(
        act,
        RepositoryAct::Restore
            | RepositoryAct::Switch
            | RepositoryAct::Bring
            | RepositoryAct::Pick
            | RepositoryAct::Write
            | RepositoryAct::Clean
            | RepositoryAct::CleanAll
            | RepositoryAct::Patch
    )
}

impl Look<'_> {
    pub fn specs(&self, words: &[Word]) -> Pathspecs {
        let texts: Vec<Option<String>> = words.iter().map(Word::literal).collect();
        Pathspecs::parse(texts.iter().map(Option::as_deref), &self.repo.prefix(self.folder))
    }

    /// What of the tracked paths the pathspecs behind `--` leave, whatever the revisions are.
    pub fn among(&self, tracked: Vec<String>) -> Vec<String> {
        use RepositoryAct::{Content, Differ, History, Restore, Search, Show};
        let paths = &self.act.paths;
        let narrows = matches!(self.act.act, Content | Differ | History | Restore | Search | Show);
        if !narrows || paths.is_empty() || paths.iter().any(|path| path.literal().is_none()) {
            return tracked;
        }
        let specs = self.specs(paths);
        tracked.into_iter().filter(|path| specs.matches(path)).collect()
    }

    /// What of `ruled` is touched. `tracked`: the tracked paths that are ruled.
    pub fn found(&self, tracked: &[String], ruled: &dyn Fn(&str) -> bool) -> Found {
        let Some((ranges, specs)) = self.told() else {
            return Found::Open;
        };
        let among =
            |paths: &[String]| -> Vec<String> { paths.iter().filter(|path| specs.matches(path)).cloned().collect() };
        let done = match self.act.act {
            RepositoryAct::Restore => self.restored(&ranges, &specs, tracked, ruled),
            RepositoryAct::Switch => self.switched(&ranges, &specs, tracked, ruled),
            RepositoryAct::Bring => self.brought(&ranges, ruled),
            RepositoryAct::Pick => self.shown(&ranges, &specs, ruled),
            RepositoryAct::Write if !specs.is_empty() => Some(among(tracked)),
            RepositoryAct::Search if ranges.is_empty() => Some(among(tracked)),
            RepositoryAct::Search | RepositoryAct::Content => self.held(&ranges, &specs, ruled),
            RepositoryAct::Show => self.shown(&ranges, &specs, ruled),
            RepositoryAct::Differ => self.differing(&ranges, &specs, tracked, ruled),
            RepositoryAct::History => self.behind(&ranges, &specs, ruled),
            RepositoryAct::Object => self.objects(&ranges, tracked),
            _ => None,
        };
        done.map_or(Found::Open, Found::Touched)
    }

    /// Revisions told from paths: each with what its range leaves out. `None` where one cannot be told.
    fn told(&self) -> Option<(Vec<Range>, Pathspecs)> {
        let mut ranges = Vec::new();
        let mut paths: Vec<Word> = self.act.paths.clone();
        if self.moved && self.act.revisions.is_empty() {
            return None;
        }
        for word in &self.act.revisions {
            let text = word.literal()?;
            let shows = !writes(self.act.act) && self.act.act != RepositoryAct::Search;
            if (text.starts_with(":/") && shows) || text.contains("^{/") {
                // The newest commit whose message has a text.
                return None;
            }
            if text.contains(':') && !text.starts_with(":(") && !text.starts_with(":/") {
                // `commit:path` is judged as the path.
                continue;
            }
            match self.range(&text) {
                Some(range) => ranges.push(range),
                // Nothing is under way that could be taken up or back.
                None if text.ends_with("_HEAD") => {}
                None if self.is_path(&text) => paths.push(word.clone()),
                None => return None,
            }
        }
        Some((ranges, self.specs(&paths)))
    }

    fn is_path(&self, text: &str) -> bool {
        let spec = Pathspecs::parse([Some(text)], &self.repo.prefix(self.folder));
        text.starts_with([':', '.', '*'])
            || (text.contains(['/', '*', '.']) && !text.contains(['^', '~']))
            || self.index.entries.iter().any(|entry| spec.matches(&entry.path))
    }

    fn range(&self, text: &str) -> Option<Range> {
        if self.moved && !text.starts_with("--") {
            return None;
        }
        if text == "--all" {
            return Some(Range { from: self.repo.references()?, without: Vec::new(), apart: false });
        }
        let (left, right, apart) = match text.split_once("...") {
            Some((left, right)) => (Some(left), right, true),
            None => match text.split_once("..") {
                Some((left, right)) => (Some(left), right, false),
                None => (None, text, false),
            },
        };
        if let Some(hidden) = text.strip_prefix('^') {
            return Some(Range { from: Vec::new(), without: vec![self.repo.resolve(hidden)?], apart: false });
        }
        let from = vec![self.repo.resolve(right)?];
        let without = match left {
            Some(left) => vec![self.repo.resolve(left)?],
            None => Vec::new(),
        };
        Some(Range { from, without, apart })
    }

    fn head(&self) -> Option<Id> {
        self.repo.resolve("HEAD")
    }

    /// Paths that a rule names among those that differ between two trees.
    fn changed(
        &self,
        old: Option<Id>,
        new: Option<Id>,
        specs: &Pathspecs,
        ruled: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let mut out = Vec::new();
        self.repo.changes(old, new, &mut |path, _| {
            if specs.matches(path) && ruled(path) {
                out.push(path.to_owned());
            }
            out.len() >= 4
        })?;
        Some(out)
    }

    /// Whether git would give a file of the work tree another content.
    fn rewrites(&self, path: &str, target: Option<Id>) -> bool {
        let now = self.repo.worktree_id(path);
        target.is_none_or(|target| now != Some(target))
    }

    fn restored(
        &self,
        ranges: &[Range],
        specs: &Pathspecs,
        tracked: &[String],
        ruled: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let head = match self.head() {
            Some(head) => Some(self.repo.tree_of(head)?),
            None => None,
        };
        let targets: Vec<Id> = ranges.iter().flat_map(|range| &range.from).copied().collect();
        let mut out: Vec<String> = Vec::new();
        if targets.is_empty() {
            for path in tracked.iter().filter(|path| specs.matches(path)) {
                let staged = self.index.id(path);
                let kept = match head.map(|head| self.repo.at(head, path)) {
                    Some(found) => found?.map(|leaf| leaf.id),
                    None => staged,
                };
                // A file that stands only in the index is not taken back by a restoration from it.
                let loses = kept.is_some() || !specs.is_empty();
                if loses && (self.rewrites(path, staged) || (specs.is_empty() && kept != staged)) {
                    out.push(path.clone());
                }
            }
        }
        for target in targets {
            let tree = self.repo.tree_of(target)?;
            out.extend(self.changed(head, Some(tree), specs, ruled)?);
            for path in tracked.iter().filter(|path| specs.matches(path)) {
                if self.rewrites(path, self.repo.at(tree, path)?.map(|leaf| leaf.id)) {
                    out.push(path.clone());
                }
            }
        }
        Some(out)
    }

    fn switched(
        &self,
        ranges: &[Range],
        specs: &Pathspecs,
        tracked: &[String],
        ruled: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        if ranges.is_empty() || !specs.is_empty() {
            return self.restored(ranges, specs, tracked, ruled);
        }
        let head = self.repo.tree_of(self.head()?)?;
        let mut out = Vec::new();
        for target in ranges.iter().flat_map(|range| &range.from) {
            out.extend(self.changed(Some(head), Some(self.repo.tree_of(*target)?), specs, ruled)?);
        }
        Some(out)
    }

    fn brought(&self, ranges: &[Range], ruled: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
        let (head, none) = (self.head()?, Pathspecs::default());
        let mut out = Vec::new();
        for target in ranges.iter().flat_map(|range| &range.from) {
            let base = self.repo.merge_base(head, *target)?;
            out.extend(self.changed(
                Some(self.repo.tree_of(base)?),
                Some(self.repo.tree_of(*target)?),
                &none,
                ruled,
            )?);
        }
        (!ranges.is_empty()).then_some(out)
    }

    /// What single commits changed; of a range, what differs between its ends.
    fn shown(&self, ranges: &[Range], specs: &Pathspecs, ruled: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
        let head = [Range { from: self.head().into_iter().collect(), without: Vec::new(), apart: false }];
        // `git show commit:path` names a path alone.
        let usual = ranges.is_empty() && (self.act.revisions.is_empty() || !specs.is_empty());
        let ranges = if usual { &head } else { ranges };
        let mut out = Vec::new();
        for range in ranges {
            for id in &range.from {
                let (kind, _) = self.repo.object(*id)?;
                match kind {
                    Kind::Tree => continue,
                    Kind::Blob => {
                        out.extend(self.blob(*id, ruled)?);
                        continue;
                    }
                    Kind::Commit | Kind::Tag => {}
                }
                let tree = self.repo.tree_of(*id)?;
                let before = match range.without.first() {
                    Some(other) => Some(self.repo.tree_of(*other)?),
                    None if kind == Kind::Tag => Some(tree),
                    None => match self.repo.commit(*id)?.parents.first() {
                        Some(parent) => Some(self.repo.tree_of(*parent)?),
                        None => None,
                    },
                };
                out.extend(self.changed(before, Some(tree), specs, ruled)?);
            }
        }
        Some(out)
    }

    /// The ruled files that have this content now; `None` where it may be an older one's.
    fn blob(&self, id: Id, ruled: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
        let own = |path: &str| self.index.id(path) == Some(id);
        let any = self.index.entries.iter().any(|entry| entry.id == id);
        let out: Vec<String> =
            self.index.entries.iter().map(|entry| entry.path.clone()).filter(|path| own(path) && ruled(path)).collect();
        (any || !out.is_empty()).then_some(out)
    }

    fn objects(&self, ranges: &[Range], tracked: &[String]) -> Option<Vec<String>> {
        let mut out = Vec::new();
        for range in ranges {
            if range.from.len() > 1 {
                out.extend(tracked.iter().cloned());
                continue;
            }
            for id in &range.from {
                if self.repo.object(*id)?.0 == Kind::Blob {
                    out.extend(self.blob(*id, &|path| tracked.iter().any(|own| own == path))?);
                }
            }
        }
        Some(out)
    }

    /// What commits hold.
    fn held(&self, ranges: &[Range], specs: &Pathspecs, ruled: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
        let head: Vec<Id> = if ranges.is_empty() { self.head().into_iter().collect() } else { Vec::new() };
        let mut out = Vec::new();
        for id in ranges.iter().flat_map(|range| &range.from).chain(&head) {
            out.extend(self.changed(None, Some(self.repo.tree_of(*id)?), specs, ruled)?);
        }
        Some(out)
    }

    fn differing(
        &self,
        ranges: &[Range],
        specs: &Pathspecs,
        tracked: &[String],
        ruled: &dyn Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        let mut trees: Vec<Id> = Vec::new();
        for range in ranges {
            let from = *range.from.first()?;
            if let Some(other) = range.without.first() {
                let other = if range.apart { self.repo.merge_base(*other, from)? } else { *other };
                trees.push(self.repo.tree_of(other)?);
            }
            trees.push(self.repo.tree_of(from)?);
        }
        let mut out = Vec::new();
        if let [old, new, ..] = trees.as_slice() {
            return self.changed(Some(*old), Some(*new), specs, ruled);
        }
        let head = match self.head() {
            Some(head) => Some(self.repo.tree_of(head)?),
            None => None,
        };
        if let Some(tree) = trees.first() {
            out.extend(self.changed(head, Some(*tree), specs, ruled)?);
        }
        for path in tracked.iter().filter(|path| specs.matches(path)) {
            let staged = self.index.id(path);
            let kept = match head.map(|head| self.repo.at(head, path)) {
                Some(found) => found?.map(|leaf| leaf.id),
                None => None,
            };
            if kept != staged || self.rewrites(path, staged) {
                out.push(path.clone());
            }
        }
        Some(out)
    }

    /// What the commits behind some changed.
    fn behind(&self, ranges: &[Range], specs: &Pathspecs, ruled: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
        let mut from: Vec<Id> = ranges.iter().flat_map(|range| &range.from).copied().collect();
        let without: Vec<Id> = ranges.iter().flat_map(|range| &range.without).copied().collect();
        if from.is_empty() {
            from.extend(self.head());
        }
        let mut out = Vec::new();
        self.repo.history(&from, &without, self.act.most, &mut |id| {
            let commit = self.repo.commit(id)?;
            let before = match commit.parents.first() {
                Some(parent) => Some(self.repo.tree_of(*parent)?),
                None => None,
            };
            out.extend(self.changed(before, Some(commit.tree), specs, ruled)?);
            Some(!out.is_empty())
        })?;
        Some(out)
    }
}

/// Commits, and those whose past is left out.
struct Range {
    from: Vec<Id>,
    without: Vec<Id>,
    /// `a...b`: since both parted.
    apart: bool,
}
