//! The way down a work tree: which files count, and what each of them is.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use writ_policy::{IndexStat, each_index_entry};

use super::TreeError;
use super::hash::{FOLDER, Node, tree};
use super::ignored::Lists;
use super::repository::{Layout, filters};

/// Most files.
const MOST_FILES: usize = 2_000_000;
/// Deepest folder.
const DEEPEST: usize = 256;
const LINK: u32 = 0o120_000;
const MODULE: u32 = 0o160_000;
const PLAIN: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

/// A file that git tracks.
struct Tracked {
    id: Vec<u8>,
    mode: u32,
    /// What the index remembers of it, where that can be leant on.
    stat: Option<IndexStat>,
    /// It is left out of the work tree.
    skipped: bool,
}

/// What counts of a work tree.
pub struct Walk {
    /// By folder from the root, empty for the root itself: what is in it.
    files: BTreeMap<Vec<u8>, Vec<Found>>,
    tracked: HashMap<Vec<u8>, Tracked>,
    /// Folders that hold something tracked.
    folders: HashSet<Vec<u8>>,
    /// An attributes file on the way has git keep other bytes.
    pub filtered: bool,
    count: usize,
    until: Instant,
}

enum Found {
    /// A file or a link.
    File(Vec<u8>, Metadata),
    /// A repository inside, and its commit.
    Module(Vec<u8>, Vec<u8>),
    /// What the index alone has.
    Kept(Vec<u8>, u32, Vec<u8>),
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_owned() } else { [folder, b"/", name].concat() }
}

impl Walk {
    /// Walks down from the root, until that moment at most.
    pub fn of(layout: &Layout, until: Instant) -> Result<Self, TreeError> {
        let (tracked, folders) = tracked(layout)?;
        let mut walk = Self { files: BTreeMap::new(), tracked, folders, filtered: false, count: 0, until };
        let mut lists = Lists::default();
        for list in &layout.lists {
            lists.add(list, &layout.work);
        }
        walk.folder(layout, &layout.work, &[], &mut lists, false, 0)?;
        // A file that a sparse checkout leaves out is as it was added.
        let left: Vec<_> = walk.tracked.iter().filter(|(_, tracked)| tracked.skipped).collect();
        let mut kept = Vec::new();
        for (path, tracked) in left {
            if layout.work.join(std::ffi::OsStr::from_bytes(path)).symlink_metadata().is_err() {
                kept.push((path.clone(), tracked.mode, tracked.id.clone()));
            }
        }
        for (path, mode, id) in kept {
            let at = path.iter().rposition(|byte| *byte == b'/');
            let (folder, name) = at.map_or((&[][..], path.as_slice()), |at| {
                (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default())
            });
            walk.files.entry(folder.to_owned()).or_default().push(Found::Kept(name.to_owned(), mode, id));
        }
        Ok(walk)
    }

    fn folder(
        &mut self,
        layout: &Layout,
        path: &Path,
        prefix: &[u8],
        lists: &mut Lists,
        left_out: bool,
        depth: usize,
    ) -> Result<(), TreeError> {
        let failed = |source| TreeError::Io { path: path.to_owned(), source };
        if depth > DEEPEST || Instant::now() > self.until {
            return Err(TreeError::TooLarge);
        }
        let entries = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        let own = has(".gitignore") && lists.add(&path.join(".gitignore"), path);
        self.filtered |= has(".gitattributes") && filters(&path.join(".gitattributes"));
        for entry in entries {
            let name = entry.file_name().into_vec();
            if name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            let (at, inside) = (entry.path(), joined(prefix, &name));
            let kind = entry.file_type().map_err(failed)?;
            let out = left_out || lists.leaves_out(&at, kind.is_dir());
            if kind.is_dir() {
                self.inner(layout, &at, (prefix, name, inside), lists, out, depth)?;
            } else if (kind.is_file() || kind.is_symlink()) && (!out || self.tracked.contains_key(&inside)) {
                let failed = |source| TreeError::Io { path: at.clone(), source };
                let found = Found::File(name, entry.metadata().map_err(failed)?);
                self.files.entry(prefix.to_owned()).or_default().push(found);
                self.count += 1;
                if self.count > MOST_FILES {
                    return Err(TreeError::TooLarge);
                }
            }
        }
        if own {
            lists.leave();
        }
        Ok(())
    }

    /// A folder: a repository of its own, or one more step down.
    fn inner(
        &mut self,
        layout: &Layout,
        at: &Path,
        (prefix, name, inside): (&[u8], Vec<u8>, Vec<u8>),
        lists: &mut Lists,
        out: bool,
        depth: usize,
    ) -> Result<(), TreeError> {
        let module =
            self.tracked.get(&inside).filter(|tracked| tracked.mode == MODULE).map(|tracked| tracked.id.clone());
        if at.join(".git").symlink_metadata().is_ok() && (module.is_some() || !out) {
            // A repository inside counts as the commit that is checked out in it.
            let own = Layout::around(at, None).ok().filter(|own| own.function == layout.function);
            if let Some(head) = own.and_then(|own| own.head()).or(module) {
                self.files.entry(prefix.to_owned()).or_default().push(Found::Module(name, head));
            }
            return Ok(());
        }
        if let Some(id) = module {
            // It is not checked out.
            self.files.entry(prefix.to_owned()).or_default().push(Found::Module(name, id));
            return Ok(());
        }
        if out && !self.folders.contains(&inside) {
            return Ok(());
        }
        self.folder(layout, at, &inside, lists, out, depth + 1)
    }

    /// The root's name. Where `filtered`, nothing of the index is leant on.
    pub fn root(mut self, layout: &Layout, filtered: bool) -> Result<String, TreeError> {
        let function = layout.function;
        let mut nodes: BTreeMap<Vec<u8>, Vec<Node>> = BTreeMap::new();
        for (folder, files) in std::mem::take(&mut self.files) {
            let mut made = Vec::with_capacity(files.len());
            for found in files {
                if Instant::now() > self.until {
                    return Err(TreeError::TooLarge);
                }
                made.push(self.node(layout, &folder, found, filtered)?);
            }
            nodes.entry(folder).or_default().extend(made);
        }
        // The deepest first: each folder becomes a node of the one above it.
        while let Some((folder, own)) = deepest(&mut nodes) {
            let id = tree(function, own);
            let at = folder.iter().rposition(|byte| *byte == b'/');
            let (above, name) = at.map_or((&[][..], folder.as_slice()), |at| {
                (folder.get(..at).unwrap_or_default(), folder.get(at + 1..).unwrap_or_default())
            });
            nodes.entry(above.to_owned()).or_default().push(Node { name: name.to_owned(), mode: FOLDER, id });
        }
        let id = tree(function, nodes.remove([].as_slice()).unwrap_or_default());
        Ok(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn node(&self, layout: &Layout, folder: &[u8], found: Found, filtered: bool) -> Result<Node, TreeError> {
        let (name, about) = match found {
            Found::Module(name, id) => return Ok(Node { name, mode: MODULE, id }),
            Found::Kept(name, mode, id) => return Ok(Node { name, mode, id }),
            Found::File(name, about) => (name, about),
        };
        let inside = joined(folder, &name);
        let path = layout.work.join(std::ffi::OsStr::from_bytes(&inside));
        let tracked = self.tracked.get(&inside);
        let mode = mode(&about, tracked, layout.modes);
        let same = tracked.filter(|_| !filtered).filter(|tracked| tracked.mode == mode);
        if let Some(tracked) = same.filter(|tracked| tracked.stat == Some(stat(&about))) {
            return Ok(Node { name, mode, id: tracked.id.clone() });
        }
        let failed = |source| TreeError::Io { path: path.clone(), source };
        let id = if mode == LINK {
            layout.function.blob(fs::read_link(&path).map_err(failed)?.as_os_str().as_bytes())
        } else {
            layout.function.file(&path, about.len())?
        };
        Ok(Node { name, mode, id })
    }
}

/// Takes the folder that is farthest from the root, but never the root.
fn deepest(nodes: &mut BTreeMap<Vec<u8>, Vec<Node>>) -> Option<(Vec<u8>, Vec<Node>)> {
    // Whatever sorts last has nothing below it but what sorts behind it.
    let last = nodes.keys().next_back().filter(|folder| !folder.is_empty())?.clone();
    nodes.remove_entry(&last)
}

fn mode(about: &Metadata, tracked: Option<&Tracked>, modes: bool) -> u32 {
    if about.is_symlink() {
        return LINK;
    }
    match tracked.map(|tracked| tracked.mode).filter(|mode| !modes && matches!(*mode, PLAIN | PROGRAM)) {
        Some(mode) => mode,
        None if modes && about.permissions().mode() & 0o100 != 0 => PROGRAM,
        None => PLAIN,
    }
}

/// What the index would remember of a file, each cut to 32 bits as it does.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "gitformat-index(5) keeps 32 bits of each")]
fn stat(about: &Metadata) -> IndexStat {
    IndexStat {
        changed: (about.ctime() as u32, about.ctime_nsec() as u32),
        modified: (about.mtime() as u32, about.mtime_nsec() as u32),
        inode: about.ino() as u32,
        size: about.len() as u32,
    }
}

type Index = (HashMap<Vec<u8>, Tracked>, HashSet<Vec<u8>>);

/// What the index has. A file that was changed when the index was written, or later, may have changed again since: nothing is known
/// of its content.
fn tracked(layout: &Layout) -> Result<Index, TreeError> {
    let (mut tracked, mut folders) = (HashMap::new(), HashSet::new());
    let Some((bytes, about)) = layout.index()? else { return Ok((tracked, folders)) };
    let written = stat(&about).modified;
    let read = each_index_entry(&bytes, layout.function.length(), &mut |entry| {
        let sure = entry.stage == 0 && entry.stat.modified < written;
        let one = Tracked {
            id: entry.id.to_vec(),
            mode: entry.mode,
            stat: sure.then_some(entry.stat),
            skipped: entry.skipped,
        };
        tracked.insert(entry.path.to_vec(), one);
        let slashes = entry.path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for (at, _) in slashes {
            let folder = entry.path.get(..at).unwrap_or_default();
            if !folders.contains(folder) {
                folders.insert(folder.to_vec());
            }
        }
    });
    read.ok_or(TreeError::Kind("the repository's index is sparse, split or damaged"))?;
    Ok((tracked, folders))
}
