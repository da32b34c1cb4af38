//! Which hosts a git command contacts by the names of remotes: by the settings on the disk, and by what the line made of them before.
//!
//! Owns what becomes of a contact whose repository, or whose settings, are not known: its host is not known either. Reads no
//! reply of a network. Page: `spec/policy.md`.

use writ_core::Span;
use writ_shell::{Access, Dir, RepositoryAct, RepositoryUse, Word};

use super::Survey;
use super::changes::{Change, Made, Origin};
use crate::facts::{Host, HostFact, PathFact, PathKind};
use crate::protect::is_below;
use crate::repository::{Remotes, Repository, Switched, system_files};
use crate::url::{self, Target};
use crate::world::fold;

/// Stands for every remote among the names of a contact.
const EVERY: &str = "--all";

impl Survey<'_> {
    /// The hosts that remotes lead to. What is spelled out the settings may rewrite.
    pub(super) fn contact(&mut self, dir: &Dir, act: &RepositoryUse) {
        let folder = match dir {
            Dir::Start(dir) => Some(fold(&self.absolute(&self.call.cwd, dir))),
            Dir::Open(_) | Dir::Unknown => None,
        };
        let (world, home) = (self.world, self.setting.home.clone().unwrap_or_default());
        let mut repo = folder.as_ref().and_then(|folder| Repository::containing(world, folder));
        let made = folder.as_ref().and_then(|folder| self.made_by_line(folder, repo.as_ref(), act.span));
        let mut cloned = None;
        match made.as_ref().map(|(made, base)| (&made.of, base)) {
            Some((Origin::WorkTree, base)) => repo = Repository::containing(world, base),
            Some((Origin::Clone(source), _)) => (repo, cloned) = (None, Some(source.clone())),
            Some((Origin::Empty, _)) => repo = None,
            None => {}
        }
        let mut remotes = Remotes::of(world, repo.as_ref(), &home);
        let switched = self.changed(&mut remotes, act.span);
        let place = Place { folder: folder.as_deref(), repo: repo.as_ref(), made: made.as_ref().map(|(made, _)| made) };
        if switched.is_none() || remotes.is_open() || self.rewrites_settings(&place, &remotes, &home, act.span) {
            self.contacted(Host::Unknown, act);
        }
        if act.act == RepositoryAct::Submodules {
            self.leading("submodules", &remotes.submodules(), act);
            if cloned.is_some() {
                self.contacted(Host::Unknown, act);
            }
        }
        let own =
            |source: &Option<String>| source.iter().flat_map(|source| remotes.rewritten(source)).collect::<Vec<_>>();
        // Where nothing is, and the line makes nothing, git only fails.
        let fails = place.is_nowhere() && folder.as_ref().is_some_and(|folder| *folder == fold(&self.call.cwd));
        let every = |word: &Word| word.literal().as_deref() == Some(EVERY);
        if act.revisions.is_empty() || act.revisions.iter().any(every) {
            match &cloned {
                Some(source) => self.leading("origin", &own(source), act),
                None if place.is_nowhere() && !fails => self.contacted(Host::Unknown, act),
                None => {}
            }
        }
        for name in named(&remotes, &switched.unwrap_or_default(), act) {
            match name {
                Some(name) if is_spelled(&name) => self.leading(&name, &remotes.rewritten(&name), act),
                Some(name) => match (remotes.urls(&name), &cloned) {
                    (Some(urls), _) => self.leading(&name, &urls, act),
                    (None, Some(source)) if name == "origin" => self.leading(&name, &own(source), act),
                    (None, _) if fails => {}
                    (None, _) => self.contacted(Host::Unknown, act),
                },
                None if fails => {}
                None => self.contacted(Host::Unknown, act),
            }
        }
        for way in remotes.ways() {
            let host = way.map_or(Some(Host::Unknown), |address| proxy_of(&address));
            host.into_iter().for_each(|host| self.contacted(host, act));
        }
        self.approved(&remotes, repo.as_ref());
    }

    /// The repository that the line makes where a command then runs, with the folder that it was made from.
    fn made_by_line(&self, folder: &str, repo: Option<&Repository<'_>>, span: Span) -> Option<(Made, String)> {
        let mut found = None;
        for change in self.changes.before(span) {
            let Change::Made(made) = change else { continue };
            for dir in &made.dirs {
                let (Some(base), Some(own)) = (self.start(dir), &made.folder) else { continue };
                let place = fold(&self.absolute(&base, own));
                // What is there already stays what it is, unless the line takes it away.
                let older = repo.is_some_and(|repo| is_below(&repo.work, &place));
                let emptied = || self.facts.paths.iter().any(|fact| self.is_removed(fact, &format!("{place}/.git")));
                if is_below(folder, &place) && (!older || emptied()) {
                    found = Some((made.clone(), base));
                }
            }
        }
        found
    }

    fn is_removed(&self, fact: &PathFact, path: &str) -> bool {
        let within = |span: Span| self.removals.iter().any(|own| own.start <= span.start && span.end <= own.end);
        fact.written == path && fact.tree && fact.span.is_some_and(within)
    }

    /// Puts in what the line changed before; the branches that may be checked out then, or `None` where a change is not known.
    fn changed(&self, remotes: &mut Remotes<'_, '_>, span: Span) -> Option<Switched> {
        let mut switched = Switched::default();
        let mut known = true;
        for change in self.changes.before(span) {
            match change {
                Change::Setting(name, value) => remotes.put(name, value),
                Change::Renamed(old, new) => {
                    remotes.rename(old, new);
                    switched.any |= old.starts_with("branch.");
                }
                Change::Branch(Some(name)) => switched.branches.push(name.clone()),
                Change::Branch(None) => switched.any = true,
                Change::Upstream(Some(name)) => switched.upstreams.push(name.clone()),
                Change::Upstream(None) | Change::Removed => switched.every = true,
                Change::Made(_) => {}
                Change::Unknown => known = false,
            }
        }
        known.then_some(switched)
    }

    /// Whether the line may write what the repository's settings are read from, or put another repository there.
    fn rewrites_settings(&self, place: &Place<'_>, remotes: &Remotes<'_, '_>, home: &str, span: Span) -> bool {
        let read: Vec<String> = remotes.files().into_iter().map(|(path, _)| path).chain(system_files(home)).collect();
        self.facts.paths.iter().filter(|fact| fact.access == Access::Write).any(|fact| {
            let at = fact.span.map_or(0, |own| own.start);
            // What git itself writes of settings is followed.
            let followed = fact.span.is_some_and(|own| self.is_gits(own));
            let certain = !matches!(
                fact.kind,
                PathKind::Mentioned | PathKind::Text | PathKind::Listing | PathKind::Unlikely | PathKind::Argument
            );
            certain
                && !followed
                && (self.inside_alias || self.changes.comes_before(at, span))
                && [&fact.written, &fact.resolved].into_iter().any(|path| {
                    read.contains(path)
                        || place.steers(path) && !self.makes_anew(fact, place)
                        || self.replaces(fact, path, place)
                })
        })
    }

    /// Whether a repository is taken away, and the line makes another one there.
    fn makes_anew(&self, fact: &PathFact, place: &Place<'_>) -> bool {
        let within = |span: Span| self.removals.iter().any(|own| own.start <= span.start && span.end <= own.end);
        place.made.is_some() && fact.span.is_some_and(within)
    }

    /// Whether the folder that a command runs in, or one above it in the repository, is another one than before.
    fn replaces(&self, fact: &PathFact, path: &str, place: &Place<'_>) -> bool {
        let whole = fact.tree || fact.kind == PathKind::Named;
        let inside = place.repo.is_none_or(|repo| path != repo.work && is_below(path, &repo.work));
        let here = place.folder.is_some_and(|folder| is_below(folder, path)) && path != self.call.cwd;
        whole && inside && here && place.made.is_none() && !self.made.iter().any(|made| made == path)
    }

    /// Whether a place of the line stands in a command of git's.
    fn is_gits(&self, span: Span) -> bool {
        self.gits.iter().any(|own| own.start <= span.start && span.end <= own.end)
    }

    /// What a human says yes to besides the remotes: the settings that git reads, and the branch.
    fn approved(&mut self, remotes: &Remotes<'_, '_>, repo: Option<&Repository<'_>>) {
        let files = remotes.files().into_iter().map(|(path, digest)| (format!("settings {path}"), digest.to_string()));
        let branch = repo.and_then(Repository::branch).map(|branch| ("HEAD".to_owned(), branch));
        self.facts.remotes.extend(files.chain(branch));
    }

    /// What a name leads to is contacted, and is what a human says yes to.
    fn leading(&mut self, name: &str, urls: &[String], act: &RepositoryUse) {
        urls.iter().filter_map(|text| host_of(text)).for_each(|host| self.contacted(host, act));
        self.facts.remotes.push((format!("remote {name}"), urls.join("\n")));
    }

    fn contacted(&mut self, host: Host, act: &RepositoryUse) {
        if self.policy.domains.any() || self.policy.flow.any() {
            self.facts.hosts.push(HostFact { host, mentioned: false, span: Some(act.span) });
        }
    }
}

/// Where a command of git's runs, and the repository there.
struct Place<'p> {
    folder: Option<&'p str>,
    repo: Option<&'p Repository<'p>>,
    made: Option<&'p Made>,
}

impl Place<'_> {
    /// Whether no repository is known there, and the line makes none.
    const fn is_nowhere(&self) -> bool {
        self.repo.is_none() && self.made.is_none()
    }

    /// Whether a path is one that says where the commands of a repository here go, or a folder that holds all of these.
    fn steers(&self, path: &str) -> bool {
        let own = path.rfind("/.git").filter(|at| {
            let base = path.get(..*at).unwrap_or_default();
            self.folder.is_some_and(|folder| is_below(folder, base))
        });
        let rest = own.and_then(|at| path.get(at + "/.git".len()..));
        rest.is_some_and(is_steering) || self.repo.is_some_and(|repo| repo.holds(path).is_some_and(is_steering))
    }
}

/// Whether a file of a repository, by its path in the folder of git's, says where commands go.
fn is_steering(rest: &str) -> bool {
    const NAMES: [&str; 9] =
        ["config", "config.worktree", "HEAD", "commondir", "gitdir", "remotes", "branches", "modules", "worktrees"];
    let name = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
    rest.is_empty() || rest.starts_with('/') && (name.is_empty() || NAMES.contains(&name))
}

/// The names that a contact is by; `None` for one that is not known.
fn named(remotes: &Remotes<'_, '_>, switched: &Switched, act: &RepositoryUse) -> Vec<Option<String>> {
    if act.revisions.is_empty() {
        return remotes.usual(switched).into_iter().map(Some).collect();
    }
    let one = |word: &Word| match word.literal() {
        Some(name) if name == EVERY => remotes.names().into_iter().map(Some).collect(),
        name => vec![name],
    };
    act.revisions.iter().flat_map(one).collect()
}

/// Whether a word is an address, and no name of one.
fn is_spelled(name: &str) -> bool {
    name.contains(':') || name.starts_with(['/', '.', '~'])
}

/// The host of a proxy, which may stand without a scheme.
fn proxy_of(text: &str) -> Option<Host> {
    let address = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    host_of(&address)
}

/// The host of a remote's URL; `None` where it is a folder on this machine.
fn host_of(text: &str) -> Option<Host> {
    if text.contains("://") {
        return match url::read(text) {
            Target::Host(host) => Some(host),
            Target::File(_) => None,
        };
    }
    if text.starts_with("ext::") || text.contains("::") {
        return Some(Host::Unknown);
    }
    let (machine, _) = text.split_once(':').filter(|(machine, _)| !machine.contains('/'))?;
    Some(url::read_host(machine.rsplit('@').next().unwrap_or_default()))
}
