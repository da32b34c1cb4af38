//! Archivista, a store of signed statements: put there, fetched, found by what they are about.
//!
//! Owns the three requests of its API. Believes nothing that it answers: a body is the one that was named, by its git object id, or is
//! refused; who signed it is asked elsewhere. Page: `spec/statements.md`, "Archivista".

use std::io::Read;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ureq::Agent;
use writ_core::{Hasher, json};

use crate::network::{agent, authorities};

/// How long one request may take.
const TIME: Duration = Duration::from_secs(30);
/// Largest envelope.
const MAX: u64 = 16 << 20;
/// Largest answer to a question.
const MAX_ANSWER: u64 = 4 << 20;
/// The question: which envelopes hold a statement about what has this digest.
const QUERY: &str = "query($digest: String!) { dsses(where: {hasStatementWith: {hasSubjectsWith: {hasSubjectDigestsWith: {value: $digest}}}}) \
    { edges { node { gitoidSha256 statement { predicate } } } } }";

/// Why there is no answer, or none that counts.
#[derive(Debug, thiserror::Error)]
pub enum ArchivistaError {
    /// The connection, or the status.
    #[error("{url}: {why}")]
    Failed {
        /// What was asked.
        url: String,
        /// What came of it.
        why: String,
    },
    /// It is no git object id of SHA-256.
    #[error("`{0}` is no git object id: 64 hexadecimal digits")]
    NotAnId(String),
    /// Another body than was named.
    #[error("{url}: what came is `{found}` and not `{wanted}`: it was changed")]
    Other {
        /// What was asked.
        url: String,
        /// The id of what came.
        found: String,
        /// The id that was asked for, or answered.
        wanted: String,
    },
}

/// An Archivista at an address.
#[derive(Debug)]
pub struct Archivista {
    agent: Agent,
    base: String,
}

#[derive(Deserialize)]
struct Stored {
    gitoid: String,
}

#[derive(Serialize)]
struct Question<'a> {
    query: &'a str,
    variables: Variables<'a>,
}

#[derive(Serialize)]
struct Variables<'a> {
    digest: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    errors: Vec<Wrong>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Wrong {
    message: String,
}

#[derive(Deserialize)]
struct Data {
    dsses: Edges,
}

#[derive(Deserialize)]
struct Edges {
    edges: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    node: Node,
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "gitoidSha256")]
    gitoid: String,
    statement: Option<Held>,
}

#[derive(Deserialize)]
struct Held {
    predicate: String,
}

/// An envelope that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its git object id.
    pub gitoid: String,
    /// The type of its predicate, as the store says.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

impl Archivista {
    /// The one whose API is below `base`: `https://archivista.example.org`.
    pub fn at(base: &str) -> Self {
        Self { agent: agent(authorities(), TIME), base: base.trim_end_matches('/').to_owned() }
    }

    /// Stores an envelope, and gives its id: the one that its bytes have.
    pub fn store(&self, envelope: &[u8]) -> Result<String, ArchivistaError> {
        let url = format!("{}/v1/upload", self.base);
        let stored: Stored = read(&url, &self.post(&url, envelope)?)?;
        same(&url, gitoid(envelope), bare(&stored.gitoid).to_owned())
    }

    /// Fetches an envelope by its id.
    pub fn fetch(&self, id: &str) -> Result<Vec<u8>, ArchivistaError> {
        let id = bare(id);
        if id.len() != 64 || !id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return Err(ArchivistaError::NotAnId(id.chars().take(80).collect()));
        }
        let url = format!("{}/v1/download/{id}", self.base);
        let failed = |why: String| ArchivistaError::Failed { url: url.clone(), why };
        let answer = self.agent.get(&url).call().map_err(|error| failed(error.to_string()))?;
        let body = body(&url, answer, MAX)?;
        same(&url, gitoid(&body), id.to_owned())?;
        Ok(body)
    }

    /// The envelopes that hold a statement about what has a digest, in hexadecimal.
    pub fn search(&self, digest: &str) -> Result<Vec<Found>, ArchivistaError> {
        let url = format!("{}/v1/query", self.base);
        let question = json::to_canonical(&Question { query: QUERY, variables: Variables { digest } });
        let answer: Answer = read(&url, &self.post(&url, question.as_bytes())?)?;
        let failed = |why: String| Err(ArchivistaError::Failed { url: url.clone(), why });
        if let Some(wrong) = answer.errors.first() {
            return failed(wrong.message.chars().take(300).collect());
        }
        let Some(data) = answer.data else { return failed("it answers with no data".to_owned()) };
        let found =
            |Edge { node }: Edge| Found { gitoid: node.gitoid, kind: node.statement.map(|held| held.predicate) };
        Ok(data.dsses.edges.into_iter().map(found).collect())
    }

    fn post(&self, url: &str, bytes: &[u8]) -> Result<Vec<u8>, ArchivistaError> {
        let failed = |why: String| ArchivistaError::Failed { url: url.to_owned(), why };
        let posted = self.agent.post(url).header("content-type", "application/json").send(bytes);
        body(url, posted.map_err(|error| failed(error.to_string()))?, MAX_ANSWER)
    }
}

fn body(url: &str, mut answer: ureq::http::Response<ureq::Body>, most: u64) -> Result<Vec<u8>, ArchivistaError> {
    let failed = |why: String| ArchivistaError::Failed { url: url.to_owned(), why };
    let status = answer.status();
    let mut body = Vec::new();
    let reader = answer.body_mut().as_reader();
    reader.take(most + 1).read_to_end(&mut body).map_err(|error| failed(error.to_string()))?;
    match () {
        () if !status.is_success() => Err(failed(format!("it answered with {status}"))),
        () if body.len() as u64 > most => Err(failed(format!("its answer has more than {most} bytes"))),
        () => Ok(body),
    }
}

fn read<T: serde::de::DeserializeOwned>(url: &str, body: &[u8]) -> Result<T, ArchivistaError> {
    let failed = |error: json::FormatError| ArchivistaError::Failed { url: url.to_owned(), why: error.to_string() };
    json::from_slice_with(body, json::Limits::FOREIGN).map_err(failed)
}

fn same(url: &str, found: String, wanted: String) -> Result<String, ArchivistaError> {
    if found == wanted { Ok(found) } else { Err(ArchivistaError::Other { url: url.to_owned(), found, wanted }) }
}

/// An id without the scheme that says what it is of.
fn bare(id: &str) -> &str {
    id.strip_prefix("gitoid:blob:sha256:").unwrap_or(id)
}

/// The id that git gives a file of these bytes in a repository of SHA-256.
pub fn gitoid(bytes: &[u8]) -> String {
    let mut hasher = Hasher::default();
    hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
    hasher.update(bytes);
    hasher.finish().hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_gits() {
        // `git hash-object` of an empty file and of "hello\n" in a repository of SHA-256.
        assert_eq!(gitoid(b""), "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
        assert_eq!(gitoid(b"hello\n"), "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4");
    }
}
