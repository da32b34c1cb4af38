//! The way down a work tree: which files count, and what each of them is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::hash::{FOLDER, Node, tree};
use super::ignored::Lists;
use super::place::{Dot, Place};
use super::repository::{Layout, Switches, filters};
use super::tracked::{Index, Tracked, stat};
use super::{Clock, TreeError};

/// Most files.
const MOST_FILES: usize = 2_000_000;
/// Deepest folder.
const DEEPEST: usize = 256;
const LINK: u32 = 0o120_000;
const MODULE: u32 = 0o160_000;
const PLAIN: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

/// What counts of a work tree.
pub struct Walk {
    /// By folder from the root, empty for the root itself: what is in it.
    files: BTreeMap<Vec<u8>, Vec<Found>>,
    index: Index,
    /// Where case does not count: each name as it was met first, by the name in small letters.
    spelled: HashMap<Vec<u8>, Vec<u8>>,
    /// Tracked files of which git keeps what the index has, that were met.
    met: HashSet<Vec<u8>>,
    /// An attributes file on the way has git keep other bytes.
    pub filtered: bool,
    count: usize,
    clock: Clock,
}

enum Found {
    /// A file or a link.
    File(Vec<u8>, Metadata),
    /// What is taken by its name alone: a repository inside, or what the index has.
    Named(Vec<u8>, u32, Vec<u8>),
}

/// A folder on the way down.
#[derive(Clone, Copy)]
struct Folder<'p> {
    path: &'p Path,
    /// From the root.
    inside: &'p [u8],
    /// Whether what is new in it is left out.
    out: bool,
    /// Whether git refuses to add what is new in it.
    refused: bool,
    depth: usize,
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_owned() } else { [folder, b"/", name].concat() }
}

fn parted(path: &[u8]) -> (&[u8], &[u8]) {
    let at = path.iter().rposition(|byte| *byte == b'/');
    at.map_or((&[][..], path), |at| (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()))
}

fn refused(path: &Path, why: &'static str) -> TreeError {
    TreeError::Refused { path: path.to_owned(), why }
}

impl Walk {
    /// Walks down from the root, as long as the clock lets it.
    pub fn of(layout: &Layout, clock: Clock) -> Result<Self, TreeError> {
        let index = Index::of(layout)?;
        let mut walk = Self {
            files: BTreeMap::new(),
            index,
            spelled: HashMap::new(),
            met: HashSet::new(),
            filtered: false,
            count: 0,
            clock,
        };
        if layout.on.fold {
            let tracked = walk.index.files.keys().chain(&walk.index.folders);
            walk.spelled = tracked.map(|path| (path.to_ascii_lowercase(), path.clone())).collect();
        }
        let mut lists = Lists::new(layout.on.fold);
        for list in &layout.lists {
            lists.add_outer(list)?;
        }
        let root = Folder { path: &layout.work, inside: &[], out: false, refused: false, depth: 0 };
        walk.folder(layout, root, &mut lists)?;
        walk.keep(layout)?;
        Ok(walk)
    }

    /// What is tracked and was not met: it is gone, unless git is told to keep it.
    fn keep(&mut self, layout: &Layout) -> Result<(), TreeError> {
        for (path, tracked) in &self.index.files {
            let name = parted(path).1;
            let place = layout.work.join(OsStr::from_bytes(path));
            if name == b".gitattributes" && place.symlink_metadata().is_err() {
                // git reads it from the index.
                self.filtered = true;
            }
            if !tracked.kept || self.met.contains(path) {
                continue;
            }
            if place.symlink_metadata().is_ok() {
                return Err(refused(&place, "git is told not to look whether it was changed, and it was"));
            }
            if name == b".gitignore" && place.parent().is_some_and(Path::is_dir) {
                return Err(refused(&place, "git reads it from the index, which is not done here"));
            }
            let (folder, name) = parted(path);
            let kept = Found::Named(name.to_owned(), tracked.mode, tracked.id.clone());
            self.files.entry(folder.to_owned()).or_default().push(kept);
        }
        Ok(())
    }

    fn folder(&mut self, layout: &Layout, at: Folder<'_>, lists: &mut Lists) -> Result<(), TreeError> {
        let failed = |source| TreeError::Io { path: at.path.to_owned(), source };
        self.clock.look()?;
        if at.depth > DEEPEST {
            return Err(TreeError::TooLarge);
        }
        let entries = fs::read_dir(at.path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        // In a folder that is left out, no list counts.
        let own = !at.out && has(".gitignore") && lists.add_inner(&at.path.join(".gitignore"), at.inside)?;
        if !self.filtered && has(".gitattributes") {
            let list = at.path.join(".gitattributes");
            // git follows no link here.
            self.filtered = !list.is_symlink() && filters(&list);
        }
        for entry in entries {
            let name = entry.file_name().into_vec();
            if name == b".git" || layout.on.fold && name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let (path, inside) = (entry.path(), joined(at.inside, &name));
            let kind = entry.file_type().map_err(failed)?;
            // What is tracked counts, whatever the lists say of it.
            let counts = !kind.is_dir() && self.index.files.contains_key(&inside);
            let out = !counts && (at.out || lists.leaves_out(&inside, kind.is_dir(), &mut self.clock)?);
            let refused = at.refused || layout.on.refuse(&name, kind.is_symlink());
            if kind.is_dir() {
                let inner = Folder { path: &path, inside: &inside, out, refused, depth: at.depth + 1 };
                self.inner(layout, inner, lists)?;
            } else {
                self.file(layout, &entry, inside, out, refused)?;
            }
        }
        if own {
            lists.leave();
        }
        Ok(())
    }

    fn file(
        &mut self,
        layout: &Layout,
        entry: &DirEntry,
        inside: Vec<u8>,
        out: bool,
        is_refused: bool,
    ) -> Result<(), TreeError> {
        let path = entry.path();
        let failed = |source| TreeError::Io { path: path.clone(), source };
        let kind = entry.file_type().map_err(failed)?;
        let tracked = self.index.files.get(&inside);
        if out && tracked.is_none() {
            return Ok(());
        }
        if !kind.is_file() && !kind.is_symlink() {
            // Pipes and devices are nothing to git, but not where a file was.
            return if tracked.is_some() {
                Err(refused(&path, "it is tracked, and is no file any more"))
            } else {
                Ok(())
            };
        }
        if tracked.is_none() && is_refused {
            return Err(refused(&path, "git refuses to add something of that name"));
        }
        self.spell(layout, &path, &inside)?;
        self.count += 1;
        if self.count > MOST_FILES {
            return Err(TreeError::TooLarge);
        }
        let found = Found::File(entry.file_name().into_vec(), entry.metadata().map_err(failed)?);
        self.files.entry(parted(&inside).0.to_owned()).or_default().push(found);
        if self.index.files.get(&inside).is_some_and(|tracked| tracked.kept) {
            self.met.insert(inside);
        }
        Ok(())
    }

    /// Where case does not count, git takes names that differ in it for one, which is not done here.
    fn spell(&mut self, layout: &Layout, path: &Path, inside: &[u8]) -> Result<(), TreeError> {
        if !layout.on.fold {
            return Ok(());
        }
        let known = self.spelled.entry(inside.to_ascii_lowercase()).or_insert_with(|| inside.to_owned());
        let why = "its name differs from another in case alone, and `core.ignoreCase` is set";
        if known == inside { Ok(()) } else { Err(refused(path, why)) }
    }

    /// A folder: a repository of its own, or one more step down.
    fn inner(&mut self, layout: &Layout, at: Folder<'_>, lists: &mut Lists) -> Result<(), TreeError> {
        self.spell(layout, at.path, at.inside)?;
        let tracked = self.index.files.get(at.inside).filter(|tracked| tracked.mode == MODULE);
        let module = tracked.map(|tracked| tracked.id.clone());
        if module.is_none() && self.index.folders.contains(at.inside) {
            return self.folder(layout, at, lists);
        }
        if at.out && module.is_none() {
            return Ok(());
        }
        let is_own = |place: &Place| {
            let real = |path: &Path| path.canonicalize().ok();
            real(&place.git).is_some_and(|git| {
                Some(git.as_path()) == real(&layout.place.git).as_deref()
                    && Some(git) == real(at.path).map(|path| path.join(".git"))
            })
        };
        let commit = match Dot::of(at.path) {
            Dot::Repository(place) if module.is_none() && is_own(&place) => None,
            // A repository inside counts as the commit that is checked out in it.
            Dot::Repository(place) => {
                let head = if place.function() == layout.function { place.head(layout.function)? } else { None };
                let none = || refused(at.path, "git refuses to add a repository in which no commit is checked out");
                Some(head.or(module).ok_or_else(none)?)
            }
            Dot::Closed => Some(module.ok_or_else(|| refused(at.path, "its `.git` cannot be read"))?),
            // Not checked out, or no repository.
            Dot::Nothing | Dot::Astray => module,
        };
        let Some(commit) = commit else { return self.folder(layout, at, lists) };
        if at.refused && !self.index.files.contains_key(at.inside) {
            return Err(refused(at.path, "git refuses to add something of that name"));
        }
        self.met.insert(at.inside.to_owned());
        let (above, name) = parted(at.inside);
        self.files.entry(above.to_owned()).or_default().push(Found::Named(name.to_owned(), MODULE, commit));
        Ok(())
    }

    /// The root's name. Where `filtered`, nothing of the index is leant on.
    pub fn root(mut self, layout: &Layout, filtered: bool) -> Result<String, TreeError> {
        let function = layout.function;
        let mut nodes: BTreeMap<Vec<u8>, Vec<Node>> = BTreeMap::new();
        for (folder, files) in std::mem::take(&mut self.files) {
            let mut made = Vec::with_capacity(files.len());
            for found in files {
                self.clock.look()?;
                made.push(self.node(layout, &folder, found, filtered)?);
            }
            nodes.entry(folder).or_default().extend(made);
        }
        // The deepest first: each folder becomes a node of the one above it.
        while let Some((folder, own)) = deepest(&mut nodes) {
            let id = tree(function, own);
            let (above, name) = parted(&folder);
            nodes.entry(above.to_owned()).or_default().push(Node { name: name.to_owned(), mode: FOLDER, id });
        }
        let id = tree(function, nodes.remove([].as_slice()).unwrap_or_default());
        Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn node(&self, layout: &Layout, folder: &[u8], found: Found, filtered: bool) -> Result<Node, TreeError> {
        let (name, about) = match found {
            Found::Named(name, mode, id) => return Ok(Node { name, mode, id }),
            Found::File(name, about) => (name, about),
        };
        let inside = joined(folder, &name);
        let path = layout.work.join(OsStr::from_bytes(&inside));
        let tracked = self.index.files.get(&inside);
        let mode = mode(&about, tracked, &layout.on);
        let same = tracked.filter(|_| !filtered).filter(|tracked| tracked.mode == mode);
        if let Some(tracked) = same.filter(|tracked| tracked.stat == Some(stat(&about))) {
            return Ok(Node { name, mode, id: tracked.id.clone() });
        }
        let failed = |source| TreeError::Io { path: path.clone(), source };
        let id = if about.is_symlink() {
            layout.function.blob(fs::read_link(&path).map_err(failed)?.as_os_str().as_bytes())
        } else {
            layout.function.file(&path, about.len())?
        };
        if tracked.is_some_and(|tracked| tracked.held && (tracked.mode != mode || tracked.id != id)) {
            return Err(refused(&path, "git is told not to look whether it was changed, and it was"));
        }
        Ok(Node { name, mode, id })
    }
}

/// Takes the folder that is farthest from the root, but never the root.
fn deepest(nodes: &mut BTreeMap<Vec<u8>, Vec<Node>>) -> Option<(Vec<u8>, Vec<Node>)> {
    // Whatever sorts last has nothing below it but what sorts behind it.
    let last = nodes.keys().next_back().filter(|folder| !folder.is_empty())?.clone();
    nodes.remove_entry(&last)
}

fn mode(about: &Metadata, tracked: Option<&Tracked>, on: &Switches) -> u32 {
    if about.is_symlink() {
        return LINK;
    }
    let stays = |mode: &u32| !on.modes && matches!(*mode, PLAIN | PROGRAM) || !on.links && *mode == LINK;
    match tracked.map(|tracked| tracked.mode).filter(stays) {
        Some(mode) => mode,
        None if on.modes && about.permissions().mode() & 0o100 != 0 => PROGRAM,
        None => PLAIN,
    }
}
