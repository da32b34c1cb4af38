//! Blobs on their way: each goes on where it stopped.
//!
//! Downloads go to the layout's folder of blobs that are not whole yet, and are asked for from there on. Uploads go in pieces; how far one
//! has got is kept, so that the next process goes on behind the last whole piece. A blob that is there is not sent.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use writ_core::json;
use writ_core::{Digest, Hasher, regular_file};
use writ_package::{Descriptor, Layout, LayoutError, Reference};

use super::error::RegistryError;
use super::http::{Answer, header, network};
use super::{Place, Registry, Use, Watch, unexpected, with};

/// A blob up to this size is sent at once.
const ONCE: u64 = 32 << 20;
/// Others are sent in pieces of this size.
const PIECE: u64 = 32 << 20;
/// Moved at once.
const BUFFER: usize = 1 << 18;
/// Most hops from a registry to where it keeps a blob.
const MAX_HOPS: usize = 4;
/// How often a download that breaks off is taken up again without getting any further.
const TRIES: usize = 3;

/// How far an upload has got.
#[derive(Debug, Serialize, Deserialize)]
struct Session {
    location: String,
    offset: u64,
}

/// A failure on the way of a download.
enum Broke {
    /// Ends it.
    For(RegistryError),
    /// It broke off, and may go on.
    Off(RegistryError),
}

impl Registry {
    /// Fetches a blob into a layout; how many bytes came.
    pub(super) fn fetch_blob(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        layout: &Layout,
        watch: &Watch,
    ) -> Result<u64, RegistryError> {
        if layout.has(blob) {
            match layout.check(blob) {
                Ok(()) => {
                    watch.add(blob.size);
                    return Ok(0);
                }
                // What is there is not it, and what is fetched will be.
                Err(LayoutError::Tampered { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let path = layout.partial(blob.digest);
        let failed = |source| RegistryError::File { path: path.clone(), source };
        fs::create_dir_all(path.parent().unwrap_or(layout.root())).map_err(failed)?;
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        // One process at a time; the others find it whole.
        flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        if layout.has(blob) && layout.check(blob).is_ok() {
            watch.add(blob.size);
            return Ok(0);
        }
        let mut have = file.metadata().map_err(failed)?.len();
        if have > blob.size {
            file.set_len(0).map_err(failed)?;
            have = 0;
        }
        let mut hasher = Hasher::default();
        let mut piece = vec![0; BUFFER];
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => break,
                length => hasher.update(piece.get(..length).unwrap_or_default()),
            }
        }
        watch.add(have);
        let mut arriving = Arriving { file, hasher, have, came: 0, path: path.clone() };
        self.download(reference, blob, &mut arriving, watch)?;
        let Arriving { hasher, came, .. } = arriving;
        let found = hasher.finish();
        if found != blob.digest {
            drop(fs::remove_file(&path));
            let registry = reference.registry().to_owned();
            return Err(RegistryError::Other { registry, wanted: blob.digest.to_string(), found: found.to_string() });
        }
        layout.take_whole(blob)?;
        Ok(came)
    }

    /// Until it is whole.
    fn download(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        arriving: &mut Arriving,
        watch: &Watch,
    ) -> Result<(), RegistryError> {
        let places = self.places(reference);
        let last = places.len().saturating_sub(1);
        for (at, place) in places.iter().enumerate() {
            let mut tries = 0;
            loop {
                let before = arriving.have;
                match self.receive(place, blob, arriving, watch) {
                    Ok(()) => return Ok(()),
                    Err(Broke::For(error)) if at == last => return Err(error),
                    Err(Broke::For(_)) => break,
                    Err(Broke::Off(error)) => {
                        tries = if arriving.have > before { 0 } else { tries + 1 };
                        match (tries < TRIES, at == last) {
                            (true, _) => {}
                            (false, true) => return Err(error),
                            (false, false) => break,
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes what comes.
    fn receive(&self, place: &Place, blob: &Descriptor, arriving: &mut Arriving, watch: &Watch) -> Result<(), Broke> {
        if arriving.have == blob.size {
            return Ok(());
        }
        let url = place.url(&format!("blobs/{}", blob.digest));
        let from = arriving.have;
        let mut answer = self.open_blob(place, &url, from).map_err(Broke::For)?;
        match answer.status().as_u16() {
            206 if range_start(&answer) == Some(from) => {}
            // It does not go on in the middle.
            200 | 206 if from == 0 => {}
            200 | 206 | 416 => {
                arriving.restart(watch).map_err(Broke::For)?;
                if answer.status() != 200 {
                    return Err(Broke::Off(network(&url, &"it does not go on where it stopped")));
                }
            }
            404 => {
                return Err(Broke::For(RegistryError::NotFound {
                    what: format!("{}@{}", place.repository, blob.digest),
                }));
            }
            status => return Err(Broke::For(unexpected(&url, status, &mut answer, place))),
        }
        let mut reader = answer.body_mut().as_reader();
        let mut piece = vec![0; BUFFER];
        while arriving.have < blob.size {
            let want = usize::try_from(blob.size - arriving.have).unwrap_or(BUFFER).min(BUFFER);
            let length = reader.read(piece.get_mut(..want).unwrap_or_default());
            let length = length.map_err(|error| Broke::Off(network(&url, &error)))?;
            if length == 0 {
                return Err(Broke::Off(network(&url, &"it ends too early")));
            }
            arriving.take(piece.get(..length).unwrap_or_default()).map_err(Broke::For)?;
            watch.add(length as u64);
        }
        Ok(())
    }

    /// A blob, wherever the registry keeps it: its digest is checked, so that it may come from anywhere.
    fn open_blob(&self, place: &Place, url: &str, from: u64) -> Result<Answer, RegistryError> {
        let range = format!("bytes={from}-");
        let ranged = |request: ureq::RequestBuilder<ureq::typestate::WithoutBody>| {
            if from > 0 { request.header("Range", &range) } else { request }
        };
        let scope = Self::scope(place, Use::Pull);
        let mut answer = self.send(place, &scope, url, &mut |agent, auth| ranged(with(agent.get(url), auth)).call())?;
        let own = origin_of(url).to_owned();
        for _hop in 0..MAX_HOPS {
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let to = header(&answer, "location").unwrap_or_default().to_owned();
            let to = if to.starts_with('/') { format!("{own}{to}") } else { to };
            if !(to.starts_with("https://") || to.starts_with("http://") && own.starts_with("http://")) {
                let to = to.split('?').next().unwrap_or_default().to_owned();
                return Err(RegistryError::Leads { url: url.to_owned(), to, why: "which is not HTTPS" });
            }
            // Who asks is for the registry alone.
            answer = if origin_of(&to) == own {
                self.send(place, &scope, url, &mut |agent, auth| ranged(with(agent.get(&to), auth)).call())?
            } else {
                ranged(self.agent.get(&to)).call().map_err(|error| network(url, &error))?
            };
        }
        Err(RegistryError::Leads { url: url.to_owned(), to: "the next place".to_owned(), why: "and that to another" })
    }

    /// A small blob's bytes.
    pub fn blob(&self, reference: &Reference, blob: &Descriptor, limit: u64) -> Result<Vec<u8>, RegistryError> {
        self.read(reference, |place| {
            let url = place.url(&format!("blobs/{}", blob.digest));
            let mut answer = self.open_blob(place, &url, 0)?;
            match answer.status().as_u16() {
                200 => {}
                404 => return Err(RegistryError::NotFound { what: format!("{}@{}", reference.place(), blob.digest) }),
                status => return Err(unexpected(&url, status, &mut answer, place)),
            }
            let bytes = super::http::body(&mut answer, &url, limit)?;
            writ_package::layout::held(blob, &bytes)?;
            Ok(bytes)
        })
    }

    /// Sends a blob that the registry does not have; how many bytes went.
    pub(super) fn send_blob(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        layout: &Layout,
        from: Option<&Reference>,
        watch: &Watch,
    ) -> Result<u64, RegistryError> {
        let place = self.origin(reference);
        let scope = Self::scope(&place, Use::Push);
        let url = place.url(&format!("blobs/{}", blob.digest));
        let mut found = self.send(&place, &scope, &url, &mut |agent, auth| with(agent.head(&url), auth).call())?;
        match found.status().as_u16() {
            200 | 307 => {
                watch.add(blob.size);
                return Ok(0);
            }
            404 => {}
            status => return Err(unexpected(&url, status, &mut found, &place)),
        }
        let kept = self.options.uploads.as_ref().filter(|_| blob.size > ONCE).map(|folder| {
            let name = Digest::of(format!("{} {} {}", place.base, place.repository, blob.digest).as_bytes());
            folder.join(format!("{}.json", name.hex()))
        });
        let resumed = kept.as_ref().and_then(|kept| self.resumed(&place, kept));
        let location = match resumed {
            Some(session) => session,
            None => match self.begin(&place, &scope, blob, from)? {
                Some(location) => Session { location, offset: 0 },
                None => {
                    watch.add(blob.size);
                    return Ok(0);
                }
            },
        };
        let sent = self.send_pieces(&place, blob, layout, location, kept.as_ref(), watch);
        let sent = match sent {
            // A registry that takes no pieces takes it whole.
            Err(RegistryError::Status { status: 400..=499, .. }) if blob.size > ONCE => {
                let Some(location) = self.begin(&place, &scope, blob, None)? else { return Ok(0) };
                self.send_whole(&place, blob, layout, &location, watch)
            }
            sent => sent,
        };
        if let (Some(kept), Ok(_)) = (&kept, &sent) {
            drop(fs::remove_file(kept));
        }
        sent
    }

    /// Begins an upload; `None` where the registry took the blob from another repository of its own.
    fn begin(
        &self,
        place: &Place,
        scope: &str,
        blob: &Descriptor,
        from: Option<&Reference>,
    ) -> Result<Option<String>, RegistryError> {
        let mut url = place.url("blobs/uploads/");
        let same = from.filter(|from| from.registry() == place.registry && from.repository() != place.repository);
        let mut scope = scope.to_owned();
        if let Some(from) = same {
            url = format!("{url}?mount={}&from={}", blob.digest, from.repository());
            scope = format!("{scope} repository:{}:pull", from.repository());
        }
        let mut answer =
            self.send(place, &scope, &url, &mut |agent, auth| with(agent.post(&url), auth).send_empty())?;
        match answer.status().as_u16() {
            201 if same.is_some() => Ok(None),
            202 => location(&answer, &url).map(Some),
            status => Err(unexpected(&url, status, &mut answer, place)),
        }
    }

    /// An upload that an earlier process began, where the registry still knows it.
    fn resumed(&self, place: &Place, kept: &Path) -> Option<Session> {
        let session: Session = json::from_slice(&regular_file::read(kept, 64 << 10).ok()?).ok()?;
        if origin_of(&session.location) != origin_of(&place.base) {
            return None;
        }
        let scope = Self::scope(place, Use::Push);
        let url = session.location.clone();
        let answer = self.send(place, &scope, &url, &mut |agent, auth| with(agent.get(&url), auth).call()).ok()?;
        let end = header(&answer, "range")?.split('-').nth(1)?.parse::<u64>().ok()?;
        let good = answer.status() == 204 && end.checked_add(1) == Some(session.offset);
        good.then(|| Session { location: location(&answer, &url).unwrap_or(url), ..session })
    }

    fn send_pieces(
        &self,
        place: &Place,
        blob: &Descriptor,
        layout: &Layout,
        mut session: Session,
        kept: Option<&PathBuf>,
        watch: &Watch,
    ) -> Result<u64, RegistryError> {
        if blob.size <= ONCE {
            return self.send_whole(place, blob, layout, &session.location, watch);
        }
        let mut sent = 0;
        watch.add(session.offset);
        let scope = Self::scope(place, Use::Push);
        while session.offset < blob.size {
            let length = PIECE.min(blob.size - session.offset);
            let (from, url) = (session.offset, session.location.clone());
            let range = format!("{from}-{}", from + length - 1);
            let mut answer = self.send(place, &scope, &url, &mut |agent, auth| {
                let mut piece = Part::new(layout, blob, from, length, watch)?;
                with(agent.patch(&url), auth)
                    .header("Content-Type", "application/octet-stream")
                    .header("Content-Range", &range)
                    .header("Content-Length", length.to_string())
                    .send(ureq::SendBody::from_reader(&mut piece))
            })?;
            if !matches!(answer.status().as_u16(), 202 | 204) {
                watch.back(session.offset + length);
                return Err(unexpected(&url, answer.status().as_u16(), &mut answer, place));
            }
            sent += length;
            session = Session { location: location(&answer, &url)?, offset: from + length };
            if let Some(kept) = kept {
                keep(kept, &session)?;
            }
        }
        let url = with_digest(&session.location, blob.digest);
        let mut answer = self.send(place, &scope, &url, &mut |agent, auth| with(agent.put(&url), auth).send_empty())?;
        match answer.status().as_u16() {
            201 | 204 => Ok(sent),
            status => Err(unexpected(&url, status, &mut answer, place)),
        }
    }

    fn send_whole(
        &self,
        place: &Place,
        blob: &Descriptor,
        layout: &Layout,
        location: &str,
        watch: &Watch,
    ) -> Result<u64, RegistryError> {
        let url = with_digest(location, blob.digest);
        let scope = Self::scope(place, Use::Push);
        let mut answer = self.send(place, &scope, &url, &mut |agent, auth| {
            let mut whole = Part::new(layout, blob, 0, blob.size, watch)?;
            with(agent.put(&url), auth)
                .header("Content-Type", "application/octet-stream")
                .header("Content-Length", blob.size.to_string())
                .send(ureq::SendBody::from_reader(&mut whole))
        })?;
        match answer.status().as_u16() {
            201 | 204 => Ok(blob.size),
            status => Err(unexpected(&url, status, &mut answer, place)),
        }
    }
}

/// A blob that is coming.
struct Arriving {
    file: File,
    hasher: Hasher,
    have: u64,
    came: u64,
    path: PathBuf,
}

impl Arriving {
    fn take(&mut self, bytes: &[u8]) -> Result<(), RegistryError> {
        self.file.write_all(bytes).map_err(|source| RegistryError::File { path: self.path.clone(), source })?;
        self.hasher.update(bytes);
        self.have += bytes.len() as u64;
        self.came += bytes.len() as u64;
        Ok(())
    }

    fn restart(&mut self, watch: &Watch) -> Result<(), RegistryError> {
        let empty = self.file.set_len(0).and_then(|()| self.file.rewind());
        empty.map_err(|source| RegistryError::File { path: self.path.clone(), source })?;
        watch.back(self.have);
        self.hasher = Hasher::default();
        self.have = 0;
        Ok(())
    }
}

/// A part of a blob, counted as it goes.
struct Part<'a> {
    inner: std::io::Take<File>,
    watch: &'a Watch,
}

impl<'a> Part<'a> {
    fn new(layout: &Layout, blob: &Descriptor, from: u64, length: u64, watch: &'a Watch) -> std::io::Result<Self> {
        let mut file = layout.blob(blob.digest).map_err(std::io::Error::other)?;
        file.seek(SeekFrom::Start(from))?;
        Ok(Self { inner: file.take(length), watch })
    }
}

impl Read for Part<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let length = self.inner.read(to)?;
        self.watch.add(length as u64);
        Ok(length)
    }
}

fn keep(kept: &PathBuf, session: &Session) -> Result<(), RegistryError> {
    let failed = |source| RegistryError::File { path: kept.clone(), source };
    if let Some(folder) = kept.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let new = kept.with_extension("new");
    drop(fs::remove_file(&new));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    file.write_all(json::to_compact(session).as_bytes()).map_err(failed)?;
    fs::rename(&new, kept).map_err(failed)
}

/// `https://host` of a URL.
pub(super) fn origin_of(url: &str) -> &str {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(scheme..).unwrap_or_default();
    let end = rest.find('/').map_or(url.len(), |at| scheme + at);
    url.get(..end).unwrap_or_default()
}

/// Where an upload goes on: at the registry itself.
fn location(answer: &Answer, url: &str) -> Result<String, RegistryError> {
    let own = origin_of(url);
    let to = header(answer, "location").unwrap_or_default();
    let to = if to.starts_with('/') { format!("{own}{to}") } else { to.to_owned() };
    if origin_of(&to) == own {
        return Ok(to);
    }
    let to = to.split('?').next().unwrap_or_default().to_owned();
    Err(RegistryError::Leads { url: url.to_owned(), to, why: "another machine, for an upload" })
}

fn with_digest(location: &str, digest: Digest) -> String {
    let sign = if location.contains('?') { '&' } else { '?' };
    format!("{location}{sign}digest={digest}")
}

/// Where a partial answer begins.
fn range_start(answer: &Answer) -> Option<u64> {
    header(answer, "content-range")?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
