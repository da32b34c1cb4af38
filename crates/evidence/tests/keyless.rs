//! Bundles that cosign and sigstore-python made with the public instance and its staging one, and what each change makes of them.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::Path;

use writ_core::json;
use writ_evidence::intoto::Bundle;
use writ_evidence::signer::keyless::{Identity, KeylessError, TrustedRoot, verify};

fn file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sigstore").join(name)).unwrap()
}

fn root(name: &str) -> TrustedRoot {
    TrustedRoot::parse(&file(name)).unwrap()
}

fn text(name: &str) -> String {
    json::canonical(&json::parse(&file(name)).unwrap())
}

#[test]
fn bundles_of_the_public_instances_hold_offline() {
    let blob = verify(&root("trusted_root.json"), &text("blob.sigstore.json"), &file("blob.txt")).unwrap();
    assert!(!blob.subject.is_empty() && blob.issuer.starts_with("https://") && blob.log_index > 0, "{blob:?}");
    let staging = root("staging_trusted_root.json");
    let v2 = verify(&staging, &text("staging-rekor-v2.txt.sigstore.json"), &file("staging-rekor-v2.txt"));
    let Identity { subject, issuer, .. } = v2.unwrap();
    assert!(!subject.is_empty() && issuer.starts_with("https://"), "{subject} {issuer}");
}

#[test]
fn what_is_written_again_still_holds() {
    for (trusted, bundle, bytes) in [
        ("trusted_root.json", "blob.sigstore.json", "blob.txt"),
        ("staging_trusted_root.json", "staging-rekor-v2.txt.sigstore.json", "staging-rekor-v2.txt"),
    ] {
        let written = Bundle::parse(&file(bundle)).unwrap().to_bytes();
        verify(&root(trusted), &json::canonical(&json::parse(&written).unwrap()), &file(bytes)).unwrap();
    }
    // An old bundle with a chain is written as v0.3.
    let old = Bundle::parse(&file("dsse.sigstore.json")).unwrap().to_bytes();
    assert!(String::from_utf8(old).unwrap().contains("bundle.v0.3+json"));
}

#[test]
fn each_failure_has_its_reason() {
    let (trusted, blob, good) = (root("trusted_root.json"), file("blob.txt"), text("blob.sigstore.json"));
    let said = |text: &str, bytes: &[u8]| verify(&trusted, text, bytes).unwrap_err();
    let other = verify(&root("staging_trusted_root.json"), &good, &blob).unwrap_err();
    let unknown = matches!(other, KeylessError::Time(_) | KeylessError::Log(_) | KeylessError::UnknownAuthority(_));
    assert!(unknown, "{other}");
    assert!(matches!(said(&good, b"other bytes"), KeylessError::Signature(_)));
    assert_eq!(said(&text("dsse.sigstore.json"), &blob), KeylessError::NotOverBytes);
    let member = |name: &str| {
        let from = good.find(&format!("\"{name}\":\"")).unwrap() + name.len() + 4;
        let length = good.get(from..).unwrap().find('"').unwrap();
        good.get(from..from + length).unwrap().to_owned()
    };
    // One bit of each member that is signed, proven or compared.
    for name in ["rootHash", "canonicalizedBody", "signedEntryTimestamp", "signature", "rawBytes", "keyId"] {
        let old = member(name);
        let middle = old.len() / 2;
        let sign = if old.as_bytes()[middle] == b'A' { "B" } else { "A" };
        let bent = format!("{}{sign}{}", old.get(..middle).unwrap(), old.get(middle + 1..).unwrap());
        let bad = good.replace(&old, &bent);
        assert!(bad != good && verify(&trusted, &bad, &blob).is_err(), "{name}");
    }
    let time = member("integratedTime");
    let later = good.replace(&time, &(time.parse::<u64>().unwrap() + 1).to_string());
    assert!(verify(&trusted, &later, &blob).is_err());
    let index = member("logIndex");
    assert!(verify(&trusted, &good.replacen(&index, "1", 1), &blob).is_err());
    let entries = good.find("\"tlogEntries\":").unwrap();
    let none = format!("{}\"tlogEntries\":[]}}}}", good.get(..entries).unwrap());
    assert!(verify(&trusted, &none, &blob).is_err());
}

#[test]
fn a_root_names_its_authorities() {
    let good = text("trusted_root.json");
    for (from, to) in
        [("\"tlogs\"", "\"logs\""), ("\"ctlogs\"", "\"none\""), ("\"certificateAuthorities\"", "\"none\"")]
    {
        let bad = good.replacen(from, to, 1);
        assert!(matches!(TrustedRoot::parse(bad.as_bytes()), Err(KeylessError::Root(_))), "{from}");
    }
    for bad in ["", "{}", "[]", "{\"tlogs\":1}", &good.replacen("\"tlogs\"", "\"ctlogs\"", 1)] {
        assert!(matches!(TrustedRoot::parse(bad.as_bytes()), Err(KeylessError::Root(_))));
    }
    assert!(matches!(TrustedRoot::parse(&vec![b' '; 2 << 20]), Err(KeylessError::Root(_))));
}

/// Every byte of a bundle, changed: it does not panic, does not hold, or says the same of the signer.
#[test]
fn a_changed_byte_never_yields_another_signer() {
    let (trusted, blob, good) = (root("trusted_root.json"), file("blob.txt"), text("blob.sigstore.json"));
    let who = verify(&trusted, &good, &blob).unwrap();
    let mut held = Vec::new();
    for at in 0..good.len() {
        let mut bent = good.clone().into_bytes();
        bent[at] ^= 1;
        let Ok(bent) = String::from_utf8(bent) else { continue };
        if let Ok(found) = verify(&trusted, &bent, &blob) {
            assert_eq!((found.subject, found.issuer), (who.subject.clone(), who.issuer.clone()), "{at}");
            held.push(at);
        }
    }
    // Names of members that may be missing (the digest's hint, one of two times), a timestamp's unsigned digest algorithm, the name
    // beside a checkpoint's signature: what else holds, holds without them.
    assert!(
        held.len() <= 107,
        "{} bytes: {}",
        held.len(),
        held.iter().map(|&at| char::from(good.as_bytes()[at])).collect::<String>()
    );
}
