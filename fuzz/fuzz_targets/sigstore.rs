//! What a Sigstore instance answers, and the token and configuration that it is asked with: nothing panics, no answer to another request
//! is taken, no refusal of a token quotes it, and of bundles that were changed none holds for another statement.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use writ_core::{Timestamp, json};
use writ_evidence::intoto::{Bundle, Content};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::signer::keyless::{self, TrustedRoot};
use writ_evidence::sigstore::log::{Signed, Version};
use writ_evidence::sigstore::timestamp::Request;
use writ_evidence::sigstore::{IdentityToken, Services, certificate};

static TRUSTED: LazyLock<TrustedRoot> = LazyLock::new(|| {
    let bytes = include_bytes!("../../crates/evidence/tests/sigstore/trusted_root.json");
    TrustedRoot::parse(bytes).expect("it is one")
});
static SIGNED: LazyLock<Option<Vec<u8>>> =
    LazyLock::new(|| message(include_bytes!("../../crates/evidence/tests/sigstore/dsse.sigstore.json")));
static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate(Algorithm::P256).expect("it is made"));
static ASKED: LazyLock<Request> = LazyLock::new(|| Request::of(b"a signature").expect("it is made"));

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match IdentityToken::read(&text, Timestamp::from_millis(1_800_000_000_000)) {
        Ok(token) => assert!(token.text() == text.trim() && !token.subject().is_empty()),
        Err(error) => assert!(text.len() < 80 || !error.to_string().contains(text.trim())),
    }
    if let Ok(services) = Services::configured(bytes) {
        assert!(services.rekor.version == Version::V1 || services.tsa.is_some());
    }
    assert!(certificate::read(bytes, KEY.public()).is_err());
    drop(certificate::named(bytes));
    assert!(ASKED.is_answered_by(bytes).is_err());
    let signed = Signed { payload_type: "t", payload: b"{}", signature: b"of nobody", certificate: b"of nobody" };
    for version in [Version::V1, Version::V2] {
        assert!(signed.read(version, bytes).is_err());
    }
    if let Ok(value) = json::parse(bytes)
        && keyless::verify_statement(&TRUSTED, &json::canonical(&value)).is_ok()
    {
        assert_eq!(message(bytes), *SIGNED);
    }
});

/// What a bundle's envelope signs.
fn message(bundle: &[u8]) -> Option<Vec<u8>> {
    let Content::Envelope(envelope) = Bundle::parse(bundle).ok()?.content else { return None };
    Some(envelope.message())
}
