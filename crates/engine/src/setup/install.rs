//! Putting the hooks into a client's settings file, and the file back as it was.
//!
//! Owns the reading and writing of that file, of the one that has to agree to it where a client has such a one, and the originals kept beside
//! Writ's state; the edits themselves are the client's ([`Settings`]). Invariant: before a byte of a file changes, its original is on disk.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_clients::settings::{Companion, Edited, HookSpec, Settings, SettingsError};
use writ_core::Digest;
use writ_core::json::{self, FormatError};
use writ_store::regular_file;

use crate::home::{Home, NoStateDir};

/// What an installation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The settings file.
    pub path: PathBuf,
    /// Whether any byte of it changed.
    pub changed: bool,
}

/// Why a settings file was left alone.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The file or the kept original.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what the client accepts; it is never overwritten.
    #[error("{} is left as it is: {source}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong in it, with its place.
        source: SettingsError,
    },
    /// There is nowhere to keep the original.
    #[error(transparent)]
    NoStateDir(#[from] NoStateDir),
}

/// A file's text now, and as it is to be.
struct Change {
    path: PathBuf,
    original: Option<String>,
    edited: Edited,
}

/// A client that has settings files, and where the one at hand is.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The client.
    pub client: &'a dyn Client,
    /// What it has.
    pub settings: &'a dyn Settings,
    /// The settings file.
    pub path: &'a Path,
}

impl<'a> Target<'a> {
    /// The client's settings file; `None` where the client has none.
    pub fn new(client: &'a dyn Client, path: &'a Path) -> Option<Self> {
        Some(Self { client, settings: client.settings()?, path })
    }

    /// The file that has to agree, where the settings file is not the administrator's.
    fn companion(&self, home: &Home) -> Option<(&'a dyn Companion, PathBuf)> {
        let companion = self.settings.companion()?;
        let folder = home.folder(self.client);
        let user = home.user.as_deref().or(folder)?;
        let managed = self.settings.places(Path::new("/"), user, folder).managed;
        (managed.as_deref() != Some(self.path)).then(|| (companion, companion.path(user, folder)))
    }

    /// How the client calls the settings file: as it is named, and as it is where a link leads.
    fn names(&self) -> Vec<PathBuf> {
        let real = self.path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        let real = real.zip(self.path.file_name()).map(|(folder, name)| folder.join(name));
        std::iter::once(self.path.to_owned()).chain(real.filter(|real| real != self.path)).collect()
    }

    fn edits(&self, spec: &HookSpec, home: &Home) -> Result<Vec<Change>, InstallError> {
        let change = |path: &Path, original: Option<String>, edited: Result<Edited, SettingsError>| {
            let edited = edited.map_err(|source| InstallError::Settings { path: path.to_owned(), source })?;
            Ok::<_, InstallError>(Change { path: path.to_owned(), original, edited })
        };
        let original = read(self.path)?;
        let edited = self.settings.install(original.as_deref(), spec);
        let mut changes = vec![change(self.path, original, edited)?];
        if let (Some((companion, path)), Some(first)) = (self.companion(home), changes.first()) {
            let original = read(&path)?;
            let mut edited = Edited { text: original.clone().unwrap_or_default(), changed: Vec::new() };
            for name in self.names() {
                let next = companion.install(Some(&edited.text), &name, &first.edited.text);
                let next = next.map_err(|source| InstallError::Settings { path: path.clone(), source })?;
                edited = Edited { changed: [edited.changed, next.changed].concat(), text: next.text };
            }
            changes.push(change(&path, original, Ok(edited))?);
        }
        Ok(changes)
    }
}

/// Makes sure that the hooks can be installed, and changes nothing.
pub fn check(target: Target<'_>, spec: &HookSpec, home: &Home) -> Result<(), InstallError> {
    home.state()?;
    target.edits(spec, home).map(drop)
}

/// Installs the hooks. A second run changes nothing.
pub fn install(target: Target<'_>, spec: &HookSpec, home: &Home) -> Result<Outcome, InstallError> {
    let mut changed = false;
    for Change { path, original, edited } in target.edits(spec, home)? {
        let is_same = original.as_deref() == Some(edited.text.as_str());
        if is_same || original.is_none() && edited.text.is_empty() {
            continue;
        }
        changed = true;
        let record = record_path(&path, home)?;
        let known = load(&record)?;
        // A second installation over our own keeps the first original: that is what undo means.
        let installed = Digest::of(edited.text.as_bytes());
        let (original, folders) = match known {
            Some(known) if original.as_deref().is_some_and(|text| known.installed == Digest::of(text.as_bytes())) => {
                (known.original, known.folders)
            }
            _ => (original, path.ancestors().skip(1).take_while(|folder| !folder.exists()).count()),
        };
        save(&record, &Record { original, installed, folders })?;
        replace(&path, edited.text.as_bytes(), SHARED)?;
    }
    Ok(Outcome { path: target.path.to_owned(), changed })
}

/// Takes the hooks out: the original comes back to the byte when nobody has changed the file since, otherwise only our
/// entries go.
pub fn undo(target: Target<'_>, home: &Home) -> Result<Outcome, InstallError> {
    let names = target.names();
    let mut changed = take_out(target.path, home, &|text| target.settings.remove(text))?;
    if let Some((companion, path)) = target.companion(home) {
        changed |= take_out(&path, home, &|text| {
            let mut edited = Edited { text: text.to_owned(), changed: Vec::new() };
            for name in &names {
                let next = companion.remove(&edited.text, name)?;
                edited = Edited { changed: [edited.changed, next.changed].concat(), text: next.text };
            }
            Ok(edited)
        })?;
    }
    Ok(Outcome { path: target.path.to_owned(), changed })
}

/// Takes out of one file what was put in. Returns whether anything was.
fn take_out(
    path: &Path,
    home: &Home,
    remove: &dyn Fn(&str) -> Result<Edited, SettingsError>,
) -> Result<bool, InstallError> {
    let Some(current) = read(path)? else { return Ok(false) };
    let record = record_path(path, home)?;
    let known = load(&record)?;
    let folders = known.as_ref().map_or(0, |known| known.folders);
    let restored = match known {
        Some(known) if known.installed == Digest::of(current.as_bytes()) => known.original,
        _ => {
            let edited = remove(&current).map_err(|source| InstallError::Settings { path: path.to_owned(), source })?;
            if edited.changed.is_empty() {
                return Ok(false);
            }
            Some(edited.text)
        }
    };
    match restored {
        Some(text) => replace(path, text.as_bytes(), SHARED)?,
        None => {
            fs::remove_file(path).map_err(|source| io(path, source))?;
            // Only an empty folder goes; one that holds anything stays.
            let _gone =
                path.ancestors().skip(1).take(folders).take_while(|folder| fs::remove_dir(folder).is_ok()).count();
        }
    }
    drop(fs::remove_file(&record));
    Ok(true)
}

#[derive(Serialize, Deserialize)]
struct Record {
    original: Option<String>,
    installed: Digest,
    /// How many folders were not there, from the file's own upwards.
    #[serde(default = "one")]
    folders: usize,
}

/// Records of before said nothing of it, and the file's own folder went with it.
const fn one() -> usize {
    1
}

fn record_path(path: &Path, home: &Home) -> Result<PathBuf, InstallError> {
    let name = Digest::of(path.to_string_lossy().as_bytes()).hex();
    Ok(home.state()?.join("installs").join(format!("{name}.json")))
}

fn load(path: &Path) -> Result<Option<Record>, InstallError> {
    let Some(text) = read(path)? else { return Ok(None) };
    match json::from_slice(text.as_bytes()) {
        Ok(record) => Ok(Some(record)),
        Err(FormatError::Json(error)) => Err(io(path, std::io::Error::new(ErrorKind::InvalidData, error))),
        // Another tool's file: there is no record of ours.
        Err(FormatError::Shape { .. }) => Ok(None),
    }
}

fn save(path: &Path, record: &Record) -> Result<(), InstallError> {
    replace(path, json::to_compact(record).as_bytes(), PRIVATE)
}

/// Mode of a new settings file, which others may have to read, and of what Writ keeps of it.
const SHARED: u32 = 0o644;
const PRIVATE: u32 = 0o600;
/// Largest settings file.
const MAX_SETTINGS: u64 = 64 << 20;

fn read(path: &Path) -> Result<Option<String>, InstallError> {
    match regular_file::read(path, MAX_SETTINGS) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| io(path, std::io::Error::new(ErrorKind::InvalidData, error.utf8_error()))),
        // What a link leads to may come back; a file in its place would take the link away.
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            let why = "it is a symbolic link to what is not there: make that, or take the link away";
            Err(io(path, std::io::Error::new(ErrorKind::NotFound, why)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(path, error)),
    }
}

/// All or nothing: a new file beside the old one, on disk before it takes the old one's place. Follows a symlink to the
/// real file and keeps its permissions.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), InstallError> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode | (mode & 0o444) >> 2)
        .create(folder)
        .map_err(|source| io(folder, source))?;
    let mut name = real.clone().into_os_string();
    name.push(".writ-new");
    let fresh = PathBuf::from(name);
    let opened = fs::File::options().write(true).create(true).truncate(true).mode(mode).open(&fresh);
    let written = opened.and_then(|mut file| {
        if let Ok(old) = fs::metadata(&real) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes).and_then(|()| file.sync_all())
    });
    written.and_then(|()| fs::rename(&fresh, &real)).map_err(|source| io(&real, source))
}

fn io(path: &Path, source: std::io::Error) -> InstallError {
    InstallError::Io { path: path.to_owned(), source }
}
