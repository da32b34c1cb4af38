//! The protocol on lines: one message a line, in both directions.
//!
//! A thread reads and a thread writes, so that nothing here waits inside the runtime. Invariant: a line that is no message is
//! answered by the reading thread itself, and reading goes on.

use std::io::{self, BufRead, Read, Write};
use std::thread::{self, JoinHandle};

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::MAX_MESSAGE;
use super::incoming::{Incoming, parse, too_long};

/// How many messages may wait in either direction.
const WAITING: usize = 64;

/// The transport.
pub struct LineTransport {
    incoming: Receiver<ClientJsonRpcMessage>,
    outgoing: Option<Sender<String>>,
}

impl LineTransport {
    /// Starts both threads. The second of the two ends when everything that waited is written.
    pub fn start(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (received, incoming) = mpsc::channel(WAITING);
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let answers = outgoing.clone();
        thread::Builder::new().name("reader".to_owned()).spawn(move || read(input, &received, &answers))?;
        let writer = thread::Builder::new().name("writer".to_owned()).spawn(move || write(output, waiting))?;
        Ok((Self { incoming, outgoing: Some(outgoing) }, writer))
    }
}

impl Transport<RoleServer> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            let line = serde_json::to_string(&item)?;
            outgoing.ok_or_else(gone)?.send(line).await.map_err(|_closed| gone())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing = None;
        self.incoming.close();
        Ok(())
    }
}

fn read(mut input: impl BufRead, received: &Sender<ClientJsonRpcMessage>, answers: &Sender<String>) {
    let (mut line, mut open) = (Vec::new(), false);
    loop {
        let answered = match next(&mut input, &mut line) {
            Ok(Next::End) | Err(_) => return,
            Ok(Next::TooLong) => answers.blocking_send(too_long()).is_ok(),
            Ok(Next::Line) => match parse(&line) {
                Incoming::Nothing => true,
                Incoming::Wrong(answer) => answers.blocking_send(answer).is_ok(),
                Incoming::Message(message) => {
                    open |= opens(&message);
                    !wanted(&message, open) || received.blocking_send(*message).is_ok()
                }
            },
        };
        if !answered {
            return;
        }
    }
}

/// Whether a session is open from this message on.
fn opens(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let known = |version: ProtocolVersion| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(known)
        }
    }
}

/// The library ends a session whose first message is no request; and nothing is ever asked of the client that it could answer.
fn wanted(message: &ClientJsonRpcMessage, open: bool) -> bool {
    match message {
        ClientJsonRpcMessage::Request(_) => true,
        ClientJsonRpcMessage::Notification(_) => open,
        ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => false,
    }
}

fn write(mut output: impl Write, mut waiting: Receiver<String>) {
    while let Some(mut line) = waiting.blocking_recv() {
        line.push('\n');
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// What comes next.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// A line.
    Line,
    /// A line that was too long; it has been passed over.
    TooLong,
    /// Nothing.
    End,
}

pub(super) fn next(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Next> {
    line.clear();
    let most = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX).saturating_add(1);
    if input.by_ref().take(most).read_until(b'\n', line)? == 0 {
        return Ok(Next::End);
    }
    if line.len() <= MAX_MESSAGE || line.ends_with(b"\n") {
        return Ok(Next::Line);
    }
    line.clear();
    line.shrink_to(1 << 16);
    loop {
        let waiting = input.fill_buf()?;
        let end = waiting.iter().position(|byte| *byte == b'\n');
        let passed = end.map_or(waiting.len(), |end| end + 1);
        if passed == 0 || end.is_some() {
            input.consume(passed);
            return Ok(Next::TooLong);
        }
        input.consume(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut bytes = vec![b'x'; MAX_MESSAGE + 100_000];
        bytes.extend_from_slice(b"\nnext\nlast");
        let (mut input, mut line) = (bytes.as_slice(), Vec::new());
        assert_eq!(next(&mut input, &mut line).unwrap(), Next::TooLong);
        for expected in [b"next\n".as_slice(), b"last"] {
            assert_eq!(next(&mut input, &mut line).unwrap(), Next::Line);
            assert_eq!(line, expected);
        }
        assert_eq!(next(&mut input, &mut line).unwrap(), Next::End);
    }
}
