//! Why nothing is signed without a key of one's own.

use writ_evidence::keys::KeyError;
use writ_evidence::sigstore::IdentityTokenError;

/// Why nothing is signed without a key of one's own.
#[derive(Debug, thiserror::Error)]
pub enum SigstoreError {
    /// An address that is not spoken to.
    #[error("{service} is not asked at `{url}`: {why}")]
    Address {
        /// Which service.
        service: &'static str,
        /// Its address.
        url: String,
        /// Why not.
        why: &'static str,
    },
    /// The token.
    #[error(transparent)]
    Token(#[from] IdentityTokenError),
    /// No answer, or one that stops in the middle.
    #[error("{service} gives no answer at {url}: {why}")]
    Network {
        /// Which service.
        service: &'static str,
        /// What was asked.
        url: String,
        /// Why.
        why: String,
    },
    /// An answer without an end.
    #[error("{service} at {url} answers with more than {limit} bytes, which no answer of it has")]
    TooLarge {
        /// Which service.
        service: &'static str,
        /// What was asked.
        url: String,
        /// How much is read.
        limit: u64,
    },
    /// It says no.
    #[error("{service} at {url} refuses with {status}{said}{}", remedy(service, *status))]
    Refused {
        /// Which service.
        service: &'static str,
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says, with ` (` and `)` around it.
        said: String,
    },
    /// Something else than what was asked for.
    #[error("{service} at {url} does not answer what was asked: {why}")]
    Answer {
        /// Which service.
        service: &'static str,
        /// What was asked.
        url: String,
        /// Why, fit to be shown: it may quote the answer.
        why: String,
    },
    /// A certificate for nobody.
    #[error("Fulcio at {0} gives a certificate that names no identity and no issuer")]
    Nameless(String),
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

fn remedy(service: &str, status: u16) -> &'static str {
    match (service, status) {
        ("Fulcio", 400 | 401 | 403) => {
            ": does this instance trust the token's issuer, is the token for it (`aud`, mostly `sigstore`), and not over?"
        }
        (_, 300..=399) => ": it leads elsewhere, and nothing is sent there; give the address that it leads to",
        (_, 404 | 405) => ": is this the service's own address?",
        _ => "",
    }
}
