//! An answer's head.
//!
//! Owns the reading of it and the head that the client gets. Refuses an answer whose end cannot be told: the next answer on that
//! connection could be somebody else's. Invariant: the client sees no field of the connection to the host.

use super::head::{self, FIELDS, Field, Framing};

/// An answer, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Its words.
    pub reason: String,
    /// The fields without those of one connection.
    pub fields: Vec<Field>,
    /// How the body ends.
    pub framing: Framing,
    /// The body's length that an answer without a body tells (HEAD, 304).
    pub told: Option<u64>,
    /// Whether the host keeps the connection.
    pub keep: bool,
    /// What is spoken from here on, after status 101.
    pub upgrade: Option<Vec<u8>>,
}

impl Response {
    /// Reads a head with its empty line; `head` says that the request was for the head alone.
    pub fn read(bytes: &[u8], for_head: bool) -> Result<Self, &'static str> {
        head::lines(bytes)?;
        let mut slots = [httparse::EMPTY_HEADER; FIELDS];
        let mut parsed = httparse::Response::new(&mut slots);
        match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(read)) if read == bytes.len() => {}
            _ => return Err("its head is malformed"),
        }
        let status = parsed.code.unwrap_or_default();
        if !(100..600).contains(&status) {
            return Err("its status is none");
        }
        let modern = parsed.version == Some(1);
        let reason = parsed.reason.unwrap_or_default().to_owned();
        let mut fields = head::fields(parsed.headers);
        let said = head::framing(&fields)?;
        let empty = for_head || matches!(status, 100..=199 | 204 | 304);
        let framing = if empty { Framing::Empty } else { said.unwrap_or(Framing::UntilClose) };
        let told = match said {
            Some(Framing::Length(length)) if empty && (for_head || status == 304) => Some(length),
            _ => None,
        };
        let keep = modern && framing != Framing::UntilClose && !head::lists(&fields, "connection", "close");
        let upgrade = head::single(&fields, "upgrade")?.filter(|_| status == 101).map(<[u8]>::to_vec);
        head::strip(&mut fields)?;
        fields.retain(|(name, _)| name != "content-length");
        Ok(Self { status, reason, fields, framing, told, keep, upgrade })
    }

    /// Whether another answer to the same request follows.
    pub const fn is_interim(&self) -> bool {
        matches!(self.status, 100..=199) && self.status != 101
    }

    /// The head that the client gets.
    pub fn write(&self, framing: Framing, keep: bool) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} {}\r\n", self.status, self.reason).into_bytes();
        match framing {
            Framing::Length(length) => out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes()),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Framing::Empty | Framing::UntilClose => {}
        }
        if let Some(length) = self.told {
            out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        match &self.upgrade {
            Some(to) => {
                out.extend_from_slice(b"connection: upgrade\r\nupgrade: ");
                out.extend_from_slice(to);
                out.extend_from_slice(b"\r\n");
            }
            None if !keep && !self.is_interim() => out.extend_from_slice(b"connection: close\r\n"),
            None => {}
        }
        head::write(&self.fields, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Response, &'static str> {
        Response::read(text.as_bytes(), false)
    }

    #[test]
    fn ends_are_told() {
        for (fields, framing, keep) in [
            ("content-length: 3\r\n", Framing::Length(3), true),
            ("transfer-encoding: chunked\r\n", Framing::Chunked, true),
            ("connection: close\r\ncontent-length: 3\r\n", Framing::Length(3), false),
            ("", Framing::UntilClose, false),
        ] {
            let answer = read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).unwrap();
            assert_eq!((answer.framing, answer.keep), (framing, keep));
        }
        assert_eq!(read("HTTP/1.1 204 No Content\r\n\r\n").unwrap().framing, Framing::Empty);
        let head = Response::read(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", true).unwrap();
        assert_eq!((head.framing, head.told), (Framing::Empty, Some(9)));
    }

    #[test]
    fn unclear_ends_are_refused() {
        for fields in [
            "content-length: 3\r\ncontent-length: 3\r\n",
            "content-length: 3\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "content-length: +3\r\n",
            "content-length: 3, 3\r\n",
            "a: b\n",
            "a: b\r\n c\r\n",
            "a: b\0\r\n",
            "a : b\r\n",
        ] {
            assert!(read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).is_err(), "{fields}");
        }
        for status in ["020", "099", "600", "999"] {
            assert!(read(&format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n")).is_err(), "{status}");
        }
        assert!(read("HTTP/1.1 200 OK\n\n").is_err() && read("HTTP/2 200 OK\r\n\r\n").is_err());
    }
}
