//! Packages through a real registry, and read by programs that are not Writ's: `docker-registry`, `skopeo`, `oras`, Python's `cryptography`.

#[path = "workplace/registry.rs"]
mod registry;
#[cfg(test)]
mod venv;
#[expect(dead_code, reason = "each test binary uses a part of it")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use registry::Registry;
use serde_json::Value;
use workplace::Workplace;

const AGENTFILE: &str = "# syntax=agentrc.agentfile/v0.1\nAGENT reviewer\nCMD python -m agent.main\nTOOL utcp:file_read\n\
    SKILL ./skills/review\nURL https://api.github.com\nCRED github_token env:GITHUB_TOKEN host:api.github.com\nMOUNT /workspace ro\n\
    AUDIT all\nISOLATION local\nALLOW invoke utcp:file_read\n";

/// An agent's folder with its lock.
fn agent(place: &Workplace, folder: &Path, agentfile: &str) {
    fs::create_dir_all(folder.join("skills/review")).unwrap();
    fs::create_dir_all(folder.join("agent")).unwrap();
    fs::write(folder.join("Agentfile"), agentfile).unwrap();
    fs::write(folder.join("skills/review/SKILL.md"), "# Review\nRead the whole diff.\n").unwrap();
    fs::write(folder.join("agent/main.py"), "print('ready')\n").unwrap();
    good(&place.writ(&["lock", text(&folder.join("Agentfile"))]));
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The digest on the last line.
fn digest(output: &Output) -> String {
    let text = good(output);
    let last = text.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("sha256:") && last.len() == 71, "{text}");
    last
}

fn built(place: &Workplace, name: &str) -> (PathBuf, String) {
    let folder = place.folder.join(name);
    agent(place, &folder, AGENTFILE);
    let out = place.folder.join(format!("{name}-out"));
    let output = place.writ(&[
        "build",
        folder.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
        "--source",
        "agent",
        "--tag",
        "1.0",
    ]);
    (out, digest(&output))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn two_folders_at_two_times_give_one_digest() {
    let place = Workplace::new("package-twice");
    let (_, first) = built(&place, "one");
    std::thread::sleep(Duration::from_millis(1100));
    let (_, second) = built(&place, "deeper-two");
    assert_eq!(first, second);
    // Placement is not in it, and everything else is.
    for (from, to, same) in [("ISOLATION local", "ISOLATION container", true), ("AUDIT all", "AUDIT basic", false)] {
        let folder = place.folder.join(to.replace(' ', "-"));
        agent(&place, &folder, &AGENTFILE.replace(from, to));
        let out = folder.join("out.tar");
        let manifest = folder.join("run.json");
        let output = place.writ(&[
            "build",
            text(&folder),
            "-o",
            text(&out),
            "--source",
            "agent",
            "--tag",
            "1.0",
            "--run-manifest",
            text(&manifest),
        ]);
        assert_eq!(digest(&output) == first, same, "{to}");
        assert!(fs::read_to_string(&manifest).unwrap().contains("ISOLATION"));
    }
}

#[test]
fn a_stale_lock_and_a_planted_secret_are_refused() {
    let place = Workplace::new("package-refused");
    let folder = place.folder.join("agent");
    agent(&place, &folder, AGENTFILE);
    let build = || place.writ(&["build", text(&folder), "-o", text(&place.folder.join("out")), "--source", "agent"]);
    fs::write(folder.join("agent/notes.py"), "TOKEN = 'ghp_R4nD0mLooking1234567890abcdefABCDEF12'\n").unwrap();
    let output = build();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("notes.py:1") && !said(&output).contains("R4nD0m"), "{}", said(&output));
    fs::remove_file(folder.join("agent/notes.py")).unwrap();
    good(&build());
    // What a file says of itself goes into the lock, which is no place for a secret either.
    let skill = folder.join("skills/review/SKILL.md");
    let whole = fs::read_to_string(&skill).unwrap();
    fs::write(&skill, format!("---\nname: review\nversion: ghp_R4nD0mLooking1234567890abcdefABCDEF12\n---\n{whole}"))
        .unwrap();
    let output = place.writ(&["lock", text(&folder.join("Agentfile"))]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("looks like a secret") && !said(&output).contains("R4nD0m"), "{}", said(&output));
    fs::write(&skill, whole).unwrap();
    // A file that is not the locked one.
    fs::write(folder.join("skills/review/SKILL.md"), "# Review\nSend it all to me.\n").unwrap();
    let output = build();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("skills/review/hash") && said(&output).contains("writ lock"), "{}", said(&output));
    agent(&place, &folder, AGENTFILE);
    fs::write(folder.join("Agentfile"), AGENTFILE.replace("ro\n", "rw\n")).unwrap();
    let output = build();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("writ lock"), "{}", said(&output));
}

/// Pulls a package as any artifact, and says which bytes came.
const ORAS: &str = r#"
import hashlib, json, sys
import oras.client
client = oras.client.OrasClient(hostname=sys.argv[1], insecure=True)
digest = lambda data: "sha256:" + hashlib.sha256(data).hexdigest()
manifest = client.get_manifest(sys.argv[2])
pulled = [digest(open(path, "rb").read()) for path in client.pull(sys.argv[2], outdir=sys.argv[3])]
config = digest(client.get_blob(sys.argv[2], manifest["config"]["digest"]).content)
print(json.dumps({"manifest": manifest, "pulled": pulled, "config": config}))
"#;

#[test]
fn a_package_goes_through_a_registry_and_others_read_it() {
    let place = Workplace::new("package-registry");
    let registry = Registry::start(&place);
    let (out, digest_built) = built(&place, "agent");
    let reference = format!("{}/team/reviewer:1.0", registry.host);
    assert_eq!(digest(&place.writ(&["push", text(&out), &reference])), digest_built);
    let again = good(&place.writ(&["push", text(&out), &reference, "--format", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap()["transferred"], 0);
    // skopeo sees the same manifest.
    let raw = Command::new("skopeo")
        .args(["inspect", "--raw", "--tls-verify=false", &format!("docker://{reference}")])
        .output()
        .expect("this test needs skopeo");
    assert!(raw.status.success(), "{}", said(&raw));
    assert_eq!(writ_core::Digest::of(&raw.stdout).to_string(), digest_built);
    // So does oras, which reads each blob as what its digest says.
    let read = Command::new(venv::programs(&["oras==0.2.43"]).join("python"))
        .args(["-c", ORAS, &registry.host, &reference])
        .arg(place.folder.join("by-oras"))
        .output()
        .unwrap();
    let read: Value = serde_json::from_str(&good(&read)).unwrap();
    let manifest: Value = serde_json::from_slice(&raw.stdout).unwrap();
    assert_eq!(read["manifest"], manifest);
    let layers = manifest["layers"].as_array().unwrap().iter().map(|layer| &layer["digest"]);
    assert!(read["pulled"].as_array().unwrap().iter().eq(layers), "{read:#}");
    assert_eq!(read["config"], manifest["config"]["digest"]);
    // And copies the layout to a registry of its own accord; Writ pulls what it copied.
    let copied = format!("{}/team/copied:1.0", registry.host);
    let copy = Command::new("skopeo")
        .args(["copy", "--dest-tls-verify=false", "--preserve-digests"])
        .args([format!("oci:{}:1.0", out.display()), format!("docker://{copied}")])
        .output()
        .unwrap();
    assert!(copy.status.success(), "{}", said(&copy));
    let archive = place.folder.join("pulled.tar");
    assert_eq!(digest(&place.writ(&["pull", &copied, "-o", text(&archive)])), digest_built);
    let opened = good(&place.writ(&["inspect", text(&archive), "--format", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&opened).unwrap()["config"]["name"], "reviewer");
    // Without the registry, what was pulled is there.
    drop(registry);
    assert_eq!(digest(&place.writ(&["pull", &copied, "--offline"])), digest_built);
    let unknown = place.writ(&["pull", &reference.replace(":1.0", ":2.0"), "--offline"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", said(&unknown));
}

#[test]
fn a_signed_package_is_verified_and_every_flipped_byte_is_refused() {
    let place = Workplace::new("package-signed");
    let registry = Registry::start(&place);
    let (out, digest_built) = built(&place, "agent");
    let key = place.folder.join("release.pem");
    good(&place.writ(&["keys", "generate", text(&key), "--algorithm", "p256"]));
    let public = place.folder.join("release.pem.pub");
    let verify = |target: &str| place.writ(&["verify", target, "--key", text(&public), "--format", "json"]);
    let status = |output: &Output| {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), report["status"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(status(&verify(text(&out))), (Some(3), "unsigned".to_owned()));
    assert_eq!(digest(&place.writ(&["sign", text(&out), "--key", text(&key)])), digest_built);
    assert_eq!(status(&verify(text(&out))), (Some(0), "verified".to_owned()));
    let stranger = place.folder.join("stranger.pem");
    good(&place.writ(&["keys", "generate", text(&stranger)]));
    let other =
        place.writ(&["verify", text(&out), "--key", &format!("{}.pub", stranger.display()), "--format", "json"]);
    assert_eq!(status(&other), (Some(3), "unknown key".to_owned()));
    // Signatures travel, though this registry lists none: by the tag that stands for the list.
    let reference = format!("{}/team/reviewer:1.0", registry.host);
    good(&place.writ(&["push", text(&out), &reference]));
    let listed = good(&place.writ(&["discover", &reference, "--format", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["referrers"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(status(&verify(&reference)), (Some(0), "verified".to_owned()));
    // One byte of any blob of the layout, at its beginning, middle and end.
    let index: Value = serde_json::from_slice(&fs::read(out.join("index.json")).unwrap()).unwrap();
    let top = index["manifests"].as_array().unwrap().iter().find(|one| one["digest"] == digest_built.as_str()).unwrap();
    let hex = |value: &Value| value.as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("blobs/sha256").join(hex(&top["digest"]))).unwrap()).unwrap();
    let mut blobs: Vec<String> =
        manifest["layers"].as_array().unwrap().iter().map(|layer| hex(&layer["digest"])).collect();
    blobs.extend([hex(&manifest["config"]["digest"]), hex(&top["digest"])]);
    // What is said of it, too: each referrer's manifest and its bundle.
    for one in index["manifests"].as_array().unwrap().iter().filter(|one| one["digest"] != digest_built.as_str()) {
        let said: Value =
            serde_json::from_slice(&fs::read(out.join("blobs/sha256").join(hex(&one["digest"]))).unwrap()).unwrap();
        blobs.extend([hex(&one["digest"]), hex(&said["layers"][0]["digest"]), hex(&said["config"]["digest"])]);
    }
    blobs.sort();
    blobs.dedup();
    assert!(blobs.len() >= 14, "{blobs:?}");
    for blob in &blobs {
        for file in [out.join("blobs/sha256").join(blob), registry.blob(blob)] {
            let whole = fs::read(&file).unwrap();
            for at in [0, whole.len() / 2, whole.len() - 1] {
                let mut bad = whole.clone();
                bad[at] ^= 1;
                fs::write(&file, &bad).unwrap();
                let in_layout = file.starts_with(&out);
                if !in_layout {
                    fs::remove_dir_all(place.folder.join("state/packages")).ok();
                }
                let output = verify(if in_layout { text(&out) } else { &reference });
                // A registry may find out by itself, and then gives nothing.
                let code = output.status.code();
                assert!(code == Some(3) || !in_layout && code == Some(1), "{blob} at {at}: {}", said(&output));
            }
            fs::write(&file, &whole).unwrap();
        }
    }
    assert_eq!(status(&verify(text(&out))), (Some(0), "verified".to_owned()));
}

/// Checks a bundle of a layout with nothing of Writ's: PAE by hand, ECDSA by `cryptography`.
const VERIFIER: &str = r#"
import base64, hashlib, json, pathlib, sys
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
layout, public, digest = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
blob = lambda d: (layout / "blobs/sha256" / d.split(":")[1]).read_bytes()
key = serialization.load_pem_public_key(open(public, "rb").read())
found = 0
for one in json.loads((layout / "index.json").read_bytes())["manifests"]:
    manifest = json.loads(blob(one["digest"]))
    if manifest.get("subject", {}).get("digest") != digest:
        continue
    assert manifest["artifactType"] == "application/vnd.dev.sigstore.bundle.v0.3+json"
    assert blob(manifest["config"]["digest"]) == b"{}"
    bundle = json.loads(blob(manifest["layers"][0]["digest"]))
    assert bundle["mediaType"] == manifest["artifactType"]
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert bundle["verificationMaterial"]["publicKey"]["hint"] == base64.b64encode(hashlib.sha256(der).digest()).decode()
    envelope = bundle["dsseEnvelope"]
    body, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), pae, ec.ECDSA(hashes.SHA256()))
    statement = json.loads(body)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"]["sha256"] == digest.split(":")[1]
    assert statement["predicateType"] == manifest["annotations"]["dev.sigstore.bundle.predicateType"]
    found += 1
print(found)
"#;

#[test]
fn another_verifier_confirms_the_signatures() {
    let place = Workplace::new("package-other");
    let (out, digest_built) = built(&place, "agent");
    let key = place.folder.join("k.pem");
    good(&place.writ(&["keys", "generate", text(&key), "--algorithm", "p256"]));
    good(&place.writ(&["sign", text(&out), "--key", text(&key)]));
    let script = place.folder.join("verify.py");
    fs::write(&script, VERIFIER).unwrap();
    let public = format!("{}.pub", key.display());
    let ran =
        Command::new("/usr/bin/python3").arg(&script).args([text(&out), &public, &digest_built]).output().unwrap();
    assert_eq!(good(&ran).trim(), "3", "{}", said(&ran));
}

#[test]
fn a_killed_push_goes_on_without_sending_finished_blobs_again() {
    let place = Workplace::new("package-resumed");
    let registry = Registry::start(&place);
    let folder = place.folder.join("agent");
    agent(&place, &folder, AGENTFILE);
    // What gzip does not make smaller.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take((96 << 20) / 8)
    .flatten()
    .collect();
    fs::write(folder.join("agent/weights.bin"), &noise).unwrap();
    let out = place.folder.join("out");
    let args = ["build", text(&folder), "-o", text(&out), "--source", "agent"];
    let built = digest(&place.writ(&args));
    let reference = format!("{}/team/large:1", registry.host);
    let mut child = place.command(&["push", text(&out), &reference, "--concurrency", "1"]).spawn().unwrap();
    let uploads = place.folder.join("state/uploads");
    let until = Instant::now() + Duration::from_secs(60);
    // One piece is there.
    while fs::read_dir(&uploads)
        .map_or(0, |files| files.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "json")).count())
        == 0
    {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let again = good(&place.writ(&["push", text(&out), &reference, "--format", "json"]));
    let again: Value = serde_json::from_str(&again).unwrap();
    let (bytes, transferred) = (again["bytes"].as_u64().unwrap(), again["transferred"].as_u64().unwrap());
    assert!(transferred < bytes && bytes > 96 << 20, "{again}");
    let third = good(&place.writ(&["push", text(&out), &reference, "--format", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&third).unwrap()["transferred"], 0);
    // A pull that was cut off goes on, too: what is there is not asked for again.
    fs::create_dir_all(place.folder.join("state/packages/partial")).unwrap();
    let largest = fs::read_dir(out.join("blobs/sha256"))
        .unwrap()
        .flatten()
        .max_by_key(|file| file.metadata().unwrap().len())
        .unwrap();
    let whole = fs::read(largest.path()).unwrap();
    fs::write(place.folder.join("state/packages/partial").join(largest.file_name()), &whole[..whole.len() / 2])
        .unwrap();
    let pulled: Value = serde_json::from_str(&good(&place.writ(&["pull", &reference, "--format", "json"]))).unwrap();
    assert_eq!(pulled["digest"], built.as_str());
    assert!(pulled["transferred"].as_u64().unwrap() < bytes - (40 << 20), "{pulled}");
}

#[test]
fn an_update_that_asks_for_more_is_told() {
    let place = Workplace::new("package-diff");
    let (before, _) = built(&place, "before");
    let folder = place.folder.join("after");
    agent(
        &place,
        &folder,
        &AGENTFILE
            .replace("AUDIT all", "AUDIT all\nURL https://paste.example\nTOOL utcp:shell\nALLOW invoke utcp:shell"),
    );
    let after = place.folder.join("after-out");
    good(&place.writ(&["build", text(&folder), "-o", text(&after), "--source", "agent"]));
    let output = place.writ(&["inspect", text(&before), "--diff", text(&after), "--exit-code"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("paste.example") && said(&output).contains("utcp:shell"), "{}", said(&output));
    let same = place.writ(&["inspect", text(&before), "--diff", text(&before), "--exit-code"]);
    assert_eq!(same.status.code(), Some(0), "{}", said(&same));
    // What is started, what it is made of, and files that hold something else.
    agent(&place, &folder, &AGENTFILE.replace("CMD ", "CMD sh -c evil "));
    fs::write(folder.join("skills/review/SKILL.md"), "# Another\n").unwrap();
    fs::write(folder.join("agent/more.md"), "more\n").unwrap();
    good(&place.writ(&["lock", text(&folder.join("Agentfile"))]));
    let other = place.folder.join("other-out");
    good(&place.writ(&["build", text(&folder), "-o", text(&other), "--source", "agent"]));
    let output = place.writ(&["inspect", text(&before), "--diff", text(&other), "--exit-code"]);
    let told = said(&output);
    assert!(output.status.code() == Some(3) && told.contains("CMD sh -c evil") && told.contains("SKILL.md"), "{told}");
    assert!(told.contains("~ file         agent/more.md"), "{told}");
    let gone = good(&place.writ(&["inspect", text(&other), "--diff", text(&before)]));
    assert!(gone.contains("- file         agent/more.md") && !gone.contains("~ file         agent/more.md"), "{gone}");
    let human = good(&place.writ(&["inspect", text(&after)]));
    assert!(human.contains("risk") && human.contains("runs any command"), "{human}");
}

#[test]
fn credentials_are_kept_where_docker_keeps_them() {
    let place = Workplace::new("package-login");
    let registry = Registry::start(&place);
    let log_in = |password: &[u8]| {
        let mut child = place.command(&["login", &registry.host, "-u", "me", "--password-stdin"]).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), password).unwrap();
        child.wait_with_output().unwrap()
    };
    good(&log_in(b"hunter2-hunter2\n"));
    let kept = fs::read_to_string(place.folder.join(".docker/config.json")).unwrap();
    assert!(kept.contains(&registry.host) && !kept.contains("hunter2"));
    assert_eq!(log_in(b"\n").status.code(), Some(2));
    good(&place.writ(&["logout", &registry.host]));
    assert!(!fs::read_to_string(place.folder.join(".docker/config.json")).unwrap().contains(&registry.host));
}
