//! What keeps the key that signs a record.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json;

/// What keeps a key; the greater keeps it from more. Page: `spec/notary.md`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Custody {
    /// A file of the user that the agent runs as.
    #[default]
    File,
    /// The memory of a process of that user, which nobody else of that user can look into.
    ProcessMemory,
    /// A token that signs and does not give the key away.
    Pkcs11,
    /// Another user.
    OtherUser,
}

impl Custody {
    /// The words, weakest first.
    pub const WORDS: [&str; 4] = ["file", "process-memory", "pkcs11", "other-user"];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// What a word means.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::File, Self::ProcessMemory, Self::Pkcs11, Self::OtherUser];
        all.into_iter().zip(Self::WORDS).find(|(_, known)| *known == word).map(|(custody, _)| custody)
    }

    /// What it keeps the key from.
    pub const fn worth(self) -> &'static str {
        match self {
            Self::File => "any process of the agent's own user can read it",
            Self::ProcessMemory => {
                "no process of the agent's own user can read it; one that gets past the policy can end the notary and take its place"
            }
            Self::Pkcs11 => {
                "nobody can copy it; a process of the agent's own user that gets past the policy and knows the PIN can sign with it"
            }
            Self::OtherUser => "no process of the agent's own user can read it, or take its keeper's place",
        }
    }
}

impl fmt::Display for Custody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_that_are_written() {
        for word in Custody::WORDS {
            assert_eq!(Custody::parse(word).unwrap().as_str(), word);
        }
        assert_eq!(Custody::parse("memory"), None);
        assert!(Custody::File < Custody::ProcessMemory && Custody::Pkcs11 < Custody::OtherUser);
    }
}
