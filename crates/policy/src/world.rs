//! The file system as a policy sees it, and what can be asked of it.
//!
//! Everything a decision needs from the machine goes through [`World`], so that deciding stays a pure function. Page:
//! `spec/policy.md`.

use crate::glob::name::{NamePattern, is_pattern, unquoted};

/// Most entries that one search below a folder looks at.
pub const MAX_ENTRIES: usize = 100_000;
/// Most symlinks in trees that are followed for one call.
pub const MAX_LINKS: usize = 10_000;
/// Most paths that one shell glob expands to.
const MAX_EXPANSION: usize = 10_000;

/// A path with its symlinks followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Absolute, without `.`, `..` and symlinks; what does not exist hangs off its nearest existing ancestor (R13).
    pub path: String,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Whether it is a folder itself (a symlink to one is not).
    pub is_dir: bool,
    /// Whether it is a symlink.
    pub is_link: bool,
}

/// What a policy may ask of the file system. Two implementations: the disk (in the engine) and [`Lexical`].
pub trait World {
    /// Follows symlinks.
    fn resolve(&self, path: &str) -> Resolved;
    /// A folder's entries; `None` when it cannot be listed.
    fn list(&self, dir: &str) -> Option<Vec<Entry>>;
    /// Whether it is known that nothing is there.
    fn is_missing(&self, _path: &str) -> bool {
        false
    }
    /// The text of a file, if the agent itself wrote exactly it in this session.
    fn authored(&self, path: &str) -> Option<String> {
        let _: &str = path;
        None
    }
    /// Whether the agent may have written anything in this session.
    fn has_authored(&self) -> bool {
        false
    }
    /// Absolute paths of files that the agent wrote in this session; each is asked about with [`World::authored`].
    fn authored_files(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether a file is a copy of Writ's own program.
    fn is_copy_of_program(&self, path: &str) -> bool {
        let _: &str = path;
        false
    }
    /// At most so many bytes of a regular file, from a place in it on; `None` when it cannot be read.
    fn read(&self, _path: &str, _from: u64, _most: usize) -> Option<Vec<u8>> {
        None
    }
}

/// A world in which nothing exists: paths are folded as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lexical;

impl World for Lexical {
    fn resolve(&self, path: &str) -> Resolved {
        Resolved { path: fold(path), is_dir: false }
    }

    fn list(&self, _dir: &str) -> Option<Vec<Entry>> {
        None
    }
}

/// An absolute path without `.`, `..` and doubled slashes, as text: symlinks are not looked at.
pub fn fold(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 1);
    // As an array, the slash is looked for letter by letter: names are too short for what `memchr` sets up.
    for part in path.split(['/']) {
        match part {
            "" | "." => {}
            ".." => out.truncate(out.rfind('/').unwrap_or_default()),
            other => {
                out.push('/');
                out.push_str(other);
            }
        }
    }
    if out.is_empty() {
        out.push('/');
    }
    out
}

/// What a search ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search<T> {
    /// It came to its end.
    Done(T),
    /// There is more than it looks at.
    TooLarge,
}

/// The first path below `dir` that `hit` accepts. Symlinks are not followed, and what Git keeps for itself is left out.
pub fn find_below(world: &dyn World, dir: &str, hit: &dyn Fn(&str) -> bool) -> Search<Option<String>> {
    find_below_all(world, &[dir], hit)
}

/// The same below several folders, which together are no more to look at than one.
pub fn find_below_all(world: &dyn World, dirs: &[&str], hit: &dyn Fn(&str) -> bool) -> Search<Option<String>> {
    let mut todo: Vec<String> = dirs.iter().map(|dir| dir.trim_end_matches('/').to_owned()).collect();
    let mut seen = 0;
    while let Some(folder) = todo.pop() {
        for entry in in_folder(world, &folder) {
            seen += 1;
            if seen > MAX_ENTRIES {
                return Search::TooLarge;
            }
            let path = format!("{folder}/{}", entry.name);
            if hit(&path) {
                return Search::Done(Some(path));
            }
            if entry.is_dir && entry.name != ".git" {
                todo.push(path);
            }
        }
    }
    Search::Done(None)
}

/// Where symlinks below `dir` lead that lead out of it, each place once. What Git keeps for itself is left out, as in [`find_below`].
/// `left` is how many more may be followed.
pub fn links_out(world: &dyn World, dir: &str, left: &mut usize) -> Search<Vec<Resolved>> {
    let dir = dir.trim_end_matches('/');
    let (mut todo, mut seen) = (vec![dir.to_owned()], 0);
    let mut out: Vec<Resolved> = Vec::new();
    while let Some(folder) = todo.pop() {
        for entry in in_folder(world, &folder) {
            seen += 1;
            if seen > MAX_ENTRIES || entry.is_link && *left == 0 {
                return Search::TooLarge;
            }
            let path = format!("{folder}/{}", entry.name);
            if entry.is_link {
                *left -= 1;
                let place = world.resolve(&path);
                let within = place.path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                if !within && !out.contains(&place) {
                    out.push(place);
                }
            } else if entry.is_dir && entry.name != ".git" {
                todo.push(path);
            }
        }
    }
    Search::Done(out)
}

/// The existing paths that an absolute shell glob expands to. `**` is every folder below, itself included. `left` is how many more
/// folders and names may be looked at for it.
pub fn expand(world: &dyn World, pattern: &str, left: &mut usize) -> Search<Vec<String>> {
    let mut found = vec![String::new()];
    let mut wild = false;
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let own = is_pattern(part);
        let plain = unquoted(part);
        let glob = NamePattern::parse(part, false);
        wild |= own;
        let hidden = |name: &str| own && name.starts_with('.') && !glob.begins_with_dot();
        let mut next = Vec::new();
        for base in &found {
            if part == "**" {
                next.extend(folders(world, base, left));
            } else if wild {
                let names = listed(world, base, left).into_iter().map(|entry| entry.name);
                let fits = names.filter(|name| !hidden(name) && glob.matches(name));
                next.extend(fits.map(|name| format!("{base}/{name}")));
            } else {
                next.push(format!("{base}/{plain}"));
            }
            if next.len() > MAX_EXPANSION || *left == 0 {
                return Search::TooLarge;
            }
        }
        found = next;
    }
    Search::Done(found)
}

/// What is in a folder, whose path has no slash at its end: nothing is left of the root's.
fn in_folder(world: &dyn World, dir: &str) -> Vec<Entry> {
    world.list(if dir.is_empty() { "/" } else { dir }).unwrap_or_default()
}

/// The same, counted.
fn listed(world: &dyn World, dir: &str, left: &mut usize) -> Vec<Entry> {
    let entries = in_folder(world, dir);
    *left = left.saturating_sub(entries.len() + 1);
    entries
}

/// A folder and the folders below it; one more than may be expanded shows that there are too many.
fn folders(world: &dyn World, dir: &str, left: &mut usize) -> Vec<String> {
    let mut out = vec![dir.trim_end_matches('/').to_owned()];
    let mut at = 0;
    while let Some(folder) = out.get(at).cloned().filter(|_| out.len() <= MAX_EXPANSION && *left > 0) {
        at += 1;
        let below = listed(world, &folder, left);
        let below = below.into_iter().filter(|entry| entry.is_dir && entry.name != ".git");
        out.extend(below.map(|entry| format!("{folder}/{}", entry.name)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_as_text() {
        assert_eq!(fold("/a/./b//../c/"), "/a/c");
        assert_eq!(fold("/../../x"), "/x");
        assert_eq!(fold("/"), "/");
    }
}
