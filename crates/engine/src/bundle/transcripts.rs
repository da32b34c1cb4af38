//! The transcripts that a session's rows name, as a bundle has them: their digests, and where it was asked for their text.
//!
//! Owns the masking of secrets in that text, by their shapes and by the names that stand before them. Refuses to touch a transcript.
//! Invariant: of a line that was masked the bundle holds the digest that the whole line has in a tree, so that the tree can still be made.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use writ_clients::Client;
use writ_clients::transcript::{MAIN, TranscriptError};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::secret::hide;
use writ_core::{Hasher, regular_file};
use writ_evidence::merkle::leaf;
use writ_evidence::row::Row;

use super::{BundleError, Hex, Transcript, io_error};
use crate::lag;
use crate::session::rows;

/// The folder of transcripts in a bundle.
pub const FOLDER: &str = "transcripts";
/// Longest line whose secrets are masked; a longer one ends an export of text.
const MAX_LINE: u64 = 64 << 20;
/// Read at once.
const PIECE: usize = 1 << 18;
/// Most main conversations of one session.
const MOST: usize = 1000;
/// No letter of a text in UTF-8.
const NO_TEXT: u8 = 0xff;
/// Shortest number behind a secret's name that is taken for one.
const MIN_DIGITS: usize = 6;
/// Largest file beside a transcript.
const MAX_BESIDE: u64 = 1 << 20;

/// Where in a bundle something lies, the file here that it is made from, and how many bytes of it.
pub type Piece = (String, PathBuf, u64);

/// One transcript.
pub struct Taken {
    /// What the manifest says of it.
    pub transcript: Transcript,
    /// Its text, where it goes along.
    pub from: Option<Piece>,
    /// What the client keeps beside it.
    pub beside: Vec<Piece>,
}

/// The main conversations that the rows name, with the client that can read them.
pub fn mains(ledger: &Path, length: u64) -> Result<Vec<(&'static dyn Client, PathBuf)>, BundleError> {
    let failed = |source| io_error("read", ledger, source);
    let mut reader = BufReader::new(regular_file::open(ledger).map_err(failed)?.take(length));
    let (mut client, mut seen, mut found) = (None, BTreeSet::new(), Vec::new());
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        let row = Row::parse(line.strip_suffix(b"\n").unwrap_or(&line)).ok();
        line.clear();
        let Some(detail) = row.map(|row| row.detail) else { continue };
        if client.is_none() {
            client = Some(rows::client(&detail).ok());
        }
        let read = detail.get("transcripts").and_then(|read| read.get(MAIN));
        let named = [detail.get("transcript"), read].into_iter().flatten().filter_map(Value::as_str);
        for main in named {
            if seen.len() < MOST && seen.insert(main.to_owned()) {
                found.push(PathBuf::from(main));
            }
        }
    }
    // What no client can read is no transcript.
    let Some(client) = client.flatten() else { return Ok(Vec::new()) };
    Ok(found.into_iter().map(|main| (client, main)).collect())
}

/// Takes the transcripts of one conversation; `scratch` is where masked text is put, and without it no text is taken.
pub fn take(
    number: usize,
    client: &dyn Client,
    main: &Path,
    scratch: Option<&Path>,
) -> Result<Vec<Taken>, BundleError> {
    let Some(kept) = client.transcripts().filter(|_| main.exists()) else { return Ok(Vec::new()) };
    let listing = kept.files(main)?;
    if listing.unread > 0 {
        return Err(TranscriptError::TooMany { path: main.to_owned(), unread: listing.unread }.into());
    }
    let top = main.parent().unwrap_or(Path::new("/"));
    let mut taken = Vec::new();
    for (index, (name, path)) in listing.files.into_iter().enumerate() {
        let place = |path: &Path| Some(format!("{FOLDER}/{number}/{}", path.strip_prefix(top).ok()?.to_str()?));
        let masked = scratch.map(|scratch| scratch.join(format!("{number}-{index}")));
        // A client that is writing a line finishes it. There may be many other files, and none is waited for.
        if index == 0 {
            let _whole = lag::wait_for(|| ends_with_a_line(&path).then_some(()));
        }
        let Copied { size, digest, lines, written } = read(&path, masked.as_deref())?;
        let at = scratch.and_then(|_| place(&path));
        let from = match (&at, masked) {
            (Some(at), Some(masked)) if !lines.is_empty() => Some((at.clone(), masked, written)),
            (Some(at), _) => Some((at.clone(), path.clone(), size)),
            (None, _) => None,
        };
        let mut beside = Vec::new();
        for (part, other) in kept.beside(&path).into_iter().enumerate() {
            let (Some(scratch), Some(at)) = (scratch, place(&other)) else { continue };
            let copy = scratch.join(format!("{number}-{index}-{part}"));
            if let Some(size) = masked_whole(&other, &copy)? {
                beside.push((at, copy, size));
            }
        }
        let main = main.to_string_lossy().into_owned();
        taken.push(Taken {
            transcript: Transcript { main, name, size, sha256: digest, path: at, masked: lines },
            from,
            beside,
        });
    }
    Ok(taken)
}

/// Whether the last line of a file has its end, or there is none.
fn ends_with_a_line(path: &Path) -> bool {
    let last = || {
        let mut file = regular_file::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(b'\n');
        }
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        io::Result::Ok(last[0])
    };
    last().is_ok_and(|last| last == b'\n')
}

/// A transcript that was read.
struct Copied {
    size: u64,
    digest: Hex,
    lines: Vec<(u64, Hex, u64)>,
    written: u64,
}

/// Reads all of it, however long lines are.
fn hashed(path: &Path) -> io::Result<Copied> {
    let (mut file, mut piece) = (regular_file::open(path)?, vec![0; PIECE]);
    let (mut size, mut hasher) = (0, Hasher::default());
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(Copied { size, digest: Hex(hasher.finish()), lines: Vec::new(), written: 0 });
        }
        hasher.update(piece.get(..length).unwrap_or_default());
        size += length as u64;
    }
}

/// Reads lines, and writes them with their secrets masked. A last one without its end counts, as it does where the transcript lies.
fn read(path: &Path, to: Option<&Path>) -> Result<Copied, BundleError> {
    let failed = |source| io_error("read", path, source);
    let Some(to) = to else { return hashed(path).map_err(failed) };
    let mut reader = BufReader::new(regular_file::open(path).map_err(failed)?);
    let mut out = BufWriter::new(File::create_new(to).map_err(failed)?);
    let (mut size, mut written, mut lines, mut hasher) = (0, 0, Vec::new(), Hasher::default());
    let mut line = Vec::new();
    for number in 0.. {
        line.clear();
        let length = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(failed)? as u64;
        let end: &[u8] = if line.ends_with(b"\n") { b"\n" } else { b"" };
        if end.is_empty() && length == MAX_LINE {
            return Err(failed(io::Error::new(ErrorKind::FileTooLarge, "a line of it is too long")));
        }
        if line.is_empty() {
            break;
        }
        hasher.update(&line);
        size += length;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let shown = masked(text);
        if let Some(shown) = &shown {
            lines.push((number, Hex(leaf(text)), text.len() as u64));
            line = [shown.as_slice(), end].concat();
        }
        written += line.len() as u64;
        out.write_all(&line).map_err(failed)?;
    }
    out.flush().map_err(failed)?;
    Ok(Copied { size, digest: Hex(hasher.finish()), lines, written })
}

/// A small file with its secrets masked; `None` where there is none.
fn masked_whole(path: &Path, to: &Path) -> Result<Option<u64>, BundleError> {
    let bytes = match regular_file::read(path, MAX_BESIDE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(|source| io_error("read", path, source))?,
    };
    let bytes = masked(&bytes).unwrap_or(bytes);
    std::fs::write(to, &bytes).map_err(|source| io_error("write", to, source))?;
    Ok(Some(bytes.len() as u64))
}

/// A line without its secrets, where it has some. One that cannot be read is none that can.
fn masked(line: &[u8]) -> Option<Vec<u8>> {
    match json::parse_with(line, Limits::FOREIGN) {
        Ok(value) => {
            let shown = hidden(&value);
            (shown != value).then(|| json::to_compact(&shown).into_bytes())
        }
        Err(_no_json) => {
            let text = String::from_utf8_lossy(line);
            let shown = hide(&text);
            let mut bytes = (shown != *text).then(|| shown.into_bytes())?;
            if json::parse_with(&bytes, Limits::FOREIGN).is_ok() {
                bytes.push(NO_TEXT);
            }
            Some(bytes)
        }
    }
}

/// The same value with each text hidden.
fn hidden(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(hide(text)),
        Value::Array(items) => Value::Array(items.iter().map(hidden).collect()),
        Value::Object(members) => {
            let mut out = Object::new();
            for (name, value) in members.iter() {
                // What stands beside such a name is a secret, whatever its shape.
                out.push(hide(name), member(name, value));
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn member(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => by_name(name, text),
        Value::Number(number) if number.to_string().len() >= MIN_DIGITS => match by_name(name, &number.to_string()) {
            Value::String(shown) if shown != number.to_string() => Value::String(shown),
            _ => value.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| member(name, item)).collect()),
        _ => hidden(value),
    }
}

/// A member's text: hidden by itself, and as the value of its name.
fn by_name(name: &str, text: &str) -> Value {
    let pair = format!("{name}={text}");
    let secret = !text.is_empty() && !text.contains(char::is_whitespace) && hide(&pair) != pair && hide(text) == text;
    Value::String(if secret {
        hide(&pair).trim_start_matches(name).trim_start_matches('=').to_owned()
    } else {
        hide(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::Digest;

    #[test]
    fn secrets_are_masked_and_the_rest_stays_byte_for_byte() {
        let plain = br#"{"type":"user","message":{"content":"run the tests"},"n":12345678901234567890}"#;
        assert_eq!(masked(plain), None);
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for line in [
            format!(r#"{{"content":"export GITHUB_TOKEN={token}"}}"#),
            format!(r#"{{"a":[{{"b":"{token}"}}]}}"#),
            format!("no json {token}"),
            r#"{"password":"hunter2hunter2"}"#.to_owned(),
            r#"{"passwords":["hunter2hunter2"]}"#.to_owned(),
            r#"{"x":"<password>hunter2</password>"}"#.to_owned(),
            r#"{"x":"{\"auths\":{\"r\":{\"auth\":\"bWU6aHVudGVyMg==\",\"p\":\"hunter2\"}}}"}"#.replace("hunter2", "x"),
            r#"{"api_key":998877665544}"#.to_owned(),
            format!(r#"{{"x":"123456789:AA{}"}}"#, "b1C2d".repeat(7)),
        ] {
            let shown = String::from_utf8(masked(line.as_bytes()).unwrap()).unwrap();
            assert!(!shown.contains(&token) && !shown.contains("hunter2") && shown.contains("[secret]"), "{shown}");
        }
        // What a model used is no secret.
        assert_eq!(masked(br#"{"usage":{"input_tokens":123456789,"output_tokens":[1234567]}}"#), None);
    }

    #[test]
    fn a_line_that_cannot_be_read_stays_so() {
        let secret = format!("ghp_{}", "a1B2".repeat(9));
        for before in [br#"{"x":"#.as_slice(), b"{\"x\":\"\xff ", b"{\"x\":1,\"x\":\""] {
            let line = [before, secret.as_bytes(), b"\"}"].concat();
            assert!(json::parse_with(&line, Limits::FOREIGN).is_err());
            let shown = masked(&line).unwrap();
            assert!(json::parse_with(&shown, Limits::FOREIGN).is_err(), "{}", String::from_utf8_lossy(&shown));
            assert!(!shown.windows(secret.len()).any(|part| part == secret.as_bytes()));
        }
    }

    #[test]
    fn digests_are_of_all_that_is_there_however_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.jsonl");
        let long = "x".repeat(PIECE + 7);
        for (text, ends) in [
            (String::new(), true),
            ("torn".to_owned(), false),
            ("one\ntwo\n".to_owned(), true),
            ("one\ntorn".to_owned(), false),
            (format!("{long}{long}\n\n{long}"), false),
        ] {
            std::fs::write(&path, &text).unwrap();
            let Copied { size, digest, .. } = hashed(&path).unwrap();
            assert_eq!((size, digest.0), (text.len() as u64, Digest::of(text.as_bytes())));
            assert_eq!(ends_with_a_line(&path), ends);
            let shown = folder.path().join("shown");
            let Copied { size, digest, written, .. } = read(&path, Some(&shown)).unwrap();
            assert_eq!((size, written, digest.0), (text.len() as u64, text.len() as u64, Digest::of(text.as_bytes())));
            assert_eq!(std::fs::read(&shown).unwrap(), text.as_bytes());
            std::fs::remove_file(shown).unwrap();
        }
    }
}
