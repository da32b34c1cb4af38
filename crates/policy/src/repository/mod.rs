//! A git repository on the disk, as far as a decision needs it: what is tracked, what commits change, which remotes there are.
//!
//! Reads `.git` through [`World`], runs nothing and writes nothing. Invariant: what is damaged, too large or of a kind not known
//! is [`None`], never an empty answer. Formats: gitrepository-layout(5), gitformat-index(5), gitformat-pack(5). Page:
//! `spec/policy.md`.

mod config;
mod index;
mod objects;
mod pathspec;
mod remotes;
mod revisions;

pub use config::Config;
pub use index::{Entry, Index, Stat, each};
pub use objects::{Id, Kind};
pub use pathspec::Pathspecs;
pub use remotes::{Remotes, Switched, system_files};

use std::cell::Cell;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::world::{World, fold};

/// Most bytes of an index, a list of references or a file whose digest is taken.
const MAX_FILE: usize = 32 << 20;
/// Most objects that one decision reads.
const MAX_OBJECTS: usize = 20_000;

/// A repository and its work tree.
pub struct Repository<'w> {
    world: &'w dyn World,
    /// Absolute, without a slash at its end.
    pub work: String,
    git: String,
    common: String,
    /// How many more objects are read.
    left: Cell<usize>,
}

impl<'w> Repository<'w> {
    /// The repository that a folder lies in.
    pub fn containing(world: &'w dyn World, folder: &str) -> Option<Self> {
        let start = world.resolve(folder).path;
        let mut work = start.trim_end_matches('/').to_owned();
        loop {
            let entries = world.list(if work.is_empty() { "/" } else { &work }).unwrap_or_default();
            if let Some(entry) = entries.iter().find(|entry| entry.name == ".git") {
                let git = format!("{work}/.git");
                let git = if entry.is_dir { git } else { pointed(world, &git, "gitdir:", &work).unwrap_or(git) };
                let common = pointed(world, &format!("{git}/commondir"), "", &git).unwrap_or_else(|| git.clone());
                return Some(Self { world, work, git, common, left: Cell::new(MAX_OBJECTS) });
            }
            // A folder that is a repository itself, without a work tree.
            if ["HEAD", "objects", "refs"].iter().all(|name| entries.iter().any(|entry| entry.name == *name)) {
                let (git, common) = (work.clone(), work.clone());
                return Some(Self { world, work, git, common, left: Cell::new(MAX_OBJECTS) });
            }
            work.truncate(work.rfind('/')?);
        }
    }

    /// What is tracked.
    pub fn index(&self) -> Option<Index> {
        let hash = if self.config().is_sha256() { 32 } else { 20 };
        match self.world.read(&format!("{}/index", self.git), 0, MAX_FILE) {
            None => Some(Index::default()),
            Some(bytes) if bytes.len() < MAX_FILE => Index::parse(&bytes, hash),
            Some(_) => None,
        }
    }

    /// The repository's own settings.
    pub fn config(&self) -> Config {
        Config::parse(&self.text(&format!("{}/config", self.common)).unwrap_or_default())
    }

    /// A file in the repository's own folder.
    pub fn own(&self, name: &str) -> Option<String> {
        self.text(&format!("{}/{name}", self.common))
    }

    fn text(&self, path: &str) -> Option<String> {
        text(self.world, path)
    }

    /// The object that a file of the work tree would be; `None` where there is none to read.
    pub fn worktree_id(&self, path: &str) -> Option<Id> {
        let bytes = self.world.read(&format!("{}/{path}", self.work), 0, MAX_FILE)?;
        let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(format!("blob {}\0", bytes.len()).as_bytes());
        hash.update(&bytes);
        Some(Id::new(hash.finish().as_ref()))
    }

    /// A path of the repository, absolute.
    pub fn absolute(&self, path: &str) -> String {
        format!("{}/{path}", self.work)
    }

    /// Where a folder lies in the work tree: empty, or with a slash at its end.
    pub fn prefix(&self, folder: &str) -> String {
        let folder = self.world.resolve(folder).path;
        match folder.strip_prefix(self.work.as_str()).map(|rest| rest.trim_matches('/')) {
            None | Some("") => String::new(),
            Some(rest) => format!("{rest}/"),
        }
    }

    /// Whether one more object may be read.
    fn spend(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

fn text(world: &dyn World, path: &str) -> Option<String> {
    let bytes = world.read(path, 0, MAX_FILE).filter(|bytes| bytes.len() < MAX_FILE)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The folder that a file names, behind a sign.
fn pointed(world: &dyn World, file: &str, sign: &str, base: &str) -> Option<String> {
    let bytes = world.read(file, 0, 4096)?;
    let text = String::from_utf8(bytes).ok()?;
    let path = text.trim().strip_prefix(sign)?.trim();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    Some(fold(&path))
}
