//! What `.gitignore` and its like leave out of a search, read from the disk as far as the search goes.
//!
//! Owns the reading of these files. Leaves a path in where it is not sure. Page: `spec/policy.md`.

use std::collections::HashMap;

use writ_shell::Ignores;

use crate::glob::Glob;
use crate::glob::name::NamePattern;
use crate::world::World;

/// Largest file of patterns, and largest index of git, that is read.
const MAX_FILE: usize = 1 << 20;
const MAX_INDEX: usize = 64 << 20;
/// Most patterns of one file.
const MAX_PATTERNS: usize = 4096;

/// One line of such a file.
enum Pattern {
    /// Without a slash: a name at any depth.
    Name(NamePattern),
    /// From the file's folder.
    Path(Glob),
}

struct Rule {
    negated: bool,
    folders_only: bool,
    pattern: Pattern,
}

/// Files of patterns, by the folder they are in.
pub struct Ignored<'w> {
    world: &'w dyn World,
    mode: Ignores,
    /// The work tree's folder; without one, `.gitignore` says nothing.
    toplevel: Option<String>,
    files: HashMap<String, Vec<Rule>>,
    index: Option<Option<Vec<u8>>>,
}

impl<'w> Ignored<'w> {
    /// For a search that begins at `root`, an absolute path.
    pub fn of(world: &'w dyn World, mode: Ignores, root: &str) -> Self {
        let toplevel = if mode == Ignores::Nothing { None } else { toplevel(world, root) };
        Self { world, mode, toplevel, files: HashMap::new(), index: None }
    }

    /// Whether a path is left out. What lies below an ignored folder is not asked for.
    pub fn ignores(&mut self, path: &str, is_dir: bool) -> bool {
        if self.mode == Ignores::Nothing {
            return false;
        }
        let own: &[&str] = if self.mode == Ignores::Search { &[".rgignore", ".ignore"] } else { &[] };
        let left = own
            .iter()
            .find_map(|name| self.verdict(name, path, is_dir))
            .or_else(|| self.toplevel.is_some().then(|| self.verdict(".gitignore", path, is_dir)).flatten())
            .or_else(|| {
                self.toplevel
                    .clone()
                    .and_then(|top| self.by_file(&format!("{top}/.git/info/exclude"), &top, path, is_dir))
            })
            .unwrap_or(false);
        left && !(self.mode == Ignores::Git && self.is_tracked(path, is_dir))
    }

    /// What the files of a name say, the nearest first.
    fn verdict(&mut self, name: &str, path: &str, is_dir: bool) -> Option<bool> {
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            let outside = self.toplevel.as_ref().is_some_and(|top| !crate::protect::is_below(folder, top));
            if outside {
                return None;
            }
            let file = format!("{folder}/{name}");
            if let Some(left) = self.by_file(&file, folder, path, is_dir) {
                return Some(left);
            }
        }
        None
    }

    fn by_file(&mut self, file: &str, folder: &str, path: &str, is_dir: bool) -> Option<bool> {
        if !self.files.contains_key(file) {
            let rules = self
                .world
                .read(file, 0, MAX_FILE)
                .map(|bytes| rules(&String::from_utf8_lossy(&bytes)))
                .unwrap_or_default();
            self.files.insert(file.to_owned(), rules);
        }
        let rules = self.files.get(file)?;
        let below = path.strip_prefix(folder)?.trim_start_matches('/');
        let name = path.rsplit('/').next().unwrap_or_default();
        let hit = rules.iter().rfind(|rule| {
            (is_dir || !rule.folders_only)
                && match &rule.pattern {
                    Pattern::Name(pattern) => pattern.matches(name),
                    Pattern::Path(glob) => glob.matches(below),
                }
        });
        hit.map(|rule| !rule.negated)
    }

    /// Whether git tracks a file, or something below a folder, though it is ignored.
    fn is_tracked(&mut self, path: &str, is_dir: bool) -> bool {
        let Some(top) = self.toplevel.clone() else { return false };
        let (world, file) = (self.world, format!("{top}/.git/index"));
        let Some(index) = self.index.get_or_insert_with(|| world.read(&file, 0, MAX_INDEX)) else {
            // No index, nothing tracked; one that is too large, or elsewhere (a worktree), may hold anything.
            return world.list(&format!("{top}/.git")).is_none_or(|all| all.iter().any(|entry| entry.name == "index"));
        };
        // From version 4 on, names are cut short.
        if index.get(..8).is_none_or(|head| head.get(7).is_none_or(|version| *version > 3)) {
            return true;
        }
        let Some(below) = path.strip_prefix(&top).map(|below| below.trim_start_matches('/')) else { return true };
        let needle = [below.as_bytes(), if is_dir { b"/" } else { b"\0" }].concat();
        index.windows(needle.len()).any(|window| window == needle)
    }
}

/// The work tree that a folder lies in.
pub fn toplevel(world: &dyn World, folder: &str) -> Option<String> {
    let mut folder = folder.trim_end_matches('/');
    loop {
        let here = if folder.is_empty() { "/" } else { folder };
        if world.list(here).is_some_and(|all| all.iter().any(|entry| entry.name == ".git")) {
            return Some(here.to_owned());
        }
        folder = folder.rsplit_once('/')?.0;
    }
}

fn rules(text: &str) -> Vec<Rule> {
    text.lines().filter_map(rule).take(MAX_PATTERNS).collect()
}

fn rule(line: &str) -> Option<Rule> {
    let line = line.trim_end_matches('\r');
    let line = if line.ends_with("\\ ") { line } else { line.trim_end_matches([' ', '\t']) };
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (negated, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
    let (folders_only, line) = line.strip_suffix('/').map_or((false, line), |rest| (true, rest));
    let free = line.strip_prefix("**/").filter(|rest| !rest.contains('/'));
    let pattern = if let Some(name) = free.or_else(|| (!line.contains('/')).then_some(line)) {
        Pattern::Name(NamePattern::parse(name, false))
    } else {
        // Braces are letters here.
        let text = line.trim_start_matches('/').replace('{', "\\{").replace('}', "\\}");
        Pattern::Path(Glob::parse(&text).ok()?)
    };
    Some(Rule { negated, folders_only, pattern })
}
