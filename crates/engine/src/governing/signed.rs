//! Whose word a policy is: its signatures, checked against what the user trusts (R11), and against whom it names itself (R72).
//!
//! Owns the verdict about an envelope's signatures. Refuses an envelope in which a signature that is by somebody trusted is wrong. Invariant:
//! nobody is a signer whose signature was not checked: now, at the moment of a row, or when a human accepted the very bytes. Page:
//! `spec/signing.md`, "Signers".

use std::path::Path;

use writ_core::{Digest, Timestamp, json};
use writ_evidence::dsse::{Envelope, Proof};
use writ_evidence::keys::PublicKey;
use writ_evidence::signer::keyless::{self, KeylessError};
use writ_evidence::signer::x509::{Chain, X509Error};
use writ_evidence::signer::{Name, Signer};
use writ_policy::Functionary;

use super::error::GoverningError;
use super::trust::{Trust, TrustError};

/// The DSSE payload type of a signed policy.
pub const PAYLOAD_TYPE: &str = "application/vnd.aflock.policy+json";

/// Whose word a policy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// No envelope.
    Plain,
    /// An envelope, but nobody who is trusted signed it; why each that shows a certificate or a bundle is not.
    UnknownKey(Vec<String>),
    /// Signed by somebody trusted, but by none of the functionaries that the policy names.
    NoFunctionary,
    /// Signed by these, who are trusted.
    By(Vec<Signer>),
    /// A certificate or a bundle, checked when these very bytes were accepted; this record of trust made it good, and is still there.
    Accepted(Digest),
}

impl Signed {
    /// `unsigned`, `unknown-key`, `no-functionary` or `trusted`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "unsigned",
            Self::UnknownKey(_) => "unknown-key",
            Self::NoFunctionary => "no-functionary",
            Self::By(_) | Self::Accepted(_) => "trusted",
        }
    }

    /// Whether somebody trusted vouches for it.
    pub const fn is_trusted(&self) -> bool {
        matches!(self, Self::By(_) | Self::Accepted(_))
    }

    /// In words, for people.
    pub fn told(&self) -> String {
        match self {
            Self::Plain => "not signed".to_owned(),
            Self::UnknownKey(reasons) if reasons.is_empty() => "not signed by a key you trust".to_owned(),
            Self::UnknownKey(reasons) => format!("not signed by anybody you trust: {}", reasons.join("; ")),
            Self::NoFunctionary => "signed by none of the functionaries that it names".to_owned(),
            Self::By(_) | Self::Accepted(_) => "signed by somebody you trust".to_owned(),
        }
    }

    /// Who signed, for people and rows.
    pub fn signers(&self) -> Option<Vec<String>> {
        if let Self::By(signers) = self { Some(signers.iter().map(ToString::to_string).collect()) } else { None }
    }

    /// The record of trust that has to stay for it to stay good, where a certificate or a bundle made it so.
    pub fn anchor(&self) -> Option<Digest> {
        match self {
            Self::By(signers) => signers.iter().find_map(|signer| match signer {
                // Checked each time.
                Signer::Key { .. } => None,
                Signer::X509 { root, .. } | Signer::Keyless { root, .. } => Some(*root),
            }),
            Self::Accepted(root) => Some(*root),
            Self::Plain | Self::UnknownKey(_) | Self::NoFunctionary => None,
        }
    }
}

/// When certificates and bundles are checked. Keys are checked each time.
#[derive(Clone, Copy, Debug)]
pub enum When<'a> {
    /// Now, or at the moment of the row that is looked at: certificates have to be valid then.
    At(Timestamp),
    /// When a human accepted these bytes: what that came to, and the record of trust behind it.
    Accepted(&'a str, Option<Digest>),
}

impl When<'_> {
    /// At this moment.
    pub fn now() -> Self {
        Self::At(Timestamp::now())
    }
}

/// The bytes inside the envelope; nothing for a plain policy. Nobody's word is asked for.
pub fn inner(path: &Path, bytes: &[u8]) -> Result<Option<Vec<u8>>, GoverningError> {
    Ok(envelope(path, bytes)?.map(|envelope| envelope.payload().to_vec()))
}

/// The bytes inside the envelope (`None` for a plain policy) and whose word they are.
pub fn unwrap(
    path: &Path,
    bytes: &[u8],
    trust: &Trust,
    when: When<'_>,
) -> Result<(Option<Vec<u8>>, Signed), GoverningError> {
    let Some(envelope) = envelope(path, bytes)? else { return Ok((None, Signed::Plain)) };
    let wrong = |why: String| GoverningError::Envelope { path: path.to_owned(), why };
    let mut signers = keys(&envelope, &trust.keys()?).map_err(wrong)?;
    let payload = Some(envelope.payload().to_vec());
    let shows_more = envelope.proofs().any(|proof| proof != Proof::Key);
    let mut reasons = Vec::new();
    match when {
        When::At(at) if shows_more => {
            let more = others(&envelope, trust, at, &mut reasons).map_err(|refused| refused.told(path))?;
            signers.extend(more);
        }
        When::Accepted(word, anchor) if shows_more => {
            return Ok((payload, accepted(word, anchor, signers, trust)));
        }
        When::At(_) | When::Accepted(..) => {}
    }
    Ok((payload, if signers.is_empty() { Signed::UnknownKey(reasons) } else { Signed::By(signers) }))
}

/// What the verdict of a human's acceptance still is: certificates and bundles are not checked again, only whether they are still
/// believed.
fn accepted(word: &str, anchor: Option<Digest>, keys: Vec<Signer>, trust: &Trust) -> Signed {
    match (word, anchor) {
        ("trusted", Some(anchor)) if trust.stands_by(anchor) => Signed::Accepted(anchor),
        _ if !keys.is_empty() => Signed::By(keys),
        ("no-functionary", _) => Signed::NoFunctionary,
        _ => Signed::UnknownKey(Vec::new()),
    }
}

/// A policy that names its functionaries is trusted only where one of them signed it (R72).
pub fn among(functionaries: Option<Vec<Functionary>>, signed: Signed) -> Signed {
    let Some(named) = functionaries else { return signed };
    match &signed {
        Signed::By(signers) if !signers.iter().any(|signer| named.iter().any(|one| is(one, signer))) => {
            Signed::NoFunctionary
        }
        // Whoever accepted it saw to that.
        Signed::By(_) | Signed::Accepted(_) | Signed::Plain | Signed::UnknownKey(_) | Signed::NoFunctionary => signed,
    }
}

/// Whether a signer is a functionary: names count as a whole.
fn is(functionary: &Functionary, signer: &Signer) -> bool {
    match (functionary, signer) {
        (Functionary::Key { id }, Signer::Key { id: key }) => {
            id.rsplit(':').next().unwrap_or_default().eq_ignore_ascii_case(&key.hex())
        }
        (Functionary::X509 { issuer, subject }, Signer::X509 { issuer: by, subject: whose, .. }) => {
            let is = |text: &str, name: &Name| text.parse::<Name>().is_ok_and(|text| text == *name);
            is(issuer, by) && is(subject, whose)
        }
        (Functionary::Keyless { issuer, subject }, Signer::Keyless { issuer: by, identity, .. }) => {
            issuer == by && subject == identity
        }
        (Functionary::Key { .. } | Functionary::X509 { .. } | Functionary::Keyless { .. }, _) => false,
    }
}

fn envelope(path: &Path, bytes: &[u8]) -> Result<Option<Envelope>, GoverningError> {
    if !is_envelope(bytes) {
        return Ok(None);
    }
    let wrong = |why: String| GoverningError::Envelope { path: path.to_owned(), why };
    let envelope = Envelope::parse(bytes).map_err(|error| wrong(error.to_string()))?;
    if envelope.payload_type() != PAYLOAD_TYPE {
        return Err(wrong(format!("its payload type is `{}`, not `{PAYLOAD_TYPE}`", envelope.payload_type())));
    }
    Ok(Some(envelope))
}

/// Whether the bytes look like an envelope rather than a policy: only an envelope has `payloadType`.
fn is_envelope(bytes: &[u8]) -> bool {
    const MARK: &[u8] = b"payloadType";
    bytes.windows(MARK.len()).any(|window| window == MARK)
        && json::parse(bytes).is_ok_and(|value| value.get("payloadType").is_some())
}

/// The pinned keys that signed.
fn keys(envelope: &Envelope, pinned: &[PublicKey]) -> Result<Vec<Signer>, String> {
    let named: Vec<PublicKey> = pinned.iter().filter(|key| envelope.names(key)).cloned().collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let verified = envelope.verify(&named).map_err(|error| error.to_string())?;
    Ok(verified.signers().iter().map(|id| Signer::Key { id: *id }).collect())
}

/// Why signatures cannot be looked at, or one of them is wrong.
enum Refused {
    Trust(TrustError),
    Wrong(String),
}

impl Refused {
    fn told(self, path: &Path) -> GoverningError {
        match self {
            Self::Trust(error) => GoverningError::Trust(error),
            Self::Wrong(why) => GoverningError::Envelope { path: path.to_owned(), why },
        }
    }
}

/// Those who signed with a certificate or without a key of their own, as far as they are trusted; the others' reasons.
fn others(
    envelope: &Envelope,
    trust: &Trust,
    at: Timestamp,
    reasons: &mut Vec<String>,
) -> Result<Vec<Signer>, Refused> {
    let mut out = Vec::new();
    for proof in envelope.proofs() {
        let signer = match proof {
            Proof::Key => continue,
            Proof::X509 { signature, chain } => certified(&envelope.message(), signature, chain, trust, at)?,
            Proof::Keyless { bundle } => vouched(envelope.payload(), bundle, trust)?,
        };
        match signer {
            Ok(signer) => out.push(signer),
            Err(why) => reasons.push(why),
        }
    }
    Ok(out)
}

fn certified(
    message: &[u8],
    signature: &[u8],
    chain: &[Vec<u8>],
    trust: &Trust,
    at: Timestamp,
) -> Result<Result<Signer, String>, Refused> {
    let authorities = trust.authorities().map_err(Refused::Trust)?;
    let roots: Result<Vec<_>, String> = authorities.iter().map(|(_, authority)| authority.root()).collect();
    // A record that was good once and does not read is damage, not an authority less.
    let roots = roots.map_err(Refused::Wrong)?;
    let checked =
        Chain::from_pem(chain.iter().map(Vec::as_slice)).and_then(|chain| chain.verify(&roots, message, signature, at));
    let found = match checked {
        Ok(found) => found,
        Err(error @ X509Error::Signature { .. }) => return Err(Refused::Wrong(error.to_string())),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let authority = authorities.iter().find(|(id, _)| *id == found.root).map(|(_, authority)| authority);
    if !authority.is_some_and(|authority| authority.takes(&found.subject)) {
        let why = format!("`{}` is none of those whose certificates of {} you trust", found.subject, found.root);
        return Ok(Err(why));
    }
    Ok(Ok(Signer::X509 { subject: found.subject, issuer: found.issuer, root: found.root }))
}

fn vouched(payload: &[u8], bundle: &str, trust: &Trust) -> Result<Result<Signer, String>, Refused> {
    let mut why = "you trust no Sigstore identity (`writ keys trust --sigstore`)".to_owned();
    for (id, trusted) in trust.identities().map_err(Refused::Trust)? {
        let root = trusted.root().map_err(Refused::Wrong)?;
        match keyless::verify(&root, bundle, payload) {
            Ok(found) if trusted.is(&found) => {
                let keyless::Identity { subject: identity, issuer, log_index } = found;
                return Ok(Ok(Signer::Keyless { identity, issuer, log_index, root: id }));
            }
            Ok(found) => why = format!("`{}`, by {}, is no identity that you trust", found.subject, found.issuer),
            Err(error @ KeylessError::Signature(_)) => return Err(Refused::Wrong(error.to_string())),
            Err(error) => why = error.to_string(),
        }
    }
    Ok(Err(why))
}
