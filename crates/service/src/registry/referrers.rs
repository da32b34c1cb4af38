//! What is said of a manifest: the referrers API, else the tag that stands for it.
//!
//! Refuses a list that is no index. A registry that does not list what a manifest is said of gets a tag `sha256-…` for it, read, added to
//! and written; whoever wrote meanwhile is added to again.

use writ_core::Digest;
use writ_package::manifest::{Document, INDEX, Index, MAX_BYTES};
use writ_package::{Descriptor, Reference};

use super::error::RegistryError;
use super::http::{body, header};
use super::{Place, Registry, Use, unexpected, with};

/// Most pages of a list.
const MAX_PAGES: usize = 64;
/// How often the tag is written again when somebody else wrote it.
const TRIES: usize = 4;

impl Registry {
    /// The manifests that are said of this one, of one kind or all.
    pub fn referrers(
        &self,
        reference: &Reference,
        subject: Digest,
        kind: Option<&str>,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let mut found = self.read(reference, |place| self.listed(place, reference, subject))?;
        found.retain(|one| kind.is_none_or(|kind| one.artifact_type.as_deref() == Some(kind)));
        found.sort_by_key(|one| one.digest);
        found.dedup_by_key(|one| one.digest);
        Ok(found)
    }

    fn listed(&self, place: &Place, reference: &Reference, subject: Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let mut url = place.url(&format!("referrers/{subject}"));
        let scope = Self::scope(place, Use::Pull);
        let mut out = Vec::new();
        for _page in 0..MAX_PAGES {
            let mut answer = self.send(place, &scope, &url, &mut |agent, auth| {
                with(agent.get(&url), auth).header("Accept", INDEX).call()
            })?;
            let is_list = header(&answer, "content-type").is_some_and(|said| said.starts_with(INDEX));
            match answer.status().as_u16() {
                200 if is_list => {}
                // Not a registry that knows of this, or one that knows nothing.
                200 | 400 | 404 | 405 => return Ok(self.by_tag(place, reference, subject, Use::Pull)?.manifests),
                status => return Err(unexpected(&url, status, &mut answer, place)),
            }
            let bytes = body(&mut answer, &url, MAX_BYTES)?;
            out.extend(index(&url, &bytes)?.manifests);
            match next(header(&answer, "link"), place) {
                Some(more) => url = more,
                None => return Ok(out),
            }
        }
        Ok(out)
    }

    /// The list that stands at the tag.
    fn by_tag(
        &self,
        place: &Place,
        reference: &Reference,
        subject: Digest,
        wanted: Use,
    ) -> Result<Index, RegistryError> {
        match self.manifest_at(place, &tag(subject), reference, wanted) {
            Ok((descriptor, bytes)) if descriptor.media_type == INDEX => index(&tag(subject), &bytes),
            Ok(_) | Err(RegistryError::NotFound { .. }) => Ok(Index::of(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// Puts a manifest under its digest, and where the registry does not list what it is said of, on the list at the tag.
    pub(super) fn put_referrer(
        &self,
        reference: &Reference,
        descriptor: &Descriptor,
        document: &Document,
        bytes: &[u8],
    ) -> Result<(), RegistryError> {
        let listed = self.put_manifest(reference, &descriptor.digest.to_string(), &descriptor.media_type, bytes)?;
        let Some(subject) = document.subject().filter(|_| !listed) else { return Ok(()) };
        let mut entry = descriptor.bare();
        entry.artifact_type = document.artifact_type().map(str::to_owned);
        entry.annotations = document.annotations().clone();
        let place = self.origin(reference);
        for _try in 0..TRIES {
            let mut index = self.by_tag(&place, reference, subject.digest, Use::Push)?;
            if index.manifests.iter().any(|one| one.digest == entry.digest) {
                return Ok(());
            }
            index.manifests.push(entry.clone());
            self.put_manifest(reference, &tag(subject.digest), INDEX, &index.to_bytes())?;
        }
        let index = self.by_tag(&place, reference, subject.digest, Use::Push)?;
        if index.manifests.iter().any(|one| one.digest == entry.digest) {
            return Ok(());
        }
        let url = place.url(&format!("manifests/{}", tag(subject.digest)));
        Err(RegistryError::Network { url, why: "somebody else writes this list all the time".to_owned() })
    }
}

/// The tag that stands for a list.
fn tag(subject: Digest) -> String {
    format!("sha256-{}", subject.hex())
}

fn index(what: &str, bytes: &[u8]) -> Result<Index, RegistryError> {
    match Document::parse(INDEX, bytes) {
        Ok(Document::Index(index)) => Ok(index),
        Ok(Document::Manifest(_)) => Ok(Index::of(Vec::new())),
        Err(source) => Err(RegistryError::Document { what: what.to_owned(), source }),
    }
}

/// The next page, at the same registry.
fn next(link: Option<&str>, place: &Place) -> Option<String> {
    let link = link?;
    let (url, rest) = link.strip_prefix('<')?.split_once('>')?;
    if !rest.replace(' ', "").contains("rel=\"next\"") {
        return None;
    }
    let own = super::blobs::origin_of(&place.base);
    if url.starts_with('/') {
        Some(format!("{own}{url}"))
    } else {
        Some(url.to_owned()).filter(|url| super::blobs::origin_of(url) == own)
    }
}
