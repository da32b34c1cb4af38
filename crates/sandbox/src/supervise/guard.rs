//! Protected files that somebody outside replaces.
//!
//! Owns seeing to it that they are protected again: where a name gets another file, the kernel takes the mounts on the old one away, in every
//! namespace. Refuses nothing to who is outside. Its invariant: between the change and the new mount lies no more than a wake-up, and whoever
//! inside has opened the new file for writing meanwhile is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};

use super::shared::{number, processes};
use crate::inside::{Fate, Target, protect_again};
use crate::plan::{NOTHING, Placed, Plan, What};
use crate::sys::process::{Stack, run_within};

/// When all files are looked at for the first time, if none is told to have changed before, in milliseconds: most commands have ended.
const FIRST: i64 = 2;
/// How often the files are looked at where the kernel tells of no changes, in milliseconds.
const LOOK: i64 = 20;
/// How often processes are gone through for one file.
const PASSES: u32 = 100;

/// Whose mounts they are.
pub struct Mounts {
    /// The user namespace that owns them, if it is another than the caller's.
    pub user: Option<OwnedFd>,
    /// They themselves.
    pub mounts: OwnedFd,
}

impl Mounts {
    /// Those of a process.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let open = |name: &str| File::open(format!("/proc/{}/ns/{name}", pid.as_raw_nonzero()));
        let user = open("user")?;
        let is_own = user.metadata()?.ino() == fs::metadata("/proc/self/ns/user")?.ino();
        Ok(Self { user: (!is_own).then(|| user.into()), mounts: open("mnt")?.into() })
    }
}

/// Protected files that somebody outside replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Those that are protected again.
    pub again: BTreeSet<PathBuf>,
    /// Those that could not be.
    pub lost: BTreeSet<PathBuf>,
    /// Why nobody knows whether there are more.
    pub unwatched: Option<String>,
}

/// Files that are watched over. Dropped, they are no more.
pub struct Guard {
    thread: Option<JoinHandle<Replaced>>,
    over: Arc<OwnedFd>,
}

impl Guard {
    /// Begins, with what is protected.
    pub fn begin(mounts: Mounts, protected: Vec<Target>) -> io::Result<Self> {
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let until = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("guard".to_owned()).stack_size(256 << 10);
        let thread = thread.spawn(move || {
            let mut replaced = Replaced::default();
            // What cannot be watched over is protected until it is replaced.
            if let Err(error) = watch_over(&mounts, protected, &until, &mut replaced) {
                replaced.unwatched = Some(error.to_string());
            }
            replaced
        })?;
        Ok(Self { thread: Some(thread), over })
    }

    /// Ends. Gives what was replaced.
    pub fn end(mut self) -> Replaced {
        let thread = self.thread.take();
        drop(self);
        let ended = thread.and_then(|thread| thread.join().ok());
        ended.unwrap_or_else(|| Replaced { unwatched: Some("its thread failed".to_owned()), ..Replaced::default() })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        rustix::io::write(&self.over, &1u64.to_ne_bytes()).unwrap_or_default();
    }
}

fn watch_over(mounts: &Mounts, protected: Vec<Target>, over: &OwnedFd, replaced: &mut Replaced) -> io::Result<()> {
    let space = File::from(mounts.mounts.try_clone()?).metadata()?.ino();
    let path = |target: &Target| PathBuf::from(OsStr::from_bytes(target.path.to_bytes()));
    let mut targets: BTreeMap<PathBuf, Target> = protected.into_iter().map(|target| (path(&target), target)).collect();
    targets.retain(|path, _| !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()));
    if targets.is_empty() {
        return Ok(());
    }
    let told = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
    let mut folders: BTreeMap<i32, &Path> = BTreeMap::new();
    let told = told.ok().filter(|told| {
        let parents: BTreeSet<&Path> = targets.keys().filter_map(|path| path.parent()).collect();
        parents.into_iter().all(|parent| {
            let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::ONLYDIR;
            let number = inotify::add_watch(told, parent, flags);
            number.is_ok_and(|number| folders.insert(number, parent).is_none())
        })
    });
    // Those that can be looked at, once all were.
    let mut known: Option<Vec<&PathBuf>> = None;
    loop {
        let pause = match (&known, &told) {
            (None, _) => Some(FIRST),
            (Some(_), None) => Some(LOOK),
            (Some(_), Some(_)) => None,
        };
        let pause = pause.map(|milliseconds| Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 });
        let mut sources = [PollFd::new(over, PollFlags::IN), PollFd::new(told.as_ref().unwrap_or(over), PollFlags::IN)];
        match poll(&mut sources, pause.as_ref()) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        if !sources[0].revents().is_empty() {
            return Ok(());
        }
        let changed = told.as_ref().map(|told| changed(told, &folders, &targets)).transpose()?;
        match &known {
            // What was replaced before it was watched nobody tells.
            None => {
                let mut all: Vec<&PathBuf> = targets.keys().collect();
                again(mounts, space, &targets, &all, replaced)?;
                // Of one that nobody can look at, nothing is known to have changed.
                let unseen = std::mem::take(&mut replaced.lost);
                all.retain(|path| !unseen.contains(*path));
                known = Some(all);
            }
            Some(all) => {
                let changed = changed.unwrap_or_else(|| all.clone());
                if !changed.is_empty() {
                    again(mounts, space, &targets, &changed, replaced)?;
                }
            }
        }
    }
}

/// Files whose names were given anew.
fn changed<'a>(
    told: &OwnedFd,
    folders: &BTreeMap<i32, &Path>,
    targets: &'a BTreeMap<PathBuf, Target>,
) -> io::Result<Vec<&'a PathBuf>> {
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(told, &mut room);
    let mut out = Vec::new();
    loop {
        match events.next() {
            Err(Errno::AGAIN) => return Ok(out),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            // More than the kernel kept.
            Ok(event) if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) => out.extend(targets.keys()),
            Ok(event) => {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                let path = folders.get(&event.wd()).zip(name).map(|(folder, name)| folder.join(name));
                out.extend(path.and_then(|path| targets.get_key_value(&path)).map(|(path, _)| path));
            }
        }
    }
}

/// Protects files again, and ends who has opened one for writing meanwhile.
fn again(
    mounts: &Mounts,
    space: u64,
    targets: &BTreeMap<PathBuf, Target>,
    changed: &[&PathBuf],
    replaced: &mut Replaced,
) -> io::Result<()> {
    let wanted: Vec<&Target> = changed.iter().filter_map(|path| targets.get(*path)).collect();
    let (user, space_of) = (mounts.user.as_ref().map(AsFd::as_fd), mounts.mounts.as_fd());
    let mut fates = vec![Fate::Lost; wanted.len()];
    let child = run_within(&mut Stack::new(), || protect_again(user, space_of, &wanted, &mut fates))?;
    while let Err(Errno::INTR) = waitid(WaitId::PidFd(child.handle.as_fd()), WaitIdOptions::EXITED) {}
    for (path, fate) in changed.iter().zip(fates) {
        match fate {
            Fate::Kept => continue,
            Fate::Again => replaced.again.insert((*path).clone()),
            Fate::Lost => replaced.lost.insert((*path).clone()),
        };
        if let Ok(found) = fs::symlink_metadata(path) {
            end_writers(space, (found.dev(), found.ino()));
        }
    }
    Ok(())
}

/// Ends every process with these mounts that has a file open for writing.
fn end_writers(space: u64, file: (u64, u64)) {
    for _ in 0..PASSES {
        let mut found = false;
        for pid in processes().unwrap_or_default() {
            // A process whose number is looked at after this is that one, or the signal reaches nobody.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if number(pid, "mnt").is_ok_and(|number| number == space) && writes(pid, file) {
                found = true;
                // It may have ended by itself.
                pidfd_send_signal(&handle, Signal::KILL).unwrap_or_default();
            }
        }
        if !found {
            return;
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

fn writes(pid: Pid, file: (u64, u64)) -> bool {
    let pid = pid.as_raw_nonzero();
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| {
        let is_it = fs::metadata(entry.path()).is_ok_and(|found| (found.dev(), found.ino()) == file);
        is_it && {
            let name = entry.file_name();
            let flags =
                fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", name.to_string_lossy())).unwrap_or_default();
            let flags = flags.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
            // The last two bits are the way of access, of which 0 is reading alone. Who hides it is taken for a writer.
            flags.is_none_or(|flags| flags & 3 != 0)
        }
    })
}

/// What mounts of its own protect by a plan.
pub fn protected(plan: &Plan) -> Vec<Target> {
    let target = |placed: &Placed| {
        let masked = match placed.what {
            What::Itself { writable: false, .. } | What::Taken { writable: false, device: false, .. } => false,
            What::Cover { by, reserve: None } if by == NOTHING => true,
            What::Itself { .. }
            | What::Taken { .. }
            | What::Cover { .. }
            | What::Layer(_)
            | What::Own { .. }
            | What::Processes
            | What::Terminals => return None,
        };
        Some(Target { path: placed.target.clone(), masked })
    };
    plan.placed.iter().filter_map(target).collect()
}
