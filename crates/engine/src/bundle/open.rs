//! Opening a bundle: each byte held against what the manifest makes of it, and the files laid out to be verified.
//!
//! Owns the reading. Refuses any archive but the one that the manifest makes, and any path that leads out of the folder. Invariant:
//! nothing is laid out under a name that is not in the manifest, and memory does not grow with the bundle.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use writ_core::json::{self, Limits, Loose};
use writ_core::{Hasher, regular_file, visible};

use super::archive::{BLOCK, END, header, padding, size};
use super::places::{self, CHECKPOINTS, LEDGER};
use super::{
    BundleError, Entry, FORMAT, Hex, MANIFEST, MAX_BYTES, MAX_FILES, MAX_MANIFEST, MAX_NOTES, MAX_NUMBER,
    MAX_SIGNATURE, MAX_SINGLE, Manifest, SIGNATURE, TRANSCRIPTS, Transcript, VERSION, io_error,
};

/// Read at once.
const PIECE: usize = 1 << 18;

/// A bundle that is laid out.
#[derive(Debug)]
pub struct Opened {
    /// Where its files are.
    pub folder: PathBuf,
    /// What it says it holds.
    pub manifest: Manifest,
    /// The manifest's own bytes.
    pub text: Vec<u8>,
    /// What signs them, as Base64.
    pub signature: String,
}

/// Opens a bundle and lays its files out in `folder`, which is empty.
pub fn open(path: &Path, folder: &Path, progress: Option<fn(u64, u64)>) -> Result<Opened, BundleError> {
    let file = regular_file::open(path).map_err(|source| io_error("read", path, source))?;
    let all = file.metadata().map_err(|source| io_error("read", path, source))?.len();
    let mut archive = Archive { path, reader: BufReader::with_capacity(PIECE, file), at: 0, all, progress };
    let (manifest, text) = archive.manifest()?;
    let signature = archive.signature()?;
    for entry in &manifest.files {
        let next = header(&entry.path, entry.size).map_err(|error| archive.broken(&error.to_string()))?;
        archive.expect(&next, "it is not the header of the file that the manifest lists next")?;
        archive.lay_out(entry, folder)?;
        archive.expect(padding(entry.size), "a file is not padded with zeros")?;
    }
    archive.expect(&END, "it does not end where its manifest says")?;
    if archive.at != all {
        return Err(archive.broken("something follows its end"));
    }
    Ok(Opened { folder: folder.to_owned(), manifest, text, signature })
}

/// What says that a manifest is one of this version; the rest of it is read once that is known.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Loose<String>,
    #[serde(default)]
    version: Loose<u64>,
}

/// An archive on its way to its end.
struct Archive<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    at: u64,
    all: u64,
    progress: Option<fn(u64, u64)>,
}

impl Archive<'_> {
    fn manifest(&mut self) -> Result<(Manifest, Vec<u8>), BundleError> {
        let not_one = |why: &str| BundleError::NotOne { path: self.path.to_owned(), why: why.to_owned() };
        let mut block = [0; BLOCK];
        if self.all < BLOCK as u64 {
            return Err(not_one("it is too short"));
        }
        self.read(&mut block)?;
        let size = size(&block).filter(|size| *size <= MAX_MANIFEST);
        let not_one = |why: &str| BundleError::NotOne { path: self.path.to_owned(), why: why.to_owned() };
        let size = size.ok_or_else(|| not_one("it does not begin as an archive, or its manifest is too long"))?;
        if block != header(MANIFEST, size)? {
            return Err(not_one("it does not begin with a manifest"));
        }
        let mut text = vec![0; usize::try_from(size).unwrap_or_default()];
        self.read(&mut text)?;
        self.expect(padding(size), "the manifest is not padded with zeros")?;
        let limits = Limits { bytes: text.len(), ..Limits::FOREIGN };
        let head: Head = json::from_slice_with(&text, limits)
            .map_err(|source| BundleError::Manifest { path: self.path.to_owned(), source })?;
        let format = head.format.0.unwrap_or_default();
        if format != FORMAT {
            return Err(not_one(&format!("its format is `{}`", visible::line(&format))));
        }
        if head.version.0 != Some(VERSION.into()) {
            return Err(not_one(&format!("it is of another version than {VERSION}, which this Writ reads")));
        }
        let manifest: Manifest =
            json::from_slice_with(&text, limits).map_err(|error| self.broken(&format!("its manifest: {error}")))?;
        self.check(&manifest, &text)?;
        Ok((manifest, text))
    }

    fn signature(&mut self) -> Result<String, BundleError> {
        let mut block = [0; BLOCK];
        self.read(&mut block)?;
        let length = size(&block).filter(|length| *length <= MAX_SIGNATURE).unwrap_or_default();
        if block != header(SIGNATURE, length)? {
            return Err(self.broken("the manifest's signature does not follow it"));
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
        self.read(&mut text)?;
        self.expect(padding(length), "the signature is not padded with zeros")?;
        let text = String::from_utf8(text).ok().and_then(|text| Some(text.strip_suffix('\n')?.to_owned()));
        text.ok_or_else(|| self.broken("the manifest's signature is no text"))
    }

    fn check(&self, manifest: &Manifest, text: &[u8]) -> Result<(), BundleError> {
        let Manifest { files, transcripts, .. } = manifest;
        let held = files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size));
        let elsewhere = |transcript: &&Transcript| match &transcript.path {
            Some(path) => !path.strip_prefix(TRANSCRIPTS).is_some_and(|rest| rest.starts_with('/')),
            None => !transcript.masked.is_empty(),
        };
        let crossed = places::crossed(files);
        let countable = |transcript: &Transcript| {
            let lines = transcript.masked.iter().flat_map(|(line, _, length)| [*line, *length]);
            lines.chain([transcript.size]).all(|number| number < MAX_NUMBER)
        };
        let reserved = |file: &&Entry| [MANIFEST, SIGNATURE].contains(&file.path.as_str()) || !is_plain(&file.path);
        let longest = |path: &str| match path {
            LEDGER => u64::MAX,
            CHECKPOINTS => MAX_NOTES,
            _ if places::is_transcript(path) => u64::MAX,
            _ => MAX_SINGLE,
        };
        let large = |file: &&Entry| file.size > longest(&file.path);
        let why = if !manifest.is_written(text) {
            "its manifest is not in canonical form".to_owned()
        } else if files.len() > MAX_FILES || held > MAX_BYTES || !transcripts.iter().all(countable) {
            "it holds more than a bundle may".to_owned()
        } else if !files.is_sorted_by(|one, next| one.path < next.path) {
            "its files are not sorted by their paths".to_owned()
        } else if !files.iter().any(|file| file.path == LEDGER) {
            format!("it holds no `{LEDGER}`")
        } else if let Some(path) = crossed {
            format!("`{}` is a file and a folder", visible::line(path))
        } else if let Some(file) = files.iter().find(reserved) {
            format!("`{}` is no path below it", visible::line(&file.path))
        } else if let Some(file) = files.iter().find(large) {
            format!("`{}` is longer than {} bytes", visible::line(&file.path), longest(&file.path))
        } else if let Some(transcript) = transcripts.iter().find(elsewhere) {
            format!("a transcript lies at `{}`", visible::line(transcript.path.as_deref().unwrap_or("no path")))
        } else {
            return Ok(());
        };
        Err(self.broken(&why))
    }

    fn lay_out(&mut self, entry: &Entry, folder: &Path) -> Result<(), BundleError> {
        let to = folder.join(&entry.path);
        let failed = |source| io_error("write", &to, source);
        fs::create_dir_all(to.parent().unwrap_or(folder)).map_err(failed)?;
        let mut file = File::create_new(&to).map_err(failed)?;
        let (mut left, mut hasher, mut piece) = (entry.size, Hasher::default(), vec![0; PIECE]);
        while left > 0 {
            let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let part = piece.get_mut(..length).unwrap_or_default();
            self.read(part)?;
            hasher.update(part);
            // A file that is a hole where it came from takes no room here either.
            if part.iter().all(|byte| *byte == 0) {
                file.seek(SeekFrom::Current(i64::try_from(length).unwrap_or_default())).map_err(failed)?;
            } else {
                file.write_all(part).map_err(failed)?;
            }
            left -= length as u64;
            self.progress.into_iter().for_each(|progress| progress(self.at, self.all));
        }
        file.set_len(entry.size).map_err(failed)?;
        if Hex(hasher.finish()) == entry.sha256 {
            return Ok(());
        }
        Err(self.broken(&format!("`{}` is not what the manifest says", entry.path)))
    }

    fn expect(&mut self, bytes: &[u8], why: &str) -> Result<(), BundleError> {
        let mut found = vec![0; bytes.len()];
        let at = self.at;
        self.read(&mut found)?;
        if found == bytes {
            return Ok(());
        }
        self.at = at;
        Err(self.broken(why))
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), BundleError> {
        if self.all.saturating_sub(self.at) < bytes.len() as u64 {
            return Err(self.broken("it ends too early"));
        }
        self.reader.read_exact(bytes).map_err(|source| io_error("read", self.path, source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn broken(&self, why: &str) -> BundleError {
        BundleError::Broken { path: self.path.to_owned(), at: self.at, why: why.to_owned() }
    }
}

/// Whether a path is names joined by `/`, none of which leads up.
fn is_plain(path: &str) -> bool {
    let named = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let joined = Path::new(path).components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>();
    named && joined.join("/") == path && !path.contains('\0')
}
