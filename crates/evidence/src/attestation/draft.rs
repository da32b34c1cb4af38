//! Making an attestation, in the order of §6.3: content, id, URL, signature.

use writ_core::json::{canonical, write_string};
use writ_core::{Digest, Timestamp, json::Value};

use super::{FOLDER, VERSION, short_hex};
use crate::b64url;

/// What is to be attested.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What was evaluated, canonical.
    pub input: String,
    /// The report, canonical.
    pub output: String,
    /// The logic's name and version.
    pub evaluator: String,
    /// When it was evaluated, RFC 3339. No two of one instance may be alike: the id rests on it.
    pub timestamp: String,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// 128 random bits.
    pub nonce: Option<u128>,
    /// What ties several attestations together.
    pub chain_id: Option<String>,
    /// Digest of the attestation this one rests on.
    pub parent: Option<Digest>,
}

/// An attestation that only lacks its signature.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its id.
    pub id: String,
    /// Members that sort before `signature`.
    front: String,
    /// Members that sort after it.
    back: String,
}

impl Draft {
    /// A draft of values that are not canonical yet.
    pub fn new(input: &Value, output: &Value, evaluator: &str, timestamp: String) -> Self {
        Self {
            input: canonical(input),
            output: canonical(output),
            evaluator: evaluator.to_owned(),
            timestamp,
            expires_at: None,
            nonce: None,
            chain_id: None,
            parent: None,
        }
    }

    /// Gives it its key, its id and its URL at `instance`.
    ///
    /// The canonical form is put together here member by member, in the order of RFC 8785, because canonicalising a large report
    /// twice is what signing would otherwise spend its time on. A test holds it against [`super::Attestation::payload`].
    pub fn pend(&self, key_id: &str, instance: &str) -> Pending {
        let evaluator = quoted(&self.evaluator);
        let (key, timestamp) = (quoted(key_id), quoted(&self.timestamp));
        let id = short_hex(
            format!(
                "{{\"evaluator\":{evaluator},\"input\":{},\"key_id\":{key},\"output\":{},\"timestamp\":{timestamp}}}",
                self.input, self.output
            )
            .as_bytes(),
        );
        let mut front = String::with_capacity(self.input.len() + self.output.len() + 512);
        front.push_str("{\"attestation_uri\":");
        write_string(&format!("{instance}{FOLDER}{id}.json"), &mut front);
        let mut member = |name: &str, value: &str| {
            front.push_str(",\"");
            front.push_str(name);
            front.push_str("\":");
            front.push_str(value);
        };
        if let Some(chain) = &self.chain_id {
            member("chain_id", &quoted(chain));
        }
        member("evaluator", &evaluator);
        if let Some(end) = self.expires_at {
            member("expires_at", &quoted(&end.to_string()));
        }
        member("input", &self.input);
        member("key_id", &key);
        if let Some(nonce) = self.nonce {
            member("nonce", &format!("\"{nonce:032x}\""));
        }
        member("output", &self.output);
        if let Some(parent) = self.parent {
            member("parent_attestation", &quoted(&parent.to_string()));
        }
        let back = format!(",\"timestamp\":{timestamp},\"version\":\"{VERSION}\"}}");
        Pending { id, front, back }
    }
}

impl Pending {
    /// The bytes to sign.
    pub fn payload(&self) -> String {
        format!("{}{}", self.front, self.back)
    }

    /// The attestation's canonical document.
    pub fn signed(self, signature: &[u8; 64]) -> String {
        format!("{},\"signature\":\"{}\"{}", self.front, b64url::encode(signature), self.back)
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(text, &mut out);
    out
}
