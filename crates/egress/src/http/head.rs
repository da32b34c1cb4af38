//! What heads of requests and answers have in common: lines, fields, and what says how long the body is.
//!
//! Owns the strict check that stands before httparse, which takes lone line feeds. Refuses each spelling that programs read
//! differently (request smuggling): folded lines, NUL and other controls, two lengths, a length beside chunks. Invariant: a head
//! that passes has one meaning.

/// Most fields of a head.
pub const FIELDS: usize = 128;

/// Fields that concern one connection alone (RFC 9110, 7.6.1), beside those that `Connection` names.
const ONE_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A name in lower case, and a value without the space around it.
pub type Field = (String, Vec<u8>);

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// After so many bytes.
    Length(u64),
    /// In pieces, the last one empty.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Whether each line of a head ends as it must and holds nothing that could end it elsewhere.
pub fn lines(head: &[u8]) -> Result<(), &'static str> {
    let Some(lines) = head.strip_suffix(b"\r\n\r\n") else { return Err("its head has no end") };
    for (place, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        // The last line's carriage return went with the end.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
            return Err("its head holds a control character");
        }
        if line.is_empty() || line.starts_with(b" ") || line.starts_with(b"\t") {
            return Err(if place == 0 { "it begins with an empty line" } else { "a field is folded" });
        }
    }
    let ends = memchr::memchr_iter(b'\n', lines).all(|at| at > 0 && lines.get(at - 1) == Some(&b'\r'));
    let returns = memchr::memchr_iter(b'\r', lines).all(|at| lines.get(at + 1) == Some(&b'\n'));
    if ends && returns { Ok(()) } else { Err("a line ends without a carriage return") }
}

/// The fields as httparse found them, names in lower case.
pub fn fields(found: &[httparse::Header<'_>]) -> Vec<Field> {
    found.iter().map(|field| (field.name.to_ascii_lowercase(), field.value.trim_ascii().to_vec())).collect()
}

/// All values of a field.
pub fn values<'a>(fields: &'a [Field], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_slice())
}

/// The one value of a field; an error when there are two.
pub fn single<'a>(fields: &'a [Field], name: &'static str) -> Result<Option<&'a [u8]>, &'static str> {
    let mut found = values(fields, name);
    let first = found.next();
    if found.next().is_some() { Err("a field stands twice that may stand once") } else { Ok(first) }
}

/// Whether a field that is a list holds a word.
pub fn lists(fields: &[Field], name: &str, word: &str) -> bool {
    values(fields, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// What the fields say of the body: a length or chunks, never both.
pub fn framing(fields: &[Field]) -> Result<Option<Framing>, &'static str> {
    let length = single(fields, "content-length")?;
    let encoding = single(fields, "transfer-encoding")?;
    match (length, encoding) {
        (Some(_), Some(_)) => Err("its body has a length and chunks"),
        (None, None) => Ok(None),
        (None, Some(encoding)) if encoding.eq_ignore_ascii_case(b"chunked") => Ok(Some(Framing::Chunked)),
        (None, Some(_)) => Err("its body's transfer encoding is unknown"),
        (Some(length), None) => {
            let digits = (1..=18).contains(&length.len()) && length.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(length).ok().filter(|_| digits).and_then(|text| text.parse().ok());
            number.map(|length| Some(Framing::Length(length))).ok_or("its body's length is no number")
        }
    }
}

/// Takes out what concerns one connection alone.
pub fn strip(fields: &mut Vec<Field>) -> Result<(), &'static str> {
    let named: Vec<Vec<u8>> = values(fields, "connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|item| item.trim_ascii().to_ascii_lowercase())
        .collect();
    if named.iter().any(|name| name == b"host" || name == b"content-length" || name == b"authorization") {
        return Err("`Connection` names a field that must stay");
    }
    fields.retain(|(name, _)| {
        !ONE_CONNECTION.contains(&name.as_str()) && !named.iter().any(|one| one == name.as_bytes())
    });
    Ok(())
}

/// Appends fields and the empty line.
pub fn write(fields: &[Field], out: &mut Vec<u8>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}
