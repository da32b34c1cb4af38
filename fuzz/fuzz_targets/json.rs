//! What parses has one canonical form, and that form parses back to it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{Limits, canonical, compact, parse_with, pretty, rounded};

fuzz_target!(|bytes: &[u8]| {
    rounded(bytes);
    for limits in [Limits::OURS, Limits::FOREIGN] {
        let Ok(value) = parse_with(bytes, limits) else { continue };
        let once = canonical(&value);
        let again = parse_with(once.as_bytes(), limits).expect("canonical form parses");
        assert_eq!(canonical(&again), once);
        // Its numbers are doubles as they are written.
        assert_eq!(rounded(once.as_bytes()), Vec::<String>::new());
        assert_eq!(parse_with(compact(&value).as_bytes(), limits).as_ref(), Ok(&value));
        assert_eq!(parse_with(pretty(&value).as_bytes(), limits).as_ref(), Ok(&value));
    }
});
