//! Paths that are not fully known: as patterns, and as the entries of a listing (R70).

use writ_core::Span;
use writ_shell::{Access, Dir, FRESH, FileUse, Ignores, Listing, Part, Printed, Source, Word};

use super::pattern::{any_pattern, escaped, is_listed, pattern_of, pattern_text, plain_text};
use super::walk::{ListedEntry, Walk};
use super::{MOST_TREES, Survey};
use crate::facts::{PathFact, PathKind};
use crate::glob::Glob;
use crate::glob::name::is_pattern;
use crate::rules::{PathRule, last_word, last_word_of};
use crate::world::{Search, find_below, fold};

/// Stands for an unknown part of a path. Holds no slash and no dot.
const UNKNOWN: &str = "writ-unknown";

/// A path's pieces in absolute form.
pub(super) enum Spelled {
    /// All of it is certain, or a shell's glob: its pattern if it is one.
    Known(String, bool),
    /// One piece of it is an entry of a listing.
    Listed(Vec<Part>, u16, Vec<Part>),
    /// Something else is not known.
    Open(Vec<Part>),
}

impl Survey<'_> {
    /// A path as seen from one of the folders the command may run in.
    pub(super) fn spell(&self, dir: &Dir, path: &Word) -> Spelled {
        let mut open = path.parts.iter().enumerate().filter(|(_, part)| part.is_unknown());
        if let (Some((at, Part::Unknown(Source::Listed(index)))), None) = (open.next(), open.next())
            && !matches!(dir, Dir::Open(parts) if parts.iter().any(Part::is_unknown))
            && *dir != Dir::Unknown
        {
            let before = path.parts.get(..at).unwrap_or_default().to_vec();
            return Spelled::Listed(before, *index, path.parts.get(at + 1..).unwrap_or_default().to_vec());
        }
        let parts: Vec<Part> = self.spelled_out(dir, &path.parts).into_iter().map(made_anew).collect();
        if parts.iter().any(Part::is_unknown) {
            return Spelled::Open(parts);
        }
        let glob = parts.iter().any(|part| matches!(part, Part::Glob(_)));
        Spelled::Known(if glob { pattern_text(&parts) } else { plain_text(&parts) }, glob)
    }

    /// The pieces of a path with the folder in front, where it does not stand by itself.
    fn spelled_out(&self, dir: &Dir, path: &[Part]) -> Vec<Part> {
        let text = |text: &str| Part::Text(text.to_owned());
        match path.first() {
            Some(Part::Text(start) | Part::Glob(start)) if start.starts_with('/') => return path.to_vec(),
            Some(Part::Text(start)) if start == "~" || start.starts_with("~/") => {
                if let Some(home) = self.setting.home.as_deref() {
                    let start = text(&format!("{home}{}", start.get(1..).unwrap_or_default()));
                    return std::iter::once(start).chain(path.iter().skip(1).cloned()).collect();
                }
            }
            // Where it begins with something that may be absolute, the folder says nothing.
            Some(Part::Unknown(Source::Outside | Source::Any | Source::Words)) => return path.to_vec(),
            _ => {}
        }
        let front = match dir {
            Dir::Start(dir) => vec![text(&self.absolute(&self.call.cwd, dir))],
            Dir::Open(parts) => self.spelled_out(&Dir::Start(String::new()), parts),
            Dir::Unknown => vec![Part::Unknown(Source::Any)],
        };
        [front.as_slice(), &[text("/")], path].concat()
    }

    /// A path of which something is not known, as a pattern.
    pub(super) fn open_use(&mut self, file: &FileUse, parts: &[Part]) {
        let parts = &self.in_one_name(file, parts);
        let made =
            parts.iter().any(|part| matches!(part, Part::Unknown(source) if source.is_made() || is_listed(*source)));
        let written = if made { any_pattern(parts) } else { pattern_of(parts) };
        let kind = if made { PathKind::Any } else { PathKind::Open };
        let resolved = self.resolved_pattern(&written);
        let (access, span) = (file.access, Some(file.span));
        let fact = PathFact { written, resolved, access, tree: file.tree, subject: false, new: false, kind, span };
        if !self.facts.paths.contains(&fact) {
            self.facts.paths.push(fact.clone());
            if !made && matches!(access, Access::Read | Access::Write) {
                self.existing(&fact);
            }
        }
        // What surely lies in a folder that is ruled as a whole is ruled.
        let leads = !matches!(parts.first(), Some(Part::Unknown(_)));
        if leads && !made {
            let placeholder = |part: &Part| match part {
                Part::Text(text) | Part::Glob(text) => text.clone(),
                Part::Unknown(_) => UNKNOWN.to_owned(),
            };
            let path: String = parts.iter().map(placeholder).collect();
            self.touch(file, &path, false);
        }
    }

    /// `dist-$V.tar.gz`: behind the beginning of a name, a slash needs a folder whose name begins so.
    fn in_one_name(&self, file: &FileUse, parts: &[Part]) -> Vec<Part> {
        let first = parts.iter().position(Part::is_unknown).unwrap_or(parts.len());
        let (front, rest) = parts.split_at(first);
        let front: Option<String> =
            front.iter().map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect();
        let place = front.as_deref().and_then(|front| front.rsplit_once('/')).filter(|(_, start)| !start.is_empty());
        let Some((folder, start)) = place else { return parts.to_vec() };
        let entries = self.world.list(&self.resolve(if folder.is_empty() { "/" } else { folder }).path);
        let there = entries.is_none_or(|all| all.iter().any(|entry| entry.name.starts_with(start)));
        let begins = format!("{}/{start}", fold(folder));
        let others = self.facts.paths.iter().filter(|fact| fact.span != Some(file.span));
        let mut written = others.filter(|fact| fact.access == Access::Write && fact.written.starts_with(&begins));
        if there || written.next().is_some() {
            return parts.to_vec();
        }
        let end = rest.iter().position(|part| matches!(part, Part::Text(text) if text.contains('/')));
        let (own, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let named = |part: &Part| match part {
            Part::Unknown(Source::Outside) => Part::Unknown(Source::Name),
            other => other.clone(),
        };
        parts.iter().take(first).cloned().chain(own.iter().map(named)).chain(behind.iter().cloned()).collect()
    }

    /// What lies behind a process's own folder or files, wherever that is when it is used.
    pub(super) fn behind_process(&mut self, access: Access, tree: bool, span: Option<Span>, rest: String) {
        let written = any_pattern(&[Part::Unknown(Source::Any), Part::Text(rest)]);
        let (resolved, kind) = (written.clone(), PathKind::Any);
        let fact = PathFact { written, resolved, access, tree, subject: false, new: false, kind, span };
        if !self.facts.paths.contains(&fact) {
            self.facts.paths.push(fact);
        }
    }

    /// The same with symlinks followed in front of its first wildcard.
    fn resolved_pattern(&self, pattern: &str) -> String {
        let cut = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
        let Some((folder, _)) = pattern.get(..cut).and_then(|front| front.rsplit_once('/')) else {
            return pattern.to_owned();
        };
        if folder.is_empty() {
            return pattern.to_owned();
        }
        let real = self.resolve(&self.without_proc(folder)).path;
        format!("{}{}", escaped(&real), pattern.get(folder.len()..).unwrap_or_default())
    }

    /// The first path on disk that a pattern matches and that is ruled.
    fn existing(&mut self, fact: &PathFact) {
        let Ok(glob) = Glob::parse(&fact.resolved) else { return };
        let (files, home) = (&self.policy.files, self.setting.home.as_deref());
        let ruled = files.deny.iter().chain(&files.approval).filter(|rule| rule.scope.covers(fact.access));
        let ruled = ruled.chain(files.read_only.iter().filter(|_| fact.access == Access::Write));
        // A rule that has no folder of its own names what it forbids, which the pattern is held against as it stands.
        let folders = ruled.filter(|rule| rule.may_name(&glob, false, home)).filter_map(|rule| rule.anchor(home));
        let folders: Vec<String> = folders.chain(self.setting.may_hold(&glob, fact.access)).collect();
        let mut found = None;
        for folder in folders.into_iter().take(MOST_TREES) {
            let hit = |path: &str| glob.matches(path) && self.forbids(path, fact.access, false);
            if let Search::Done(Some(path)) = find_below(self.world, &folder, &hit) {
                found = Some(path);
                break;
            }
        }
        // In a folder that is known, each name that is there.
        if found.is_none() && !fact.resolved.starts_with("/{") && !fact.resolved.starts_with("/**") {
            let names = crate::glob::unfold(&fact.resolved).unwrap_or_default();
            for one in names.iter().filter(|one| !one.contains("**") && is_pattern(one)) {
                let Search::Done(places) = self.expand(one) else { continue };
                found = found.or_else(|| places.into_iter().find(|path| self.forbids(path, fact.access, false)));
            }
        }
        if let Some(path) = found {
            let mut found = self.path(&path, fact.access, fact.span);
            found.kind = PathKind::Perhaps;
            self.facts.paths.push(found);
        }
    }

    /// Whether a use of a path is ruled out, by any rule or none that allows it.
    fn forbids(&self, path: &str, access: Access, tree: bool) -> bool {
        let (written, resolved) = (path.to_owned(), path.to_owned());
        let kind = PathKind::Found;
        self.is_forbidden(&PathFact { written, resolved, access, tree, subject: false, new: false, kind, span: None })
    }

    fn is_forbidden(&self, fact: &PathFact) -> bool {
        let (files, home) = (&self.policy.files, self.setting.home.as_deref());
        let spellings = fact.spellings();
        let named = |rules: &[PathRule]| {
            spellings.iter().any(|path| last_word_of(rules, path, home, |scope| scope.covers(fact.access)).is_some())
        };
        let outside = |rules: &Vec<PathRule>| last_word(rules, &fact.resolved, home).is_none();
        named(&files.deny)
            || (fact.access == Access::Write && named(&files.read_only))
            || named(&files.approval)
            || self.setting.violated(fact).is_some()
            || files.allow.as_ref().is_some_and(outside)
            || fact.access == Access::Read && self.is_secret(fact)
    }

    /// Each entry of a listing, with text in front of it and behind, as seen from a folder.
    pub(super) fn listed_use(&mut self, file: &FileUse, from: &Dir, item: (&[Part], u16, &[Part]), name_only: bool) {
        let (before, index, after) = item;
        let Some(listing) = self.listings.get(usize::from(index)).cloned() else { return };
        let key = (index, from.clone(), before.to_vec(), after.to_vec(), file.access, file.tree);
        if !matches!(file.access, Access::Read | Access::Write) || !self.listed.insert(key) {
            return;
        }
        let base = match from {
            Dir::Start(dir) => self.absolute(&self.call.cwd, dir),
            Dir::Open(_) | Dir::Unknown => String::new(),
        };
        let plain = before.iter().chain(after).all(|part| matches!(part, Part::Text(_)));
        if base.is_empty() || !plain || self.listed.len() > MOST_TREES {
            let parts = [before, &[Part::Unknown(Source::Outside)], after].concat();
            return self.open_use(file, &self.spelled_out(from, &parts));
        }
        let item = Item { base, before: plain_text(before), after: plain_text(after), name_only };
        for dir in &listing.dirs {
            let bare = item.before.is_empty() && item.after.is_empty() && !name_only && dir == from;
            let mut listable = false;
            for (root, shown) in self.roots(dir, &listing) {
                match self.entries(file, &listing, (&root, &shown), &item, bare) {
                    None => {}
                    Some(Search::Done(())) => listable = true,
                    Some(Search::TooLarge) => {
                        listable = true;
                        let fact = self.path(&root, file.access, Some(file.span));
                        self.too_large(&fact);
                    }
                }
            }
            if !listable {
                self.unlisted(file, &listing, dir, &item);
            }
        }
    }

    /// Where a listing begins, and how that is printed.
    fn roots(&mut self, dir: &Dir, listing: &Listing) -> Vec<(String, String)> {
        match self.spell(dir, &listing.folder) {
            Spelled::Known(path, false) => vec![(path, listing.folder.literal().unwrap_or_default())],
            Spelled::Known(pattern, true) => match self.expand(&pattern) {
                Search::Done(found) => {
                    let base = match dir {
                        Dir::Start(dir) => fold(&self.absolute(&self.call.cwd, dir)),
                        Dir::Open(_) | Dir::Unknown => String::new(),
                    };
                    let short = |path: &String| {
                        let below = path
                            .strip_prefix(&base)
                            .filter(|_| !base.is_empty())
                            .map(|rest| rest.trim_start_matches('/'));
                        (path.clone(), below.unwrap_or(path).to_owned())
                    };
                    found.iter().take(MOST_TREES * 4).map(short).collect()
                }
                Search::TooLarge => Vec::new(),
            },
            Spelled::Listed(..) | Spelled::Open(_) => Vec::new(),
        }
    }

    /// The first entry below one root that is ruled out; `None` where the root cannot be listed.
    fn entries(
        &mut self,
        file: &FileUse,
        listing: &Listing,
        (root, shown): (&str, &str),
        item: &Item,
        bare: bool,
    ) -> Option<Search<()>> {
        let resolved = self.resolve(&self.without_proc(root));
        if let Some(rest) = self.through.take() {
            self.behind_process(file.access, true, Some(file.span), rest);
        }
        if !resolved.is_dir {
            if !self.exists(&resolved.path) {
                return None;
            }
            // A file is its own listing.
            let mut fact = self.path(&item.place(shown), file.access, Some(file.span));
            (fact.kind, fact.tree) = (PathKind::Found, file.tree);
            self.facts.paths.push(fact);
            return Some(Search::Done(()));
        }
        let shown = if listing.printed == Printed::Path { shown } else { "" };
        let mut found: Option<(String, bool)> = None;
        let mut stop = |met: &ListedEntry<'_>| {
            // A folder's content is read by nothing that does not go through it.
            if met.is_dir && file.access == Access::Read && !file.tree && !item.after.contains('/') {
                return false;
            }
            let plain = bare && listing.printed != Printed::Name;
            let path = if plain { met.path.to_owned() } else { fold(&item.place(&met.printed)) };
            let real = if met.is_link { self.resolve(&path).path } else { path.clone() };
            let fact = PathFact {
                written: path,
                resolved: real,
                access: file.access,
                tree: false,
                subject: false,
                new: false,
                kind: PathKind::Found,
                span: None,
            };
            let hit = self.is_forbidden(&fact);
            if hit {
                found = Some((fact.written, met.sure));
            }
            hit
        };
        let mut walk = Walk::of(self.world, listing, file.tree, &resolved.path);
        let end = walk.run(&resolved.path, shown, &mut stop);
        let stopped = walk.stopped;
        if let Some((path, sure)) = found.filter(|_| stopped) {
            let mut fact = self.path(&path, file.access, Some(file.span));
            fact.kind = if sure { PathKind::Found } else { PathKind::Perhaps };
            self.facts.paths.push(fact);
        } else if end == Some(Search::Done(())) {
            // Nothing of it is ruled: on record, without a word.
            let mut fact = self.path(root, file.access, Some(file.span));
            fact.kind = PathKind::Listing;
            self.facts.paths.push(fact);
        }
        end
    }

    /// A listing of a folder that is not there to be looked at: as far as its text says.
    fn unlisted(&mut self, file: &FileUse, listing: &Listing, dir: &Dir, item: &Item) {
        if !item.before.is_empty() || !item.after.is_empty() || item.name_only {
            return self.touch(file, &item.place(UNKNOWN), false);
        }
        if listing.ignores == Ignores::Git {
            return;
        }
        let (words, tree) = listing.as_globs();
        let rough = FileUse { tree: tree || file.tree, ..file.clone() };
        for word in words {
            match self.spell(dir, &word) {
                Spelled::Known(path, glob) => self.touch(&rough, &path, glob),
                Spelled::Open(parts) => self.open_use(&rough, &parts),
                Spelled::Listed(before, _, after) => {
                    let parts = [before.as_slice(), &[Part::Unknown(Source::Outside)], &after].concat();
                    self.open_use(&rough, &self.spelled_out(dir, &parts));
                }
            }
        }
    }
}

/// What stands around an entry of a listing in a path.
struct Item {
    /// The folder that a relative path hangs off, absolute.
    base: String,
    before: String,
    after: String,
    /// Only its last name counts.
    name_only: bool,
}

impl Item {
    /// The path of an entry.
    fn place(&self, printed: &str) -> String {
        let name = if self.name_only { printed.rsplit('/').next().unwrap_or_default() } else { printed };
        let text = format!("{}{name}{}", self.before, self.after);
        if text.starts_with('/') { text } else { format!("{}/{text}", self.base) }
    }
}

/// A name that `mktemp` makes is no other file's: as good as any that is known.
fn made_anew(part: Part) -> Part {
    if part == Part::Unknown(Source::Fresh) { Part::Text(FRESH.to_owned()) } else { part }
}
