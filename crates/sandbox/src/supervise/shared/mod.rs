//! Namespaces that several runs share: users, processes, a network.
//!
//! Owns them, and the process that holds them ([`crate::inside::hold`]). Refuses to lend them to another user, and to anybody inside them.
//! Its invariant: with this value everything in them ends. What runs have in common there is their user, so what keeps them apart is that
//! each is in a Landlock domain of its own: none can look into another, nor into what builds the next. They can signal each other.

mod kept;
mod kill;
mod lease;
mod packet;
mod serve;
mod spare;
mod whose;

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use super::hear::Hearing;
use super::{Guard, Host, Listeners, Mounts, Observer, RunError, Sandbox, identity, outside, prepare, refusals};
use crate::confinement::{Confinement, Network, Session, Survivors};
use crate::features::{Layer, Level};
use crate::inside::{self, Base, Join};
use crate::message::{self, Failure, Message};
use crate::sys::process::{Forked, clone};
use kept::Kept;
pub use kill::all_mounts;
pub use kill::{number, processes};
use lease::Asked;
pub use lease::{Awaited, Joined, Lease, Overlays, listen};
use spare::{Maker, Spare};

/// Who runs in them, as whoever lends them writes it down.
pub trait Book: Sync {
    /// A run begins, before its command: its name, and the number of its mounts, which all its processes have.
    fn began(&self, name: &str, mounts: u64);
    /// It has ended, `well` if its supervisor said so. What is given is told to that, and is not empty.
    fn ended(&self, name: &str, mounts: u64, well: bool) -> Vec<u8>;
    /// Who is told of what a run's processes change that it leaves running.
    fn observer(&self) -> Option<Observer>;
}

/// Namespaces that runs share, and who holds them.
pub struct Shared {
    holder: Sandbox,
    /// Closed, it ends the holder as well.
    _socket: OwnedFd,
    user: File,
    network: Option<File>,
    processes: File,
    owners: Option<File>,
    kept: Arc<Kept>,
    maker: Maker,
}

impl Shared {
    /// Makes them, for runs of the same user and network as this one. The caller's thread has to live as long as they do. What comes beside
    /// are the sockets that listen in them.
    pub fn begin(confinement: &Confinement, host: Host<'_>) -> Result<(Self, Listeners), RunError> {
        if let Some(missing) = host.features.missing(Level::Namespaces).first() {
            return Err(RunError::Layer(*missing));
        }
        let who = identity::of(confinement, host.features)?;
        let own = prepare::namespaces(confinement) & (libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNET);
        let base = Base { become_user: who.other.then_some((who.uid, who.gid)), network: confinement.network.clone() };
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(outside("make a socket"))?;
        let holder = match clone(own).map_err(outside("start a process in namespaces of its own"))? {
            Forked::Child => {
                drop(ours);
                inside::hold(&base, &theirs)
            }
            Forked::Parent(child) => Sandbox::new(child),
        };
        drop(theirs);
        identity::map(holder.pid(), &who)?;
        message::send(&ours, Message::Mapped, &[]).map_err(outside("begin"))?;
        let explain = |failure: Failure| RunError::Inside {
            step: failure.step,
            error: io::Error::from_raw_os_error(failure.error),
            about: None,
        };
        let listeners = Hearing::new(&ours, &explain).ready(&confinement.network)?;
        let open = |name: &str| {
            File::open(format!("/proc/{}/ns/{name}", holder.pid().as_raw_nonzero()))
                .map_err(|error| RunError::Outside("open a namespace", error))
        };
        let network = if confinement.network == Network::Open { None } else { Some(open("net")?) };
        let (user, processes) = (open("user")?, open("pid")?);
        message::send(&ours, Message::Go, &[]).map_err(outside("begin"))?;
        let owners: Option<File> = if who.mapped { Some(identity::owners()?.into()) } else { None };
        let kept = Arc::new(Kept::new(host.state.to_owned()));
        let again = |namespace: &File| namespace.try_clone().map(OwnedFd::from);
        let both = again(&user).and_then(|user| Ok((user, owners.as_ref().map(again).transpose()?)));
        let (users, owned) = both.map_err(|error| RunError::Outside("keep a namespace", error))?;
        let maker = Maker::new(users, owned, who);
        Ok((Self { holder, _socket: ours, user, network, processes, owners, kept, maker }, listeners))
    }

    /// Gives back what runs would only make again.
    fn rest(&self) {
        self.kept.rest();
        self.maker.rest();
    }

    /// The mounts of whoever has this socket in their network; `None` where nobody is found to have it.
    pub fn mounts_of(&self, socket: SocketAddr, stream: bool) -> Option<u64> {
        whose::mounts(self.holder.pid(), self.network.as_ref()?, socket, stream)
    }

    /// Lends them to one who asked, until their run has ended. Processes of a run that is not said to have ended well end.
    fn lend(&self, socket: &OwnedFd, asked: &Asked, book: &dyn Book) -> io::Result<()> {
        let name = &asked.run;
        let spare = self.send(socket, asked)?;
        let mut protected = Vec::new();
        let descriptors = loop {
            let (said, descriptors) = packet::receive(socket)?;
            if said == lease::BEGAN {
                break descriptors;
            }
            match said.split_first() {
                Some((&lease::TREE, words)) => self.maker.want(words.to_vec()),
                _ => protected.extend(lease::protected_of(&said)),
            }
        };
        let mut descriptors = descriptors.into_iter().map(File::from);
        // While it is open, no other mounts get the same number.
        let mounts = descriptors.next().ok_or_else(|| io::Error::other("no mounts"))?;
        let number = mounts.metadata()?.ino();
        if let Some(names) = descriptors.next() {
            self.kept.take(&mounts, names)?;
        }
        book.began(name, number);
        let guarded = Mounts { user: Some(self.user.try_clone()?.into()), mounts: mounts.try_clone()?.into() };
        let guard = Guard::begin(guarded, protected)?;
        let ended = packet::send(socket, b"known", &[]).and_then(|()| {
            if let Some(spare) = spare {
                spare.lent(number);
            }
            packet::receive(socket)
        });
        let left = match ended {
            Ok((word, watched)) if word == lease::WELL => self.left(number, watched, book, guard),
            Ok(_) | Err(_) => None,
        };
        if left.is_none() && kill::all_of(number, self.holder.pid()).is_err() {
            // What cannot be ended alone ends with everything else.
            self.holder.kill();
        }
        let told = packet::send(socket, &book.ended(name, number, left.is_some()), &[]);
        drop(mounts);
        match left {
            None | Some(Left::Nobody) => self.kept.give_back(number),
            Some(Left::Somebody) => {}
            Some(Left::Unknown) => self.kept.look(),
        }
        told
    }

    /// Hands over what is lent; what comes back is lent with it, once the run has begun.
    fn send(&self, socket: &OwnedFd, asked: &Asked) -> io::Result<Option<Spare>> {
        let all = [Some(&self.user), Some(&self.processes), self.network.as_ref(), self.owners.as_ref()];
        let lent = lease::KINDS.into_iter().zip(all).filter_map(|(kind, lent)| Some((kind, lent?.as_fd())));
        let (mut said, mut lent): (Vec<u8>, Vec<_>) = lent.unzip();
        let can_be_sent = lent.len() + asked.layered.len() < packet::DESCRIPTORS;
        // Where that fails, whoever asked makes them itself, and says what it could not do.
        let spare = if asked.here && can_be_sent { self.maker.take(&asked.layered).ok() } else { None };
        if let Some(spare) = &spare {
            let (work, overlays) = spare.overlays();
            let tree = spare.tree();
            said.extend(overlays.iter().map(|_| lease::OVERLAY));
            said.extend(tree.map(|_| lease::TREE));
            said.extend([b"\0", work.as_bytes(), b"\0"].concat());
            said.extend(tree.map(|(of, _)| of.hex()).unwrap_or_default().into_bytes());
            lent.extend(overlays);
            lent.extend(tree.map(|(_, tree)| tree));
        }
        packet::send(socket, &said, &lent)?;
        Ok(spare)
    }

    /// Who is left of a run that ended well; nobody can be told where their calls cannot be answered.
    fn left(&self, mounts: u64, mut watched: Vec<OwnedFd>, book: &dyn Book, guard: Guard) -> Option<Left> {
        let Some(listener) = watched.pop() else { return Some(Left::Unknown) };
        if refusals::is_over(&listener) {
            return Some(Left::Nobody);
        }
        let kept = Arc::clone(&self.kept);
        // Before anything else: what was left running waits for it.
        let over = move || {
            drop(guard);
            kept.give_back(mounts);
        };
        refusals::let_go_on(listener, book.observer(), over).ok()?;
        Some(Left::Somebody)
    }
}

/// Who is left of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    /// Who ends sometime, which is told.
    Somebody,
    /// Who has to be looked for.
    Unknown,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Then nothing has any mounts of theirs.
        self.holder.end();
        self.kept.finish();
    }
}

/// Whether a process is in the same namespace as this one. With `pid`, nobody is who is inside.
fn is_shared_with(pid: Pid, namespace: &str) -> bool {
    let own = fs::metadata(format!("/proc/self/ns/{namespace}")).map(|own| own.ino()).ok();
    own.is_some() && number(pid, namespace).ok() == own
}

impl Joined {
    /// Which of them a run enters, and which of `own` it makes for itself.
    pub(super) fn join(self, confinement: &Confinement, own: i32) -> Result<Join, RunError> {
        // Whoever has the caller's terminal has its process group, where processes outside are.
        let shares = confinement.survivors == Survivors::Stay && confinement.session == Session::Own;
        let network = match (&confinement.network, self.network) {
            (Network::Open, _) => None,
            (Network::Closed | Network::Proxied(_), Some(network)) => Some(network),
            (Network::Closed | Network::Proxied(_), None) => return Err(RunError::Layer(Layer::Networks)),
        };
        let entered = libc::CLONE_NEWUSER
            | if shares { libc::CLONE_NEWPID } else { 0 }
            | if network.is_some() { libc::CLONE_NEWNET } else { 0 };
        Ok(Join { user: self.user, network, processes: shares.then_some(self.processes), own: own & !entered })
    }
}
