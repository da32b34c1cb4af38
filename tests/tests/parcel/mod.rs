//! Bundles: exported, taken apart, put together again with something changed, and verified by Writ and by the verifier that is not.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use writ_core::Digest;
use writ_evidence::keys::SigningKey;

use crate::workplace::{SESSION, Workplace};

/// Exports the session, and gives the bundle's path.
pub fn export(place: &Workplace, name: &str, more: &[&str]) -> PathBuf {
    let to = place.folder.join(name);
    let output = place.writ(&[&["export", SESSION, "-o", to.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().last().unwrap(), Digest::of(&fs::read(&to).unwrap()).to_string());
    to
}

/// The key as whoever verifies got it.
pub fn key(place: &Workplace) -> PathBuf {
    let to = place.folder.join("trusted.pem");
    fs::copy(place.session().join("ledger.pub"), &to).unwrap();
    to
}

/// Writ on another machine: the exit code and what it says.
pub fn writ(place: &Workplace, bundle: &Path, key: &Path) -> (i32, String) {
    let mut command = place.command(&["verify", bundle.to_str().unwrap(), "--trust", key.to_str().unwrap()]);
    let output = command.env("WRIT_STATE_DIR", place.folder.join("auditor")).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The verifier that is not Writ.
pub fn python(bundle: &Path, key: &Path) -> (i32, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verifiers/python/bundle.py");
    let output = Command::new("/usr/bin/python3").arg(script).arg(bundle).arg("--trust").arg(key).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The files of a bundle, its manifest among them.
pub fn files(bundle: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(fs::File::open(bundle).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, fs::File>>| {
        let mut entry = entry.unwrap();
        let (path, mut bytes) = (entry.path().unwrap().to_str().unwrap().to_owned(), Vec::new());
        entry.read_to_end(&mut bytes).unwrap();
        (path, bytes)
    };
    archive.entries().unwrap().map(read).collect()
}

/// A bundle of these files, whose manifest lists them as they are now, signed by whoever has the machine's key.
pub fn packed(place: &Workplace, name: &str, files: BTreeMap<String, Vec<u8>>) -> PathBuf {
    packed_as(place, name, files, &sorted)
}

/// JSON whose members are in order; where no number and no text needs another form, that is its canonical form.
pub fn sorted(value: &mut Value) -> Vec<u8> {
    value.sort_all_objects();
    serde_json::to_vec(value).unwrap()
}

/// The same with a manifest that is changed before it is signed.
pub fn packed_as(
    place: &Workplace,
    name: &str,
    mut files: BTreeMap<String, Vec<u8>>,
    written: &dyn Fn(&mut Value) -> Vec<u8>,
) -> PathBuf {
    files.remove("bundle.sig");
    let mut manifest: Value = serde_json::from_slice(&files.remove("bundle.json").unwrap()).unwrap();
    let listed = |(path, bytes): (&String, &Vec<u8>)| json!({"path": path, "size": bytes.len(), "sha256": Digest::of(bytes).hex()});
    manifest["files"] = files.iter().map(listed).collect();
    let mut archive = tar::Builder::new(Vec::new());
    let text = written(&mut manifest);
    let key = SigningKey::from_pem(&fs::read_to_string(place.folder.join("state/keys/ledger.pem")).unwrap()).unwrap();
    let words = format!("writ/bundle/v1\n{}\n", Digest::of(&text).hex());
    let signature = (BASE64.encode(key.sign(words.as_bytes()).unwrap()) + "\n").into_bytes();
    let first = [("bundle.json".to_owned(), text), ("bundle.sig".to_owned(), signature)];
    for (path, bytes) in first.into_iter().chain(files) {
        let mut header = tar::Header::new_ustar();
        header.set_path(&path).unwrap();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append(&header, bytes.as_slice()).unwrap();
    }
    let to = place.folder.join(name);
    fs::write(&to, archive.into_inner().unwrap()).unwrap();
    to
}
