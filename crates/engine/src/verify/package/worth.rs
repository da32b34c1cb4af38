//! What a signature on a package is worth here: by whom it is, and whether that is somebody who is believed.
//!
//! Owns the verdict about one bundle. Refuses one that names somebody who is believed and does not hold. Invariant: nobody is a signer whose
//! signature was not checked, an identity's with its certificate, log entry and time under the very root that it is believed about.

use writ_core::Digest;
use writ_evidence::dsse::{Envelope, VerifyError};
use writ_evidence::intoto::{Content, Material};
use writ_evidence::keys::PublicKey;
use writ_evidence::signer::Signer;
use writ_evidence::signer::keyless::{self, Identity, KeylessError, TrustedRoot};
use writ_package::bundled::Said;

use crate::governing::{Trust, TrustError, TrustedIdentity};

/// What a signature is worth here.
pub(super) enum Worth {
    /// By these, who are believed, about this package.
    Trusted(Vec<Signer>),
    /// By somebody else, or nobody can tell.
    Unknown(String),
    /// Not what it says.
    Wrong(String),
}

/// Whose word counts.
#[derive(Default)]
pub struct Believed {
    keys: Vec<PublicKey>,
    identities: Vec<(Digest, TrustedIdentity, TrustedRoot)>,
}

impl Believed {
    /// One key's alone.
    pub fn key(key: PublicKey) -> Self {
        Self { keys: vec![key], identities: Vec::new() }
    }

    /// That of the keys and identities that the user trusts.
    pub fn of(trust: &Trust) -> Result<Self, TrustError> {
        let mut identities = Vec::new();
        for (id, identity) in trust.identities()? {
            let root =
                identity.root().map_err(|why| TrustError::NotAnAuthority { path: id.to_string().into(), why })?;
            identities.push((id, identity, root));
        }
        Ok(Self { keys: trust.keys()?, identities })
    }

    /// What is said where nobody of them signed.
    pub(super) const fn nobody(&self) -> &'static str {
        if self.identities.is_empty() {
            "unknown-key: no signature by a key that is trusted here"
        } else {
            "unknown-key: no signature by a key or an identity that is trusted here"
        }
    }

    /// What a signed statement is worth about a package.
    pub(super) fn worth(&self, said: &Said, subject: Digest) -> Worth {
        let Content::Envelope(envelope) = &said.bundle.content else {
            return Worth::Unknown("it signs bytes and no statement".to_owned());
        };
        let worth = match &said.bundle.material {
            Material::PublicKey { .. } => self.by_key(envelope),
            Material::Certificate(_) | Material::Chain(_) => self.by_identity(said),
        };
        if matches!(worth, Worth::Trusted(_)) && !said.is_about(subject) {
            return Worth::Wrong("signature-of-another: it is signed, and about another package".to_owned());
        }
        worth
    }

    fn by_key(&self, envelope: &Envelope) -> Worth {
        match envelope.verify(&self.keys) {
            Ok(good) => Worth::Trusted(good.signers().iter().map(|id| Signer::Key { id: *id }).collect()),
            Err(VerifyError::NoSignature { .. }) => {
                Worth::Unknown("unknown-key: it is by no key that is trusted here".to_owned())
            }
            Err(error @ VerifyError::Wrong { .. }) => Worth::Wrong(format!("signature-invalid: {error}")),
        }
    }

    fn by_identity(&self, said: &Said) -> Worth {
        let text = said.text();
        let mut why = "unknown-identity: it is keyless, and no identity is trusted here (`writ keys trust --sigstore`)"
            .to_owned();
        // That it holds under one root says more than that it does not under another.
        let mut holds = false;
        for (id, trusted, root) in &self.identities {
            match keyless::verify_statement(root, &text) {
                Ok(found) if trusted.is(&found) => {
                    let Identity { subject: identity, issuer, log_index } = found;
                    return Worth::Trusted(vec![Signer::Keyless { identity, issuer, log_index, root: *id }]);
                }
                Ok(found) => {
                    holds = true;
                    why = format!(
                        "unknown-identity: `{}`, by {}, is no identity that is trusted here",
                        found.subject, found.issuer
                    );
                }
                // The certificate held before the signature was looked at: it is by whom it names.
                Err(error @ KeylessError::Signature(_))
                    if keyless::named(&said.bundle).is_some_and(|named| trusted.is(&named)) =>
                {
                    return Worth::Wrong(format!("signature-invalid: {error}"));
                }
                Err(_) if holds => {}
                Err(error) => why = format!("{}: {error}", code(&error)),
            }
        }
        Worth::Unknown(why)
    }
}

const fn code(error: &KeylessError) -> &'static str {
    match error {
        KeylessError::UnknownAuthority(_) => "unknown-authority",
        KeylessError::NotValid(_) => "certificate-expired",
        KeylessError::Sct(_) => "certificate-unlogged",
        KeylessError::Log(_) => "log-invalid",
        KeylessError::Time(_) => "time-unknown",
        KeylessError::Signature(_) => "signature-invalid",
        KeylessError::Root(_)
        | KeylessError::Bundle(_)
        | KeylessError::NotOverBytes
        | KeylessError::NoStatement
        | KeylessError::NoIdentity
        | KeylessError::Other(_) => "bundle-invalid",
    }
}
