//! Whether a confinement holds, tried before it is relied on.
//!
//! Owns a small world outside (a secret, a listener, shared memory), the same attacks on it from outside and from inside, and the
//! comparison. Refuses to call anything held that it could not do outside. Its invariant: the confinement that is tested is the one given,
//! with the world's own files granted, masked and kept beside its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::attack::{World, list};
use crate::confinement::{Confinement, Network, Reading, Session, Survivors};
use crate::features::Level;
use crate::host_path::HostPath;
use crate::supervise::{self, Command, End, Host, RunError};
use crate::sys::attempt;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelfTest {
    /// Which list of attacks.
    pub version: u32,
    /// By attack.
    pub results: BTreeMap<String, Result>,
}

impl SelfTest {
    /// What got out.
    pub fn escaped(&self) -> impl Iterator<Item = &str> {
        self.results.iter().filter(|(_, result)| **result == Result::Escaped).map(|(id, _)| id.as_str())
    }

    /// How many were held.
    pub fn held(&self) -> usize {
        self.results.values().filter(|result| **result == Result::Held).count()
    }
}

/// What came of one attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Result {
    /// It succeeded outside and not inside.
    Held,
    /// It succeeded inside.
    Escaped,
    /// It succeeded nowhere, so it says nothing.
    NotTestable,
    /// The confinement allows it.
    Granted,
}

/// Why no result came.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// The confinement could not be entered.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The world outside could not be made.
    #[error("could not prepare the self-test: {0}")]
    World(#[from] io::Error),
    /// The program that was started again did not attack to the end.
    #[error("the self-test {0} did not finish")]
    Unfinished(&'static str),
}

/// Raised with the list of attacks.
const VERSION: u32 = 1;

/// Shared memory of the self-test: `Writ` in letters, with room for a few at a time.
const KEY: i32 = 0x5772_0000;

/// Tests a confinement. `arguments` make this very program call [`crate::attack`] with what follows them.
pub fn self_test(
    confinement: &Confinement,
    arguments: &[OsString],
    host: Host<'_>,
) -> std::result::Result<SelfTest, SelfTestError> {
    let mounts = host.features.missing(Level::Namespaces).is_empty();
    let here = Outside::new()?;
    let control = Ground::new(None)?;
    let inside = Ground::new(supervise::owner(confinement, host.features)?)?;
    let outside = std::process::Command::new("/proc/self/exe")
        .args(arguments)
        .arg(text(&here.world(confinement, &control)?))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (read, write) = io::pipe()?;
    let command = Command {
        program: "self-test".into(),
        descriptor: Some(File::open("/proc/self/exe")?.into()),
        arguments: arguments.iter().cloned().chain([text(&here.world(confinement, &inside)?)]).collect(),
        output: Some(OwnedFd::from(write)),
        kept: None,
        watched: false,
        noted: false,
        environment: Vec::new(),
        shown: Vec::new(),
        shared: None,
    };
    let outcome = supervise::carry_out(&inside.confinement(confinement, mounts), command, host, |listeners| {
        // Sockets are given, so that what is done with them is attacked too.
        listeners.connected.iter().for_each(|connected| connected.received_by(|_asked| Ok(())));
        Ok(())
    })?;
    let attacked = done(read)?.filter(|_| outcome.end == End::Exited(0)).ok_or(SelfTestError::Unfinished("inside"))?;
    let possible = outside.wait_with_output()?;
    let possible = done(possible.stdout.as_slice())?.ok_or(SelfTestError::Unfinished("outside"))?;
    let result = |id: &str| match (attacked.get(id), possible.get(id)) {
        _ if granted(confinement, mounts, id, &inside.path) => Result::Granted,
        (Some(true), _) => Result::Escaped,
        (Some(false), Some(true)) => Result::Held,
        _ => Result::NotTestable,
    };
    let results = list().map(|(id, _)| (id.to_owned(), result(id))).collect();
    Ok(SelfTest { version: VERSION, results })
}

/// Whether an attack does what the confinement allows: the host's network, or what only mounts could hold where there are none.
fn granted(confinement: &Confinement, mounts: bool, id: &str, ground: &Path) -> bool {
    let apart = id.starts_with('D') || ["P01", "P02", "P03", "P06", "P09", "F11"].contains(&id);
    let outside = confinement.reading == Reading::Open && ["F01", "F03", "F04", "F07", "F09"].contains(&id);
    // Temporary files that lie elsewhere are files like others.
    let elsewhere = confinement.reading == Reading::Open && id == "F09" && !ground.starts_with("/tmp");
    elsewhere
        || (confinement.network == Network::Open && ["N01", "N02"].contains(&id))
        || (!mounts && (apart || outside))
}

/// Which attacks succeeded; `None` if the list was cut short.
fn done(mut output: impl Read) -> io::Result<Option<BTreeMap<String, bool>>> {
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    let complete = text.strip_suffix("end\n");
    Ok(complete.map(|lines| {
        let pairs = lines.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(id, result)| (id.to_owned(), result == "done")).collect()
    }))
}

fn text(world: &World) -> OsString {
    json::to_canonical(world).into()
}

/// What is there to be reached outside.
struct Outside {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    name: String,
    _abstract_socket: UnixListener,
    memory: (i32, i32),
    secret: OwnedFd,
    marker: Box<u8>,
}

impl Outside {
    fn new() -> io::Result<Self> {
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        let name = format!("writ-self-test-{}-{}", std::process::id(), tcp.local_addr()?.port());
        let address = SocketAddr::from_abstract_name(&name)?;
        let secret = File::open("/proc/self/status")?;
        // This one is left open for programs that are started, on purpose.
        let secret = rustix::io::dup(&secret)?;
        let made = (KEY..KEY + 64).find_map(|key| attempt::make_shared_memory(key).ok().map(|number| (key, number)));
        let memory = made.ok_or_else(|| io::Error::other("no shared memory"))?;
        let socket = UnixListener::bind_addr(&address)?;
        Ok(Self {
            tcp,
            tcp6: TcpListener::bind(("::1", 0)).ok(),
            name,
            _abstract_socket: socket,
            memory,
            secret,
            marker: Box::new(0),
        })
    }

    fn world(&self, confinement: &Confinement, ground: &Ground) -> io::Result<World> {
        let there = |paths: &[HostPath]| {
            let there = paths.iter().filter(|path| path.as_path().symlink_metadata().is_ok());
            there.take(8).cloned().collect()
        };
        Ok(World {
            folder: ground.folder.clone(),
            process: i32::try_from(std::process::id()).map_err(io::Error::other)?,
            address: std::ptr::from_ref(self.marker.as_ref()).addr(),
            temporary: ground.file.clone(),
            tcp: self.tcp.local_addr()?.port(),
            tcp6: self.tcp6.as_ref().and_then(|tcp| tcp.local_addr().ok()).map_or(0, |address| address.port()),
            abstract_socket: self.name.clone(),
            shared_memory: self.memory.0,
            descriptor: self.secret.as_raw_fd(),
            masked: there(&hidden(confinement)),
            read_only: there(&confinement.read_only),
        })
    }
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

impl Drop for Outside {
    fn drop(&mut self) {
        attempt::remove_shared_memory(self.memory.1);
    }
}

/// Files to attack.
struct Ground {
    path: PathBuf,
    folder: HostPath,
    /// Beside the folder, where nothing is granted.
    file: HostPath,
}

const NAME: &str = "writ-self-test-";

impl Ground {
    fn new(owner: Option<(u32, u32)>) -> io::Result<Self> {
        let temporary = std::env::temp_dir().canonicalize()?;
        let mut number = [0u8; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let path = temporary.join(format!("{NAME}{}-{:016x}", std::process::id(), u64::from_ne_bytes(number)));
        let folder = HostPath::try_from(path.as_path()).map_err(io::Error::other)?;
        DirBuilder::new().mode(0o755).create(&path)?;
        let mut file = path.clone().into_os_string();
        file.push("-file");
        let file = HostPath::new(file).map_err(io::Error::other)?;
        let ground = Self { path, folder, file };
        fs::write(ground.file.as_path(), "secret\n")?;
        for name in ["open", "open/denied", "open/kept"] {
            fs::create_dir(ground.path.join(name))?;
        }
        for name in ["outside", "open/denied/file", "open/kept/file"] {
            fs::write(ground.path.join(name), "secret\n")?;
            fs::set_permissions(ground.path.join(name), fs::Permissions::from_mode(0o666))?;
        }
        if let Some((uid, gid)) = owner {
            for name in ["", "open", "open/denied", "open/kept", "outside", "open/denied/file", "open/kept/file"] {
                chown(ground.path.join(name), Some(uid), Some(gid))?;
            }
        }
        Ok(ground)
    }

    /// The confinement that is tested, with these files in it.
    fn confinement(&self, given: &Confinement, mounts: bool) -> Confinement {
        let at = |name: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push("/");
            path.push(name);
            HostPath::new(path).unwrap_or_else(|_| self.folder.clone())
        };
        let mut confinement = given.clone();
        confinement.writable.push(at("open"));
        if mounts {
            confinement.readable.push(self.folder.clone());
            confinement.masked.extend([at("outside"), at("open/denied/file")]);
            confinement.read_only.extend([at("open/kept/"), at("open/none")]);
        }
        confinement.session = Session::Own;
        confinement.survivors = Survivors::End;
        confinement.limits.wall_time = Some(5_000);
        confinement
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // A process that was killed in the middle leaves its own; `sweep_grounds` finds it by its number.
        drop(fs::remove_dir_all(&self.path));
        drop(fs::remove_file(self.file.as_path()));
    }
}

/// Removes what self-tests that were killed have left.
pub fn sweep_grounds() -> io::Result<()> {
    for entry in fs::read_dir(std::env::temp_dir())? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME)?.split_once('-'))
            .map(|(number, _)| number.to_owned());
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // It may be somebody else's.
            drop(fs::remove_dir_all(entry.path()));
            drop(fs::remove_file(entry.path()));
        }
    }
    Ok(())
}
