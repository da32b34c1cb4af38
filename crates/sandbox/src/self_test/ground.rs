//! Files to attack.
//!
//! Owns a folder with files that are denied, kept and open, and what a confinement says of them. Refuses to lie where another test's does.
//! Its invariant: it goes with its value; one whose process was killed goes with the next test.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use crate::attack::Suite;
use crate::confinement::{Confinement, Layered, Session, Survivors};
use crate::features::{Features, Level};
use crate::host_path::HostPath;

/// The folder.
pub struct Ground {
    pub path: PathBuf,
    pub folder: HostPath,
    /// Beside the folder, where nothing is granted.
    pub file: HostPath,
    /// Dropped with it.
    listeners: Vec<OwnedFd>,
}

const NAME: &str = "writ-self-test-";

impl Ground {
    pub fn new(owner: Option<(u32, u32)>, suite: Suite) -> io::Result<Self> {
        let temporary = std::env::temp_dir().canonicalize()?;
        let mut number = [0u8; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let path = temporary.join(format!("{NAME}{}-{:016x}", std::process::id(), u64::from_ne_bytes(number)));
        let folder = HostPath::try_from(path.as_path()).map_err(io::Error::other)?;
        DirBuilder::new().mode(0o755).create(&path)?;
        let mut file = path.clone().into_os_string();
        file.push("-file");
        let file = HostPath::new(file).map_err(io::Error::other)?;
        let mut ground = Self { path, folder, file, listeners: Vec::new() };
        fs::write(ground.file.as_path(), "secret\n")?;
        for name in ["open", "open/denied", "open/kept", "open/free"] {
            fs::create_dir(ground.path.join(name))?;
        }
        for name in ["outside", "open/denied/file", "open/kept/file"] {
            fs::write(ground.path.join(name), "secret\n")?;
            fs::set_permissions(ground.path.join(name), fs::Permissions::from_mode(0o666))?;
        }
        let mut all =
            ["", "open", "open/denied", "open/kept", "open/free", "outside", "open/denied/file", "open/kept/file"]
                .map(|name| ground.path.join(name))
                .to_vec();
        if suite == Suite::Whole {
            ground.fill()?;
            all.extend(["layered", "layered/file"].map(|name| ground.path.join(name)));
            all.extend(ground.sockets());
        }
        if let Some((uid, gid)) = owner {
            all.iter().try_for_each(|path| chown(path, Some(uid), Some(gid)))?;
        }
        Ok(ground)
    }

    /// What the whole list needs beside.
    fn fill(&mut self) -> io::Result<()> {
        fs::create_dir(self.path.join("layered"))?;
        fs::write(self.path.join("layered/file"), "secret\n")?;
        let [streams @ .., messages] = self.sockets();
        for path in streams {
            self.listeners.push(UnixListener::bind(&path)?.into());
            fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        }
        self.listeners.push(UnixDatagram::bind(&messages)?.into());
        fs::set_permissions(messages, fs::Permissions::from_mode(0o666))
    }

    /// Where somebody listens: three of streams, one of messages.
    pub fn sockets(&self) -> [PathBuf; 4] {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push("-socket");
        let below = |name: &str| self.path.join(name);
        [below("socket"), below("open/socket"), temporary.into(), below("messages")]
    }

    /// The confinement that is tested, with these files in it.
    pub fn confinement(&self, given: &Confinement, suite: Suite, features: &Features) -> Confinement {
        let mounts = features.missing(Level::Namespaces).is_empty();
        let at = |name: &str| {
            let mut path = self.path.clone().into_os_string();
            path.push("/");
            path.push(name);
            HostPath::new(path).unwrap_or_else(|_| self.folder.clone())
        };
        let mut confinement = given.clone();
        confinement.writable.push(at("open"));
        confinement.readable.push(self.folder.clone());
        confinement.masked.extend([at("outside"), at("open/denied/file")]);
        confinement.read_only.extend([at("open/kept/"), at("open/none")]);
        confinement.session = Session::Own;
        confinement.survivors = Survivors::End;
        confinement.limits.wall_time = Some(if suite == Suite::Whole { 60_000 } else { 5_000 });
        if suite == Suite::Whole && mounts {
            // Limits of its own, so that each is seen to hold, whatever the policy's are.
            let limits = &mut confinement.limits;
            (limits.processes, limits.open_files, limits.file_size) = (Some(200), Some(256), Some(32 << 20));
            limits.memory = features.cgroups.memory.is_some().then_some(192 << 20);
            (limits.cpu_time, limits.process_memory) = (None, None);
            confinement.temporary = 16 << 20;
            if features.overlay {
                confinement.layered.push(Layered { path: at("layered"), layer: at("layer"), lasting: false });
            }
        }
        confinement
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // A process that was killed in the middle leaves its own; `sweep_grounds` finds it by its number.
        let layer = self.path.join("layer");
        for name in fs::read_dir(&layer).into_iter().flatten().flatten() {
            // The kernel leaves what it works in without any right.
            drop(fs::set_permissions(name.path().join("work"), fs::Permissions::from_mode(0o700)));
        }
        drop(fs::remove_dir_all(&self.path));
        drop(fs::remove_file(self.file.as_path()));
        let [.., temporary, _] = self.sockets();
        drop(fs::remove_file(temporary));
    }
}

/// Removes what self-tests that were killed have left, and the places that each has in what is `/tmp` inside.
pub fn sweep_grounds(confinement: &Confinement) -> io::Result<()> {
    let folder = confinement.temporary_folder.as_ref().map(|folder| folder.as_path().to_owned());
    for folder in [Some(std::env::temp_dir()), folder].into_iter().flatten().filter(|folder| folder.is_dir()) {
        sweep(&folder, |number| !Path::new("/proc").join(number).exists())?;
    }
    Ok(())
}

/// Removes the places that this process's tests had in what is `/tmp` inside.
pub fn clear(confinement: &Confinement) {
    if let Some(folder) = &confinement.temporary_folder {
        // What is left goes with the session.
        sweep(folder.as_path(), |number| number == std::process::id().to_string()).unwrap_or_default();
    }
}

fn sweep(folder: &Path, is_over: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| Some(name.strip_prefix(NAME)?.split_once('-')?.0.to_owned()));
        if number.is_some_and(|number| is_over(&number)) {
            // It may be somebody else's.
            drop(fs::remove_dir_all(entry.path()));
            drop(fs::remove_file(entry.path()));
        }
    }
    Ok(())
}
