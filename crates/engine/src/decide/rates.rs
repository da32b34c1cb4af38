//! How often tools are called, where a policy says how often they may be.
//!
//! Owns one bucket for each rate: full at the start, a call takes one, and time fills it again. Decides nothing: an empty bucket is a fact that
//! the policy's own rules judge. Invariant: buckets stand in the state of the last row, so that they are what the ledger counted. Page:
//! `spec/agentfile.md`, "A session under an Agentfile".

use writ_core::Timestamp;
use writ_policy::{Policy, Rate};

use crate::session::state::{Bucket, State};

/// A call's rate, and whose it is.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Which of the policies that speak.
    at: usize,
    key: String,
    rate: Rate,
}

/// The rates that a call of a tool with these names counts for; each policy with what its rules are named with.
pub fn of<'a>(policies: impl IntoIterator<Item = (Option<&'a str>, &'a Policy)>, names: [&str; 2]) -> Vec<Counted> {
    let counted = |(at, (layer, policy)): (usize, (Option<&'a str>, &'a Policy))| {
        let rates = policy.rates().into_iter().filter(|rate| rate.counts(names));
        let layer = layer.map_or_else(String::new, |layer| format!("{layer}:"));
        let counted = rates.map(|rate| Counted { at, key: format!("{layer}{}/{}", rate.name, rate.seconds), rate });
        counted.collect::<Vec<_>>()
    };
    policies.into_iter().enumerate().flat_map(counted).collect()
}

/// Which tools were called as often as one of the policies lets them be.
pub fn exceeded(rates: &[Counted], policy: usize, state: &State, now: Timestamp) -> Vec<String> {
    let own = rates.iter().filter(|rate| rate.at == policy && rate.is_exceeded(state, now));
    own.map(|rate| rate.rate.name.clone()).collect()
}

impl Counted {
    /// How many thousandths of a call are left.
    fn left(&self, state: &State, now: Timestamp) -> u64 {
        let full = self.rate.count.saturating_mul(1000);
        let Some(bucket) = state.rates.get(&self.key) else { return full };
        // A clock that goes back fills nothing.
        let passed = u64::try_from(now.millis().saturating_sub(bucket.at.millis())).unwrap_or(0);
        let filled = u128::from(passed) * u128::from(self.rate.count) / u128::from(self.rate.seconds.max(1));
        let filled = u64::try_from(filled).unwrap_or(u64::MAX);
        bucket.left.saturating_add(filled).min(full)
    }

    fn is_exceeded(&self, state: &State, now: Timestamp) -> bool {
        self.left(state, now) < 1000
    }

    /// Counts a call.
    pub fn spend(&self, state: &mut State, now: Timestamp) {
        let left = self.left(state, now).saturating_sub(1000);
        state.rates.insert(self.key.clone(), Bucket { left, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let rate = Rate { name: "shell".to_owned(), tools: Vec::new(), count: 2, seconds: 60 };
        let counted = Counted { at: 0, key: "shell/60".to_owned(), rate };
        let mut state = State::fresh(None);
        let at = |millis| Timestamp::from_millis(millis);
        for _ in 0..2 {
            assert!(!counted.is_exceeded(&state, at(0)));
            counted.spend(&mut state, at(0));
        }
        assert!(counted.is_exceeded(&state, at(29_999)));
        assert!(!counted.is_exceeded(&state, at(30_000)));
        counted.spend(&mut state, at(30_000));
        assert!(counted.is_exceeded(&state, at(30_000)) && !counted.is_exceeded(&state, at(600_000)));
        assert!(counted.is_exceeded(&state, at(0)));
    }
}
