//! DNS packets: an answer says the question again and is no longer than it has to be, and no answer is answered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_egress::fuzz::dns;

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes.to_vec(), [&[1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], bytes].concat()] {
        let Some((name, answer)) = dns(&bytes) else { continue };
        assert!(name.len() <= 255 + 63 && answer.len() <= bytes.len());
        assert_eq!((answer[..2].to_vec(), answer[2] & 0x80, answer[3] & 15), (bytes[..2].to_vec(), 0x80, 3));
        assert!(bytes[12..].starts_with(&answer[12..]));
        assert_eq!(dns(&answer), None);
    }
});
