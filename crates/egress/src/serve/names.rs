//! Questions for names, in whatever way they come.
//!
//! Owns what is said of a name, and which refusals are on record. Refuses to forward a question. Invariant: each name that is refused is
//! recorded once for each who asks; of very many, the first, and how many more there were.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use crate::context::Context;
use crate::dns::{self, Answer, Packet, Question};
use crate::host::HostName;
use crate::record::{Entry, Road};
use crate::refusal::Refusal;

/// Most names of refused questions that are recorded one by one.
const NAMES: usize = 1024;

/// The refused questions of a run.
#[derive(Debug, Default)]
pub struct Questions(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    names: HashSet<(Option<u64>, Vec<u8>)>,
    more: u64,
}

impl Questions {
    /// Whether a refusal is to be recorded now.
    fn is_new(&self, asked: (Option<u64>, Vec<u8>)) -> bool {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.names.len() >= NAMES && !refused.names.contains(&asked) {
            refused.more += 1;
            return false;
        }
        refused.names.insert(asked)
    }

    /// Records how many more there were than are recorded.
    pub async fn end(&self, context: &Context) {
        let more = std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).more);
        if more > 0 {
            let refusal = Refusal::Name("more names were asked for than are recorded");
            record(context, refusal, None, (more, None)).await;
        }
    }
}

/// Answers what comes to the name server's socket.
pub async fn serve(socket: tokio::net::UdpSocket, context: &Context, questions: &Questions) {
    let mut packet = vec![0; 4096];
    loop {
        let received = tokio::select! {
            () = context.ended.cancelled() => return,
            received = socket.recv_from(&mut packet) => received,
        };
        // An error is about an earlier answer that nobody took.
        let Ok((length, from)) = received else { continue };
        let said = packet.get(..length).unwrap_or_default();
        let asker = async || context.asker(from, false).await;
        if let Some(answer) = answers(context, questions, said, asker).await {
            send(&socket, &answer, from).await;
        }
    }
}

async fn send(socket: &tokio::net::UdpSocket, answer: &[u8], to: SocketAddr) {
    // Who does not get an answer asks again.
    socket.send_to(answer, to).await.ok();
}

/// The packet that answers another, if one does; `asker` says who sent it, where that matters.
pub async fn answers<F: Future<Output = Option<u64>>>(
    context: &Context,
    questions: &Questions,
    packet: &[u8],
    asker: impl FnOnce() -> F,
) -> Option<Vec<u8>> {
    let question = match dns::read(packet) {
        Packet::Ignored => return None,
        Packet::Odd(answer) => return Some(answer),
        Packet::Question(question) => question,
    };
    let (refusal, host) = match known(context, &question) {
        Ok(answer) => return Some(question.answered(answer)),
        Err(refused) => refused,
    };
    let asker = asker().await;
    if questions.is_new((asker, question.name.clone())) {
        record(context, refusal, host, (1, asker)).await;
    }
    Some(question.answered(Answer::NoName))
}

/// What is said of a name.
fn known(context: &Context, question: &Question) -> Result<Answer, (Refusal, Option<String>)> {
    let host = HostName::read(&question.name).map_err(|refusal| (refusal, None))?;
    if host.as_str() == "localhost" {
        return Ok(Answer::Address(std::net::Ipv4Addr::LOCALHOST));
    }
    if host.address().is_some() {
        return Ok(Answer::NoName);
    }
    context.rules.host(&host).map_err(|refusal| (refusal, Some(host.to_string())))?;
    Ok(context.table.address(&host).map_or(Answer::Failed, Answer::Address))
}

async fn record(context: &Context, refusal: Refusal, host: Option<String>, (questions, asker): (u64, Option<u64>)) {
    let entry = Entry::new(context.reporter.next_id(), Road::Dns);
    entry.note(|record| {
        record.host = host;
        record.requests = questions;
        record.asker = asker;
    });
    // A reporter that fails has ended everything already.
    context.reporter.close(entry.last(&Err(refusal))).await.ok();
}
