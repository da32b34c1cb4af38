//! Keys and signatures that cross over to OpenSSL and back, for both algorithms.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use writ_evidence::dsse::{Envelope, pae};
use writ_evidence::keys::{Algorithm, PublicKey, SigningKey};

const ALGORITHMS: [(Algorithm, &[&str]); 2] = [
    (Algorithm::Ed25519, &["-algorithm", "ed25519"]),
    (Algorithm::P256, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
];

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new("openssl").current_dir(folder).args(args).output().unwrap()
}

fn openssl(folder: &Path, args: &[&str]) {
    let out = run(folder, args);
    assert!(out.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// The arguments that make or check a signature over `message` in `signature`: Ed25519 signs the bytes, ECDSA their hash.
fn signing<'a>(algorithm: Algorithm, verb: &'a str, key: &'a str) -> Vec<&'a str> {
    let mut args = vec!["pkeyutl", verb, "-inkey", key, "-rawin", "-in", "message"];
    match algorithm {
        Algorithm::Ed25519 => {}
        Algorithm::P256 => args.extend(["-digest", "sha256"]),
    }
    if verb == "-verify" {
        args.extend(["-pubin", "-sigfile", "signature"]);
    } else {
        args.extend(["-out", "signature"]);
    }
    args
}

#[test]
fn what_openssl_makes_is_read_and_what_it_signs_verifies() {
    for (algorithm, options) in ALGORITHMS {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        openssl(folder.path(), &[&["genpkey", "-out", "key.pem"], options].concat());
        openssl(folder.path(), &["pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"]);
        let key = SigningKey::from_pem(&fs::read_to_string(at("key.pem")).unwrap()).unwrap();
        let public = PublicKey::from_pem(&fs::read_to_string(at("key.pub")).unwrap()).unwrap();
        assert_eq!((key.public(), public.algorithm()), (&public, algorithm));
        assert_eq!(public.to_pem(), fs::read_to_string(at("key.pub")).unwrap());

        fs::write(at("message"), pae("text/plain", b"hello")).unwrap();
        openssl(folder.path(), &signing(algorithm, "-sign", "key.pem"));
        let signature = fs::read(at("signature")).unwrap();
        assert!(public.verify(&pae("text/plain", b"hello"), &signature).is_ok());
        assert!(public.verify(&pae("text/plain", b"hellO"), &signature).is_err());

        openssl(folder.path(), &["pkey", "-in", "key.pem", "-pubout", "-outform", "DER", "-out", "key.der"]);
        openssl(folder.path(), &["dgst", "-sha256", "-r", "-out", "digest", "key.der"]);
        let digest = fs::read_to_string(at("digest")).unwrap();
        assert_eq!(public.key_id().to_string(), format!("sha256:{}", digest.split(' ').next().unwrap()));
    }
}

#[test]
fn openssl_reads_our_keys_and_verifies_our_envelopes() {
    for (algorithm, _) in ALGORITHMS {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let key = SigningKey::generate(algorithm).unwrap();
        fs::write(at("key.pem"), key.to_pem()).unwrap();
        fs::write(at("key.pub"), key.public().to_pem()).unwrap();
        openssl(folder.path(), &["pkey", "-in", "key.pem", "-check", "-noout"]);
        openssl(folder.path(), &["pkey", "-in", "key.pem", "-pubout", "-out", "derived.pub"]);
        assert_eq!(fs::read(at("derived.pub")).unwrap(), fs::read(at("key.pub")).unwrap());

        // The envelope's own JSON, read by a parser that is not ours.
        let envelope = Envelope::sign("text/plain", b"hello", &[&key]).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&envelope.to_bytes()).unwrap();
        fs::write(at("signature.b64"), json["signatures"][0]["sig"].as_str().unwrap()).unwrap();
        openssl(folder.path(), &["base64", "-d", "-A", "-in", "signature.b64", "-out", "signature"]);
        fs::write(at("message"), b"DSSEv1 10 text/plain 5 hello").unwrap();
        openssl(folder.path(), &signing(algorithm, "-verify", "key.pub"));
        fs::write(at("message"), b"DSSEv1 10 text/plain 5 hellO").unwrap();
        assert!(!run(folder.path(), &signing(algorithm, "-verify", "key.pub")).status.success());
    }
}

/// The forms of private key that are not taken say how to make the one that is.
#[test]
fn other_private_keys_are_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    openssl(folder.path(), &["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sec1.pem"]);
    openssl(
        folder.path(),
        &["genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:secret", "-out", "locked.pem"],
    );
    for name in ["sec1.pem", "locked.pem"] {
        let error = SigningKey::from_pem(&read(name)).unwrap_err().to_string();
        assert!(error.contains("openssl pkcs8 -topk8 -nocrypt"), "{error}");
    }
    openssl(folder.path(), &["pkcs8", "-topk8", "-nocrypt", "-in", "sec1.pem", "-out", "converted.pem"]);
    assert!(SigningKey::from_pem(&read("converted.pem")).is_ok());
    for (name, options) in [
        ("rsa.pem", &["-algorithm", "RSA"][..]),
        ("p384.pem", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    ] {
        openssl(folder.path(), &[&["genpkey", "-out", name], options].concat());
        assert!(SigningKey::from_pem(&read(name)).is_err(), "{name}");
    }
}
