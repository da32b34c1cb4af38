//! The numbers of a document that a double does not keep.

/// The numbers of a JSON document that are not what the nearest double is written as, in their order and as they are written: two
/// documents that differ in such a number alone have the same canonical form. Of bytes that are no JSON, any numbers.
pub fn rounded(bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => behind_text(after),
            b'-' | b'0'..=b'9' => {
                let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let (number, after) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
                let text = String::from_utf8_lossy(number);
                if !is_kept(&text) {
                    out.push(text.into_owned());
                }
                after
            }
            _ => after,
        };
    }
    out
}

/// What follows a string whose quotation mark was read.
fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + 1 + usize::from(escaped)..).unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}

/// Whether a double is this number. One of up to fifteen digits always is.
fn is_kept(text: &str) -> bool {
    if text.len() <= 15 && !text.contains(['e', 'E']) {
        return true;
    }
    text.parse().is_ok_and(|number: f64| decimal(ryu_js::Buffer::new().format(number)) == decimal(text))
}

/// A number's digits without the zeros around them, and the power of ten of the last; nothing of what is no number.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (sign, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).ok()?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some((false, String::new(), 0));
    }
    let power: i64 = power.parse().ok()?;
    Some((sign, digits.to_owned(), power.checked_add(zeros)?.checked_sub(i64::try_from(fraction.len()).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_double_keeps_is_not_listed() {
        for text in [
            "[0,-0,1,1.0,1e2,1E+2,-12.50,100000000000000000000,1e21,0.1,0.30000000000000004,9007199254740993001e0]",
            r#"{"9007199254740993":"9007199254740993 \"9007199254740993","b":9007199254740992}"#,
            "5e-324",
            r#""9007199254740993"#,
        ] {
            let found = rounded(text.as_bytes());
            let expected: &[&str] = if text.starts_with("[0") { &["9007199254740993001e0"] } else { &[] };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_it_does_not_keep_is_listed_as_it_is_written() {
        let text = r#"{"a":9007199254740993,"b":[-9007199254740993,0.1000000000000000055],"c":1e-400,"d":"\\","e":1.00000000000000001}"#;
        let expected =
            ["9007199254740993", "-9007199254740993", "0.1000000000000000055", "1e-400", "1.00000000000000001"];
        assert_eq!(rounded(text.as_bytes()), expected);
    }

    proptest::proptest! {
        #[test]
        fn every_double_is_kept_as_it_is_written(number in proptest::num::f64::NORMAL) {
            let text = ryu_js::Buffer::new().format(number).to_owned();
            proptest::prop_assert!(is_kept(&text), "{text}");
        }

        #[test]
        fn of_integers_that_are_one_double_at_most_one_is_kept(
            number in proptest::prelude::any::<i64>(),
            more in 1..2000_i64,
        ) {
            let other = number.saturating_add(more);
            let same = number.to_string().parse::<f64>() == other.to_string().parse::<f64>();
            let both = is_kept(&number.to_string()) && is_kept(&other.to_string());
            proptest::prop_assert!(number == other || !(same && both), "{number} {other}");
        }
    }
}
