//! What git does with whole repositories: the tracked files that a rule names and that a command would write or show.

use writ_shell::{Access, Analysis, Dir, RepositoryAct, RepositoryUse, Word, patch_names};

use super::Survey;
use super::changes::{Change, Changes};
use super::touched::{Found, Look, writes};
use crate::facts::{PathFact, PathKind, SEARCH, UnresolvedFact};
use crate::glob::Glob;
use crate::repository::Repository;
use crate::world::{Search, find_below};

/// Longest patch that is read.
const MAX_PATCH: usize = 4 << 20;

impl Survey<'_> {
    pub(super) fn repository(&mut self, act: &RepositoryUse, moved: bool) {
        let needs = match act.act {
            RepositoryAct::Contact | RepositoryAct::Submodules | RepositoryAct::Patch | RepositoryAct::Alias => true,
            _ if writes(act.act) => self.forbids_writing(),
            _ => !self.policy.files.deny.is_empty() || self.policy.flow.any(),
        };
        if !needs {
            return;
        }
        for dir in &act.dirs {
            if matches!(act.act, RepositoryAct::Contact | RepositoryAct::Submodules) {
                self.contact(dir, act);
                continue;
            }
            let folder = match dir {
                Dir::Start(dir) => self.absolute(&self.call.cwd, dir),
                Dir::Open(_) | Dir::Unknown => self.call.cwd.clone(),
            };
            let world = self.world;
            if act.act == RepositoryAct::Patch {
                self.patch(act, &folder);
                continue;
            }
            let Some(repo) = Repository::containing(world, &folder) else { continue };
            if act.act == RepositoryAct::Alias {
                self.alias(&repo, act);
                continue;
            }
            let Some(index) = repo.index() else {
                let what = repo.work.clone();
                self.facts.unresolved.push(UnresolvedFact { kind: SEARCH.to_owned(), what, span: Some(act.span) });
                continue;
            };
            let look = Look { repo: &repo, index, folder: &folder, act, span: act.span, moved };
            self.look(&look);
        }
    }

    /// What stands for a subcommand in the settings, as if it stood in the line.
    fn alias(&mut self, repo: &Repository<'_>, act: &RepositoryUse) {
        let Some(name) = act.revisions.first().and_then(Word::literal).filter(|_| !self.inside_alias) else { return };
        let home = self.setting.home.as_deref().unwrap_or_default();
        let Some(text) = repo.alias(&name, home) else { return };
        let quoted = |word: &Word| match word.literal() {
            Some(text) => format!("'{}'", text.replace('\'', "'\\''")),
            None => "\"$writ\"".to_owned(),
        };
        let rest: Vec<String> = act.paths.iter().map(quoted).collect();
        let line = match text.strip_prefix('!') {
            Some(code) => format!("{code} {}", rest.join(" ")),
            None => format!("git {text} {}", rest.join(" ")),
        };
        let facts = &self.facts;
        let before = (facts.texts.len(), facts.paths.len(), facts.hosts.len(), facts.unresolved.len());
        let earlier: Vec<Change> = self.changes.before(act.span).cloned().collect();
        let changes = std::mem::replace(&mut self.changes, Changes::of("", &Analysis::default(), earlier));
        self.inside_alias = true;
        self.shell(&line);
        self.inside_alias = false;
        self.changes = changes;
        // What was found stands where the alias does.
        let (span, facts) = (Some(act.span), &mut self.facts);
        facts.texts.iter_mut().skip(before.0).for_each(|fact| fact.span = span);
        facts.paths.iter_mut().skip(before.1).for_each(|fact| fact.span = span);
        facts.hosts.iter_mut().skip(before.2).for_each(|fact| fact.span = span);
        facts.unresolved.iter_mut().skip(before.3).for_each(|fact| fact.span = span);
    }

    fn forbids_writing(&self) -> bool {
        let files = &self.policy.files;
        let ruled = !files.deny.is_empty() || !files.read_only.is_empty() || self.policy.flow.any();
        ruled || !self.setting.protected.is_empty()
    }

    fn look(&mut self, look: &Look<'_>) {
        let access = if writes(look.act.act) { Access::Write } else { Access::Read };
        if matches!(look.act.act, RepositoryAct::Clean | RepositoryAct::CleanAll) {
            return self.clean(look);
        }
        let ruled = |path: &str| {
            let fact = self.tracked(look, path, access, PathKind::Found);
            self.is_named(&fact)
        };
        let tracked: Vec<String> =
            look.index.entries.iter().map(|entry| entry.path.clone()).filter(|path| ruled(path)).collect();
        let found = look.found(&tracked, &ruled);
        // A search looks into files on disk, or with an option into what git keeps of them.
        let stored = access == Access::Read;
        let (paths, kind) = match (found, stored) {
            (Found::Touched(paths), true) => (paths, PathKind::Stored),
            (Found::Touched(paths), false) => (paths, PathKind::Found),
            (Found::Open, true) => (look.among(tracked), PathKind::PerhapsStored),
            (Found::Open, false) => (look.among(tracked), PathKind::Maybe),
        };
        for path in paths.iter().take(4) {
            let fact = self.tracked(look, path, access, kind);
            self.facts.paths.push(fact);
        }
    }

    fn tracked(&self, look: &Look<'_>, path: &str, access: Access, kind: PathKind) -> PathFact {
        let written = look.repo.absolute(path);
        let resolved = written.clone();
        PathFact { written, resolved, access, tree: false, subject: false, new: false, kind, span: Some(look.span) }
    }

    /// Files that git does not track, and that a rule names.
    fn clean(&mut self, look: &Look<'_>) {
        let all = look.act.act == RepositoryAct::CleanAll;
        let specs = look.specs(&look.act.paths);
        let prefix = look.repo.prefix(look.folder);
        let ignored = if all { Vec::new() } else { look.repo.ignored() };
        let below = |path: &str| path.strip_prefix(look.repo.work.as_str())?.strip_prefix('/').map(str::to_owned);
        let is_folder = |path: &str| {
            let found = self.resolve(path);
            found.is_dir && found.path == path
        };
        let hit = |path: &str| {
            let Some(own) = below(path) else { return false };
            let fact = self.tracked(look, &own, Access::Write, PathKind::Found);
            own.starts_with(&prefix)
                && specs.matches(&own)
                && self.is_named(&fact)
                && look.index.id(&own).is_none()
                && !is_ignored(&ignored, &own)
                // Git removes a folder when nothing is left in it.
                && !is_folder(path)
        };
        if let Search::Done(Some(path)) = find_below(self.world, &look.repo.work, &hit) {
            let own = below(&path).unwrap_or_default();
            let fact = self.tracked(look, &own, Access::Write, if all { PathKind::Found } else { PathKind::Maybe });
            self.facts.paths.push(fact);
        }
    }

    /// A patch: the files it names, or what is not known of it.
    fn patch(&mut self, act: &RepositoryUse, folder: &str) {
        let text = |word: &Word| {
            let path = self.absolute(folder, &word.literal().filter(|_| !word.is_glob())?);
            let bytes = self.world.read(&path, 0, MAX_PATCH).filter(|bytes| bytes.len() < MAX_PATCH)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let texts: Option<Vec<String>> = act.paths.iter().map(text).collect();
        let Some(texts) = texts.filter(|texts| !texts.is_empty()) else {
            let mut fact = self.path(folder, Access::Write, Some(act.span));
            (fact.tree, fact.kind) = (true, PathKind::Into);
            return self.facts.paths.push(fact);
        };
        let top = Repository::containing(self.world, folder).map(|repo| repo.work);
        for name in texts.iter().flat_map(|text| patch_names(text)) {
            for base in std::iter::once(folder).chain(top.as_deref()) {
                let fact = self.path(&self.absolute(base, &name), Access::Write, Some(act.span));
                if self.is_named(&fact) && !self.facts.paths.contains(&fact) {
                    self.facts.paths.push(fact);
                }
            }
        }
    }
}

/// Whether a line of `.gitignore` names a path; `!` is not read, so that less counts as ignored.
fn is_ignored(lines: &[String], path: &str) -> bool {
    lines.iter().any(|line| {
        let anchored = line.trim_end_matches('/').contains('/');
        let text = line.trim_matches('/');
        let Ok(glob) = Glob::parse(text) else { return false };
        let parts: Vec<&str> = path.split('/').collect();
        (1..=parts.len()).any(|end| {
            let whole = parts.get(..end).unwrap_or_default().join("/");
            if anchored { glob.matches(&whole) } else { parts.get(end - 1).is_some_and(|name| glob.matches(name)) }
        })
    })
}
