//! A program that speaks TLS: its first message is read, then it is passed on, or its TLS ends here.
//!
//! Owns the agreement of what was asked for and the server that TLS names. Refuses to pass on what names another server, hides
//! its name, or is no TLS. Invariant: before the first message is agreed with, no byte of it has gone out.

use std::pin::Pin;
use std::task::{Context as Task, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{Connection, HEAD_TIME, alert, requests, tunnel};
use crate::context::Allowed;
use crate::refusal::Refusal;
use crate::tls::hello::{self, ClientHello};

/// Reads a client's first message; what was read stays in `first`.
pub async fn first_message(stream: &mut TcpStream, first: &mut Vec<u8>) -> Result<ClientHello, Refusal> {
    let read = async {
        loop {
            if let Some(hello) = hello::read(first)? {
                return Ok(hello);
            }
            if stream.read_buf(first).await.map_err(|_error| Refusal::Broken)? == 0 {
                return Err(if first.is_empty() { Refusal::Broken } else { Refusal::NotTls("it ends early") });
            }
        }
    };
    timeout(HEAD_TIME, read).await.map_err(|_elapsed| Refusal::Timeout)?
}

/// Whether the server that TLS names is the one that was asked for. An address has no name in TLS.
pub fn agree(allowed: &Allowed, hello: &ClientHello) -> Result<(), Refusal> {
    match &hello.server {
        Some(server) if *server == allowed.host => Ok(()),
        Some(server) => Err(Refusal::Mismatch { asked: allowed.host.to_string(), sent: server.to_string() }),
        None if allowed.host.address().is_some() => Ok(()),
        None => Err(Refusal::NoServerName),
    }
}

/// Serves a program that was told to begin TLS with an allowed host. `up` is the connection to the host, where it was opened.
pub async fn serve(
    connection: &Connection,
    mut down: TcpStream,
    mut first: Vec<u8>,
    allowed: Allowed,
    up: Option<TcpStream>,
) -> Result<(), Refusal> {
    let hello = match first_message(&mut down, &mut first).await {
        Ok(hello) => agree(&allowed, &hello).map(|()| hello),
        Err(refusal) => Err(refusal),
    };
    let refused = match hello {
        Ok(_) if connection.context.rules.is_terminated(&allowed.host) => {
            return terminate(connection, down, first, allowed).await;
        }
        Ok(hello) if !hello.encrypted => {
            let entry = connection.entry();
            let mut up = match up {
                Some(up) => up,
                None => match connection.context.dial(&allowed, &entry).await {
                    Ok(up) => up,
                    Err(refusal) => {
                        alert(connection, &mut down, &refusal).await;
                        return Err(refusal);
                    }
                },
            };
            return tunnel::relay(&mut down, &first, &mut up, &allowed, &entry, None).await;
        }
        Ok(_) => Refusal::EncryptedHello,
        Err(refusal) => refusal,
    };
    alert(connection, &mut down, &refused).await;
    Err(refused)
}

/// Answers TLS in the host's place.
async fn terminate(connection: &Connection, down: TcpStream, first: Vec<u8>, allowed: Allowed) -> Result<(), Refusal> {
    connection.entry().note(|record| record.terminated = true);
    let authority = connection.context.authority.as_ref();
    let failed = |error: &dyn std::fmt::Display| Refusal::Handshake(error.to_string());
    let authority = authority.ok_or_else(|| failed(&"there is no authority"))?;
    let config = authority.server(&allowed.host).map_err(|error| failed(&error))?;
    let accept = TlsAcceptor::from(config).accept(Rewound { first, at: 0, stream: down });
    let stream = timeout(HEAD_TIME, accept).await.map_err(|_elapsed| Refusal::Timeout)?;
    let stream = stream.map_err(|error| failed(&error))?;
    let door = requests::Door { secure: true, port: allowed.port, host: None, fixed: Some(allowed) };
    requests::serve(connection, Box::new(stream), Vec::new(), &door).await
}

/// A connection whose first bytes were read already.
struct Rewound {
    first: Vec<u8>,
    at: usize,
    stream: TcpStream,
}

impl AsyncRead for Rewound {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Task<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let rest = self.first.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(task, into);
        }
        let piece = rest.get(..rest.len().min(into.remaining())).unwrap_or_default();
        into.put_slice(piece);
        self.at += piece.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
