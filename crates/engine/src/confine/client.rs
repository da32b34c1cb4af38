//! What a client that is run as a whole needs of the user's disk.
//!
//! Owns the places of its own, from the client's words to the confinement. Refuses a place that the policy denies. Invariant: only the
//! client that is run gets its login, and what a session outside obeys later is never written by it: of that it has a copy.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use writ_clients::program::{Begins, Needs, Own};
use writ_policy::{Policy, Reach};
use writ_sandbox::{Bind, Confinement, HostPath, HostPathError, Reading};
use writ_store::regular_file;

/// Largest file that is copied.
const MAX_COPY: u64 = 64 << 20;
/// Most names in the client's folder that are looked at.
const MOST: usize = 4096;

/// Why the client cannot have what it needs.
#[derive(Debug, thiserror::Error)]
pub enum NeedsError {
    /// A rule is about it.
    #[error("the policy denies `{}`, and the client cannot work without it", .0.display())]
    Denied(PathBuf),
    /// The disk.
    #[error("`{}`: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// No path of a sandbox.
    #[error("`{}`: {error}", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// Why.
        error: HostPathError,
    },
}

/// Gives a client what it needs. What it has of its own lies in `copies`; `obeyed` are the files that it has its hooks from.
pub fn give(
    confinement: &mut Confinement,
    needs: &Needs,
    copies: &Path,
    obeyed: &[PathBuf],
    layers: &[&Policy],
    user: Option<&Path>,
) -> Result<(), NeedsError> {
    let home = user.map(|user| user.to_string_lossy().into_owned());
    let reach = |path: &Path| {
        let path = path.to_string_lossy();
        layers.iter().map(|policy| policy.reach(&path, home.as_deref(), false)).min().unwrap_or(Reach::Denied)
    };
    let obeyed = || obeyed.iter().filter(|path| path.symlink_metadata().is_ok());
    for path in [&needs.folder].into_iter().chain(needs.own.iter().map(|own| &own.path)).chain(obeyed()) {
        if reach(path) == Reach::Denied {
            return Err(NeedsError::Denied(path.clone()));
        }
    }
    let is_own = |path: &Path| needs.own.iter().any(|own| own.path == path);
    confinement.writable.push(host(&needs.folder)?);
    confinement.read_only.retain(|path| !is_own(path.as_path()));
    confinement.masked.retain(|path| !is_own(path.as_path()));
    // A login that the policy denies stays denied.
    confinement.masked.retain(|path| {
        !needs.login.iter().any(|login| login == path.as_path()) || reach(path.as_path()) == Reach::Denied
    });
    for name in needs.kept {
        confinement.read_only.push(host(&needs.folder.join(name))?);
    }
    for path in entries(&needs.folder)? {
        let is_data = path.file_name().is_some_and(|name| needs.data.iter().any(|data| name == *data));
        if !is_data && !is_own(&path) || reach(&path) == Reach::Read {
            confinement.read_only.push(host(&path)?);
        }
    }
    for (number, Own { path, .. }) in needs.own.iter().enumerate() {
        let source = host(&copies.join(number.to_string()))?;
        confinement.binds.push(Bind { source, target: host(path)?, writable: true });
    }
    if confinement.reading == Reading::Closed {
        // A client that cannot read where its hooks are runs without them.
        for path in obeyed() {
            confinement.readable.push(host(path)?);
        }
    }
    if let Some(user) = user.filter(|_| confinement.reading == Reading::Open) {
        // For root: its home is closed to the user that stands in for it.
        confinement.readable.push(host(user)?);
    }
    let environment = &mut confinement.environment;
    environment.drop.retain(|name| !needs.variables.contains(&name.as_str()));
    environment.set.extend(needs.set.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    Ok(())
}

fn host(path: &Path) -> Result<HostPath, NeedsError> {
    HostPath::new(path.as_os_str()).map_err(|error| NeedsError::Path { path: path.to_owned(), error })
}

/// What is in a folder, sorted; nothing where it is not there yet.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, NeedsError> {
    let disk = |error| NeedsError::Disk { path: folder.to_owned(), error };
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.map_err(disk)?,
    };
    let paths: io::Result<Vec<PathBuf>> = found.take(MOST + 1).map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(disk)?;
    if paths.len() > MOST {
        return Err(disk(io::Error::other("it holds more than is looked at")));
    }
    paths.sort();
    Ok(paths)
}

/// Makes the places that are to be there when the client starts: its folder, what its own files lie on, and these, in `copies`.
/// `folder` is the one it starts in, whose owner it becomes where root runs it.
pub fn make(needs: &Needs, copies: &Path, folder: &Path) -> Result<(), NeedsError> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let owner = fs::metadata(folder).ok().filter(|found| is_root && found.uid() != 0);
    let owner = owner.map(|found| (found.uid(), found.gid()));
    let private = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
    let file = |path: &Path, bytes: &[u8]| -> io::Result<()> {
        let mut made = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
        io::Write::write_all(&mut made, bytes)
    };
    let make = |path: &Path, is_folder: bool, bytes: &[u8]| -> io::Result<()> {
        if is_folder { private(path) } else { file(path, bytes) }
    };
    let disk = |path: &Path| {
        let path = path.to_owned();
        move |error| NeedsError::Disk { path, error }
    };
    private(&needs.folder).map_err(disk(&needs.folder))?;
    for (number, Own { path, begins }) in needs.own.iter().enumerate() {
        let (is_folder, bytes) = match begins {
            Begins::Empty => (true, Vec::new()),
            Begins::Copy(otherwise) => match regular_file::read(path, MAX_COPY) {
                Err(error) if error.kind() == ErrorKind::NotFound => (false, otherwise.as_bytes().to_vec()),
                read => (false, read.map_err(disk(path))?),
            },
        };
        if path.symlink_metadata().is_err() {
            make(path, is_folder, &bytes).map_err(disk(path))?;
        }
        let copy = copies.join(number.to_string());
        make(&copy, is_folder, &bytes).map_err(disk(&copy))?;
        if let Some((uid, gid)) = owner {
            chown(&copy, Some(uid), Some(gid)).map_err(disk(&copy))?;
        }
    }
    Ok(())
}
