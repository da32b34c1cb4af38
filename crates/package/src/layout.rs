//! A folder of blobs with an index: the OCI image layout, which is also the cache.
//!
//! Owns reading and writing it. Refuses bytes that do not have the digest and size that their descriptor says. Invariant: a blob is there
//! under its name only once it is whole, and the index is replaced as a whole, one process at a time. Page: `spec/package.md`.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use writ_core::json;
use writ_core::{Digest, Hasher, regular_file};

use crate::manifest::{Descriptor, Document, DocumentError, INDEX, Index, MAX_BYTES, Manifest};

/// The note that names a manifest in an index.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The file that says that a folder is a layout.
pub const MARKER: &str = "oci-layout";
/// Its index.
pub const INDEX_FILE: &str = "index.json";
/// Read at once.
const PIECE: usize = 1 << 18;
/// Most documents that one leads to.
const MAX_DOCUMENTS: usize = 4096;

/// A layout on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

/// Why a layout does not give or take something.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
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
    /// Not a layout.
    #[error("{} is no OCI layout: {why}", path.display())]
    NotOne {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A blob that is not there.
    #[error("{digest} is not in {}", path.display())]
    Missing {
        /// The blob.
        digest: Digest,
        /// The folder.
        path: PathBuf,
    },
    /// A blob that is something else than its descriptor says.
    #[error("the blob {digest} ({media_type}) is not what its descriptor says: {why}")]
    Tampered {
        /// What it should have been.
        digest: Digest,
        /// What it is called.
        media_type: String,
        /// What it is.
        why: String,
    },
    /// A manifest or index that cannot be read.
    #[error("{digest}: {source}")]
    Document {
        /// Its digest.
        digest: Digest,
        /// Why.
        source: DocumentError,
    },
    /// No manifest of that name.
    #[error("{} has no manifest called `{name}`; it has {has}", path.display())]
    NoSuchName {
        /// The folder.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// What there is.
        has: String,
    },
    /// Several manifests, and none was named.
    #[error("{} has {has}: name one, as in `{}:NAME`", path.display(), path.display())]
    WhichOne {
        /// The folder.
        path: PathBuf,
        /// What there is.
        has: String,
    },
    /// More than can be followed.
    #[error("{0} leads to more manifests than are followed")]
    TooDeep(Digest),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    image_layout_version: String,
}

impl Layout {
    /// A layout that is there.
    pub fn open(root: &Path) -> Result<Self, LayoutError> {
        let layout = Self { root: root.to_owned() };
        let not_one = |why: String| LayoutError::NotOne { path: root.to_owned(), why };
        let marker = regular_file::read(&root.join(MARKER), 4096);
        let marker = marker.map_err(|error| not_one(format!("`{MARKER}`: {error}")))?;
        let marker: Marker = json::from_slice(&marker).map_err(|error| not_one(format!("`{MARKER}`: {error}")))?;
        if marker.image_layout_version != "1.0.0" {
            return Err(not_one(format!("its version is `{}`, not 1.0.0", marker.image_layout_version)));
        }
        layout.index()?;
        Ok(layout)
    }

    /// A layout that is there, or a new one.
    pub fn create(root: &Path) -> Result<Self, LayoutError> {
        if root.join(MARKER).exists() {
            return Self::open(root);
        }
        let layout = Self { root: root.to_owned() };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LayoutError::Io { what: "write", path, source }
        };
        let blobs = layout.blobs();
        fs::create_dir_all(&blobs).map_err(failed(&blobs))?;
        let index = root.join(INDEX_FILE);
        if !index.exists() {
            fs::write(&index, Index::of(Vec::new()).to_bytes()).map_err(failed(&index))?;
        }
        fs::write(root.join(MARKER), marker()).map_err(failed(root))?;
        Ok(layout)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn blobs(&self) -> PathBuf {
        self.root.join("blobs/sha256")
    }

    /// Where a blob is.
    pub fn path(&self, digest: Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    /// Where a blob is that is not whole yet.
    pub fn partial(&self, digest: Digest) -> PathBuf {
        self.root.join("partial").join(digest.hex())
    }

    /// Whether a blob of that size is there; its digest was checked when it came.
    pub fn has(&self, descriptor: &Descriptor) -> bool {
        self.path(descriptor.digest).metadata().is_ok_and(|found| found.is_file() && found.len() == descriptor.size)
    }

    /// A blob, opened; what is read of it is not checked.
    pub fn blob(&self, digest: Digest) -> Result<File, LayoutError> {
        let path = self.path(digest);
        regular_file::open(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => LayoutError::Missing { digest, path: self.root.clone() },
            _ => LayoutError::Io { what: "read", path, source },
        })
    }

    /// Holds a blob against its descriptor, without keeping it in memory.
    pub fn check(&self, descriptor: &Descriptor) -> Result<(), LayoutError> {
        let mut file = self.blob(descriptor.digest)?;
        let failed = |source| LayoutError::Io { what: "read", path: self.path(descriptor.digest), source };
        let size = file.metadata().map_err(failed)?.len();
        if size != descriptor.size {
            return Err(tampered(descriptor, format!("{size} bytes, not {}", descriptor.size)));
        }
        let digest = digest_of(&mut file).map_err(failed)?;
        if digest == descriptor.digest { Ok(()) } else { Err(tampered(descriptor, format!("its digest is {digest}"))) }
    }

    /// A blob's bytes, held against its descriptor.
    pub fn read(&self, descriptor: &Descriptor) -> Result<Vec<u8>, LayoutError> {
        let mut bytes = Vec::new();
        let file = self.blob(descriptor.digest)?;
        file.take(MAX_DOCUMENT.min(descriptor.size) + 1).read_to_end(&mut bytes).map_err(|source| LayoutError::Io {
            what: "read",
            path: self.path(descriptor.digest),
            source,
        })?;
        held(descriptor, &bytes)?;
        Ok(bytes)
    }

    /// A manifest or an index, held against its descriptor.
    pub fn document(&self, descriptor: &Descriptor) -> Result<Document, LayoutError> {
        let bytes = self.read(descriptor)?;
        Document::parse(&descriptor.media_type, &bytes)
            .map_err(|source| LayoutError::Document { digest: descriptor.digest, source })
    }

    /// Keeps bytes.
    pub fn write(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, LayoutError> {
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(|source| LayoutError::Io { what: "write", path: self.root.clone(), source })?;
        writer.finish(media_type)
    }

    /// Keeps a manifest.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<Descriptor, LayoutError> {
        let written = self.write(crate::manifest::MANIFEST, &manifest.to_bytes())?;
        Ok(Descriptor { artifact_type: Some(manifest.kind().to_owned()), ..written })
    }

    /// A blob on its way.
    pub fn writer(&self) -> Result<BlobWriter, LayoutError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = self.root.join("partial");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("new-{}-{number}", std::process::id()));
        let failed = |source| LayoutError::Io { what: "write", path: path.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        Ok(BlobWriter { layout: self.clone(), path, file, hasher: Hasher::default(), size: 0 })
    }

    /// Takes a file at [`Self::partial`] as a blob. Whoever wrote it held it against the descriptor.
    pub fn take_whole(&self, descriptor: &Descriptor) -> Result<(), LayoutError> {
        let (path, to) = (self.partial(descriptor.digest), self.path(descriptor.digest));
        let failed = |source| LayoutError::Io { what: "write", path: to.clone(), source };
        fs::create_dir_all(self.blobs()).map_err(failed)?;
        fs::rename(&path, &to).map_err(failed)?;
        self.tidy();
        Ok(())
    }

    /// A layout that others read holds nothing but what belongs in it.
    fn tidy(&self) {
        drop(fs::remove_dir(self.root.join("partial")));
    }

    /// The index.
    pub fn index(&self) -> Result<Index, LayoutError> {
        let path = self.root.join(INDEX_FILE);
        let bytes = regular_file::read(&path, MAX_BYTES).map_err(|source| LayoutError::Io {
            what: "read",
            path: path.clone(),
            source,
        })?;
        match Document::parse(INDEX, &bytes) {
            Ok(Document::Index(index)) => Ok(index),
            Ok(Document::Manifest(_)) => {
                Err(LayoutError::NotOne { path: self.root.clone(), why: "its index is a manifest".to_owned() })
            }
            Err(error) => Err(LayoutError::NotOne { path: self.root.clone(), why: format!("`{INDEX_FILE}`: {error}") }),
        }
    }

    /// Changes the index, alone.
    fn change(&self, change: impl FnOnce(&mut Index)) -> Result<(), LayoutError> {
        let failed = |source| LayoutError::Io { what: "write", path: self.root.join(INDEX_FILE), source };
        let folder = File::open(&self.root).map_err(failed)?;
        flock(&folder, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut index = self.index()?;
        change(&mut index);
        let new = self.root.join(format!("{INDEX_FILE}.new"));
        let mut file = File::create(&new).map_err(failed)?;
        file.write_all(&index.to_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, self.root.join(INDEX_FILE)).map_err(failed)
    }

    /// Names a manifest; what had the name before loses it.
    pub fn tag(&self, name: Option<&str>, descriptor: &Descriptor) -> Result<(), LayoutError> {
        self.change(|index| {
            let named = |one: &Descriptor| one.annotation(REF_NAME) == name;
            index.manifests.retain(|one| !(named(one) && (name.is_some() || one.digest == descriptor.digest)));
            let mut entry = descriptor.clone();
            entry.annotations.remove(REF_NAME);
            if let Some(name) = name {
                entry.annotations.insert(REF_NAME.to_owned(), name.to_owned());
            }
            index.manifests.push(entry);
            index.manifests.sort_by(|one, other| {
                let key = |one: &Descriptor| (one.annotation(REF_NAME).map(str::to_owned), one.digest);
                key(one).cmp(&key(other))
            });
        })
    }

    /// The manifest of that name or digest; the only one that is said of nothing else, where none is named.
    pub fn resolve(&self, name: Option<&str>) -> Result<Descriptor, LayoutError> {
        let index = self.index()?;
        let Some(name) = name else {
            let mut own: Vec<&Descriptor> = Vec::new();
            for one in &index.manifests {
                match self.document(one) {
                    Ok(document) if document.subject().is_some() => {}
                    Err(error @ LayoutError::Tampered { .. }) => return Err(error),
                    Ok(_) | Err(_) => own.push(one),
                }
            }
            own.dedup_by_key(|one| one.digest);
            return match own.as_slice() {
                [only] => Ok((*only).clone()),
                _ => Err(LayoutError::WhichOne { path: self.root.clone(), has: names(&index) }),
            };
        };
        let digest = Digest::parse(name).ok();
        let hit = |one: &&Descriptor| Some(one.digest) == digest || one.annotation(REF_NAME) == Some(name);
        index.manifests.iter().find(hit).cloned().ok_or_else(|| LayoutError::NoSuchName {
            path: self.root.clone(),
            name: name.to_owned(),
            has: names(&index),
        })
    }

    /// The manifests of the index that are said of this one, by digest. What cannot be read says nothing: it may be of another package; but
    /// one that was changed may have been said of this one, and is an error.
    pub fn referrers(&self, subject: Digest) -> Result<Vec<(Descriptor, Manifest)>, LayoutError> {
        let mut out: Vec<(Descriptor, Manifest)> = Vec::new();
        for one in self.index()?.manifests {
            if out.iter().any(|(known, _)| known.digest == one.digest) {
                continue;
            }
            match self.document(&one) {
                Ok(Document::Manifest(manifest))
                    if manifest.subject.as_ref().is_some_and(|of| of.digest == subject) =>
                {
                    out.push((one, manifest));
                }
                Err(error @ LayoutError::Tampered { .. }) => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        out.sort_by_key(|(one, _)| one.digest);
        Ok(out)
    }

    /// All blobs below a manifest or index, itself first, each once.
    pub fn closure(&self, top: &Descriptor) -> Result<Vec<Descriptor>, LayoutError> {
        let (mut out, mut open, mut documents) = (vec![top.bare()], vec![top.clone()], 0);
        while let Some(next) = open.pop() {
            documents += 1;
            if documents > MAX_DOCUMENTS {
                return Err(LayoutError::TooDeep(top.digest));
            }
            for part in self.document(&next)?.parts() {
                if out.iter().all(|known| known.digest != part.digest) {
                    out.push(part.bare());
                    if part.is_document() {
                        open.push(part.clone());
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Largest blob that is read into memory.
const MAX_DOCUMENT: u64 = 64 << 20;

/// What stands in [`MARKER`].
pub fn marker() -> Vec<u8> {
    json::to_canonical(&Marker { image_layout_version: "1.0.0".to_owned() }).into_bytes()
}

/// Holds bytes against a descriptor.
pub fn held(descriptor: &Descriptor, bytes: &[u8]) -> Result<(), LayoutError> {
    let (size, digest) = (bytes.len() as u64, Digest::of(bytes));
    if size != descriptor.size {
        return Err(tampered(descriptor, format!("{size} bytes, not {}", descriptor.size)));
    }
    if digest == descriptor.digest { Ok(()) } else { Err(tampered(descriptor, format!("its digest is {digest}"))) }
}

fn tampered(descriptor: &Descriptor, why: String) -> LayoutError {
    LayoutError::Tampered { digest: descriptor.digest, media_type: descriptor.media_type.clone(), why }
}

fn names(index: &Index) -> String {
    let names: Vec<&str> = index.manifests.iter().filter_map(|one| one.annotation(REF_NAME)).take(16).collect();
    let unnamed =
        index.manifests.len() - index.manifests.iter().filter(|one| one.annotation(REF_NAME).is_some()).count();
    match (names.is_empty(), unnamed) {
        (true, 0) => "no manifest".to_owned(),
        (true, unnamed) => format!("{unnamed} manifests without a name"),
        (false, 0) => format!("`{}`", names.join("`, `")),
        (false, unnamed) => format!("`{}` and {unnamed} without a name", names.join("`, `")),
    }
}

/// The digest of what is left of a file.
pub fn digest_of(file: &mut impl Read) -> io::Result<Digest> {
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(length) => hasher.update(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A blob that is being written; it is in the layout once it is finished.
pub struct BlobWriter {
    layout: Layout,
    path: PathBuf,
    file: File,
    hasher: Hasher,
    size: u64,
}

impl BlobWriter {
    /// Puts it in its place.
    pub fn finish(mut self, media_type: &str) -> Result<Descriptor, LayoutError> {
        let digest = std::mem::take(&mut self.hasher).finish();
        let to = self.layout.path(digest);
        let failed = |source| LayoutError::Io { what: "write", path: to.clone(), source };
        fs::create_dir_all(self.layout.blobs()).map_err(failed)?;
        self.file.rewind().map_err(failed)?;
        fs::rename(&self.path, &to).map_err(failed)?;
        self.layout.tidy();
        Ok(Descriptor::new(media_type, digest, self.size))
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..length).unwrap_or_default());
        self.size += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for BlobWriter {
    /// What was not finished leaves nothing; what was, is not there any more under this name.
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{EMPTY, EMPTY_BYTES, MANIFEST};

    fn filled() -> (tempfile::TempDir, Layout, Descriptor) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let config = layout.write(EMPTY, EMPTY_BYTES).unwrap();
        let layer = layout.write("text/plain", b"content").unwrap();
        let manifest = layout.write_manifest(&Manifest::artifact("application/x", config, vec![layer])).unwrap();
        layout.tag(Some("one"), &manifest).unwrap();
        (folder, layout, manifest)
    }

    #[test]
    fn manifests_are_found_by_name_digest_and_alone() {
        let (_folder, layout, manifest) = filled();
        for name in [Some("one"), None, Some(manifest.digest.to_string().as_str())] {
            assert_eq!(layout.resolve(name).unwrap().digest, manifest.digest);
        }
        assert!(matches!(layout.resolve(Some("two")), Err(LayoutError::NoSuchName { .. })));
        layout.tag(Some("two"), &manifest).unwrap();
        assert_eq!(layout.resolve(None).unwrap().digest, manifest.digest);
        let mut about = Manifest::artifact("application/y", layout.write(EMPTY, EMPTY_BYTES).unwrap(), Vec::new());
        about.subject = Some(manifest.bare());
        let about = layout.write_manifest(&about).unwrap();
        layout.tag(None, &about).unwrap();
        layout.tag(None, &about).unwrap();
        assert_eq!(layout.index().unwrap().manifests.len(), 3);
        assert_eq!(layout.referrers(manifest.digest).unwrap().len(), 1);
        assert_eq!(layout.resolve(None).unwrap().digest, manifest.digest);
        assert!(!layout.root().join("partial").exists());
    }

    #[test]
    fn one_byte_of_any_blob_is_told() {
        let (_folder, layout, manifest) = filled();
        let all = layout.closure(&manifest).unwrap();
        assert_eq!(all.len(), 3);
        for one in &all {
            layout.check(one).unwrap();
            let path = layout.path(one.digest);
            let good = fs::read(&path).unwrap();
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, &bad).unwrap();
                assert!(matches!(layout.check(one), Err(LayoutError::Tampered { .. })));
                assert!(layout.read(one).is_err());
            }
            fs::write(&path, &good).unwrap();
        }
        fs::remove_file(layout.path(all[1].digest)).unwrap();
        assert!(matches!(layout.check(&all[1]), Err(LayoutError::Missing { .. })));
        assert_eq!(Descriptor::of(MANIFEST, b"").size, 0);
    }

    #[test]
    fn a_layout_of_another_version_is_none() {
        let (folder, layout, _) = filled();
        fs::write(folder.path().join(MARKER), br#"{"imageLayoutVersion":"2.0.0"}"#).unwrap();
        assert!(Layout::open(layout.root()).is_err());
        assert!(Layout::open(&folder.path().join("none")).is_err());
    }
}
