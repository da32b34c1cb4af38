//! `POST /api/evaluate`: from a body to a verdict, and to its attestation where the service attests.
//!
//! Refuses to look at its own disk: it is not the caller's. Invariant: a service that attests never answers a verdict without its
//! attestation (§7.1).

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, ORIGIN};
use hyper::{HeaderMap, Request, StatusCode};
use tokio::time::timeout;
use writ_consequence::Blind;
use writ_core::Digest;
use writ_core::json::{self, Integers, Limits, Value};
use writ_core::secret::hide;
use writ_engine::matter::{Detail, Subject};
use writ_engine::notary::{Matter, Prepared};

use super::answer::{Refusal, Reply, json};
use super::rate_limit::Client;
use super::span::Trail;
use super::{BODY_TIME, Service};

/// A body above this is judged away from the threads that answer.
const LONG: usize = 32 << 10;
/// Largest attestation: verifiers read no larger one. Leaves room for what is put around input and output.
const MAX_ATTESTED: usize = (64 << 20) - (64 << 10);

/// The members that `options` may have.
const OPTIONS: [&str; 6] = ["cwd", "home", "state", "chain_id", "parent_attestation", "hash_only"];

/// What became of a body.
struct Judged {
    source: &'static str,
    verdict: &'static str,
    outcome: Outcome,
}

enum Outcome {
    /// The report's text.
    Plain(String),
    /// The report, ready to be attested.
    Prepared(Prepared),
}

/// Answers one request.
pub async fn answer(
    service: &Service,
    request: Request<Incoming>,
    peer: u128,
    trail: &mut Trail,
) -> Result<Reply, Refusal> {
    admit(service, request.headers(), peer)?;
    let body = body(service, request).await?;
    let start = trail.now();
    let judged = if body.bytes.len() > LONG {
        let _turn = service.judges.acquire().await.map_err(|_closed| Refusal::Busy)?;
        let (attest, seconds) = (service.signer.is_some(), service.shelf_life);
        let judged = tokio::task::spawn_blocking(move || judge(&body.bytes, attest, seconds));
        judged.await.map_err(|_gone| Refusal::Busy)??
    } else {
        judge(&body.bytes, service.signer.is_some(), service.shelf_life)?
    };
    trail.step("evaluate", start);
    trail.verdict = Some((judged.source, judged.verdict));
    let text = match (judged.outcome, &service.signer) {
        (Outcome::Plain(report), None) => report,
        (Outcome::Prepared(prepared), Some(signer)) => {
            let mut text = prepared.output().to_owned();
            let start = trail.now();
            let document = signer.attest(prepared).await?;
            trail.step("attest", start);
            // The report is an object with members; the document stands in it byte for byte as it is kept.
            text.pop();
            text.reserve(document.len() + 20);
            text.push_str(",\"attestation\":");
            text.push_str(&document);
            text.push('}');
            text
        }
        (Outcome::Plain(_), Some(_)) | (Outcome::Prepared(_), None) => return Err(Refusal::Unattested),
    };
    service.metrics.verdict(judged.source, judged.verdict);
    Ok(json(StatusCode::OK, text))
}

/// Client may come in, and how often.
fn admit(service: &Service, headers: &HeaderMap, peer: u128) -> Result<(), Refusal> {
    let client = match &service.tokens {
        Some(tokens) => tokens.find(headers).map(Client::Token),
        None => Some(Client::Evaluating(peer)),
    };
    service.count(client.unwrap_or(Client::Evaluating(peer)))?;
    if client.is_none() {
        return Err(Refusal::Unauthorized);
    }
    // A page in the user's browser reaches a loopback address too; without a token there is nothing else that it lacks.
    if service.tokens.is_none() && headers.contains_key(ORIGIN) {
        return Err(Refusal::Origin);
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Refusal::MediaType) }
}

/// A body, and the room it takes.
struct Taken<'a> {
    bytes: Bytes,
    _room: Option<tokio::sync::SemaphorePermit<'a>>,
}

async fn body(service: &Service, request: Request<Incoming>) -> Result<Taken<'_>, Refusal> {
    let limit = service.max_body;
    let hint = request.body().size_hint();
    if hint.lower() > limit as u64 {
        return Err(Refusal::TooLarge(limit));
    }
    // A body of unknown length may become as long as any.
    let most = hint.upper().and_then(|most| usize::try_from(most).ok()).unwrap_or(limit).min(limit);
    let room = if most > LONG {
        let kibibytes = u32::try_from(most / 1024).unwrap_or(u32::MAX).min(service.room_kib);
        let room = service.room.acquire_many(kibibytes).await;
        Some(room.map_err(|_closed| Refusal::Busy)?)
    } else {
        None
    };
    match timeout(BODY_TIME, Limited::new(request.into_body(), limit).collect()).await {
        Err(_slow) => Err(Refusal::SlowBody),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge(limit)),
        Ok(Err(_cut)) => Err(Refusal::Malformed("the body is cut off".to_owned())),
        Ok(Ok(body)) => Ok(Taken { bytes: body.to_bytes(), _room: room }),
    }
}

/// Parses, evaluates and writes down; needs nothing but the processor.
fn judge(bytes: &[u8], attest: bool, seconds: i64) -> Result<Judged, Refusal> {
    // What is attested is known by a hash of its canonical form, which no other input may share.
    let integers = if attest { Integers::Canonical } else { Integers::Any };
    let limits = Limits { bytes: usize::MAX, integers, ..Limits::FOREIGN };
    let request = json::parse_with(bytes, limits).map_err(|error| Refusal::Malformed(error.to_string()))?;
    let malformed = |why: &str| Refusal::Malformed(why.to_owned());
    if request.as_object().is_none() {
        return Err(malformed("the body is no object"));
    }
    let source = request.get("source").and_then(Value::as_str);
    let source = source.ok_or_else(|| malformed("`source` is no text: give `shell`, `terraform` or `mcp`"))?;
    let input = request.get("input").ok_or_else(|| malformed("`input` is missing"))?;
    let options = match request.get("options") {
        None | Some(Value::Null) => None,
        Some(options @ Value::Object(_)) => Some(options),
        Some(_) => return Err(malformed("`options` is no object")),
    };
    let unknown = options.and_then(Value::as_object).and_then(|options| {
        let mut names = options.iter().map(|(name, _)| name);
        names.find(|name| !OPTIONS.contains(name))
    });
    if let Some(unknown) = unknown {
        let why = format!("`options` has no member `{unknown}`; it takes `{}`", OPTIONS.join("`, `"));
        return Err(Refusal::Malformed(why));
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
    let subject = Subject::read(source, input, options).map_err(|why| Refusal::NoSubject(why.to_string()))?;
    let report = subject.evaluate(home.as_deref(), &Blind).map_err(|why| Refusal::NoSubject(why.to_string()))?;
    let verdict = report.verdict().as_str();
    let output = subject.output(&report, detail);
    let outcome = if attest {
        let matter = Matter { input: subject.attested(detail), output, seconds, chain_id, parent };
        let prepared = matter.prepare().map_err(|_no_random| Refusal::Unattested)?;
        if prepared.bytes() > MAX_ATTESTED {
            return Err(Refusal::NoSubject("its report is too large to be attested".to_owned()));
        }
        Outcome::Prepared(prepared)
    } else {
        Outcome::Plain(json::canonical(&output))
    };
    let source = match subject {
        Subject::Shell { .. } => "shell",
        Subject::Terraform { .. } => "terraform",
        Subject::Mcp { .. } => "mcp",
    };
    Ok(Judged { source, verdict, outcome })
}

/// An option that is a text of a certain form.
fn option<T>(options: Option<&Value>, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Refusal> {
    match options.and_then(|options| options.get(name)) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str().and_then(read) {
            Some(read) => Ok(Some(read)),
            None => Err(Refusal::Malformed(format!("`options.{name}` is not in its form"))),
        },
    }
}
