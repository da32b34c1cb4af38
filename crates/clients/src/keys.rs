//! Ids for calls whose client gives none.
//!
//! Owns what stands for such a call: a digest of its tool and input, and behind it a number that tells apart calls that are the same. Which
//! number, whoever keeps the record says; a transcript is held against it by the order of equal calls. Invariant: what a hook and a
//! transcript tell of one call has the same digest.

use writ_core::Digest;
use writ_core::json::{Value, canonical};

/// Stands between digest and number.
const MARK: char = '#';
/// Hexadecimal digits of the digest: equal ones by chance are met once in 2^48 calls.
const DIGITS: usize = 24;

/// What stands for a call.
pub fn of(tool: &str, input: &Value) -> String {
    let digest = Digest::of(format!("{tool}\n{}", canonical(input)).as_bytes());
    digest.hex().chars().take(DIGITS).collect()
}

/// The id of one of the calls that a key stands for.
pub fn numbered(key: &str, number: impl std::fmt::Display) -> String {
    format!("{key}{MARK}{number}")
}

/// The key of an id that [`numbered`] made.
pub fn key_of(id: &str) -> Option<&str> {
    let (key, number) = id.split_once(MARK)?;
    let is_key = key.len() == DIGITS && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_key && !number.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_ids_alone() {
        let input = writ_core::json::parse(br#"{"b":1,"a":2}"#).unwrap();
        let same = writ_core::json::parse(br#"{"a":2,"b":1}"#).unwrap();
        let key = of("write_file", &input);
        assert_eq!(key, of("write_file", &same));
        assert_ne!(key, of("read_file", &input));
        assert_eq!(key_of(&numbered(&key, 7)), Some(key.as_str()));
        for other in ["toolu_1#2", "", "#", key.as_str(), &format!("{key}#")] {
            assert_eq!(key_of(other), None, "{other}");
        }
    }
}
