//! Any bytes are a hook payload or an error for every client, and a payload always names its event.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_clients::CLIENTS;

fuzz_target!(|bytes: &[u8]| {
    for client in CLIENTS {
        drop(client.hints(bytes));
        if let Ok(input) = client.parse(bytes) {
            assert!(!input.kind.name().is_empty());
        }
    }
});
