//! What git runs or obeys, as a repository's own settings say.
//!
//! Owns which files those are. Refuses nothing: settings that cannot be read name none. Invariant: of what is named here nothing is
//! given to be written.

use std::fs;
use std::path::{Component, Path, PathBuf};

use writ_store::regular_file;

use super::places::GIT_OBEYS;

/// Largest settings file that is read.
const MAX_CONFIG: u64 = 1 << 20;
/// Most linked work trees that are looked at.
const MOST: usize = 1024;
/// How deep files of settings may include others, as git has it.
const DEEPEST: usize = 10;
/// The user's own settings, in their home.
const OF_USER: [&str; 2] = [".gitconfig", ".config/git/config"];
/// Where git's own templates lie.
const SYSTEM_TEMPLATES: [&str; 2] = ["/usr/share/git-core/templates", "/usr/local/share/git-core/templates"];
/// What a linked work tree is tied to its repository by.
const TIES: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// What is to be kept of a repository, whose folder is `git`: folders with a last `/`. `home` is for paths that begin with `~`; `was_there`
/// says of which linked work trees the ties are kept.
pub fn kept(git: &Path, home: Option<&Path>, was_there: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut kept = Vec::new();
    for name in GIT_OBEYS {
        let path = git.join(name);
        // Git asks for the others on its way, and takes a refusal for an error; it obeys them only as `config` says.
        if matches!(name, "hooks/" | "config" | "commondir") || path.exists() {
            kept.push(path);
        }
    }
    // Another folder's count instead, where it says so.
    let common = regular_file::text(&git.join("commondir"), MAX_CONFIG).ok();
    if let Some(common) = common.map(|text| lexical(&git.join(text.trim()))).filter(|common| common != git) {
        kept.extend(["config", "hooks/"].map(|name| common.join(name)));
    }
    let trees = fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten().take(MOST);
    let trees = trees.map(|tree| tree.path()).filter(|tree| was_there(tree));
    let ties = trees.flat_map(|tree| TIES.map(|name| tree.join(name)));
    kept.extend(ties.filter(|path| path.symlink_metadata().is_ok()));
    let of_user = OF_USER.into_iter().filter_map(|name| Some(home?.join(name)));
    for config in [git.join("config")].into_iter().chain(of_user) {
        more(&config, git, home, 0, &mut kept);
    }
    kept
}

/// What a file of settings names, and what the files say that it includes.
fn more(config: &Path, git: &Path, home: Option<&Path>, depth: usize, kept: &mut Vec<PathBuf>) {
    let Ok(text) = regular_file::read(config, MAX_CONFIG) else { return };
    let folder = config.parent().unwrap_or(git);
    for (path, included) in named(&String::from_utf8_lossy(&text), folder, git, home) {
        if included && depth < DEEPEST {
            more(&path, git, home, depth + 1, kept);
        }
        kept.push(path);
    }
}

/// Folders that git copies hooks from into each repository that it makes: the user's own, and the system's.
pub fn templates(home: Option<&Path>) -> Vec<PathBuf> {
    let mut templates: Vec<PathBuf> = SYSTEM_TEMPLATES.iter().map(PathBuf::from).collect();
    for config in home.iter().flat_map(|home| OF_USER.map(|name| home.join(name))) {
        let text = regular_file::read(&config, MAX_CONFIG).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let named = settings(&text).filter(|(section, key, _)| section == "init" && key == "templatedir");
        templates.extend(named.map(|(_, _, value)| match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => config.with_file_name(value),
        }));
    }
    templates
}

/// Files and folders that settings name as more settings (then with `true`), or as hooks. `folder` is the one they lie in.
fn named(config: &str, folder: &Path, git: &Path, home: Option<&Path>) -> Vec<(PathBuf, bool)> {
    let mut named = Vec::new();
    for (section, key, value) in settings(config) {
        let (base, last) = match (section.as_str(), key.as_str()) {
            ("include" | "includeif", "path") => (folder, ""),
            ("core", "hookspath") => (git.parent().unwrap_or(git), "/"),
            ("core", "attributesfile") => (git.parent().unwrap_or(git), ""),
            _ => continue,
        };
        let path = match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(&value),
        };
        let mut path = lexical(&path);
        if last == "/" && path.ends_with("_") {
            // Husky's hooks there run those beside them.
            path.pop();
        }
        path.as_mut_os_string().push(last);
        named.push((path, section.starts_with("include")));
    }
    named
}

/// Without `..`, as text.
pub fn lexical(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::RootDir | Component::Prefix(_) | Component::CurDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

/// Settings with their sections, both in small letters, and their values.
fn settings(config: &str) -> impl Iterator<Item = (String, String, String)> {
    let mut section = String::new();
    // A line may go on in the next.
    let config = config.replace("\\\r\n", "").replace("\\\n", "");
    let lines: Vec<String> = config.lines().map(|line| line.trim().to_owned()).collect();
    lines.into_iter().filter_map(move |line| {
        let rest = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, rest)) => {
                section = name.split([' ', '\t', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
                rest.trim()
            }
            None => line.as_str(),
        };
        let (key, value) = rest.split_once('=')?;
        Some((section.clone(), key.trim().to_ascii_lowercase(), unquoted(value)))
    })
}

/// A value without its quotes and comment.
fn unquoted(value: &str) -> String {
    let (mut out, mut quoted) = (String::new(), false);
    let mut letters = value.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => out.extend(letters.next()),
            '#' | ';' if !quoted => break,
            _ => out.push(letter),
        }
    }
    if quoted { out } else { out.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_more_settings_and_hooks() {
        let config = "[core]\n\thooksPath = .husky ; comment\n[include] path = ../more.cfg\n[includeIf \"gitdir:~/x/\"]\n\tpath = \"~/a b\"\n\
                      [Core]\n attributesFile = /w/attri\\\nbutes\n[user]\n name = path = x\n[other] path = y\n";
        let git = Path::new("/w/.git");
        let paths: Vec<PathBuf> =
            named(config, git, git, Some(Path::new("/h"))).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["/w/.husky/", "/w/more.cfg", "/h/a b", "/w/attributes"].map(PathBuf::from));
        let paths = named("[core]\nhooksPath=.husky/_", git, git, None);
        assert_eq!(paths, [(PathBuf::from("/w/.husky/"), false)]);
    }
}
