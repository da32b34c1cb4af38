//! Agent packages: where they are, and the commands that move, sign and show them.
//!
//! Owns how a word of the command line becomes a package: a layout's folder, an archive, or a reference, which is pulled into Writ's own
//! layout. Nothing is unpacked here.

pub mod build;
pub mod inspect;
mod keyless;
pub mod login;
pub mod moved;
pub mod sign;
pub mod verify;

use std::path::{Path, PathBuf};

use writ_package::archive::{self, ArchiveError};
use writ_package::layout::MARKER;
use writ_package::reference::is_tag;
use writ_package::{Descriptor, Layout, LayoutError, Reference};
use writ_service::registry::{Credentials, Moved, Options, Registry, RegistryError, Watch, mirror};

use crate::args::RegistryArgs;
use crate::commands::rooms;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Where a package is, as it was written.
#[derive(Clone, Debug)]
pub enum Place {
    /// A layout's folder, and a name in it.
    Layout(PathBuf, Option<String>),
    /// An archive, there or to be written.
    Archive(PathBuf),
    /// A registry.
    Registry(Reference),
}

impl Place {
    /// A package that is there.
    pub fn there(text: &str) -> Result<Self, Failure> {
        let path = Path::new(text);
        if path.join(MARKER).is_file() {
            return Ok(Self::Layout(path.to_owned(), None));
        }
        if path.is_file() {
            return Ok(Self::Archive(path.to_owned()));
        }
        for (at, sign) in text.rmatch_indices([':', '@']).take(2) {
            let (folder, name) = (text.get(..at).unwrap_or_default(), text.get(at + sign.len()..).unwrap_or_default());
            if Path::new(folder).join(MARKER).is_file() {
                return Ok(Self::Layout(PathBuf::from(folder), Some(name.to_owned())));
            }
        }
        if path.is_dir() {
            return Err(Failure::malformed(format!("{text} is no OCI layout: it has no `{MARKER}`")));
        }
        let reference = Reference::parse(text)
            .map_err(|error| Failure::Usage(format!("{error}; and there is no such layout or archive")))?;
        Ok(Self::Registry(reference))
    }

    /// A place where one is to be: a reference, an archive where it ends in `.tar`, else a layout.
    pub fn to_be(text: &str) -> Result<Self, Failure> {
        let is_path = text.starts_with(['.', '/']) || Path::new(text).exists();
        if let (false, Ok(reference)) = (is_path, Reference::parse(text)) {
            return Ok(Self::Registry(reference));
        }
        if text.ends_with(".tar") {
            return Ok(Self::Archive(PathBuf::from(text)));
        }
        match text.rsplit_once(':') {
            Some((folder, name)) if is_tag(name) && !folder.is_empty() => {
                Ok(Self::Layout(PathBuf::from(folder), Some(name.to_owned())))
            }
            _ => Ok(Self::Layout(PathBuf::from(text), None)),
        }
    }
}

/// A package in a layout.
pub struct Opened {
    /// The layout.
    pub layout: Layout,
    /// Its manifest.
    pub descriptor: Descriptor,
    /// What it is called in the layout or registry.
    pub name: Option<String>,
    /// Where it came from, if that is a registry.
    pub reference: Option<Reference>,
    /// What came over the network.
    pub moved: Option<Moved>,
    /// An archive is laid out here.
    _room: Option<tempfile::TempDir>,
}

impl Opened {
    /// A package that was made just now.
    pub fn of(layout: Layout, descriptor: Descriptor, name: &str) -> Self {
        Self { layout, descriptor, name: Some(name.to_owned()), reference: None, moved: None, _room: None }
    }
}

/// The registries, as the arguments want them asked.
pub fn registry(args: &RegistryArgs) -> Result<Registry, Failure> {
    let mirrors = args.mirror.iter().map(|text| mirror(text)).collect::<Result<_, _>>().map_err(Failure::Usage)?;
    let options = Options {
        credentials: Credentials::of(environment::docker_config()),
        plain_http: args.plain_http,
        concurrency: args.concurrency.into(),
        mirrors,
        uploads: environment::home().state.map(|state| state.join("uploads")),
    };
    Ok(Registry::new(options))
}

/// Writ's own layout, which keeps what was pulled.
pub fn kept() -> Result<Layout, Failure> {
    let home = environment::home();
    let state = home.state().map_err(Failure::could_not)?;
    Layout::create(&state.join("packages")).map_err(layout_failure)
}

/// Opens a package; one in a registry is pulled, or taken from what was pulled before.
pub fn open(text: &str, args: &RegistryArgs) -> Result<Opened, Failure> {
    match Place::there(text)? {
        Place::Layout(folder, name) => {
            let layout = Layout::open(&folder).map_err(layout_failure)?;
            let descriptor = layout.resolve(name.as_deref()).map_err(layout_failure)?;
            Ok(Opened { layout, descriptor, name, reference: None, moved: None, _room: None })
        }
        Place::Archive(file) => {
            let room = rooms::folder()?;
            let layout = archive::open(&file, room.path()).map_err(archive_failure)?;
            let descriptor = layout.resolve(None).map_err(layout_failure)?;
            let named = descriptor.annotation(writ_package::layout::REF_NAME).map(str::to_owned);
            Ok(Opened { layout, descriptor, name: named, reference: None, moved: None, _room: Some(room) })
        }
        Place::Registry(reference) => pulled(&reference, args),
    }
}

/// A package of a registry, in Writ's own layout.
pub fn pulled(reference: &Reference, args: &RegistryArgs) -> Result<Opened, Failure> {
    let (layout, name) = (kept()?, reference.to_string());
    let moved = if args.offline {
        None
    } else {
        let watch = Watch::new(output::progress);
        let moved = registry(args)?.pull(reference, &layout, &watch).map_err(registry_failure)?;
        let descriptor = Descriptor { artifact_type: moved.artifact_type.clone(), ..of(&layout, &moved)? };
        layout.tag(Some(&name), &descriptor).map_err(layout_failure)?;
        Some(moved)
    };
    let found = layout.resolve(Some(&name)).or_else(|error| match reference.digest() {
        Some(digest) => layout.resolve(Some(&digest.to_string())),
        None => Err(error),
    });
    let descriptor = found.map_err(|_unknown| {
        Failure::could_not(format!("{reference} was not pulled yet, and `--offline` asks no registry"))
    })?;
    let name = reference.tag().map(str::to_owned);
    Ok(Opened { layout, descriptor, name, reference: Some(reference.clone()), moved, _room: None })
}

fn of(layout: &Layout, moved: &Moved) -> Result<Descriptor, Failure> {
    let size = layout.path(moved.digest).metadata()?.len();
    Ok(Descriptor::new(&moved.media_type, moved.digest, size))
}

/// What a layout's failure means for the exit code.
pub fn layout_failure(error: LayoutError) -> Failure {
    match error {
        LayoutError::Tampered { .. } | LayoutError::Missing { .. } => refused(&error),
        LayoutError::NotOne { .. } | LayoutError::Document { .. } | LayoutError::TooDeep(_) => {
            Failure::malformed(error)
        }
        LayoutError::WhichOne { .. } => Failure::Usage(error.to_string()),
        LayoutError::Io { .. } | LayoutError::NoSuchName { .. } => Failure::could_not(error),
    }
}

/// What an archive's failure means for the exit code.
pub fn archive_failure(error: ArchiveError) -> Failure {
    match error {
        ArchiveError::Tampered { .. } => refused(&error),
        ArchiveError::Layout(error) => layout_failure(error),
        ArchiveError::NotOne { .. } | ArchiveError::Layer(_) => Failure::malformed(error),
        ArchiveError::Io { .. } => Failure::could_not(error),
    }
}

/// What a registry's failure means for the exit code.
pub fn registry_failure(error: RegistryError) -> Failure {
    match error {
        RegistryError::Other { .. } => refused(&error),
        RegistryError::Layout(error) => layout_failure(error),
        RegistryError::Document { .. } => Failure::malformed(error),
        RegistryError::Reference(error) => Failure::Usage(error.to_string()),
        RegistryError::Network { .. }
        | RegistryError::Unauthorized { .. }
        | RegistryError::NotFound { .. }
        | RegistryError::Status { .. }
        | RegistryError::Leads { .. }
        | RegistryError::Credentials(_)
        | RegistryError::File { .. } => Failure::could_not(error),
    }
}

/// The answer is no, and why.
pub fn refused(why: &dyn std::fmt::Display) -> Failure {
    output::note(format!("{} {}", output::bad("refused:"), output::plain(&why.to_string())));
    Failure::No
}
