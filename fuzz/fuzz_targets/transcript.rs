//! Any bytes are a transcript for every client, and what is read of it is never more than there is.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use writ_clients::CLIENTS;

fuzz_target!(|bytes: &[u8]| {
    let file = std::env::temp_dir().join(format!("writ-fuzz-transcript-{}", std::process::id()));
    fs::write(&file, bytes).expect("written");
    let length = bytes.len() as u64;
    for transcripts in CLIENTS.into_iter().filter_map(|client| client.transcripts()) {
        let told = transcripts.read(&file, 0, &mut |_| {}).expect("it is there");
        let used = transcripts.usage(&file, 0, &mut |_| {}).expect("it is there");
        let lines = transcripts.lines(&file, 0, &mut |_| {}).expect("it is there");
        assert!([told, used, lines].iter().all(|reach| reach.end <= length));
        drop(transcripts.work(&file));
        drop(transcripts.model(&file, Some("a")));
    }
});
