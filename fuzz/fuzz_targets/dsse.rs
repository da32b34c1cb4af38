//! An envelope that parses is written back to one that says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_evidence::dsse::Envelope;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(envelope) = Envelope::parse(bytes) {
        let again = Envelope::parse(&envelope.to_bytes()).expect("what Writ writes parses");
        assert_eq!((again.payload_type(), again.payload()), (envelope.payload_type(), envelope.payload()));
    }
});
