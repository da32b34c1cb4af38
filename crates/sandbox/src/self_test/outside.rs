//! What is there to be reached outside.
//!
//! Owns listeners, shared memory, queues and a process that waits. Refuses to leave any of it behind. Its invariant: what is reached is this
//! test's own, so an attack that succeeds harms nobody.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr as InternetAddress, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};

use super::ground::Ground;
use crate::attack::{INSIDE, More, Suite, World};
use crate::confinement::Confinement;
use crate::host_path::HostPath;
use crate::plan::CHANGES;
use crate::supervise;
use crate::sys::attempt::{self, shared};
use crate::sys::process::{Child, Forked, clone, exit};

/// Shared memory and queues of self-tests: a `W`, and the number of the process in the 22 bits that such a number has at most.
const KEY: i32 = 0x5700_0000;
const KEYS: i32 = 0x003f_ffff;
/// How much of a plan is attacked.
const QUICK: usize = 8;
const WHOLE: usize = 200;

/// All of it.
pub struct Outside {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    name: String,
    _abstract_socket: UnixListener,
    memory: (i32, i32),
    secret: OwnedFd,
    marker: Box<u8>,
    more: Option<Beside>,
    victim: Victim,
}

impl Outside {
    pub fn new(suite: Suite) -> io::Result<Self> {
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        let name = format!("writ-self-test-{}-{}", std::process::id(), tcp.local_addr()?.port());
        let address = SocketAddr::from_abstract_name(&name)?;
        let secret = File::open("/proc/self/status")?;
        // This one is left open for programs that are started, on purpose.
        let secret = rustix::io::dup(&secret)?;
        sweep();
        let memory = (key(), attempt::make_shared_memory(key())?);
        let socket = UnixListener::bind_addr(&address)?;
        let marker = Box::new(0);
        Ok(Self {
            tcp6: TcpListener::bind(("::1", 0)).ok(),
            more: (suite == Suite::Whole).then(|| Beside::new(&name)).transpose()?,
            tcp,
            name,
            _abstract_socket: socket,
            memory,
            secret,
            marker,
            // It begins as a copy of this one, so that what is told of this one is true of it.
            victim: Victim::new()?,
        })
    }

    pub fn world(&self, confinement: &Confinement, ground: &Ground, inside: bool) -> io::Result<World> {
        let most = if self.more.is_some() { WHOLE } else { QUICK };
        let there = |paths: &[HostPath]| {
            let there = paths.iter().filter(|path| path.as_path().symlink_metadata().is_ok());
            there.take(most).cloned().collect()
        };
        let port = |socket: Option<io::Result<InternetAddress>>| socket.and_then(Result::ok).map_or(0, |at| at.port());
        Ok(World {
            folder: ground.folder.clone(),
            process: self.victim.0.pid.as_raw_nonzero().get(),
            address: std::ptr::from_ref(self.marker.as_ref()).addr(),
            temporary: ground.file.clone(),
            tcp: self.tcp.local_addr()?.port(),
            tcp6: port(self.tcp6.as_ref().map(TcpListener::local_addr)),
            abstract_socket: self.name.clone(),
            shared_memory: self.memory.0,
            descriptor: self.secret.as_raw_fd(),
            masked: there(&hidden(confinement)),
            read_only: if self.more.is_some() {
                confinement.read_only.iter().take(most).cloned().collect()
            } else {
                there(&confinement.read_only)
            },
            inside,
            more: self.more.as_ref().map(|more| more.told(confinement, ground)).transpose()?,
        })
    }

    /// What arrived or was made outside.
    pub fn seen(&self, inside: bool, ground: &Ground) -> io::Result<BTreeSet<&'static str>> {
        let Some(more) = &self.more else { return Ok(BTreeSet::new()) };
        let mut seen = more.arrived(inside)?;
        let at = |name: &str| ground.path.join(name);
        if at("open/free/late").exists() {
            seen.insert("L01");
        }
        if fs::read(at("layered/file")).is_ok_and(|text| text == b"changed\n") {
            seen.insert("P22");
        }
        let attributed = |folder: PathBuf| {
            let mut value = [0u8; 64];
            rustix::fs::getxattr(folder, "user.overlay.redirect", &mut value).is_ok()
        };
        if attributed(at("layered/folder")) || attributed(at("layer").join(CHANGES).join("folder")) {
            seen.insert("P23");
        }
        Ok(seen)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        attempt::remove_shared_memory(self.memory.1);
    }
}

/// A process of the same user.
struct Victim(Child);

impl Victim {
    fn new() -> io::Result<Self> {
        let this = rustix::process::getpid();
        match clone(0)? {
            Forked::Parent(child) => Ok(Self(child)),
            Forked::Child => {
                let tied = set_parent_process_death_signal(Some(Signal::KILL));
                while tied.is_ok() && rustix::process::getppid() == Some(this) {
                    std::thread::sleep(Duration::from_secs(1));
                }
                exit(0)
            }
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        rustix::process::pidfd_send_signal(&self.0.handle, Signal::KILL).unwrap_or_default();
        waitpid(Some(self.0.pid), WaitOptions::empty()).ok();
    }
}

/// What the whole list needs beside.
struct Beside {
    other: Option<TcpListener>,
    udp: UdpSocket,
    udp6: Option<UdpSocket>,
    queues: (i32, (i32, i32)),
    queue: CString,
    _queue: OwnedFd,
    shared_file: PathBuf,
    arrived: std::cell::RefCell<Vec<Vec<u8>>>,
}

impl Beside {
    fn new(name: &str) -> io::Result<Self> {
        let udp = UdpSocket::bind(("127.0.0.1", 0))?;
        let udp6 = UdpSocket::bind(("::1", 0)).ok();
        for socket in [Some(&udp), udp6.as_ref()].into_iter().flatten() {
            socket.set_nonblocking(true)?;
        }
        let queues = (key(), shared::make(key())?);
        let queue = CString::new(format!("/{name}"))?;
        let shared_file = Path::new("/dev/shm").join(name);
        let beside = Self {
            other: other_address().and_then(|address| TcpListener::bind((address, 0)).ok()),
            udp,
            udp6,
            queues,
            _queue: shared::make_named(&queue)?,
            queue,
            shared_file,
            arrived: std::cell::RefCell::default(),
        };
        fs::write(&beside.shared_file, "secret\n")?;
        Ok(beside)
    }

    fn told(&self, confinement: &Confinement, ground: &Ground) -> io::Result<More> {
        let path = |path: PathBuf| HostPath::new(path).map_err(io::Error::other);
        let address = |socket: &UdpSocket| socket.local_addr().map_or(0, |address| address.port());
        let layered = ground.path.join("layered");
        let [a, b, c, d] = ground.sockets();
        Ok(More {
            supervisor: Pid::as_raw(Some(rustix::process::getpid())),
            other: self.other.as_ref().and_then(|listener| listener.local_addr().ok()),
            udp: address(&self.udp),
            udp6: self.udp6.as_ref().map_or(0, address),
            sockets: [path(a)?, path(b)?, path(c)?, path(d)?],
            queues: self.queues.0,
            queue: self.queue.to_string_lossy().into_owned(),
            shared_file: path(self.shared_file.clone())?,
            variables: supervise::dropped(&confinement.environment),
            layered: (!confinement.layered.is_empty()).then(|| path(layered)).transpose()?,
            limits: confinement.limits.clone(),
            temporary: confinement.temporary,
        })
    }

    /// Messages that came, by what they end in.
    fn arrived(&self, inside: bool) -> io::Result<BTreeSet<&'static str>> {
        let mut all = self.arrived.borrow_mut();
        let mut bytes = [0u8; 2048];
        for socket in [Some(&self.udp), self.udp6.as_ref()].into_iter().flatten() {
            loop {
                match socket.recv(&mut bytes) {
                    Ok(length) => all.push(bytes.get(..length).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        let of_side = all.iter().filter(|text| text.ends_with(INSIDE) == inside);
        let ids = ["N05", "N06", "N08", "N21"];
        let id = |text: &Vec<u8>| ids.into_iter().find(|id| text.windows(id.len()).any(|part| part == id.as_bytes()));
        Ok(of_side.filter_map(id).collect())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        shared::remove(self.queues.1);
        shared::remove_named(&self.queue);
        fs::remove_file(&self.shared_file).unwrap_or_default();
    }
}

/// This process's. It makes one test at a time.
fn key() -> i32 {
    KEY | (i32::try_from(std::process::id()).unwrap_or_default() & KEYS)
}

/// Removes one by its number.
type Removal = fn(i32);

/// Removes what tests that were killed have left: no process holds it, so it would stay until the machine starts again.
fn sweep() {
    let kinds: [(&str, Removal); 3] =
        [("shm", attempt::remove_shared_memory), ("msg", shared::remove_queue), ("sem", shared::remove_semaphores)];
    for (kind, remove) in kinds {
        let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        let entry = |line: &str| {
            let mut fields = line.split_whitespace().map(str::parse::<i32>);
            Some((fields.next()?.ok()?, fields.next()?.ok()?))
        };
        for (key, number) in table.lines().filter_map(entry).filter(|(key, _)| key & !KEYS == KEY) {
            // This process has not made any yet: one of the same number did.
            if key == self::key() || !Path::new("/proc").join((key & KEYS).to_string()).exists() {
                remove(number);
            }
        }
    }
    // A name here is as good as another's, so only ours are looked at.
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| Some(name.strip_prefix("writ-self-test-")?.split_once('-')?.0.to_owned()));
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            fs::remove_file(entry.path()).unwrap_or_default();
        }
    }
}

/// An address of the host by which others reach it. Nothing is sent to find out.
fn other_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(("192.0.2.1", 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

/// What is masked. A folder that something is granted in shows that much: of it, what lies beside the grants.
fn hidden(confinement: &Confinement) -> Vec<HostPath> {
    let granted = || confinement.readable.iter().chain(&confinement.writable).map(HostPath::as_path);
    let holds = |folder: &Path| granted().any(|grant| grant.starts_with(folder));
    let beside = |folder: &HostPath| -> Vec<HostPath> {
        if !granted().any(|grant| grant != folder.as_path() && grant.starts_with(folder.as_path())) {
            return vec![folder.clone()];
        }
        let entries = fs::read_dir(folder.as_path()).into_iter().flatten().flatten();
        let others = entries.map(|entry| entry.path()).filter(|path| !holds(path));
        others.take(2).filter_map(|path| HostPath::new(path).ok()).collect()
    };
    confinement.masked.iter().flat_map(beside).collect()
}
