//! Remotes and what is ignored, as files in the repository have them.

use super::{Config, Repository, text};
use crate::world::World;

/// Most files of settings that others include.
const MOST_INCLUDED: usize = 16;

/// What names of remotes stand for, by the settings of a repository, of what these include, and of the user.
pub struct Remotes<'r, 'w> {
    repo: Option<&'r Repository<'w>>,
    /// The repository's own settings, with what they include.
    own: Config,
    /// The same and the user's, by which addresses are rewritten.
    all: Config,
}

impl<'r, 'w> Remotes<'r, 'w> {
    /// Of the repository that a command runs in, if it does in one.
    pub fn of(world: &'w dyn World, repo: Option<&'r Repository<'w>>, home: &str) -> Self {
        let own = repo.map(|repo| repo.with_included(home)).unwrap_or_default();
        let mut all = own.clone();
        for file in user_files(home) {
            all.extend(&Config::parse(&text(world, &file).unwrap_or_default()));
        }
        Self { repo, own, all }
    }

    /// The URLs that a remote's name stands for; `None` where it has none.
    pub fn urls(&self, name: &str) -> Option<Vec<String>> {
        // A group of remotes (`git fetch group`) has no groups in it.
        let group = self.own.last(&format!("remotes.{name}")).unwrap_or_default();
        let names = std::iter::once(name).chain(group.split_whitespace());
        let urls: Vec<String> = names.flat_map(|one| self.kept(one)).flat_map(|url| self.rewritten(&url)).collect();
        (!urls.is_empty()).then_some(urls)
    }

    fn kept(&self, name: &str) -> Vec<String> {
        let settings = ["url", "pushurl"].map(|own| format!("remote.{name}.{own}"));
        let mut urls: Vec<String> =
            settings.iter().flat_map(|setting| self.own.all(setting)).map(str::to_owned).collect();
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
        let urls = self.own.below("submodule", "url").chain(listed.below("submodule", "url")).map(|(_, url)| url);
        urls.filter(|url| !url.starts_with('.')).flat_map(|url| self.rewritten(url)).collect()
    }

    /// The remotes of a command that names none: those of the branch, `origin`, or the only one.
    pub fn usual(&self) -> Vec<String> {
        let branch = self.repo.and_then(Repository::branch).unwrap_or_default();
        let own =
            ["remote", "pushremote"].map(|name| self.own.last(&format!("branch.{branch}.{name}")).map(str::to_owned));
        let pushed = self.own.last("remote.pushdefault").map(str::to_owned);
        let mut out: Vec<String> = own.into_iter().flatten().chain(pushed).filter(|name| name != ".").collect();
        if out.is_empty() {
            let mut names: Vec<&str> = self.own.below("remote", "url").map(|(name, _)| name).collect();
            names.dedup();
            match names.as_slice() {
                [] => {}
                [only] => out.push((*only).to_owned()),
                _ => out.push("origin".to_owned()),
            }
        }
        out
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

impl Repository<'_> {
    /// The repository's settings with those of files that they include, whatever the condition.
    fn with_included(&self, home: &str) -> Config {
        let mut all = self.config();
        let mut next = included(&all);
        for _ in 0..MOST_INCLUDED {
            let Some(path) = next.pop() else { break };
            let path = match path.strip_prefix("~/") {
                Some(rest) => format!("{home}/{rest}"),
                None if path.starts_with('/') => path,
                None => format!("{}/{path}", self.common),
            };
            let more = Config::parse(&self.text(&path).unwrap_or_default());
            next.extend(included(&more));
            all.extend(&more);
        }
        all
    }

    /// What a name stands for among git's subcommands, by the repository's settings or the user's.
    pub fn alias(&self, name: &str, home: &str) -> Option<String> {
        let key = format!("alias.{}", name.to_ascii_lowercase());
        let own = self.config().last(&key).map(str::to_owned);
        own.or_else(|| {
            user_files(home).iter().find_map(|file| Config::parse(&self.text(file)?).last(&key).map(str::to_owned))
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

fn user_files(home: &str) -> [String; 2] {
    [format!("{home}/.gitconfig"), format!("{home}/.config/git/config")]
}

fn included(config: &Config) -> Vec<String> {
    let conditional = config.below("includeif", "path").map(|(_, path)| path);
    config.all("include.path").chain(conditional).map(str::to_owned).collect()
}
