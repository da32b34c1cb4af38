//! Layers: files as a tar archive in gzip, with nothing of the machine or the moment in it (R64).
//!
//! Owns packing and unpacking. Refuses, on the way in, links and whatever is no plain file; on the way out, paths that lead out of the
//! folder, links, devices, and more than a package may hold. Invariant: the same files give the same bytes, wherever and whenever they are
//! packed, and nothing is written outside of the folder that is given. Page: `spec/package.md`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};
use writ_core::{Hasher, regular_file};

use crate::layout::{Layout, LayoutError};
use crate::manifest::Descriptor;

/// What a package holds at most, unpacked.
pub const MAX_BYTES: u64 = 8 << 30;
/// Most files in it.
pub const MAX_FILES: usize = 200_000;
/// Largest file whose text is read.
const MAX_TEXT: u64 = 4 << 20;
/// Deepest path.
const MAX_DEPTH: usize = 64;

/// What has a layer of its own, and lies beside the files of the others.
pub const OWN: [&str; 2] = ["Agentfile", "agentrc.lock"];

/// Files by their paths in the archive.
pub type Files = BTreeMap<String, PathBuf>;

/// Why files cannot be packed, or a layer not be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
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
    /// Something that is no plain file.
    #[error("{} is {what}: a package holds plain files; put the file itself there, or leave it out", path.display())]
    NotPlain {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A name that an archive cannot hold.
    #[error("`{0}` cannot be a path in a package: it has to be UTF-8, relative, without `..`, and at most 255 bytes")]
    Path(String),
    /// Too much.
    #[error("more than a package may hold ({MAX_FILES} files, {MAX_BYTES} bytes unpacked)")]
    TooMuch,
    /// The archive.
    #[error("the layer {digest} cannot be unpacked: {why}")]
    Archive {
        /// Which.
        digest: String,
        /// Why.
        why: String,
    },
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// The files below a folder, or a file by itself, by paths relative to `root`. What `leave` says is left out.
pub fn gather(root: &Path, below: &Path, leave: &dyn Fn(&Path) -> bool) -> Result<Files, LayerError> {
    let mut files = Files::new();
    let mut open = vec![below.to_owned()];
    while let Some(next) = open.pop() {
        if leave(&next) {
            continue;
        }
        let failed = |source| LayerError::Io { what: "read", path: next.clone(), source };
        let kind = next.symlink_metadata().map_err(failed)?.file_type();
        if kind.is_dir() {
            for entry in fs::read_dir(&next).map_err(failed)? {
                open.push(entry.map_err(failed)?.path());
            }
        } else if kind.is_file() {
            files.insert(path_in(root, &next)?, next);
        } else {
            let what = if kind.is_symlink() { "a symbolic link" } else { "no plain file" };
            return Err(LayerError::NotPlain { path: next, what });
        }
        if files.len() > MAX_FILES {
            return Err(LayerError::TooMuch);
        }
    }
    Ok(files)
}

/// A file's path in an archive.
fn path_in(root: &Path, file: &Path) -> Result<String, LayerError> {
    let wrong = || LayerError::Path(file.display().to_string());
    let relative = file.strip_prefix(root).map_err(|_outside| wrong())?;
    let text = relative.to_str().filter(|text| is_plain(text)).ok_or_else(wrong)?;
    Ok(text.to_owned())
}

/// Whether a path is names joined by `/`, none of which leads up or shows as another.
pub fn is_plain(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let named = |part: &&str| !part.is_empty() && *part != "." && *part != "..";
    let visible = writ_core::visible::line(path) == path;
    path.len() <= 255 && parts.len() <= MAX_DEPTH && visible && !path.contains('\\') && parts.iter().all(named)
}

/// The header of a plain file: user and group 0, no names of them, modified at 0; of its mode, whether it may be run.
pub fn header(path: &str, size: u64, run: bool) -> Result<Header, LayerError> {
    let mut header = Header::new_ustar();
    header.set_path(path).map_err(|_too_long| LayerError::Path(path.to_owned()))?;
    header.set_entry_type(EntryType::Regular);
    header.set_mode(if run { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    Ok(header)
}

/// A gzip stream that says nothing of when and where.
pub fn gzip<W: Write>(to: W) -> GzEncoder<W> {
    GzBuilder::new().mtime(0).write(to, Compression::new(6))
}

/// Packs files into a layer.
pub fn pack(layout: &Layout, media_type: &str, files: &Files) -> Result<Descriptor, LayerError> {
    let mut tar = tar::Builder::new(gzip(layout.writer()?));
    for (name, path) in files {
        let failed = |source| LayerError::Io { what: "read", path: path.clone(), source };
        let file = regular_file::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let header = header(name, found.len(), found.permissions().mode() & 0o100 != 0)?;
        // One that grows meanwhile is cut, one that shrinks is told.
        let mut taken = Counted { inner: file.take(found.len()), left: found.len() };
        tar.append(&header, &mut taken).map_err(failed)?;
        if taken.left > 0 {
            return Err(failed(io::Error::other("it became shorter while it was packed")));
        }
    }
    let written = |source| LayerError::Io { what: "write", path: layout.root().to_owned(), source };
    let gzip = tar.into_inner().map_err(written)?;
    Ok(gzip.finish().map_err(written)?.finish(media_type)?)
}

struct Counted<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(to)?;
        self.left = self.left.saturating_sub(length as u64);
        Ok(length)
    }
}

/// What may still be unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    bytes: u64,
    files: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: MAX_BYTES, files: MAX_FILES }
    }
}

/// Unpacks a layer below a folder; a file that another layer put there is an error. The folder holds no links, so none is followed.
pub fn unpack(layout: &Layout, layer: &Descriptor, folder: &Path, budget: &mut Budget) -> Result<(), LayerError> {
    read_layer(layout, layer, budget, |path, run, content| {
        let to = folder.join(path);
        let failed = |source| LayerError::Io { what: "write", path: to.clone(), source };
        fs::create_dir_all(to.parent().unwrap_or(folder)).map_err(failed)?;
        let mode = if run { 0o755 } else { 0o644 };
        let mut file = File::options().write(true).create_new(true).mode(mode).open(&to).map_err(failed)?;
        io::copy(content, &mut file).map_err(failed)?;
        Ok(())
    })
}

/// The digests of a layer's files by their paths, and how long each is. Texts that are `wanted` are read.
pub fn list(
    layout: &Layout,
    layer: &Descriptor,
    budget: &mut Budget,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, Entry>, LayerError> {
    let mut out = BTreeMap::new();
    let archive = |why: String| LayerError::Archive { digest: layer.digest.to_string(), why };
    read_layer(layout, layer, budget, |path, run, content| {
        let mut hashed = Hashed { inner: content, hasher: Hasher::default(), size: 0 };
        let mut text = wanted(path).then(Vec::new);
        match &mut text {
            Some(text) => (&mut hashed).take(MAX_TEXT + 1).read_to_end(text).map(|_| ()),
            None => io::copy(&mut hashed, &mut io::sink()).map(|_| ()),
        }
        .map_err(|error| archive(error.to_string()))?;
        if hashed.size > MAX_TEXT && text.is_some() {
            return Err(archive(format!("`{path}` is larger than {MAX_TEXT} bytes")));
        }
        let entry = Entry { digest: hashed.hasher.finish(), size: hashed.size, run, text };
        out.insert(path.to_owned(), entry);
        Ok(())
    })?;
    Ok(out)
}

/// A file in a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its content's digest.
    pub digest: writ_core::Digest,
    /// How long it is.
    pub size: u64,
    /// Whether it may be run.
    pub run: bool,
    /// What it says, where that was wanted.
    pub text: Option<Vec<u8>>,
}

struct Hashed<R> {
    inner: R,
    hasher: Hasher,
    size: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(to)?;
        self.hasher.update(to.get(..length).unwrap_or_default());
        self.size += length as u64;
        Ok(length)
    }
}

/// What takes a file of a layer: its path, whether it may be run, its content.
type Taker<'a> = dyn FnMut(&str, bool, &mut dyn Read) -> Result<(), LayerError> + 'a;

fn read_layer(
    layout: &Layout,
    layer: &Descriptor,
    budget: &mut Budget,
    mut take: impl FnMut(&str, bool, &mut dyn Read) -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let wrong = |why: String| LayerError::Archive { digest: layer.digest.to_string(), why };
    // Held against its digest once more: it may have changed since it was checked.
    let mut hashed = Hashed { inner: layout.blob(layer.digest)?, hasher: Hasher::default(), size: 0 };
    read_archive(&mut hashed, budget, &mut take, &wrong)?;
    io::copy(&mut hashed, &mut io::sink()).map_err(|error| wrong(error.to_string()))?;
    let digest = hashed.hasher.finish();
    if digest == layer.digest { Ok(()) } else { Err(wrong(format!("it is {digest} now"))) }
}

fn read_archive(
    packed: &mut dyn Read,
    budget: &mut Budget,
    take: &mut Taker<'_>,
    wrong: &dyn Fn(String) -> LayerError,
) -> Result<(), LayerError> {
    let unzipped = MultiGzDecoder::new(io::BufReader::with_capacity(1 << 18, packed));
    let mut archive = tar::Archive::new(unzipped.take(MAX_BYTES));
    let told = |error: io::Error| wrong(error.to_string());
    let mut seen = std::collections::BTreeSet::new();
    for entry in archive.entries().map_err(told)? {
        let mut entry = entry.map_err(told)?;
        let path = entry.path().map_err(told)?.into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            // Nothing is made of it; to others it may lead elsewhere.
            let folder = path.to_str().map(|text| text.trim_end_matches('/'));
            if !folder.is_some_and(|text| matches!(text, "." | "") || is_plain(text.trim_start_matches("./"))) {
                return Err(wrong(format!("`{}` is no path below a folder", path.display())));
            }
            continue;
        }
        let named = path.to_str().filter(|text| is_plain(text) && only_names(&path));
        let Some(named) = named.map(str::to_owned) else {
            return Err(wrong(format!("`{}` is no path below a folder", path.display())));
        };
        if !kind.is_file() {
            return Err(wrong(format!("`{named}` is a link, a device or a sparse file")));
        }
        if !seen.insert(named.clone()) {
            return Err(wrong(format!("it holds `{named}` twice")));
        }
        let size = entry.size();
        let run = match entry.header().mode().map_err(told)? {
            0o644 => false,
            0o755 => true,
            other => return Err(wrong(format!("`{named}` has mode {other:o}, and not 644 or 755"))),
        };
        let left = (budget.bytes.checked_sub(size), budget.files.checked_sub(1));
        let (Some(bytes), Some(files)) = left else { return Err(LayerError::TooMuch) };
        *budget = Budget { bytes, files };
        take(&named, run, &mut entry)?;
    }
    // Read to its end, where its checksum is; other readers may find more files behind the first end.
    let (mut rest, mut piece) = (archive.into_inner(), [0; 1 << 12]);
    loop {
        match rest.read(&mut piece).map_err(told)? {
            0 => return Ok(()),
            some if piece.iter().take(some).all(|byte| *byte == 0) => {}
            _ => return Err(wrong("there is something behind the archive's end".to_owned())),
        }
    }
}

fn only_names(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("layout")).unwrap();
        (folder, layout)
    }

    fn tree(folder: &Path, mode: u32) -> PathBuf {
        let root = folder.join(format!("tree-{mode:o}"));
        fs::create_dir_all(root.join("skills/review")).unwrap();
        fs::write(root.join("skills/review/SKILL.md"), "# Review\n").unwrap();
        fs::write(root.join("run.sh"), "true\n").unwrap();
        fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(mode)).unwrap();
        root
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_come_back() {
        let (folder, layout) = layout();
        let digests: Vec<_> = [0o755, 0o700]
            .into_iter()
            .map(|mode| {
                let root = tree(folder.path(), mode);
                let files = gather(&root, &root, &|_| false).unwrap();
                pack(&layout, "application/x", &files).unwrap()
            })
            .collect();
        assert_eq!(digests[0], digests[1]);
        let to = folder.path().join("out");
        unpack(&layout, &digests[0], &to, &mut Budget::default()).unwrap();
        assert_eq!(fs::read_to_string(to.join("skills/review/SKILL.md")).unwrap(), "# Review\n");
        assert_eq!(fs::metadata(to.join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
        // A second time, the files are there.
        assert!(unpack(&layout, &digests[0], &to, &mut Budget::default()).is_err());
        let listed = list(&layout, &digests[0], &mut Budget::default(), &|_| false).unwrap();
        assert_eq!(listed["run.sh"].size, 5);
        let mut little = Budget { bytes: 6, files: 9 };
        assert!(matches!(list(&layout, &digests[0], &mut little, &|_| false), Err(LayerError::TooMuch)));
    }

    /// Other readers may stop earlier, or go on.
    #[test]
    fn a_layer_ends_where_its_archive_does() {
        let (folder, layout) = layout();
        let root = tree(folder.path(), 0o755);
        let good = pack(&layout, "application/x", &gather(&root, &root, &|_| false).unwrap()).unwrap();
        let whole = layout.read(&good).unwrap();
        let again = |bytes: &[u8]| {
            let layer = layout.write("application/x", bytes).unwrap();
            list(&layout, &layer, &mut Budget::default(), &|_| false).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(again(&whole), Ok(()));
        let mut other = whole.clone();
        let checksum = other.len() - 8;
        other[checksum] ^= 1;
        for bad in [
            whole[..whole.len() - 4].to_vec(),
            other,
            [whole.as_slice(), b"more"].concat(),
            [whole.as_slice(), &whole].concat(),
        ] {
            assert!(again(&bad).is_err(), "{} bytes", bad.len());
        }
    }

    #[test]
    fn links_are_not_packed() {
        let (folder, _) = layout();
        let root = tree(folder.path(), 0o755);
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        assert!(matches!(gather(&root, &root, &|_| false), Err(LayerError::NotPlain { .. })));
        assert!(gather(&root, &root, &|path| path.ends_with("link")).is_ok());
    }

    #[test]
    fn what_leads_out_is_not_unpacked() {
        let (folder, layout) = layout();
        let evil = |change: &dyn Fn(&mut Header)| {
            let mut header = header("fine", 1, false).unwrap();
            change(&mut header);
            header.set_cksum();
            let mut tar = tar::Builder::new(gzip(layout.writer().unwrap()));
            tar.append(&header, &b"x"[..]).unwrap();
            tar.into_inner().unwrap().finish().unwrap().finish("application/x").unwrap()
        };
        let named = |name: &'static [u8]| {
            move |header: &mut Header| {
                let bytes = header.as_mut_bytes();
                bytes[..100].fill(0);
                bytes[..name.len()].copy_from_slice(name);
            }
        };
        let to = folder.path().join("out");
        for layer in [
            evil(&named(b"../outside")),
            evil(&named(b"/tmp/outside")),
            evil(&named(b"a/../../outside")),
            evil(&named(b"a\\b")),
            evil(&|header| header.set_entry_type(EntryType::Symlink)),
            evil(&|header| header.set_entry_type(EntryType::Link)),
            evil(&|header| header.set_entry_type(EntryType::Char)),
            evil(&|header| header.set_entry_type(EntryType::Fifo)),
            evil(&|header| header.set_size(1 << 40)),
        ] {
            assert!(unpack(&layout, &layer, &to, &mut Budget::default()).is_err());
        }
        assert!(!folder.path().join("outside").exists());
        unpack(&layout, &evil(&|_| {}), &to, &mut Budget::default()).unwrap();
    }
}
