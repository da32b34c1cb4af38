//! SHA-256 digests, printed as `sha256:<hex>` (R4).

use std::fmt;

use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::json;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Text that is not 64 lower-case hexadecimal digits (with or without the `sha256:` prefix, as the caller asked).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 digest in lower-case hexadecimal")]
pub struct DigestError(String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_slice(digest(&SHA256, bytes).as_ref())
    }

    /// 32 zero bytes: the `prevHash` of a ledger's first row (R40).
    pub const ZERO: Self = Self([0; 32]);

    /// Wraps raw bytes that are already a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lower-case hexadecimal digits, without prefix.
    pub fn hex(&self) -> String {
        let mut out = String::with_capacity(64);
        for byte in self.0 {
            out.push(nibble(byte >> 4));
            out.push(nibble(byte & 15));
        }
        out
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, DigestError> {
        let bad = || DigestError(text.chars().take(80).collect());
        let raw: &[u8; 64] = text.as_bytes().try_into().map_err(|_len| bad())?;
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(raw.chunks_exact(2)) {
            let &[high, low] = pair else { return Err(bad()) };
            *byte = (unhex(high).ok_or_else(bad)? << 4) | unhex(low).ok_or_else(bad)?;
        }
        Ok(Self(out))
    }

    /// Reads `sha256:<hex>`.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let hex = text.strip_prefix("sha256:").ok_or_else(|| DigestError(text.chars().take(80).collect()))?;
        Self::from_hex(hex)
    }

    fn from_slice(slice: &[u8]) -> Self {
        let mut out = [0u8; 32];
        out.copy_from_slice(slice);
        Self(out)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::read_text(deserializer, |text| {
            Self::parse(text).map_err(|_text| "expected a SHA-256 digest in lower-case hexadecimal")
        })
    }
}

/// Hashes bytes that arrive in pieces.
#[derive(Clone)]
pub struct Hasher(Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hasher {
    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added.
    pub fn finish(self) -> Digest {
        Digest::from_slice(self.0.finish().as_ref())
    }
}

fn nibble(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 })
}

fn unhex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        let abc = Digest::of(b"abc");
        assert_eq!(abc.to_string(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::parse(&abc.to_string()), Ok(abc));
        let mut pieces = Hasher::default();
        pieces.update(b"a");
        pieces.update(b"bc");
        assert_eq!(pieces.finish(), abc);
    }

    #[test]
    fn refuses_what_is_not_a_digest() {
        for bad in ["", "sha256:", "sha512:00", &"0".repeat(64), &format!("sha256:{}", "A".repeat(64))] {
            assert!(Digest::parse(bad).is_err(), "{bad}");
        }
    }
}
