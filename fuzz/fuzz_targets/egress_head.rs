//! Heads of HTTP messages: what is read has one host, one port, a target without a break, and no lone line ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_egress::fuzz::{authority, request, response};

fuzz_target!(|bytes: &[u8]| {
    if let Some((name, port)) = authority(bytes) {
        assert_eq!(authority(format!("{name}:{port}").as_bytes()), Some((name, port)));
    }
    for bytes in [bytes.to_vec(), [b"GET / HTTP/1.1\r\nHost: x.com\r\n", bytes].concat()] {
        if let Some((method, host, port, target)) = request(&bytes) {
            assert!(bytes.ends_with(b"\r\n\r\n") && bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count() == 1);
            let feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(feeds, bytes.windows(2).filter(|two| *two == b"\r\n").count());
            assert!(!bytes.contains(&0) && !method.is_empty() && target.iter().all(u8::is_ascii_graphic));
            assert_eq!(authority(format!("{host}:{port}").as_bytes()), Some((host, port)));
        }
    }
    if let Some(status) = response(bytes) {
        assert!(bytes.ends_with(b"\r\n\r\n") && (100..1000).contains(&status));
    }
});
