//! `GET /api/health`: whether the service could do now what it is for.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::time::timeout;
use writ_core::json::{self, Object, Value};

use super::Service;
use super::archive_pool::PublishedRegistry;
use super::disk_check::DiskCheck;
use super::response::json as answer_json;
use super::signer_queue::SignerQueue;

/// How long the database may take before the service calls itself unwell.
const TIME: Duration = Duration::from_secs(2);

/// Answers one request.
pub async fn answer(State(service): State<Arc<Service>>) -> Response {
    let registry = timeout(TIME, service.archives.registry()).await;
    let mut out = Object::new();
    let signs =
        |published: &Option<Arc<PublishedRegistry>>| published.as_ref().is_some_and(|published| published.signs());
    let takes = tokio::task::block_in_place(|| service.disk.as_ref().is_none_or(DiskCheck::is_writable));
    let (status, word) = match &registry {
        Ok(Ok(_)) if !takes => (StatusCode::SERVICE_UNAVAILABLE, "disk"),
        Ok(Ok(_)) if service.signer.as_ref().is_some_and(SignerQueue::is_gone) => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
        Ok(Ok(published)) if service.signer.is_some() && !signs(published) => {
            (StatusCode::SERVICE_UNAVAILABLE, "no_key")
        }
        Ok(Ok(_)) => (StatusCode::OK, "ok"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    out.push("status", Value::from(word));
    out.push("version", Value::from(env!("CARGO_PKG_VERSION")));
    out.push("attestation", Value::from(service.signer.is_some()));
    if let Ok(Ok(Some(published))) = registry {
        out.push("registry_version", Value::from(published.version()));
    }
    answer_json(status, json::compact(&Value::Object(out)))
}
