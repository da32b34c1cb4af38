//! Who may ask, and how often.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::request::Parts;

use super::Service;
use super::error::ApiError;
use super::rate_limit::Client;
use super::response::JSON;

/// The peer of a connection, in every request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub u128);

/// A read that is within its peer's rate.
#[derive(Debug)]
pub struct WithinRate;

impl FromRequestParts<Arc<Service>> for WithinRate {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        service.count(Client::Reading(peer(parts.extensions.get()))).map(|()| Self)
    }
}

/// An evaluation that may be asked for, which is known before anything of the body is looked at.
#[derive(Debug)]
pub struct MayEvaluate;

impl FromRequestParts<Arc<Service>> for MayEvaluate {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        let (peer, headers) = (peer(parts.extensions.get()), &parts.headers);
        let client = match &service.tokens {
            Some(tokens) => tokens.find(headers).map(Client::Token),
            None => Some(Client::Evaluating(peer)),
        };
        service.count(client.unwrap_or(Client::Evaluating(peer)))?;
        if client.is_none() {
            return Err(ApiError::Unauthorized);
        }
        // A page in the user's browser reaches a loopback address too; without a token there is nothing else that it lacks.
        if service.tokens.is_none() && headers.contains_key(ORIGIN) {
            return Err(ApiError::Origin);
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case(JSON) { Ok(Self) } else { Err(ApiError::MediaType) }
    }
}

/// Whoever has no address is counted as one; connections give every request theirs.
fn peer(known: Option<&Peer>) -> u128 {
    known.map_or(0, |peer| peer.0)
}
