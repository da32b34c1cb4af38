//! A document that reads as an attestation reads the same from its canonical form, and says of itself only what stands in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{self, Limits, Object, Value};
use writ_evidence::attestation::{Attestation, split_uri};
use writ_verifier::Instance;

fuzz_target!(|input: (&[u8], bool)| {
    let (bytes, complete) = input;
    let parsed = if complete { Attestation::from_value(completed(bytes)) } else { Attestation::parse(bytes) };
    let Ok(attestation) = parsed else { return };
    let canonical = attestation.canonical();
    // The order of members is lost, and nothing else.
    let again = Attestation::parse(canonical.as_bytes()).unwrap();
    assert_eq!(
        (again.canonical(), again.payload(), again.id()),
        (canonical.clone(), attestation.payload(), attestation.id())
    );
    assert_eq!((again.timestamp(), again.expires_at()), (attestation.timestamp(), attestation.expires_at()));
    assert_eq!(split_uri(attestation.uri()), Some((attestation.instance(), attestation.id())));
    assert!(canonical.len() > attestation.payload().len());
    assert!(attestation.is_signed_by(&[7; 32]).is_err());
    if let Ok(instance) = Instance::parse(attestation.instance()) {
        assert_eq!(Instance::parse(instance.as_str()).as_ref(), Ok(&instance));
    }
});

/// The members that fuzzing finds hardly by itself: an id that fits the content, a signature's form.
fn completed(bytes: &[u8]) -> Value {
    let Ok(Value::Object(members)) = json::parse_with(bytes, Limits::SIGNED) else { return Value::Null };
    let mut out: Object = members.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let mut default = |name: &str, value: Value| {
        if out.get(name).is_none() {
            out.push(name, value);
        }
    };
    default("input", Value::Object(Object::new()));
    default("output", Value::Object(Object::new()));
    default("evaluator", Value::from("e"));
    default("timestamp", Value::from("2026-05-01T14:30:00Z"));
    default("key_id", Value::from("k-1"));
    default("signature", Value::from("A".repeat(86)));
    let named = ["evaluator", "input", "key_id", "output", "timestamp"];
    let content: Object = named.iter().filter_map(|name| Some(((*name).to_owned(), out.get(name)?.clone()))).collect();
    let mut id = writ_core::Digest::of(json::canonical(&Value::Object(content)).as_bytes()).hex();
    id.truncate(32);
    let uri = format!("https://writ.example/.well-known/attestations/{id}.json");
    if out.get("attestation_uri").is_none() {
        out.push("attestation_uri", Value::from(uri));
    }
    Value::Object(out)
}
