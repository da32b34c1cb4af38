//! Rate limits: so many requests a second for each token or peer, with one second's worth at once.
//!
//! `governor` counts. What stays here is who is counted, and a bound on how many are told apart: `tower_governor` keeps a bucket for
//! everybody who ever came, takes its key before the token is known, and answers in its own form.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::clock::{Clock, DefaultClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::tokens::TokenIndex;

/// Most buckets that are kept apart.
const MAX_BUCKETS: usize = 1 << 16;

/// Whose requests are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Client {
    /// Evaluations of one token.
    Token(TokenIndex),
    /// Evaluations of one address, and those refused.
    Evaluating(u128),
    /// Everything else of one address.
    Reading(u128),
    /// All addresses, when there is no more room to tell them apart.
    Overflow,
}

/// An address as it is counted: an IPv6 network of 64 bits is one peer.
pub fn peer(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(four) => u128::from(four.to_bits()),
        IpAddr::V6(six) => six.to_bits() >> 64 << 64,
    }
}

/// The limiter.
pub struct RateLimit<C: Clock = DefaultClock> {
    limiter: RateLimiter<Client, HashMapStateStore<Client>, C, NoOpMiddleware<C::Instant>>,
    start: C::Instant,
    /// The second since the start in which full buckets were last thrown away.
    pruned: AtomicU64,
}

impl RateLimit {
    /// At most so many requests a second.
    pub fn new(per_second: NonZeroU32) -> Self {
        Self::with_clock(per_second, DefaultClock::default())
    }
}

impl<C: Clock> RateLimit<C> {
    fn with_clock(per_second: NonZeroU32, clock: C) -> Self {
        let start = clock.now();
        let limiter = RateLimiter::hashmap_with_clock(Quota::per_second(per_second), clock);
        Self { limiter, start, pruned: AtomicU64::new(0) }
    }

    /// Counts one request. `Err` holds the seconds to wait.
    pub fn take(&self, client: Client) -> Result<(), u64> {
        let client = match client {
            // There are as many as the file has lines.
            Client::Token(_) => client,
            Client::Evaluating(_) | Client::Reading(_) | Client::Overflow if self.has_room() => client,
            Client::Evaluating(_) | Client::Reading(_) | Client::Overflow => Client::Overflow,
        };
        self.limiter.check_key(&client).map_err(|refused| {
            let wait = refused.wait_time_from(self.limiter.clock().now());
            wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
        })
    }

    fn has_room(&self) -> bool {
        if self.limiter.len() < MAX_BUCKETS {
            return true;
        }
        let second = self.limiter.clock().now().duration_since(self.start).as_u64() / 1_000_000_000;
        // Looking at every bucket takes long: once a second is enough.
        if self.pruned.swap(second, Ordering::Relaxed) == second {
            return false;
        }
        self.limiter.retain_recent();
        self.limiter.len() < MAX_BUCKETS
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn limit(per_second: u32) -> (RateLimit<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (RateLimit::with_clock(NonZeroU32::new(per_second).unwrap(), clock.clone()), clock)
    }

    #[test]
    fn a_second_holds_what_was_allowed() {
        let (limit, clock) = limit(10);
        let one = Client::Evaluating(1);
        assert!((0..10).all(|_| limit.take(one).is_ok()));
        assert_eq!(limit.take(one), Err(1));
        assert!(limit.take(Client::Evaluating(2)).is_ok(), "another peer");
        clock.advance(Duration::from_millis(100));
        assert!(limit.take(one).is_ok());
        assert_eq!(limit.take(one), Err(1));
        clock.advance(Duration::from_secs(5));
        assert!((0..10).all(|_| limit.take(one).is_ok()));
    }

    #[test]
    fn peers_without_end_share_a_bucket() {
        let (limit, clock) = limit(1);
        assert!((0..MAX_BUCKETS as u128).all(|peer| limit.take(Client::Reading(peer)).is_ok()));
        assert!(limit.take(Client::Reading(u128::MAX)).is_ok());
        assert!(limit.take(Client::Reading(u128::MAX - 1)).is_err());
        assert!(limit.take(Client::Token(0)).is_ok(), "a token is never one of the crowd");
        clock.advance(Duration::from_secs(3));
        assert!(limit.take(Client::Reading(u128::MAX - 1)).is_ok());
        assert!(limit.limiter.len() < 10, "the others are forgotten");
    }
}
