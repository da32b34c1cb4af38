//! A request's head: method, target, the one host it is for, how its body ends.
//!
//! Owns the reading of it and the head that is sent on in its place. Refuses a request that names two hosts, or whose length
//! two programs would read differently. Invariant: what is sent on is written from what was read, never copied.

use super::head::{self, FIELDS, Field, Framing};
use crate::host::{HostName, authority};
use crate::refusal::Refusal;

/// A request, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// What is asked for.
    pub target: Target,
    /// The host and port that the `Host` field names.
    pub host: Option<(HostName, Option<u16>)>,
    /// The fields without `Host` and without those of one connection.
    pub fields: Vec<Field>,
    /// How the body ends.
    pub framing: Framing,
    /// Whether the client keeps the connection.
    pub keep: bool,
    /// Whether the client reads chunks: it speaks HTTP/1.1.
    pub chunks: bool,
    /// What the client would rather speak from here on (WebSocket).
    pub upgrade: Option<Vec<u8>>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A path, or `*`, on the host that `Host` names.
    Origin(Vec<u8>),
    /// A URL: whether it is `https`, host and port, path.
    Absolute(bool, HostName, Option<u16>, Vec<u8>),
    /// Host and port to be connected with.
    Connect(HostName, u16),
}

impl Request {
    /// Reads a head with its empty line.
    pub fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        head::lines(bytes).map_err(Refusal::Request)?;
        let mut slots = [httparse::EMPTY_HEADER; FIELDS];
        let mut parsed = httparse::Request::new(&mut slots);
        match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(read)) if read == bytes.len() => {}
            _ => return Err(Refusal::Request("its head is malformed")),
        }
        let (method, path) = (parsed.method.unwrap_or_default().to_owned(), parsed.path.unwrap_or_default());
        let chunks = parsed.version == Some(1);
        let fields = head::fields(parsed.headers);
        if !single_spaces(bytes, &method, path) {
            return Err(Refusal::Request("its first line is malformed"));
        }
        let target = target(&method, path.as_bytes())?;
        let host = head::single(&fields, "host").map_err(Refusal::Request)?;
        if host.is_none() && (chunks || matches!(target, Target::Origin(_))) {
            return Err(Refusal::Request("it names no host"));
        }
        let host = host.map(|host| authority(host, Some(0))).transpose()?;
        let host = host.map(|(name, port)| (name, Some(port).filter(|port| *port != 0)));
        Self { method, target, host, fields, framing: Framing::Empty, keep: chunks, chunks, upgrade: None }.finished()
    }

    /// Reads what the fields say of body and connection, and takes out those of one connection.
    fn finished(mut self) -> Result<Self, Refusal> {
        let framing = head::framing(&self.fields).map_err(Refusal::Request)?;
        if framing == Some(Framing::Chunked) && !self.chunks {
            return Err(Refusal::Request("HTTP/1.0 knows no chunks"));
        }
        self.framing = framing.unwrap_or(Framing::Empty);
        let continues = |value: &[u8]| value.eq_ignore_ascii_case(b"100-continue");
        if !head::values(&self.fields, "expect").all(continues) {
            return Err(Refusal::Request("it expects what is unknown"));
        }
        let upgrades = self.chunks && head::lists(&self.fields, "connection", "upgrade");
        let wanted = head::single(&self.fields, "upgrade").map_err(Refusal::Request)?;
        // HTTP/2 in the clear could not be read here; a server that is not asked for it goes on in HTTP/1.1.
        self.upgrade = wanted.filter(|to| upgrades && to.eq_ignore_ascii_case(b"websocket")).map(<[u8]>::to_vec);
        self.keep &= !head::lists(&self.fields, "connection", "close");
        head::strip(&mut self.fields).map_err(Refusal::Request)?;
        self.fields.retain(|(name, _)| name != "host" && name != "content-length" && name != "http2-settings");
        Ok(self)
    }

    /// The host and port that a request is for, where nothing else says it. A port that is not named is `default`.
    pub fn destination(&self, default: u16) -> Result<(HostName, u16), Refusal> {
        let (host, port) = match (&self.target, &self.host) {
            (Target::Connect(host, port), _) => (host, Some(*port)),
            (Target::Absolute(_, host, port, _), _) => (host, *port),
            (Target::Origin(_), Some((host, port))) => (host, *port),
            (Target::Origin(_), None) => return Err(Refusal::Request("it names no host")),
        };
        let port = port.unwrap_or(default);
        if let Some((field, own)) = &self.host
            && (field, own.unwrap_or(default)) != (host, port)
            // Clients leave the port of a tunnel out of `Host`.
            && !(matches!(self.target, Target::Connect(..)) && own.is_none() && field == host)
        {
            return Err(Refusal::Mismatch { asked: format!("{host}:{port}"), sent: field.to_string() });
        }
        Ok((host.clone(), port))
    }

    /// The path that is sent on.
    pub fn path(&self) -> &[u8] {
        match &self.target {
            Target::Origin(path) | Target::Absolute(_, _, _, path) => path,
            Target::Connect(..) => b"",
        }
    }
}

/// httparse takes more than one space between the words; some programs read that otherwise.
fn single_spaces(bytes: &[u8], method: &str, path: &str) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    [format!("{method} {path} HTTP/1.0"), format!("{method} {path} HTTP/1.1")].iter().any(|own| own.as_bytes() == line)
}

fn target(method: &str, path: &[u8]) -> Result<Target, Refusal> {
    if path.iter().any(|byte| !byte.is_ascii_graphic()) || path.contains(&b'#') {
        return Err(Refusal::Request("its target holds what no URL holds"));
    }
    if method == "CONNECT" {
        let (host, port) = authority(path, None)?;
        return Ok(Target::Connect(host, port));
    }
    if path.starts_with(b"/") || (path == b"*" && method == "OPTIONS") {
        return Ok(Target::Origin(path.to_vec()));
    }
    let scheme = |scheme: &[u8]| path.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let (secure, rest) = match (scheme(b"http://"), scheme(b"https://")) {
        (true, _) => (false, path.get(7..)),
        (_, true) => (true, path.get(8..)),
        _ => return Err(Refusal::Request("its target is no path and no URL")),
    };
    let rest = rest.unwrap_or_default();
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'\\')).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let (host, port) = authority(host, Some(0))?;
    let path = match path.first() {
        Some(b'/') => path.to_vec(),
        Some(b'?') => [b"/", path].concat(),
        None => b"/".to_vec(),
        Some(_) => return Err(Refusal::Request("its target holds what no URL holds")),
    };
    Ok(Target::Absolute(secure, host, Some(port).filter(|port| *port != 0), path))
}

/// A request's head as it is sent on: HTTP/1.1, one `Host`, own framing.
pub fn write(request: &Request, host: &str, target: &[u8], fields: &[Field]) -> zeroize::Zeroizing<Vec<u8>> {
    // Room for all of it: a growing vector would leave copies of secrets behind.
    let room = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>() + target.len() + 512;
    let mut out = zeroize::Zeroizing::new(Vec::with_capacity(room));
    out.extend_from_slice(request.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    out.extend_from_slice(host.as_bytes());
    out.extend_from_slice(b"\r\n");
    match request.framing {
        Framing::Length(length) => out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes()),
        Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Framing::Empty | Framing::UntilClose => {}
    }
    if let Some(to) = &request.upgrade {
        out.extend_from_slice(b"connection: upgrade\r\nupgrade: ");
        out.extend_from_slice(to);
        out.extend_from_slice(b"\r\n");
    }
    head::write(fields, &mut out);
    out
}

#[cfg(test)]
mod tests;
