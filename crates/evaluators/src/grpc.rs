//! A service's judgement: what it is sent, and which answers count.
//!
//! Owns request and answer, whose form on the wire is [`PROTO`]. Refuses to connect, which the caller does. Invariant: only an
//! answer that says PASS is one.

use writ_core::{Digest, secret};

use crate::input::Input;
use crate::named::Grpc;
use crate::{Judgement, Status};

/// The service in protocol buffers.
pub const PROTO: &str = include_str!("../proto/writ/evaluator/v1/evaluator.proto");
/// Longest reason that is kept, in characters.
const LONGEST: usize = 2000;

/// What a service is sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it is.
    pub endpoint: &'a str,
    /// The evaluator's name.
    pub name: &'a str,
    /// The document, JSON.
    pub input: &'a str,
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its judgement; `None` of a word that is neither.
    pub status: Option<Status>,
    /// Why.
    pub reason: String,
}

/// Asks a service and gives what it said, or why there is nothing.
pub type Call<'a> = dyn Fn(&Request<'_>) -> Result<Answer, String> + 'a;

/// Asks a service; or why it could not be asked.
pub fn judge(grpc: &Grpc, input: &Input, call: &Call<'_>) -> Result<Judgement, String> {
    let (rule, shown) = (Digest::of(grpc.endpoint.as_bytes()), Digest::of(input.text.as_bytes()));
    let answer = call(&Request { endpoint: &grpc.endpoint, name: &grpc.name, input: &input.text })?;
    Ok(match answer {
        Answer { status: Some(status), reason } => {
            let reason = secret::hide(&reason).chars().take(LONGEST).collect();
            let notes = vec![format!("judged by {}", grpc.endpoint)];
            Judgement { status, reasons: vec![reason], notes, rule, shown }
        }
        Answer { status: None, .. } => Judgement::failed("it answered neither PASS nor FAIL", rule, shown),
    })
}
