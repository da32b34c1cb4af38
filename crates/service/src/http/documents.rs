//! What is read: the registry, attestations by their id, the metrics and the API's document.
//!
//! Paths are compared as they came: nothing is decoded, nothing is joined to a folder.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use writ_evidence::attestation::{FOLDER, is_id};
use writ_evidence::registry::KeyState;

use super::Service;
use super::admission::WithinRate;
use super::error::ApiError;
use super::response::{document, json};
use super::telemetry::METRICS_TYPE;

/// The document of `/api/openapi.json`.
pub const OPENAPI: &str = include_str!("openapi.json");
/// How long a copy of an attestation may be used: it never changes, but it may be gone.
const KEEP_ATTESTATION: &str = "public, max-age=300";
/// A registry is asked for because something changed: every copy is checked first.
const KEEP_REGISTRY: &str = "public, no-cache";

/// The id in the path of an attestation.
pub fn id(path: &str) -> Option<&str> {
    path.strip_prefix(FOLDER)?.strip_suffix(".json").filter(|id| is_id(id))
}

/// The id that a request names.
#[derive(Debug)]
pub struct Id(String);

impl<S: Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        id(parts.uri.path()).map(|id| Self(id.to_owned())).ok_or(ApiError::NO_ROUTE)
    }
}

/// `GET /.well-known/recourse-keys.json`
pub async fn registry(
    _counted: WithinRate,
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let published = service.archives.registry().await?;
    let published = published.ok_or(ApiError::NotFound("no registry: nothing was ever attested here"))?;
    Ok(document(published.body.clone(), &published.tag, KEEP_REGISTRY, headers.get(IF_NONE_MATCH)))
}

/// `GET /.well-known/attestations/{id}.json`
pub async fn attestation(
    Id(id): Id,
    _counted: WithinRate,
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let found = service.archives.find(&id).await?.ok_or(ApiError::NotFound("no such attestation"))?;
    if matches!(found.key, Some(KeyState::Retired | KeyState::Compromised)) {
        return Err(ApiError::Gone);
    }
    Ok(document(found.document.into(), &format!("\"{id}\""), KEEP_ATTESTATION, headers.get(IF_NONE_MATCH)))
}

/// `GET /api/openapi.json`
pub async fn openapi(_counted: WithinRate) -> Response {
    json(StatusCode::OK, Bytes::from_static(OPENAPI.as_bytes()))
}

/// `GET /metrics`
pub async fn metrics(
    _counted: WithinRate,
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    match &service.tokens {
        Some(tokens) if tokens.find(&headers).is_none() => Err(ApiError::Unauthorized),
        Some(_) | None => Ok(([(CONTENT_TYPE, METRICS_TYPE)], service.metrics.text()).into_response()),
    }
}
