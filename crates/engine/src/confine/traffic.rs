//! What a sandbox reaches by network: answered by the egress proxy, each connection a row.
//!
//! Owns the way from the proxy's records to the ledger. Invariant: a connection whose row cannot be written is not opened.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use writ_egress::{
    Authority, Direct, Record, Road, SecretValue, ServeError, Serving, Setup, SinkError, Stage, SystemResolver, Whose,
};
use writ_sandbox::{Asked, Listeners, Network};

use super::order::Order;
use super::record::Recorder;
use crate::session::SessionError;

/// The event of the row of a connection.
pub const CONNECTION: &str = "connection";

/// The traffic of one run, or of the runs that share a network.
#[derive(Debug)]
pub struct Traffic {
    recorder: Recorder,
    /// What is nobody's in particular: of one run, everything.
    seen: Mutex<Seen>,
    /// Where it led, of one run; whether there was more.
    reached: Mutex<(BTreeSet<Reached>, bool)>,
    /// The calls that share it, by their mounts.
    calls: Mutex<HashMap<u64, (String, Seen)>>,
}

/// Where a connection that was let through led.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// The host, as the policy compares it.
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// The address.
    pub address: Option<IpAddr>,
    /// Whether it is a port of this machine's own loopback.
    pub loopback: bool,
}

/// Most places that are kept of a run.
const REACHED: usize = 1024;

/// What was seen of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Connections that were let through.
    pub allowed: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Why, in words for the agent.
    pub words: Vec<String>,
}

/// Most words for the agent that are kept of a call.
const WORDS: usize = 32;

impl Seen {
    fn take(&mut self, record: &Record) {
        match &record.refusal {
            Some(refusal) => {
                self.refused += 1;
                if self.words.len() < WORDS {
                    self.words.push(refusal.text.clone());
                }
            }
            None => self.allowed += 1,
        }
    }
}

impl Traffic {
    /// Of a run that begins.
    pub fn of(recorder: Recorder) -> Self {
        Self { recorder, seen: Mutex::default(), reached: Mutex::default(), calls: Mutex::default() }
    }

    /// A call begins: what is asked for with these mounts is its own, also by what it leaves running. The number may have been another's,
    /// of whom nothing is left.
    pub fn begin(&self, call: &str, mounts: u64) {
        self.calls().insert(mounts, (call.to_owned(), Seen::default()));
    }

    /// What was seen of a call until now.
    pub fn seen_of(&self, mounts: u64) -> Seen {
        self.calls().get(&mounts).map(|(_, seen)| seen.clone()).unwrap_or_default()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, (String, Seen)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen until now.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where it led until now; whether there was more.
    pub fn reached(&self) -> (BTreeSet<Reached>, bool) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps where a connection led that the rules let through, whatever became of it.
    fn reach(&self, record: &Record) {
        if record.road == Road::Dns || record.refusal.as_ref().is_some_and(|refusal| refusal.decided) {
            return;
        }
        let loopback = record.road == Road::Loopback;
        let Record { host, port, address, .. } = record.clone();
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.1 |= reached.0.len() >= REACHED;
        if reached.0.len() < REACHED {
            reached.0.insert(Reached { host, port, address, loopback });
        }
    }

    fn noted(&self, asker: u64, record: &Record) -> Option<String> {
        let mut calls = self.calls();
        let (call, seen) = calls.get_mut(&asker)?;
        seen.take(record);
        Some(call.clone())
    }

    fn take(&self, record: &Record) -> Result<(), SessionError> {
        if record.stage == Stage::Opened {
            return Ok(());
        }
        let call = match record.asker.and_then(|asker| self.noted(asker, record)) {
            Some(call) => Some(call),
            None => {
                self.reach(record);
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).take(record);
                self.recorder.call.clone()
            }
        };
        let recorder = Recorder { call, ..self.recorder.clone() };
        recorder.record(CONNECTION, Connected { connection: record, standing: "enforced" })?;
        Ok(())
    }
}

/// What the proxy has of its own: the values of the secrets, and who vouches for hosts.
pub type Held = (Vec<SecretValue>, Option<Arc<Authority>>);

/// Answers on a sandbox's sockets as its order says; `None` where it has none. `whose` says whose mounts somebody has who asks.
pub fn serve(
    order: &Order,
    listeners: Listeners,
    (secrets, authority): Held,
    traffic: &Arc<Traffic>,
    whose: Option<Whose>,
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
    let connected = listeners.connected;
    let direct = listeners.direct.into_iter().zip(&ports.direct);
    let direct = direct.map(|(listener, port)| Direct { port: *port, listener }).collect();
    let listeners = writ_egress::Listeners { proxy: listeners.http, direct, dns: listeners.dns };
    let serving = writ_egress::serve_all(listeners, setup, whose)?;
    if let Some(connected) = connected {
        let hand = serving.hand();
        connected.received_by(move |asked| match asked {
            Asked::Proxy(stream) => hand.stream(stream),
            Asked::Direct(stream, to) => hand.direct(stream, to),
            Asked::Names(socket) => hand.names(socket),
            Asked::Elsewhere(address) => hand.elsewhere(Some(address), "was connected to, which stands for no host"),
            Asked::Other(what) => hand.elsewhere(None, what),
        });
    }
    Ok(Some(serving))
}

/// What the row of a connection says.
#[derive(Serialize)]
struct Connected<'a> {
    connection: &'a Record,
    standing: &'static str,
}
