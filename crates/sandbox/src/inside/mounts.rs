//! Mounts, as the plan has them.
//!
//! Owns their order: apart from the host's, trees taken, a tree of its own, the rest read-only, each thing in its place. Refuses every link:
//! what is opened is opened by its name without one, and mounted by the descriptor. Its invariant: nothing is looked at twice by name.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, open, openat, openat2, symlinkat};
use rustix::io::{Errno, write};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use rustix::net::RecvFlags;
use rustix::process::{chdir, fchdir, pivot_root, umask};

use super::{At, Failed, NOT_BUILT, Orders};
use crate::message::{self, Message, Step};
use crate::plan::{HERE, Layer, Made, MadeKind, Placed, Plan, Reserve, What};
use crate::sys::mount::{Attributes, NO_DEVICES, NO_EXECUTION, NO_SETUID, READ_ONLY, set_recursively};
use crate::sys::process::exit;

const EMPTY: &CStr = c"";

/// A tree of its own that is of no use any more. The kernel waits for every processor when it is let go of, so that is left for later.
pub struct Spent {
    _tree: OwnedFd,
    _copy: Option<OwnedFd>,
}

/// Folders and files that lie on no disk.
pub(super) struct OwnTree {
    pub(super) tree: OwnedFd,
    /// Whether it is attached over the root, where only its descriptor finds it: kernels before 6.15 copy parts of attached trees alone, and
    /// overlay nothing else.
    pub(super) attached: bool,
    copy: Option<OwnedFd>,
}

/// Builds all of them. `meanwhile` is done before what is made outside is waited for.
pub fn build(
    orders: &mut Orders,
    socket: &OwnedFd,
    meanwhile: impl FnOnce() -> Result<(), Failed>,
) -> Result<Spent, Failed> {
    let private = Attributes { propagation: libc::MS_PRIVATE, ..Attributes::default() };
    set_recursively(CWD, c"/", private).at(Step::Private)?;
    let processes = if orders.fresh_proc { Some(processes().at(Step::Proc)?) } else { None };
    let old_root = open(c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at(Step::Root)?;
    let OwnTree { tree, attached, copy } = match orders.tree.take() {
        Some(tree) => OwnTree { tree, attached: false, copy: None },
        None => OwnTree::new(&orders.plan, orders.become_user.is_some())?,
    };
    meanwhile()?;
    // What is made outside is not needed before.
    take_all(&orders.plan, &orders.lent, &mut orders.slots, socket)?;
    let attached = overlays(&orders.plan, &orders.slots, &mut orders.layers, (tree.as_fd(), attached))?;
    if orders.plan.own_root {
        let root = part(tree.as_fd(), c"root").at(Step::Root)?;
        enter(root.as_fd()).at(Step::Root)?;
    } else {
        let read_only = Attributes { set: READ_ONLY | NO_SETUID | NO_DEVICES, ..Attributes::default() };
        set_recursively(CWD, c"/", read_only).at(Step::ReadOnly)?;
    }
    let ready = Ready { slots: &orders.slots, layers: &orders.layers, tree: tree.as_fd(), processes, folder: None };
    ready.place_all(&orders.plan)?;
    // The tree of its own lies over the old root, which lies over the new one: whatever is left there is what `..` leads to.
    if attached {
        leave(&tree).at(Step::Root)?;
    }
    if orders.plan.own_root {
        leave(&old_root).at(Step::Root)?;
    }
    Ok(Spent { _tree: tree, _copy: copy })
}

/// What is put in places.
struct Ready<'a> {
    slots: &'a [Option<OwnedFd>],
    layers: &'a [Option<OwnedFd>],
    tree: BorrowedFd<'a>,
    processes: Option<OwnedFd>,
    /// The folder in which something was covered last, by its path.
    folder: Option<(&'a [u8], OwnedFd)>,
}

impl<'a> Ready<'a> {
    fn place_all(mut self, plan: &'a Plan) -> Result<(), Failed> {
        let mut all = plan.placed.iter().enumerate();
        all.try_for_each(|(item, placed)| self.place(placed).map_err(|(step, error)| (step, error, item)))
    }

    fn place(&mut self, placed: &'a Placed) -> Result<(), (Step, Errno)> {
        let place = |error| (Step::Place, error);
        match &placed.what {
            What::Taken { slot, writable, device, .. } => {
                let tree = self.slots.get(*slot).and_then(Option::as_ref).ok_or((Step::Place, Errno::BADF))?;
                let devices = if *device { NO_EXECUTION } else { NO_DEVICES };
                let read_only = if *writable { 0 } else { READ_ONLY };
                change(tree.as_fd(), NO_SETUID | devices | read_only).map_err(place)?;
                put(tree.as_fd(), &placed.target).map_err(place)
            }
            What::Layer(number) => {
                let tree = self.layers.get(*number).and_then(Option::as_ref).ok_or((Step::Place, Errno::BADF))?;
                put(tree.as_fd(), &placed.target).map_err(place)
            }
            What::Own { path, writable } => {
                let tree = part(self.tree, path).map_err(place)?;
                if *writable {
                    let attributes = Attributes { clear: READ_ONLY, ..Attributes::default() };
                    set_recursively(tree.as_fd(), EMPTY, attributes).map_err(place)?;
                }
                put(tree.as_fd(), &placed.target).map_err(place)
            }
            What::Itself { writable, reserve } => {
                let Some(target) = find(&placed.target, *reserve)? else { return Ok(()) };
                let tree = copy(target.as_fd()).map_err(place)?;
                if !writable {
                    change(tree.as_fd(), READ_ONLY).map_err(place)?;
                }
                put_on(tree.as_fd(), target.as_fd()).map_err(place)
            }
            What::Cover { by, reserve } => {
                let tree = part(self.tree, by).map_err(place)?;
                if self.cover(tree.as_fd(), &placed.target).is_ok() {
                    return Ok(());
                }
                let Some(target) = find(&placed.target, *reserve)? else { return Ok(()) };
                put_on(tree.as_fd(), target.as_fd()).map_err(place)
            }
            What::Processes => match &self.processes {
                Some(processes) => put(processes.as_fd(), &placed.target).map_err(place),
                None => Err((Step::Proc, Errno::BADF)),
            },
            What::Terminals => {
                let terminals = terminals().map_err(|error| (Step::Terminals, error))?;
                put(terminals.as_fd(), &placed.target).map_err(place)
            }
        }
    }

    /// Lays it over what is there, a link itself too. Places that come one after the other are mostly in one folder, which is looked for once.
    fn cover(&mut self, tree: BorrowedFd<'_>, target: &'a CStr) -> Result<(), Errno> {
        let (path, name) = split(target)?;
        let folder = match self.folder.take_if(|(known, _)| *known == path) {
            Some(known) => known,
            None => (path, find_now(Path::of(path)?.as_c_str()?, OFlags::DIRECTORY)?),
        };
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        let (_, folder) = self.folder.insert(folder);
        move_mount(tree, EMPTY, folder, name, flags)
    }
}

/// Takes what is lent, and the rest itself.
pub(super) fn take_all(
    plan: &Plan,
    lent: &[usize],
    slots: &mut [Option<OwnedFd>],
    socket: &OwnedFd,
) -> Result<(), Failed> {
    receive_lent(lent, slots, socket)?;
    take_rest(plan, slots)
}

fn take_rest(plan: &Plan, slots: &mut [Option<OwnedFd>]) -> Result<(), Failed> {
    for (item, (path, slot)) in plan.taken.iter().zip(slots).enumerate() {
        if let (Some(path), None) = (path, &slot) {
            *slot = Some(take(path).item(Step::Take, item)?);
        }
    }
    Ok(())
}

fn receive_lent(lent: &[usize], slots: &mut [Option<OwnedFd>], socket: &OwnedFd) -> Result<(), Failed> {
    let mut lent = lent.iter();
    loop {
        let put = |tree| {
            if let Some(slot) = lent.next().and_then(|slot| slots.get_mut(*slot)) {
                *slot = Some(tree);
            }
        };
        let heard = message::receive(socket, RecvFlags::empty(), put).at(Step::Take)?;
        if heard != Some(Message::Lent) {
            exit(NOT_BUILT);
        }
        if lent.as_slice().is_empty() {
            return Ok(());
        }
    }
}

/// A detached copy of a tree of the host.
fn take(path: &CStr) -> Result<OwnedFd, Errno> {
    copy(find_now(path, OFlags::empty())?.as_fd())
}

pub(super) fn copy(place: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    part_of(place, EMPTY, OpenTreeFlags::AT_RECURSIVE)
}

/// A detached copy of one part of the tree of its own, with what is mounted there.
fn part(tree: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    part_of(tree, path, OpenTreeFlags::AT_RECURSIVE)
}

pub(super) fn part_of(place: BorrowedFd<'_>, path: &CStr, flags: OpenTreeFlags) -> Result<OwnedFd, Errno> {
    let always = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(place, path, always | flags)
}

pub(super) fn change(tree: BorrowedFd<'_>, set: u64) -> Result<(), Errno> {
    set_recursively(tree, EMPTY, Attributes { set, ..Attributes::default() })
}

fn put(tree: BorrowedFd<'_>, target: &CStr) -> Result<(), Errno> {
    put_on(tree, find_now(target, OFlags::empty())?.as_fd())
}

pub(super) fn put_on(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, EMPTY, target, EMPTY, flags)
}

/// What is at a path that holds no link.
pub(super) fn find_now(path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// What is at a path, a link itself too; made first if it is to be kept and is not there. Nothing where this process may not look: the
/// command is the same user with fewer rights, so it cannot reach that either.
fn find(path: &CStr, reserve: Option<Reserve>) -> Result<Option<OwnedFd>, (Step, Errno)> {
    let found = match (find_now(path, OFlags::NOFOLLOW), reserve) {
        (Err(Errno::NOENT), Some(reserve)) => {
            make_reserve(path, reserve).map_err(|error| (Step::Reserve, error))?;
            find_now(path, OFlags::NOFOLLOW)
        }
        (found, _) => found,
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ACCESS) => Ok(None),
        Err(error) => Err((Step::Place, error)),
    }
}

fn make_reserve(path: &CStr, reserve: Reserve) -> Result<(), Errno> {
    let (parent, name) = split(path)?;
    let parent = find_now(Path::of(parent)?.as_c_str()?, OFlags::DIRECTORY)?;
    let made = match reserve {
        Reserve::Folder => mkdirat(&parent, name, Mode::from_raw_mode(0o755)),
        Reserve::File => mknodat(&parent, name, FileType::Socket, Mode::empty(), 0),
        Reserve::Here => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(&parent, name, flags, Mode::from_raw_mode(0o644));
            file.and_then(|file| write(&file, HERE)).map(drop)
        }
    };
    match made {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

/// A path with a zero byte at its end, without memory of its own.
struct Path {
    bytes: [u8; libc::PATH_MAX as usize],
    length: usize,
}

impl Path {
    fn of(path: &[u8]) -> Result<Self, Errno> {
        let mut bytes = [0; libc::PATH_MAX as usize];
        bytes.get_mut(..path.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(path);
        Ok(Self { bytes, length: path.len() })
    }

    fn as_c_str(&self) -> Result<&CStr, Errno> {
        let bytes = self.bytes.get(..=self.length).ok_or(Errno::NAMETOOLONG)?;
        CStr::from_bytes_with_nul(bytes).ok().ok_or(Errno::INVAL)
    }
}

/// The folder of a path, and the name there.
fn split(path: &CStr) -> Result<(&[u8], &CStr), Errno> {
    let bytes = path.to_bytes_with_nul();
    let slash = bytes.iter().rposition(|byte| *byte == b'/').ok_or(Errno::INVAL)?;
    let name = bytes.get(slash + 1..).and_then(|name| CStr::from_bytes_with_nul(name).ok()).ok_or(Errno::INVAL)?;
    Ok((bytes.get(..slash.max(1)).ok_or(Errno::INVAL)?, name))
}

/// `/proc` of the namespace of processes this one begins.
fn processes() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

fn terminals() -> Result<OwnedFd, Errno> {
    let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"ptmxmode", c"0666")?;
    fsconfig_set_string(&context, c"mode", c"0620")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

impl OwnTree {
    /// Makes one. It is attached where its parts could not be copied else.
    pub(super) fn new(plan: &Plan, other_user: bool) -> Result<Self, Failed> {
        let tree = own_tree(plan)?;
        // What the caller has taken for the command is of use in an overlay only where it is attached here.
        let lent = other_user && !plan.layers.is_empty();
        let copy = if lent { None } else { part_of(tree.as_fd(), EMPTY, OpenTreeFlags::empty()).ok() };
        let attached = copy.is_none();
        if attached {
            put(tree.as_fd(), c"/").at(Step::Make)?;
        }
        Ok(Self { tree, attached, copy })
    }
}

/// Makes them. After that nothing changes there, but in parts that are to be written.
fn own_tree(plan: &Plan) -> Result<OwnedFd, Failed> {
    let tree = empty_tree(plan).at(Step::Make)?;
    // The caller's mask for new files does not count here.
    let mask = umask(Mode::empty());
    let mut all = plan.made.iter().enumerate();
    let made = all.try_for_each(|(item, made)| make(tree.as_fd(), made).item(Step::Make, item));
    umask(mask);
    made?;
    // Its parts are copied with this, so none of them needs it again.
    change(tree.as_fd(), READ_ONLY | NO_SETUID | NO_DEVICES).at(Step::Make)?;
    Ok(tree)
}

/// The same with all that is mounted in it for any run, to be handed over. Kernels before 6.15 mount nothing in what is attached nowhere, and
/// later ones let nobody else copy parts of what was.
pub(super) fn furnished_tree(plan: &Plan, slots: &mut [Option<OwnedFd>]) -> Result<OwnedFd, Failed> {
    let tree = own_tree(plan)?;
    fchdir(&tree).at(Step::Make)?;
    take_rest(plan, slots)?;
    Ready { slots, layers: &[], tree: tree.as_fd(), processes: None, folder: None }.place_all(plan)?;
    Ok(tree)
}

/// Folders whose changes go to a layer, and whether the tree of its own is attached now.
pub(super) fn overlays(
    plan: &Plan,
    slots: &[Option<OwnedFd>],
    layers: &mut [Option<OwnedFd>],
    (tree, mut attached): (BorrowedFd<'_>, bool),
) -> Result<bool, Failed> {
    for (item, (layer, place)) in plan.layers.iter().zip(layers).enumerate() {
        let mut made = if attached { Err(Errno::INVAL) } else { overlay(layer, slots) };
        if matches!(made, Err(Errno::INVAL | Errno::PERM)) {
            if !attached {
                put(tree, c"/").item(Step::Overlay, item)?;
                attached = true;
            }
            made = attach(tree, layer, slots).and_then(|()| overlay(layer, slots));
        }
        *place = Some(made.item(Step::Overlay, item)?);
    }
    Ok(attached)
}

/// Attaches a folder and its layer in the tree of its own.
fn attach(tree: BorrowedFd<'_>, layer: &Layer, slots: &[Option<OwnedFd>]) -> Result<(), Errno> {
    for (slot, at) in layer.slots.iter().zip(&layer.at) {
        let taken = slots.get(*slot).and_then(Option::as_ref).ok_or(Errno::BADF)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = openat2(tree, at, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        put_on(taken.as_fd(), place.as_fd())?;
    }
    Ok(())
}

/// A folder whose changes go to a layer.
fn overlay(layer: &Layer, slots: &[Option<OwnedFd>]) -> Result<OwnedFd, Errno> {
    let [lower, upper] = layer.slots.map(|slot| slots.get(slot).and_then(Option::as_ref).ok_or(Errno::BADF));
    let (lower, upper) = (lower?, upper?);
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // A value has at most 255 bytes; a path may have more.
    fsconfig_set_string(&context, c"lowerdir", name_of(lower, &mut [0; 32])?)?;
    for (key, path) in [(c"upperdir", &layer.changes), (c"workdir", &layer.work)] {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = openat2(upper, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        fsconfig_set_string(&context, key, name_of(&place, &mut [0; 32])?)?;
    }
    fsconfig_set_flag(&context, c"userxattr")?;
    if !layer.lasting {
        // Else its end is the end of a `syncfs` of all that anybody has written to the same disk.
        fsconfig_set_flag(&context, c"volatile")?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A path that leads to what a descriptor stands for, without memory of its own.
fn name_of<'a>(descriptor: &OwnedFd, text: &'a mut [u8; 32]) -> Result<&'a CStr, Errno> {
    use std::io::Write;

    let mut rest = text.as_mut_slice();
    write!(rest, "/proc/self/fd/{}\0", descriptor.as_raw_fd()).ok().ok_or(Errno::NAMETOOLONG)?;
    CStr::from_bytes_until_nul(text).ok().ok_or(Errno::INVAL)
}

fn empty_tree(plan: &Plan) -> Result<OwnedFd, Errno> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in &plan.temporary {
        fsconfig_set_string(&context, name.as_c_str(), value.as_c_str())?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOSUID)
}

fn make(tree: BorrowedFd<'_>, made: &Made) -> Result<(), Errno> {
    let path = made.path.as_c_str();
    match &made.kind {
        MadeKind::Link(target) => symlinkat(target.as_c_str(), tree, path),
        MadeKind::Folder(mode) => mkdirat(tree, path, Mode::from_raw_mode(*mode)),
        MadeKind::File(mode) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(tree, path, flags, Mode::from_raw_mode(*mode)).map(drop)
        }
        MadeKind::Text(text) => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = openat(tree, path, flags, Mode::from_raw_mode(0o644))?;
            let mut rest = text.as_slice();
            while !rest.is_empty() {
                rest = rest.get(write(&file, rest)?..).unwrap_or_default();
            }
            Ok(())
        }
    }
}

/// Makes a tree the root. The old one lies over it, where no path leads, until it is left.
fn enter(root: BorrowedFd<'_>) -> Result<(), Errno> {
    put(root, c"/")?;
    fchdir(root)?;
    pivot_root(c".", c".")
}

/// Takes a mount from over the root.
fn leave(mount: &OwnedFd) -> Result<(), Errno> {
    fchdir(mount)?;
    unmount(c".", UnmountFlags::DETACH)?;
    chdir(c"/")
}
