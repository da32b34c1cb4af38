//! The spellings in which a text may turn up, and how they are looked for.
//!
//! Owns the list: as it is, and in Base64 at each of three offsets and in both alphabets, also in lines; each letter as it is,
//! percent-encoded, or escaped as JSON and HTML do it, alone or with others. Refuses to keep automata: they would hold copies of
//! values that nobody zeroes. Invariant: every spelling is as good as the value, and none is shorter than eight bytes.

use std::iter::Peekable;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use memchr::{memchr_iter, memchr3_iter, memmem};
use zeroize::Zeroizing;

use super::letters::{LONGEST_LETTER, gap, letter};

/// Shortest spelling that is looked for.
const SHORTEST: usize = 8;
/// Most attempts for each letter of a text.
const MOST_STEPS: usize = 8;

/// Where the first `needle` begins.
pub fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    memmem::find(bytes, needle)
}

/// Whether a text is somewhere in the bytes.
pub fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    position(bytes, needle).is_some()
}

/// A text that is looked for however it is written down.
pub struct Spelling {
    text: Zeroizing<Vec<u8>>,
    /// Whether it may be broken into lines: Base64 is.
    wraps: bool,
}

/// What an attempt to read a spelling came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// It is there, this long.
    Whole(usize),
    /// The bytes end before it does.
    Begun,
    No,
}

/// The spellings of a value.
pub fn spellings(value: &[u8]) -> Vec<Spelling> {
    let plain = Spelling { text: Zeroizing::new(value.to_vec()), wraps: false };
    let base64 = base64(value).into_iter().map(|text| Spelling { text, wraps: true });
    std::iter::once(plain).chain(base64).filter(|spelling| spelling.text.len() >= SHORTEST).collect()
}

impl Spelling {
    /// Where it first stands, and how long it is there.
    pub fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        self.starts(bytes, 0).find_map(|start| match self.read(bytes.get(start..)?) {
            Read::Whole(length) => Some((start, length)),
            Read::Begun | Read::No => None,
        })
    }

    /// How many bytes at the end could be its beginning.
    pub fn begun(&self, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(self.text.len() * LONGEST_LETTER);
        let mut starts = self.starts(bytes, from);
        let begun = starts.find(|start| bytes.get(*start..).is_some_and(|rest| self.read(rest) == Read::Begun));
        begun.map_or(0, |start| bytes.len() - start)
    }

    /// Where it could begin: at its first letter, or at what a letter is written with.
    fn starts<'a>(&self, bytes: &'a [u8], from: usize) -> impl Iterator<Item = usize> + use<'a> {
        let first = self.text.first().copied().unwrap_or_default();
        let tail = bytes.get(from..).unwrap_or_default();
        let second = self.text.get(1).copied().unwrap_or_default();
        // Most are followed by neither the second letter nor by what one is written with.
        let goes_on = move |at: &usize| {
            let signs = b"%\\&+\r\n\t ";
            tail.get(at + 1).is_none_or(|next| *next == second || signs.contains(next))
        };
        let own = memchr_iter(first, tail).filter(goes_on).peekable();
        let signs = memchr3_iter(b'%', b'\\', b'&', tail).filter(move |at| tail.get(*at) != Some(&first)).peekable();
        Merged(own, signs).map(move |at| at + from)
    }

    /// Reads it at the beginning of some bytes, letter by letter.
    fn read(&self, bytes: &[u8]) -> Read {
        // Places in the text and in the bytes. A letter may be readable in two ways, of which one is left for later: few are, so that nothing
        // is allocated where the second letter is another.
        let (mut next, mut todo, mut begun) = (Some((0, 0)), Vec::new(), false);
        let mut steps = 0;
        while let Some((at, read)) = next.take().or_else(|| todo.pop()) {
            steps += 1;
            let (Some(wanted), Some(rest)) = (self.text.get(at..), bytes.get(read..)) else { continue };
            if wanted.is_empty() {
                return Read::Whole(read);
            }
            if steps > MOST_STEPS * self.text.len() {
                return Read::No;
            }
            let (mut ways, cut) = letter(wanted, rest);
            begun |= cut;
            if self.wraps && at > 0 && ways == [None; 2] {
                let (gap, open) = gap(rest);
                begun |= open;
                if gap > 0 {
                    let (after, cut) = letter(wanted, rest.get(gap..).unwrap_or_default());
                    begun |= cut;
                    ways = after.map(|way| way.map(|(letters, length)| (letters, gap + length)));
                }
            }
            let [itself, otherwise] = ways.map(|way| way.map(|(letters, length)| (at + letters, read + length)));
            next = itself.or(otherwise);
            todo.extend(itself.and(otherwise));
        }
        if begun { Read::Begun } else { Read::No }
    }
}

/// Two rising sequences as one.
struct Merged<A: Iterator<Item = usize>, B: Iterator<Item = usize>>(Peekable<A>, Peekable<B>);

impl<A: Iterator<Item = usize>, B: Iterator<Item = usize>> Iterator for Merged<A, B> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match (self.0.peek(), self.1.peek()) {
            (Some(one), Some(other)) if one <= other => self.0.next(),
            (_, Some(_)) => self.1.next(),
            _ => self.0.next(),
        }
    }
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
                    assert!(spellings.iter().any(|one| one.find(encoded.as_bytes()).is_some()), "{before} {after}");
                }
            }
        }
        let value = "S3cr3t/Val+ue=Z&9 \u{e9}\u{1f600}\"x";
        let spellings = super::spellings(value.as_bytes());
        let whole = STANDARD.encode(format!("user:{value}"));
        let (first, rest) = whole.split_at(16);
        let wrapped = format!("{first}\r\n {rest}");
        for written in [
            value,
            "S3cr3t/Val%2Bue%3DZ%269+%c3%a9%F0%9F%98%80%22x",
            "S3cr3t%252FVal%2Bue=Z&9%20\u{e9}\u{1f600}%22x",
            r#"S3cr3t\/Val\u002bue\u003dZ\u00269 \u00e9\ud83d\ude00\"x"#,
            r#"S3cr3t\\\/Val\\u002Bue=Z&9 \\u00e9\\ud83d\\ude00\\\"x"#,
            r"\x533cr3t\x2fVal+ue=Z&9 \u00e9\ud83d\ude00\x22x",
            "S3cr3t&#x2F;Val&#43;ue&equals;Z&amp;9 &#233;&#x1F600;&quot;x",
            "&#83;3cr3t&sol;Val+ue=Z&9 \u{e9}\u{1f600}\"x",
            wrapped.as_str(),
            wrapped.replace("\r\n ", "\\r\\n").replace('+', "%2B").as_str(),
        ] {
            let text = format!("before %{written}\\ after");
            let (start, length) = spellings.iter().find_map(|one| one.find(text.as_bytes())).expect(written);
            assert!(start >= 8 && start + length <= text.len() - 7, "{written}: {start} {length}");
            for end in start + 1..start + length {
                let waits = spellings.iter().map(|one| one.begun(&text.as_bytes()[..end])).max();
                assert!(waits >= Some(end - start), "{written}: {end}");
            }
        }
        let spellings = super::spellings(b"hunter2/\"+?xyz-long");
        let other = STANDARD.encode(b"user:hunter3/+?xyz-long");
        assert!(!spellings.iter().any(|one| one.find(other.as_bytes()).is_some()));
    }

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(hexadecimal(b"\x00az\xff").as_slice(), b"00617aff");
    }

    #[test]
    fn beginnings_at_the_end() {
        let spelling = Spelling { text: Zeroizing::new(b"abcd".to_vec()), wraps: false };
        for (bytes, begun) in [
            ("xx abc", 3),
            ("abcabc", 3),
            ("ababa", 1),
            ("", 0),
            ("abcd", 0),
            ("xabca", 1),
            ("aab", 2),
            ("x%6", 2),
            ("&", 1),
        ] {
            assert_eq!(spelling.begun(bytes.as_bytes()), begun, "{bytes}");
        }
        let spelling = Spelling { text: Zeroizing::new(b"aab".to_vec()), wraps: false };
        assert_eq!(spelling.begun(b"aaaa"), 2);
    }
}
