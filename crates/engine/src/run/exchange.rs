//! What a hook inside a run and the supervisor outside say to each other.
//!
//! Owns the form: a mark, then fields, each behind its length. Refuses what is longer than it may be before it is read. Invariant: a
//! side that is lied to reads no more than its limits, and waits no longer than its time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The variable that tells a hook where to ask, and with which token.
pub const VARIABLE: &str = "WRIT_RUN";
/// Longest payload, and longest answer.
pub const MAX_BYTES: u32 = 16 << 20;
/// Longest of the other fields.
const MAX_FIELD: u32 = 4096;
/// Longest text for standard error.
const MAX_NOTES: u32 = 64 << 10;
/// What every question begins with.
const MARK: &[u8; 7] = b"writ-1\n";
/// How long a hook waits; its client waits longer.
const PATIENCE: Duration = Duration::from_secs(23);

/// What a hook asks.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    /// What shows that it may.
    pub token: String,
    /// The client's name.
    pub client: String,
    /// The folder it runs in.
    pub cwd: String,
    /// Whether its client runs lines with zsh.
    pub zsh: bool,
    /// The payload.
    pub payload: Vec<u8>,
}

/// What it is told.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// What it prints.
    pub text: Vec<u8>,
    /// What it says on standard error.
    pub notes: Vec<u8>,
}

/// The variable's value.
pub fn variable(port: u16, token: &str) -> String {
    format!("127.0.0.1:{port}/{token}")
}

/// Asks the supervisor that the variable's value names.
pub fn ask(value: &str, client: &str, cwd: &str, zsh: bool, payload: &[u8]) -> io::Result<Told> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidInput, format!("`{VARIABLE}` names no supervisor"));
    let (address, token) = value.split_once('/').ok_or_else(malformed)?;
    let address: SocketAddr = address.parse().ok().ok_or_else(malformed)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut bytes = MARK.to_vec();
    for field in [token.as_bytes(), client.as_bytes(), cwd.as_bytes(), &[u8::from(zsh)]] {
        put(&mut bytes, field)?;
    }
    put(&mut bytes, payload)?;
    stream.write_all(&bytes)?;
    Ok(Told { text: field(&mut stream, MAX_BYTES)?, notes: field(&mut stream, MAX_NOTES)? })
}

/// Reads a question.
pub fn read(stream: &mut impl Read) -> io::Result<Question> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not a hook's question");
    let mut mark = [0; MARK.len()];
    stream.read_exact(&mut mark)?;
    if mark != *MARK {
        return Err(wrong());
    }
    let mut text = || String::from_utf8(field(stream, MAX_FIELD)?).map_err(|_no_text| wrong());
    let (token, client, cwd) = (text()?, text()?, text()?);
    let zsh = field(stream, 1)? == [1];
    Ok(Question { token, client, cwd, zsh, payload: field(stream, MAX_BYTES)? })
}

/// Answers one.
pub fn answer(stream: &mut impl Write, told: &Told) -> io::Result<()> {
    let mut bytes = Vec::new();
    put(&mut bytes, &told.text)?;
    put(&mut bytes, told.notes.get(..MAX_NOTES as usize).unwrap_or(&told.notes))?;
    stream.write_all(&bytes)
}

fn put(bytes: &mut Vec<u8>, field: &[u8]) -> io::Result<()> {
    let length = u32::try_from(field.len()).ok().filter(|length| *length <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::other("it is longer than 16 MiB"))?;
    bytes.extend(length.to_be_bytes());
    bytes.extend(field);
    Ok(())
}

fn field(stream: &mut impl Read, most: u32) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a field is longer than it may be"));
    }
    let mut bytes = Vec::new();
    stream.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_as_it_was_asked_and_nothing_longer_is_read() {
        let mut bytes = MARK.to_vec();
        for field in [b"t".as_slice(), b"c", b"/w", &[1]] {
            put(&mut bytes, field).unwrap();
        }
        put(&mut bytes, b"{}").unwrap();
        let question = read(&mut bytes.as_slice()).unwrap();
        assert_eq!((question.token.as_str(), question.cwd.as_str(), question.zsh), ("t", "/w", true));
        assert_eq!(question.payload, b"{}");
        for cut in 0..bytes.len() {
            assert!(read(&mut bytes.get(..cut).unwrap()).is_err(), "{cut}");
        }
        let mut long = MARK.to_vec();
        long.extend((MAX_FIELD + 1).to_be_bytes());
        assert_eq!(read(&mut long.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(put(&mut Vec::new(), &vec![0; MAX_BYTES as usize + 1]).is_err());
        assert!(ask("nowhere", "c", "/", false, b"").is_err());
    }
}
