//! A key that a PKCS#11 token keeps: a smart card, a hardware security module, SoftHSM.
//!
//! Owns the helper process that is asked for each signature: OpenSC's `pkcs11-tool`, for a static program loads no libraries. Refuses a key
//! that is none of ECDSA on P-256, a signature that does not hold, and a helper that takes too long. Invariant: the private half is never in
//! a process of Writ's; the PIN is in no argument. Page: `spec/notary.md`.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use writ_evidence::custody::Signs;
use writ_evidence::keys::{Algorithm, KeyError, PublicKey};

/// The helper.
const TOOL: &str = "pkcs11-tool";
/// The variable in which the helper gets the PIN.
const PIN: &str = "WRIT_PKCS11_PIN";
/// How long a token may take.
const TIME: Duration = Duration::from_secs(10);
/// Most that is read of what the helper says.
const MAX: u64 = 64 << 10;

/// Where a key is.
#[derive(Clone, Debug)]
pub struct Place {
    /// The vendor's library.
    pub module: PathBuf,
    /// The token's label.
    pub token: String,
    /// The key's id (`CKA_ID`), in hexadecimal: not every version of the helper finds private keys by label.
    pub key: String,
}

/// Why there is no such key.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The helper.
    #[error("`{TOOL}` is not in PATH: install OpenSC (on Debian `apt-get install opensc`)")]
    NoTool,
    /// Others could put something else in the helper's place.
    #[error("`{TOOL}` is not root's alone: {} is another user's, or others can write to it", path.display())]
    Open {
        /// It, or a folder above.
        path: PathBuf,
    },
    /// The vendor's library.
    #[error("there is no PKCS#11 module {}", path.display())]
    NoModule {
        /// It.
        path: PathBuf,
    },
    /// The helper did not do it.
    #[error("the token `{token}` does not {what}: {why}")]
    Helper {
        /// The token.
        token: String,
        /// What was asked.
        what: &'static str,
        /// What the helper said last.
        why: String,
    },
    /// It is no id.
    #[error("`{key}` is no id of a key: write it in hexadecimal, as `pkcs11-tool --list-objects` shows it")]
    Id {
        /// What is in its place.
        key: String,
    },
    /// The key is none that can be used.
    #[error("the key `{key}` is not ECDSA on P-256 (`pkcs11-tool --keypairgen --key-type EC:prime256v1`)")]
    Kind {
        /// Its id.
        key: String,
    },
}

/// A key in a token.
pub struct TokenKey {
    tool: PathBuf,
    place: Place,
    pin: String,
    public: PublicKey,
}

impl TokenKey {
    /// Finds it, and has it sign once: a PIN that is wrong is found out now.
    pub fn open(place: Place, pin: String, search: &[PathBuf]) -> Result<Self, TokenError> {
        let found = search.iter().map(|folder| folder.join(TOOL)).find(|path| path.is_absolute() && path.is_file());
        let tool = found.and_then(|path| fs::canonicalize(path).ok()).ok_or(TokenError::NoTool)?;
        // It is given the PIN: what anybody but root could put there is none.
        let open = |path: &&Path| path.symlink_metadata().is_ok_and(|at| at.uid() != 0 || at.mode() & 0o022 != 0);
        if let Some(open) = tool.ancestors().find(open) {
            return Err(TokenError::Open { path: open.to_owned() });
        }
        if place.key.is_empty()
            || !place.key.len().is_multiple_of(2)
            || !place.key.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err(TokenError::Id { key: place.key });
        }
        if !place.module.is_file() {
            return Err(TokenError::NoModule { path: place.module });
        }
        let arguments = ["--read-object", "--type", "pubkey"];
        let found = ask(&tool, &place, &arguments, None, &[]).map_err(|why| place.failed("show the key", why))?;
        let public = public(&found).ok_or_else(|| TokenError::Kind { key: place.key.clone() })?;
        let key = Self { tool, place, pin, public };
        let signed = key.signature(b"writ").map_err(|why| key.place.failed("sign", why))?;
        if key.public.verify(b"writ", &signed).is_err() {
            return Err(key.place.failed("sign", "its signature does not hold".to_owned()));
        }
        Ok(key)
    }

    /// Tokens sign a digest: not all know how to make it.
    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let arguments = ["--login", "--sign", "--mechanism", "ECDSA", "--signature-format", "openssl"];
        ask(&self.tool, &self.place, &arguments, Some(&self.pin), digest(&SHA256, message).as_ref())
    }
}

impl Place {
    fn failed(&self, what: &'static str, why: String) -> TokenError {
        TokenError::Helper { token: self.token.clone(), what, why }
    }
}

impl Signs for TokenKey {
    fn public(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let failed = |why: String| KeyError::Keeper { why: format!("token `{}`: {why}", self.place.token) };
        let signed = self.signature(message).map_err(failed)?;
        self.public.verify(message, &signed).map_err(|bad| failed(bad.to_string()))?;
        Ok(signed)
    }
}

/// The public key that a helper shows, in DER or in PEM.
fn public(shown: &[u8]) -> Option<PublicKey> {
    let key = match std::str::from_utf8(shown) {
        Ok(text) if text.starts_with("-----BEGIN PUBLIC KEY-----") => PublicKey::from_pem(text).ok()?,
        _ => PublicKey::from_pem(&pem(shown)).ok()?,
    };
    (key.algorithm() == Algorithm::P256).then_some(key)
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

/// Runs the helper. What it says on standard error is why it failed.
fn ask(tool: &Path, place: &Place, words: &[&str], pin: Option<&str>, input: &[u8]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(tool);
    command.arg("--module").arg(&place.module).args(["--token-label", &place.token, "--id", &place.key]).args(words);
    if let Some(pin) = pin {
        command.arg("--pin").arg(format!("env:{PIN}")).env(PIN, pin);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that failed reads nothing, and says why.
        stdin.write_all(input).unwrap_or_default();
    }
    let told = out.recv_timeout(TIME).unwrap_or_default();
    let said = err.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    let ended = end(&mut child).map_err(|error| error.to_string())?;
    if ended && !told.is_empty() {
        return Ok(told);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let why = said.lines().rev().find(|line| line.contains("error")).or_else(|| said.lines().next());
    Err(why.map_or_else(|| "it took too long, or says nothing".to_owned(), str::to_owned))
}

/// Waits for a child that has closed its streams, and ends one that has not.
fn end(child: &mut Child) -> io::Result<bool> {
    for _ in 0..100 {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()?;
    Ok(false)
}

/// Reads a stream to its end in a thread of its own, so that nothing waits for ever.
fn collect(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (tell, told) = mpsc::sync_channel(1);
    let read = move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            stream.take(MAX).read_to_end(&mut bytes).unwrap_or_default();
        }
        // Whoever waited has given up.
        drop(tell.send(bytes));
    };
    // Without a thread nothing is told, and the caller sees that.
    drop(thread::Builder::new().name("token".to_owned()).spawn(read));
    told
}
