//! A container engine's answer is read whole or not at all, and says nothing of another container than the one asked about.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// The file itself: the crate around it brings a sandbox and a store.
#[path = "../../crates/engine/src/identity/answer.rs"]
mod answer;

fuzz_target!(|bytes: &[u8]| {
    let body = answer::body(bytes);
    assert!(body.is_none_or(|body| bytes.ends_with(body)));
    let id = "3f9a1c02".repeat(8);
    for body in [Some(bytes), body].into_iter().flatten() {
        if let Some(told) = answer::made(body, &id) {
            assert!(told.image.is_none_or(|name| name.len() <= 512 && name.chars().all(|c| c.is_ascii_graphic())));
            assert!(answer::made(body, "other").is_none());
        }
    }
});
