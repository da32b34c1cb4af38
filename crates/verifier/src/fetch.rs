//! What the verifier asks of whoever has a network.

/// Largest registry that is read, in bytes.
pub const MAX_REGISTRY: usize = 4 << 20;
/// Largest copy of an attestation that is read, in bytes.
pub const MAX_ATTESTATION: usize = 64 << 20;

/// An HTTP GET.
///
/// An implementation follows no redirect: a registry speaks for the host it was asked from and no other (§5.3), so a 3xx is handed back
/// as the status it is. It sends no credentials, checks the server's certificate for `https`, gives up after a time of its own, and
/// reads no more than `limit` bytes and one of the body as it stands after any content coding: a longer one comes back cut there, so that
/// it is told from no answer and not asked for again.
// EXTENSION POINT: the command line and the service each bring their own client; this crate depends on none.
pub trait Fetch {
    /// The answer to `GET url`, whatever its status.
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, NetworkError>;
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
}

/// No answer: the name does not resolve, nobody listens, the certificate is wrong, it took too long.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

impl<F: Fetch + ?Sized> Fetch for &F {
    fn get(&self, url: &str, limit: usize) -> Result<Fetched, NetworkError> {
        (**self).get(url, limit)
    }
}
