//! Making a bundle: what belongs to the record, listed and then written.
//!
//! Owns the choice of files. Refuses to take what is Writ's own bookkeeping, and folders that it does not know: what is in a bundle leaves
//! the machine. Invariant: the ledger and its checkpoints are of one moment, and each file is written as it was listed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use writ_core::{Digest, Hasher, SessionId, regular_file};
use writ_evidence::keys::SigningKey;
use writ_store::Store;

use super::archive::{END, header, padding};
use super::named;
use super::places::{BY_DIGEST, CHECKPOINTS, LEDGER, SINGLE};
use super::transcripts::{self, Taken};
use super::{BundleError, Entry, FORMAT, Hex, MANIFEST, Manifest, SIGNATURE, VERSION, io_error, signed_words};
use crate::turns;

/// Read and written at once.
const PIECE: usize = 1 << 18;

/// Most bytes of checkpoints that are looked through.
const MOST_NOTES: u64 = 1 << 28;

/// How to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    /// Whether the text of transcripts goes along, with secrets masked.
    pub transcripts: bool,
    /// Told now and then how many of how many bytes are written.
    pub progress: Option<fn(u64, u64)>,
}

/// A bundle that was made.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    /// Of its bytes.
    pub digest: Digest,
    /// Its length.
    pub bytes: u64,
    /// How many files it has beside its manifest.
    pub files: usize,
    /// How many lines of transcripts had a secret masked.
    pub masked: u64,
    /// How many transcripts are left out.
    pub left_out: usize,
}

/// What a file of the bundle is made from: so many bytes of a file here.
struct Source {
    from: PathBuf,
    size: u64,
}

/// Writes the bundle of a session. `scratch` is an empty folder for what is masked.
pub fn export(
    store: &Store,
    id: &SessionId,
    options: ExportOptions,
    scratch: &Path,
    out: &mut impl Write,
) -> Result<Exported, BundleError> {
    if !store.exists(id) {
        return Err(BundleError::NoSession { session: id.to_string() });
    }
    let folder = store.folder(id);
    let mut sources = at_one_moment(store, id)?;
    by_digest(&folder, &mut sources)?;
    let length = sources.get(LEDGER).map_or(0, |ledger| ledger.size);
    let mut told = Vec::new();
    for (number, (client, main)) in transcripts::mains(&folder.join(LEDGER), length)?.into_iter().enumerate() {
        for Taken { transcript, from, beside } in
            transcripts::take(number, client, &main, options.transcripts.then_some(scratch))?
        {
            for (path, from, size) in from.into_iter().chain(beside) {
                sources.insert(path, Source { from, size });
            }
            told.push(transcript);
        }
    }
    let mut files = sources.iter().map(|(path, source)| listed(path, source)).collect::<Result<Vec<_>, _>>()?;
    let unnamed = named::unnamed(&folder, &files).map_err(|source| io_error("read", &folder, source))?;
    let unnamed: Vec<String> = unnamed.into_iter().map(str::to_owned).collect();
    files.retain(|file| !unnamed.contains(&file.path));
    let masked = told.iter().map(|transcript| transcript.masked.len() as u64).sum();
    let left_out = told.iter().filter(|transcript| transcript.path.is_none()).count();
    let manifest =
        Manifest { format: FORMAT.to_owned(), version: VERSION, session: id.to_string(), files, transcripts: told };
    let key = store.held_ledger_key()?.ok_or(BundleError::NoKey)?;
    let (digest, bytes) = write(&manifest, &key, &sources, options.progress, out)?;
    Ok(Exported { digest, bytes, files: manifest.files.len(), masked, left_out })
}

/// The ledger and what is signed of it, as they are while nobody writes to them. The last checkpoint that was signed here is among them: a
/// bundle signs for what it holds.
fn at_one_moment(store: &Store, id: &SessionId) -> Result<BTreeMap<String, Source>, BundleError> {
    let folder = store.folder(id);
    let path = folder.join(LEDGER);
    let ledger = regular_file::open(&path).map_err(|source| io_error("read", &path, source))?;
    ledger.lock_shared().map_err(|source| io_error("lock", &path, source))?;
    let mut sources = BTreeMap::new();
    for name in SINGLE {
        let from = folder.join(name);
        match fs::metadata(&from) {
            Ok(found) => drop(sources.insert(name.to_owned(), Source { from, size: found.len() })),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(io_error("read", &from, source)),
        }
    }
    if let Some(head) = store.head(id)? {
        let path = folder.join(CHECKPOINTS);
        let notes = match regular_file::read(&path, MOST_NOTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            notes => notes.map_err(|source| io_error("read", &path, source))?,
        };
        if head.is_empty() || !notes.windows(head.len()).any(|note| note == head) {
            return Err(BundleError::Older { session: id.to_string() });
        }
    }
    Ok(sources)
}

/// What may be named by digest. A crash, or somebody, may have left more there than rows lead to.
fn by_digest(folder: &Path, sources: &mut BTreeMap<String, Source>) -> Result<(), BundleError> {
    for (kind, ending) in BY_DIGEST {
        let inside = folder.join(kind);
        let entries = match fs::read_dir(&inside) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(|source| io_error("read", &inside, source))?,
        };
        for entry in entries {
            let entry = entry.map_err(|source| io_error("read", &inside, source))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let found = entry.metadata().map_err(|source| io_error("read", &entry.path(), source))?;
            let stem = name.strip_suffix(ending);
            // A turn's statement has its own name, and a row that names its digest.
            let own = stem.is_some_and(|stem| Digest::from_hex(stem).is_ok() || kind == turns::FOLDER);
            if found.is_file() && own {
                sources.insert(format!("{kind}/{name}"), Source { from: entry.path(), size: found.len() });
            }
        }
    }
    Ok(())
}

fn listed(path: &str, source: &Source) -> Result<Entry, BundleError> {
    let digest = copied(source, &mut |_piece| Ok(()))?;
    Ok(Entry { path: path.to_owned(), size: source.size, sha256: Hex(digest) })
}

fn write(
    manifest: &Manifest,
    key: &SigningKey,
    sources: &BTreeMap<String, Source>,
    progress: Option<fn(u64, u64)>,
    out: &mut impl Write,
) -> Result<(Digest, u64), BundleError> {
    let text: String = manifest.parts().collect();
    let all: u64 = sources.values().map(|source| source.size).sum::<u64>() + text.len() as u64;
    let mut out = Counted { out, hasher: Hasher::default(), bytes: 0 };
    let signature = BASE64.encode(key.sign(signed_words(text.as_bytes()).as_bytes())?) + "\n";
    for (name, text) in [(MANIFEST, &text), (SIGNATURE, &signature)] {
        out.put(&header(name, text.len() as u64)?)?;
        out.put(text.as_bytes())?;
        out.put(padding(text.len() as u64))?;
    }
    for Entry { path, size, sha256 } in &manifest.files {
        out.put(&header(path, *size)?)?;
        let Some(source) = sources.get(path) else { continue };
        let digest = copied(source, &mut |piece| {
            out.put(piece)?;
            progress.into_iter().for_each(|progress| progress(out.bytes.min(all), all));
            Ok(())
        })?;
        if Hex(digest) != *sha256 {
            return Err(BundleError::Changed { path: source.from.clone() });
        }
        out.put(padding(*size))?;
    }
    out.put(&END)?;
    Ok((out.hasher.finish(), out.bytes))
}

/// Gives so many bytes of a file, piece by piece, and returns their digest.
fn copied(source: &Source, take: &mut dyn FnMut(&[u8]) -> Result<(), BundleError>) -> Result<Digest, BundleError> {
    let failed = |error| io_error("read", &source.from, error);
    let mut file: io::Take<File> = regular_file::open(&source.from).map_err(failed)?.take(source.size);
    let (mut hasher, mut piece) = (Hasher::default(), vec![0; PIECE]);
    loop {
        let length = file.read(&mut piece).map_err(failed)?;
        let read = piece.get(..length).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        hasher.update(read);
        take(read)?;
    }
    if file.limit() > 0 { Err(BundleError::Changed { path: source.from.clone() }) } else { Ok(hasher.finish()) }
}

/// What is written, with its digest.
struct Counted<'a, W> {
    out: &'a mut W,
    hasher: Hasher,
    bytes: u64,
}

impl<W: Write> Counted<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        self.out.write_all(bytes).map_err(|source| io_error("write", Path::new("the bundle"), source))?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}
