//! A client's first TLS message: which server it names, before anything is answered.
//!
//! Owns the way from records to that name; the message itself is read by rustls. Refuses what is not TLS and what is
//! malformed; a name that is hidden (ECH) it reports. Invariant: the bytes that were read here are the bytes that are passed on.

use std::io;

use rustls::server::Acceptor;

use crate::host::HostName;
use crate::refusal::Refusal;

/// Longest first message with its records' heads.
pub const LONGEST: usize = 32 << 10;
/// A record's head: type, version, length.
const HEAD: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// Longest record (RFC 8446, 5.2).
const RECORD: usize = (1 << 14) + 256;
/// Encrypted Client Hello (RFC 9849), and its drafts' ESNI.
const ECH: [u16; 2] = [0xfe0d, 0xffce];

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The server it names, if any: an address has no name.
    pub server: Option<HostName>,
    /// Whether it names another one in secret (or pretends to).
    pub encrypted: bool,
}

/// Reads the first message; `None` while it is not whole.
pub fn read(bytes: &[u8]) -> Result<Option<ClientHello>, Refusal> {
    let Some(message) = message(bytes)? else { return Ok(None) };
    let encrypted = extensions(&message).ok_or(Refusal::NotTls("its first message is malformed"))?;
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let read = acceptor.read_tls(&mut rest as &mut dyn io::Read);
        read.map_err(|_error| Refusal::NotTls("its first message is malformed"))?;
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let server = hello.server_name().map(|name| HostName::read(name.as_bytes())).transpose()?;
                if server.as_ref().is_some_and(|server| server.address().is_some()) {
                    return Err(Refusal::Name("a TLS server name is no address"));
                }
                return Ok(Some(ClientHello { server, encrypted }));
            }
            Err(_error) => return Err(Refusal::NotTls("its first message is malformed")),
        }
    }
    Ok(None)
}

/// The handshake message, out of one record or several; `None` while it is not whole.
fn message(bytes: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if rest.first().is_some_and(|kind| *kind != HANDSHAKE) {
            return Err(Refusal::NotTls("it begins otherwise"));
        }
        if rest.get(1).is_some_and(|major| *major != 3) || rest.get(2).is_some_and(|minor| *minor > 4) {
            return Err(Refusal::NotTls("its version is unknown"));
        }
        let Some((head, after)) = rest.split_at_checked(HEAD) else { return wait(bytes) };
        let length = head.get(3..).map_or(0, number);
        if length == 0 || length > RECORD {
            return Err(Refusal::NotTls("a record has no possible length"));
        }
        let Some((record, after)) = after.split_at_checked(length) else {
            message.extend_from_slice(after);
            begins(&message)?;
            return wait(bytes);
        };
        message.extend_from_slice(record);
        begins(&message)?;
        if let Some(length) = message.get(1..4).map(number)
            && message.len() >= length + 4
        {
            message.truncate(length + 4);
            return Ok(Some(message));
        }
        rest = after;
    }
}

fn wait(bytes: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    if bytes.len() >= LONGEST { Err(Refusal::NotTls("its first message is too long")) } else { Ok(None) }
}

fn begins(message: &[u8]) -> Result<(), Refusal> {
    match message.first() {
        Some(&CLIENT_HELLO) | None => Ok(()),
        Some(_) => Err(Refusal::NotTls("its first message is not a client's")),
    }
}

/// Whether the message hides a name; `None` when it is malformed.
fn extensions(message: &[u8]) -> Option<bool> {
    // Type and length, version, random; session, ciphers and compression each behind their length.
    let rest = message.get(4 + 2 + 32..)?;
    let (_session, rest) = counted(rest, 1)?;
    let (_ciphers, rest) = counted(rest, 2)?;
    let (_compression, rest) = counted(rest, 1)?;
    if rest.is_empty() {
        return Some(false);
    }
    let (mut list, rest) = counted(rest, 2)?;
    let mut encrypted = false;
    while !list.is_empty() {
        let (kind, after) = list.split_at_checked(2)?;
        encrypted |= ECH.iter().any(|ech| usize::from(*ech) == number(kind));
        (_, list) = counted(after, 2)?;
    }
    rest.is_empty().then_some(encrypted)
}

/// What stands behind a length of `width` bytes, and the rest.
fn counted(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(width)?;
    rest.split_at_checked(number(length))
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), name.to_owned().try_into().unwrap()).unwrap();
        let mut out = Vec::new();
        client.write_tls(&mut out).unwrap();
        out
    }

    /// The message in records of `size`.
    fn split(bytes: &[u8], size: usize) -> Vec<u8> {
        let records = bytes[HEAD..].chunks(size);
        records.flat_map(|record| [&[22, 3, 1], &(record.len() as u16).to_be_bytes()[..], record].concat()).collect()
    }

    /// The message with one more extension.
    fn with_extension(bytes: &[u8], kind: u16, value: &[u8]) -> Vec<u8> {
        let mut message = bytes[HEAD..].to_vec();
        let at = {
            let rest = &message[38..];
            let (_, rest) = counted(rest, 1).unwrap();
            let (_, rest) = counted(rest, 2).unwrap();
            let (_, rest) = counted(rest, 1).unwrap();
            message.len() - rest.len()
        };
        message.extend(kind.to_be_bytes());
        message.extend((value.len() as u16).to_be_bytes());
        message.extend(value);
        let list = (message.len() - at - 2) as u16;
        message[at..at + 2].copy_from_slice(&list.to_be_bytes());
        let whole = (message.len() - 4) as u32;
        message[1..4].copy_from_slice(&whole.to_be_bytes()[1..]);
        [&[22, 3, 1], &(message.len() as u16).to_be_bytes()[..], &message].concat()
    }

    #[test]
    fn names_are_read_however_the_message_is_split() {
        let whole = hello("API.example.com");
        for bytes in [whole.clone(), split(&whole, 1), split(&whole, 7), split(&whole, 100)] {
            let read = read(&bytes).unwrap().unwrap();
            assert_eq!((read.server.unwrap().as_str(), read.encrypted), ("api.example.com", false));
            for end in 0..bytes.len() {
                assert_eq!(super::read(&bytes[..end]), Ok(None), "{end}");
            }
        }
    }

    #[test]
    fn hidden_names_are_seen() {
        let whole = hello("example.com");
        assert!(
            read(&with_extension(&whole, 0xfe0d, b"\0\0\x01\0\x01\x05\0\x01e\0\x02pp")).unwrap().unwrap().encrypted
        );
        assert!(!read(&with_extension(&whole, 0x3a3a, b"")).unwrap().unwrap().encrypted);
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(read(&hello("127.0.0.1")).unwrap().unwrap().server, None);
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x\r\n",
            b"\x16\x05\x01",
            b"\x16\x03\x01\0\0",
            b"\x16\x03\x01\xff\xff",
            b"\x16\x03\x01\0\x01\x02",
            b"\x80\x2e\x01\x03",
        ] {
            assert!(matches!(read(bytes), Err(Refusal::NotTls(_))), "{bytes:?}");
        }
        let whole = hello("example.com");
        // The lengths of the session, and of the whole.
        for at in [43, 8] {
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            assert_ne!(
                read(&broken).map(|hello| hello.and_then(|hello| hello.server)),
                Ok(HostName::read(b"example.com").ok()),
                "{at}"
            );
        }
        let twice = with_extension(&whole, 0, b"\0\x0e\0\0\x0bevil.example");
        assert!(read(&twice).is_err());
        let long = [&[22, 3, 1, 64, 0, 1, 0, 255, 255][..], &vec![0; LONGEST]].concat();
        assert!(read(&long).is_err());
    }
}
