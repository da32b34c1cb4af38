//! Halves of letters: what a program leaves that cuts a text in the middle of one and writes it as JSON.

/// A JSON document with U+FFFD for each `\uD800`–`\uDFFF` that is no half of a pair, which no text can hold; `None` where there is none.
pub fn without_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..)?) {
        at += found;
        let here = bytes.get(at..).unwrap_or_default();
        at += match (unit(here), here.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                let copy = out.get_or_insert_with(|| bytes.to_vec());
                if let Some(place) = copy.get_mut(at..at + 6) {
                    place.copy_from_slice(br"\ufffd");
                }
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        if at >= bytes.len() {
            break;
        }
    }
    out
}

/// The UTF-16 unit that an escape `\uXXXX` is.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(br"\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_halves_alone_are_replaced() {
        for (given, expected) in [
            (r#"{"a":"x\ud83d"}"#, Some(r#"{"a":"x\ufffd"}"#)),
            (r#""\ude00\ud83d\ude00\uD83D""#, Some(r#""\ufffd\ud83d\ude00\ufffd""#)),
            (r#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#)),
            (r#""\\ud83d\\\ud83d""#, Some(r#""\\ud83d\\\ufffd""#)),
            (r#""\ud83d\\ude00""#, Some(r#""\ufffd\\ude00""#)),
            (r#""\ud83d\ude00 \u00e9 \\ud83d""#, None),
            (r#""\u+83d\ud8""#, None),
            ("", None),
            ("\\", None),
        ] {
            let found = without_lone_surrogates(given.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{given}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_gone_through(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
            let found = without_lone_surrogates(&bytes);
            proptest::prop_assert!(found.is_none_or(|found| found.len() == bytes.len() && without_lone_surrogates(&found).is_none()));
        }
    }
}
