//! A statement: what it is about, and what is said of it.
//!
//! Owns its members and their order. Refuses a type that is no statement, and a subject without a digest. Invariant: what is made here
//! is of version 1; an older version exists only where it was read. Page: `spec/signing.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use writ_core::Digest;

/// The payload type of an envelope that holds a statement.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Which statement it is (R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// What Writ writes.
    #[serde(rename = "https://in-toto.io/Statement/v1")]
    V1,
    /// What older tools wrote. Read, never written.
    #[serde(rename = "https://in-toto.io/Statement/v0.1")]
    V01,
}

/// Digests by algorithm: lower-case hexadecimal without a prefix, or what a scheme of its own (`gitoid:sha256`, `dirHash`) writes.
pub type DigestSet = BTreeMap<String, String>;

/// Something that a statement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct ResourceDescriptor {
    /// Its name; empty where others wrote none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its digests, at least one.
    pub digest: DigestSet,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    name: String,
    uri: Option<String>,
    digest: DigestSet,
}

impl TryFrom<Written> for ResourceDescriptor {
    type Error = &'static str;

    fn try_from(Written { name, uri, digest }: Written) -> Result<Self, Self::Error> {
        let is_digest = |(algorithm, text): (&String, &String)| {
            let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let own = algorithm.starts_with("gitoid:") || algorithm == "dirHash";
            !text.is_empty() && text.bytes().all(|byte| if own { byte.is_ascii_graphic() } else { hex(byte) })
        };
        if digest.is_empty() || !digest.iter().all(is_digest) {
            return Err("expected `digest` to hold digests in lower-case hexadecimal, by algorithm");
        }
        Ok(Self { name, uri, digest })
    }
}

impl ResourceDescriptor {
    /// A name with one digest of any algorithm.
    pub fn new(name: impl Into<String>, algorithm: impl Into<String>, hex: impl Into<String>) -> Self {
        Self { name: name.into(), uri: None, digest: DigestSet::from([(algorithm.into(), hex.into())]) }
    }

    /// A name with a SHA-256 digest.
    pub fn sha256(name: impl Into<String>, digest: Digest) -> Self {
        Self::new(name, "sha256", digest.hex())
    }

    /// Its SHA-256 digest.
    pub fn digest(&self) -> Option<Digest> {
        Digest::from_hex(self.digest.get("sha256")?).ok()
    }
}

/// A statement with a predicate of type `P`. Unknown members beside its own are ignored, as in-toto says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement<P> {
    #[serde(rename = "_type")]
    version: Version,
    #[serde(deserialize_with = "or_none")]
    subject: Vec<ResourceDescriptor>,
    predicate_type: String,
    predicate: P,
}

/// Subjects; `null` is how Go writes none.
fn or_none<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<ResourceDescriptor>, D::Error> {
    Option::deserialize(input).map(Option::unwrap_or_default)
}

impl<P> Statement<P> {
    /// A statement of version 1.
    pub fn new(subject: Vec<ResourceDescriptor>, predicate_type: impl Into<String>, predicate: P) -> Self {
        Self { version: Version::V1, subject, predicate_type: predicate_type.into(), predicate }
    }

    /// Which version it was written in.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// What it is about.
    pub fn subject(&self) -> &[ResourceDescriptor] {
        &self.subject
    }

    /// What kind of thing it says.
    pub fn predicate_type(&self) -> &str {
        &self.predicate_type
    }

    /// What it says.
    pub const fn predicate(&self) -> &P {
        &self.predicate
    }

    /// What it says, to keep.
    pub fn into_predicate(self) -> P {
        self.predicate
    }
}

#[cfg(test)]
mod tests {
    use writ_core::json::{self, Value};

    use super::*;

    const TYPE: &str = "https://example.org/predicate/v1";

    #[test]
    fn it_is_written_in_canonical_order() {
        let digest = Digest::of(b"x");
        let subject = vec![ResourceDescriptor::sha256("x", digest), ResourceDescriptor::new("HEAD", "gitCommit", "ab")];
        let statement = Statement::new(subject, TYPE, DigestSet::from([("a".to_owned(), "b".to_owned())]));
        let text = json::to_canonical(&statement);
        let wanted = format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","predicate":{{"a":"b"}},"predicateType":"{TYPE}","subject":[{{"digest":{{"sha256":"{}"}},"name":"x"}},{{"digest":{{"gitCommit":"ab"}},"name":"HEAD"}}]}}"#,
            digest.hex()
        );
        assert_eq!(text, wanted);
        assert_eq!(json::from_slice::<Statement<DigestSet>>(text.as_bytes()).unwrap(), statement);
        assert_eq!(statement.subject()[0].digest(), Some(digest));
        assert_eq!(statement.subject()[1].digest(), None);
    }

    #[test]
    fn both_versions_are_read_and_no_other() {
        let good = r#"{"_type":"https://in-toto.io/Statement/v0.1","subject":[{"name":"a","digest":{"sha1":"0f"}}],"predicateType":"t","predicate":{"n":1},"more":[]}"#;
        let read = |text: &str| json::from_slice::<Statement<Value>>(text.as_bytes());
        assert_eq!(read(good).unwrap().version(), Version::V01);
        assert_eq!(read(&good.replace("v0.1", "v1")).unwrap().version(), Version::V1);
        // As witness writes them.
        let gitoid = r#""gitoid:sha256":"gitoid:blob:sha256:0f","dirHash":"h1:a+/=","sha1""#;
        assert_eq!(read(&good.replace("\"sha1\"", gitoid)).unwrap().subject()[0].digest.len(), 3);
        assert!(read(&good.replace(r#"[{"name":"a","digest":{"sha1":"0f"}}]"#, "null")).unwrap().subject().is_empty());
        for (from, to) in [
            ("Statement/v0.1", "Statement/v0.2"),
            ("Statement/v0.1", "Statement/v1.0"),
            ("_type", "type"),
            ("\"subject\":[", "\"subject\":[{},"),
            ("\"digest\"", "\"digests\""),
            ("{\"sha1\":\"0f\"}", "{}"),
            ("\"0f\"", "\"0F\""),
            ("\"0f\"", "\"\""),
            ("\"0f\"", "\"sha1:0f\""),
            ("\"0f\"", "7"),
            ("\"sha1\":\"0f\"", "\"gitoid:sha1\":\"\""),
            ("\"subject\"", "\"subjects\""),
            ("\"predicateType\":\"t\",", ""),
            ("\"more\":[]", "\"predicateType\":\"u\""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert!(bad != good && read(&bad).is_err(), "{bad}");
        }
    }
}
