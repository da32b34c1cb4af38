//! Which place holds what.
//!
//! Owns the map from places to what is mounted there. Refuses grants that cannot be met. Its invariant: a place has one entry, and the entry
//! that covers a path is the nearest above it.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use landlock::{Access, AccessFs};

use super::resolve::{Found, Resolved, closed_to_others, is_reserve, resolve};
use super::{
    Ground, Made, MadeKind, Placed, Plan, PlanError, Reserve, Reserved, What, below, of_a_file, reading, text, writing,
};
use crate::confinement::Confinement;
use crate::host_path::HostPath;

/// What a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// Something of the host, at its own path; `owned` where a stand-in for root is its owner.
    Grant { writable: bool, folder: bool, owned: bool },
    /// Something of the host, at another path, read-only.
    Shown { source: PathBuf, folder: bool },
    /// A device node.
    Device,
    /// A folder of the sandbox's own, by its name in the tree.
    Own { name: String, writable: bool },
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

/// The map.
pub struct Places {
    own_root: bool,
    stand_in: bool,
    entries: BTreeMap<PathBuf, Entry>,
    links: Vec<(PathBuf, PathBuf)>,
    masked: BTreeSet<PathBuf>,
    hollow: usize,
}

const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

impl Places {
    pub fn new(own_root: bool, stand_in: bool) -> Self {
        Self { own_root, stand_in, entries: BTreeMap::new(), links: Vec::new(), masked: BTreeSet::new(), hollow: 0 }
    }

    /// `/dev`, `/tmp` and `/proc`.
    pub fn own_folders(&mut self, fresh_proc: bool) -> Result<(), PlanError> {
        let own = |name: &str, writable| Entry::Own { name: name.to_owned(), writable };
        self.entries.insert("/dev".into(), own("dev", false));
        self.entries.insert("/dev/shm".into(), own("shm", true));
        self.entries.insert("/dev/pts".into(), Entry::Terminals);
        self.entries.insert("/tmp".into(), own("tmp", true));
        for device in DEVICES {
            self.device(Path::new(device))?;
        }
        if fresh_proc {
            self.entries.insert("/proc".into(), Entry::Processes);
        } else {
            self.entries.insert("/proc".into(), Entry::Grant { writable: true, folder: true, owned: false });
        }
        Ok(())
    }

    fn device(&mut self, path: &Path) -> Result<(), PlanError> {
        let resolved = look(path)?;
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
            self.masked.insert(look(path.as_path())?.path);
        }
        for path in &confinement.writable {
            let resolved = look(path.as_path())?;
            let folder = present(path.as_path(), &resolved)?;
            self.links.extend(resolved.links);
            self.entries.insert(resolved.path, Entry::Grant { writable: true, folder, owned: true });
        }
        // Parents first, so that what a parent grants is not granted again.
        let readable: BTreeSet<&Path> = confinement.readable.iter().map(HostPath::as_path).collect();
        for path in readable.into_iter().chain([confinement.folder.as_path()]) {
            let resolved = look(path)?;
            let folder = present(path, &resolved)?;
            self.links.extend(resolved.links);
            self.readable(resolved.path, folder);
        }
        for bind in &confinement.binds {
            let source = look(bind.source.as_path())?;
            let folder = present(bind.source.as_path(), &source)?;
            let target = look(bind.target.as_path())?;
            self.links.extend(target.links);
            self.entries.insert(target.path, Entry::Shown { source: source.path, folder });
        }
        Ok(())
    }

    fn readable(&mut self, path: PathBuf, folder: bool) {
        let (top, shown) = match self.cover(&path) {
            Some((top, Entry::Own { .. } | Entry::Device | Entry::Mask { .. })) => (top, false),
            Some((top, _)) => (top, true),
            None => (Path::new("/"), !self.own_root),
        };
        let masked =
            path.ancestors().skip(1).take_while(|above| *above != top).any(|above| self.masked.contains(above));
        // What root closed to others was meant for root, and is granted by its name: whoever stands in for root gets it.
        let owned = self.stand_in && closed_to_others(&path, folder);
        if masked || !shown || owned {
            self.entries.entry(path).or_insert(Entry::Grant { writable: false, folder, owned });
        }
    }

    /// What is masked and what is read-only, with every folder above it.
    pub fn protect(&mut self, confinement: &Confinement) -> Result<(), PlanError> {
        let mut held = Vec::new();
        for (paths, mask) in [(&confinement.masked, true), (&confinement.read_only, false)] {
            for path in paths {
                let resolved = look(path.as_path())?;
                for (link, _) in &resolved.links {
                    held.push((link.clone(), Found::File, false, false));
                }
                held.push((resolved.path, resolved.found, mask, path.names_folder()));
            }
        }
        // Masks of folders first: what is below one needs no entry of its own.
        held.sort();
        for (path, found, mask, names_folder) in held {
            self.hold(path, found, mask, names_folder);
        }
        Ok(())
    }

    fn hold(&mut self, path: PathBuf, found: Found, mask: bool, names_folder: bool) {
        let granted = self.entries.get(&path).cloned();
        let found = if found == Found::File && is_reserve(&path) { Found::Missing } else { found };
        let below_writable = self.writable_above(&path);
        let reserve = match found {
            // Whoever may not look cannot reach it inside either.
            Found::Hidden => return,
            Found::Missing if below_writable.is_none() => return,
            Found::Missing if names_folder => Some(Reserve::Folder),
            Found::Missing => Some(Reserve::File),
            Found::Folder | Found::File => None,
        };
        if mask {
            let seen = match self.cover(&path) {
                Some((_, Entry::Own { .. } | Entry::Mask { .. } | Entry::Device)) => granted.is_some(),
                Some(_) => true,
                None => granted.is_some() || !self.own_root,
            };
            if !seen {
                return;
            }
            let folder = found == Found::Folder || reserve == Some(Reserve::Folder);
            // What keeps the name of a file can be neither read nor written already.
            let kept = reserve == Some(Reserve::File);
            let entry = if kept { Entry::Held { reserve } } else { Entry::Mask { folder, reserve } };
            self.entries.insert(path.clone(), entry);
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

    /// Every folder between a writable one and `path`.
    fn pin(&mut self, path: &Path, top: &Path) {
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != top) {
            let reserve = if folder.symlink_metadata().is_ok() { None } else { Some(Reserve::Folder) };
            self.entries.entry(folder.to_owned()).or_insert(Entry::Pin { reserve });
        }
    }

    /// The nearest entry above a path that says what is there.
    fn cover(&self, path: &Path) -> Option<(&Path, &Entry)> {
        path.ancestors().skip(1).find_map(|above| match self.entries.get_key_value(above) {
            Some((_, Entry::Pin { .. })) | None => None,
            Some((above, entry)) => Some((above.as_path(), entry)),
        })
    }

    /// The folder that makes a path writable, if one does.
    fn writable_above(&self, path: &Path) -> Option<PathBuf> {
        match self.cover(path)? {
            (above, Entry::Grant { writable: true, .. }) => Some(above.to_owned()),
            _ => None,
        }
    }

    /// The steps.
    pub fn into_plan(mut self, confinement: &Confinement, ground: Ground) -> Result<Plan, PlanError> {
        self.hollow_out();
        let mut steps = Steps::new(&self, confinement)?;
        for (path, entry) in &self.entries {
            steps.add(&self, path, entry)?;
        }
        for (link, target) in &self.links {
            // Where the root is empty, a link on the way to something granted is made again.
            if self.own_root && self.cover(link).is_none() && !self.entries.contains_key(link) {
                steps.make(&below("root", link), MadeKind::Link(text(target)?))?;
            }
        }
        steps.finish(confinement, ground)
    }

    /// A masked folder with a grant below it becomes an empty one in which that can be shown.
    fn hollow_out(&mut self) {
        let shown = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Grant { .. } | Entry::Shown { .. }));
        let above: BTreeSet<PathBuf> =
            shown.flat_map(|(path, _)| path.ancestors().skip(1)).map(Path::to_owned).collect();
        for (path, entry) in &mut self.entries {
            if matches!(entry, Entry::Mask { folder: true, reserve: None }) && above.contains(path) {
                *entry = Entry::Own { name: format!("hollow{}", self.hollow), writable: false };
                self.hollow += 1;
            }
        }
    }
}

/// Steps as they are put together.
struct Steps {
    made: BTreeMap<PathBuf, MadeKind>,
    plan: Plan,
    writable: Vec<(PathBuf, bool)>,
}

impl Steps {
    fn new(places: &Places, confinement: &Confinement) -> Result<Self, PlanError> {
        let size = |bytes: u64| text(bytes.to_string().as_ref());
        let plan = Plan {
            own_root: places.own_root,
            temporary: vec![
                (text("size".as_ref())?, size(confinement.temporary)?),
                (text("mode".as_ref())?, text("0755".as_ref())?),
            ],
            ..Plan::default()
        };
        let mut steps = Self { made: BTreeMap::new(), plan, writable: Vec::new() };
        for (path, kind) in [
            ("nothing", MadeKind::File(0)),
            ("nowhere", MadeKind::Folder(0)),
            ("tmp", MadeKind::Folder(0o1777)),
            ("shm", MadeKind::Folder(0o1777)),
        ] {
            steps.make(Path::new(path), kind)?;
        }
        for (link, target) in DEVICE_LINKS {
            steps.make(
                &below("dev", &PathBuf::from(link.trim_start_matches("/dev"))),
                MadeKind::Link(text(target.as_ref())?),
            )?;
        }
        Ok(steps)
    }

    /// In the tree of its own, with the folders above it.
    fn make(&mut self, path: &Path, kind: MadeKind) -> Result<(), PlanError> {
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            self.made.entry(folder.to_owned()).or_insert(MadeKind::Folder(0o755));
        }
        self.made.entry(path.to_owned()).or_insert(kind);
        Ok(())
    }

    fn add(&mut self, places: &Places, path: &Path, entry: &Entry) -> Result<(), PlanError> {
        self.ground(places, path, entry)?;
        let what = match entry {
            Entry::Grant { writable, folder, owned } => {
                if *writable {
                    self.writable.push((path.to_owned(), *folder));
                }
                self.take(path, *writable, *owned, false)?
            }
            Entry::Shown { source, .. } => self.take(source, false, false, false)?,
            Entry::Device => self.take(path, true, false, true)?,
            Entry::Own { name, writable } => {
                if *writable {
                    self.writable.push((path.to_owned(), true));
                }
                self.make(Path::new(name), MadeKind::Folder(0o755))?;
                What::Own { path: text(name.as_ref())?, writable: *writable }
            }
            Entry::Mask { folder, reserve } => What::Mask { folder: *folder, reserve: self.reserve(path, *reserve) },
            Entry::Held { reserve } => What::Itself { writable: false, reserve: self.reserve(path, *reserve) },
            Entry::Pin { reserve } => What::Itself { writable: true, reserve: self.reserve(path, *reserve) },
            Entry::Processes => What::Processes,
            Entry::Terminals => What::Terminals,
        };
        self.plan.placed.push(Placed { target: text(path)?, what });
        Ok(())
    }

    fn take(&mut self, path: &Path, writable: bool, owned: bool, device: bool) -> Result<What, PlanError> {
        self.plan.taken.push(text(path)?);
        Ok(What::Taken { slot: self.plan.taken.len() - 1, writable, owned, device })
    }

    fn reserve(&mut self, path: &Path, reserve: Option<Reserve>) -> Option<Reserve> {
        if let Some(by) = reserve {
            self.plan.reserved.push(Reserved { path: path.to_owned(), by });
        }
        reserve
    }

    /// What the entry is mounted on: made where the tree of its own is, there already elsewhere.
    fn ground(&mut self, places: &Places, path: &Path, entry: &Entry) -> Result<(), PlanError> {
        let folder = match entry {
            Entry::Grant { folder, .. } | Entry::Shown { folder, .. } => *folder,
            Entry::Device => false,
            Entry::Own { .. } | Entry::Processes | Entry::Terminals => true,
            Entry::Mask { .. } | Entry::Held { .. } | Entry::Pin { .. } => return Ok(()),
        };
        let kind = if folder { MadeKind::Folder(0o755) } else { MadeKind::File(0o644) };
        match places.cover(path) {
            Some((above, Entry::Own { name, .. })) => {
                let rest = path.strip_prefix(above).unwrap_or(path);
                self.make(&below(name, rest), kind)
            }
            None if places.own_root => self.make(&below("root", path), kind),
            Some(_) | None => match (path.symlink_metadata(), entry) {
                (Ok(_), _) => Ok(()),
                (Err(_), Entry::Shown { .. }) => Err(PlanError::NoTarget(path.to_owned())),
                (Err(_), _) => Err(PlanError::Missing(path.to_owned())),
            },
        }
    }

    fn finish(mut self, confinement: &Confinement, ground: Ground) -> Result<Plan, PlanError> {
        for (path, kind) in self.made {
            self.plan.made.push(Made { path: text(&path)?, kind });
        }
        let abi = ground.landlock;
        let device = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        let known = AccessFs::from_all(abi);
        self.plan.rights.push((text("/".as_ref())?, reading().bits()));
        self.plan.rights.push((text("/dev".as_ref())?, ((device | reading()) & known).bits()));
        let change = reading() | writing(abi);
        for (path, folder) in self.writable {
            let rights = if folder { change } else { of_a_file(change, abi) };
            self.plan.rights.push((text(&path)?, rights.bits()));
        }
        let process = reading() | AccessFs::WriteFile;
        self.plan.rights.push((text("/proc".as_ref())?, process.bits()));
        self.plan.folder = text(&look(confinement.folder.as_path())?.path)?;
        Ok(self.plan)
    }
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
