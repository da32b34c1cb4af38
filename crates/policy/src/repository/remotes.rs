//! Remotes and what is ignored, as files in the repository have them.

use super::{Config, Repository};

impl Repository<'_> {
    /// The URLs that a remote's name stands for, rewritten as `url.*.insteadOf` wants it; `None` where it has none.
    pub fn urls(&self, name: &str) -> Option<Vec<String>> {
        let config = self.config();
        let mut urls: Vec<String> = ["url", "pushurl"]
            .iter()
            .flat_map(|own| config.all(&format!("remote.{name}.{own}")).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        if let Some(text) = self.own(&format!("remotes/{name}")) {
            urls.extend(text.lines().filter_map(|line| line.strip_prefix("URL:")).map(|url| url.trim().to_owned()));
        }
        if let Some(text) = self.own(&format!("branches/{name}")) {
            urls.extend(text.lines().next().map(|url| url.split('#').next().unwrap_or_default().trim().to_owned()));
        }
        // A group of remotes (`git fetch group`).
        if let Some(group) = config.last(&format!("remotes.{name}")) {
            urls.extend(group.split_whitespace().filter_map(|one| self.urls(one)).flatten());
        }
        (!urls.is_empty()).then(|| urls.iter().map(|url| rewritten(&config, url)).collect())
    }

    /// The remotes of a command that names none: those of the branch, `origin`, or the only one.
    pub fn usual_remotes(&self) -> Vec<String> {
        let config = self.config();
        let branch = self.branch().unwrap_or_default();
        let own =
            ["remote", "pushremote"].map(|name| config.last(&format!("branch.{branch}.{name}")).map(str::to_owned));
        let pushed = config.last("remote.pushdefault").map(str::to_owned);
        let mut out: Vec<String> = own.into_iter().flatten().chain(pushed).filter(|name| name != ".").collect();
        if out.is_empty() {
            let mut names: Vec<&str> = config.below("remote", "url").map(|(name, _)| name).collect();
            names.dedup();
            match names.as_slice() {
                [] => {}
                [only] => out.push((*only).to_owned()),
                _ => out.push("origin".to_owned()),
            }
        }
        out
    }

    /// What a name stands for among git's subcommands, by the repository's settings or the user's.
    pub fn alias(&self, name: &str, home: &str) -> Option<String> {
        let key = format!("alias.{}", name.to_ascii_lowercase());
        let own = self.config().last(&key).map(str::to_owned);
        let files = [format!("{home}/.gitconfig"), format!("{home}/.config/git/config")];
        own.or_else(|| files.iter().find_map(|file| Config::parse(&self.text(file)?).last(&key).map(str::to_owned)))
    }

    /// The patterns of what is ignored: the top folder's `.gitignore`, and the repository's own.
    pub fn ignored(&self) -> Vec<String> {
        let texts = [self.text(&format!("{}/.gitignore", self.work)), self.own("info/exclude")];
        let lines = |text: String| text.lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>();
        let kept = |line: &String| !line.is_empty() && !line.starts_with(['#', '!']);
        texts.into_iter().flatten().flat_map(lines).filter(kept).collect()
    }
}

fn rewritten(config: &Config, url: &str) -> String {
    let fitting = config.below("url", "insteadof").chain(config.below("url", "pushinsteadof"));
    let longest = fitting.filter(|(_, old)| url.starts_with(old)).max_by_key(|(_, old)| old.len());
    match longest {
        Some((new, old)) => format!("{new}{}", url.get(old.len()..).unwrap_or_default()),
        None => url.to_owned(),
    }
}
