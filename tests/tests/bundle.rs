//! A session's record as one file: verified elsewhere by Writ and by a verifier that shares nothing with it, and what both refuse.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod parcel;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parcel::{export, files, key, packed, packed_as, python, sorted, writ};
use serde_json::{Value, json};
use workplace::{SESSION, Workplace};
use writ_core::Digest;
use writ_evidence::dsse::Envelope;
use writ_evidence::keys::{PublicKey, SigningKey};

/// A token as a provider makes them, in two parts so that nobody takes it for one.
const TOKEN: (&str, &str) = ("ghp_", "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6");

/// A session with a denied and an allowed call, its transcript and that of a subagent, sealed.
fn recorded(name: &str) -> Workplace {
    recorded_under(name, &json!({}))
}

/// Gives the policy more members.
fn govern(place: &Workplace, more: &Value) {
    let policy = place.folder.join("repository/.aflock");
    let mut document: Value = serde_json::from_slice(&fs::read(&policy).unwrap()).unwrap();
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fs::write(policy, document.to_string()).unwrap();
}

/// What a manifest says of a file.
fn entry<'a>(manifest: &'a mut Value, path: &str) -> &'a mut Value {
    manifest["files"].as_array_mut().unwrap().iter_mut().find(|entry| entry["path"] == path).unwrap()
}

/// The same under a policy with more members.
fn recorded_under(name: &str, more: &Value) -> Workplace {
    let place = Workplace::new(name);
    govern(&place, more);
    let transcript = place.folder.join("repository/none.jsonl");
    let token = format!("{}{}", TOKEN.0, TOKEN.1);
    let input = json!({"file_path": place.folder.join("repository/src/module.rs"), "content": "text"});
    let calls = json!({"type": "assistant", "message": {"id": "m1", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 3, "output_tokens": 5},
        "content": [{"type": "tool_use", "id": "none", "name": "Write", "input": {}}, {"type": "tool_use", "id": "one", "name": "Write", "input": input}]}});
    let said = json!({"type": "user", "message": {"content": format!("log in with GITHUB_TOKEN={token}")}});
    let lines = format!("{}\n{said}\n{calls}\n", json!({"type": "user", "message": {"content": "write"}}));
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"write""#));
    place.answer(&place.write_call("none", ".env"));
    place.allowed("one");
    fs::write(&transcript, lines).unwrap();
    let agents = transcript.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("agent-a1.jsonl"), "{\"type\":\"user\",\"agentId\":\"a1\"}\n").unwrap();
    fs::write(agents.join("agent-a1.meta.json"), "{\"agentType\":\"Explore\"}").unwrap();
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    place
}

#[test]
fn a_bundle_is_verified_elsewhere_by_both() {
    let place = recorded("bundle-good");
    let key = key(&place);
    // One that is older than the session's end does not pass for all of it.
    let early = export(&place, "early.tar", &["--transcripts"]);
    for (code, said) in [writ(&place, &early, &key), python(&early, &key)] {
        let last = said.lines().find(|line| line.starts_with("verified")).unwrap_or_default();
        assert!(code == 0 && last.starts_with("verified up to row "), "{code} {said}");
        assert!(last.contains("the session had not ended when the bundle was made"), "{said}");
    }
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    let without =
        "verified by its rows: the bundle leaves the transcripts out, and what they alone tell was not looked for";
    for (name, more, last) in [("digests.tar", [].as_slice(), without), ("texts.tar", &["--transcripts"], "verified")] {
        let bundle = export(&place, name, more);
        let (ended, said) = writ(&place, &bundle, &key);
        assert!(ended == 0 && said.lines().any(|line| line == last), "{ended} {said}");
        let (code, said) = python(&bundle, &key);
        assert!(code == 0 && said.starts_with("verified"), "{code} {said}");
        // Whoever exports it again has the same bytes, and `tar` reads them.
        let again = export(&place, &format!("again-{name}"), more);
        assert_eq!(fs::read(&bundle).unwrap(), fs::read(again).unwrap());
        assert!(Command::new("tar").arg("tf").arg(&bundle).output().unwrap().status.success());
        assert_eq!(packed(&place, "repacked.tar", files(&bundle)), place.folder.join("repacked.tar"));
        assert_eq!(fs::read(&bundle).unwrap(), fs::read(place.folder.join("repacked.tar")).unwrap());
    }
    // Nobody gave a key, or another one.
    let bundle = place.folder.join("digests.tar");
    place.writ(&["keys", "generate", place.folder.join("other").to_str().unwrap()]);
    let other = place.folder.join("other.pub");
    assert_eq!((writ(&place, &bundle, &other).0, python(&bundle, &other).0), (3, 3));
}

/// What was put back from an older copy is not signed again as if it were all: the machine knows the last checkpoint it signed.
#[test]
fn an_older_record_put_back_makes_no_bundle() {
    let place = recorded("bundle-older");
    let (session, kept) = (place.session(), place.folder.join("kept"));
    let copied = |from: &Path, to: &Path| {
        let done = Command::new("cp").arg("-aT").arg(from).arg(to).status().unwrap();
        assert!(done.success());
    };
    copied(&session, &kept);
    place.answer(&place.write_call("later", ".env"));
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    export(&place, "whole.tar", &[]);
    fs::remove_dir_all(&session).unwrap();
    copied(&kept, &session);
    let out = place.folder.join("older.tar");
    let output = place.command(&["export", workplace::SESSION, "-o", out.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("lacks the last checkpoint that this machine signed") && !out.exists(), "{said}");
}

/// What the transcripts alone tell is said not to have been looked for where they are not there.
#[test]
fn without_transcripts_nothing_is_said_of_what_they_alone_tell() {
    let limit = json!({"maxTokensIn": {"value": 100, "enforcement": "post-hoc"}});
    let place = recorded_under("bundle-unread", &json!({"limits": limit}));
    let key = key(&place);
    // Behind the last stop: an answer beyond the limit.
    let transcript = place.folder.join("repository/none.jsonl");
    let late = json!({"type": "assistant", "message": {"id": "m9", "model": "claude-sonnet-4-5", "content": [],
        "usage": {"input_tokens": 5000, "output_tokens": 1}}});
    fs::write(&transcript, format!("{}{late}\n", fs::read_to_string(&transcript).unwrap())).unwrap();
    let of = |bundle: &Path| {
        let args = ["verify", bundle.to_str().unwrap(), "--trust", key.to_str().unwrap(), "--format", "json"];
        let mut command = place.command(&args);
        let output = command.env("WRIT_STATE_DIR", place.folder.join("auditor")).output().unwrap();
        (output.status.code().unwrap(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let outcome = |report: &Value, name: &str| {
        let phases = report["phases"].as_array().unwrap();
        phases.iter().find(|phase| phase["name"] == name).map(|phase| phase["outcome"].clone()).unwrap_or_default()
    };
    let digests = export(&place, "digests.tar", &[]);
    let (code, report) = of(&digests);
    assert_eq!((code, &report["status"]), (0, &json!("verified")), "{report:#}");
    assert!(outcome(&report, "limits") == "passed" && outcome(&report, "coverage") == "absent", "{report:#}");
    let (_, said) = writ(&place, &digests, &key);
    assert!(said.contains("\nverified by its rows, up to row "), "{said}");
    let (code, report) = of(&export(&place, "texts.tar", &["--transcripts"]));
    assert!(code == 3 && report["status"] == "breached" && outcome(&report, "limits") == "failed", "{report:#}");
}

/// That a transcript was cut or rewritten before the export, rows and manifest tell without it.
#[test]
fn a_transcript_that_was_cut_before_the_export_is_told_without_it() {
    let place = recorded("bundle-cut");
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    let key = key(&place);
    let transcript = place.folder.join("repository/none.jsonl");
    let whole = fs::read_to_string(&transcript).unwrap();
    assert_eq!(writ(&place, &export(&place, "whole.tar", &[]), &key).0, 0);
    let first = whole.split_inclusive('\n').next().unwrap();
    let other = whole.replacen("write", "wrote", 1);
    for (name, text) in [("emptied", ""), ("cut", first), ("rewritten", other.as_str())] {
        fs::write(&transcript, text).unwrap();
        for more in [[].as_slice(), &["--transcripts"]] {
            let bundle = export(&place, &format!("{name}-{}.tar", more.len()), more);
            let ((code, said), (other, reason)) = (writ(&place, &bundle, &key), python(&bundle, &key));
            assert!(code == 3 && said.contains("\nverified, except: "), "{name} {more:?} {code} {said}");
            assert!(other == 3 && reason.contains("was gone, shorter or other"), "{name} {other} {reason}");
        }
    }
}

/// A call that nobody saw does not go by the end of its line being left out.
#[test]
fn a_last_line_without_its_end_goes_along() {
    let place = recorded("bundle-unended");
    place.answer(&place.payload("SessionEnd", r#","reason":"exit""#));
    let transcript = place.folder.join("repository/none.jsonl");
    let hidden = json!({"type": "assistant", "message": {"id": "m9", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "hidden", "name": "Bash", "input": {"command": "id"}}]}});
    fs::write(&transcript, format!("{}{hidden}", fs::read_to_string(&transcript).unwrap())).unwrap();
    let (code, said) = writ(&place, &export(&place, "unended.tar", &["--transcripts"]), &key(&place));
    assert!(code == 3 && said.contains("unobserved: Bash hidden"), "{code} {said}");
}

/// A manifest that the machine did not sign is told at once, and nothing of the record is judged.
#[test]
fn a_manifest_that_nobody_signed_is_the_end_of_it() {
    let place = recorded("bundle-unsigned");
    let key = key(&place);
    let mut whole = files(&export(&place, "whole.tar", &["--transcripts"]));
    whole.insert("ledger.jsonl".to_owned(), vec![b'\n'; 64]);
    let bad = packed(&place, "bad.tar", whole);
    let (code, said) = writ(&place, &bad, &key);
    assert!(code == 3 && said.contains("the chain is broken"), "{code} {said}");
    // The same under another machine's signature.
    let mut bytes = fs::read(&bad).unwrap();
    let at = bytes.windows(10).position(|window| window == b"bundle.sig").unwrap() + 512;
    let first = if bytes[at] == b'A' { b'B' } else { b'A' };
    bytes[at] = first;
    fs::write(&bad, bytes).unwrap();
    let (code, said) = writ(&place, &bad, &key);
    let told = said.contains("NOT VERIFIED") && said.contains("did not sign the manifest; nothing else was looked at");
    assert!(code == 3 && told && !said.contains("the chain is broken"), "{code} {said}");
    assert_eq!(python(&bad, &key).0, 3);
}

/// What a command writes for people does not go where the record is kept.
#[test]
fn nothing_is_written_into_writs_own_folder() {
    let place = recorded("bundle-inside");
    let (session, state) = (place.session(), place.folder.join("state"));
    std::os::unix::fs::symlink(&session, place.folder.join("link")).unwrap();
    let names = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = (names(&session), names(&state));
    for folder in [session.as_path(), &state, &place.folder.join("link"), &session.join("policies")] {
        let file = folder.join("run.out");
        let file = file.to_str().unwrap();
        for args in [["export", SESSION, "-o", file], ["report", SESSION, "-o", file]] {
            let output = place.writ(&args);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(1) && said.contains("give another place"), "{args:?} {said}");
        }
    }
    assert_eq!((names(&session), names(&state)), before);
    assert!(place.writ(&["verify", SESSION]).status.success());
    export(&place, "beside.tar", &[]);
}

/// What a killed process laid out, the next one clears away.
#[test]
fn what_a_killed_verification_laid_out_goes_with_the_next() {
    let place = recorded("bundle-killed");
    let key = key(&place);
    let bundle = export(&place, "whole.tar", &["--transcripts"]);
    let temporary = place.folder.join("temporary");
    fs::create_dir(&temporary).unwrap();
    let verify = || {
        let mut command = place.command(&["verify", bundle.to_str().unwrap(), "--trust", key.to_str().unwrap()]);
        command.env("TMPDIR", &temporary).stdout(std::process::Stdio::null());
        command
    };
    let left = || fs::read_dir(&temporary).unwrap().count();
    // Killed as soon as its room is there; one that was faster is tried again.
    let killed = (0..50).any(|_| {
        let mut child = verify().spawn().unwrap();
        while left() == 0 && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        left() > 0
    });
    assert!(killed && left() == 1);
    assert!(verify().status().unwrap().success());
    assert_eq!(left(), 0);
}

#[test]
fn transcripts_go_along_when_asked_for_with_their_secrets_masked() {
    let place = recorded("bundle-texts");
    let token = format!("{}{}", TOKEN.0, TOKEN.1);
    let holds = |bundle: &Path| String::from_utf8_lossy(&fs::read(bundle).unwrap()).contains(&token);
    let digests = export(&place, "digests.tar", &[]);
    assert!(!files(&digests).keys().any(|path| path.starts_with("transcripts/")) && !holds(&digests));
    let texts = export(&place, "texts.tar", &["--transcripts"]);
    let inside = files(&texts);
    assert!(!holds(&texts));
    let names: Vec<&String> = inside.keys().filter(|path| path.starts_with("transcripts/")).collect();
    let agent = "transcripts/0/none/subagents/agent-a1";
    assert_eq!(names, ["transcripts/0/none.jsonl", &format!("{agent}.jsonl"), &format!("{agent}.meta.json")]);
    let text = String::from_utf8(inside["transcripts/0/none.jsonl"].clone()).unwrap();
    let here = fs::read_to_string(place.folder.join("repository/none.jsonl")).unwrap();
    let [first, second, third] =
        [0, 1, 2].map(|line| (text.lines().nth(line).unwrap(), here.lines().nth(line).unwrap()));
    assert!(first.0 == first.1 && third.0 == third.1 && second.0.contains("[secret]"), "{text}");
    let manifest: Value = serde_json::from_slice(&inside["bundle.json"]).unwrap();
    let leaf = Digest::of(&[b"\0", second.1.as_bytes()].concat()).hex();
    let main = manifest["transcripts"].as_array().unwrap().iter().find(|told| told["name"] == "main").unwrap();
    assert_eq!(main["masked"], json!([[1, leaf, second.1.len()]]));
    // What the transcript tells is checked there: every call of it is on record.
    let (_, said) = writ(&place, &texts, &key(&place));
    assert!(said.contains("all 2 calls of the transcript are on record"), "{said}");
    let (_, said) = writ(&place, &digests, &key(&place));
    assert!(said.contains("the bundle holds the transcripts' digests, not their text"), "{said}");
}

#[test]
fn whatever_byte_is_changed_both_refuse() {
    let place = recorded("bundle-bytes");
    let key = key(&place);
    let bundle = export(&place, "whole.tar", &["--transcripts"]);
    let bytes = fs::read(&bundle).unwrap();
    let folder = place.folder.join("broken");
    fs::create_dir(&folder).unwrap();
    // A step that meets every part of each file and each header in time.
    let places: Vec<usize> = (0..bytes.len()).step_by(211).chain([0, 124, 511, 512, bytes.len() - 1]).collect();
    for at in &places {
        let mut other = bytes.clone();
        other[*at] ^= 1 << (at % 8);
        fs::write(folder.join(format!("{at}.tar")), other).unwrap();
    }
    // Cut in each header, in the manifest, in its padding, behind it and before the end.
    let manifest = 512 + usize::from_str_radix(str::from_utf8(&bytes[124..135]).unwrap(), 8).unwrap();
    for at in [0, 300, 512, 700, manifest, manifest + 1, manifest + 600, bytes.len() / 2, bytes.len() - 512] {
        fs::write(folder.join(format!("cut-{at}.tar")), &bytes[..at]).unwrap();
    }
    fs::write(folder.join("longer.tar"), [bytes.as_slice(), &[0; 512]].concat()).unwrap();
    let mut ours = BTreeMap::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let (code, said) = writ(&place, &path, &key);
        assert!(matches!(code, 3 | 4), "{}: {code} {said}", path.display());
        assert!(!said.contains("panicked"), "{said}");
        ours.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), code);
    }
    let script = "import os,sys\nsys.path.insert(0, sys.argv[1])\nimport bundle\nkey = bundle.Key.pem(open(sys.argv[2],'rb').read())\n\
         for name in os.listdir(sys.argv[3]):\n    try: code = bundle.verify(os.path.join(sys.argv[3], name), key) and 0\n    \
         except bundle.Malformed: code = 4\n    \
         except (bundle.Broken, KeyError, TypeError, ValueError): code = 3\n    print(name, code or 0)\n";
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verifiers/python");
    let mut judge = Command::new("/usr/bin/python3");
    let output = judge.args(["-c", script]).arg(scripts).arg(&key).arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let theirs = said.lines().filter_map(|line| line.split_once(' '));
    let theirs: BTreeMap<_, _> = theirs.map(|(name, code)| (name.to_owned(), code.parse::<i32>().unwrap())).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn a_bundle_that_somebody_packed_anew_is_refused_by_both() {
    let place = recorded("bundle-anew");
    let key = key(&place);
    let whole = files(&export(&place, "whole.tar", &["--transcripts"]));
    let other = recorded("bundle-other");
    let strange = files(&export(&other, "other.tar", &[]));
    let policy = whole.keys().find(|path| path.starts_with("policies/")).unwrap().clone();
    let text = |files: &BTreeMap<String, Vec<u8>>, path: &str| String::from_utf8(files[path].clone()).unwrap();
    type Change<'a> = &'a dyn Fn(&mut BTreeMap<String, Vec<u8>>);
    let changes: [(&str, Change<'_>); 12] = [
        ("a row edited", &|files| {
            let ledger = text(files, "ledger.jsonl").replacen("DENIED", "APPROVED", 1);
            files.insert("ledger.jsonl".to_owned(), ledger.into_bytes());
        }),
        ("the last row gone", &|files| {
            let ledger = text(files, "ledger.jsonl");
            let kept = ledger.trim_end().rfind('\n').unwrap() + 1;
            files.insert("ledger.jsonl".to_owned(), ledger[..kept].into());
        }),
        ("two rows swapped", &|files| {
            let ledger = text(files, "ledger.jsonl");
            let mut lines: Vec<&str> = ledger.lines().collect();
            lines.swap(1, 2);
            files.insert("ledger.jsonl".to_owned(), (lines.join("\n") + "\n").into_bytes());
        }),
        ("no rows", &|files| drop(files.insert("ledger.jsonl".to_owned(), Vec::new()))),
        ("no checkpoints", &|files| drop(files.remove("checkpoints"))),
        ("checkpoints of another session", &|files| {
            files.insert("checkpoints".to_owned(), strange["checkpoints"].clone());
        }),
        ("no key", &|files| drop(files.remove("ledger.pub"))),
        ("another's key", &|files| drop(files.insert("ledger.pub".to_owned(), strange["ledger.pub"].clone()))),
        ("the policy gone", &|files| drop(files.remove(&policy))),
        ("another policy under its name", &|files| {
            let looser = text(files, &policy).replace("**/.env", "none");
            files.insert(policy.clone(), looser.into_bytes());
        }),
        ("a file that nobody names", &|files| {
            let bytes = b"{}".to_vec();
            files.insert(format!("claims/{}.json", Digest::of(&bytes).hex()), bytes);
        }),
        ("another transcript", &|files| {
            let path = "transcripts/0/none/subagents/agent-a1.jsonl";
            files.insert(path.to_owned(), b"{\"type\":\"user\"}\n".to_vec());
        }),
    ];
    let good = packed(&place, "good.tar", whole.clone());
    assert_eq!((writ(&place, &good, &key).0, python(&good, &key).0), (0, 0));
    for (what, change) in changes {
        let mut files = whole.clone();
        change(&mut files);
        let bundle = packed(&place, "anew.tar", files);
        let (writ, python) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert!(matches!(writ.0, 3 | 4), "{what}: {} {}", writ.0, writ.1);
        assert!(matches!(python.0, 3 | 4), "{what}: {} {}", python.0, python.1);
    }
    // A record that is whole, of a machine that nobody here trusts.
    let bundle = packed(&place, "strange.tar", strange);
    assert_eq!((writ(&place, &bundle, &key).0, python(&bundle, &key).0), (3, 3));
}

/// Whoever has the machine's key adds nothing to a record either: no copy of what is named, no file in another place, no other transcript.
#[test]
fn a_file_has_one_place_for_both() {
    let place = recorded_under("bundle-places", &json!({"attestationDir": "./attestations"}));
    let key = key(&place);
    let whole = files(&export(&place, "whole.tar", &["--transcripts"]));
    let named = |kind: &str| whole.keys().find(|path| path.starts_with(kind)).unwrap().clone();
    let policy = whole[&named("policies/")].clone();
    let turn = whole[&named("attestations/turn-")].clone();
    let digest = Digest::of(&turn).hex();
    let (said, claimed) = (format!("statements/{digest}.json"), format!("claims/{digest}.json"));
    let text = whole["transcripts/0/none.jsonl"].clone();
    let added = [
        ("README", &policy),
        ("evil/policy", &policy),
        ("ledger.jsonl.bak", &policy),
        ("policies/copy", &policy),
        ("statements/copy.json", &policy),
        ("claims/copy.json", &policy),
        ("attestations/turn-1-part-2.json", &turn),
        (said.as_str(), &turn),
        (claimed.as_str(), &turn),
        ("transcripts/0/other.jsonl", &text),
        ("transcripts/0/other.meta.json", &text),
        ("transcripts/0/none.jsonl/more", &text),
        ("ledger.jsonl/more", &text),
    ];
    for (path, bytes) in added {
        let mut files = whole.clone();
        files.insert(path.to_owned(), bytes.clone());
        let bundle = packed(&place, "added.tar", files);
        let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert_eq!((own.0, other.0), (3, 3), "{path}: {} {}", own.1, other.1);
    }
    for gone in ["ledger.jsonl", "transcripts/0/none.jsonl"] {
        let mut files = whole.clone();
        files.remove(gone);
        let bundle = packed(&place, "gone.tar", files);
        let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert_eq!((own.0, other.0), (3, 3), "{gone}: {} {}", own.1, other.1);
    }
}

/// What rows name is in a bundle, all of it, and nothing else that lies about: also where a policy has turns attested and steps run.
#[test]
fn a_bundle_has_what_rows_name_and_nothing_else() {
    let more = json!({"attestationDir": "./attestations", "requiredAttestations": ["qc"]});
    let place = recorded_under("bundle-named", &more);
    let step = place.command(&["step", "run", "qc", "--", "true"]).env("PATH", "/usr/bin:/bin").output().unwrap();
    assert!(step.status.success(), "{}", String::from_utf8_lossy(&step.stderr));
    let (session, key) = (place.session(), key(&place));
    let stray = session.join("identities").join(format!("{}.json", "0".repeat(64)));
    fs::write(&stray, "{}").unwrap();
    fs::write(session.join("attestations/turn-9.json"), "{}").unwrap();
    let good = export(&place, "named.tar", &["--transcripts"]);
    let names: Vec<String> = files(&good).into_keys().collect();
    assert!(!names.iter().any(|name| name.contains("0000000000") || name.contains("turn-9")), "{names:?}");
    for kind in ["attestations/turn-", "statements/", "identities/", "policies/", "prices/"] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{kind}: {names:?}");
    }
    let (own, other) = (writ(&place, &good, &key), python(&good, &key));
    assert!(own.1.contains("\nverified") && other.0 == 0, "{} {}", own.1, other.1);
    // Turns are held against the transcript although a line of it is masked, by the hash that the line had.
    let bound = "1 statements are where the transcripts have their turns";
    assert!(own.1.contains(bound), "{}", own.1);
    let masked = |manifest: &mut Value, at: usize, to: Value| {
        let main = |told: &&mut Value| told["name"] == "main";
        manifest["transcripts"].as_array_mut().unwrap().iter_mut().find(main).unwrap()["masked"][0][at] = to;
        serde_json::to_vec(manifest).unwrap()
    };
    for (at, to) in [(1, json!("0".repeat(64))), (2, json!(1))] {
        let other = packed_as(&place, "hash.tar", files(&good), &|manifest| masked(manifest, at, to.clone()));
        let (code, said) = writ(&place, &other, &key);
        assert!(code == 3 && !said.contains(bound), "{code} {said}");
    }
    let (_, said) = writ(&place, &export(&place, "digests.tar", &[]), &key);
    assert!(said.contains("bound transcripts") && said.contains("proofs and roots were checked"), "{said}");
    // The same record with one of them gone, or in another's place, exported as if nothing were.
    let file = |kind: &str| {
        let named = |path: &PathBuf| *path != stray && !path.ends_with("turn-9.json");
        fs::read_dir(session.join(kind)).unwrap().map(|entry| entry.unwrap().path()).find(named).unwrap()
    };
    for kind in ["statements", "attestations", "identities", "policies"] {
        let path = file(kind);
        let bytes = fs::read(&path).unwrap();
        for gone in [true, false] {
            if gone {
                fs::remove_file(&path).unwrap()
            } else {
                fs::write(&path, "{}").unwrap()
            }
            let bad = export(&place, &format!("bad-{kind}-{gone}.tar"), &["--transcripts"]);
            let (own, other) = (writ(&place, &bad, &key), python(&bad, &key));
            assert!(own.0 == 3 && own.1.contains("NOT VERIFIED"), "{kind}: {}", own.1);
            assert!(other.0 == 3 && other.1.contains("NOT VERIFIED"), "{kind}: {}", other.1);
            fs::write(&path, &bytes).unwrap();
        }
    }
}

/// A statement that somebody else signed is theirs in the record, and no other's: for both verifiers.
#[test]
fn what_somebody_else_signed_is_taken_as_theirs() {
    let place = recorded_under("bundle-imported", &json!({"requiredAttestations": ["build"]}));
    let key = key(&place);
    let other = SigningKey::generate(writ_evidence::keys::Algorithm::P256).unwrap();
    fs::write(place.folder.join("ci.pub"), other.public().to_pem()).unwrap();
    fs::copy(place.session().join("ledger.pub"), place.folder.join("strange.pub")).unwrap();
    let collection = json!({"_type": "https://in-toto.io/Statement/v0.1", "subject": [{"name": "app", "digest": {"sha256": "00"}}],
        "predicateType": "https://witness.testifysec.com/attestation-collection/v0.1",
        "predicate": {"name": "build", "attestations": [{"type": "https://witness.dev/attestations/git/v0.1", "attestation": {}}]}});
    let action = json!({"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "session:x/action:y", "digest": {"sha256": "00"}}],
        "predicateType": "https://aflock.ai/attestations/action/v0.1", "predicate": {"action": "Bash", "decision": "allow"}});
    let enveloped = |statement: &Value, legacy: bool| {
        let (kind, body) = ("application/vnd.in-toto+json", statement.to_string().into_bytes());
        let mut words = format!("DSSEv1 {} {kind} {} ", kind.len(), body.len()).into_bytes();
        if legacy {
            let length = |part: &[u8]| (part.len() as u64).to_le_bytes();
            words = [b"DSSEv1", length(kind.as_bytes()).as_slice(), kind.as_bytes(), &length(&body)].concat();
        }
        words.extend(&body);
        let signature = BASE64.encode(other.sign(&words).unwrap());
        json!({"payloadType": kind, "payload": BASE64.encode(&body), "signatures": [{"keyid": "", "sig": signature}]})
            .to_string()
    };
    fs::write(place.folder.join("build.json"), enveloped(&collection, false)).unwrap();
    fs::write(place.folder.join("action.json"), enveloped(&action, true)).unwrap();
    let import = |file: &str, key: &str, more: &[&str]| {
        let (file, key) = (place.folder.join(file), place.folder.join(key));
        let args = ["attestation", "import", file.to_str().unwrap(), "--key", key.to_str().unwrap()];
        let output = place.writ(&[&args[..], more].concat());
        (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    for (what, code, said) in [
        ("another key", import("build.json", "strange.pub", &[]), "none of the given keys signed it"),
        ("no name", import("action.json", "ci.pub", &[]), "give it one with `--name`"),
        (
            "another step",
            import("build.json", "ci.pub", &["--name", "test"]),
            "it is of the step `build`, not of `test`",
        ),
        ("a turn's name", import("action.json", "ci.pub", &["--name", "turn-1"]), "no name of a step"),
    ]
    .map(|(what, (code, said), want)| (what, code, (said, want)))
    {
        assert!(code != 0 && said.0.contains(said.1), "{what}: {code} {}", said.0);
    }
    let (code, said) = import("build.json", "ci.pub", &[]);
    assert!(code == 0 && said.contains("`build`") && said.contains("imported, signed by"), "{code} {said}");
    let (code, said) = import("action.json", "ci.pub", &["--name", "action"]);
    assert!(code == 0 && said.contains("which is not DSSE's"), "{code} {said}");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let good = export(&place, "imported.tar", &["--transcripts"]);
    let (own, theirs) = (writ(&place, &good, &key), python(&good, &key));
    // It is theirs, and the policy names nobody whose word counts.
    assert!(own.1.contains("imported, signed by") && own.1.contains("no functionary"), "{} {}", own.0, own.1);
    assert!(own.1.contains("breached") && theirs.0 == 0, "{} {}", own.1, theirs.1);
    // Neither takes it where the row's key is not the one that signed.
    let statements = fs::read_dir(place.session().join("statements")).unwrap().map(|entry| entry.unwrap().path());
    for path in statements {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, String::from_utf8(bytes.clone()).unwrap().replace("signatures", "signatures ")).unwrap();
        let bad = export(&place, &format!("bad-{}.tar", path.file_stem().unwrap().to_str().unwrap()), &[]);
        assert_eq!((writ(&place, &bad, &key).0, python(&bad, &key).0), (3, 3));
        fs::write(&path, bytes).unwrap();
    }
}

/// What a verification came to, for others: signed by the verifier's own key.
#[test]
fn a_verification_can_be_summed_up_and_signed() {
    let place = recorded("bundle-vsa");
    let key = key(&place);
    let bundle = export(&place, "whole.tar", &["--transcripts"]);
    let signer = place.folder.join("auditor");
    place.writ(&["keys", "generate", signer.to_str().unwrap()]);
    let public = PublicKey::from_pem(&fs::read_to_string(place.folder.join("auditor.pub")).unwrap()).unwrap();
    let pem = [signer.clone(), place.folder.join("auditor.pem")].into_iter().find(|path| path.exists()).unwrap();
    let summed = |target: &str, name: &str| {
        let to = place.folder.join(name);
        let args = [
            "verify",
            target,
            "--trust",
            key.to_str().unwrap(),
            "--vsa",
            to.to_str().unwrap(),
            "--vsa-key",
            pem.to_str().unwrap(),
        ];
        let code = place.writ(&args).status.code().unwrap();
        let envelope = Envelope::parse(&fs::read(&to).unwrap()).unwrap();
        let payload = envelope.verify(std::slice::from_ref(&public)).unwrap().into_payload();
        (code, serde_json::from_slice::<Value>(&payload).unwrap())
    };
    let (code, passed) = summed(bundle.to_str().unwrap(), "passed.json");
    assert_eq!(
        (code, passed["predicateType"].as_str()),
        (0, Some("https://slsa.dev/verification_summary/v1")),
        "{passed}"
    );
    let predicate = &passed["predicate"];
    assert_eq!(
        (&predicate["verificationResult"], &predicate["verifiedLevels"]),
        (&json!("PASSED"), &json!(["WRIT_SESSION_VERIFIED"]))
    );
    // One that leaves the transcripts out is another thing to whoever relies on it.
    let (code, by_rows) = summed(export(&place, "rows.tar", &[]).to_str().unwrap(), "rows.json");
    assert_eq!((code, &by_rows["predicate"]["verifiedLevels"]), (0, &json!(["WRIT_SESSION_ROWS_VERIFIED"])));
    let digest = json!({"sha256": Digest::of(&fs::read(&bundle).unwrap()).hex()});
    assert_eq!(predicate["inputAttestations"], json!([{"uri": "whole.tar", "digest": digest}]));
    assert_eq!(
        (&passed["subject"][1]["digest"], &passed["subject"][0]["name"]),
        (&digest, &json!(format!("agentflow:run:{SESSION}")))
    );
    assert!(predicate["policy"]["digest"]["sha256"].is_string() && predicate["timeVerified"].is_string(), "{passed}");
    let text = predicate.to_string();
    assert!(!text.contains(place.folder.to_str().unwrap()), "no machine's paths: {text}");
    // What is not verified is summed up as failed.
    let ledger = place.session().join("ledger.jsonl");
    let rows = fs::read_to_string(&ledger).unwrap();
    fs::write(&ledger, rows.replacen("DENIED", "APPROVED", 1)).unwrap();
    let (code, failed) = summed(SESSION, "failed.json");
    assert_eq!((code, &failed["predicate"]["verificationResult"]), (3, &json!("FAILED")), "{failed}");
    assert!(place.writ(&["verify", SESSION, "--vsa", "x.json"]).status.code() == Some(2), "a summary wants a key");
}

/// What a manifest may say is the same for both, and so is their exit code.
#[test]
fn a_manifest_has_one_form_for_both() {
    let place = recorded("bundle-manifest");
    let key = key(&place);
    let whole = files(&export(&place, "whole.tar", &["--transcripts"]));
    type Change<'a> = &'a dyn Fn(&mut Value);
    let changes: [(&str, i32, Change<'_>); 29] = [
        ("nothing", 0, &|_| {}),
        ("another format", 4, &|told| told["format"] = json!("tar")),
        ("version 2", 4, &|told| told["version"] = json!(2)),
        ("a version that is no number", 4, &|told| told["version"] = json!(true)),
        ("no version", 4, &|told| drop(told.as_object_mut().unwrap().remove("version"))),
        ("no session", 3, &|told| told["session"] = json!(null)),
        ("another session", 3, &|told| told["session"] = json!("x")),
        ("an unknown member", 3, &|told| told["more"] = json!(1)),
        ("transcripts that are no list", 3, &|told| told["transcripts"] = json!({})),
        ("a transcript that is a text", 3, &|told| told["transcripts"][0] = json!("x")),
        ("an unknown member of a transcript", 3, &|told| told["transcripts"][0]["more"] = json!(1)),
        ("no name", 3, &|told| drop(told["transcripts"][0].as_object_mut().unwrap().remove("name"))),
        ("a name that is no text", 3, &|told| told["transcripts"][0]["name"] = json!(1)),
        ("a size below zero", 3, &|told| told["transcripts"][0]["size"] = json!(-1)),
        ("a size with a part", 3, &|told| told["transcripts"][0]["size"] = json!(1.5)),
        ("a size that no reader has exactly", 3, &|told| told["transcripts"][0]["size"] = json!(1_u64 << 60)),
        ("an upper-case digest", 3, &|told| told["transcripts"][0]["sha256"] = json!("A".repeat(64))),
        ("a path elsewhere", 3, &|told| told["transcripts"][0]["path"] = json!("ledger.jsonl")),
        ("a path up", 3, &|told| told["transcripts"][0]["path"] = json!("transcripts/../ledger.jsonl")),
        ("a path of nothing", 3, &|told| told["transcripts"][0]["path"] = json!("transcripts/none")),
        ("a path of null", 3, &|told| told["transcripts"][0]["path"] = json!(null)),
        ("masked lines that are none", 3, &|told| told["transcripts"][0]["masked"] = json!([])),
        ("masked lines of another form", 3, &|told| told["transcripts"][0]["masked"] = json!([[1, "0".repeat(64)]])),
        ("a file's size as a text", 3, &|told| told["files"][0]["size"] = json!("1")),
        ("a path of nothing at all", 3, &|told| told["files"][0]["path"] = json!("")),
        ("a path that no header has room for", 3, &|told| told["files"][0]["path"] = json!("x".repeat(300))),
        ("checkpoints that nobody reads whole", 3, &|told| entry(told, "checkpoints")["size"] = json!(65 << 20)),
        ("a ledger that no archive has room for", 3, &|told| entry(told, "ledger.jsonl")["size"] = json!(1_u64 << 33)),
        ("files the other way round", 3, &|told| told["files"].as_array_mut().unwrap().reverse()),
    ];
    for (what, code, change) in changes {
        let bundle = packed_as(&place, "other.tar", whole.clone(), &|manifest| {
            change(manifest);
            sorted(manifest)
        });
        let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert_eq!((own.0, other.0), (code, code), "{what}: {} {}", own.1, other.1);
    }
    for (what, code, from, to) in [
        ("spaces", 3, ":", ": "),
        ("a member twice", 4, "{", "{\"format\":\"writ-bundle\","),
        ("no JSON", 4, "{", "["),
        ("half a letter", 4, "\"session\":\"", "\"session\":\"\\ud800"),
        ("a number that no reader has", 4, "\"version\":1", "\"version\":1e400"),
        ("another spelling of the version", 3, "\"version\":1", "\"version\":1.0"),
    ] {
        let written =
            |manifest: &mut Value| serde_json::to_string(manifest).unwrap().replacen(from, to, 1).into_bytes();
        let bundle = packed_as(&place, "text.tar", whole.clone(), &written);
        let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert_eq!((own.0, other.0), (code, code), "{what}: {} {}", own.1, other.1);
    }
}

/// The public half of a new key that OpenSSL makes.
fn openssl(options: &[&str]) -> String {
    let made = Command::new("openssl").arg("genpkey").args(options).output().unwrap();
    let mut public =
        Command::new("openssl").args(["pkey", "-pubout"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    public.stdin.take().unwrap().write_all(&made.stdout).unwrap();
    String::from_utf8(public.wait_with_output().unwrap().stdout).unwrap()
}

/// What is no plain file, and no one key, is neither waited for nor taken.
#[test]
fn odd_files_and_keys_are_refused_by_both() {
    let place = recorded("bundle-odd");
    let (key, bundle) = (key(&place), export(&place, "whole.tar", &[]));
    let pem = fs::read_to_string(&key).unwrap();
    for (name, text, code) in [
        ("empty", String::new(), 4),
        ("garbage", "key".to_owned(), 4),
        ("twice", pem.repeat(2), 4),
        ("among-text", format!("my key:\n{pem}"), 4),
        ("crlf", pem.replace('\n', "\r\n"), 0),
        ("newlines", format!("\n\n{}", pem.trim_end()), 0),
        ("broken-line", pem.replacen("MC", "M\nC", 1), 4),
        ("blank-line", pem.replacen("-----\n", "-----\n\n", 1), 4),
        ("blank-behind", pem.replacen("-----\n", "----- \n", 1), 4),
        ("long", format!("{pem}{}", "\n".repeat(9000)), 4),
        ("p384", openssl(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]), 4),
        ("rsa", openssl(&["-algorithm", "RSA"]), 4),
    ] {
        let key = place.folder.join(name);
        fs::write(&key, text).unwrap();
        let (own, other) = (writ(&place, &bundle, &key), python(&bundle, &key));
        assert_eq!((own.0, other.0), (code, code), "{name}: {} {}", own.1, other.1);
    }
    let pipe = place.folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for odd in [&pipe, &PathBuf::from("/dev/zero"), &place.folder.join("none")] {
        let (own, other) = (writ(&place, odd, &key), python(odd, &key));
        assert_eq!((own.0, other.0), (1, 1), "{}: {} {}", odd.display(), own.1, other.1);
        assert_eq!((writ(&place, &bundle, odd).0, python(&bundle, odd).0), (1, 1), "{}", odd.display());
    }
}

/// The policy of a sub-agent's type and the text of a rule are missed by both, and so is a row in another spelling.
#[test]
fn what_a_list_of_layers_names_is_missed_by_both() {
    let rule = "package p\nimport rego.v1\ndeny contains \"x\" if false\n";
    let more = json!({
        "sublayouts": [{"name": "research", "policy": {"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}}}],
        "evaluators": {"rego": [{"name": "rule", "policy": "./rule.rego"}]},
    });
    let place = Workplace::new("bundle-layers");
    fs::write(place.folder.join("repository/rule.rego"), rule).unwrap();
    govern(&place, &more);
    place.start();
    place.allowed("1");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let key = key(&place);
    let good = files(&export(&place, "good.tar", &[]));
    let own = writ(&place, &place.folder.join("good.tar"), &key);
    let other = python(&place.folder.join("good.tar"), &key);
    assert!(own.1.contains("\nverified") && other.0 == 0, "{} {}", own.1, other.1);
    let held = |text: &str| {
        let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        good.iter().find(|(path, bytes)| path.starts_with("policies/") && holds(bytes)).unwrap().0.clone()
    };
    let root = good.keys().filter(|path| path.starts_with("policies/")).count();
    assert_eq!(root, 3, "{:?}", good.keys());
    // A layer lies in the root's document too: its own file is the shorter.
    let layers = good.iter().filter(|(path, bytes)| path.starts_with("policies/") && bytes.starts_with(b"{"));
    let layer = layers.min_by_key(|(_, bytes)| bytes.len()).unwrap().0.clone();
    for path in [layer, held("package p")] {
        let mut less = good.clone();
        less.remove(&path);
        let bad = packed(&place, "bad.tar", less);
        let (own, other) = (writ(&place, &bad, &key), python(&bad, &key));
        assert!(own.0 == 3 && other.0 == 3, "{path}: {} {}", own.1, other.1);
    }
}

/// A path in a bundle paints no terminal, of either verifier.
#[test]
fn a_path_that_would_paint_the_terminal_is_made_visible() {
    let place = recorded("bundle-paint");
    let key = key(&place);
    let mut painted = files(&export(&place, "good.tar", &[]));
    painted.insert("claims/\u{1b}[2K\rverified".to_owned(), b"x".to_vec());
    let bad = packed(&place, "painted.tar", painted);
    for (code, said) in [writ(&place, &bad, &key), python(&bad, &key)] {
        assert!(code != 0 && !said.contains('\u{1b}') && !said.contains('\r'), "{code} {said:?}");
    }
}

#[test]
fn what_is_no_bundle_is_told_with_a_remedy() {
    let place = recorded("bundle-none");
    let key = key(&place);
    let bundle = export(&place, "whole.tar", &[]);
    let there = place.writ(&["export", SESSION, "-o", bundle.to_str().unwrap()]);
    let said = String::from_utf8(there.stderr).unwrap();
    assert!(there.status.code() == Some(1) && said.contains("--force"), "{said}");
    let text = place.folder.join("text");
    fs::write(&text, "x".repeat(4096)).unwrap();
    let (code, said) = writ(&place, &text, &key);
    assert!(code == 4 && said.contains("`writ export` makes one"), "{code} {said}");
    let missing = place.writ(&["export", "nobody"]);
    assert_eq!(missing.status.code(), Some(1));
    // A path that leads out of the folder.
    let mut inside = files(&bundle);
    inside.insert("a/b".to_owned(), Vec::new());
    let path = packed(&place, "out.tar", inside);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(3).position(|window| window == b"a/b").unwrap();
    bytes[at..at + 3].copy_from_slice(b"../");
    fs::write(&path, bytes).unwrap();
    let (code, said) = writ(&place, &path, &key);
    assert!(code == 3 && said.contains("is no path below it"), "{code} {said}");
}
