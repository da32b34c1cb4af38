//! Signatures and attestations of a package: Sigstore bundles as OCI referrers, in the form of cosign v3.
//!
//! Owns the referrer's manifest and the statements. Checks no signature: whom to trust is the engine's to know. Invariant: what is written
//! here names the package by the digest of its manifest, as subject of the referrer and of the statement. Page: `spec/package.md`,
//! "Signatures".

use serde::Serialize;
use writ_core::json;
use writ_evidence::custody::Signs;
use writ_evidence::dsse::Envelope;
use writ_evidence::intoto::{Bundle, Content, MEDIA_TYPE, PAYLOAD_TYPE, ResourceDescriptor, Statement};
use writ_evidence::keys::KeyError;

use crate::layout::{Layout, LayoutError};
use crate::manifest::{Annotations, Descriptor, EMPTY, EMPTY_BYTES, Manifest};

/// What a signature says of a package: that it is signed.
pub const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
/// How it was built.
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// What is in it.
pub const SBOM: &str = "https://spdx.dev/Document";
/// Most of them that are looked at.
pub const MAX: usize = 64;
/// Largest bundle.
const MAX_BUNDLE: u64 = 16 << 20;

/// A statement about a package, in its canonical form: what is signed.
pub fn statement<P: Serialize>(subject: &Descriptor, kind: &str, predicate: P) -> String {
    let about = ResourceDescriptor::sha256("", subject.digest);
    json::to_canonical(&Statement::new(vec![about], kind, predicate))
}

/// A statement, signed with a key.
pub fn sign<S: Signs + ?Sized>(statement: &str, key: &S) -> Result<Bundle, KeyError> {
    let envelope = Envelope::sign(PAYLOAD_TYPE, statement.as_bytes(), &[key])?;
    Ok(Bundle::of_key(envelope, hint(key.public())))
}

/// Puts a statement that was signed into the layout beside the package that it is about.
pub fn attach_signed(
    layout: &Layout,
    subject: &Descriptor,
    kind: &str,
    bundle: &Bundle,
) -> Result<Descriptor, LayoutError> {
    attach_bundle(layout, subject, kind, &compact(bundle))
}

/// Puts a bundle into the layout beside the package that it is about.
pub fn attach_bundle(
    layout: &Layout,
    subject: &Descriptor,
    kind: &str,
    bundle: &[u8],
) -> Result<Descriptor, LayoutError> {
    let layer = layout.write(MEDIA_TYPE, bundle)?;
    let mut manifest = Manifest::artifact(MEDIA_TYPE, layout.write(EMPTY, EMPTY_BYTES)?, vec![layer]);
    manifest.subject = Some(subject.bare());
    manifest.annotations = Annotations::from([
        ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
        ("dev.sigstore.bundle.predicateType".to_owned(), kind.to_owned()),
    ]);
    let descriptor = layout.write_manifest(&manifest)?;
    let descriptor = Descriptor { annotations: manifest.annotations, ..descriptor };
    layout.tag(None, &descriptor)?;
    Ok(descriptor)
}

/// A key as Sigstore's tools name it: SHA-256 of its SPKI, in Base64.
fn hint(key: &writ_evidence::keys::PublicKey) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(key.key_id().as_bytes())
}

fn compact(bundle: &Bundle) -> Vec<u8> {
    let pretty = bundle.to_bytes();
    json::parse(&pretty).map_or(pretty, |value| json::canonical(&value).into_bytes())
}

/// A statement that somebody signed about a package; nothing of it is checked.
#[derive(Clone, Debug)]
pub struct Said {
    /// The referrer's manifest.
    pub descriptor: Descriptor,
    /// The bundle's bytes.
    pub bytes: Vec<u8>,
    /// The bundle.
    pub bundle: Bundle,
    /// The predicate's type, as the statement has it.
    pub kind: String,
}

/// A referrer that cannot be read.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Its digest.
    pub digest: writ_core::Digest,
    /// Why.
    pub why: String,
}

/// What is said of a package in a layout, each read or told why not; one that was changed is an error.
pub fn said(layout: &Layout, subject: &Descriptor) -> Result<(Vec<Said>, Vec<Unread>), LayoutError> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (descriptor, manifest) in layout.referrers(subject.digest)?.into_iter().take(MAX) {
        if manifest.kind() != MEDIA_TYPE {
            continue;
        }
        match one(layout, &descriptor, &manifest)? {
            Ok(said) => good.push(said),
            Err(why) => bad.push(Unread { digest: descriptor.digest, why }),
        }
    }
    Ok((good, bad))
}

fn one(layout: &Layout, descriptor: &Descriptor, manifest: &Manifest) -> Result<Result<Said, String>, LayoutError> {
    let [layer] = manifest.layers.as_slice() else { return Ok(Err("it has not one layer".to_owned())) };
    if layer.size > MAX_BUNDLE {
        return Ok(Err(format!("its bundle has more than {MAX_BUNDLE} bytes")));
    }
    match layout.check(&manifest.config).and_then(|()| layout.read(layer)) {
        Ok(bytes) => Ok(read(descriptor, bytes)),
        Err(error @ LayoutError::Tampered { .. }) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn read(descriptor: &Descriptor, bytes: Vec<u8>) -> Result<Said, String> {
    let bundle = Bundle::parse(&bytes).map_err(|error| error.to_string())?;
    let Content::Envelope(envelope) = &bundle.content else {
        return Err("it signs bytes and no statement".to_owned());
    };
    let kind = envelope.statement_type().map_err(|error| error.to_string())?;
    Ok(Said { descriptor: descriptor.clone(), bytes, bundle, kind })
}

impl Said {
    /// The bundle in canonical form.
    pub fn text(&self) -> String {
        json::parse(&self.bytes).map_or_else(|_checked| String::new(), |value| json::canonical(&value))
    }

    /// What the statement is about, by name and digest; nothing of it is checked.
    pub fn is_about(&self, subject: writ_core::Digest) -> bool {
        let Content::Envelope(envelope) = &self.bundle.content else { return false };
        let statement = envelope.unchecked_statement::<json::Value>();
        statement.is_ok_and(|statement| statement.subject().iter().any(|one| one.digest() == Some(subject)))
    }

    /// The predicate; nothing of it is checked.
    pub fn predicate(&self) -> Option<json::Value> {
        let Content::Envelope(envelope) = &self.bundle.content else { return None };
        envelope.unchecked_statement::<json::Value>().ok().map(Statement::into_predicate)
    }
}
