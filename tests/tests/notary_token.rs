//! A notary whose key a PKCS#11 token keeps: SoftHSM, asked through OpenSC.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use workplace::{SESSION, Workplace};

const PIN: &str = "4711-geheim";

/// A token, with keys in it.
struct Token {
    place: Workplace,
    module: PathBuf,
}

impl Token {
    fn new(name: &str) -> Self {
        let place = Workplace::new(name);
        let policy = r#"{"version":"1.0","name":"kept","custody":"pkcs11"}"#;
        fs::write(place.folder.join("repository/.aflock"), policy).unwrap();
        fs::create_dir(place.folder.join("tokens")).unwrap();
        let settings =
            format!("directories.tokendir = {}/tokens\nobjectstore.backend = file\n", place.folder.display());
        fs::write(place.folder.join("softhsm2.conf"), settings).unwrap();
        let modules = ["/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so"];
        let module =
            modules.map(PathBuf::from).into_iter().find(|path| path.is_file()).expect("this test needs SoftHSM");
        let token = Self { place, module };
        let init = ["--init-token", "--free", "--label", "writ", "--so-pin", "12345678", "--pin", PIN];
        assert!(token.with(Command::new("softhsm2-util").args(init)).status.success());
        for (id, kind) in [("01", "EC:prime256v1"), ("02", "rsa:2048")] {
            let made = token.tool(&[
                "--login",
                "--pin",
                PIN,
                "--keypairgen",
                "--key-type",
                kind,
                "--id",
                id,
                "--label",
                "same",
            ]);
            assert!(made.status.success(), "{}", text(&made));
        }
        token
    }

    fn with(&self, command: &mut Command) -> Output {
        command.env("SOFTHSM2_CONF", self.place.folder.join("softhsm2.conf")).stdin(Stdio::null()).output().unwrap()
    }

    fn tool(&self, words: &[&str]) -> Output {
        let mut command = Command::new("pkcs11-tool");
        self.with(command.arg("--module").arg(&self.module).args(["--token-label", "writ"]).args(words))
    }

    fn command(&self, pin: &str, words: &[&str]) -> Command {
        let module = self.module.to_str().unwrap();
        let all = [&["notary", "run", "--custody", "pkcs11", "--module", module, "--token", "writ"], words].concat();
        let mut command = self.place.command(&all);
        command
            .env("SOFTHSM2_CONF", self.place.folder.join("softhsm2.conf"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("WRIT_PKCS11_PIN", pin).stdin(Stdio::null());
        command
    }

    fn run(&self) -> Notary {
        let mut child = self.command(PIN, &[]).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("custody: pkcs11"), "{line}");
        Notary(child)
    }
}

/// A notary that is killed, at the latest, when the test ends.
struct Notary(Child);

impl Drop for Notary {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The key outlives the process, so a restart breaks nothing; nobody copies it; without it the policy is closed.
#[test]
fn a_token_keeps_the_key_that_signs() {
    let token = Token::new("token-key");
    let place = &token.place;
    let closed = place.answer(&place.write_call("closed", "src/module.rs").replace(SESSION, "before"));
    assert!(closed.contains("writ notary run --custody pkcs11"), "{closed}");
    let first = token.run();
    place.start();
    place.allowed("one");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    drop(first);
    let second = token.run();
    place.allowed("two");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    let verified = place.writ(&["verify", SESSION]);
    assert!(
        text(&verified).contains("`pkcs11`") && text(&verified).contains("nobody can copy it"),
        "{}",
        text(&verified)
    );
    assert!(!text(&verified).contains("other processes"), "{}", text(&verified));
    assert!(!text(&verified).contains("custody broke") && verified.status.success(), "{}", text(&verified));
    // Pinned: the token's own public key, which it shows to anybody.
    let der = place.folder.join("public.der");
    let shown = token.tool(&["--read-object", "--type", "pubkey", "--id", "01", "-o", der.to_str().unwrap()]);
    assert!(shown.status.success(), "{}", text(&shown));
    let pem = Command::new("openssl").args(["pkey", "-pubin", "-inform", "DER", "-in"]).arg(&der).output().unwrap();
    let pinned = place.folder.join("public.pem");
    fs::write(&pinned, pem.stdout).unwrap();
    let verified = place.writ(&["verify", SESSION, "--key", pinned.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", text(&verified));
    let listed = token.tool(&["--login", "--pin", PIN, "--list-objects", "--type", "privkey"]);
    assert!(text(&listed).contains("never extractable"), "the private half comes out: {}", text(&listed));
    // Elsewhere, by two verifiers: the manifest is signed by the machine's key, which introduced this one.
    let (file, key) = (place.folder.join("session.tar"), place.session().join("ledger.pub"));
    let (file, key) = (file.to_str().unwrap(), key.to_str().unwrap());
    let exported = place.writ(&["export", SESSION, "-o", file]);
    assert!(exported.status.success(), "{}", text(&exported));
    let verified = place.writ(&["verify", file, "--trust", key]);
    assert!(text(&verified).contains("`pkcs11`"), "{}", text(&verified));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../verifiers/python/bundle.py");
    let other = Command::new("/usr/bin/python3").args([script, file, "--trust", key]).output().unwrap();
    assert_eq!(other.status.code(), verified.status.code(), "{}{}", text(&other), text(&verified));
    assert!(other.status.success(), "{}", text(&other));
    let state = Command::new("grep").args(["-rl", PIN]).arg(place.folder.join("state")).output().unwrap();
    assert!(state.stdout.is_empty(), "the PIN is in {}", text(&state));
    // A token that is gone does not sign: the stop says so, and what was sealed holds.
    fs::rename(place.folder.join("tokens"), place.folder.join("gone")).unwrap();
    let answer = place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    assert!(answer.contains("the key's keeper does not sign"), "{answer}");
    drop(second);
}

#[test]
fn what_cannot_sign_makes_no_notary() {
    let token = Token::new("token-wrong");
    let refused = |pin: &str, words: &[&str], why: &str| {
        let output = token.command(pin, words).output().unwrap();
        assert!(!output.status.success() && text(&output).contains(why), "{words:?}: {}", text(&output));
        assert!(!text(&output).contains(PIN));
    };
    refused("wrong-pin", &[], "CKR_PIN_INCORRECT");
    refused(PIN, &["--key-id", "07"], "does not show the key");
    refused(PIN, &["--key-id", "02"], "is not ECDSA on P-256");
    refused(PIN, &["--key-id", "writ"], "no id of a key");
    let mut other = token.command(PIN, &[]);
    let output = other.env("WRIT_PKCS11_PIN", "").output().unwrap();
    assert!(output.status.code() == Some(2) && text(&output).contains("WRIT_PKCS11_PIN"), "{}", text(&output));
    let file = token.place.folder.join("pin");
    fs::write(&file, PIN).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    refused(PIN, &["--pin-file", file.to_str().unwrap()], "can be read by others");
    // A helper that somebody else could have put there is not given the PIN.
    let own = token.place.folder.join("bin");
    fs::create_dir(&own).unwrap();
    fs::copy("/usr/bin/pkcs11-tool", own.join("pkcs11-tool")).unwrap();
    fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = token.command(PIN, &[]).env("PATH", &own).output().unwrap();
    assert!(text(&output).contains("is not root's alone"), "{}", text(&output));
    let mut lost = token.command(PIN, &[]);
    let output = lost.env("PATH", "/nowhere").output().unwrap();
    assert!(text(&output).contains("install OpenSC"), "{}", text(&output));
    let module = ["notary", "run", "--custody", "pkcs11", "--token", "writ", "--module", "/nowhere.so"];
    let output = token.place.command(&module).env("WRIT_PKCS11_PIN", PIN).env("PATH", "/usr/bin").output().unwrap();
    assert!(text(&output).contains("no PKCS#11 module"), "{}", text(&output));
}

#[test]
fn a_policy_is_signed_by_the_token() {
    let token = Token::new("token-policy");
    let module = token.module.to_str().unwrap();
    let sign = |pin: &str, words: &[&str]| {
        let all = [&["policy", "sign", ".aflock", "--pkcs11", "--module", module, "--token", "writ"], words].concat();
        let mut command = token.place.command(&all);
        token.with(command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("WRIT_PKCS11_PIN", pin))
    };
    let signed = sign(PIN, &[]);
    assert!(signed.status.success(), "{}", text(&signed));
    // As anybody checks it who has the token's public key.
    let der = token.place.folder.join("key.der");
    let read = ["--read-object", "--type", "pubkey", "--id", "01", "--output-file", der.to_str().unwrap()];
    assert!(token.tool(&read).status.success());
    let pem = token.place.folder.join("key.pem");
    let mut made = Command::new("openssl");
    made.args(["pkey", "-pubin", "-inform", "DER", "-in"]).arg(&der).arg("-out").arg(&pem);
    assert!(made.stderr(Stdio::null()).status().unwrap().success());
    let verify = |key: &std::path::Path| {
        let command = token.place.writ(&["policy", "verify", ".aflock.signed", "--key", key.to_str().unwrap()]);
        command.status.code()
    };
    assert_eq!(verify(&pem), Some(0));
    let other = token.place.folder.join("other.pem");
    assert!(token.place.writ(&["keys", "generate", other.to_str().unwrap()]).status.success());
    assert_eq!(verify(&other.with_extension("pem.pub")), Some(3));
    assert!(token.place.writ(&["keys", "trust", pem.to_str().unwrap()]).status.success());
    assert_eq!(token.place.writ(&["policy", "verify", ".aflock.signed"]).status.code(), Some(0));
    for (pin, words, why) in [
        ("0000", &[] as &[&str], "does not sign"),
        (PIN, &["--key-id", "02"], "not ECDSA on P-256"),
        (PIN, &["--key-id", "xx"], "no id of a key"),
    ] {
        let refused = sign(pin, &[words, &["--output", "-"]].concat());
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
        assert!(text(&refused).contains(why), "{}", text(&refused));
        assert!(!text(&refused).contains(PIN), "{}", text(&refused));
    }
    let both = sign(PIN, &["--key", other.to_str().unwrap()]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both));
}
