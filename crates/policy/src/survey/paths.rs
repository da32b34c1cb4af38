//! Where a path leads, and what lies below it (R13).

use writ_core::Span;
use writ_shell::Access;

use std::collections::{HashMap, HashSet};

use super::{MOST_TREES, Survey};
use crate::facts::{PathFact, PathKind, SEARCH, UnresolvedFact};
use crate::glob::name::is_pattern;
use crate::glob::split;
use crate::grants::Kind;
use crate::rules::{PathRule, Reading, ToolPattern, last_word_of};
use crate::scope::Scope;
use crate::world::{Resolved, Search, expand, find_below, find_below_all, fold, links_out};

/// Folders that hold nothing but what installing and building puts there again.
const INSTALLED: [&str; 14] = [
    "node_modules",
    "bower_components",
    ".venv",
    "venv",
    "site-packages",
    "dist-packages",
    ".tox",
    ".nox",
    ".terraform",
    "target",
    "__pycache__",
    ".next",
    ".gradle",
    ".pnpm-store",
];
/// What is denied below a tree.
#[derive(Clone)]
pub(super) struct Below {
    path: String,
    tree: bool,
    kind: PathKind,
}

/// The folder of whoever follows a link to it, as a world says where that leads.
const OWN_FOLDER: &str = "/proc/self/cwd";

/// What stands behind a link of the kernel's to a process's folder, or to a file that it has open. The folder is the process's
/// by then, not the call's: a line changes it, and opens folders.
fn through_process(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let rest = match parts.as_slice() {
        ["proc", _, "root", rest @ ..] | ["proc", _, "task", _, "root", rest @ ..] => {
            return through_process(&format!("/{}", rest.join("/")));
        }
        ["dev", "fd", "..", ..] => return None,
        ["proc", _, "task", _, "cwd", rest @ ..] | ["proc", _, "cwd", rest @ ..] => rest,
        ["proc", _, "task", _, "fd", _, rest @ ..]
        | ["proc", _, "fd", _, rest @ ..]
        | ["dev", "fd", _, rest @ ..]
        | ["dev", "stdin" | "stdout" | "stderr", rest @ ..]
            if !rest.is_empty() =>
        {
            rest
        }
        _ => return None,
    };
    Some(rest.iter().map(|part| format!("/{part}")).collect())
}

/// Most names that are looked at for where a glob leads.
const MAX_NAMES: usize = 20_000;

/// Why a path is refused.
pub(super) const TOO_LONG: &str = "a path of more than 4096 bytes is longer than any path";
/// Longest path that a system takes, in bytes.
pub(super) const PATH_MAX: usize = 4096;

impl Survey<'_> {
    /// Refuses a path that no system would take.
    pub(super) fn is_too_long(&mut self, path: &str) -> bool {
        let long = path.len() > PATH_MAX;
        if long {
            self.facts.malformed = Some(TOO_LONG.to_owned());
        }
        long
    }

    /// The first denied file on disk below a tree, as a fact of its own.
    pub(super) fn tree(&mut self, fact: &PathFact) {
        let reads = matches!(fact.access, Access::Read | Access::Write);
        let files = &self.policy.files;
        let ruled = fact.subject && self.has_path_rules();
        let unruled = files.deny.is_empty() && files.read_only.is_empty() && files.approval.is_empty();
        let unruled = unruled && self.policy.grants.of(Kind::Secrets).allow.is_none();
        if !fact.tree || !reads || (unruled && !ruled) {
            return;
        }
        let home = self.setting.home.as_deref();
        let removing = self.removing;
        // Names above the folder that the line starts in, or above what is removed, say nothing.
        let start = split(&self.call.cwd);
        let whole = split(&fact.resolved);
        let above = if whole.starts_with(&start) { start.len() } else { whole.len().saturating_sub(1) };
        let denied = |path: &str| {
            let path_parts = split(path);
            // A rule for names anywhere is not about what packages and builds put into their own folders: these go as they came.
            let own = removing && path_parts.iter().skip(above).rev().skip(1).any(|part| INSTALLED.contains(part));
            let meant = |rule: &&PathRule| !own || rule.anchor(home).is_some();
            let named = |rules| {
                last_word_of(rules, &path_parts, home, |scope| scope.covers(fact.access)).filter(meant).is_some()
            };
            named(&files.deny)
                || (fact.access == Access::Write && named(&files.read_only))
                || (fact.access == Access::Read && (named(&files.approval) || self.is_ungranted(path)))
                || (ruled && self.is_ruled(path))
        };
        let key = (fact.resolved.clone(), fact.access, removing);
        let search = match self.found.get(&key).cloned() {
            Some(known) => known,
            None if self.found.len() >= MOST_TREES => Search::TooLarge,
            None => match find_below(self.world, &fact.resolved, &denied) {
                Search::Done(None) if fact.access == Access::Read && !removing => {
                    let mut links = self.links;
                    let behind = self.behind_links(fact, &denied, &mut links);
                    self.links = links;
                    behind
                }
                Search::Done(found) => {
                    Search::Done(found.map(|path| Below { path, tree: false, kind: PathKind::Found }))
                }
                Search::TooLarge => Search::TooLarge,
            },
        };
        self.found.insert(key, search.clone());
        match search {
            Search::TooLarge => self.too_large(fact),
            Search::Done(found) => self.facts.paths.extend(found.map(|Below { path, tree, kind }| {
                let subject = fact.subject;
                PathFact { kind, tree, subject, ..self.path(&path, fact.access, fact.span) }
            })),
        }
    }

    /// What is denied where symlinks in a tree lead to, which a program that follows them reads, too: perhaps this one does.
    /// `links` is how many more may be followed.
    fn behind_links(&self, fact: &PathFact, denied: &dyn Fn(&str) -> bool, links: &mut usize) -> Search<Option<Below>> {
        let home = self.setting.home.as_deref();
        let files = &self.policy.files;
        let Search::Done(places) = links_out(self.world, &fact.resolved, links) else { return Search::TooLarge };
        let anchored = |dir: &str| files.deny.iter().any(|rule| rule.is_anchored_below(dir, home));
        let ruled = |place: &&Resolved| denied(&place.path) || place.is_dir && anchored(&place.path);
        let mut hit = places.iter().find(ruled).map(|place| (place.path.clone(), place.is_dir));
        if hit.is_none() {
            let folders: Vec<&str> = places.iter().filter(|place| place.is_dir).map(|place| &*place.path).collect();
            match find_below_all(self.world, &folders, denied) {
                Search::Done(found) => hit = found.map(|path| (path, false)),
                Search::TooLarge => return Search::TooLarge,
            }
        }
        Search::Done(hit.map(|(path, tree)| Below { path, tree, kind: PathKind::Perhaps }))
    }

    /// The patterns of `deny` and `requireApproval` that are about this tool's paths.
    fn path_rules(&self) -> impl Iterator<Item = &PathRule> {
        let tools = &self.policy.tools;
        let all = tools.deny.iter().chain(&tools.approval);
        let about = all.filter(|rule| rule.is_about_any(self.facts.names(), Reading::Wide));
        about.filter_map(|rule| if let Some(ToolPattern::Path(path)) = &rule.subject { Some(path) } else { None })
    }

    pub(super) fn has_path_rules(&self) -> bool {
        self.path_rules().next().is_some()
    }

    pub(super) fn is_ruled(&self, path: &str) -> bool {
        self.path_rules().any(|rule| rule.matches(path, self.setting.home.as_deref()))
    }

    /// Where a Glob pattern reaches: the folder in front of its wildcards, and the files on disk that a rule about the tool
    /// names.
    pub(super) fn glob_reach(&mut self, whole: &str) {
        if !self.has_path_rules() {
            return;
        }
        let fixed: Vec<&str> = whole.split('/').take_while(|part| !part.contains(['*', '?', '['])).collect();
        let places = match self.expand(whole) {
            Search::Done(found) => found,
            Search::TooLarge => Vec::new(),
        };
        for place in std::iter::once(fixed.join("/")).chain(places) {
            let mut fact = self.path(&place, Access::List, None);
            fact.subject = true;
            if [&fact.written, &fact.resolved].iter().any(|path| self.is_ruled(path)) {
                self.facts.paths.push(fact);
            }
        }
    }

    /// Whether a glob may lead through a process's folder: one of its names, of those that are no file's, is a link there.
    pub(super) fn glob_leads_through(&self, pattern: &str) -> bool {
        let parts: Vec<&str> = pattern.split('/').collect();
        let wild =
            parts.iter().enumerate().filter(|(at, part)| *at + 1 < parts.len() && is_pattern(part) && **part != "**");
        wild.into_iter().any(|(at, _)| {
            let prefix = parts.get(..=at).unwrap_or_default().join("/");
            // More than can be looked at is told where the whole glob is expanded.
            let mut left = MAX_NAMES;
            let Search::Done(found) = expand(self.world, &prefix, &mut left) else { return false };
            let mut links: HashMap<&str, HashSet<String>> = HashMap::new();
            found.iter().any(|place| {
                let (folder, name) = place.rsplit_once('/').unwrap_or_default();
                let own = place.starts_with("/proc/") || place.starts_with("/dev/");
                let of =
                    |folder: &str| self.world.list(if folder.is_empty() { "/" } else { folder }).unwrap_or_default();
                let leads = own
                    || links
                        .entry(folder)
                        .or_insert_with(|| {
                            of(folder).into_iter().filter(|one| one.is_link).map(|one| one.name).collect()
                        })
                        .contains(name);
                leads && {
                    let rest = parts.get(at + 1..).unwrap_or_default().join("/");
                    self.path(&format!("{place}/{rest}"), Access::List, None);
                    self.through.take().is_some()
                }
            })
        })
    }

    /// The paths that a glob expands to. Where more globs expand than can be looked at, that is not known, and asks.
    pub(super) fn expand(&mut self, pattern: &str) -> Search<Vec<String>> {
        let before = self.entries;
        let found = expand(self.world, pattern, &mut self.entries);
        if self.entries == 0 && before > 0 {
            let what = fold(pattern);
            self.facts.unresolved.push(UnresolvedFact { kind: SEARCH.to_owned(), what, span: None });
        }
        found
    }

    pub(super) fn too_large(&mut self, fact: &PathFact) {
        let what = fact.written.clone();
        self.facts.unresolved.push(UnresolvedFact { kind: SEARCH.to_owned(), what, span: fact.span });
    }

    /// Where a path leads; by a link to its own folder, to the call's.
    pub(super) fn resolve(&self, path: &str) -> Resolved {
        let found = self.world.resolve(path);
        let through = through_process(&found.path);
        let own = found.path.strip_prefix(OWN_FOLDER).map(|rest| format!("{}{rest}", self.call.cwd));
        self.through.set(through);
        own.map_or(found, |own| self.world.resolve(&own))
    }

    pub(super) fn path(&self, absolute: &str, access: Access, span: Option<Span>) -> PathFact {
        let named = through_process(absolute);
        let absolute = &self.without_proc(absolute);
        let resolved = self.resolve(absolute).path;
        let through = named.or(self.through.take());
        let new = access == Access::Write && self.is_changed(&resolved) && self.is_new(&resolved);
        self.through.set(through);
        let written = fold(absolute);
        PathFact { written, resolved, access, tree: false, subject: false, new, kind: PathKind::Named, span }
    }

    /// Whether surely nothing is there yet.
    pub(super) fn is_new(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let folder = if folder.is_empty() { "/" } else { folder };
        match self.world.list(folder) {
            Some(entries) => entries.iter().all(|entry| entry.name != name),
            None => !self.resolve(folder).is_dir,
        }
    }

    /// Whether a rule is about changes of this path: only then it matters whether it is there.
    fn is_changed(&self, path: &str) -> bool {
        let files = &self.policy.files;
        let rules = files.read_only.iter().chain(&files.approval);
        rules.filter(|rule| rule.scope == Scope::Changes).any(|rule| rule.matches(path, self.setting.home.as_deref()))
    }

    /// `/proc/<process>/cwd` and `/proc/<process>/root` lead to folders that are known; the links themselves are another
    /// process's by the time they are looked at.
    pub(super) fn without_proc(&self, path: &str) -> String {
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
        let process = (parts.next(), parts.next());
        let (Some("proc"), Some(process)) = process else { return path.to_owned() };
        let mut link = parts.next();
        while link == Some("task") && parts.next().is_some() {
            link = parts.next();
        }
        let folder = match link {
            // Where another one is now, the world says.
            Some("cwd") if !process.bytes().all(|byte| byte.is_ascii_digit()) => self.call.cwd.as_str(),
            Some("root") => "",
            _ => return path.to_owned(),
        };
        self.without_proc(&format!("{folder}/{}", parts.collect::<Vec<_>>().join("/")))
    }

    /// `path` as seen from `base`, not folded: symlinks decide what `..` means.
    pub(super) fn absolute(&self, base: &str, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        match (path.strip_prefix('~'), self.setting.home.as_deref()) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => format!("{base}/{path}"),
        }
    }
}
