//! Statements and bundles that parse are written back to ones that say the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{self, Value};
use writ_evidence::dsse::Envelope;
use writ_evidence::intoto::{self, Bundle, Statement};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(statement) = intoto::parse::<Value>(bytes) {
        let written = json::to_canonical(&statement);
        let again: Statement<Value> = intoto::parse(written.as_bytes()).expect("what Writ writes parses");
        assert_eq!(json::to_canonical(&again), written);
    }
    if let Ok(bundle) = Bundle::parse(bytes) {
        let again = Bundle::parse(&bundle.to_bytes()).expect("what Writ writes parses");
        assert_eq!(again.to_bytes(), bundle.to_bytes());
    }
    if let Ok(envelope) = Envelope::parse(bytes) {
        let kind = envelope.statement_type();
        let whole = envelope.unchecked_statement::<Value>();
        assert_eq!(kind.is_ok(), whole.is_ok());
    }
});
