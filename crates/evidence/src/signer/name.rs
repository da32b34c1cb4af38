//! A distinguished name, compared part by part.
//!
//! Owns its text form (RFC 4514) and what makes two of them equal. Refuses a text that is none. Invariant: two names are equal only where
//! every part is, in the same order: a name that begins with, ends with or holds another is not that one. Page: `spec/signing.md`.

use std::fmt;
use std::str::FromStr;

use der::Encode;
use der::asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use writ_core::json;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::name::RdnSequence;

/// Longest text of a name, in bytes.
const MAX: usize = 4096;

/// A distinguished name.
#[derive(Clone, Debug)]
pub struct Name(RdnSequence);

/// A text that is no distinguished name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a distinguished name of RFC 4514, as `openssl x509 -noout -subject -nameopt RFC2253` prints it")]
pub struct NameError;

impl Name {
    /// A certificate's name.
    pub(super) const fn new(name: RdnSequence) -> Self {
        Self(name)
    }

    /// Its parts: each a set of attributes with their values as text, whatever string type they were written in.
    fn parts(&self) -> Vec<Vec<(ObjectIdentifier, Text)>> {
        let part = |part: &x509_cert::name::RelativeDistinguishedName| {
            let mut attributes: Vec<_> = part.0.iter().map(|one| (one.oid, value(one))).collect();
            attributes.sort();
            attributes
        };
        self.0.0.iter().map(part).collect()
    }
}

/// An attribute's value: as text, or, what is no text, as its bytes, which no text equals.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    Of(String),
    Bytes(Vec<u8>),
}

fn value(one: &AttributeTypeAndValue) -> Text {
    let any = &one.value;
    // Each takes its own string type alone.
    let utf8 = || Utf8StringRef::try_from(any).ok().map(|text| text.as_str().to_owned());
    let printable = || PrintableStringRef::try_from(any).ok().map(|text| text.as_str().to_owned());
    let ia5 = || Ia5StringRef::try_from(any).ok().map(|text| text.as_str().to_owned());
    let teletex = || TeletexStringRef::try_from(any).ok().map(|text| text.as_str().to_owned());
    let text = utf8().or_else(printable).or_else(ia5).or_else(teletex);
    text.map_or_else(|| Text::Bytes(any.to_der().unwrap_or_default()), Text::Of)
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One part a comma, the last first; the library joins the attributes of one part with commas too.
        for (at, part) in self.0.0.iter().rev().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            part.fmt(f)?;
        }
        Ok(())
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.len() > MAX || text.is_empty() {
            return Err(NameError);
        }
        RdnSequence::from_str(text).map(Self).map_err(|_no_name| NameError)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::read_text(deserializer, str::parse::<Self>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_is_the_name() {
        let name = |text: &str| Name::from_str(text).unwrap();
        let whole = name("CN=alice,OU=ops,O=Example\\, Inc.,C=NL");
        assert_eq!(whole, name(&whole.to_string()));
        assert_eq!(whole.to_string(), "CN=alice,OU=ops,O=Example\\, Inc.,C=NL");
        for other in [
            "CN=alice",
            "CN=alice,OU=ops",
            "C=NL",
            "C=NL,O=Example\\, Inc.,OU=ops,CN=alice",
            "CN=alic,OU=ops,O=Example\\, Inc.,C=NL",
            "CN=alice2,OU=ops,O=Example\\, Inc.,C=NL",
            "CN=Alice,OU=ops,O=Example\\, Inc.,C=NL",
            "CN=alice\\,OU\\=ops,O=Example\\, Inc.,C=NL",
            "CN=alice+OU=ops,O=Example\\, Inc.,C=NL",
            "CN=alice,OU=ops,O=Example\\, Inc.,C=NL,DC=x",
        ] {
            assert_ne!(whole, name(other), "{other}");
        }
        for none in ["", "alice", "CN", "NOSUCH=x", &format!("CN={}", "x".repeat(MAX))] {
            assert_eq!(Name::from_str(none), Err(NameError), "{none}");
        }
    }
}
