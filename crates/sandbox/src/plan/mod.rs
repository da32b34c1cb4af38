//! What is mounted where, and in which order.
//!
//! Owns the way from a [`Confinement`] and the host's disk to a list of steps that needs no decision and no memory where it is carried out.
//! Refuses what is granted and missing, and identity 0. Its invariant: deeper places come after those that hold them, and every folder
//! between a writable one and a protected name below it is a mount of its own, so none of them can be renamed.

mod account;
mod bare;
mod places;
mod resolve;
mod steps;
mod tree;
mod written;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use landlock::{ABI, AccessFs, BitFlags};

use crate::confinement::{Confinement, Layered, Reading, Shown};
pub use account::Account;
use places::Places;
pub use resolve::is_reserve;

/// Why a confinement cannot be carried out on this host.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Something granted is not there.
    #[error("`{}` is granted and does not exist", .0.display())]
    Missing(PathBuf),
    /// Something granted cannot be looked at.
    #[error("`{}` is granted, and the caller may not look at it", .0.display())]
    Hidden(PathBuf),
    /// What is shown under another path has none to lie on.
    #[error("`{}` does not exist, so nothing can be shown there", .0.display())]
    NoTarget(PathBuf),
    /// A name that would lead elsewhere stands where something is shown.
    #[error("`{}` cannot be a name of something else: something is shown there, above it, or below it", .0.display())]
    Taken(PathBuf),
    /// The disk could not be read.
    #[error("`{}`: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// Only a mount of its own could hold it.
    #[error("`{}` lies below something granted: only a mount namespace could hold it apart", .0.display())]
    NeedsMounts(PathBuf),
    /// Without mounts each name beside something kept apart has a right of its own.
    #[error("`{}` holds more names beside something kept apart than can be given one by one: only a mount namespace could hold it", .0.display())]
    TooManyNames(PathBuf),
    /// A path holds a zero byte.
    #[error("a path holds a zero byte")]
    Zero,
}

/// The steps.
#[derive(Debug, Default)]
pub struct Plan {
    /// Whether the root is the host's (read-only) or an empty one.
    pub own_root: bool,
    /// Bytes its own files may take.
    pub temporary: Vec<(CString, CString)>,
    /// Made in the folder tree of its own, parents first.
    pub made: Vec<Made>,
    /// Trees of the host taken before anything is changed; nothing in the place of one that is not needed.
    pub taken: Vec<Option<CString>>,
    /// Which of them only the caller may be able to reach, who takes them for the command.
    pub lent: Vec<usize>,
    /// Folders whose changes go elsewhere.
    pub layers: Vec<Layer>,
    /// Made in folders of the command's own, parents first, for what is shown below them.
    pub grounds: Vec<MountPoint>,
    /// Put in their places, in this order.
    pub placed: Vec<Placed>,
    /// Names that are not there yet, and are kept so.
    pub reserved: Vec<Reserved>,
    /// Landlock's rights, by place.
    pub rights: Vec<(CString, u64)>,
    /// Rights of names in folders that are not given whole: one that is gone, or out of the command's reach, has none.
    pub parts: Vec<(CString, u64)>,
    /// Where the command starts.
    pub folder: CString,
}

/// Of a layer, the folder that holds what was changed.
pub const CHANGES: &str = "changes";

/// Of a layer, the folder that the kernel works in while this process runs a command: two must not share one.
pub fn work() -> String {
    format!("{WORK}{}", std::process::id())
}

/// What those are called, before a number.
pub const WORK: &str = "work-";

/// An overlay.
#[derive(Debug)]
pub struct Layer {
    /// The folder and its layer, among what is taken.
    pub slots: [usize; 2],
    /// Where in the tree of its own they are attached while the overlay is made, if they have to be.
    pub at: [CString; 2],
    /// In the layer, what was changed.
    pub changes: CString,
    /// There, what the kernel works in.
    pub work: CString,
    /// Whether what was changed is to outlast a power cut.
    pub lasting: bool,
    /// Which of the confinement's it is.
    pub number: usize,
}

/// What something is shown on, in a folder of the host that is the command's.
#[derive(Debug)]
pub struct MountPoint {
    /// The folder.
    pub within: PathBuf,
    /// Where, from there.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub folder: bool,
}

/// Something made in the sandbox's own tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    /// Where, from the tree's top.
    pub path: CString,
    /// What.
    pub kind: MadeKind,
}

/// What is made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MadeKind {
    /// A folder with this mode.
    Folder(u32),
    /// An empty file with this mode.
    File(u32),
    /// A file that everybody can read.
    Text(Vec<u8>),
    /// A link.
    Link(CString),
}

/// Something put in its place.
#[derive(Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where.
    pub target: CString,
    /// What.
    pub what: What,
}

/// What is put in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A tree that was taken.
    Taken {
        /// Which.
        slot: usize,
        /// Whether it can be written.
        writable: bool,
        /// Whether it belongs to a stand-in for root, if there is one.
        owned: bool,
        /// Whether it is a device.
        device: bool,
    },
    /// An overlay, by its number.
    Layer(usize),
    /// A folder or file of the tree of its own.
    Own {
        /// Which.
        path: CString,
        /// Whether it can be written.
        writable: bool,
    },
    /// What is there already, as a mount of its own: it can be neither renamed nor removed.
    Itself {
        /// Whether it can be written.
        writable: bool,
        /// What is made first if nothing is there.
        reserve: Option<Reserve>,
    },
    /// Something of the tree of its own over what is there, for reading at most.
    Cover {
        /// What.
        by: &'static CStr,
        /// What is made first if nothing is there.
        reserve: Option<Reserve>,
    },
    /// Processes, as seen from inside.
    Processes,
    /// Terminals of its own.
    Terminals,
}

/// What keeps a name on the host: something that git and most programs do not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// An empty folder.
    Folder,
    /// A socket that nobody listens on, with no rights at all: opening it fails at once. Inside an empty file lies over it.
    File,
    /// A file that says [`HERE`].
    Here,
}

/// What covers a file that cannot be read, in the tree of its own.
pub const NOTHING: &CStr = c"nothing";

/// The folder itself, in a file that names another whose settings count: git outside, which would take a socket for an error, takes it for
/// what it is without.
pub const HERE: &[u8] = b".\n";

impl Reserve {
    /// What keeps the name of a file.
    fn of_file(path: &Path) -> Self {
        if path.file_name().is_some_and(|name| name == "commondir") { Self::Here } else { Self::File }
    }
}

/// A name that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Where.
    pub path: PathBuf,
    /// By what.
    pub by: Reserve,
}

/// What the plan depends on besides the confinement.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// Landlock's version.
    pub landlock: ABI,
    /// Whether `/proc` can be mounted fresh.
    pub fresh_proc: bool,
    /// Whether the command stands in for root.
    pub stand_in: bool,
    /// Whether there are namespaces at all.
    pub namespaces: bool,
}

/// Asked for the folders that keep a name for some run, after the disk was looked at.
pub type OnRecord<'a> = &'a dyn Fn() -> Result<BTreeSet<PathBuf>, PlanError>;

impl Plan {
    /// Looks at the disk and lays the steps out.
    pub fn new(
        confinement: &Confinement,
        shown: &[Shown],
        ground: Ground,
        account: &Account,
        on_record: OnRecord<'_>,
    ) -> Result<Self, PlanError> {
        if !ground.namespaces {
            if let Some(text) = shown.first() {
                return Err(PlanError::NeedsMounts(text.place.as_path().to_owned()));
            }
            return bare::plan(confinement, ground.landlock, account.uid);
        }
        let own_root = confinement.reading == Reading::Closed;
        let mut places = Places::new(own_root, ground.stand_in);
        places.own_folders(confinement, ground.fresh_proc)?;
        places.grants(confinement)?;
        written::host_names(&mut places, &confinement.network)?;
        written::shown(&mut places, shown)?;
        places.protect(confinement, on_record)?;
        places.name(account)?;
        steps::lay_out(places, confinement, ground)
    }
}

impl Plan {
    /// The steps to overlays alone, worked on in folders of this name.
    pub fn of_layers(layered: &[Layered], work: &str) -> Result<Self, PlanError> {
        steps::overlays(layered, work)
    }

    /// Overlays are lent, so what they are made of is not needed.
    pub fn without_layers(&mut self) {
        let layers = std::mem::take(&mut self.layers);
        self.made.retain(|made| !layers.iter().any(|layer| layer.at.contains(&made.path)));
        for slot in layers.iter().flat_map(|layer| layer.slots) {
            if let Some(taken) = self.taken.get_mut(slot) {
                *taken = None;
            }
        }
    }

    /// Slots of trees of the host that belong to a stand-in for root, if there is one.
    pub fn owned_slots(&self) -> Vec<usize> {
        let slots = self.placed.iter().filter_map(|placed| match placed.what {
            What::Taken { slot, owned, .. } => owned.then_some(slot),
            What::Layer(_)
            | What::Own { .. }
            | What::Itself { .. }
            | What::Cover { .. }
            | What::Processes
            | What::Terminals => None,
        });
        slots.chain(self.layers.iter().flat_map(|layer| layer.slots)).collect()
    }
}

/// A path for the kernel.
fn text(path: &Path) -> Result<CString, PlanError> {
    bytes(path.as_os_str())
}

fn bytes(text: &OsStr) -> Result<CString, PlanError> {
    CString::new(text.to_owned().into_vec()).ok().ok_or(PlanError::Zero)
}

/// `path` below `top`, as the tree of its own has it: `dev` and `null` give `dev/null`.
fn below(top: &str, path: &Path) -> PathBuf {
    let rest = path.as_os_str().as_bytes();
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    if rest.is_empty() { PathBuf::from(top) } else { Path::new(top).join(OsStr::from_bytes(rest)) }
}

/// Rights to read and execute.
fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(ABI::V1)
}

/// Rights to change: everything but to make device nodes.
fn writing(abi: ABI) -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    AccessFs::from_write(abi) & !devices
}

/// Of these rights, those that a file can have.
fn of_a_file(rights: BitFlags<AccessFs>, abi: ABI) -> BitFlags<AccessFs> {
    rights & AccessFs::from_file(abi)
}
