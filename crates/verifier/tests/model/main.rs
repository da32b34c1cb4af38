//! Random lives of instances, attackers, clocks, disks and networks: the verifier always answers as the reference does, and neither an
//! instance nor a verifier's cache ever holds what §5.2 and §5.5 forbid.
//!
//! `WRIT_MODEL_STEPS` is how many steps to take (100,000 when not set), `WRIT_MODEL_SEED` where to begin; both are printed.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a step that fails fails the test")]

mod dice;
mod fakes;
mod pool;
mod reference;
mod world;

use std::env;
use std::time::Instant;

use pool::Pool;
use world::{Tally, World};

/// Steps of one life. Short lives meet an empty cache often, long ones meet an old one.
const LIFE: u64 = 500;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn the_verifier_does_as_the_protocol_says() {
    let steps = number("WRIT_MODEL_STEPS").unwrap_or(100_000);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let seed = number("WRIT_MODEL_SEED").unwrap_or(now.as_nanos() as u64 >> 8);
    println!("WRIT_MODEL_STEPS={steps} WRIT_MODEL_SEED={seed}");
    let (start, pool, mut tally) = (Instant::now(), Pool::new(), Tally::default());
    let mut taken = 0;
    for life in 0.. {
        if taken >= steps {
            break;
        }
        let mut world = World::new(&pool, seed.wrapping_add(life));
        for _ in 0..LIFE.min(steps - taken) {
            world.step(&mut tally);
        }
        taken += LIFE;
    }
    println!("{steps} steps in {:?}\n{tally:#?}", start.elapsed());
    // A model that never gets anywhere agrees with everything.
    if steps >= 100_000 {
        for code in [
            "ok",
            "state",
            "signature_invalid",
            "key_not_found",
            "key_compromised",
            "key_pending",
            "instance_not_trusted",
            "cross_check_mismatch",
            "network_error",
            "registry_rollback",
            "attestation_absent",
            "invalid_attestation",
            "expired",
            "nonce_reused",
            "deed",
            "illegal deed",
            "forced",
        ] {
            assert!(tally.0.get(code).is_some_and(|count| *count > 50), "`{code}` hardly occurs: {tally:?}");
        }
    }
}
