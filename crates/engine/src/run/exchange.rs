//! What a hook inside a run and the supervisor outside say to each other.
//!
//! Owns the question: a mark, then fields. Refuses what has another form. Invariant: a side that is lied to reads no more than the
//! [limits of fields](crate::hook::wire), and waits no longer than its time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::hook::wire::{MAX_BYTES, Told, field, put};

/// The variable that tells a hook where to ask, and with which token.
pub const VARIABLE: &str = "WRIT_RUN";
/// Longest of the other fields.
const MAX_FIELD: u32 = 4096;
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
    Told::read(&mut stream)
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
