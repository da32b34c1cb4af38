//! Any bytes are a hook payload or an error, and a payload always names its event.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_clients::claude_code::{hints, parse};

fuzz_target!(|bytes: &[u8]| {
    drop(hints(bytes));
    if let Ok(input) = parse(bytes) {
        assert!(!input.kind.name().is_empty());
    }
});
