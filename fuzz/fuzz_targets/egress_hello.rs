//! A TLS client's first message: a name that is found is one name, and stays the same however the message is cut into records.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_egress::fuzz::{authority, client_hello};

/// The message behind its records' heads, in records of another size.
fn cut(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let (mut rest, mut content) = (bytes, Vec::new());
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([*rest.get(3)?, *rest.get(4)?]));
        content.extend_from_slice(rest.get(5..5 + length)?);
        rest = &rest[5 + length..];
    }
    // What follows the message in its last record is another message, and not the client's to send yet.
    let length = content.get(1..4)?.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    content.truncate(4 + length);
    let records = content.chunks(size).map(|one| [&[22, 3, 1], &(one.len() as u16).to_be_bytes()[..], one].concat());
    Some(records.collect::<Vec<_>>().concat())
}

fuzz_target!(|bytes: &[u8]| {
    // Bytes alone, and as the content of one record: what is mutated is then the message, not its head.
    let wrapped = bytes.get(..bytes.len().min(16_000)).unwrap_or_default();
    let wrapped = [&[22, 3, 1], &(wrapped.len() as u16).to_be_bytes()[..], wrapped].concat();
    for bytes in [bytes, &wrapped] {
        let Some((name, hidden)) = client_hello(bytes) else { continue };
        if let Some(name) = &name {
            assert_eq!(authority(name.as_bytes()).map(|(name, _)| name).as_ref(), Some(name));
        }
        for size in [1, 3, 1000] {
            if let Some(again) = cut(bytes, size).filter(|again| again.len() < 30_000) {
                assert_eq!(client_hello(&again), Some((name.clone(), hidden)));
            }
        }
    }
});
