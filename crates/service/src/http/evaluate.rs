//! `POST /api/evaluate`: from a body to a verdict, and to its attestation where the service attests.
//!
//! Refuses to look at its own disk: it is not the caller's. Invariant: a service that attests never answers a verdict without its
//! attestation (§7.1).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tracing::{Instrument, info_span};
use writ_consequence::NoProbe;
use writ_core::Digest;
use writ_core::json::{self, Integers, Limits, Object, Value};
use writ_core::secret::hide;
use writ_engine::attest::issuer::{Prepared, Statement};
use writ_engine::attest::subject::{Detail, Subject};

use super::admission::MayEvaluate;
use super::error::ApiError;
use super::response::json;
use super::telemetry::Verdict;
use super::{Service, body};

/// Largest attestation: verifiers read no larger one. Leaves room for what is put around input and output.
const MAX_ATTESTED: usize = (64 << 20) - (64 << 10);

/// The members that `options` may have.
const OPTIONS: [&str; 6] = ["cwd", "home", "state", "chain_id", "parent_attestation", "hash_only"];

/// The members that a call to a server may have.
const CALL: [&str; 8] = ["tool", "name", "server", "arguments", "input", "annotations", "cwd", "home"];

/// Refuses an object with another member: a misspelled one would leave out what was meant.
fn only(what: &str, object: Option<&Value>, known: &[&str]) -> Result<(), ApiError> {
    let mut names = object.and_then(Value::as_object).into_iter().flat_map(Object::iter).map(|(name, _)| name);
    match names.find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            let known = known.join("`, `");
            Err(ApiError::Malformed(format!("{what} has no member `{unknown}`; it takes `{known}`")))
        }
    }
}

/// What became of a body.
struct Evaluated {
    verdict: Verdict,
    report: Report,
}

enum Report {
    /// The report's text.
    Plain(String),
    /// The report, ready to be attested.
    Prepared(Prepared),
}

/// Answers one request.
pub async fn answer(
    _admitted: MayEvaluate,
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = body::read(&service, request.into_body()).await?;
    let Evaluated { verdict, report } = evaluated(&service, body).instrument(info_span!("evaluate")).await?;
    let mut response = finished(&service, report).await.map_or_else(ApiError::into_response, |text| {
        service.metrics.verdict(verdict);
        json(StatusCode::OK, text)
    });
    response.extensions_mut().insert(verdict);
    Ok(response)
}

async fn evaluated(service: &Service, body: body::Received<'_>) -> Result<Evaluated, ApiError> {
    let (attest, seconds) = (service.signer.is_some(), service.shelf_life);
    if body.bytes.len() <= body::LONG {
        return evaluate(&body.bytes, attest, seconds);
    }
    let _turn = service.long_evaluations.acquire().await.map_err(|_closed| ApiError::Busy)?;
    let bytes = body.bytes.clone();
    let evaluated = tokio::task::spawn_blocking(move || evaluate(&bytes, attest, seconds)).await;
    evaluated.map_err(|_gone| ApiError::Busy)?
}

/// The answer's text, with the attestation in it where there is to be one.
async fn finished(service: &Service, report: Report) -> Result<String, ApiError> {
    match (report, &service.signer) {
        (Report::Plain(report), None) => Ok(report),
        (Report::Prepared(prepared), Some(signer)) => {
            let mut text = prepared.output().to_owned();
            let document = signer.attest(prepared).instrument(info_span!("attest")).await?;
            // The report is an object with members; the document stands in it byte for byte as it is kept.
            text.pop();
            text.reserve(document.len() + 20);
            text.push_str(",\"attestation\":");
            text.push_str(&document);
            text.push('}');
            Ok(text)
        }
        (Report::Plain(_), Some(_)) | (Report::Prepared(_), None) => Err(ApiError::Unattested),
    }
}

/// Parses, evaluates and writes down; needs nothing but the processor.
fn evaluate(bytes: &[u8], attest: bool, seconds: i64) -> Result<Evaluated, ApiError> {
    // What is attested is known by a hash of its canonical form, which no other input may share.
    let integers = if attest { Integers::Canonical } else { Integers::Any };
    let limits = Limits { bytes: usize::MAX, integers, ..Limits::FOREIGN };
    let request = json::parse_with(bytes, limits).map_err(|error| ApiError::Malformed(error.to_string()))?;
    let malformed = |why: &str| ApiError::Malformed(why.to_owned());
    if request.as_object().is_none() {
        return Err(malformed("the body is no object"));
    }
    only("the body", Some(&request), &["source", "input", "options"])?;
    let source = request.get("source").and_then(Value::as_str);
    let source = source.ok_or_else(|| malformed("`source` is no text: give `shell`, `terraform` or `mcp`"))?;
    let input = request.get("input").ok_or_else(|| malformed("`input` is missing"))?;
    let options = match request.get("options") {
        None | Some(Value::Null) => None,
        Some(options @ Value::Object(_)) => Some(options),
        Some(_) => return Err(malformed("`options` is no object")),
    };
    only("`options`", options, &OPTIONS)?;
    match source {
        "shell" => only("`input`", Some(input), &["command", "cwd", "home"])?,
        "mcp" => only("`input`", Some(input), &CALL)?,
        // Anything else is a plan's own document.
        "terraform" if input.get("plan").is_some() => only("`input`", Some(input), &["plan", "state", "home"])?,
        _ => {}
    }
    let chain_id = option(options, "chain_id", |text| (1..=128).contains(&text.len()).then(|| hide(text)))?;
    let parent = option(options, "parent_attestation", |text| Digest::parse(text).ok())?;
    let absolute = |text: &str| text.starts_with('/').then(|| text.to_owned());
    let home = option(options, "home", absolute)?.or(match input.get("home") {
        Some(Value::String(home)) => absolute(home),
        _ => None,
    });
    option(options, "cwd", absolute)?;
    let detail = match options.and_then(|options| options.get("hash_only")) {
        None | Some(Value::Null) => Detail::Hidden,
        Some(Value::Bool(only)) => Detail::hash_only(*only),
        Some(_) => return Err(malformed("`options.hash_only` is neither true nor false")),
    };
    let subject = Subject::read(source, input, options).map_err(|why| ApiError::NoSubject(why.to_string()))?;
    let consequences =
        subject.evaluate(home.as_deref(), &NoProbe).map_err(|why| ApiError::NoSubject(why.to_string()))?;
    let output = subject.output(&consequences, detail);
    let report = if attest {
        let statement = Statement { input: subject.attested(detail), output, seconds, chain_id, parent };
        let prepared = statement.prepare().map_err(|_no_random| ApiError::Unattested)?;
        if prepared.bytes() > MAX_ATTESTED {
            return Err(ApiError::NoSubject("its report is too large to be attested".to_owned()));
        }
        Report::Prepared(prepared)
    } else {
        Report::Plain(json::canonical(&output))
    };
    let source = match subject {
        Subject::Shell { .. } => "shell",
        Subject::Terraform { .. } => "terraform",
        Subject::Mcp { .. } => "mcp",
    };
    Ok(Evaluated { verdict: Verdict { source, verdict: consequences.verdict().as_str() }, report })
}

/// An option that is a text of a certain form.
fn option<T>(options: Option<&Value>, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
    match options.and_then(|options| options.get(name)) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str().and_then(read) {
            Some(read) => Ok(Some(read)),
            None => Err(ApiError::Malformed(format!("`options.{name}` is not in its form"))),
        },
    }
}
