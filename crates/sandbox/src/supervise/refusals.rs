//! What a command was refused of files, told in words that name them.
//!
//! Owns the watching: the kernel hands calls that name files over, their paths are compared with the confinement, and every call goes on to
//! the kernel, which alone refuses. Refuses nothing itself, so a path that changes meanwhile gains nothing. Invariant: what is told is a
//! path that the confinement does not give; a change that cannot be read is told as one, and nothing else that cannot.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, open, openat2};
use rustix::io::Errno;

use super::connected::Sockets;
use super::landing::{Landing, folded, landing};
use super::named::{Named, named};
use super::noted::{Act, Noted, Notes};
use crate::calls::CONNECTING;
use crate::confinement::{Confinement, Reading};
use crate::host_path::HostPath;
use crate::sys::notify;

/// Most paths that are told of one run.
const MOST: usize = 64;

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
pub struct Observer(Arc<dyn Fn(Told<'_>) + Send + Sync>);

/// What an observer is told.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// A name is changed, whose path has no links.
    Changed(&'a Path, Act),
    /// A folder, with all that is in it, gets this name.
    Moved(&'a Path),
    /// Something is changed, and nobody can tell what.
    Unclear,
}

impl Observer {
    /// Has it told.
    pub fn new(told: impl Fn(Told<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Observer")
    }
}

/// What is looked at.
pub struct Seeing {
    /// What the command may reach, where it is told what it was refused.
    pub given: Option<Given>,
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
    pub fn begin(listener: OwnedFd, seeing: Seeing) -> io::Result<Self> {
        let notes = seeing.noting.then(Notes::default);
        let (given, observer, mut sockets) = (seeing.given, seeing.observer, seeing.sockets);
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

/// Lets every call go on, whatever it names, until nobody is left who makes one; then `over` is called.
pub fn let_go_on(
    listener: OwnedFd,
    observer: Option<Observer>,
    over: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let all = move || {
        let seen = watch(&listener, None, None, None, observer.as_ref(), None);
        over();
        seen
    };
    thread(all).map(drop)
}

/// Whether nobody is left who makes calls that are handed over.
pub fn is_over(listener: &OwnedFd) -> bool {
    let mut source = [PollFd::new(listener, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut source, Some(&now)), Ok(1)) && source.iter().all(|source| source.revents() == PollFlags::HUP)
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
            watched.take_all(named(&call));
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
    fn take_all(&mut self, named: [Option<Result<Named, Act>>; 2]) {
        let [first, second] = named.map(|named| self.take(named?));
        // What is renamed, or changes its name with another.
        let (Some(Landing::At { path: from, folder: is_folder }), Some(Landing::At { path: to, folder: was_folder })) =
            (first, second)
        else {
            return;
        };
        for (path, _) in [(to, is_folder), (from, was_folder)].iter().filter(|(_, folder)| *folder) {
            self.tell(Told::Moved(path));
        }
    }

    fn tell(&self, told: Told<'_>) {
        if let Some(observer) = self.observer {
            (observer.0)(told);
        }
    }

    /// Gives where a change lands that is not refused.
    fn take(&mut self, named: Result<Named, Act>) -> Option<Landing> {
        let mut named = match named {
            Ok(named) => named,
            Err(act) => {
                if act.changes() {
                    self.tell(Told::Unclear);
                }
                return None;
            }
        };
        let landing = named.act.changes().then(|| {
            let follows = matches!(named.act, Act::Change | Act::Link);
            landing(named.process, &named.path, follows)
        });
        let spelled = folded(&named.path);
        named.path = match &landing {
            Some(Landing::At { path, .. }) => path.clone(),
            Some(Landing::Nowhere | Landing::Unclear) | None => spelled.clone(),
        };
        self.take_at(&named, &spelled, landing.as_ref()).then_some(landing).flatten()
    }

    /// Gives whether it is not refused.
    fn take_at(&mut self, named: &Named, spelled: &Path, landing: Option<&Landing>) -> bool {
        if let Some(refused) = self.given.and_then(|given| given.refuses(named)) {
            // Who only asks is answered, if with what stands in its place.
            if !matches!(named.act, Act::Ask | Act::Link)
                && self.refused.len() < MOST
                && !self.refused.contains(&refused)
            {
                self.refused.push(refused);
            }
            if landing == Some(&Landing::Unclear) {
                // It may be about another path than was looked up.
                self.tell(Told::Unclear);
            }
            return false;
        }
        match landing {
            Some(Landing::At { path, .. }) => self.tell(Told::Changed(path, named.act)),
            Some(Landing::Unclear) => self.tell(Told::Unclear),
            Some(Landing::Nowhere) | None => {}
        }
        if let Some(notes) = self.notes.as_mut().filter(|_| !OWN.iter().any(|own| spelled.starts_with(own))) {
            notes.take(spelled, named.act);
        }
        true
    }

    fn seen(self) -> Seen {
        Seen { refused: self.refused, noted: self.notes.map(Notes::end) }
    }
}

/// What the confinement says of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Masked,
    Read,
    Write,
}

/// What a confinement gives where.
pub struct Given {
    /// By the bytes of their paths: compared part by part they take ten times as long.
    places: BTreeMap<OsString, Right>,
    /// Folders whose changes go elsewhere.
    layers: Vec<PathBuf>,
    /// Folders in which nothing else can be made.
    hollow: Vec<PathBuf>,
    /// The home, and what is in its place.
    home: Option<(PathBuf, PathBuf)>,
    open: bool,
}

/// Where every sandbox may write, or nobody tries to.
const OWN: [&str; 4] = ["/tmp", "/dev", "/proc", "/var/tmp"];

impl Given {
    /// What it gives.
    pub fn of(confinement: &Confinement) -> Self {
        let lists = [
            (&confinement.writable, Right::Write),
            (&confinement.readable, Right::Read),
            (&confinement.read_only, Right::Read),
            (&confinement.masked, Right::Masked),
        ];
        let mut places = BTreeMap::new();
        // Without a last `/`, as the paths that are looked up.
        let plain = |path: &HostPath| -> PathBuf { path.as_path().components().collect() };
        for (paths, right) in lists {
            for path in paths {
                // A grant to read does not narrow one to write.
                let readable = std::ptr::eq(paths, &raw const confinement.readable);
                places
                    .entry(plain(path).into_os_string())
                    .and_modify(|had: &mut Right| {
                        if !readable {
                            *had = right.min(*had)
                        }
                    })
                    .or_insert(right);
            }
        }
        let layers: Vec<PathBuf> = confinement.layered.iter().map(|layered| plain(&layered.path)).collect();
        for layer in &layers {
            places.entry(layer.clone().into_os_string()).or_insert(Right::Write);
        }
        let home = confinement.home.as_ref().map(|home| (plain(&home.target), plain(&home.source)));
        let hollow = confinement.hollow.iter().map(plain).collect();
        Self { places, layers, hollow, home, open: confinement.reading == Reading::Open }
    }

    /// What is said of a path itself.
    fn right(&self, path: &Path) -> Option<Right> {
        let right = *self.places.get(path.as_os_str())?;
        // What would be made in a layer is made there.
        let layered = right != Right::Write && self.layers.iter().any(|layer| path.starts_with(layer));
        (!layered || path.symlink_metadata().is_ok()).then_some(right)
    }

    /// What a path in the home leads to.
    fn at_home(&self, path: &Path) -> Option<PathBuf> {
        let (home, own) = self.home.as_ref()?;
        path.strip_prefix(home).ok().map(|rest| own.join(rest))
    }

    /// Whether a path is refused.
    fn refuses(&self, named: &Named) -> Option<Refused> {
        let right = named.path.ancestors().find_map(|path| self.right(path));
        let told = |by_name| Refused { path: named.path.clone(), change: named.act.changes(), named: by_name };
        match right {
            Some(Right::Masked) => Some(told(true)),
            Some(Right::Read) if named.act.changes() => Some(told(true)),
            Some(Right::Read | Right::Write) => None,
            None if OWN.iter().any(|own| named.path.starts_with(own)) => None,
            None if named.act.changes() && self.hollow.iter().any(|folder| named.path.starts_with(folder)) => {
                read_only(named).then(|| told(false))
            }
            None if named.act.changes() && self.at_home(&named.path).is_some() => None,
            None if self.at_home(&named.path).is_some_and(|own| own.symlink_metadata().is_ok()) => None,
            None if named.act.changes() => read_only(named).then(|| told(false)),
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
