//! What a sandbox reaches by network: answered by the egress proxy, each connection a row.
//!
//! Owns the way from the proxy's records to the ledger. Invariant: a connection whose row cannot be written is not opened.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use writ_egress::{
    Authority, Direct, Record, SecretValue, ServeError, Serving, Setup, SinkError, Stage, SystemResolver,
};
use writ_sandbox::{Listeners, Network};

use super::order::Order;
use super::record::Recorder;
use crate::session::SessionError;

/// The event of the row of a connection.
pub const CONNECTION: &str = "connection";

/// The traffic of one run.
#[derive(Debug)]
pub struct Traffic {
    recorder: Recorder,
    seen: Mutex<Seen>,
}

/// What was seen of it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Connections that were let through.
    pub allowed: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Why, in words for the agent.
    pub words: Vec<String>,
}

impl Traffic {
    /// Of a run that begins.
    pub fn of(recorder: Recorder) -> Self {
        Self { recorder, seen: Mutex::default() }
    }

    /// What was seen until now.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self, record: &Record) -> Result<(), SessionError> {
        if record.stage == Stage::Opened {
            return Ok(());
        }
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match &record.refusal {
                Some(refusal) => {
                    seen.refused += 1;
                    seen.words.push(refusal.text.clone());
                }
                None => seen.allowed += 1,
            }
        }
        self.recorder.record(CONNECTION, Connected { connection: record, standing: "enforced" })?;
        Ok(())
    }
}

/// What the proxy has of its own: the values of the secrets, and who vouches for hosts.
pub type Held = (Vec<SecretValue>, Option<Arc<Authority>>);

/// Answers on a sandbox's sockets as its order says; `None` where it has none.
pub fn serve(
    order: &Order,
    listeners: Listeners,
    (secrets, authority): Held,
    traffic: &Arc<Traffic>,
) -> Result<Option<Serving>, ServeError> {
    let Network::Proxied(ports) = &order.confinement.network else { return Ok(None) };
    let traffic = Arc::clone(traffic);
    let setup = Setup {
        rules: order.egress.clone(),
        secrets,
        authority,
        resolver: Arc::new(SystemResolver),
        extra_authorities: Vec::new(),
        sink: Box::new(move |record: Record| traffic.take(&record).map_err(|error| SinkError(error.to_string()))),
    };
    let direct = listeners.direct.into_iter().zip(&ports.direct);
    let direct = direct.map(|(listener, port)| Direct { port: *port, listener }).collect();
    writ_egress::serve(writ_egress::Listeners { proxy: listeners.http, direct, dns: listeners.dns }, setup).map(Some)
}

/// What the row of a connection says.
#[derive(Serialize)]
struct Connected<'a> {
    connection: &'a Record,
    standing: &'static str,
}
