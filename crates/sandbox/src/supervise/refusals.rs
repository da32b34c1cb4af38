//! What a command was refused of files, told in words that name them.
//!
//! Owns the watching: the kernel hands calls that name files over, their paths are compared with the confinement, and every call goes on to
//! the kernel, which alone refuses. Refuses nothing itself, so a path that changes meanwhile gains nothing. Invariant: what is told is a
//! path that the confinement does not give; what cannot be read of a process is not told.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, open, openat2};
use rustix::io::Errno;
use rustix::process::Pid;

use super::connected::Sockets;
use super::noted::{Act, Noted, Notes};
use crate::calls::CONNECTING;
use crate::confinement::{Confinement, Reading};
use crate::host_path::HostPath;
use crate::sys::notify::{self, Call};

/// Most paths that are told of one run.
const MOST: usize = 64;
/// Longest path.
const LONGEST: usize = 4096;

/// A path that was refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    /// Which.
    pub path: PathBuf,
    /// Whether it was to be changed, else opened for reading.
    pub change: bool,
    /// Whether the confinement names it, or something above it; else it only gives nothing there.
    pub named: bool,
}

/// What was seen of a command.
#[derive(Debug, Default)]
pub struct Seen {
    /// What it was refused.
    pub refused: Vec<Refused>,
    /// What it used, where that was wanted.
    pub noted: Option<Noted>,
}

/// Who is told of each change to a name that is not refused, before it is made.
#[derive(Clone)]
pub struct Observer(Arc<Told>);

type Told = dyn Fn(&Path, Act) + Send + Sync;

impl Observer {
    /// Has it told.
    pub fn new(told: impl Fn(&Path, Act) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Observer")
    }
}

/// What is looked at.
pub struct Seeing<'a> {
    /// What the command may reach, where it is told what it was refused.
    pub confinement: Option<&'a Confinement>,
    /// Whether what is not refused is kept too.
    pub noting: bool,
    /// Who is told of what it changes.
    pub observer: Option<Observer>,
    /// Who makes its sockets, where it makes none itself.
    pub sockets: Option<Sockets>,
}

/// A command that is watched.
pub struct Watch {
    thread: JoinHandle<Seen>,
    listener: Arc<OwnedFd>,
    /// Told when somebody else is to answer.
    over: Arc<OwnedFd>,
}

impl Watch {
    /// Begins.
    pub fn begin(listener: OwnedFd, seeing: Seeing<'_>) -> io::Result<Self> {
        let given = seeing.confinement.map(Given::of);
        let notes = seeing.noting.then(Notes::default);
        let (observer, mut sockets) = (seeing.observer, seeing.sockets);
        let (listener, over) = (Arc::new(listener), Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?));
        let (calls, until) = (Arc::clone(&listener), Arc::clone(&over));
        let thread = thread(move || {
            if let Some(Err(_)) = sockets.as_ref().map(Sockets::come_near) {
                // Nobody answers: every call that is handed over fails.
                return Seen::default();
            }
            watch(&calls, Some(&until), given.as_ref(), notes, observer.as_ref(), sockets.as_mut())
        })?;
        Ok(Self { thread, listener, over })
    }

    /// What was seen, once the last process that is watched has ended.
    pub fn seen(self) -> Seen {
        self.thread.join().unwrap_or_default()
    }

    /// What was seen until now, and what the rest is to be answered on.
    pub fn hand_over(self) -> (Seen, Option<OwnedFd>) {
        rustix::io::write(&self.over, &1u64.to_ne_bytes()).unwrap_or_default();
        (self.thread.join().unwrap_or_default(), Arc::into_inner(self.listener))
    }
}

/// Lets every call go on, whatever it names, until nobody is left who makes one.
pub fn let_go_on(listener: OwnedFd, observer: Option<Observer>) -> io::Result<()> {
    thread(move || watch(&listener, None, None, None, observer.as_ref(), None)).map(drop)
}

fn thread(watch: impl FnOnce() -> Seen + Send + 'static) -> io::Result<JoinHandle<Seen>> {
    std::thread::Builder::new().name("refusals".to_owned()).stack_size(256 << 10).spawn(watch)
}

/// Answers until nobody makes a call any more, or until it is told that somebody else does.
fn watch(
    listener: &OwnedFd,
    until: Option<&OwnedFd>,
    given: Option<&Given>,
    notes: Option<Notes>,
    observer: Option<&Observer>,
    mut sockets: Option<&mut Sockets>,
) -> Seen {
    let mut watched = Watched { given, observer, notes, refused: Vec::new() };
    notify::hurry(listener.as_fd());
    loop {
        let mut sources = [Some(listener), until].map(|source| PollFd::new(source.unwrap_or(listener), PollFlags::IN));
        match poll(&mut sources, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return watched.seen(),
        }
        let [call, over] = sources.map(|source| source.revents().contains(PollFlags::IN));
        if until.is_some() && over || !call {
            return watched.seen();
        }
        // Whoever made it may be gone.
        let Ok(call) = notify::next(listener.as_fd()) else { continue };
        if let Some(sockets) = sockets.as_deref_mut().filter(|_| CONNECTING.contains(&call.number)) {
            sockets.answer(listener.as_fd(), &call);
            continue;
        }
        if given.is_some() || observer.is_some() {
            named(&call).into_iter().flatten().for_each(|named| watched.take(&named));
        }
        // As above.
        notify::proceed(listener.as_fd(), &call).unwrap_or_default();
    }
}

/// What is seen of a command, and who is told.
struct Watched<'a> {
    given: Option<&'a Given>,
    observer: Option<&'a Observer>,
    notes: Option<Notes>,
    refused: Vec<Refused>,
}

impl Watched<'_> {
    fn take(&mut self, named: &Named) {
        if let Some(refused) = self.given.and_then(|given| given.refuses(named)) {
            // Who only asks is answered, if with what stands in its place.
            if named.act != Act::Ask && self.refused.len() < MOST && !self.refused.contains(&refused) {
                self.refused.push(refused);
            }
            return;
        }
        if let Some(observer) = self.observer.filter(|_| named.changes()) {
            (observer.0)(&named.path, named.act);
        }
        if let Some(notes) = self.notes.as_mut().filter(|_| !OWN.iter().any(|own| named.path.starts_with(own))) {
            notes.take(&named.path, named.act);
        }
    }

    fn seen(self) -> Seen {
        Seen { refused: self.refused, noted: self.notes.map(Notes::end) }
    }
}

/// A path in a call.
struct Named {
    process: Pid,
    path: PathBuf,
    act: Act,
}

impl Named {
    const fn changes(&self) -> bool {
        !matches!(self.act, Act::Ask | Act::Read)
    }
}

/// The paths that a call names.
fn named(call: &Call) -> [Option<Named>; 2] {
    let [first, second, third, fourth, ..] = call.arguments;
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    let at = |folder, address, act| path(call, folder, address).map(|(process, path)| Named { process, path, act });
    match call.number {
        libc::SYS_openat => [at(first, second, opening(third)), None],
        libc::SYS_mkdirat | libc::SYS_mknodat => [at(first, second, Act::Make), None],
        libc::SYS_unlinkat => [at(first, second, Act::Remove), None],
        libc::SYS_fchmodat => [at(first, second, Act::Change), None],
        libc::SYS_renameat2 => [at(first, second, Act::Remove), at(third, fourth, Act::Replace)],
        libc::SYS_linkat => [None, at(third, fourth, Act::Make)],
        libc::SYS_symlinkat => [at(second, third, Act::Make), None],
        libc::SYS_truncate => [at(here, first, Act::Change), None],
        libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_readlinkat => {
            [at(first, second, Act::Ask), None]
        }
        libc::SYS_execve | libc::SYS_chdir => [at(here, first, Act::Read), None],
        libc::SYS_execveat => [at(first, second, Act::Read), None],
        number => old(number, [first, second, third, fourth], at),
    }
}

/// The same of calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
fn old(
    number: i64,
    [first, second, third, fourth]: [u64; 4],
    at: impl Fn(u64, u64, Act) -> Option<Named>,
) -> [Option<Named>; 2] {
    let here = i64::from(libc::AT_FDCWD).cast_unsigned();
    match number {
        libc::SYS_open => [at(here, first, opening(second)), None],
        libc::SYS_creat | libc::SYS_chmod => [at(here, first, Act::Change), None],
        libc::SYS_mkdir => [at(here, first, Act::Make), None],
        libc::SYS_rmdir | libc::SYS_unlink => [at(here, first, Act::Remove), None],
        libc::SYS_rename => [at(here, first, Act::Remove), at(here, second, Act::Replace)],
        libc::SYS_renameat => [at(first, second, Act::Remove), at(third, fourth, Act::Replace)],
        libc::SYS_link | libc::SYS_symlink => [None, at(here, second, Act::Make)],
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_access | libc::SYS_readlink => [at(here, first, Act::Ask), None],
        _ => [None, None],
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn old(_: i64, _: [u64; 4], _: impl Fn(u64, u64, Act) -> Option<Named>) -> [Option<Named>; 2] {
    [None, None]
}

/// What opening with these flags does.
fn opening(flags: u64) -> Act {
    let has = |flag: libc::c_int| flags & u64::from(flag.cast_unsigned()) != 0;
    if has(libc::O_PATH) {
        Act::Ask
    } else if has(libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) {
        Act::Change
    } else {
        Act::Read
    }
}

/// The path at an address, absolute, links not followed.
fn path(call: &Call, folder: u64, address: u64) -> Option<(Pid, PathBuf)> {
    let process = call.process?;
    let mut bytes = [0; LONGEST];
    let read = notify::read_memory(process, address, &mut bytes).ok()?;
    let text = bytes.get(..read)?.split(|byte| *byte == 0).next().filter(|text| text.len() < read)?;
    let path = Path::new(OsStr::from_bytes(text));
    let number = process.as_raw_nonzero();
    let from = if path.is_absolute() {
        PathBuf::new()
    } else if text.is_empty() {
        return None;
    } else {
        // A descriptor is a number of 32 bits, whatever stands above them.
        let link = match folder as i32 {
            libc::AT_FDCWD => format!("/proc/{number}/cwd"),
            descriptor => format!("/proc/{number}/fd/{descriptor}"),
        };
        fs::read_link(link).ok()?
    };
    let mut whole = PathBuf::from("/");
    for part in from.join(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::Normal(name) => whole.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some((process, whole))
}

/// What the confinement says of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Masked,
    Read,
    Write,
}

/// What a confinement gives where.
struct Given {
    places: BTreeMap<PathBuf, Right>,
    /// The home, and what is in its place.
    home: Option<(PathBuf, PathBuf)>,
    open: bool,
}

/// Where every sandbox may write, or nobody tries to.
const OWN: [&str; 4] = ["/tmp", "/dev", "/proc", "/var/tmp"];

impl Given {
    fn of(confinement: &Confinement) -> Self {
        let lists = [
            (&confinement.writable, Right::Write),
            (&confinement.readable, Right::Read),
            (&confinement.read_only, Right::Read),
            (&confinement.masked, Right::Masked),
        ];
        let mut places = BTreeMap::new();
        for (paths, right) in lists {
            for path in paths {
                // Without a last `/`, as the paths that are looked up.
                let path: PathBuf = path.as_path().components().collect();
                // A grant to read does not narrow one to write.
                let readable = std::ptr::eq(paths, &raw const confinement.readable);
                places
                    .entry(path)
                    .and_modify(|had: &mut Right| {
                        if !readable {
                            *had = right.min(*had)
                        }
                    })
                    .or_insert(right);
            }
        }
        for layered in &confinement.layered {
            places.entry(layered.path.as_path().components().collect()).or_insert(Right::Write);
        }
        let plain = |path: &HostPath| path.as_path().components().collect();
        let home = confinement.home.as_ref().map(|home| (plain(&home.target), plain(&home.source)));
        Self { places, home, open: confinement.reading == Reading::Open }
    }

    /// What a path in the home leads to.
    fn at_home(&self, path: &Path) -> Option<PathBuf> {
        let (home, own) = self.home.as_ref()?;
        path.strip_prefix(home).ok().map(|rest| own.join(rest))
    }

    /// Whether a path is refused.
    fn refuses(&self, named: &Named) -> Option<Refused> {
        let right = named.path.ancestors().find_map(|path| self.places.get(path));
        let told = |by_name| Refused { path: named.path.clone(), change: named.changes(), named: by_name };
        match right {
            Some(Right::Masked) => Some(told(true)),
            Some(Right::Read) if named.changes() => Some(told(true)),
            Some(Right::Read | Right::Write) => None,
            None if OWN.iter().any(|own| named.path.starts_with(own)) => None,
            None if named.changes() && self.at_home(&named.path).is_some() => None,
            None if self.at_home(&named.path).is_some_and(|own| own.symlink_metadata().is_ok()) => None,
            None if named.changes() => read_only(named).then(|| told(false)),
            // What is not there is not refused.
            None => (!self.open && named.path.symlink_metadata().is_ok()).then(|| told(false)),
        }
    }
}

/// Whether the place is read-only to the process: a link may have led elsewhere.
fn read_only(named: &Named) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(root) = open(format!("/proc/{}/root", named.process.as_raw_nonzero()), flags, Mode::empty()) else {
        return false;
    };
    let there = named.path.ancestors().find_map(|path| {
        let below = path.strip_prefix("/").ok().filter(|below| !below.as_os_str().is_empty()).unwrap_or(Path::new("."));
        openat2(&root, below, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()
    });
    there.and_then(|there| fstatvfs(there).ok()).is_some_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}
