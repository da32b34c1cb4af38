//! Protected files that somebody outside replaces.
//!
//! Owns seeing to it that they are protected again: where a name gets another file, the kernel takes the mounts on the old one away, in every
//! namespace. Refuses nothing to who is outside. Its invariant: between the change and the new mount lies no more than a wake-up, and whoever
//! inside has opened the new file for writing meanwhile is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
use crate::sys::process::{Stack, run_within};

/// How often the files are looked at where the kernel tells of no changes, in milliseconds.
const LOOK: i64 = 20;
/// How often a process with the mounts is looked for.
const TRIES: u32 = 400;
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
    /// Begins.
    pub fn begin(mounts: Mounts) -> io::Result<Self> {
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let until = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("guard".to_owned()).stack_size(256 << 10);
        let thread = thread.spawn(move || {
            let mut replaced = Replaced::default();
            // What cannot be watched over is protected until it is replaced.
            if let Err(error) = watch_over(&mounts, &until, &mut replaced) {
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

fn watch_over(mounts: &Mounts, over: &OwnedFd, replaced: &mut Replaced) -> io::Result<()> {
    let space = File::from(mounts.mounts.try_clone()?).metadata()?.ino();
    // Before its program runs, the command lets nobody look into it.
    let mut tries = 0;
    let targets = loop {
        let pause = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let mut source = [PollFd::new(over, PollFlags::IN)];
        match poll(&mut source, Some(&pause)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !source[0].revents().is_empty() {
            return Ok(());
        }
        match targets(space)? {
            Some(found) if found.is_empty() => return Ok(()),
            Some(found) => break found,
            None if tries == TRIES => return Err(io::Error::other("no process of the run can be looked into")),
            None => tries += 1,
        }
    };
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
    let all: Vec<&PathBuf> = targets.keys().collect();
    // What was replaced before it was watched.
    again(mounts, space, &targets, &all, replaced)?;
    // Of one that nobody can look at, nothing is known to have changed.
    let unseen = std::mem::take(&mut replaced.lost);
    let all: Vec<&PathBuf> = all.into_iter().filter(|path| !unseen.contains(*path)).collect();
    let pause = told.is_none().then_some(Timespec { tv_sec: 0, tv_nsec: LOOK * 1_000_000 });
    loop {
        let mut sources = [PollFd::new(over, PollFlags::IN), PollFd::new(told.as_ref().unwrap_or(over), PollFlags::IN)];
        match poll(&mut sources, pause.as_ref()) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        if !sources[0].revents().is_empty() {
            return Ok(());
        }
        let changed = match &told {
            Some(told) => changed(told, &folders, &targets)?,
            None => all.clone(),
        };
        if !changed.is_empty() {
            again(mounts, space, &targets, &changed, replaced)?;
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

/// Files with mounts of their own that cannot be written; nothing where no process is found that has these mounts.
fn targets(space: u64) -> io::Result<Option<BTreeMap<PathBuf, Target>>> {
    let mut all = processes()?;
    // The newest first: it has just been made.
    all.sort_by_key(|pid| std::cmp::Reverse(pid.as_raw_nonzero()));
    let Some(pid) = all.into_iter().find(|pid| number(*pid, "mnt").is_ok_and(|number| number == space)) else {
        return Ok(None);
    };
    // It may have ended meanwhile.
    let Ok(text) = File::open(format!("/proc/{}/mountinfo", pid.as_raw_nonzero())) else { return Ok(None) };
    let mut out = BTreeMap::new();
    for line in BufReader::new(text).split(b'\n') {
        let Ok(line) = line else { return Ok(None) };
        let Some((path, masked)) = mount(&line) else { continue };
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if let Some(name) = CString::new(path.as_os_str().as_bytes()).ok().filter(|_| is_file) {
            out.insert(path, Target { path: name, masked });
        }
    }
    Ok(Some(out))
}

/// Where a mount that cannot be written lies, and whether it covers what is there: `36 35 98:0 /root /at ro,nosuid - ext4 …`.
fn mount(line: &[u8]) -> Option<(PathBuf, bool)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(3);
    let (root, at, options) = (fields.next()?, fields.next()?, fields.next()?);
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    let read_only = options.split(|byte| *byte == b',').any(|option| option == b"ro");
    // What covers a file lies on no disk; of that, only what cannot be read is a mask.
    let masked = kind == b"tmpfs" && root.ends_with(b"/nothing");
    let stands_in = kind == b"tmpfs" && (root.ends_with(b"/empty") || root.ends_with(b"/here"));
    (read_only && !stands_in && at.len() > 1).then(|| (PathBuf::from(unescaped(at)), masked))
}

/// A path, whose odd bytes the kernel writes as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> OsString {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\');
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mounts() {
        for (line, path, masked) in [
            ("36 35 98:0 /w/.git/config /w/.git/config ro,nosuid - ext4 /dev/vda rw", Some("/w/.git/config"), false),
            ("36 35 98:0 /a\\040b /w/a\\040b\\134c ro - ext4 /dev/vda rw", Some("/w/a b\\c"), false),
            ("36 35 0:4 /nothing /w/.env ro,nosuid shared:1 - tmpfs tmpfs rw", Some("/w/.env"), true),
            ("36 35 0:4 /empty /w/.envrc ro - tmpfs tmpfs rw", None, false),
            ("36 35 98:0 /w /w rw - ext4 /dev/vda rw", None, false),
            ("36 35 98:0 / / ro - ext4 /dev/vda rw", None, false),
            ("36 35", None, false),
        ] {
            let found = mount(line.as_bytes());
            assert_eq!(found, path.map(|path| (PathBuf::from(path), masked)), "{line}");
        }
    }
}
