//! Certificates and bundles that strangers wrote: nothing panics, and nobody is a signer by chance.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use writ_core::{Timestamp, json};
use writ_evidence::signer::keyless::{self, TrustedRoot};
use writ_evidence::signer::x509::{Chain, Root};

static TRUSTED: LazyLock<TrustedRoot> = LazyLock::new(|| {
    let bytes = include_bytes!("../../crates/evidence/tests/sigstore/trusted_root.json");
    TrustedRoot::parse(bytes).expect("it is one")
});

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let root = Root::from_pem(&text);
    if let Ok(chain) = Chain::from_pem([bytes]) {
        let roots: Vec<Root> = root.into_iter().collect();
        assert!(chain.verify(&roots, b"m", b"s", Timestamp::from_millis(1_700_000_000_000)).is_err());
    }
    if let Ok(value) = json::parse(bytes) {
        assert!(keyless::verify(&TRUSTED, &json::canonical(&value), b"nobody signed these bytes").is_err());
        drop(TrustedRoot::parse(bytes));
    }
});
