//! Remotes and what is ignored, as files in the repository and the user's have them.

use writ_core::Digest;

use super::{Config, MAX_FILE, Repository};
use crate::world::{World, fold};

/// Most files of settings that others include.
const MOST_INCLUDED: usize = 16;
/// Deepest that files of settings include each other, as in git.
const DEEPEST: usize = 10;
/// Most folders of submodules that are looked into.
const MOST_MODULES: usize = 64;

/// Which branches may be checked out besides the one that is.
#[derive(Debug, Default)]
pub struct Switched {
    pub branches: Vec<String>,
    /// Any branch.
    pub any: bool,
    /// Remotes that a branch may have been told to follow, each in front of a branch's name.
    pub upstreams: Vec<String>,
    /// Any remote that there is.
    pub every: bool,
}

/// What names of remotes stand for, by the settings of a repository and of the user, and of what these include.
pub struct Remotes<'r, 'w> {
    repo: Option<&'r Repository<'w>>,
    all: Config,
    /// The files that were read, and the digests of what is in them.
    files: Vec<(String, Digest)>,
    /// Some of what git reads is not known.
    open: bool,
}

impl<'r, 'w> Remotes<'r, 'w> {
    /// Of the repository that a command runs in, if it does in one.
    pub fn of(world: &'w dyn World, repo: Option<&'r Repository<'w>>, home: &str) -> Self {
        let mut reader =
            Reader { world, home, left: MOST_INCLUDED, all: Config::default(), files: Vec::new(), open: false };
        system_files(home).iter().for_each(|file| reader.file(file, 0));
        if let Some(repo) = repo {
            repo.settings_files().iter().for_each(|file| reader.file(file, 0));
        }
        Self { repo, all: reader.all, files: reader.files, open: reader.open }
    }

    /// Whether git reads settings that are not known.
    pub const fn is_open(&self) -> bool {
        self.open
    }

    /// The files of settings that git reads, those of submodules too, and what is in them.
    pub fn files(&self) -> Vec<(String, Digest)> {
        let modules = self.repo.map(Repository::modules).unwrap_or_default();
        let module = |path: String| Some((path.clone(), Digest::of(self.repo?.text(&path)?.as_bytes())));
        self.files.iter().cloned().chain(modules.into_iter().filter_map(module)).collect()
    }

    /// Adds a setting, as if it stood behind all others.
    pub fn put(&mut self, name: &str, value: &str) {
        self.all.push(name, value);
    }

    /// Gives one section another's settings, as if it were called so.
    pub fn rename(&mut self, old: &str, new: &str) {
        let named = |(name, value): (&str, &str)| {
            let rest = name.strip_prefix(old)?.strip_prefix('.')?;
            Some((format!("{new}.{rest}"), value.to_owned()))
        };
        let more: Vec<(String, String)> = self.all.each().filter_map(named).collect();
        more.iter().for_each(|(name, value)| self.put(name, value));
    }

    /// The names of all remotes.
    pub fn names(&self) -> Vec<String> {
        let set = self.all.below("remote", "url").chain(self.all.below("remote", "pushurl"));
        let mut names: Vec<String> = set.map(|(name, _)| name.to_owned()).collect();
        let files = ["remotes", "branches"].into_iter().filter_map(|folder| self.repo?.names_in(folder)).flatten();
        names.extend(files);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The URLs that a remote's name stands for; `None` where it has none.
    pub fn urls(&self, name: &str) -> Option<Vec<String>> {
        // A group of remotes (`git fetch group`) has no groups in it.
        let group = self.all.last(&format!("remotes.{name}")).unwrap_or_default();
        let names = std::iter::once(name).chain(group.split_whitespace());
        let urls: Vec<String> = names.flat_map(|one| self.kept(one)).flat_map(|url| self.rewritten(&url)).collect();
        (!urls.is_empty()).then_some(urls)
    }

    fn kept(&self, name: &str) -> Vec<String> {
        let settings = ["url", "pushurl"].map(|own| format!("remote.{name}.{own}"));
        let mut urls: Vec<String> =
            settings.iter().flat_map(|setting| self.all.all(setting)).map(str::to_owned).collect();
        let file = |folder: &str| self.repo.and_then(|repo| repo.own(&format!("{folder}/{name}")));
        if let Some(text) = file("remotes") {
            urls.extend(text.lines().filter_map(|line| line.strip_prefix("URL:")).map(|url| url.trim().to_owned()));
        }
        if let Some(text) = file("branches") {
            urls.extend(text.lines().next().map(|url| url.split('#').next().unwrap_or_default().trim().to_owned()));
        }
        urls
    }

    /// The URLs of submodules, as the settings and `.gitmodules` have them; one that is relative hangs off a remote's.
    pub fn submodules(&self) -> Vec<String> {
        let listed = self.repo.and_then(|repo| repo.text(&repo.absolute(".gitmodules"))).unwrap_or_default();
        let listed = Config::parse(&listed);
        let urls = self.all.below("submodule", "url").chain(listed.below("submodule", "url")).map(|(_, url)| url);
        urls.filter(|url| !url.starts_with('.')).flat_map(|url| self.rewritten(url)).collect()
    }

    /// The remotes of a command that names none: those of each branch that may be checked out, and `origin` or the only one where a
    /// branch has none.
    pub fn usual(&self, switched: &Switched) -> Vec<String> {
        let mut branches = switched.branches.clone();
        branches.extend(self.repo.and_then(Repository::branch));
        if switched.any {
            let set = self.all.below("branch", "remote").chain(self.all.below("branch", "pushremote"));
            branches.extend(set.map(|(name, _)| name.to_owned()));
        }
        let names = self.names();
        let setting = |branch: &String, name: &str| self.all.last(&format!("branch.{branch}.{name}"));
        let mut out: Vec<String> = self.all.last("remote.pushdefault").into_iter().map(str::to_owned).collect();
        for branch in &branches {
            out.extend(["remote", "pushremote"].iter().filter_map(|name| setting(branch, name)).map(str::to_owned));
            out.extend(names.iter().filter(|remote| self.is_followed(remote, branch)).cloned());
        }
        let led = |name: &&String| {
            let lead =
                |upstream: &String| upstream.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
            switched.every || switched.upstreams.iter().any(lead)
        };
        out.extend(names.iter().filter(led).cloned());
        if switched.any || branches.is_empty() || branches.iter().any(|branch| setting(branch, "remote").is_none()) {
            match names.as_slice() {
                [] => {}
                [only] => out.push(only.clone()),
                _ => out.push("origin".to_owned()),
            }
        }
        out.retain(|name| name != ".");
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Whether a branch that is not there yet would follow one of this remote.
    fn is_followed(&self, remote: &str, branch: &str) -> bool {
        self.repo.is_some_and(|repo| {
            !repo.has_reference(&format!("refs/heads/{branch}"))
                && repo.has_reference(&format!("refs/remotes/{remote}/{branch}"))
        })
    }

    /// What else is contacted on the way to a remote: proxies and other stores, and `None` for what a program of the settings decides.
    pub fn ways(&self) -> Vec<Option<String>> {
        let proxy = |name: &str| name == "http.proxy" || name.ends_with(".proxy") && name.starts_with(['h', 'r']);
        let other = |name: &str| matches!(name, "fetch.bundleuri" | "lfs.url") || name.ends_with(".lfsurl");
        let run = |name: &str, value: &str| match name {
            "core.gitproxy" => value != "none" && !value.starts_with("none for "),
            "core.sshcommand" => !is_plain_ssh(value),
            "http.curloptresolve" => true,
            _ => name.starts_with("remote.") && name.ends_with(".vcs"),
        };
        let way = |(name, value): (&str, &str)| match () {
            () if value.is_empty() => None,
            () if proxy(name) || other(name) => Some(Some(value.to_owned())),
            () if run(name, value) => Some(None),
            () => None,
        };
        self.all.each().filter_map(way).collect()
    }

    /// What an address is to git: as `url.*.insteadOf` wants it and, where there is one, `url.*.pushInsteadOf`.
    pub fn rewritten(&self, url: &str) -> Vec<String> {
        let by = |setting| {
            let fitting = self.all.below("url", setting).filter(|(_, old)| url.starts_with(old));
            let (new, old) = fitting.max_by_key(|(_, old)| old.len())?;
            Some(format!("{new}{}", url.get(old.len()..).unwrap_or_default()))
        };
        let fetched = by("insteadof").unwrap_or_else(|| url.to_owned());
        std::iter::once(fetched).chain(by("pushinsteadof")).collect()
    }
}

/// Whether a command is `ssh` with a key, and goes where it is told.
fn is_plain_ssh(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().is_some_and(|name| name.rsplit('/').next() == Some("ssh"));
    let harmless = |word: &str| match word {
        "-v" | "-q" | "-4" | "-6" | "-a" | "-x" | "-T" => true,
        option => option.starts_with("-i") || option.starts_with("-p"),
    };
    let option = |text: &str| {
        let name = text.to_ascii_lowercase();
        const SET: [&str; 7] = [
            "identit",
            "stricthostkeychecking",
            "userknownhostsfile",
            "batchmode",
            "connecttimeout",
            "loglevel",
            "serveralive",
        ];
        SET.iter().any(|own| name.starts_with(own))
    };
    while let Some(word) = words.next() {
        let known = match word {
            "-i" | "-p" => words.next().is_some(),
            "-o" => words.next().is_some_and(option),
            word => word.strip_prefix("-o").map_or_else(|| harmless(word), option),
        };
        if !known {
            return false;
        }
    }
    program
}

/// Reads files of settings in git's order, each with what it includes, whatever the condition.
struct Reader<'r> {
    world: &'r dyn World,
    home: &'r str,
    /// How many more files may be included.
    left: usize,
    all: Config,
    files: Vec<(String, Digest)>,
    open: bool,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, depth: usize) {
        let Some(bytes) = self.world.read(path, 0, MAX_FILE) else { return };
        if bytes.len() >= MAX_FILE {
            self.open = true;
            return;
        }
        self.files.push((path.to_owned(), Digest::of(&bytes)));
        for (name, value) in Config::parse(&String::from_utf8_lossy(&bytes)).each() {
            self.all.push(name, value);
            if name == "include.path" || (name.starts_with("includeif.") && name.ends_with(".path")) {
                self.included(value, path, depth);
            }
        }
    }

    fn included(&mut self, value: &str, from: &str, depth: usize) {
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = match value.strip_prefix("~/") {
            Some(rest) => format!("{}/{rest}", self.home),
            None if value.starts_with('/') => value.to_owned(),
            None => format!("{folder}/{value}"),
        };
        // Another user's home, and where git is installed.
        let elsewhere = value.starts_with('~') && !value.starts_with("~/") || value.starts_with("%(");
        if elsewhere || self.left == 0 || depth == DEEPEST {
            self.open = true;
            return;
        }
        self.left -= 1;
        self.file(&fold(&path), depth + 1);
    }
}

impl Repository<'_> {
    /// The files of settings that are its own.
    pub fn settings_files(&self) -> [String; 2] {
        [format!("{}/config", self.common), format!("{}/config.worktree", self.git)]
    }

    /// What follows git's own folder in a path.
    pub fn holds<'p>(&self, path: &'p str) -> Option<&'p str> {
        [&self.git, &self.common].into_iter().find_map(|folder| path.strip_prefix(folder.as_str()))
    }

    fn names_in(&self, folder: &str) -> Option<Vec<String>> {
        let entries = self.world.list(&format!("{}/{folder}", self.common))?;
        Some(entries.into_iter().map(|entry| entry.name).collect())
    }

    /// The settings of submodules' repositories.
    fn modules(&self) -> Vec<String> {
        let (mut todo, mut out, mut left) = (vec![format!("{}/modules", self.common)], Vec::new(), MOST_MODULES);
        while let Some(folder) = todo.pop().filter(|_| left > 0) {
            left -= 1;
            let entries = self.world.list(&folder).unwrap_or_default();
            if entries.iter().any(|entry| entry.name == "HEAD") {
                out.extend(["config", "HEAD"].map(|name| format!("{folder}/{name}")));
                todo.push(format!("{folder}/modules"));
            } else {
                todo.extend(
                    entries.iter().filter(|entry| entry.is_dir).map(|entry| format!("{folder}/{}", entry.name)),
                );
            }
        }
        out
    }

    /// What a name stands for among git's subcommands, by the repository's settings or the user's.
    pub fn alias(&self, name: &str, home: &str) -> Option<String> {
        let key = format!("alias.{}", name.to_ascii_lowercase());
        let own = self.config().last(&key).map(str::to_owned);
        own.or_else(|| {
            system_files(home)
                .iter()
                .rev()
                .find_map(|file| Config::parse(&self.text(file)?).last(&key).map(str::to_owned))
        })
    }

    /// The patterns of what is ignored: the top folder's `.gitignore`, and the repository's own.
    pub fn ignored(&self) -> Vec<String> {
        let texts = [self.text(&format!("{}/.gitignore", self.work)), self.own("info/exclude")];
        let lines = |text: String| text.lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>();
        let kept = |line: &String| !line.is_empty() && !line.starts_with(['#', '!']);
        texts.into_iter().flatten().flat_map(lines).filter(kept).collect()
    }
}

/// The machine's settings and the user's, in git's order.
pub fn system_files(home: &str) -> [String; 3] {
    ["/etc/gitconfig".to_owned(), format!("{home}/.config/git/config"), format!("{home}/.gitconfig")]
}
