//! A layout as one file: `oci-archive`, as other container tools read and write it.
//!
//! Owns packing and opening. Refuses any entry that is not of a layout, and a blob whose bytes are not what its name says. Invariant: the
//! same layout gives the same bytes, and nothing is laid out under another name than its digest. Page: `spec/package.md`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use writ_core::{Digest, regular_file};

use crate::layer::{self, LayerError, MAX_BYTES, MAX_FILES};
use crate::layout::{INDEX_FILE, Layout, LayoutError, MARKER, marker};
use crate::manifest::{Descriptor, Document, INDEX};

/// Why an archive cannot be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not an archive of a layout.
    #[error("{} is no archive of an OCI layout: {why}", path.display())]
    NotOne {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A blob that is something else.
    #[error("{} holds `{name}`, whose bytes are not what its name says: the archive was tampered with", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// The entry.
        name: String,
    },
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A name.
    #[error(transparent)]
    Layer(#[from] LayerError),
}

/// Whether a file begins as a tar archive whose first entries are a layout's.
pub fn is_one(path: &Path) -> bool {
    let Ok(file) = regular_file::open(path) else { return false };
    let mut archive = tar::Archive::new(file.take(MAX_BYTES));
    let Ok(mut entries) = archive.entries() else { return false };
    let first = entries.next().and_then(Result::ok);
    let named = first.and_then(|entry| Some(entry.path().ok()?.to_str()?.to_owned()));
    named.is_some_and(|name| place(&name).is_some() || name.starts_with("blobs"))
}

/// Writes the manifests of the index, all that they name, and nothing else.
pub fn write(layout: &Layout, to: &Path) -> Result<(), ArchiveError> {
    let failed = |source| ArchiveError::Io { what: "write", path: to.to_owned(), source };
    let index = layout.index()?;
    let mut blobs: Vec<Descriptor> = Vec::new();
    for one in &index.manifests {
        blobs.extend(layout.closure(one)?);
    }
    blobs.sort_by_key(|one| one.digest);
    blobs.dedup_by_key(|one| one.digest);
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = to.file_name().ok_or_else(|| failed(io::Error::other("it names no file")))?;
    let new = folder.join(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    let mut tar = tar::Builder::new(io::BufWriter::with_capacity(1 << 18, File::create(&new).map_err(failed)?));
    let made = (|| {
        for (name, bytes) in [(MARKER, marker()), (INDEX_FILE, index.to_bytes())] {
            let header = layer::header(name, bytes.len() as u64, false)?;
            tar.append(&header, bytes.as_slice()).map_err(failed)?;
        }
        for blob in &blobs {
            layout.check(blob)?;
            let header = layer::header(&format!("blobs/sha256/{}", blob.digest.hex()), blob.size, false)?;
            tar.append(&header, layout.blob(blob.digest)?.take(blob.size)).map_err(failed)?;
        }
        tar.into_inner().and_then(|mut file| file.flush()).map_err(failed)?;
        std::fs::rename(&new, to).map_err(failed)
    })();
    if made.is_err() {
        drop(std::fs::remove_file(&new));
    }
    made
}

/// Lays an archive out in a folder.
pub fn open(path: &Path, folder: &Path) -> Result<Layout, ArchiveError> {
    let failed = |source| ArchiveError::Io { what: "read", path: path.to_owned(), source };
    let not_one = |why: String| ArchiveError::NotOne { path: path.to_owned(), why };
    let layout = Layout::create(folder)?;
    let file = regular_file::open(path).map_err(failed)?;
    let mut archive = tar::Archive::new(io::BufReader::with_capacity(1 << 18, file.take(MAX_BYTES)));
    let (mut index, mut marked) = (None, false);
    let told = |error: io::Error| not_one(error.to_string());
    for (count, entry) in archive.entries().map_err(told)?.enumerate() {
        let mut entry = entry.map_err(told)?;
        if count > MAX_FILES {
            return Err(not_one("it holds too many files".to_owned()));
        }
        let name = entry.path().map_err(told)?.to_str().unwrap_or_default().trim_start_matches("./").to_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        let place = place(&name).filter(|_| kind.is_file());
        let place = place.ok_or_else(|| not_one(format!("`{name}` is no file of a layout")))?;
        match place {
            Place::Blob(digest) => {
                let mut writer = layout.writer()?;
                io::copy(&mut entry, &mut writer).map_err(failed)?;
                if writer.finish("")?.digest != digest {
                    return Err(ArchiveError::Tampered { path: path.to_owned(), name });
                }
            }
            Place::Index | Place::Marker => {
                let mut bytes = Vec::new();
                entry.take(crate::manifest::MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
                match place {
                    Place::Index => index = Some(bytes),
                    Place::Marker | Place::Blob(_) => marked = true,
                }
            }
        }
    }
    let index = index.filter(|_| marked).ok_or_else(|| not_one(format!("it lacks `{MARKER}` or `{INDEX_FILE}`")))?;
    match Document::parse(INDEX, &index) {
        Ok(Document::Index(index)) => {
            for one in &index.manifests {
                layout.tag(one.annotation(crate::layout::REF_NAME), one)?;
            }
            Ok(layout)
        }
        Ok(Document::Manifest(_)) => Err(not_one("its index is a manifest".to_owned())),
        Err(error) => Err(not_one(error.to_string())),
    }
}

enum Place {
    Marker,
    Index,
    Blob(Digest),
}

/// What a path in a layout is.
fn place(name: &str) -> Option<Place> {
    match name.trim_start_matches("./") {
        MARKER => Some(Place::Marker),
        INDEX_FILE => Some(Place::Index),
        other => Some(Place::Blob(Digest::from_hex(other.strip_prefix("blobs/sha256/")?).ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{EMPTY, EMPTY_BYTES, Manifest};

    #[test]
    fn an_archive_opens_as_the_layout_that_it_was_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let layout = Layout::create(&at("layout")).unwrap();
        let config = layout.write(EMPTY, EMPTY_BYTES).unwrap();
        let layer = layout.write("text/plain", b"content").unwrap();
        layout.write("text/plain", b"nobody names this").unwrap();
        let manifest = layout.write_manifest(&Manifest::artifact("application/x", config, vec![layer])).unwrap();
        layout.tag(Some("v1"), &manifest).unwrap();
        write(&layout, &at("one.tar")).unwrap();
        assert!(is_one(&at("one.tar")) && !is_one(&at("layout/index.json")));
        let opened = open(&at("one.tar"), &at("opened")).unwrap();
        assert_eq!(opened.index().unwrap(), layout.index().unwrap());
        for one in opened.closure(&manifest).unwrap() {
            opened.check(&one).unwrap();
        }
        write(&opened, &at("two.tar")).unwrap();
        let good = std::fs::read(at("one.tar")).unwrap();
        assert_eq!(good, std::fs::read(at("two.tar")).unwrap());
        // Any byte of a blob.
        let found = good.windows(7).position(|window| window == b"content").unwrap();
        let mut bad = good;
        bad[found] ^= 1;
        std::fs::write(at("bad.tar"), bad).unwrap();
        assert!(matches!(open(&at("bad.tar"), &at("bad")), Err(ArchiveError::Tampered { .. })));
    }
}
