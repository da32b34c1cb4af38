//! RateLimit limits: so many requests a second for each token or peer, with one second's worth at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Instant;

use super::tokens::TokenIndex;

/// Most buckets that are kept apart.
const MAX_BUCKETS: usize = 1 << 16;
const SECOND: u64 = 1_000_000_000;

/// Whose requests are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Client {
    /// Evaluations of one token.
    Token(TokenIndex),
    /// Evaluations of one address, and those refused.
    Evaluating(u128),
    /// Everything else of one address.
    Reading(u128),
    /// Everybody else, when there is no more room to tell them apart.
    Overflow,
}

/// An address as it is counted: an IPv6 network of 64 bits is one peer.
pub fn peer(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(four) => u128::from(four.to_bits()),
        IpAddr::V6(six) => six.to_bits() >> 64 << 64,
    }
}

/// The limiter. A bucket is the moment at which it will be empty again, in nanoseconds since the start.
#[derive(Debug)]
pub struct RateLimit {
    /// Nanoseconds between two requests.
    apart: u64,
    start: Instant,
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    full: HashMap<Client, u64>,
    /// When those that are empty again were last thrown away.
    swept: u64,
}

impl RateLimit {
    /// At most so many requests a second.
    pub fn new(per_second: NonZeroU32) -> Self {
        let apart = SECOND / u64::from(per_second.get());
        Self { apart, start: Instant::now(), buckets: Mutex::default() }
    }

    /// Counts one request. `Err` holds the seconds to wait.
    pub fn take(&self, client: Client) -> Result<(), u64> {
        self.take_at(client, u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn take_at(&self, client: Client, now: u64) -> Result<(), u64> {
        // A thread that panicked while it held the lock left whole numbers behind.
        let mut buckets = self.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if buckets.full.len() >= MAX_BUCKETS && now.saturating_sub(buckets.swept) >= SECOND {
            buckets.full.retain(|_, full| *full > now);
            buckets.swept = now;
        }
        let room = buckets.full.len() < MAX_BUCKETS || buckets.full.contains_key(&client);
        let full = buckets.full.entry(if room { client } else { Client::Overflow }).or_insert(0);
        let next = (*full).max(now).saturating_add(self.apart);
        let ahead = next.saturating_sub(now);
        if ahead > SECOND {
            return Err((ahead - SECOND).div_ceil(SECOND).max(1));
        }
        *full = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holds_what_was_allowed() {
        let rate = RateLimit::new(NonZeroU32::new(10).unwrap());
        let one = Client::Evaluating(1);
        assert!((0..10).all(|_| rate.take_at(one, 5).is_ok()));
        assert_eq!(rate.take_at(one, 5), Err(1));
        assert!(rate.take_at(Client::Evaluating(2), 5).is_ok(), "another peer");
        assert!(rate.take_at(one, 5 + SECOND / 10).is_ok());
        assert_eq!(rate.take_at(one, 5 + SECOND / 10), Err(1));
        assert!((0..10).all(|_| rate.take_at(one, 5 * SECOND).is_ok()));
    }

    #[test]
    fn peers_without_end_share_a_bucket() {
        let rate = RateLimit::new(NonZeroU32::new(1).unwrap());
        for peer in 0..(MAX_BUCKETS as u128) {
            assert!(rate.take_at(Client::Reading(peer), 5).is_ok());
        }
        assert!(rate.take_at(Client::Reading(u128::MAX), 5).is_ok());
        assert!(rate.take_at(Client::Reading(u128::MAX - 1), 5).is_err());
        assert!(rate.take_at(Client::Reading(u128::MAX - 1), 3 * SECOND).is_ok());
    }
}
