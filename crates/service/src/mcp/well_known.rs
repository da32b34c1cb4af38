//! What the attestations' URLs promise: the registry, and attestations by their id.
//!
//! Public, as the protocol wants it; an id is only ever a key in the database.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use writ_core::json;
use writ_evidence::attestation::{Attestation, FOLDER, is_id};
use writ_evidence::registry::{KeyState, PATH};

use super::server::Server;
use super::signer::{Instance, SignerError};

/// The routes; without an instance they find nothing.
pub(super) fn routes(server: Server) -> Router {
    let attestation = format!("{FOLDER}{{file}}");
    Router::new().route(PATH, get(registry)).route(&attestation, get(one)).with_state(server)
}

async fn registry(State(server): State<Server>) -> Response {
    asked(server, |instance| match instance {
        Instance::Here { signer, .. } => Ok(Some(json::to_compact(&signer.registry()?))),
        Instance::None | Instance::Broken(_) => Ok(None),
    })
    .await
}

async fn one(State(server): State<Server>, Path(file): Path<String>) -> Response {
    let Some(id) = file.strip_suffix(".json").filter(|id| is_id(id)).map(str::to_owned) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let gone = asked(server, move |instance| {
        let Instance::Here { signer, .. } = instance else { return Ok(None) };
        let Some(document) = signer.find(&id)? else { return Ok(None) };
        let key = Attestation::parse(document.as_bytes()).ok().map(|attestation| attestation.key_id().to_owned());
        let registry = signer.registry()?;
        let state = key.and_then(|key| Some(registry.key(&key)?.state));
        // Out of service (section 6.5): an empty document is none.
        let gone = matches!(state, Some(KeyState::Retired | KeyState::Compromised));
        Ok(Some(if gone { String::new() } else { document }))
    });
    gone.await
}

/// Asks the issuer away from the threads that answer.
async fn asked(
    server: Server,
    ask: impl FnOnce(&Instance) -> Result<Option<String>, SignerError> + Send + 'static,
) -> Response {
    let told = tokio::task::spawn_blocking(move || ask(server.instance())).await;
    match told {
        Ok(Ok(Some(document))) if document.is_empty() => StatusCode::GONE.into_response(),
        Ok(Ok(Some(document))) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json"),
                (header::CACHE_CONTROL, "public, no-cache"),
                (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (StatusCode::OK, headers, document).into_response()
        }
        Ok(Ok(None)) => StatusCode::NOT_FOUND.into_response(),
        Ok(Err(_)) | Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
