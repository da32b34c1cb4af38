//! Whole packages: what has to move, in which order, several blobs at a time.
//!
//! Pulling fetches manifests first, then their blobs, then what is said of them. Pushing sends blobs first and names last, so that no
//! registry has a name that leads to something which is not there. Every local blob is held against its digest before it is sent.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde::Serialize;
use writ_core::Digest;
use writ_package::manifest::{Document, is_index};
use writ_package::{Descriptor, Layout, Reference};

use super::error::RegistryError;
use super::{Registry, Watch};

/// Most manifests that one leads to.
const MAX_DOCUMENTS: usize = 4096;

/// What was moved.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The manifest or index.
    pub digest: Digest,
    /// What it is.
    #[serde(rename = "mediaType")]
    pub media_type: String,
    /// What kind of artifact it is of.
    #[serde(rename = "artifactType")]
    pub artifact_type: Option<String>,
    /// Blobs that belong to it, and to what is said of it.
    pub blobs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that went over the network; the others were there.
    pub transferred: u64,
    /// Signatures and attestations that are said of it.
    pub referrers: usize,
}

/// A manifest on its way, with its bytes.
struct Read {
    descriptor: Descriptor,
    document: Document,
    bytes: Vec<u8>,
}

impl Registry {
    /// Fetches a manifest, all that it names, and what is said of it.
    pub fn pull(&self, from: &Reference, layout: &Layout, watch: &Watch) -> Result<Moved, RegistryError> {
        let (top, bytes) = self.manifest(from)?;
        let mut documents = self.below(from, top.clone(), bytes)?;
        let mut referrers = 0;
        for one in self.referrers(from, top.digest, None)? {
            let (descriptor, bytes) = self.manifest(&from.at(one.digest))?;
            let said = self.below(from, descriptor, bytes)?;
            // A list may name what is said of something else.
            let first = said.first().and_then(|read| read.document.subject());
            if first.is_some_and(|subject| subject.digest == top.digest) {
                referrers += 1;
                documents.extend(said);
            }
        }
        let blobs = leaves(documents.iter());
        let transferred = self.each(&blobs, watch, |blob| self.fetch_blob(from, blob, layout, watch))?;
        let mut bytes = blobs.iter().map(|blob| blob.size).sum::<u64>();
        for read in &documents {
            layout.write(&read.descriptor.media_type, &read.bytes)?;
            bytes += read.descriptor.size;
        }
        for read in documents.iter().filter(|read| read.document.subject().is_some()) {
            layout.tag(None, &read.descriptor)?;
        }
        Ok(Moved {
            digest: top.digest,
            media_type: top.media_type,
            artifact_type: top.artifact_type,
            blobs: blobs.len() + documents.len(),
            bytes,
            transferred,
            referrers,
        })
    }

    /// A manifest and all below it, itself first.
    fn below(&self, from: &Reference, top: Descriptor, bytes: Vec<u8>) -> Result<Vec<Read>, RegistryError> {
        let mut open = VecDeque::from([(top, Some(bytes))]);
        let mut out: Vec<Read> = Vec::new();
        while let Some((descriptor, bytes)) = open.pop_front() {
            if out.iter().any(|read| read.descriptor.digest == descriptor.digest) {
                continue;
            }
            if out.len() > MAX_DOCUMENTS {
                return Err(writ_package::LayoutError::TooDeep(descriptor.digest).into());
            }
            let (descriptor, bytes) = match bytes {
                Some(bytes) => (descriptor, bytes),
                None => self.manifest(&from.at(descriptor.digest))?,
            };
            let document = Document::parse(&descriptor.media_type, &bytes)
                .map_err(|source| RegistryError::Document { what: descriptor.digest.to_string(), source })?;
            let children = document.parts().into_iter().filter(|part| part.is_document());
            open.extend(children.map(|part| (part.clone(), None)));
            out.push(Read { descriptor, document, bytes });
        }
        Ok(out)
    }

    /// Sends a manifest of a layout, all that it names, and what is said of it. `from` is where the layout came from.
    pub fn push(
        &self,
        layout: &Layout,
        top: &Descriptor,
        to: &Reference,
        from: Option<&Reference>,
        watch: &Watch,
    ) -> Result<Moved, RegistryError> {
        let mut documents = self.local(layout, top)?;
        let said = layout.referrers(top.digest)?;
        for (descriptor, _) in &said {
            documents.extend(self.local(layout, descriptor)?);
        }
        let blobs = leaves(documents.iter());
        let transferred = self.each(&blobs, watch, |blob| {
            layout.check(blob)?;
            self.send_blob(to, blob, layout, from, watch)
        })?;
        let mut bytes = blobs.iter().map(|blob| blob.size).sum::<u64>();
        // The deepest first; names last.
        for read in documents.iter().rev().filter(|read| read.document.subject().is_none()) {
            bytes += read.descriptor.size;
            let by_digest = read.descriptor.digest.to_string();
            let own = read.descriptor.digest == top.digest;
            let name = if own { to.tag().map_or(by_digest, str::to_owned) } else { by_digest };
            self.put_manifest(to, &name, &read.descriptor.media_type, &read.bytes)?;
        }
        for read in documents.iter().filter(|read| read.document.subject().is_some()) {
            bytes += read.descriptor.size;
            self.put_referrer(to, &read.descriptor, &read.document, &read.bytes)?;
        }
        if let Some(wanted) = to.digest()
            && wanted != top.digest
        {
            let registry = to.registry().to_owned();
            return Err(RegistryError::Other { registry, wanted: wanted.to_string(), found: top.digest.to_string() });
        }
        Ok(Moved {
            digest: top.digest,
            media_type: top.media_type.clone(),
            artifact_type: documents.first().and_then(|read| read.document.artifact_type()).map(str::to_owned),
            blobs: blobs.len() + documents.len(),
            bytes,
            transferred,
            referrers: said.len(),
        })
    }

    fn local(&self, layout: &Layout, top: &Descriptor) -> Result<Vec<Read>, RegistryError> {
        let mut out: Vec<Read> = Vec::new();
        for descriptor in layout.closure(top)?.into_iter().filter(Descriptor::is_document) {
            let bytes = layout.read(&descriptor)?;
            let document = Document::parse(&descriptor.media_type, &bytes)
                .map_err(|source| RegistryError::Document { what: descriptor.digest.to_string(), source })?;
            out.push(Read { descriptor, document, bytes });
        }
        // Indexes lead to manifests, so these come after them.
        out.sort_by_key(|read| !is_index(&read.descriptor.media_type));
        if let Some(at) = out.iter().position(|read| read.descriptor.digest == top.digest) {
            let first = out.remove(at);
            out.insert(0, first);
        }
        Ok(out)
    }

    /// Moves blobs, several at a time; all bytes that went over the network. The first failure ends it.
    fn each(
        &self,
        blobs: &[Descriptor],
        watch: &Watch,
        one: impl Fn(&Descriptor) -> Result<u64, RegistryError> + Sync,
    ) -> Result<u64, RegistryError> {
        watch.expect(blobs.iter().map(|blob| blob.size).sum());
        // The largest first: the last to end is then a small one.
        let mut order: Vec<&Descriptor> = blobs.iter().collect();
        order.sort_by_key(|blob| std::cmp::Reverse(blob.size));
        let (queue, result) = (Mutex::new(VecDeque::from(order)), Mutex::new(Ok(0)));
        let work = || {
            while let Some(blob) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                let moved = one(blob);
                let failed = moved.is_err();
                if let Ok(mut result) = result.lock() {
                    match (&mut *result, moved) {
                        (Ok(sum), Ok(bytes)) => *sum += bytes,
                        (Ok(_), Err(error)) => *result = Err(error),
                        (Err(_), _) => {}
                    }
                }
                if failed && let Ok(mut queue) = queue.lock() {
                    queue.clear();
                }
            }
        };
        std::thread::scope(|scope| {
            for _worker in 0..self.options.concurrency.clamp(1, 32).min(blobs.len()) {
                scope.spawn(work);
            }
        });
        let unfinished = || RegistryError::Network { url: "a transfer".to_owned(), why: "it was given up".to_owned() };
        result.into_inner().unwrap_or_else(|_poisoned| Err(unfinished()))
    }
}

/// The blobs that are no manifests, each once.
fn leaves<'a>(documents: impl Iterator<Item = &'a Read>) -> Vec<Descriptor> {
    let mut out: Vec<Descriptor> = documents
        .flat_map(|read| read.document.parts())
        .filter(|part| !part.is_document())
        .map(Descriptor::bare)
        .collect();
    out.sort_by_key(|blob| blob.digest);
    out.dedup_by_key(|blob| blob.digest);
    out
}
