//! How a letter is written where it does not stand as itself.
//!
//! Owns the escapes of URLs, of JSON, JavaScript and shells, of HTML, and the line ends inside Base64. Refuses to guess: what is cut off is
//! told apart from what is none. Invariant: no letter takes more bytes than [`LONGEST_LETTER`].

use memchr::memchr;

/// Most bytes that one letter takes: a pair of escapes, with line ends before it.
pub const LONGEST_LETTER: usize = 64;
/// Most backslashes before one letter.
const MOST_SLASHES: usize = 8;
/// Most signs between two lines of Base64.
const MOST_GAPS: usize = 8;

/// How many bytes of a text a letter is, and how many it takes where it is written: as itself, and otherwise.
pub type Ways = [Option<(usize, usize)>; 2];

/// The ways in which the next letter of a text stands at the beginning of some bytes. And whether the bytes end in the middle of one.
pub fn letter(wanted: &[u8], bytes: &[u8]) -> (Ways, bool) {
    let (Some(letter), Some(first)) = (wanted.first().copied(), bytes.first().copied()) else {
        return ([None; 2], bytes.is_empty());
    };
    let itself = (first == letter || (first == b'+' && letter == b' ')).then_some((1, 1));
    let (mut otherwise, mut cut) = (None, false);
    let written = match first {
        b'%' => percent(bytes),
        b'\\' => escape(bytes),
        b'&' => entity(bytes),
        _ => Written::No,
    };
    match written {
        Written::Byte(byte, length) if byte == letter => otherwise = Some((1, length)),
        Written::Letter(found, length) => {
            let mut room = [0; 4];
            let text = found.encode_utf8(&mut room).as_bytes();
            if wanted.starts_with(text) {
                otherwise = Some((text.len(), length));
            }
        }
        Written::Cut => cut = true,
        Written::Byte(..) | Written::No => {}
    }
    ([itself, otherwise], cut)
}

/// A letter that is not written as itself.
enum Written {
    Byte(u8, usize),
    Letter(char, usize),
    Cut,
    No,
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(text, 16).ok()
}

/// So many hexadecimal digits from a place on.
fn digits(bytes: &[u8], from: usize, count: usize) -> Result<u32, Written> {
    match bytes.get(from..from + count) {
        Some(digits) => hex(digits).ok_or(Written::No),
        None if bytes.get(from..).unwrap_or_default().iter().all(u8::is_ascii_hexdigit) => Err(Written::Cut),
        None => Err(Written::No),
    }
}

/// `%2B`, and `%252B` where it was encoded twice.
fn percent(bytes: &[u8]) -> Written {
    let at = if bytes.starts_with(b"%25") { 3 } else { 1 };
    let read = |at: usize| match digits(bytes, at, 2) {
        Ok(code) => u8::try_from(code).map_or(Written::No, |byte| Written::Byte(byte, at + 2)),
        Err(other) => other,
    };
    match read(at) {
        // `%25` is a percent sign, too.
        Written::No if at == 3 => read(1),
        other => other,
    }
}

/// `\/`, `\u002b`, `\x2b`, with more backslashes where a text stands in another.
fn escape(bytes: &[u8]) -> Written {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').take(MOST_SLASHES).count();
    match bytes.get(slashes) {
        None => Written::Cut,
        Some(b'u') => match digits(bytes, slashes + 1, 4) {
            Ok(high @ 0xd800..0xdc00) => low(bytes, slashes, high),
            Ok(code) => char::from_u32(code).map_or(Written::No, |letter| Written::Letter(letter, slashes + 5)),
            Err(other) => other,
        },
        Some(b'x') => match digits(bytes, slashes + 1, 2) {
            Ok(code) => u8::try_from(code).map_or(Written::No, |byte| Written::Byte(byte, slashes + 3)),
            Err(other) => other,
        },
        Some(byte) if !byte.is_ascii_alphanumeric() => Written::Byte(*byte, slashes + 1),
        Some(_) => Written::No,
    }
}

/// The second half of a letter that JSON writes in two.
fn low(bytes: &[u8], slashes: usize, high: u32) -> Written {
    let from = slashes + 5;
    let sign = bytes.get(from..from + slashes + 1);
    match sign {
        None => Written::Cut,
        Some(sign)
            if sign.split_last().is_none_or(|(last, rest)| *last != b'u' || rest.iter().any(|one| *one != b'\\')) =>
        {
            Written::No
        }
        Some(_) => match digits(bytes, from + slashes + 1, 4) {
            Ok(low @ 0xdc00..0xe000) => {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                char::from_u32(code).map_or(Written::No, |letter| Written::Letter(letter, from + slashes + 5))
            }
            Ok(_) => Written::No,
            Err(other) => other,
        },
    }
}

/// Names of letters in HTML that are likely in a secret.
const ENTITIES: [(&str, char); 12] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("sol", '/'),
    ("plus", '+'),
    ("equals", '='),
    ("colon", ':'),
    ("commat", '@'),
    ("num", '#'),
    ("percnt", '%'),
];

/// `&#43;`, `&#x2b;`, `&plus;`.
fn entity(bytes: &[u8]) -> Written {
    let most = bytes.get(..LONGEST_LETTER.min(bytes.len())).unwrap_or_default();
    let Some(end) = memchr(b';', most) else {
        let open = most.iter().skip(1).all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if open && most.len() < LONGEST_LETTER { Written::Cut } else { Written::No };
    };
    let name = most.get(1..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
    let code = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => hex(digits.as_bytes()),
            None => number.parse().ok(),
        },
        None => ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, letter)| u32::from(*letter)),
    };
    code.and_then(char::from_u32).map_or(Written::No, |letter| Written::Letter(letter, end + 1))
}

/// The end of a line inside Base64, however it is written; and whether the bytes may end in the middle of one.
pub fn gap(bytes: &[u8]) -> (usize, bool) {
    let mut length = 0;
    for _ in 0..MOST_GAPS {
        let rest = bytes.get(length..).unwrap_or_default();
        let known: [&[u8]; 9] = [b"\r", b"\n", b" ", b"\t", b"\\r", b"\\n", b"%0D", b"%0A", b"%20"];
        let Some(one) =
            known.iter().find(|one| rest.get(..one.len()).is_some_and(|sign| sign.eq_ignore_ascii_case(one)))
        else {
            return (length, rest.is_empty() || known.iter().any(|one| one.starts_with(rest)));
        };
        length += one.len();
    }
    (length, false)
}
