//! How messages come and go on standard input and output: a length, and JSON.
//!
//! Owns the frames. Refuses a message that does not read, with an error that ends nothing; only where nobody can tell where the next one
//! begins it ends. Invariant: no more is read into memory than a message may have.

use std::io::{self, BufRead, Read, Write};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsp_server::{Connection, ErrorCode, Message};

/// Largest message, in bytes: a document, escaped, with what is around it.
const LARGEST: u64 = 32 << 20;
/// Longest line of a head, and most lines.
const LONGEST: u64 = 4 << 10;
const MOST: usize = 32;
/// Most messages that wait to be answered.
const WAITING: usize = 64;

/// A thread that reads or writes.
type Thread = JoinHandle<io::Result<()>>;

/// A connection to whoever is on standard input and output, and the threads that write and read.
pub fn connect() -> io::Result<(Connection, [Thread; 2])> {
    let (own, other) = Connection::memory();
    let Connection { sender, receiver } = other;
    let writes = thread::Builder::new()
        .name("writes".to_owned())
        .spawn(move || receiver.into_iter().try_for_each(|message: Message| message.write(&mut io::stdout().lock())))?;
    let reads = thread::Builder::new().name("reads".to_owned()).spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(text) = frame(&mut input)? {
            let message = text.and_then(|text| {
                let text = String::from_utf8(text).map_err(|error| error.to_string())?;
                serde_json::from_str::<Message>(&text).map_err(|error| error.to_string())
            });
            match message {
                Ok(message) => {
                    let ends = matches!(&message, Message::Notification(told) if told.method == "exit");
                    while sender.len() >= WAITING {
                        thread::sleep(Duration::from_millis(1));
                    }
                    if sender.send(message).is_err() || ends {
                        return Ok(());
                    }
                }
                Err(why) => refuse(&mut io::stdout().lock(), &why)?,
            }
        }
        Ok(())
    })?;
    Ok((own, [writes, reads]))
}

/// The next message's bytes, or why it is none; nothing at the end.
fn frame(input: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, String>>> {
    let lost =
        |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the head of a message does not read: {why}"));
    let mut length = None;
    for _ in 0..MOST {
        let mut line = Vec::new();
        input.take(LONGEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let text = std::str::from_utf8(&line).map_err(|_no_text| lost("it is no text"))?;
        let text =
            text.strip_suffix('\n').ok_or_else(|| lost("a line is too long, or cut off"))?.trim_end_matches('\r');
        if text.is_empty() {
            let length: u64 = length.ok_or_else(|| lost("it has no `Content-Length`"))?;
            return body(input, length).map(Some);
        }
        let (name, value) = text.split_once(':').ok_or_else(|| lost("a line has no `:`"))?;
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse().map_err(|_no_number| lost("`Content-Length` is no number"))?);
        }
    }
    Err(lost("it has too many lines"))
}

fn body(input: &mut impl BufRead, length: u64) -> io::Result<Result<Vec<u8>, String>> {
    if length > LARGEST {
        let passed = io::copy(&mut input.take(length), &mut io::sink())?;
        return if passed == length {
            Ok(Err(format!("it has {length} bytes, and may have {LARGEST}")))
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        };
    }
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(Ok(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Tells that a message was none: nobody knows which it was to be.
fn refuse(out: &mut impl Write, why: &str) -> io::Result<()> {
    let error = serde_json::json!({"code": ErrorCode::ParseError as i32, "message": format!("the message does not read: {why}")});
    let text = serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
    write!(out, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_within_bounds() {
        let of = |text: &[u8]| frame(&mut io::BufReader::new(text));
        assert_eq!(of(b"Content-Length: 2\r\n\r\n{}").unwrap(), Some(Ok(b"{}".to_vec())));
        assert_eq!(of(b"X: y\r\ncontent-length:0\r\n\r\n").unwrap(), Some(Ok(Vec::new())));
        assert_eq!(of(b"").unwrap(), None);
        for bad in [
            b"Content-Length: 99999999999\r\n\r\n{}".as_slice(),
            b"Content-Length: 3\r\n\r\n{}",
            b"Content-Length: abc\r\n\r\n{}",
            b"\r\n{}",
            b"no head\r\n\r\n",
            &[b'x'; 5000],
        ] {
            assert!(of(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        let long =
            [format!("Content-Length: {}\r\n\r\n", LARGEST + 1).into_bytes(), vec![b' '; 32 << 20], b" ".to_vec()]
                .concat();
        assert!(matches!(of(&long).unwrap(), Some(Err(_))));
    }
}
