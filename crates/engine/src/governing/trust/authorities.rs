//! Whom the user believes about others: certificate authorities, and identities that a Sigstore instance vouches for (R11).
//!
//! Owns the records `trust/ca/*.json` and `trust/sigstore/*.json`, named by what they are about. Refuses a record that does not read: it
//! is an error, never an authority less. Invariant: a certificate or a bundle counts only through one of these records, and an identity only
//! where it is named. Page: `spec/signing.md`, "Trust".

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::signer::Name;
use writ_evidence::signer::keyless::{Identity, TrustedRoot};
use writ_evidence::signer::x509::Root;
use writ_store::regular_file;

use super::{Trust, TrustError, write};

/// Largest record.
const MAX: u64 = 2 << 20;
/// Most records of a kind.
const MOST: usize = 100;

/// A trusted certificate authority.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    certificate: String,
    /// Whose certificates of it count; everybody's where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Name>,
}

impl Authority {
    /// Its certificate.
    pub fn root(&self) -> Result<Root, String> {
        Root::from_pem(&self.certificate).map_err(|error| error.to_string())
    }

    /// Whether a subject's certificate counts.
    pub fn takes(&self, subject: &Name) -> bool {
        self.subjects.is_empty() || self.subjects.contains(subject)
    }
}

/// An identity that is trusted where a Sigstore instance vouches for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TrustedIdentity {
    /// The OIDC issuer, as a whole.
    pub issuer: String,
    /// The identity.
    pub identity: String,
    /// Whether `*` in it stands for any text within a segment, and `**` for any text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pattern: bool,
    /// The instance's `trusted_root.json`.
    root: Value,
}

impl TrustedIdentity {
    /// The instance's authorities.
    pub fn root(&self) -> Result<TrustedRoot, String> {
        TrustedRoot::parse(json::canonical(&self.root).as_bytes()).map_err(|error| error.to_string())
    }

    /// The record's name: the digest of what it says.
    pub fn id(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }

    /// Whether it is this one.
    pub fn is(&self, found: &Identity) -> bool {
        let same = if self.pattern { matches(&self.identity, &found.subject) } else { self.identity == found.subject };
        same && self.issuer == found.issuer
    }
}

/// Whether a text is of a pattern: time in the product of their lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.as_bytes();
    // Which beginnings of the text the pattern's beginning stands for.
    let mut at = vec![false; text.len() + 1];
    if let Some(first) = at.first_mut() {
        *first = true;
    }
    let mut rest = pattern.as_bytes();
    while let [sign, after @ ..] = rest {
        let crosses = *sign == b'*' && after.first() == Some(&b'*');
        rest = if crosses { after.get(1..).unwrap_or_default() } else { after };
        let mut next = vec![false; text.len() + 1];
        let mut open = false;
        for (index, before) in at.iter().enumerate() {
            let last = index.checked_sub(1).and_then(|last| text.get(last));
            if *sign == b'*' {
                open = *before || open && (crosses || last != Some(&b'/'));
                if let Some(here) = next.get_mut(index) {
                    *here = open;
                }
            } else if *before
                && text.get(index) == Some(sign)
                && let Some(here) = next.get_mut(index + 1)
            {
                *here = true;
            }
        }
        at = next;
    }
    at.last() == Some(&true)
}

/// What a record is about.
#[derive(Clone, Copy)]
enum Kind {
    Ca,
    Sigstore,
}

impl Kind {
    const fn folder(self) -> &'static str {
        match self {
            Self::Ca => "ca",
            Self::Sigstore => "sigstore",
        }
    }
}

impl Trust {
    /// The trusted certificate authorities, with their ids.
    pub fn authorities(&self) -> Result<Vec<(Digest, Authority)>, TrustError> {
        self.records(Kind::Ca)
    }

    /// The trusted identities, with their ids.
    pub fn identities(&self) -> Result<Vec<(Digest, TrustedIdentity)>, TrustError> {
        self.records(Kind::Sigstore)
    }

    /// Trusts a certificate authority about these subjects, or about all whose certificates it signs. One that is trusted already
    /// is trusted as said now.
    pub fn pin_authority(&self, pem: &str, subjects: Vec<Name>, from: &Path) -> Result<(Digest, Root), TrustError> {
        let root = Root::from_pem(pem)
            .map_err(|error| TrustError::NotAnAuthority { path: from.to_owned(), why: error.to_string() })?;
        let authority = Authority { certificate: pem.to_owned(), subjects };
        self.keep(Kind::Ca, root.id(), &authority)?;
        Ok((root.id(), root))
    }

    /// Trusts an identity that a Sigstore instance vouches for.
    pub fn pin_identity(
        &self,
        root: &[u8],
        issuer: &str,
        identity: &str,
        pattern: bool,
        from: &Path,
    ) -> Result<Digest, TrustError> {
        let wrong = |why: String| TrustError::NotAnAuthority { path: from.to_owned(), why };
        let all = pattern && identity.chars().all(|sign| sign == '*');
        if issuer.is_empty() || identity.is_empty() || all || identity.len() > 2048 {
            return Err(wrong("name the issuer, and an identity that not everybody has".to_owned()));
        }
        TrustedRoot::parse(root).map_err(|error| wrong(error.to_string()))?;
        let root = json::parse(root).map_err(|error| wrong(error.to_string()))?;
        let record = TrustedIdentity { issuer: issuer.to_owned(), identity: identity.to_owned(), pattern, root };
        self.keep(Kind::Sigstore, record.id(), &record)?;
        Ok(record.id())
    }

    /// Whether a record is still there. Nothing of it is read.
    pub fn stands_by(&self, id: Digest) -> bool {
        [Kind::Ca, Kind::Sigstore].into_iter().any(|kind| self.record(kind, id).is_some_and(|path| path.is_file()))
    }

    /// The files of the records whose ids start with `hex`.
    pub(super) fn records_like(&self, hex: &str) -> Result<Vec<(PathBuf, Digest)>, TrustError> {
        let mut out = Vec::new();
        for kind in [Kind::Ca, Kind::Sigstore] {
            let files = self.record_files(kind)?;
            out.extend(files.into_iter().filter(|(_, id)| id.hex().starts_with(hex)));
        }
        Ok(out)
    }

    fn record(&self, kind: Kind, id: Digest) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(kind.folder()).join(format!("{}.json", id.hex())))
    }

    fn keep<T: Serialize>(&self, kind: Kind, id: Digest, record: &T) -> Result<(), TrustError> {
        let dir = self.make()?.join(kind.folder());
        fs::create_dir_all(&dir).map_err(|source| TrustError::Io { path: dir.clone(), source })?;
        write(&dir.join(format!("{}.json", id.hex())), json::to_canonical(record).as_bytes())
    }

    fn record_files(&self, kind: Kind) -> Result<Vec<(PathBuf, Digest)>, TrustError> {
        let Some(dir) = self.dir.as_ref().map(|dir| dir.join(kind.folder())) else { return Ok(Vec::new()) };
        let io = |path: &Path, source| TrustError::Io { path: path.to_owned(), source };
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|source| io(&dir, source))?,
        };
        let mut out = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| io(&dir, source))?.path();
            let id = path.file_stem().and_then(|stem| Digest::from_hex(stem.to_str()?).ok());
            match id {
                Some(id) if path.extension().is_some_and(|extension| extension == "json") => out.push((path, id)),
                _ => return Err(TrustError::NotAnAuthority { path, why: "its name is no digest".to_owned() }),
            }
            if out.len() > MOST {
                return Err(TrustError::NotAnAuthority { path: dir, why: format!("more than {MOST} records") });
            }
        }
        out.sort();
        Ok(out)
    }

    fn records<T: serde::de::DeserializeOwned>(&self, kind: Kind) -> Result<Vec<(Digest, T)>, TrustError> {
        let one = |(path, id): (PathBuf, Digest)| {
            let bytes =
                regular_file::read(&path, MAX).map_err(|source| TrustError::Io { path: path.clone(), source })?;
            let record = json::from_slice(&bytes)
                .map_err(|error| TrustError::NotAnAuthority { path: path.clone(), why: error.to_string() })?;
            Ok((id, record))
        };
        self.record_files(kind)?.into_iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_in_their_segment() {
        let workflow = "https://github.com/org/repo/.github/workflows/*.yml@refs/tags/v*";
        let of = |rest: &str| format!("https://github.com/org/repo/.github/workflows/{rest}");
        for (pattern, text, expected) in [
            (workflow, of("release.yml@refs/tags/v1"), true),
            (workflow, of("release.yml@refs/heads/main"), false),
            (workflow, of("a/b.yml@refs/tags/v1"), false),
            (workflow, of("release.yml@refs/tags/v1/2"), false),
            (workflow, "https://github.com/org/repo2/.github/workflows/a.yml@refs/tags/v1".to_owned(), false),
            ("https://github.com/org/**", of("a.yml@refs/tags/v1"), true),
            ("https://github.com/org/**", "https://github.com/organ/x".to_owned(), false),
            ("*@example.org", "a@example.org".to_owned(), true),
            ("*@example.org", "a@example.org.evil.test".to_owned(), false),
            ("*@example.org", "evil/x@example.org".to_owned(), false),
            ("a**", "a".to_owned(), true),
            ("", String::new(), true),
        ] {
            assert_eq!(matches(pattern, &text), expected, "{pattern} {text}");
        }
    }
}
