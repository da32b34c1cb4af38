//! Versions of the client, as `claude --version` prints them.
//!
//! Owns the comparison that decides which settings keys a client understands. Refuses anything but three numbers.
//! The invariant: versions order by number, not by text (2.1.99 < 2.1.329). Format page:
//! `spec/clients/claude-code.md`.

use std::fmt;

/// `major.minor.patch`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientVersion(pub u32, pub u32, pub u32);

/// Text that does not begin with `major.minor.patch`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not begin with a version such as 2.1.329")]
pub struct VersionError(String);

impl ClientVersion {
    /// The version that every statement in this module was measured with.
    pub const MEASURED: Self = Self(2, 1, 329);

    /// The first version whose hook entries know `onFailure`; earlier ones ignore the key.
    pub const ON_FAILURE: Self = Self(2, 1, 295);

    /// Reads the output of `claude --version`: `2.1.329 (Claude Code)`, or the number alone.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let bad = || VersionError(text.chars().take(80).collect());
        let word = text.split_whitespace().next().ok_or_else(bad)?;
        let mut parts = word.split('.').map(|part| part.parse::<u32>().map_err(|_not_a_number| bad()));
        let mut next = || parts.next().unwrap_or_else(|| Err(bad()));
        let version = Self(next()?, next()?, next()?);
        if parts.next().is_some() { Err(bad()) } else { Ok(version) }
    }

    /// Whether a hook entry may say `"onFailure": "block"`. Without it a hook that crashes or times out lets the tool run.
    pub fn blocks_on_failure(self) -> bool {
        self >= Self::ON_FAILURE
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_by_number() {
        let new = ClientVersion::parse("2.1.329 (Claude Code)\n").unwrap();
        assert_eq!(new, ClientVersion::MEASURED);
        let old = ClientVersion::parse("2.1.99").unwrap();
        assert!(old < new && new.blocks_on_failure() && !old.blocks_on_failure());
        assert_eq!(new.to_string(), "2.1.329");
    }

    #[test]
    fn refuses_what_is_no_version() {
        for bad in ["", "2.1", "2.1.x", "2.1.3.4", "v2.1.3", "2.1.-3", "99999999999.0.0"] {
            assert!(ClientVersion::parse(bad).is_err(), "{bad}");
        }
    }
}
