//! Session ids and the folder names made from them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// The id a client gave its session. Any text; [`SessionId::file_name`] makes it safe for a file system.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Wraps the client's id as it came.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as the client wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A folder name: the id itself where it is short and made of letters, digits, `-` and `_`; otherwise its safe
    /// characters followed by `.` and a digest, so that two ids never share a folder and none leaves it.
    pub fn file_name(&self) -> String {
        let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !self.0.is_empty() && self.0.len() <= 64 && self.0.chars().all(safe) {
            return self.0.clone();
        }
        let kept: String = self.0.chars().filter(|&c| safe(c)).take(32).collect();
        let digest = Digest::of(self.0.as_bytes()).hex();
        // Names that begin with a dot are no sessions to whoever lists them.
        let kept = if kept.is_empty() { "session" } else { &kept };
        format!("{kept}.{}", digest.get(..16).unwrap_or(&digest))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_stay_inside() {
        assert_eq!(SessionId::new("fda128db-f674").file_name(), "fda128db-f674");
        for odd in ["", ".", "..", "../../etc", "a/b", "a\0b", "ü", &"x".repeat(300)] {
            let name = SessionId::new(odd).file_name();
            assert!(!name.contains('/') && !name.contains('\0') && !name.starts_with('.') && name.len() < 64);
        }
        assert_ne!(SessionId::new("a/b").file_name(), SessionId::new("a//b").file_name());
    }
}
