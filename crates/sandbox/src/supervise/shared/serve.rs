//! Lending, until nobody needs it any more.
//!
//! Owns the end of shared namespaces: when they are given up, when those who asked are gone, when nothing has happened for long. Refuses
//! whoever is inside. Its invariant: while a run has them they do not end, but with their holder.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use super::lease::Asked;
use super::{Book, Shared, is_shared_with, kill, lease, packet};

/// How often it is seen whether anything is still running.
const LOOK: Duration = Duration::from_secs(5);
/// How long folders that keep a name, and those of layers, stay for the next run.
const REST: Duration = Duration::from_secs(30);
/// Processes that are no client of anybody: the first of a system, and what stands in for it.
const NOBODY: i32 = 1;

/// What threads that lend have in common.
struct Counter {
    /// Asked for and not given back.
    lent: AtomicUsize,
    /// Whether nobody gets them any more.
    retired: AtomicBool,
    /// Told when something has changed.
    changed: OwnedFd,
    /// Those whose shells asked.
    clients: Mutex<Vec<(Pid, Arc<OwnedFd>)>>,
}

impl Shared {
    /// Lends them at `listener`. Comes back when they are of no use any more; then they are to be dropped. `gone` is called before, as soon
    /// as nobody else is to find the socket.
    pub fn serve(
        self: &Arc<Self>,
        listener: &OwnedFd,
        book: Arc<dyn Book + Send>,
        idle: Duration,
        gone: impl Fn(),
    ) -> io::Result<()> {
        let counter = Arc::new(Counter {
            lent: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            changed: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            clients: Mutex::default(),
        });
        let mut last = Instant::now();
        loop {
            let [asked, ended] = self.wait(listener, &counter)?;
            if ended {
                return Ok(());
            }
            if asked && let Ok(socket) = accept_with(listener, SocketFlags::CLOEXEC) {
                counter.lent.fetch_add(1, Ordering::SeqCst);
                let (shared, book, counter) = (Arc::clone(self), Arc::clone(&book), Arc::clone(&counter));
                let answer = move || {
                    // Who asked sees by the closing of the socket that it came to nothing.
                    drop(shared.answer(&socket, &*book, &counter));
                    drop(socket);
                    // Before it counts as given back: whoever has it last gives the names back, and has to be waited for.
                    drop(shared);
                    counter.given_back();
                };
                thread::Builder::new().name("lend".to_owned()).spawn(answer)?;
                last = Instant::now();
            }
            if !asked {
                self.kept.look();
                if counter.lent.load(Ordering::SeqCst) == 0 && last.elapsed() > REST {
                    self.rest();
                }
            }
            let left = counter.clients_left();
            let retired = counter.retired.load(Ordering::SeqCst);
            if retired || !left {
                gone();
            }
            if counter.lent.load(Ordering::SeqCst) > 0 {
                last = Instant::now();
            } else if retired || !left || (last.elapsed() > idle && kill::members(&self.processes)? <= 1) {
                gone();
                return Ok(());
            }
        }
    }

    fn wait(&self, listener: &OwnedFd, counter: &Counter) -> io::Result<[bool; 2]> {
        let clients: Vec<Arc<OwnedFd>> = counter.clients().iter().map(|(_, handle)| Arc::clone(handle)).collect();
        let first = [listener.as_fd(), self.holder.handle().as_fd(), counter.changed.as_fd()];
        let all = first.into_iter().chain(clients.iter().map(|handle| handle.as_fd()));
        let mut sources: Vec<PollFd<'_>> = all.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect();
        match poll(&mut sources, Timespec::try_from(LOOK).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |place: usize| sources.get(place).is_some_and(|source| !source.revents().is_empty());
        let [asked, ended, changed] = [0, 1, 2].map(happened);
        if changed {
            // That it was read is all that matters.
            rustix::io::read(&counter.changed, &mut [0u8; 8]).unwrap_or_default();
        }
        Ok([asked, ended])
    }

    fn answer(&self, socket: &OwnedFd, book: &dyn Book, counter: &Counter) -> io::Result<()> {
        let peer = socket_peercred(socket)?;
        if peer.uid != geteuid() || !is_shared_with(peer.pid, "pid") {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "asked for by somebody else"));
        }
        let (said, _) = packet::receive(socket)?;
        if said == lease::RETIRE.as_bytes() {
            counter.retired.store(true, Ordering::SeqCst);
            return packet::send(socket, b"retired", &[]);
        }
        if counter.retired.load(Ordering::SeqCst) {
            return Err(io::Error::other("lent to nobody any more"));
        }
        counter.client_of(peer.pid);
        let mut asked = Asked::of(&said)?;
        if !is_shared_with(peer.pid, "mnt") {
            // What is mounted there may be another folder, so whoever asks makes its mounts itself.
            asked.here = false;
        }
        let ended = self.lend(socket, &asked, book);
        if ended.is_ok() && asked.here && !counter.retired.load(Ordering::SeqCst) {
            self.maker.provide(&asked.layered);
        }
        ended
    }
}

impl Counter {
    fn given_back(&self) {
        self.lent.fetch_sub(1, Ordering::SeqCst);
        rustix::io::write(&self.changed, &1u64.to_ne_bytes()).unwrap_or_default();
    }

    fn clients(&self) -> MutexGuard<'_, Vec<(Pid, Arc<OwnedFd>)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whose shell started the process that asked.
    fn client_of(&self, asked: Pid) {
        let client = kill::parent(asked).and_then(kill::parent);
        let Some(client) = client.filter(|client| client.as_raw_nonzero().get() != NOBODY) else { return };
        let mut clients = self.clients();
        if !clients.iter().any(|(known, _)| *known == client)
            && let Ok(handle) = pidfd_open(client, PidfdFlags::empty())
        {
            clients.push((client, Arc::new(handle)));
        }
    }

    /// Whether one of the clients is alive, as far as they are known.
    fn clients_left(&self) -> bool {
        let mut clients = self.clients();
        let known = !clients.is_empty();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        clients.retain(|(_, handle)| {
            let mut source = [PollFd::from_borrowed_fd(handle.as_fd(), PollFlags::IN)];
            !matches!(poll(&mut source, Some(&now)), Ok(1))
        });
        if known && clients.is_empty() {
            // They were there, and are not to be forgotten: nobody is left.
            self.retired.store(true, Ordering::SeqCst);
        }
        !known || !clients.is_empty()
    }
}
