//! How often and how much, counted while a run lasts.
//!
//! Owns the counters of each [`Limit`]. Refuses what goes over, before it is passed on. Invariant: all hosts that one limit
//! matches share its counters, so that a host of many names gains nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::host::{HostName, any};
use crate::refusal::Refusal;
use crate::rules::Limit;

/// The counters of all limits.
#[derive(Debug)]
pub struct Limits(Vec<Arc<Counted>>);

#[derive(Debug)]
struct Counted {
    limit: Limit,
    rate: Option<DefaultDirectRateLimiter>,
    up: AtomicU64,
    down: AtomicU64,
}

/// The counters that a host's bytes go to.
#[derive(Clone, Debug)]
pub struct Meter {
    host: HostName,
    counted: Vec<Arc<Counted>>,
}

impl Limits {
    /// Fresh counters.
    pub fn new(limits: &[Limit]) -> Self {
        let counted = limits.iter().map(|limit| {
            let rate = limit.per_minute.map(|count| RateLimiter::direct(Quota::per_minute(count)));
            Arc::new(Counted { limit: limit.clone(), rate, up: AtomicU64::new(0), down: AtomicU64::new(0) })
        });
        Self(counted.collect())
    }

    /// The counters of a host.
    pub fn of(&self, host: &HostName) -> Meter {
        let counted = self.0.iter().filter(|counted| any(&counted.limit.hosts, host)).cloned().collect();
        Meter { host: host.clone(), counted }
    }
}

impl Meter {
    /// Counts a request, or a connection whose requests cannot be seen.
    pub fn ask(&self) -> Result<(), Refusal> {
        self.bytes(0, 0)?;
        let over = |counted: &&Arc<Counted>| counted.rate.as_ref().is_some_and(|rate| rate.check().is_err());
        match self.counted.iter().find(over) {
            None => Ok(()),
            Some(counted) => Err(Refusal::Rate { host: self.host.to_string(), rule: counted.limit.pointer.clone() }),
        }
    }

    /// Counts bytes that are about to be passed on.
    pub fn bytes(&self, up: u64, down: u64) -> Result<(), Refusal> {
        let over = |counter: &AtomicU64, more: u64, ceiling: Option<u64>| {
            counter.fetch_add(more, Ordering::Relaxed).saturating_add(more) > ceiling.unwrap_or(u64::MAX)
        };
        for counted in &self.counted {
            let limit = &counted.limit;
            if over(&counted.up, up, limit.bytes_up) | over(&counted.down, down, limit.bytes_down) {
                return Err(Refusal::Bytes { host: self.host.to_string(), rule: limit.pointer.clone() });
            }
        }
        Ok(())
    }
}
