//! The API's errors: each has a status, a code and a message (`docs/service.md`).

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use writ_core::json::write_string;
use writ_core::secret::hide;

use super::response::json;

/// Longest message of an error.
const MAX_MESSAGE: usize = 400;

/// Why a request is not answered as it wishes. No variant carries a path, an address or a word of the database's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiError {
    /// Not JSON, or not an object of the right members.
    Malformed(String),
    /// Nothing in it can be evaluated.
    NoSubject(String),
    /// No token, or not one of ours.
    Unauthorized,
    /// A web page asks, and no token says that it may.
    Origin,
    /// No such route, no such attestation, no registry.
    NotFound(&'static str),
    /// Another method.
    Method(&'static str),
    /// The body did not come in time.
    SlowBody,
    /// Its key is retired or compromised (§6.5).
    Gone,
    /// Above the limit, in bytes.
    TooLarge(usize),
    /// A head above the limit, in bytes.
    Head(usize),
    /// Not `application/json`.
    MediaType,
    /// Above the rate limit: try again after so many seconds.
    TooMany(u64),
    /// No room for it now.
    Busy,
    /// The evaluation did not end in time.
    Timeout,
    /// The verdict could not be signed and kept (never answered without its attestation).
    Unattested,
    /// The database does not answer.
    Unavailable,
}

impl ApiError {
    /// Nothing is there.
    pub const NO_ROUTE: Self = Self::NotFound("no such route");

    /// Status, code and message.
    fn parts(&self) -> (StatusCode, &'static str, Cow<'_, str>) {
        use StatusCode as S;
        let (status, code, message) = match self {
            Self::Malformed(why) => return (S::BAD_REQUEST, "malformed", why.into()),
            Self::NoSubject(why) => return (S::UNPROCESSABLE_ENTITY, "not_evaluable", why.into()),
            Self::NotFound(what) => return (S::NOT_FOUND, "not_found", (*what).into()),
            Self::Method(allow) => {
                return (S::METHOD_NOT_ALLOWED, "method_not_allowed", format!("use {allow}").into());
            }
            Self::TooLarge(limit) => {
                return (S::PAYLOAD_TOO_LARGE, "too_large", format!("the limit is {limit} bytes").into());
            }
            Self::Head(limit) => {
                let status = S::REQUEST_HEADER_FIELDS_TOO_LARGE;
                return (status, "head_too_large", format!("the limit of a head is {limit} bytes").into());
            }
            Self::Unauthorized => {
                (S::UNAUTHORIZED, "unauthorized", "send the header `Authorization` with `Bearer` and an access token")
            }
            Self::Origin => (S::FORBIDDEN, "origin", "without access tokens, web pages are not served here"),
            Self::SlowBody => (S::REQUEST_TIMEOUT, "slow_body", "the body did not come in time"),
            Self::Gone => (S::GONE, "gone", "the key that signed it is out of service"),
            Self::MediaType => (S::UNSUPPORTED_MEDIA_TYPE, "media_type", "send `Content-Type: application/json`"),
            Self::TooMany(_) => (S::TOO_MANY_REQUESTS, "too_many_requests", "too many requests: try again later"),
            Self::Busy => (S::SERVICE_UNAVAILABLE, "busy", "too busy for it now: try again"),
            Self::Timeout => (S::SERVICE_UNAVAILABLE, "timeout", "the evaluation took too long"),
            Self::Unattested => (
                S::SERVICE_UNAVAILABLE,
                "not_attested",
                "the verdict could not be signed and kept: try again; the log of the service tells why",
            ),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "unavailable", "the database does not answer: try again"),
        };
        (status, code, message.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, message) = self.parts();
        let mut body = format!("{{\"error\":{{\"code\":\"{code}\",\"message\":");
        let message: String = hide(&message).chars().take(MAX_MESSAGE).collect();
        write_string(&message, &mut body);
        body.push_str("}}\n");
        let mut reply = json(status, body);
        let mut set = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                reply.headers_mut().insert(name, value);
            }
        };
        match self {
            Self::Unauthorized => set(header::WWW_AUTHENTICATE, "Bearer"),
            Self::Method(allow) => set(header::ALLOW, allow),
            Self::TooMany(seconds) => set(header::RETRY_AFTER, &seconds.to_string()),
            Self::Busy | Self::Timeout | Self::Unattested | Self::Unavailable => set(header::RETRY_AFTER, "1"),
            // What is left of the body is not read, so the connection cannot go on.
            Self::TooLarge(_) | Self::SlowBody | Self::Head(_) => set(header::CONNECTION, "close"),
            Self::Malformed(_)
            | Self::NoSubject(_)
            | Self::Origin
            | Self::NotFound(_)
            | Self::Gone
            | Self::MediaType => {}
        }
        reply
    }
}
