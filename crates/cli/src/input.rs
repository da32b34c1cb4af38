//! Files that arguments name, and standard input for `-`: read whole, or refused when they are too long.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

use writ_core::json::{self, JsonError, Limits, Value};
use writ_core::regular_file;

use crate::exit::Failure;

/// Longest input: a plan of a large estate.
const MAX_BYTES: u64 = 256 << 20;

/// The bytes of a file.
pub fn bytes(file: &Path) -> Result<Vec<u8>, Failure> {
    let too_long = || Failure::malformed(format!("{}: longer than {} MiB", file.display(), MAX_BYTES >> 20));
    let failed = |error: std::io::Error| {
        let why = || Failure::could_not(format!("{}: {error}", file.display()));
        if error.kind() == ErrorKind::FileTooLarge { too_long() } else { why() }
    };
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else if is_own(file) {
        File::open(file).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    } else {
        return regular_file::read(file, MAX_BYTES).map_err(failed);
    }
    if bytes.len() as u64 > MAX_BYTES { Err(too_long()) } else { Ok(bytes) }
}

/// One line of many, each of which has one answer, however long it is.
pub enum Line {
    /// It, with its end.
    Whole(Vec<u8>),
    /// There is nothing in it.
    Blank,
    /// It has more bytes than are read; the rest of it is passed over.
    TooLong,
}

/// The next line, of at most so many bytes; `None` behind the last.
pub fn line(from: &mut impl BufRead, most: u64) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    if from.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && !from.fill_buf()?.is_empty() {
        from.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(if line.trim_ascii().is_empty() { Line::Blank } else { Line::Whole(line) }))
}

/// Whether it names what this process was given open, as a shell's `<(…)` does. Any other pipe may have nobody at its other end.
fn is_own(file: &Path) -> bool {
    file == Path::new("/dev/stdin") || file.starts_with("/dev/fd") || file.starts_with("/proc/self/fd")
}

/// A JSON document of a file, an argument or standard input. What was given in person is quoted where it is none; a file's content
/// may be a secret.
pub fn json(name: &str, bytes: &[u8], limits: Limits) -> Result<Value, Failure> {
    let given = name.starts_with('-');
    let told = |error: JsonError| if given { told(bytes, &error) } else { error.to_string() };
    json::parse_with(bytes, limits).map_err(|error| Failure::malformed(format!("{name}: {}", told(error))))
}

/// What is wrong with a document that was given in person, and what stands there.
pub fn told(bytes: &[u8], error: &JsonError) -> String {
    let rest = bytes.get(error.offset()..).unwrap_or_default();
    let text = String::from_utf8_lossy(rest.get(..rest.len().min(QUOTED * 4)).unwrap_or_default()).into_owned();
    let line = text.lines().next().unwrap_or_default();
    let quoted: String = line.chars().take(QUOTED).collect();
    let more = if quoted == line { "" } else { "…" };
    match (bytes.trim_ascii().is_empty(), quoted.is_empty(), error.offset()) {
        (true, ..) => "it is empty, and no JSON".to_owned(),
        (_, true, _) => error.to_string(),
        (_, _, 0) => format!("`{quoted}`{more} is no JSON"),
        _ => format!("{error}, where `{quoted}`{more} stands"),
    }
}

/// Most letters of a document that an error quotes.
const QUOTED: usize = 40;

/// The text of a file; what is not UTF-8 in it is replaced.
pub fn text(file: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&bytes(file)?).into_owned())
}

/// UTF-8, or what a Windows shell makes of it: UTF-16 with its mark.
pub fn decoded(bytes: &[u8]) -> String {
    let units = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.as_chunks().0.iter().map(|pair| read(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, decoded, line};

    #[test]
    fn each_line_is_one_however_long_it_is() {
        let mut from: &[u8] = b"12345\n123456\n  \n1\n123456";
        let mut read = || {
            line(&mut from, 6).unwrap().map(|line| match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::Blank => "blank".to_owned(),
                Line::TooLong => "too long".to_owned(),
            })
        };
        let lines: Vec<String> = std::iter::from_fn(&mut read).collect();
        assert_eq!(lines, ["12345\n", "too long", "blank", "1\n", "123456"]);
    }

    #[test]
    fn a_plan_from_a_windows_shell_is_read() {
        let text = "{\"a\":\"é\"}";
        let units = |to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        assert_eq!(decoded(text.as_bytes()), text);
        assert_eq!(decoded(&marked(&[0xef, 0xbb, 0xbf], text.as_bytes())), text);
        assert_eq!(decoded(&marked(&[0xff, 0xfe], &units(u16::to_le_bytes))), text);
        assert_eq!(decoded(&marked(&[0xfe, 0xff], &units(u16::to_be_bytes))), text);
        assert_eq!(decoded(&[0xff, 0xfe, b'{']), "");
    }
}
