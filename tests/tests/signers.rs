//! Who may sign a policy: the holder of a certificate, an identity that Sigstore vouches for; and what others' libraries say of it.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "not everything is used here")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use workplace::{SESSION, Workplace};

const IDENTITY: &str = "release@example.org";
const ISSUER: &str = "https://issuer.example.org";
const LEAF: &str = "basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n";
const CA: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n";
/// Sigstore's own library and that of in-toto, as they are released.
const PACKAGES: [&str; 2] = ["sigstore==4.5.1", "securesystemslib==1.6.0"];

fn repository(place: &Workplace) -> PathBuf {
    place.folder.join("repository")
}

fn said(place: &Workplace, args: &[&str]) -> (Option<i32>, String) {
    let output = place.writ(args);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn done(place: &Workplace, args: &[&str]) -> String {
    let (code, text) = said(place, args);
    assert_eq!(code, Some(0), "{args:?}: {text}");
    text
}

/// What `policy check` calls the word of the signed policy.
fn word(place: &Workplace) -> String {
    let (_, text) = said(place, &["policy", "check", ".aflock.signed", "--format", "json"]);
    let word = text.split("\"signed\": \"").nth(1).and_then(|rest| rest.split('"').next());
    word.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Writes the policy with these functionaries.
fn policy(place: &Workplace, functionaries: &str) {
    let text = format!(r#"{{"version":"1.0","name":"signed","files":{{"deny":["secret"]}}{functionaries}}}"#);
    fs::write(repository(place).join(".aflock"), text).unwrap();
}

fn openssl(place: &Workplace, args: &[&str]) {
    let out = Command::new("openssl").current_dir(repository(place)).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A key `NAME.key` and a certificate `NAME.pem` for it, by `by` or by itself.
fn certificate(place: &Workplace, name: &str, subject: &str, extensions: &str, by: Option<&str>) {
    let file = |kind: &str| format!("{name}.{kind}");
    fs::write(repository(place).join(file("ext")), extensions).unwrap();
    openssl(place, &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &file("key")]);
    openssl(place, &["req", "-new", "-key", &file("key"), "-subj", subject, "-out", &file("csr")]);
    let signer = by.map(|by| (format!("{by}.pem"), format!("{by}.key")));
    let (key, rest) = (file("key"), ["x509", "-req", "-in", &file("csr"), "-days", "10", "-extfile", &file("ext")]);
    let by = match &signer {
        Some((certificate, key)) => vec!["-CA", certificate, "-CAkey", key, "-CAcreateserial"],
        None => vec!["-signkey", &key],
    };
    openssl(place, &[&rest[..], &by, &["-out", &file("pem")]].concat());
}

/// A place with a root, an authority below it, and two signers with their chains.
fn office(name: &str) -> Workplace {
    let place = Workplace::new(name);
    certificate(&place, "root", "/O=Example/CN=Root", CA, None);
    certificate(&place, "middle", "/O=Example/CN=Middle", CA, Some("root"));
    for (name, subject) in [("one", "/O=Example/OU=ops/CN=one"), ("two", "/O=Example/OU=ops/CN=two")] {
        certificate(&place, name, subject, LEAF, Some("middle"));
        let pem = |name: &str| fs::read_to_string(repository(&place).join(format!("{name}.pem"))).unwrap();
        fs::write(repository(&place).join(format!("{name}.chain")), pem(name) + &pem("middle")).unwrap();
    }
    policy(&place, "");
    place
}

fn sign(place: &Workplace, name: &str) {
    let (key, chain) = (format!("{name}.key"), format!("{name}.chain"));
    done(place, &["policy", "sign", ".aflock", "--key", &key, "--cert", &chain]);
}

#[test]
fn a_certificate_under_a_trusted_root_signs() {
    let place = office("x509");
    sign(&place, "one");
    assert_eq!(word(&place), "unknown-key");
    let (code, why) = said(&place, &["policy", "verify", ".aflock.signed"]);
    assert!(code == Some(3) && why.contains("chains to no certificate authority you trust"), "{why}");
    let told = done(&place, &["keys", "trust", "--ca", "root.pem"]);
    assert!(told.contains("everybody"), "{told}");
    assert_eq!(word(&place), "trusted");
    let verified = done(&place, &["policy", "verify", ".aflock.signed"]);
    assert!(verified.contains("`CN=one,OU=ops,O=Example` (certificate of `CN=Middle,O=Example`)"), "{verified}");
    assert!(done(&place, &["keys", "trusted"]).contains("CN=Root,O=Example, about everybody"));
    // Only the names that were said.
    done(&place, &["keys", "trust", "--ca", "root.pem", "--name", "CN=two,OU=ops,O=Example"]);
    assert_eq!(word(&place), "unknown-key");
    sign(&place, "two");
    assert_eq!(word(&place), "trusted");
    // What is signed is these bytes.
    let file = repository(&place).join(".aflock.signed");
    let good = fs::read_to_string(&file).unwrap();
    let payload = good.split("\"payload\": \"").nth(1).unwrap().split('"').next().unwrap();
    let other = payload.replacen("c2VjcmV0", "c2VjcmV1", 1);
    assert_ne!(other, payload);
    fs::write(&file, good.replace(payload, &other)).unwrap();
    let (code, why) = said(&place, &["policy", "check", ".aflock.signed"]);
    assert!(code == Some(3) && why.contains("tampered"), "{why}");
    fs::write(&file, good).unwrap();
    let id = done(&place, &["keys", "trusted"])
        .split_whitespace()
        .find(|word| word.starts_with("sha256:"))
        .unwrap()
        .to_owned();
    done(&place, &["keys", "distrust", &id]);
    assert_eq!(word(&place), "unknown-key");
    // A key that is not the certificate's.
    let (code, why) = said(&place, &["policy", "sign", ".aflock", "--key", "one.key", "--cert", "two.chain"]);
    assert!(code == Some(4) && why.contains("not for that key"), "{why}");
    let (code, why) = said(&place, &["keys", "trust", "--ca", "one.pem"]);
    assert!(code == Some(4) && why.contains("no certificate authority"), "{why}");
}

#[test]
fn functionaries_of_a_certificate_are_whole_names() {
    let place = office("x509-names");
    done(&place, &["keys", "trust", "--ca", "root.pem"]);
    let (one, middle) = ("CN=one,OU=ops,O=Example", "CN=Middle,O=Example");
    for (issuer, subject, expected) in [
        (middle, one, "trusted"),
        (middle, "CN=one", "no-functionary"),
        (middle, "CN=one,OU=ops,O=Example,C=NL", "no-functionary"),
        (middle, "O=Example,OU=ops,CN=one", "no-functionary"),
        (middle, "CN=two,OU=ops,O=Example", "no-functionary"),
        ("CN=Root,O=Example", one, "no-functionary"),
        ("CN=Middle", one, "no-functionary"),
        (middle, "no name at all", "no-functionary"),
    ] {
        policy(&place, &format!(r#","functionaries":[{{"type":"x509","issuer":"{issuer}","subject":"{subject}"}}]"#));
        sign(&place, "one");
        assert_eq!(word(&place), expected, "{issuer} {subject}");
        let (code, why) = said(&place, &["policy", "verify", ".aflock.signed"]);
        let trusted = expected == "trusted";
        assert_eq!(
            (code, why.contains("none of the functionaries")),
            (Some(if trusted { 0 } else { 3 }), !trusted),
            "{why}"
        );
    }
    // One of several is enough; a key of the same person is not.
    let either = format!(
        r#","functionaries":[{{"type":"keyless","issuer":"i","subject":"s"}},{{"type":"x509","issuer":"{middle}","subject":"{one}"}}]"#
    );
    policy(&place, &either);
    sign(&place, "one");
    assert_eq!(word(&place), "trusted");
    openssl(&place, &["pkey", "-in", "one.key", "-pubout", "-out", "one.pub"]);
    done(&place, &["keys", "trust", "one.pub"]);
    done(&place, &["policy", "sign", ".aflock", "--key", "one.key"]);
    assert_eq!(word(&place), "no-functionary");
}

#[test]
fn sublayouts_are_signed_by_their_functionaries() {
    let place = office("x509-sublayout");
    done(&place, &["keys", "trust", "--ca", "root.pem"]);
    done(&place, &["keys", "require-signed", "on"]);
    fs::write(repository(&place).join("child"), r#"{"version":"1.0","name":"child"}"#).unwrap();
    let child = |by: &str| {
        let (key, chain) = (format!("{by}.key"), format!("{by}.chain"));
        done(&place, &["policy", "sign", "child", "--key", &key, "--cert", &chain]);
    };
    let functionary = r#"[{"type":"x509","issuer":"CN=Middle,O=Example","subject":"CN=two,OU=ops,O=Example"}]"#;
    let layout =
        format!(r#","sublayouts":[{{"name":"helper","policy":"child.signed","functionaries":{functionary}}}]"#);
    child("two");
    policy(&place, &layout);
    sign(&place, "one");
    assert_eq!(word(&place), "trusted");
    child("one");
    let (code, why) = said(&place, &["policy", "check", ".aflock.signed"]);
    assert!(code == Some(3) && why.contains("/sublayouts/0/policy"), "{why}");
}

#[test]
fn a_session_keeps_the_word_until_its_root_is_distrusted() {
    let place = office("x509-session");
    done(&place, &["keys", "trust", "--ca", "root.pem"]);
    done(&place, &["keys", "require-signed", "on"]);
    sign(&place, "one");
    place.start();
    place.allowed("first");
    let denied = place.answer(&place.write_call("second", "secret"));
    assert!(denied.contains("\"permissionDecision\":\"deny\""), "{denied}");
    let (_, text) = said(&place, &["verify", SESSION]);
    assert!(text.contains("signed by `CN=one,OU=ops,O=Example`"), "{text}");
    let trusted = done(&place, &["keys", "trusted"]);
    let id = trusted.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    done(&place, &["keys", "distrust", id]);
    let denied = place.answer(&place.write_call("third", "src/module.rs"));
    assert!(
        denied.contains("\"permissionDecision\":\"deny\"") && denied.contains("not signed by a key you trust"),
        "{denied}"
    );
    done(&place, &["keys", "trust", "--ca", "root.pem"]);
    place.allowed("fourth");
}

/// Sigstore's instance of this test, with a bundle over the policy.
fn instance(place: &Workplace, identity: &str, flaw: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signers/sigstore_instance.py");
    let mut made = Command::new("/usr/bin/python3");
    made.arg(script).arg(repository(place)).arg(repository(place).join(".aflock")).args([identity, ISSUER]);
    let output = made.args(Some(flaw).filter(|flaw| !flaw.is_empty())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn trust_instance(place: &Workplace, how: &str, identity: &str) -> (Option<i32>, String) {
    said(place, &["keys", "trust", "--sigstore", "trusted_root.json", "--issuer", ISSUER, how, identity])
}

#[test]
fn a_bundle_counts_where_its_identity_is_trusted() {
    let place = Workplace::new("keyless");
    let workflow = "https://github.com/org/repo/.github/workflows/release.yml@refs/tags/v1";
    for (identity, how, trusted, issuer, expected) in [
        (IDENTITY, "--identity", IDENTITY, ISSUER, "trusted"),
        (IDENTITY, "--identity", "release@example.org.test", ISSUER, "unknown-key"),
        (IDENTITY, "--identity", "*@example.org", ISSUER, "unknown-key"),
        (IDENTITY, "--identity-pattern", "*@example.org", ISSUER, "trusted"),
        (workflow, "--identity-pattern", "https://github.com/org/repo/**@refs/tags/v*", ISSUER, "trusted"),
        (workflow, "--identity-pattern", "https://github.com/org/repo/**@refs/heads/main", ISSUER, "unknown-key"),
        (IDENTITY, "--identity", IDENTITY, "https://issuer.example.org/", "no-functionary"),
    ] {
        let functionary =
            format!(r#","functionaries":[{{"type":"keyless","issuer":"{issuer}","subject":"{identity}"}}]"#);
        policy(&place, &functionary);
        instance(&place, identity, "");
        done(&place, &["policy", "sign", ".aflock", "--bundle", "bundle.json"]);
        assert_eq!(word(&place), "unknown-key", "nobody is trusted yet");
        assert_eq!(trust_instance(&place, how, trusted).0, Some(0));
        assert_eq!(word(&place), expected, "{identity} {how} {trusted}");
        let listed = done(&place, &["keys", "trusted"]);
        assert!(listed.contains(trusted), "{listed}");
        let id = listed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
        done(&place, &["keys", "distrust", id]);
    }
    for (how, identity) in [("--identity-pattern", "**"), ("--identity", "")] {
        assert_eq!(trust_instance(&place, how, identity).0, Some(4), "everybody is nobody");
    }
    assert_eq!(said(&place, &["keys", "trust", "--sigstore", "trusted_root.json", "--issuer", ISSUER]).0, Some(2));
    assert_eq!(
        said(&place, &["keys", "trust", "--sigstore", "bundle.json", "--issuer", ISSUER, "--identity", "a"]).0,
        Some(4)
    );
}

#[test]
fn every_flaw_of_a_bundle_is_told_and_sigstore_agrees() {
    let place = Workplace::new("keyless-flaws");
    let python = python();
    policy(&place, "");
    let reasons = [
        ("", ""),
        ("late", "valid"),
        ("sct", "certificate log"),
        ("promise", "promise"),
        ("proof", "inclusion proof"),
        ("checkpoint", "checkpoint"),
        ("entry", "hashedrekord"),
        ("root", "no authority of the trusted root"),
        ("signature", "does not belong to these bytes"),
    ];
    for (flaw, reason) in reasons {
        instance(&place, IDENTITY, flaw);
        assert_eq!(trust_instance(&place, "--identity", IDENTITY).0, Some(0));
        done(&place, &["policy", "sign", ".aflock", "--bundle", "bundle.json"]);
        let (code, text) = said(&place, &["policy", "verify", ".aflock.signed"]);
        let expected = if flaw.is_empty() { Some(0) } else { Some(3) };
        assert!(code == expected && text.contains(reason), "{flaw}: {text}");
        let peer = ["bundle", "trusted_root.json", "bundle.json", ".aflock", IDENTITY, ISSUER];
        let (agrees, told) = asked(&place, &python, &peer);
        assert_eq!(agrees, flaw.is_empty(), "{flaw}: {told}");
        let listed = done(&place, &["keys", "trusted"]);
        let id = listed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned();
        done(&place, &["keys", "distrust", &id]);
    }
    // A bundle over something else, one that is none, and one with another's envelope.
    fs::write(repository(&place).join("other"), "x").unwrap();
    let bundle = fs::read_to_string(repository(&place).join("bundle.json")).unwrap();
    for bad in ["{}".to_owned(), bundle.replace("v0.3", "v9"), bundle.replace("messageSignature", "x")] {
        fs::write(repository(&place).join("bad.json"), bad).unwrap();
        assert_eq!(said(&place, &["policy", "sign", ".aflock", "--bundle", "bad.json"]).0, Some(4));
    }
}

/// What Writ writes again of a bundle that the public instance made, Sigstore's own library still takes.
#[test]
fn sigstore_takes_bundles_that_writ_wrote() {
    let place = Workplace::new("bundle-peer");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/evidence/tests/sigstore");
    for name in ["trusted_root.json", "blob.txt"] {
        fs::copy(fixtures.join(name), repository(&place).join(name)).unwrap();
    }
    let bytes = fs::read(fixtures.join("blob.sigstore.json")).unwrap();
    let bundle = writ_evidence::intoto::Bundle::parse(&bytes).unwrap();
    fs::write(repository(&place).join("again.json"), bundle.to_bytes()).unwrap();
    let root =
        writ_evidence::signer::keyless::TrustedRoot::parse(&fs::read(fixtures.join("trusted_root.json")).unwrap());
    let text = writ_core::json::canonical(&writ_core::json::parse(&bytes).unwrap());
    let blob = fs::read(fixtures.join("blob.txt")).unwrap();
    let who = writ_evidence::signer::keyless::verify(&root.unwrap(), &text, &blob).unwrap();
    let peer = ["bundle", "trusted_root.json", "again.json", "blob.txt", &who.subject, &who.issuer];
    let (agrees, told) = asked(&place, &python(), &peer);
    assert!(agrees, "{told}");
    let peer = ["bundle", "trusted_root.json", "again.json", "blob.txt", "someone@else.test", &who.issuer];
    assert!(!asked(&place, &python(), &peer).0, "the peer looks");
}

/// Envelopes by a key and by a certificate, and a statement's, as securesystemslib sees them.
#[test]
fn securesystemslib_takes_our_envelopes() {
    let place = office("envelope-peer");
    let python = python();
    openssl(&place, &["pkey", "-in", "one.key", "-pubout", "-out", "one.pub"]);
    openssl(&place, &["pkey", "-in", "two.key", "-pubout", "-out", "two.pub"]);
    let takes = |key: &str| asked(&place, &python, &["envelope", ".aflock.signed", key]);
    sign(&place, "one");
    assert!(takes("one.pub").0, "{}", takes("one.pub").1);
    assert!(!takes("two.pub").0);
    done(&place, &["keys", "generate", "ed.key"]);
    done(&place, &["policy", "sign", ".aflock", "--key", "ed.key"]);
    assert!(takes("ed.key.pub").0, "{}", takes("ed.key.pub").1);
    let pem = fs::read_to_string(repository(&place).join("ed.key")).unwrap();
    let key = writ_evidence::keys::SigningKey::from_pem(&pem).unwrap();
    let subject = vec![writ_evidence::intoto::ResourceDescriptor::sha256("x", writ_core::Digest::of(b"x"))];
    let statement = writ_evidence::intoto::Statement::new(subject, "https://example.org/p/v1", "said");
    let envelope = writ_evidence::intoto::sign(&statement, &[&key]).unwrap().to_bytes();
    fs::write(repository(&place).join(".aflock.signed"), envelope).unwrap();
    assert!(takes("ed.key.pub").0, "{}", takes("ed.key.pub").1);
}

/// A Python with the peers' packages, in a virtual environment of its own that is made when it is missing.
fn python() -> PathBuf {
    static MADE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = MADE.lock().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("signers-peers");
    fs::create_dir_all(&folder).unwrap();
    // Tests run in processes of their own: one makes it, the others wait.
    let lock = fs::File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let (program, done) = (folder.join("bin/python"), folder.join("made"));
    if fs::read_to_string(&done).is_ok_and(|made| made == PACKAGES.join(" ")) {
        return program;
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status();
    assert!(made.is_ok_and(|status| status.success()), "python3 makes no virtual environment: install python3-venv");
    let install = ["install", "--quiet", "--disable-pip-version-check"];
    let installed = Command::new(folder.join("bin/pip")).args(install).args(PACKAGES).status();
    assert!(installed.is_ok_and(|status| status.success()), "pip does not install {PACKAGES:?}");
    fs::write(done, PACKAGES.join(" ")).unwrap();
    program
}

fn asked(place: &Workplace, python: &Path, args: &[&str]) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signers/peer.py");
    let output = Command::new(python).arg(script).args(args).current_dir(repository(place)).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.success() && text.contains("agreed"), text)
}
