//! Sending spans to a collector: OTLP over HTTP, JSON encoding.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use writ_core::json;

use super::log::{Field, Log};
use super::metrics::Metrics;
use super::span::{self, export};

/// Most requests of one export.
const BATCH: usize = 512;
/// How long an export waits for more.
const GATHER: Duration = Duration::from_millis(500);
/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A collector.
#[derive(Clone, Debug)]
pub struct Collector {
    address: SocketAddr,
    host: String,
    path: String,
}

impl Collector {
    /// The collector behind an OTLP endpoint (`http://127.0.0.1:4318`), to which `/v1/traces` is added. `None` where it is no `http://`
    /// with a numeric address or `localhost`: names are not resolved here, and spans for other machines go through a collector on
    /// this one.
    pub fn of(endpoint: &str) -> Option<Self> {
        let uri: Uri = endpoint.parse().ok()?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"))?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let name = if name.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { name };
        let address = SocketAddr::new(name.parse().ok()?, authority.port_u16().unwrap_or(80));
        let path = format!("{}/v1/traces", uri.path().trim_end_matches('/'));
        Some(Self { address, host: authority.as_str().to_owned(), path })
    }

    async fn send(&self, body: String) -> Result<(), String> {
        let told = |error: &dyn std::error::Error| error.to_string();
        let stream = TcpStream::connect(self.address).await.map_err(|error| told(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
        let connection = tokio::spawn(connection);
        let request = Request::post(&self.path)
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| told(&error))?;
        let sent = async {
            let reply = sender.send_request(request).await.map_err(|error| told(&error))?;
            let status = reply.status();
            reply.into_body().collect().await.map_err(|error| told(&error))?;
            if status.is_success() { Ok(()) } else { Err(status.to_string()) }
        };
        let outcome = sent.await;
        connection.abort();
        outcome
    }
}

/// Exports what comes until nobody can send any more.
pub async fn work(
    collector: Collector,
    instance: String,
    mut waiting: mpsc::Receiver<span::Request>,
    metrics: Metrics,
    log: Log,
) {
    let mut open = true;
    while open {
        let mut batch = Vec::new();
        if waiting.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let gathered = sleep(GATHER);
        tokio::pin!(gathered);
        while open && batch.len() < BATCH {
            let room = BATCH.saturating_sub(batch.len());
            tokio::select! {
                () = &mut gathered => break,
                more = waiting.recv_many(&mut batch, room) => open = more > 0,
            }
        }
        let body = json::compact(&export(&instance, &batch));
        let sent = timeout(PATIENCE, collector.send(body)).await.unwrap_or_else(|_late| Err("no answer".to_owned()));
        if let Err(why) = sent {
            metrics.spans_lost(batch.len());
            log.event("spans_lost", &[("why", Field::Text(&why)), ("count", Field::Number(batch.len() as u64))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints() {
        let collector = Collector::of("http://localhost:4318/").unwrap();
        assert_eq!((collector.address.to_string().as_str(), collector.path.as_str()), ("127.0.0.1:4318", "/v1/traces"));
        assert_eq!(Collector::of("http://[::1]:9/otlp").unwrap().path, "/otlp/v1/traces");
        for other in ["https://127.0.0.1:4318", "http://collector.example:4318", "127.0.0.1:4318", ""] {
            assert!(Collector::of(other).is_none(), "{other}");
        }
    }
}
