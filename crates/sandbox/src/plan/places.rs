//! Which place holds what.
//!
//! Owns the map from places to what is mounted there. Refuses grants that cannot be met. Its invariant: a place has one entry, and the entry
//! that covers a path is the nearest above it.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::resolve::{Found, Lookups, Resolved, closed_to_others, is_reserve, resolve};
use super::{Account, OnRecord, PlanError, Reserve};
use crate::confinement::Confinement;
use crate::host_path::HostPath;

/// What a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Something of the host, at its own path; `owned` where a stand-in for root is its owner.
    Grant { writable: bool, folder: bool, owned: bool },
    /// Something of the host, at another path.
    Shown { source: PathBuf, folder: bool, writable: bool },
    /// A device node.
    Device,
    /// A folder of the sandbox's own, by its name in the tree.
    Own { name: String, writable: bool },
    /// A folder of the host whose changes go to a layer: of those of the confinement the one of this number.
    Layered { layer: PathBuf, lasting: bool, number: usize },
    /// A folder of the host for what the command writes, which is no part of what the host has there.
    Temporary { source: PathBuf },
    /// A file of the sandbox's own, by its name in the tree.
    Written { name: String, text: Vec<u8> },
    /// What cannot be read.
    Mask { folder: bool, reserve: Option<Reserve> },
    /// What cannot be written.
    Held { reserve: Option<Reserve> },
    /// What cannot be renamed.
    Pin { reserve: Option<Reserve> },
    /// `/proc`.
    Processes,
    /// `/dev/pts`.
    Terminals,
}

impl Entry {
    /// Whether the host's own cannot be seen below it.
    const fn hides(&self) -> bool {
        matches!(self, Self::Own { .. } | Self::Temporary { .. } | Self::Device | Self::Mask { .. })
    }
}

/// Entries by their places, in the order of their bytes: what is deeper comes later, and paths compared part by part take ten times as long.
#[derive(Default)]
pub struct Entries(BTreeMap<OsString, Entry>);

impl Entries {
    pub fn get(&self, path: &Path) -> Option<&Entry> {
        self.0.get(path.as_os_str())
    }

    fn get_mut(&mut self, path: &Path) -> Option<&mut Entry> {
        self.0.get_mut(path.as_os_str())
    }

    pub fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path.as_os_str())
    }

    pub fn insert(&mut self, path: PathBuf, entry: Entry) {
        self.0.insert(path.into_os_string(), entry);
    }

    fn entry(&mut self, path: PathBuf) -> Slot<'_, OsString, Entry> {
        self.0.entry(path.into_os_string())
    }

    pub fn all(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.0.iter().map(|(path, entry)| (Path::new(path), entry))
    }
}

/// The map.
pub struct Places {
    pub own_root: bool,
    stand_in: bool,
    pub entries: Entries,
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Folders that keep their names and are shown as they are: who puts something into one means it to stay.
    pub used: Vec<PathBuf>,
    masked: BTreeSet<OsString>,
    hollow: usize,
    lookups: Lookups,
}

const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

impl Places {
    pub fn new(own_root: bool, stand_in: bool) -> Self {
        let (entries, links, used, masked) = (Entries::default(), Vec::new(), Vec::new(), BTreeSet::new());
        Self { own_root, stand_in, entries, links, used, masked, hollow: 0, lookups: Lookups::default() }
    }

    fn look(&mut self, path: &Path) -> Result<Resolved, PlanError> {
        self.lookups.resolve(path).map_err(|error| PlanError::Disk { path: path.to_owned(), error })
    }

    /// `/dev`, `/tmp` and `/proc`.
    pub fn own_folders(&mut self, confinement: &Confinement, fresh_proc: bool) -> Result<(), PlanError> {
        let own = |name: &str, writable| Entry::Own { name: name.to_owned(), writable };
        self.entries.insert("/dev".into(), own("dev", false));
        self.entries.insert("/dev/shm".into(), own("shm", true));
        self.entries.insert("/dev/pts".into(), Entry::Terminals);
        let temporary = match &confinement.temporary_folder {
            None => own("tmp", true),
            Some(path) => {
                let resolved = look(path.as_path())?;
                present(path.as_path(), &resolved)?;
                Entry::Temporary { source: resolved.path }
            }
        };
        self.entries.insert("/tmp".into(), temporary);
        for device in DEVICES {
            self.device(Path::new(device))?;
        }
        if fresh_proc {
            self.entries.insert("/proc".into(), Entry::Processes);
        } else {
            // The host's, with processes of the same user: what can be written there changes those.
            self.entries.insert("/proc".into(), Entry::Grant { writable: false, folder: true, owned: false });
        }
        Ok(())
    }

    fn device(&mut self, path: &Path) -> Result<(), PlanError> {
        let resolved = self.look(path)?;
        present(path, &resolved)?;
        self.entries.insert(resolved.path, Entry::Device);
        Ok(())
    }

    /// What is granted.
    pub fn grants(&mut self, confinement: &Confinement) -> Result<(), PlanError> {
        for device in &confinement.devices {
            self.device(device.as_path())?;
        }
        for path in &confinement.masked {
            let masked = self.look(path.as_path())?.path;
            self.masked.insert(masked.into_os_string());
        }
        if let Some(home) = &confinement.home {
            let (source, target) = (look(home.source.as_path())?, look(home.target.as_path())?);
            present(home.source.as_path(), &source)?;
            self.links.extend(target.links);
            self.entries.insert(target.path, Entry::Temporary { source: source.path });
        }
        for path in &confinement.writable {
            let resolved = self.look(path.as_path())?;
            let folder = present(path.as_path(), &resolved)?;
            self.links.extend(resolved.links);
            self.entries.insert(resolved.path, Entry::Grant { writable: true, folder, owned: true });
        }
        for (number, layered) in confinement.layered.iter().enumerate() {
            let resolved = self.look(layered.path.as_path())?;
            let layer = self.look(layered.layer.as_path())?;
            present(layered.path.as_path(), &resolved)?;
            present(layered.layer.as_path(), &layer)?;
            self.links.extend(resolved.links);
            let entry = Entry::Layered { layer: layer.path, lasting: layered.lasting, number };
            self.entries.entry(resolved.path).or_insert(entry);
        }
        // Parents first, so that what a parent grants is not granted again.
        let readable: BTreeSet<&Path> = confinement.readable.iter().map(HostPath::as_path).collect();
        // Where reading is closed, the folder the command starts in is readable only as far as it is granted.
        let folder = (!self.own_root).then(|| confinement.folder.as_path());
        for path in readable.into_iter().chain(folder) {
            let resolved = self.look(path)?;
            let folder = present(path, &resolved)?;
            self.links.extend(resolved.links);
            self.readable(resolved.path, folder);
        }
        for bind in &confinement.binds {
            let source = look(bind.source.as_path())?;
            let folder = present(bind.source.as_path(), &source)?;
            let target = look(bind.target.as_path())?;
            self.links.extend(target.links);
            self.entries.insert(target.path, Entry::Shown { source: source.path, folder, writable: bind.writable });
        }
        for path in &confinement.hollow {
            let path = look(path.as_path())?.path;
            if matches!(self.cover(&path), Some((_, Entry::Temporary { .. }))) && !self.entries.has(&path) {
                let entry = self.hollow();
                self.entries.insert(path, entry);
            }
        }
        Ok(())
    }

    /// An empty folder in which what is granted can be shown.
    fn hollow(&mut self) -> Entry {
        self.hollow += 1;
        Entry::Own { name: format!("hollow{}", self.hollow), writable: false }
    }

    fn readable(&mut self, path: PathBuf, folder: bool) {
        let (top, shown) = match self.cover(&path) {
            Some((top, entry)) if entry.hides() => (top, false),
            Some((top, _)) => (top, true),
            None => (Path::new("/"), !self.own_root),
        };
        let masked = path
            .ancestors()
            .skip(1)
            .take_while(|above| *above != top)
            .any(|above| self.masked.contains(above.as_os_str()));
        // What root closed to others was meant for root, and is granted by its name: whoever stands in for root gets it.
        let owned = self.stand_in && closed_to_others(&path, folder);
        if masked || !shown || owned {
            self.entries.entry(path).or_insert(Entry::Grant { writable: false, folder, owned });
        }
    }

    /// What is masked and what is read-only, with every folder above it. `on_record` says which folders keep a name for another run.
    pub fn protect(&mut self, confinement: &Confinement, on_record: OnRecord<'_>) -> Result<(), PlanError> {
        let mut held = Vec::new();
        for (paths, mask) in [(&confinement.masked, true), (&confinement.read_only, false)] {
            for path in paths {
                let resolved = self.look(path.as_path())?;
                for (link, _) in &resolved.links {
                    held.push((link.clone(), Found::File, false, false));
                }
                held.push((resolved.path, resolved.found, mask, path.names_folder()));
            }
        }
        // Masks of folders first: what is below one needs no entry of its own.
        held.sort_by(|one: &(PathBuf, _, _, _), other| {
            let order = one.0.as_os_str().cmp(other.0.as_os_str());
            order.then_with(|| (one.1, one.2, one.3).cmp(&(other.1, other.2, other.3)))
        });
        for (path, found, mask, names_folder) in held {
            self.hold(path, found, mask, names_folder);
        }
        for folder in on_record()? {
            self.reserve_too(folder);
        }
        Ok(())
    }

    /// A folder that is there only because another run keeps its name goes with that run, and a mount on it with it: unless this one keeps it
    /// too.
    fn reserve_too(&mut self, folder: PathBuf) {
        match self.entries.get_mut(&folder) {
            Some(Entry::Held { reserve: reserve @ None }) if is_empty(&folder) => *reserve = Some(Reserve::Folder),
            Some(Entry::Held { reserve: None }) => self.used.push(folder),
            Some(Entry::Pin { reserve: reserve @ None } | Entry::Mask { folder: true, reserve: reserve @ None }) => {
                *reserve = Some(Reserve::Folder);
            }
            Some(_) | None => {}
        }
    }

    fn hold(&mut self, path: PathBuf, found: Found, mask: bool, names_folder: bool) {
        let granted = self.entries.get(&path).cloned();
        let found = if found == Found::File && is_reserve(&path) { Found::Missing } else { found };
        let below_writable = self.writable_above(&path);
        let layered = matches!(self.cover(&path), Some((_, Entry::Layered { .. })));
        let reserve = match found {
            // What would be made there is made in a layer.
            Found::Missing if layered => return,
            // Whoever may not look cannot reach it inside either.
            Found::Hidden => return,
            Found::Missing if below_writable.is_none() => return,
            Found::Missing if names_folder => Some(Reserve::Folder),
            Found::Missing => Some(Reserve::of_file(&path)),
            Found::Folder | Found::File => None,
        };
        if mask {
            let seen = match self.cover(&path) {
                Some((_, entry)) => !entry.hides() || granted.is_some(),
                None => granted.is_some() || !self.own_root,
            };
            if !seen {
                return;
            }
            let folder = found == Found::Folder || reserve == Some(Reserve::Folder);
            self.entries.insert(path.clone(), Entry::Mask { folder, reserve });
        } else if let Some(Entry::Grant { folder, owned, .. }) = granted {
            self.entries.insert(path.clone(), Entry::Grant { writable: false, folder, owned });
        } else if below_writable.is_some() {
            match self.entries.entry(path.clone()) {
                Slot::Vacant(place) => drop(place.insert(Entry::Held { reserve })),
                Slot::Occupied(mut place) => {
                    if matches!(place.get(), Entry::Pin { .. }) {
                        place.insert(Entry::Held { reserve });
                    }
                }
            }
        }
        if let Some(top) = below_writable {
            self.pin(&path, &top);
        }
    }

    /// A name for the user and the group, unless what is shown has one, or the confinement says what is shown.
    pub fn name(&mut self, account: &Account) -> Result<(), PlanError> {
        for record in account.records() {
            let resolved = self.look(Path::new(record.file))?;
            let granted = match self.entries.get(&resolved.path) {
                None => false,
                Some(Entry::Grant { writable: false, .. }) => true,
                Some(_) => continue,
            };
            let seen = granted
                || match self.cover(&resolved.path) {
                    None => !self.own_root,
                    Some((_, Entry::Grant { writable: false, .. })) => true,
                    Some(_) => continue,
                };
            let given = match (seen, resolved.found) {
                (true, Found::File) => read(&resolved.path)?,
                (true, Found::Folder | Found::Missing | Found::Hidden) => continue,
                (false, _) => Vec::new(),
            };
            if let Some(text) = record.added_to(given) {
                self.entries.insert(resolved.path, Entry::Written { name: record.name.to_owned(), text });
            }
        }
        Ok(())
    }

    /// Every folder between a writable one and `path`.
    fn pin(&mut self, path: &Path, top: &Path) {
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != top) {
            let reserve = if folder.symlink_metadata().is_ok() { None } else { Some(Reserve::Folder) };
            self.entries.entry(folder.to_owned()).or_insert(Entry::Pin { reserve });
        }
    }

    /// The nearest entry above a path that says what is there.
    pub fn cover(&self, path: &Path) -> Option<(&Path, &Entry)> {
        path.ancestors().skip(1).find_map(|above| match self.entries.0.get_key_value(above.as_os_str()) {
            Some((_, Entry::Pin { .. })) | None => None,
            Some((above, entry)) => Some((Path::new(above), entry)),
        })
    }

    /// The folder that makes a path writable, if one does.
    fn writable_above(&self, path: &Path) -> Option<PathBuf> {
        match self.cover(path)? {
            (above, Entry::Grant { writable: true, .. } | Entry::Layered { .. }) => Some(above.to_owned()),
            _ => None,
        }
    }

    /// A masked folder with a grant below it becomes an empty one in which that can be shown.
    pub fn hollow_out(&mut self) {
        let is_shown =
            |entry: &Entry| matches!(entry, Entry::Grant { .. } | Entry::Shown { .. } | Entry::Layered { .. });
        let shown = self.entries.all().filter(|(_, entry)| is_shown(entry));
        let above: BTreeSet<PathBuf> =
            shown.flat_map(|(path, _)| path.ancestors().skip(1)).map(Path::to_owned).collect();
        let masked = self.entries.0.iter().filter(|(path, entry)| {
            matches!(entry, Entry::Mask { folder: true, reserve: None }) && above.contains(Path::new(path))
        });
        for path in masked.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            let entry = self.hollow();
            self.entries.0.insert(path, entry);
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

pub fn read(path: &Path) -> Result<Vec<u8>, PlanError> {
    fs::read(path).map_err(|error| PlanError::Disk { path: path.to_owned(), error })
}

pub fn look(path: &Path) -> Result<Resolved, PlanError> {
    resolve(path).map_err(|error| PlanError::Disk { path: path.to_owned(), error })
}

/// Whether something that is granted is a folder.
pub fn present(path: &Path, resolved: &Resolved) -> Result<bool, PlanError> {
    match resolved.found {
        Found::Folder => Ok(true),
        Found::File => Ok(false),
        Found::Missing => Err(PlanError::Missing(path.to_owned())),
        Found::Hidden => Err(PlanError::Hidden(path.to_owned())),
    }
}
