//! The numbers of a document that a double does not keep.

use crate::{Digest, Hasher};

/// Longest way to a number that is told as it is.
const LONGEST: usize = 128;
/// Deepest place that is told apart: documents that are taken are no deeper.
const DEEPEST: usize = 512;
/// Most numbers that are told one by one.
const MOST: usize = 1024;

/// The numbers of a JSON document that are not what the nearest double is written as, each as it is written behind the place where it
/// stands (`/to/0 9007199254740993`), sorted: two documents that differ in such a number alone have the same canonical form. Names are as
/// they are written, and a long way is its digest; so are more than [`MOST`] of them. Of bytes that are no JSON, any numbers.
pub fn rounded(bytes: &[u8]) -> Vec<String> {
    let (mut found, mut open, mut text) = (Found::default(), Vec::new(), &[][..]);
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => {
                let behind = behind_text(after);
                text = after.get(..after.len() - behind.len()).unwrap_or_default();
                behind
            }
            b'-' | b'0'..=b'9' => {
                let ends = |byte: &u8| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let (number, after) = rest.split_at(rest.iter().position(ends).unwrap_or(rest.len()));
                let number = String::from_utf8_lossy(number);
                if !is_kept(&number) {
                    found.add(format!("{} {number}", open.last().map_or_else(String::new, Open::place)));
                }
                after
            }
            b'{' | b'[' => {
                if open.len() < DEEPEST {
                    let way = open.last().map_or_else(String::new, Open::place);
                    let step = if byte == b'[' { "0".to_owned() } else { String::new() };
                    open.push(Open { way: short(way), step, item: 0, is_list: byte == b'[' });
                }
                after
            }
            b'}' | b']' => {
                open.pop();
                after
            }
            b':' => {
                if let Some(here) = open.last_mut() {
                    here.step = short(String::from_utf8_lossy(text.strip_suffix(b"\"").unwrap_or(text)).into_owned());
                }
                after
            }
            b',' => {
                if let Some(here) = open.last_mut().filter(|here| here.is_list) {
                    here.item += 1;
                    here.step = here.item.to_string();
                }
                after
            }
            _ => after,
        };
    }
    found.told()
}

/// An object or array that is not closed yet: the way to it, and the step to what stands next in it.
struct Open {
    way: String,
    step: String,
    item: usize,
    is_list: bool,
}

impl Open {
    fn place(&self) -> String {
        format!("{}/{}", self.way, self.step)
    }
}

fn short(text: String) -> String {
    if text.len() > LONGEST { Digest::of(text.as_bytes()).to_string() } else { text }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    first: Vec<String>,
    more: Option<(usize, Hasher)>,
}

impl Found {
    fn add(&mut self, number: String) {
        if self.first.len() < MOST {
            return self.first.push(number);
        }
        let (count, digest) = self.more.get_or_insert_with(Default::default);
        *count += 1;
        digest.update(number.as_bytes());
        digest.update(b"\n");
    }

    fn told(mut self) -> Vec<String> {
        // Those behind the first are known in their order alone, and so are the first then.
        if let Some((count, digest)) = self.more {
            self.first.push(format!("{count} more numbers {}", digest.finish()));
        } else {
            self.first.sort();
        }
        self.first
    }
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
            let expected: &[&str] = if text.starts_with("[0") { &["/11 9007199254740993001e0"] } else { &[] };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_it_does_not_keep_is_listed_as_it_is_written() {
        let text = r#"{"a":9007199254740993,"b":[-9007199254740993,0.1000000000000000055],"c":1e-400,"d":"\\","e":1.00000000000000001}"#;
        let expected = [
            "/a 9007199254740993",
            "/b/0 -9007199254740993",
            "/b/1 0.1000000000000000055",
            "/c 1e-400",
            "/e 1.00000000000000001",
        ];
        assert_eq!(rounded(text.as_bytes()), expected);
    }

    /// Which member has which is part of it, and in which order members stand is not.
    #[test]
    fn each_is_told_with_its_place() {
        let of = |text: &str| rounded(text.as_bytes());
        let (one, other) = ("9007199254740993", "9007199254740992");
        let pay = |from: &str, to: &str| of(&format!(r#"{{"from":{from},"to":{to}}}"#));
        assert_ne!(pay(one, other), pay(other, one));
        assert_eq!(pay(one, other), of(&format!(r#"{{"to":{other},"from":{one}}}"#)));
        assert_ne!(of(&format!("[{one},{other}]")), of(&format!("[{other},{one}]")));
        let nested = of(&format!(r#"{{"a":{{"b":[{{}},{{"c":"}}","d":{one}}}]}},"x":{one}}}"#));
        assert_eq!(nested, ["/a/b/1/d 9007199254740993", "/x 9007199254740993"]);
        assert_eq!(of("]}}9007199254740993"), [" 9007199254740993"]);
        let (deep, many) = ("[".repeat(300) + one, format!("[{}]", vec![one; 3000].join(",")));
        assert!(of(&deep).iter().all(|told| told.len() < 200) && of(&many).len() == MOST + 1);
        assert_ne!(of(&many), of(&many.replacen("3]", "5]", 1)));
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
