//! Packages signed without a key: by Writ, with a Sigstore instance of the test's own, through a real registry; and what others say of it.

#[path = "workplace/registry.rs"]
#[expect(dead_code, reason = "each test binary uses a part of it")]
mod registry;
#[path = "workplace/sigstore.rs"]
mod sigstore;
#[cfg(test)]
mod venv;
#[expect(dead_code, reason = "each test binary uses a part of it")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use registry::Registry;
use serde_json::Value;
use sigstore::{ISSUER, Services};
use workplace::Workplace;

const IDENTITY: &str = "release@example.org";
const AGENTFILE: &str = "# syntax=agentrc.agentfile/v0.1\nAGENT reviewer\nCMD python -m agent.main\nTOOL utcp:file_read\n\
    MOUNT /workspace ro\nAUDIT all\nISOLATION local\nALLOW invoke utcp:file_read\n";

impl Services {
    /// Signs as whom the token names, with the services in their places.
    fn sign(&self, place: &Workplace, package: &str, token: &str, more: &[&str]) -> Output {
        let token = self.file(token);
        let own =
            ["sign", package, "--identity-token-file", &token, "--fulcio-url", &self.url, "--rekor-url", &self.url];
        place.writ(&[&own, more].concat())
    }

    /// Signs with what the flaw is given to.
    fn sign_with(&self, place: &Workplace, package: &str, service: &str, flaw: &str) -> Output {
        let (token, flawed) = (self.file("token"), format!("{}/{flaw}", self.url));
        let stamp = format!("{flawed}/api/v1/timestamp");
        let services = match service {
            "Fulcio" => ["--fulcio-url", &flawed, "--rekor-url", &self.url].to_vec(),
            "Rekor" => ["--fulcio-url", &self.url, "--rekor-url", &flawed].to_vec(),
            _ => ["--fulcio-url", &self.url, "--rekor-url", &self.url, "--tsa-url", &stamp].to_vec(),
        };
        place.writ(&[&["sign", package, "--identity-token-file", &token], services.as_slice()].concat())
    }

    fn trust(&self, place: &Workplace, issuer: &str, identity: &str) -> String {
        let root = self.file("trusted_root.json");
        let told =
            good(&place.writ(&["keys", "trust", "--sigstore", &root, "--issuer", issuer, "--identity", identity]));
        told.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned()
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A package in a layout: where it is, and its digest.
fn built(place: &Workplace, name: &str) -> (String, String) {
    let folder = place.folder.join(name);
    fs::create_dir_all(folder.join("agent")).unwrap();
    fs::write(folder.join("Agentfile"), AGENTFILE.replace("reviewer", name)).unwrap();
    fs::write(folder.join("agent/main.py"), "print('ready')\n").unwrap();
    let folder = folder.to_str().unwrap();
    good(&place.writ(&["lock", &format!("{folder}/Agentfile")]));
    let out = format!("{folder}-out");
    let told = good(&place.writ(&["build", folder, "-o", &out, "--source", "agent", "--tag", "1.0"]));
    (out, told.lines().last().unwrap().to_owned())
}

/// A package's verification: the exit code, the status, and what is said of the signature.
fn verified(place: &Workplace, package: &str) -> (Option<i32>, String, String) {
    let output = place.writ(&["verify", package, "--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    let phase = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "signature").unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (output.status.code(), text(&report["status"]), text(&phase["summary"]))
}

/// The bundles that are attached in a layout, each with the file it is in.
fn bundles(layout: &str) -> Vec<(PathBuf, Value)> {
    let blob = |digest: &Value| {
        Path::new(layout).join("blobs/sha256").join(digest.as_str().unwrap().strip_prefix("sha256:").unwrap())
    };
    let read = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let index = read(&Path::new(layout).join("index.json"));
    let manifests = index["manifests"].as_array().unwrap().iter().map(|one| read(&blob(&one["digest"])));
    let signed =
        manifests.filter(|manifest| manifest["artifactType"] == "application/vnd.dev.sigstore.bundle.v0.3+json");
    signed.map(|manifest| blob(&manifest["layers"][0]["digest"])).map(|path| (path.clone(), read(&path))).collect()
}

#[test]
fn a_package_is_signed_without_a_key_and_verified_from_a_registry() {
    let place = Workplace::new("keyless-package");
    let (registry, services) = (Registry::start(&place), Services::start(&place));
    let (out, digest) = built(&place, "reviewer");
    let reference = format!("{}/team/reviewer:1.0", registry.host);
    good(&place.writ(&["push", &out, &reference]));
    let told: Value =
        serde_json::from_str(&good(&services.sign(&place, &reference, "token", &["--format", "json"]))).unwrap();
    assert_eq!((&told["digest"], &told["keyless"]["identity"]), (&digest.as_str().into(), &IDENTITY.into()), "{told}");
    assert_eq!(told["keyless"]["logIndexes"].as_array().unwrap().len(), 3, "{told}");
    let (code, status, summary) = verified(&place, &reference);
    assert_eq!((code, status.as_str()), (Some(3), "unknown key"), "nobody is trusted yet");
    assert!(summary.starts_with("unknown-identity:"), "{summary}");
    for (issuer, identity) in [
        (ISSUER, "someone@example.org"),
        (ISSUER, "release@example.or"),
        (ISSUER, "Release@example.org"),
        (ISSUER, "release@example.org.example"),
        ("https://other.example.org", IDENTITY),
        ("https://issuer.example.or", IDENTITY),
        ("https://issuer.example.org/", IDENTITY),
    ] {
        let id = services.trust(&place, issuer, identity);
        let (code, status, summary) = verified(&place, &reference);
        assert_eq!((code, status.as_str()), (Some(3), "unknown key"), "{issuer} {identity}");
        let expected = format!("unknown-identity: `{IDENTITY}`, by {ISSUER}, is no identity that is trusted here");
        assert_eq!(summary, expected, "{issuer} {identity}");
        good(&place.writ(&["keys", "distrust", &id]));
    }
    // Under which root it holds is said, whichever is looked at first.
    let elsewhere = Workplace::new("keyless-elsewhere");
    let other = Services::start(&elsewhere);
    let ids = [services.trust(&place, ISSUER, "someone@example.org"), other.trust(&place, ISSUER, IDENTITY)];
    let (code, _, summary) = verified(&place, &reference);
    assert!(code == Some(3) && summary.starts_with("unknown-identity: `"), "{summary}");
    ids.iter().for_each(|id| drop(good(&place.writ(&["keys", "distrust", id]))));
    services.trust(&place, ISSUER, IDENTITY);
    let report: Value = serde_json::from_str(&good(&place.writ(&["verify", &reference, "--format", "json"]))).unwrap();
    assert_eq!((&report["verified"], &report["status"]), (&true.into(), &"verified".into()), "{report:#}");
    assert_eq!(
        (&report["identities"][0]["identity"], &report["identities"][0]["issuer"]),
        (&IDENTITY.into(), &ISSUER.into())
    );
    // A key says nothing of it, and an unsigned package next to it stays one.
    let key = place.folder.join("k.pem");
    good(&place.writ(&["keys", "generate", key.to_str().unwrap()]));
    let public = format!("{}.pub", key.display());
    assert_eq!(place.writ(&["verify", &reference, "--key", &public]).status.code(), Some(3));
    assert_eq!(verified(&place, &built(&place, "other").0).1, "unsigned");
    // Both at once: each is told.
    good(&place.writ(&["keys", "trust", &public]));
    good(&place.writ(&["sign", &reference, "--key", key.to_str().unwrap()]));
    let report: Value = serde_json::from_str(&good(&place.writ(&["verify", &reference, "--format", "json"]))).unwrap();
    let count = |name: &str| report[name].as_array().unwrap().len();
    assert_eq!((count("signers"), count("identities")), (1, 1), "{report:#}");
}

/// Rekor's first version with and without a timestamp; its second, of which Sigstore's Python library reads no envelopes in this form.
#[test]
fn sigstores_own_library_takes_what_writ_signed() {
    let place = Workplace::new("keyless-others");
    let services = Services::start(&place);
    let python = venv::programs(&["sigstore==4.5.1"]).join("python");
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signers/peer.py");
    let agrees = |bundle: &Path, digest: &str, identity: &str| {
        let digest = digest.strip_prefix("sha256:").unwrap();
        let mut asked = Command::new(&python);
        asked.arg("-B").arg(&peer).args(["statement", &services.file("trusted_root.json")]);
        let output = asked.arg(bundle).args([digest, identity, ISSUER]).output().unwrap();
        (output.status.success(), said(&output))
    };
    services.trust(&place, ISSUER, IDENTITY);
    services.trust(&place, ISSUER, "https://example.org/workflow");
    let stamp = format!("{}/api/v1/timestamp", services.url);
    for (name, token, identity, more) in [
        ("plain", "token", IDENTITY, [].as_slice()),
        ("stamped", "token", IDENTITY, ["--tsa-url", &stamp].as_slice()),
        ("workflow", "token-subject", "https://example.org/workflow", [].as_slice()),
    ] {
        let (out, digest) = built(&place, name);
        good(&services.sign(&place, &out, token, more));
        assert_eq!(verified(&place, &out).1, "verified", "{name}");
        let made = bundles(&out);
        assert_eq!(made.len(), 3, "{name}");
        for (path, bundle) in &made {
            assert_eq!(bundle["verificationMaterial"]["tlogEntries"][0]["kindVersion"]["kind"], "dsse");
            let stamps = &bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"];
            assert_eq!(stamps.as_array().map_or(0, Vec::len), usize::from(name == "stamped"), "{bundle:#}");
            let (agreed, told) = agrees(path, &digest, identity);
            assert!(agreed, "{name}: {told}");
            assert!(!agrees(path, &digest, "someone@example.org").0, "{name}");
        }
    }
}

#[test]
fn a_signing_configuration_names_the_services() {
    let place = Workplace::new("keyless-config");
    let services = Services::start(&place);
    let (out, _) = built(&place, "configured");
    let (token, config) = (fs::read_to_string(services.file("token")).unwrap(), services.file("signing_config.json"));
    let args = ["sign", &out, "--signing-config", &config];
    good(&place.command(&args).env("SIGSTORE_ID_TOKEN", token.trim()).output().unwrap());
    let material = &bundles(&out)[0].1["verificationMaterial"];
    assert_eq!(
        material["tlogEntries"][0]["kindVersion"],
        serde_json::json!({"kind": "hashedrekord", "version": "0.0.2"})
    );
    assert_eq!(material["timestampVerificationData"]["rfc3161Timestamps"].as_array().unwrap().len(), 1);
    services.trust(&place, ISSUER, IDENTITY);
    assert_eq!(verified(&place, &out).1, "verified");
    // Without what says when, or with more services than are asked, nothing is signed.
    let written = fs::read_to_string(&config).unwrap();
    let mut document: Value = serde_json::from_str(&written).unwrap();
    document["tsaUrls"] = Value::Array(Vec::new());
    let two = written.replace("\"ANY\"", "\"ALL\"").replace("\"rekorTlogUrls\": [", "\"rekorTlogUrls\": [REKOR, ");
    let rekor = serde_json::to_string(&serde_json::from_str::<Value>(&written).unwrap()["rekorTlogUrls"][0]).unwrap();
    for (bad, expected) in [
        (document.to_string(), "timestamp authority"),
        (two.replace("REKOR", &rekor), "more than one"),
        ("{}".to_owned(), "signing configuration"),
    ] {
        fs::write(&config, bad).unwrap();
        let output = place.command(&args).env("SIGSTORE_ID_TOKEN", token.trim()).output().unwrap();
        assert!(output.status.code() == Some(4) && said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn a_bundle_that_was_changed_counts_for_nothing() {
    let place = Workplace::new("keyless-changed");
    let services = Services::start(&place);
    services.trust(&place, ISSUER, IDENTITY);
    let (out, _) = built(&place, "changed");
    good(&services.sign(&place, &out, "token", &["--no-provenance", "--no-sbom"]));
    let (_, whole) = bundles(&out).remove(0);
    fs::remove_dir_all(&out).unwrap();
    let other = built(&place, "another").0;
    good(&services.sign(&place, &other, "token", &["--no-provenance", "--no-sbom"]));
    let (_, another) = bundles(&other).remove(0);
    let changed = |pointer: &str, with: Value| {
        let mut bundle = whole.clone();
        *bundle.pointer_mut(pointer).unwrap() = with;
        bundle
    };
    let entry = "/verificationMaterial/tlogEntries/0";
    let from = |pointer: &str| another.pointer(pointer).unwrap().clone();
    let own = |name: &str| format!("{entry}/{name}");
    for (bundle, status, expected) in [
        (changed(&own("integratedTime"), "1700000000".into()), "unknown key", "log-invalid"),
        (
            changed(&own("inclusionPromise/signedEntryTimestamp"), from(&own("inclusionPromise/signedEntryTimestamp"))),
            "unknown key",
            "log-invalid",
        ),
        (
            changed(&own("inclusionProof/rootHash"), from(&own("inclusionProof/rootHash"))),
            "unknown key",
            "bundle-invalid",
        ),
        (changed(&own("inclusionProof/hashes/0"), from(&own("inclusionProof/rootHash"))), "unknown key", "log-invalid"),
        (changed(entry, from(entry)), "unknown key", "log-invalid"),
        (
            changed("/verificationMaterial/certificate", from("/verificationMaterial/certificate")),
            "broken",
            "signature-invalid",
        ),
        (changed("/dsseEnvelope/payload", from("/dsseEnvelope/payload")), "broken", "signature-invalid"),
        (changed("/dsseEnvelope/signatures", from("/dsseEnvelope/signatures")), "broken", "signature-invalid"),
        (another.clone(), "broken", "signature-of-another"),
    ] {
        let (layout, _) = built(&place, "changed");
        attach(&layout, &bundle);
        let (code, found, summary) = verified(&place, &layout);
        assert!(code == Some(3) && found == status && summary.starts_with(expected), "{expected}: {found}: {summary}");
        fs::remove_dir_all(&layout).unwrap();
    }
}

#[test]
fn a_bundle_without_what_proves_it_counts_for_nothing() {
    let place = Workplace::new("keyless-unproven");
    let services = Services::start(&place);
    services.trust(&place, ISSUER, IDENTITY);
    let (out, _) = built(&place, "changed");
    good(&services.sign(&place, &out, "token", &["--no-provenance", "--no-sbom"]));
    let (_, whole) = bundles(&out).remove(0);
    fs::remove_dir_all(&out).unwrap();
    let (material, entry) = ("/verificationMaterial", "/verificationMaterial/tlogEntries/0");
    let mut emptied = whole.clone();
    emptied["verificationMaterial"]["tlogEntries"] = Value::Array(Vec::new());
    let without = |pointer: &str, name: &str| {
        let mut bundle = whole.clone();
        bundle.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(name).unwrap();
        bundle
    };
    for bundle in [
        without(entry, "inclusionProof"),
        without(material, "tlogEntries"),
        emptied,
        without(entry, "inclusionPromise"),
    ] {
        let (layout, _) = built(&place, "changed");
        attach(&layout, &bundle);
        let (code, found, summary) = verified(&place, &layout);
        assert_eq!((code, found.as_str()), (Some(3), "unknown key"), "{summary}: {bundle:#}");
        fs::remove_dir_all(&layout).unwrap();
    }
    // By a certificate that was over when the log took the entry.
    let (layout, _) = built(&place, "changed");
    good(&services.sign_with(&place, &layout, "Fulcio", "expired"));
    let (code, found, summary) = verified(&place, &layout);
    assert!(
        code == Some(3) && found == "unknown key" && summary.starts_with("certificate-expired"),
        "{found}: {summary}"
    );
    fs::remove_dir_all(&layout).unwrap();
    // By a certificate of an instance that is not trusted.
    let stranger = Workplace::new("keyless-stranger");
    let strange = Services::start(&stranger);
    let (layout, _) = built(&place, "changed");
    good(&strange.sign(&place, &layout, "token", &[]));
    let (code, found, summary) = verified(&place, &layout);
    assert_eq!((code, found.as_str()), (Some(3), "unknown key"), "{summary}");
    assert!(
        ["log-invalid", "unknown-authority", "time-unknown"].iter().any(|code| summary.starts_with(code)),
        "{summary}"
    );
}

/// Entries of Rekor's second version hold a digest of what is signed alone, and a timestamp says when.
#[test]
fn a_bundle_of_the_second_log_that_was_changed_counts_for_nothing() {
    let place = Workplace::new("keyless-second");
    let services = Services::start(&place);
    services.trust(&place, ISSUER, IDENTITY);
    let made = |name: &str| {
        let (out, _) = built(&place, name);
        let (token, config) = (services.file("token"), services.file("signing_config.json"));
        let alone = ["--no-provenance", "--no-sbom"];
        good(&place.writ(
            &[&["sign", &out, "--signing-config", &config, "--identity-token-file", &token], &alone[..]].concat(),
        ));
        let made = bundles(&out).remove(0).1;
        fs::remove_dir_all(&out).unwrap();
        made
    };
    let (whole, another) = (made("whole"), made("another"));
    let (entry, stamps) =
        ("/verificationMaterial/tlogEntries/0", "/verificationMaterial/timestampVerificationData/rfc3161Timestamps");
    let none = Value::Array(Vec::new());
    for (pointer, with, status) in [
        (entry, another.pointer(entry), "broken"),
        (stamps, another.pointer(stamps), "unknown key"),
        (stamps, Some(&none), "unknown key"),
        ("/verificationMaterial/tlogEntries", Some(&none), "unknown key"),
        ("/dsseEnvelope/payload", another.pointer("/dsseEnvelope/payload"), "broken"),
        ("/dsseEnvelope/signatures", another.pointer("/dsseEnvelope/signatures"), "unknown key"),
        ("", Some(&another), "broken"),
        ("", Some(&whole), "verified"),
    ] {
        let mut bundle = whole.clone();
        *bundle.pointer_mut(pointer).unwrap() = with.unwrap().clone();
        let (layout, _) = built(&place, "whole");
        attach(&layout, &bundle);
        let found = verified(&place, &layout);
        assert_eq!(found.1, status, "{pointer}: {}", found.2);
        fs::remove_dir_all(&layout).unwrap();
    }
}

#[test]
fn an_identity_is_shown_and_not_obeyed() {
    let place = Workplace::new("keyless-shown");
    let services = Services::start(&place);
    let (out, _) = built(&place, "shown");
    let signed = services.sign_with(&place, &out, "Fulcio", "control");
    good(&signed);
    services.trust(&place, ISSUER, IDENTITY);
    let checked = place.writ(&["verify", &out]);
    assert_eq!(checked.status.code(), Some(3), "{}", said(&checked));
    for told in [said(&signed), said(&checked)] {
        assert!(told.contains("https://example.org/"), "nobody is named: {told}");
        assert!(!told.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{told:?}");
    }
}

/// Attaches a bundle as anybody can who may write to a layout.
fn attach(layout: &str, bundle: &Value) {
    let put = |bytes: &[u8]| {
        let digest = writ_core::Digest::of(bytes);
        fs::write(Path::new(layout).join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        serde_json::json!({"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "digest": digest.to_string(), "size": bytes.len()})
    };
    let index = Path::new(layout).join("index.json");
    let mut listed: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    let mut subject = listed["manifests"][0].clone();
    let members = subject.as_object_mut().unwrap();
    members.retain(|name, _| ["mediaType", "digest", "size"].contains(&name.as_str()));
    let mut config = put(b"{}");
    config["mediaType"] = "application/vnd.oci.empty.v1+json".into();
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "subject": subject, "config": config,
        "artifactType": "application/vnd.dev.sigstore.bundle.v0.3+json", "layers": [put(bundle.to_string().as_bytes())],
    });
    let mut descriptor = put(manifest.to_string().as_bytes());
    descriptor["mediaType"] = "application/vnd.oci.image.manifest.v1+json".into();
    descriptor["artifactType"] = manifest["artifactType"].clone();
    listed["manifests"].as_array_mut().unwrap().push(descriptor);
    fs::write(&index, listed.to_string()).unwrap();
}

#[test]
fn each_refusal_has_its_reason_and_nothing_is_attached() {
    let place = Workplace::new("keyless-refused");
    let services = Services::start(&place);
    let (out, _) = built(&place, "refused");
    let secret = fs::read_to_string(services.file("token")).unwrap();
    for (service, flaw, expected) in [
        ("Fulcio", "refuse", "refuses with 400 (there was an error processing the identity token [secret])"),
        ("Fulcio", "large", "more than 1048576 bytes"),
        ("Fulcio", "moved", "307: it leads elsewhere"),
        ("Fulcio", "words", "not what was asked for"),
        ("Fulcio", "other-key", "for another key"),
        ("Fulcio", "detached", "beside the certificate"),
        ("Fulcio", "echo", "expected struct Issued, found a string"),
        ("Fulcio", "nowhere", "404: is this the service's own address?"),
        ("Rekor", "large", "more than 1048576 bytes"),
        ("Rekor", "moved", "307: it leads elsewhere"),
        ("Rekor", "words", "not what was asked for"),
        ("Rekor", "other-entry", "the signature is another"),
        ("Rekor", "unproven", "without a proof that it is in the log"),
        ("Rekor", "undated", "without the log's promise and time"),
        ("the timestamp authority", "other-stamp", "over other bytes"),
        ("the timestamp authority", "words", "no timestamp"),
    ] {
        let output = services.sign_with(&place, &out, service, flaw);
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains(expected) && told.contains(service), "{flaw}: {told}");
        assert!(told.contains(&services.url), "{flaw} names no place: {told}");
        assert!(secret.trim().split('.').all(|part| !told.contains(part)), "{flaw}: {told}");
    }
    for (token, code, expected) in [
        ("token-expired", 1, "expired at"),
        ("token-unverified", 1, "has not verified"),
        ("token-forged", 1, "the token's signature does not hold"),
        ("token-audience", 1, "the token is not for this"),
        ("trusted_root.json", 4, "no identity token"),
        ("gone", 1, "gone"),
    ] {
        let output = services.sign(&place, &out, token, &[]);
        assert!(output.status.code() == Some(code) && said(&output).contains(expected), "{token}: {}", said(&output));
        let parts = secret.trim().split('.').skip(1);
        assert!(parts.into_iter().all(|part| !said(&output).contains(part)), "{token}: {}", said(&output));
    }
    let url = services.url.as_str();
    for (args, expected) in [
        (["--fulcio-url", "http://fulcio.example", "--rekor-url", url].as_slice(), "write `https://`"),
        (["--fulcio-url", url, "--rekor-url", "https://me:word@rekor.example"].as_slice(), "name or password"),
        (["--fulcio-url", url].as_slice(), "--rekor-url"),
        (["--rekor-url", url].as_slice(), "--fulcio-url"),
        (["--fulcio-url", url, "--rekor-url", url, "--key", "k.pem"].as_slice(), "cannot be used with"),
        ([].as_slice(), "--signing-config"),
    ] {
        let token = services.file("token");
        let output = place.writ(&[&["sign", &out, "--identity-token-file", &token], args].concat());
        assert!(output.status.code() == Some(2) && said(&output).contains(expected), "{args:?}: {}", said(&output));
    }
    let output = place.writ(&["sign", &out, "--fulcio-url", url, "--rekor-url", url]);
    assert!(output.status.code() == Some(2) && said(&output).contains("SIGSTORE_ID_TOKEN"), "{}", said(&output));
    assert!(bundles(&out).is_empty(), "something was attached");
}
