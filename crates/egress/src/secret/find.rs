//! The spellings in which a text may turn up, and how they are looked for.
//!
//! Owns the list: as it is, in Base64 at each of three offsets and in both alphabets, percent-encoded, escaped for JSON. Refuses
//! to keep automata: they would hold copies of values that nobody zeroes. Invariant: every spelling is as good as the value, and
//! none is shorter than eight bytes.

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use memchr::{memchr_iter, memmem};
use zeroize::Zeroizing;

/// Shortest spelling that is looked for.
const SHORTEST: usize = 8;

/// Where the first `needle` begins.
pub fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    memmem::find(bytes, needle)
}

/// Whether a text is somewhere in the bytes.
pub fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    position(bytes, needle).is_some()
}

/// How many bytes at the end could be the beginning of `needle`.
pub fn begun(bytes: &[u8], needle: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(needle.len().saturating_sub(1));
    let tail = bytes.get(from..).unwrap_or_default();
    let Some(first) = needle.first() else { return 0 };
    let mut starts = memchr_iter(*first, tail);
    starts
        .find_map(|start| {
            let end = tail.get(start..)?;
            needle.starts_with(end).then_some(end.len())
        })
        .unwrap_or(0)
}

/// The spellings of a value.
pub fn spellings(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut all: Vec<Zeroizing<Vec<u8>>> = vec![Zeroizing::new(value.to_vec())];
    all.extend(base64(value));
    all.push(percent_encoded(value, b"-_.~", b"0123456789ABCDEF"));
    all.push(percent_encoded(value, b"-_.~", b"0123456789abcdef"));
    // What forms and JavaScript leave as it is.
    all.push(percent_encoded(value, b"-_.~!*'()", b"0123456789ABCDEF"));
    all.push(escaped(value, b"\"\\"));
    all.push(escaped(value, b"\"\\/"));
    let mut different: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    for spelling in all {
        if spelling.len() >= SHORTEST && !different.contains(&spelling) {
            different.push(spelling);
        }
    }
    different
}

/// The spellings of a placeholder, whose letters need no escape.
pub fn marks(placeholder: &[u8]) -> Vec<Vec<u8>> {
    std::iter::once(placeholder.to_vec()).chain(base64(placeholder).into_iter().map(|one| one.to_vec())).collect()
}

/// The letters of Base64 that a value alone decides, wherever it stands in the text that is encoded.
fn base64(value: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let config = GeneralPurposeConfig::new().with_encode_padding(false);
    let mut out = Vec::new();
    for alphabet in [&alphabet::STANDARD, &alphabet::URL_SAFE] {
        let engine = GeneralPurpose::new(alphabet, config);
        for before in 0..3_usize {
            let mut shifted = Zeroizing::new(vec![0; before]);
            shifted.extend_from_slice(value);
            let text = Zeroizing::new(engine.encode(&*shifted));
            // A letter is six bits: those that touch what stands before or after are not the value's own.
            let first = (before * 8).div_ceil(6);
            let last = shifted.len() * 8 / 6;
            if let Some(own) = text.as_bytes().get(first..last).filter(|own| own.len() >= SHORTEST) {
                let own = Zeroizing::new(own.to_vec());
                if !out.contains(&own) {
                    out.push(own);
                }
            }
        }
    }
    out
}

/// A value in hexadecimal digits, small letters.
pub fn hexadecimal(value: &[u8]) -> Zeroizing<Vec<u8>> {
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef".get(usize::from(digit)).copied());
    Zeroizing::new(value.iter().flat_map(digits).flatten().collect())
}

/// A value as a part of a URL.
pub fn percent_encoded(value: &[u8], plain: &[u8], digits: &[u8; 16]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(value.len() * 3));
    for byte in value {
        if byte.is_ascii_alphanumeric() || plain.contains(byte) {
            out.push(*byte);
        } else {
            let digit = |place: u8| digits.get(usize::from(place)).copied().unwrap_or(b'0');
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

fn escaped(value: &[u8], special: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(value.len() * 2));
    for byte in value {
        if special.contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    #[test]
    fn a_value_is_found_in_every_spelling() {
        let value = b"hunter2/\"+?xyz-long";
        let spellings = spellings(value);
        for before in ["", "u", "us", "user:", "x-access-token:"] {
            for after in ["", "a", "ab", "abc"] {
                let text = [before.as_bytes(), value, after.as_bytes()].concat();
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    assert!(spellings.iter().any(|one| holds(encoded.as_bytes(), one)), "{before} {after}");
                }
            }
        }
        assert!(spellings.iter().any(|one| one.as_slice() == b"hunter2%2F%22%2B%3Fxyz-long"));
        assert!(spellings.iter().any(|one| one.as_slice() == b"hunter2\\/\\\"+?xyz-long"));
        let other = STANDARD.encode(b"user:hunter3/+?xyz-long");
        assert!(!spellings.iter().any(|one| holds(other.as_bytes(), one)));
    }

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(hexadecimal(b"\x00az\xff").as_slice(), b"00617aff");
    }

    #[test]
    fn beginnings_at_the_end() {
        for (bytes, begun) in
            [("xx abc", 3), ("abcabc", 3), ("ababa", 1), ("", 0), ("abcd", 0), ("xabca", 1), ("aab", 2)]
        {
            assert_eq!(super::begun(bytes.as_bytes(), b"abcd"), begun, "{bytes}");
        }
        assert_eq!(begun(b"aaaa", b"aab"), 2);
    }
}
