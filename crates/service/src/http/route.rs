//! The routes' paths, and how logs, metrics, spans and the API's document spell them.

use axum::http::Method;
use writ_evidence::registry::PATH as REGISTRY;

use super::documents;

pub const EVALUATE: &str = "/api/evaluate";
pub const HEALTH: &str = "/api/health";
pub const OPENAPI: &str = "/api/openapi.json";
pub const METRICS: &str = "/metrics";
/// What an attestation's path matches; whether it has an id is asked by hand, before anything is decoded.
pub const ATTESTATION: &str = "/.well-known/attestations/{file}";
/// Its name in logs, metrics and the API's document.
pub const ATTESTATION_NAME: &str = "/.well-known/attestations/{id}.json";

/// The route as logs, metrics and the API's document spell it.
pub fn name(path: &str) -> Option<&'static str> {
    let plain = [EVALUATE, HEALTH, OPENAPI, METRICS, REGISTRY].into_iter().find(|name| *name == path);
    plain.or_else(|| documents::id(path).map(|_id| ATTESTATION_NAME))
}

/// The method as it is counted: nobody can make up labels.
pub fn method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
