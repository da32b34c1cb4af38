//! Runs that leave the policy's folder as it is.
//!
//! Owns the way from a plan to one whose writes below that folder go to layers in the session's folder. Refuses what cannot be layered: an
//! error, never a plan that writes. Invariant: what comes out gives nothing below the folder for writing but layers and copies of files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

use writ_core::Digest;
use writ_sandbox::{Bind, Confinement, Features, HostPath, HostPathError, Layered, Level};
use writ_store::regular_file;

use super::layers::mount_points;

/// What layers and copied files are called in the session's folder. Other layers go with the session, these stay.
pub const COPY: &str = "copy-";
/// Largest single file that is copied.
const MAX_FILE: u64 = 64 << 20;

/// Why a run cannot be a copy.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// The machine.
    #[error("`--copy` needs overlays and namespaces, which cannot be had here (`writ doctor`)")]
    Machine,
    /// Nothing to leave as it is.
    #[error("`--copy`: the policy lets nothing be written in `{}`", .0.display())]
    Nothing(PathBuf),
    /// A mount.
    #[error("`--copy` needs a folder without mounts in it, and `{}` is one", .0.display())]
    Mount(PathBuf),
    /// The disk.
    #[error("`--copy`: `{}`: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// No path of a sandbox.
    #[error("`--copy`: `{}`: {error}", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// Why.
        error: HostPathError,
    },
}

/// Something that is written elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What stays as it is.
    pub path: PathBuf,
    /// Where its changes are: a layer, or for a single file its copy.
    pub layer: PathBuf,
    /// Whether it is a folder.
    pub folder: bool,
}

/// Puts layers in the place of everything below `root` that can be written. They are called `layers` in the session's folder.
pub fn into_layers(
    confinement: &mut Confinement,
    root: &Path,
    (session, layers): (&Path, &str),
    features: &Features,
) -> Result<(), LayersError> {
    if !features.overlay || !features.missing(Level::Namespaces).is_empty() {
        return Err(LayersError::Machine);
    }
    let root = real(root)?;
    let plain = |path: &HostPath| real(path.as_path()).unwrap_or_else(|_missing| path.as_path().to_owned());
    let kept: BTreeSet<PathBuf> = confinement.read_only.iter().chain(&confinement.masked).map(plain).collect();
    let mut inside = BTreeSet::new();
    let mut outside = Vec::new();
    for path in confinement.writable.drain(..) {
        let real = real(path.as_path())?;
        if !real.starts_with(&root) {
            outside.push(path);
        } else if kept.contains(&real) {
            // What is kept wins; where reading is closed it can still be read.
            confinement.readable.push(path);
        } else {
            inside.insert(real);
        }
    }
    confinement.writable = outside;
    // What lies in a layer needs none of its own, unless something between the two is not written.
    let in_layer = |path: &Path| {
        let above = path.ancestors().skip(1).find(|above| inside.contains(*above) || kept.contains(*above));
        above.is_some_and(|above| inside.contains(above))
    };
    let mounts = mount_points();
    for path in inside.iter().filter(|path| !in_layer(path)) {
        give(confinement, path, &session.join(format!("{layers}{}", short(path))), &mounts)?;
    }
    if inside.is_empty() { Err(LayersError::Nothing(root)) } else { Ok(()) }
}

/// A layer for a folder, a copy for a file.
fn give(confinement: &mut Confinement, path: &Path, layer: &Path, mounts: &[PathBuf]) -> Result<(), LayersError> {
    let host = |path: &Path| HostPath::new(path).map_err(|error| LayersError::Path { path: path.to_owned(), error });
    if !path.is_dir() {
        copy_file(path, layer).map_err(|error| LayersError::Disk { path: path.to_owned(), error })?;
        confinement.binds.push(Bind { source: host(layer)?, target: host(path)?, writable: true });
        return Ok(());
    }
    if let Some(mount) = mounts.iter().find(|mount| *mount != path && mount.starts_with(path)) {
        return Err(LayersError::Mount(mount.clone()));
    }
    confinement.layered.push(Layered { path: host(path)?, layer: host(layer)?, lasting: true });
    Ok(())
}

fn real(path: &Path) -> Result<PathBuf, LayersError> {
    path.canonicalize().map_err(|error| LayersError::Disk { path: path.to_owned(), error })
}

/// A name for a path, the same whenever it is asked for.
fn short(path: &Path) -> String {
    Digest::of(path.as_os_str().as_bytes()).hex().chars().take(32).collect()
}

/// Copies a file that can be written by itself, as it is now; its owner and mode too.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let bytes = regular_file::read(from, MAX_FILE)?;
    let found = fs::symlink_metadata(from)?;
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(to)?;
    io::Write::write_all(&mut file, &bytes)?;
    if fs::symlink_metadata(to)?.uid() != found.uid() {
        chown(to, Some(found.uid()), Some(found.gid()))?;
    }
    file.set_permissions(found.permissions())
}

/// What of a plan is written elsewhere.
pub fn places(confinement: &Confinement) -> Vec<Place> {
    let layers = confinement.layered.iter().map(|layered| (&layered.path, &layered.layer, true));
    let files = confinement.binds.iter().map(|bind| (&bind.target, &bind.source, false));
    let ours =
        |layer: &HostPath| layer.as_path().file_name().is_some_and(|name| name.as_bytes().starts_with(COPY.as_bytes()));
    let places = layers.chain(files).filter(|(_, layer, _)| ours(layer));
    let place = |(path, layer, folder): (&HostPath, &HostPath, bool)| Place {
        path: path.as_path().to_owned(),
        layer: layer.as_path().to_owned(),
        folder,
    };
    places.map(place).collect()
}

/// Whether a run in it leaves the policy's folder as it is.
pub fn is_one(confinement: &Confinement) -> bool {
    !places(confinement).is_empty()
}
