//! Bodies of JSON and public documents, with their headers.

use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};

/// The type of nearly all answers.
pub const JSON: &str = "application/json";

/// A JSON answer.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], body.into()).into_response()
}

/// A public JSON document with its tag; nothing but the tag when the client has it already.
pub fn document(body: Bytes, tag: &str, keep: &'static str, known: Option<&HeaderValue>) -> Response {
    let headers = [(header::CACHE_CONTROL, keep), (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (header::ETAG, tag)];
    let has = |known: &HeaderValue| {
        let mut tags = known.to_str().unwrap_or_default().split(',').map(str::trim);
        tags.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    };
    if known.is_some_and(has) {
        (StatusCode::NOT_MODIFIED, headers).into_response()
    } else {
        (headers, json(StatusCode::OK, body)).into_response()
    }
}
