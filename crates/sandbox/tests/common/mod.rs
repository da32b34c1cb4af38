//! A supervisor in a process of its own, as whoever is asked for.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]
#![expect(dead_code, reason = "not every test file uses all of it")]

mod order;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub use order::Order;
use tempfile::TempDir;
use writ_core::json;
use writ_sandbox::{Confinement, HostPath};

/// Who the supervisor is, and whose the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Root, in somebody's folder.
    Root,
    /// Root, in root's own folder.
    RootsOwn,
    /// Somebody, in a folder of their own.
    Somebody,
}

pub const SOMEBODY: u32 = 12_345;

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// All that can be tried here.
pub fn everybody() -> Vec<Who> {
    if is_root() { vec![Who::Root, Who::RootsOwn, Who::Somebody] } else { vec![Who::Somebody] }
}

/// A folder to work in, beside one that nobody granted.
pub struct World {
    _home: TempDir,
    pub who: Who,
    pub folder: PathBuf,
    pub outside: PathBuf,
    pub state: PathBuf,
}

impl World {
    pub fn new(who: Who) -> Self {
        Self::at(who, Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub fn at(who: Who, place: &Path) -> Self {
        let home = TempDir::new_in(place.canonicalize().unwrap()).unwrap();
        let [folder, outside, state] = ["work folder", "outside", "state"].map(|name| home.path().join(name));
        for path in [&folder, &outside, &state] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("secret"), "CANARY\n").unwrap();
        let world = Self { _home: home, who, folder, outside, state };
        world.open();
        world
    }

    /// Everything belongs to whom it should, after the test made files.
    pub fn open(&self) {
        let home = self.folder.parent().unwrap();
        fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        if is_root() && self.who != Who::RootsOwn {
            own(&self.folder);
            own(&self.outside);
            if self.who == Who::Somebody {
                own(&self.state);
            }
        }
    }

    pub fn path(&self, name: impl AsRef<OsStr>) -> HostPath {
        let mut path = self.folder.clone().into_os_string();
        path.push("/");
        path.push(name);
        HostPath::new(path).unwrap()
    }

    /// The folder can be written.
    pub fn confinement(&self) -> Confinement {
        let folder = HostPath::try_from(self.folder.as_path()).unwrap();
        let mut confinement = Confinement::reading(folder.clone());
        confinement.writable.push(folder);
        confinement
    }

    pub fn shell(&self, confinement: &Confinement, script: &str) -> Told {
        self.run(&Order::shell(confinement, script), b"")
    }

    pub fn run(&self, order: &Order, input: &[u8]) -> Told {
        let mut child = self.start(order);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        writer.join().unwrap();
        let status = child.wait().unwrap();
        Told { code: status.code(), signal: status.signal(), output, errors }
    }

    pub fn start(&self, order: &Order) -> Child {
        self.command(order).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The supervisor, still to be started.
    pub fn command(&self, order: &Order) -> std::process::Command {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let file = self.folder.with_file_name(format!("order{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::write(&file, json::to_canonical(order)).unwrap();
        // Beside the tests' own folder; a test's own process has threads that would take the signals.
        let tests = std::env::current_exe().unwrap();
        let supervisor = tests.parent().unwrap().with_file_name("examples").join("supervisor");
        let mut command = std::process::Command::new(supervisor);
        command.env("WRIT_SANDBOX_ORDER", &file).env("WRIT_SANDBOX_STATE", &self.state);
        if is_root() && self.who == Who::Somebody {
            command.uid(SOMEBODY).gid(SOMEBODY);
        }
        command.current_dir("/");
        command
    }
}

fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}

/// What a command's caller saw.
#[derive(Debug)]
pub struct Told {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub output: Vec<u8>,
    pub errors: String,
}

impl Told {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}
