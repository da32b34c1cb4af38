//! Attestations as they are made, against attestations as they are read.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use proptest::prelude::*;
use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::{Attestation, Draft, FailureCode};
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, Registry};

const INSTANCE: &str = "https://writ.example";

struct Issuer {
    key: SigningKey,
    registry: Registry,
}

impl Issuer {
    fn new() -> Self {
        let key = SigningKey::generate(Algorithm::Ed25519).unwrap();
        let public = key.public().raw().try_into().unwrap();
        let now = Timestamp::from_millis(0);
        let registry = Registry::empty("writ", now).changed(&Change::Publish { public }, now).unwrap();
        Self { key, registry: registry.changed(&Change::Activate { id: "writ-1".to_owned() }, now).unwrap() }
    }

    fn issue(&self, draft: &Draft) -> String {
        let pending = draft.pend("writ-1", INSTANCE);
        let signature = self.key.sign(pending.payload().as_bytes()).unwrap();
        pending.signed(&signature.try_into().unwrap())
    }
}

fn draft(input: &Value, output: &Value) -> Draft {
    Draft::new(input, output, "writ:consequence:1", "2026-05-01T14:30:00.000000001Z".to_owned())
}

fn object(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
}

#[test]
fn what_is_made_is_read() {
    let issuer = Issuer::new();
    let mut draft = draft(&object("source", Value::from("shell")), &object("version", Value::from("1")));
    let bare = Attestation::parse(issuer.issue(&draft).as_bytes()).unwrap();
    draft.nonce = Some(7);
    draft.expires_at = Some(Timestamp::from_millis(1_000));
    draft.chain_id = Some("c".to_owned());
    draft.parent = Some(bare.digest());
    let text = issuer.issue(&draft);
    let full = Attestation::parse(text.as_bytes()).unwrap();
    assert_eq!(full.canonical(), text);
    assert_eq!(Digest::of(text.as_bytes()), full.digest());
    // The id rests on five members alone.
    assert_eq!(full.id(), bare.id());
    assert_eq!(full.instance(), INSTANCE);
    assert_eq!((full.nonce(), full.expires_at()), (Some("00000000000000000000000000000007"), draft.expires_at));
    for attestation in [bare, full] {
        issuer.registry.check(&attestation).unwrap();
    }
}

#[test]
fn a_key_counts_by_its_state() {
    let issuer = Issuer::new();
    let attestation =
        Attestation::parse(issuer.issue(&draft(&object("a", Value::Null), &object("b", Value::Null))).as_bytes());
    let attestation = attestation.unwrap();
    let (id, now) = ("writ-1".to_owned(), Timestamp::from_millis(1));
    let deprecated = issuer.registry.changed(&Change::Deprecate { id: id.clone() }, now).unwrap();
    let retired = deprecated.changed(&Change::Retire { id: id.clone() }, now).unwrap();
    let compromised = retired.changed(&Change::Compromise { id }, now).unwrap();
    for good in [&issuer.registry, &deprecated, &retired] {
        assert!(good.check(&attestation).is_ok());
    }
    let code = |registry: &Registry| registry.check(&attestation).unwrap_err().code;
    assert_eq!(code(&compromised), FailureCode::KeyCompromised);
    assert_eq!(code(&Registry::empty("writ", now)), FailureCode::KeyNotFound);
    let public = issuer.key.public().raw().try_into().unwrap();
    let pending = Registry::empty("writ", now).changed(&Change::Publish { public }, now).unwrap();
    assert_eq!(code(&pending), FailureCode::KeyPending);
    assert_eq!(code(&Issuer::new().registry), FailureCode::SignatureInvalid);
}

/// Any change of one byte is found, as a wrong form or as a wrong signature.
#[test]
fn no_byte_can_be_changed() {
    let issuer = Issuer::new();
    let text = issuer.issue(&draft(&object("input", Value::from("rm -rf /data")), &object("tier", Value::from(4u64))));
    for at in 0..text.len() {
        let mut bent = text.clone().into_bytes();
        bent[at] ^= 1;
        let bent = Attestation::parse(&bent).and_then(|bent| issuer.registry.check(&bent));
        assert!(bent.is_err(), "byte {at}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Number),
        "\\PC*".prop_map(Value::String),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Object>())),
        ]
    })
}

proptest! {
    /// The spliced payload is the canonical form, whatever is in it.
    #[test]
    fn the_payload_is_canonical(input in values(), output in values(), evaluator in ".+", chain in ".+", nonce in any::<u128>()) {
        let issuer = Issuer::new();
        let mut draft = draft(&object("x", input), &object("y", output));
        draft.evaluator = evaluator;
        draft.chain_id = Some(chain);
        draft.nonce = Some(nonce);
        let text = issuer.issue(&draft);
        let value = json::parse_with(text.as_bytes(), Limits::SIGNED).unwrap();
        prop_assert_eq!(json::canonical(&value), text.clone());
        let read = Attestation::parse(text.as_bytes()).unwrap();
        prop_assert!(issuer.registry.check(&read).is_ok());
    }
}
