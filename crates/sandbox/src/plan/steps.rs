//! From places to steps.
//!
//! Owns what is made, taken and mounted for each place, and Landlock's rights. Refuses what has nothing to be mounted on. Its invariant: a
//! step needs nothing that a later one makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{Access, AccessFs};

use super::places::{Entry, Places, look};
use super::{
    CHANGES, Ground, HERE, Layer, Made, MadeKind, MountPoint, NOTHING, Placed, Plan, PlanError, Reserve, Reserved,
    What, below, of_a_file, reading, text, work, writing,
};
use crate::confinement::{Confinement, Layered};

const DEVICE_LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// The steps to what `places` says.
pub fn lay_out(mut places: Places, confinement: &Confinement, ground: Ground) -> Result<Plan, PlanError> {
    places.hollow_out();
    let mut steps = Steps::new(&places, confinement)?;
    for (path, entry) in places.entries.all() {
        steps.add(&places, path, entry)?;
    }
    let used = places.used.iter().map(|path| Reserved { path: path.clone(), by: Reserve::Folder });
    steps.plan.reserved.extend(used);
    for (link, target) in &places.links {
        // Where the root is empty, a link on the way to something granted is made again.
        if places.own_root && places.cover(link).is_none() && !places.entries.has(link) {
            steps.make(&below("root", link), MadeKind::Link(text(target)?))?;
        }
    }
    for link in &confinement.links {
        let name = link.name.as_path();
        let is_there = places.entries.all().any(|(path, _)| path.starts_with(name)) || places.cover(name).is_some();
        let is_link = places.links.iter().any(|(known, _)| known.starts_with(name) || name.starts_with(known));
        if !places.own_root || is_there || is_link {
            return Err(PlanError::Taken(name.to_owned()));
        }
        steps.make(&below("root", name), MadeKind::Link(text(link.target.as_path())?))?;
    }
    let folder = look(confinement.folder.as_path())?.path;
    if places.own_root && !places.entries.has(&folder) {
        // The command starts there, whether or not anything in it is granted.
        match places.cover(&folder) {
            None => steps.make(&below("root", &folder), MadeKind::Folder(0o755))?,
            Some((above, Entry::Own { name, .. })) => {
                let rest = folder.strip_prefix(above).unwrap_or(&folder);
                steps.make(&below(name, rest), MadeKind::Folder(0o755))?;
            }
            Some(_) => {}
        }
    }
    steps.finish(confinement, ground)
}

/// The steps to overlays that others put in their places.
pub fn overlays(layered: &[Layered], work: &str) -> Result<Plan, PlanError> {
    let mut steps = Steps { made: BTreeMap::new(), plan: Plan::default(), writable: Vec::new() };
    for (number, Layered { path, layer, lasting }) in layered.iter().enumerate() {
        let [path, layer] = [look(path.as_path())?.path, look(layer.as_path())?.path];
        steps.layer(&path, (&layer, number), *lasting, work)?;
    }
    steps.make_all()
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
            // Not an empty one: git would take what it tracks there for removed.
            ("nowhere", MadeKind::Folder(0)),
            ("empty", MadeKind::File(0o444)),
            ("here", MadeKind::Text(HERE.to_vec())),
            ("ignored", MadeKind::Folder(0o755)),
            ("ignored/.gitignore", MadeKind::Text(b"*\n".to_vec())),
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
            Entry::Shown { source, writable: false, .. } => self.take(source, false, false, false)?,
            Entry::Shown { source, writable: true, folder } => {
                self.writable.push((path.to_owned(), *folder));
                self.lend(source)?
            }
            Entry::Device => self.take(path, true, false, true)?,
            Entry::Own { name, writable } => {
                if *writable {
                    self.writable.push((path.to_owned(), true));
                }
                self.make(Path::new(name), MadeKind::Folder(0o755))?;
                What::Own { path: text(name.as_ref())?, writable: *writable }
            }
            Entry::Temporary { source } => {
                self.writable.push((path.to_owned(), true));
                self.lend(source)?
            }
            Entry::Layered { layer, lasting, number } => self.layer(path, (layer, *number), *lasting, &work())?,
            Entry::Written { name, text: bytes } => {
                self.make(Path::new(name), MadeKind::Text(bytes.clone()))?;
                What::Own { path: text(name.as_ref())?, writable: false }
            }
            Entry::Mask { folder, reserve } => {
                let by = if *folder { c"nowhere" } else { NOTHING };
                What::Cover { by, reserve: self.reserve(path, *reserve) }
            }
            // Inside, what keeps the name of a file is an empty one, which programs that copy or read it can do.
            Entry::Held { reserve: Some(Reserve::File) } => {
                What::Cover { by: c"empty", reserve: self.reserve(path, Some(Reserve::File)) }
            }
            Entry::Held { reserve: Some(Reserve::Here) } => {
                What::Cover { by: c"here", reserve: self.reserve(path, Some(Reserve::Here)) }
            }
            // What keeps that of a folder is one that git takes for ignored, so that it neither lists it nor fails to remove it.
            Entry::Held { reserve: Some(Reserve::Folder) } => {
                What::Cover { by: c"ignored", reserve: self.reserve(path, Some(Reserve::Folder)) }
            }
            Entry::Held { reserve: None } => What::Itself { writable: false, reserve: None },
            Entry::Pin { reserve } => What::Itself { writable: true, reserve: self.reserve(path, *reserve) },
            Entry::Processes => What::Processes,
            Entry::Terminals => What::Terminals,
        };
        self.plan.placed.push(Placed { target: text(path)?, what });
        Ok(())
    }

    fn take(&mut self, path: &Path, writable: bool, owned: bool, device: bool) -> Result<What, PlanError> {
        self.plan.taken.push(Some(text(path)?));
        Ok(What::Taken { slot: self.plan.taken.len() - 1, writable, owned, device })
    }

    /// An overlay of a folder and its layer, both of which are first attached in the tree of its own.
    fn layer(
        &mut self,
        path: &Path,
        (layer, number): (&Path, usize),
        lasting: bool,
        work: &str,
    ) -> Result<What, PlanError> {
        self.writable.push((path.to_owned(), true));
        let place = self.plan.layers.len();
        let [below, above] = ["lower", "layer"].map(|name| format!("{name}{place}"));
        for name in [&below, &above] {
            self.make(Path::new(name), MadeKind::Folder(0o755))?;
        }
        let lower = self.plan.taken.len();
        self.take(path, true, true, false)?;
        self.lend(layer)?;
        self.plan.layers.push(Layer {
            slots: [lower, lower + 1],
            at: [text(below.as_ref())?, text(above.as_ref())?],
            changes: text(CHANGES.as_ref())?,
            work: text(work.as_ref())?,
            lasting,
            number,
        });
        Ok(What::Layer(place))
    }

    /// Takes what can be written and lies where only the caller may go.
    fn lend(&mut self, source: &Path) -> Result<What, PlanError> {
        self.plan.lent.push(self.plan.taken.len());
        self.take(source, true, true, false)
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
            Entry::Device | Entry::Written { .. } => false,
            Entry::Temporary { .. }
            | Entry::Layered { .. }
            | Entry::Own { .. }
            | Entry::Processes
            | Entry::Terminals => true,
            Entry::Mask { .. } | Entry::Held { .. } | Entry::Pin { .. } => return Ok(()),
        };
        let kind = if folder { MadeKind::Folder(0o755) } else { MadeKind::File(0o644) };
        match places.cover(path) {
            Some((above, Entry::Own { name, .. })) => {
                let rest = path.strip_prefix(above).unwrap_or(path);
                self.make(&below(name, rest), kind)
            }
            Some((above, Entry::Temporary { source })) => {
                let rest = path.strip_prefix(above).unwrap_or(path);
                let mut folders: Vec<&Path> = rest.ancestors().skip(1).collect();
                folders.retain(|folder| !folder.as_os_str().is_empty());
                let point = |path: &Path, folder| MountPoint { within: source.clone(), path: path.to_owned(), folder };
                self.plan.grounds.extend(folders.into_iter().rev().map(|path| point(path, true)));
                self.plan.grounds.push(point(rest, folder));
                Ok(())
            }
            None if places.own_root => self.make(&below("root", path), kind),
            Some(_) | None => match (path.symlink_metadata(), entry) {
                (Ok(_), _) => Ok(()),
                (Err(_), Entry::Shown { .. }) => Err(PlanError::NoTarget(path.to_owned())),
                (Err(_), _) => Err(PlanError::Missing(path.to_owned())),
            },
        }
    }

    fn make_all(mut self) -> Result<Plan, PlanError> {
        for (path, kind) in self.made {
            self.plan.made.push(Made { path: text(&path)?, kind });
        }
        Ok(self.plan)
    }

    fn finish(mut self, confinement: &Confinement, ground: Ground) -> Result<Plan, PlanError> {
        let abi = ground.landlock;
        let device = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        let known = AccessFs::from_all(abi);
        self.plan.rights.push((text("/".as_ref())?, reading().bits()));
        self.plan.rights.push((text("/dev".as_ref())?, ((device | reading()) & known).bits()));
        let change = reading() | writing(abi);
        for (path, folder) in std::mem::take(&mut self.writable) {
            let rights = if folder { change } else { of_a_file(change, abi) };
            self.plan.rights.push((text(&path)?, rights.bits()));
        }
        // What can be written there changes processes that earlier runs left, or the next one's.
        self.plan.rights.push((text("/proc".as_ref())?, reading().bits()));
        self.plan.folder = text(&look(confinement.folder.as_path())?.path)?;
        self.make_all()
    }
}
