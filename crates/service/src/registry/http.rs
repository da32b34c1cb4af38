//! Answers of registries, read with limits.

use std::io::Read;

use serde::Deserialize;
use ureq::http::Response;
use writ_core::json::{self, Limits};

use super::error::{RegistryError, foreign};

/// Most of an error's body that is read.
const MAX_SAID: u64 = 64 << 10;

/// An answer.
pub(super) type Answer = Response<ureq::Body>;

#[derive(Deserialize)]
struct Errors {
    #[serde(default)]
    errors: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// Why there is no answer. A URL's query may hold what lets in, and is not shown.
pub(super) fn network(url: &str, error: &dyn std::fmt::Display) -> RegistryError {
    let url = url.split('?').next().unwrap_or_default();
    RegistryError::Network { url: foreign(url), why: foreign(&error.to_string()) }
}

/// A whole body.
pub(super) fn body(answer: &mut Answer, url: &str, limit: u64) -> Result<Vec<u8>, RegistryError> {
    let mut out = Vec::new();
    answer.body_mut().as_reader().take(limit + 1).read_to_end(&mut out).map_err(|error| network(url, &error))?;
    if out.len() as u64 > limit {
        return Err(network(url, &format!("more than {limit} bytes")));
    }
    Ok(out)
}

/// What a registry says of a failure, with ` (` and `)` around it; empty where it says nothing.
pub(super) fn said(answer: &mut Answer) -> String {
    let mut bytes = Vec::new();
    drop(answer.body_mut().as_reader().take(MAX_SAID).read_to_end(&mut bytes));
    let errors: Vec<One> =
        json::from_slice_with::<Errors>(&bytes, Limits::FOREIGN).map(|all| all.errors).unwrap_or_default();
    let told: Vec<String> = errors
        .iter()
        .take(3)
        .map(|one| if one.message.is_empty() { one.code.clone() } else { format!("{}: {}", one.code, one.message) })
        .collect();
    if told.is_empty() { String::new() } else { format!(" ({})", foreign(&told.join("; "))) }
}

/// A header's text.
pub(super) fn header<'a, B>(answer: &'a Response<B>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}
