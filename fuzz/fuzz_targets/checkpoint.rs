//! A note that reads says the same under every look.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_evidence::checkpoint::Checkpoint;

fuzz_target!(|note: &str| {
    if let Ok(checkpoint) = Checkpoint::read(note) {
        assert!(note.contains(&checkpoint.origin));
        assert_eq!(Checkpoint::read(note).ok(), Some(checkpoint));
    }
});
