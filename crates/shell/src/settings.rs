//! Settings files that say which hosts other programs contact: which files these are, and the hosts in their text.

use writ_core::Span;

use crate::action::NetTarget;
use crate::shape::{host, text_word};

/// How the paths of such files end.
const NAMES: [&str; 45] = [
    ".curlrc",
    "_curlrc",
    "/curlrc",
    ".wgetrc",
    "/wgetrc",
    ".npmrc",
    "/npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmrc",
    "bunfig.toml",
    "pip.conf",
    "pip.ini",
    ".pydistutils.cfg",
    ".condarc",
    "uv.toml",
    ".gitconfig",
    "/gitconfig",
    ".gitmodules",
    ".gemrc",
    "/gemrc",
    ".pypirc",
    ".hgrc",
    ".boto",
    ".s3cfg",
    ".cargo/config",
    ".cargo/config.toml",
    ".ssh/config",
    "ssh/ssh_config",
    ".git/config",
    ".git/config.worktree",
    "git/config",
    ".docker/config.json",
    "containers/registries.conf",
    ".kube/config",
    ".aws/config",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".bundle/config",
    "apt/apt.conf",
    "/etc/hosts",
    "/resolv.conf",
    "/nsswitch.conf",
    "proxychains.conf",
    "NuGet.Config",
];
/// Folders all files of which are.
const FOLDERS: [&str; 6] =
    [".git/remotes/", ".git/branches/", "apt/apt.conf.d/", "ssh_config.d/", "apt/sources.list", "docker/registries.d/"];
/// Names of settings whose value is a host.
const KEYS: [&str; 12] =
    ["proxy", "host", "registry", "index", "url", "server", "mirror", "socks", "jump", "endpoint", "source", "channel"];
/// Files whose every change changes what names lead to.
const NAMING: [&str; 3] = ["/etc/hosts", "/resolv.conf", "/nsswitch.conf"];

/// Whether a path is such a file's.
pub fn is_settings(path: &str) -> bool {
    let path = path.trim_start_matches("./");
    // As if a slash stood in front.
    let ends = |name: &&str| match path.strip_suffix(*name) {
        Some(rest) => rest.is_empty() || name.starts_with('/') || rest.ends_with('/'),
        None => name.strip_prefix('/') == Some(path),
    };
    let inside =
        |folder: &&str| path.contains(*folder) || folder.strip_prefix('/').is_some_and(|name| path.starts_with(name));
    let last = path.bytes().last();
    NAMES.iter().filter(|name| name.bytes().last() == last).any(ends)
        || (path.contains('/') && FOLDERS.iter().any(inside))
}

/// The hosts that a file makes other programs contact once it holds a text; none where it is no file of settings.
pub fn settings_hosts(path: &str, text: &str) -> Vec<NetTarget> {
    written(path, Some(text), Span { start: 0, end: 0 })
}

/// The hosts that a file makes other programs contact once the line has written it. `text`: what is written, where that is known.
pub fn written(path: &str, text: Option<&str>, span: Span) -> Vec<NetTarget> {
    match text {
        _ if !is_settings(path) => Vec::new(),
        Some(text) if !NAMING.iter().any(|naming| path.ends_with(naming)) => hosts_in(text, span),
        Some(_) | None => vec![NetTarget::Unknown],
    }
}

/// The hosts that a settings file's text names.
pub fn hosts_in(text: &str, span: Span) -> Vec<NetTarget> {
    let mut out = Vec::new();
    let stop = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | '<' | '>' | '{' | '}' | '[' | ']');
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '/'])) {
        let pieces: Vec<&str> = line.split(stop).filter(|piece| !piece.is_empty()).collect();
        let key = pieces.first().copied().unwrap_or_default().to_ascii_lowercase();
        let key = key.trim_start_matches('-');
        if matches!(
            key,
            "resolve" | "connect-to" | "proxycommand" | "include" | "config" | "k" | "unix-socket" | "interface"
        ) {
            out.push(NetTarget::Unknown);
            continue;
        }
        let names_host = KEYS.iter().any(|known| key.contains(known)) || matches!(key, "x" | "machine:");
        for (at, piece) in pieces.iter().enumerate() {
            let piece = piece.trim_end_matches([';', ',']);
            if piece.contains("://") {
                let start = piece.find("://").unwrap_or(0);
                let scheme = piece.get(..start).unwrap_or_default();
                let cut = scheme.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '+').map_or(0, |cut| cut + 1);
                out.push(NetTarget::Url(text_word(piece.get(cut..).unwrap_or_default(), span)));
            } else if at > 0 && names_host && !piece.starts_with(['/', '.', '~', '*', '%']) {
                let name = piece.rsplit('@').next().unwrap_or_default();
                let name = name.split([':', '/']).next().unwrap_or_default();
                let likely = name.contains('.') || piece.contains(':') || name == "localhost" || key == "hostname";
                if likely && !name.is_empty() {
                    out.push(host(name, span));
                }
            } else if at > 0 && piece.contains(':') && piece.contains('@') {
                let machine = piece.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
                out.push(host(machine, span));
            }
        }
    }
    out.truncate(64);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_name_hosts() {
        for path in [
            "/h/.curlrc",
            ".npmrc",
            "./.npmrc",
            "a/.git/config",
            ".git/remotes/e",
            "/h/.ssh/config",
            "/etc/hosts",
            "pip.conf",
        ] {
            assert!(is_settings(path), "{path}");
        }
        for path in [
            "src/config",
            "config.toml",
            "docs/npmrc.md",
            "x.curlrc.txt",
            "hosts",
            ".git/hooks/pre-commit",
            "my.pip.conf",
        ] {
            assert!(!is_settings(path), "{path}");
        }
    }

    #[test]
    fn hosts_in_settings() {
        let span = Span { start: 0, end: 0 };
        let count = |text: &str| hosts_in(text, span).len();
        for text in [
            "proxy=127.0.0.1:8080",
            "url = \"https://x.example/\"",
            "-x x.example:1",
            "HostName x.example",
            "[remote \"e\"]\n url = git@x.example:a/b",
            "registry=https://x.example/",
            "resolve = x:80:1.2.3.4",
            "URL: http://x.example/x",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
        for text in [
            "fund=false",
            "# proxy=x.example:1",
            "user-agent = x",
            "[net]\ngit-fetch-with-cli = true",
            "IdentityFile ~/.ssh/id",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
