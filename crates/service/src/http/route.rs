//! The routes, and what each answers to reads.
//!
//! Paths are compared as they came: nothing is decoded, nothing is joined to a folder.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::IF_NONE_MATCH;
use hyper::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;
use writ_core::json::{self, Object, Value};
use writ_evidence::attestation::{FOLDER, is_id};
use writ_evidence::registry::{KeyState, PATH};

use super::answer::{Refusal, Reply, document, json as answer, typed};
use super::reader::Published;
use super::{HEALTH_TIME, Service, metrics};

/// The document of `/api/openapi.json`.
pub const OPENAPI: &str = include_str!("openapi.json");
/// How long a copy of an attestation may be used: it never changes, but it may be gone.
const KEEP_ATTESTATION: &str = "public, max-age=300";
/// A registry is asked for because something changed: every copy is checked first.
const KEEP_REGISTRY: &str = "public, no-cache";

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route<'a> {
    /// `POST /api/evaluate`
    Evaluate,
    /// `GET /api/health`
    Health,
    /// `GET /api/openapi.json`
    OpenApi,
    /// `GET /metrics`
    Metrics,
    /// `GET /.well-known/recourse-keys.json`
    Registry,
    /// `GET /.well-known/attestations/{id}.json`
    Attestation(&'a str),
}

impl<'a> Route<'a> {
    /// The route of a path.
    pub fn of(path: &'a str) -> Option<Self> {
        Some(match path {
            "/api/evaluate" => Self::Evaluate,
            "/api/health" => Self::Health,
            "/api/openapi.json" => Self::OpenApi,
            "/metrics" => Self::Metrics,
            PATH => Self::Registry,
            _ => Self::Attestation(path.strip_prefix(FOLDER)?.strip_suffix(".json").filter(|id| is_id(id))?),
        })
    }

    /// The route as logs, metrics and the API's document spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluate => "/api/evaluate",
            Self::Health => "/api/health",
            Self::OpenApi => "/api/openapi.json",
            Self::Metrics => "/metrics",
            Self::Registry => PATH,
            Self::Attestation(_) => "/.well-known/attestations/{id}.json",
        }
    }

    /// The methods it takes.
    pub const fn allow(self) -> &'static str {
        if matches!(self, Self::Evaluate) { "POST" } else { "GET, HEAD" }
    }

    /// Whether it takes this one.
    pub fn takes(self, method: &Method) -> bool {
        if self == Self::Evaluate { method == Method::POST } else { method == Method::GET || method == Method::HEAD }
    }
}

/// Answers a read.
pub async fn read(service: &Service, route: Route<'_>, headers: &HeaderMap) -> Result<Reply, Refusal> {
    match route {
        Route::Evaluate => Err(Refusal::Method(route.allow())),
        Route::Health => Ok(health(service).await),
        Route::OpenApi => Ok(answer(StatusCode::OK, Bytes::from_static(OPENAPI.as_bytes()))),
        Route::Metrics => match &service.tokens {
            Some(tokens) if tokens.find(headers).is_none() => Err(Refusal::Unauthorized),
            _ => Ok(typed(StatusCode::OK, service.metrics.text(), metrics::CONTENT_TYPE)),
        },
        Route::Registry => {
            let published = service.reader.registry().await?;
            let published = published.ok_or(Refusal::NotFound("no registry: nothing was ever attested here"))?;
            Ok(document(published.body.clone(), &published.tag, KEEP_REGISTRY, headers.get(IF_NONE_MATCH)))
        }
        Route::Attestation(id) => {
            let found = service.reader.find(id).await?.ok_or(Refusal::NotFound("no such attestation"))?;
            if matches!(found.key, Some(KeyState::Retired | KeyState::Compromised)) {
                return Err(Refusal::Gone);
            }
            let tag = format!("\"{id}\"");
            Ok(document(found.document.into(), &tag, KEEP_ATTESTATION, headers.get(IF_NONE_MATCH)))
        }
    }
}

async fn health(service: &Service) -> Reply {
    let registry = timeout(HEALTH_TIME, service.reader.registry()).await;
    let mut out = Object::new();
    let signs = |published: &Option<Arc<Published>>| published.as_ref().is_some_and(|published| published.signs());
    let takes = tokio::task::block_in_place(|| service.disk.as_ref().is_none_or(super::Disk::takes));
    let (status, word) = match &registry {
        Ok(Ok(_)) if !takes => (StatusCode::SERVICE_UNAVAILABLE, "disk"),
        Ok(Ok(_)) if service.signer.as_ref().is_some_and(super::SignerQueue::is_gone) => {
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
    answer(status, json::compact(&Value::Object(out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_attestations() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(Route::of(&format!("{FOLDER}{id}.json")), Some(Route::Attestation(id)));
        for path in [
            "/".to_owned(),
            format!("{FOLDER}{id}"),
            format!("{FOLDER}{}.json", id.to_uppercase()),
            format!("{FOLDER}{id}0.json"),
            format!("{FOLDER}../{id}.json"),
            format!("{FOLDER}..%2f..%2fkeys%2fwrit-1.pem"),
            format!("{FOLDER}%30{}.json", id.trim_start_matches('0')),
            format!("/{FOLDER}{id}.json"),
            "/.well-known/../api/health".to_owned(),
            "/api/evaluate/".to_owned(),
            "*".to_owned(),
        ] {
            assert_eq!(Route::of(&path), None, "{path}");
        }
    }

    #[test]
    fn the_document_names_every_route() {
        let document = json::parse(OPENAPI.as_bytes()).unwrap();
        let paths = document.get("paths").and_then(Value::as_object).unwrap();
        let attestation = format!("{FOLDER}0123456789abcdef0123456789abcdef.json");
        let served = ["/api/evaluate", "/api/health", "/api/openapi.json", "/metrics", PATH, attestation.as_str()];
        let routes: Vec<Route<'_>> = served.into_iter().map(|path| Route::of(path).unwrap()).collect();
        assert_eq!(paths.len(), routes.len());
        for route in routes {
            let operations = paths.get(route.name()).and_then(Value::as_object).unwrap_or_else(|| panic!("{route:?}"));
            let methods: Vec<String> = operations.iter().map(|(name, _)| name.to_uppercase()).collect();
            let allowed: Vec<&str> = route.allow().split(", ").filter(|method| *method != "HEAD").collect();
            assert_eq!(methods, allowed, "{route:?}");
        }
    }
}
