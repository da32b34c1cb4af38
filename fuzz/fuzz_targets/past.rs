//! Past calls are read out of any bytes, by every client that has some: no panic, and no call without an id, a tool and an absolute folder.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use writ_clients::CLIENTS;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("writ-fuzz-past-{}.jsonl", std::process::id()));
    fs::write(&path, bytes).expect("a temporary file");
    for past in CLIENTS.iter().filter_map(|client| client.past()) {
        past.is_one(&path);
        let told = past.calls(&path, &mut |call| {
            assert!(call.call.cwd.starts_with('/'), "{call:?}");
        });
        told.expect("a plain file is read");
    }
});
