//! A SPIFFE Workload API, asked for the X.509-SVID of this process.
//!
//! Owns the connection and its limit on time. Refuses to keep the private key that comes with an SVID.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use spiffe::WorkloadApiClient;
use spiffe::transport::Endpoint;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Uri};
use writ_core::{Digest, Timestamp};
use writ_engine::Svid;
use writ_evidence::signer::x509;

/// How long it may take.
const TIME: Duration = Duration::from_secs(2);
/// The user at the other end.
type Peer = Arc<OnceLock<u32>>;

/// Fetches it once from `unix:///PATH` or `tcp://ADDRESS:PORT`.
pub fn fetch(address: &str) -> Result<Svid, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let asked = async { tokio::time::timeout(TIME, asked(address)).await };
    let answered = runtime.block_on(asked).map_err(|_elapsed| format!("no answer within {} s", TIME.as_secs()));
    answered.flatten().map_err(|why| format!("{address}: {why}"))
}

async fn asked(address: &str) -> Result<Svid, String> {
    let endpoint = Endpoint::parse(address).map_err(|error| error.to_string())?;
    let peer = Peer::default();
    let client = match &endpoint {
        Endpoint::Unix(path) => WorkloadApiClient::new_with_channel(endpoint.clone(), unix(path, &peer).await?),
        Endpoint::Tcp { .. } => WorkloadApiClient::connect(endpoint).await.map_err(|error| told(&error))?,
        _ => return Err("it is neither `unix:` nor `tcp:`".to_owned()),
    };
    let svid = client.fetch_x509_svid().await.map_err(|error| told(&error))?;
    let leaf = svid.leaf().as_bytes();
    let expires = x509::not_after(leaf).map_err(|error| error.to_string())?;
    let expires = Timestamp::from_millis(i64::try_from(expires).unwrap_or(i64::MAX).saturating_mul(1000));
    Ok(Svid { id: svid.spiffe_id().to_string(), certificate: Digest::of(leaf), expires, peer: peer.get().copied() })
}

/// A channel over a Unix socket, of whose other end the kernel tells.
async fn unix(path: &Path, peer: &Peer) -> Result<Channel, String> {
    let (path, peer) = (path.to_owned(), Arc::clone(peer));
    let connect = tower::service_fn(move |_: Uri| {
        let (path, peer) = (path.clone(), Arc::clone(&peer));
        async move {
            let stream = UnixStream::connect(path).await?;
            peer.set(stream.peer_cred()?.uid()).unwrap_or_default();
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    // The address stands in the request alone.
    let address = tonic::transport::Endpoint::from_static("http://localhost");
    address.connect_with_connector(connect).await.map_err(|error| told(&error))
}

/// An error with its causes, which the library's own words leave out.
pub fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}
