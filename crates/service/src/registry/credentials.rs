//! Credentials for registries, where Docker and its like keep them.
//!
//! Owns `config.json`: `auths`, `credHelpers`, `credsStore`, and the helpers' protocol. Refuses a file that is not JSON, and helpers whose
//! name is a path. Invariant: what it does not know of the file stays as it is; a secret is in no error and no `Debug` output. Page:
//! `spec/registry.md`, "Credentials".

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::regular_file;
use zeroize::Zeroizing;

use super::error::{CredentialsError, foreign};

/// Largest file.
const MAX_FILE: u64 = 4 << 20;
/// How Docker's own registry is called there.
const DOCKER_KEY: &str = "https://index.docker.io/v1/";
/// What a helper says of somebody it does not know.
const NOT_FOUND: &str = "credentials not found";

/// A name and what proves it.
#[derive(Clone)]
pub struct Login {
    /// The user; `None` of a token that stands for one.
    pub user: Option<String>,
    /// The password or token.
    pub secret: Zeroizing<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({})", self.user.as_deref().unwrap_or("token"))
    }
}

impl Login {
    /// As HTTP's basic authentication has it.
    pub(super) fn basic(&self) -> Option<Zeroizing<String>> {
        let user = self.user.as_deref()?;
        let pair = Zeroizing::new(format!("{user}:{}", self.secret.as_str()));
        Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))))
    }
}

/// Where credentials are.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    file: Option<PathBuf>,
}

/// What a helper reads and writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    #[serde(rename = "ServerURL", default)]
    server_url: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

impl Credentials {
    /// Those of a file, which need not be there.
    pub const fn of(file: Option<PathBuf>) -> Self {
        Self { file }
    }

    /// None at all.
    pub const fn none() -> Self {
        Self { file: None }
    }

    /// The credentials for a registry.
    pub fn get(&self, registry: &str) -> Result<Option<Login>, CredentialsError> {
        let Some(document) = self.read()? else { return Ok(None) };
        if let Some(helper) = helper(&document, registry) {
            return ask(&helper, &key(registry));
        }
        let entry = auths(&document).find(|(name, _)| same(name, registry)).map(|(_, entry)| entry);
        let Some(entry) = entry else { return Ok(None) };
        let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(token) = text("identitytoken") {
            return Ok(Some(Login { user: None, secret: Zeroizing::new(token.to_owned()) }));
        }
        if let (Some(user), Some(password)) = (text("username"), text("password")) {
            return Ok(Some(Login { user: Some(user.to_owned()), secret: Zeroizing::new(password.to_owned()) }));
        }
        let Some(pair) = text("auth") else { return Ok(None) };
        let pair = STANDARD.decode(pair).ok().and_then(|bytes| String::from_utf8(bytes).ok()).map(Zeroizing::new);
        let split = pair.as_ref().and_then(|pair| pair.split_once(':'));
        let (user, secret) = split.ok_or_else(|| {
            self.wrong(format!("the `auth` of `{}` is no `user:password` in Base64", foreign(registry)))
        })?;
        Ok(Some(Login { user: Some(user.to_owned()), secret: Zeroizing::new(secret.to_owned()) }))
    }

    /// Keeps credentials: with the helper that the file names for the registry, else in the file.
    pub fn keep(&self, registry: &str, user: &str, secret: &str) -> Result<String, CredentialsError> {
        let path = self.file.clone().ok_or(CredentialsError::Nowhere)?;
        let document = self.read()?.unwrap_or_else(|| Value::Object(Object::new()));
        if let Some(helper) = helper(&document, registry) {
            let stored = Helped { server_url: key(registry), username: user.to_owned(), secret: secret.to_owned() };
            let stored = Zeroizing::new(json::to_compact(&stored));
            run(&helper, "store", &stored)?;
            return Ok(format!("`docker-credential-{helper}`"));
        }
        let mut entry = Object::new();
        let pair = Zeroizing::new(format!("{user}:{secret}"));
        entry.push("auth", Value::from(STANDARD.encode(pair.as_bytes())));
        self.write(&path, &with_entry(&document, registry, Some(Value::Object(entry))))?;
        Ok(path.display().to_string())
    }

    /// Forgets them; whether there were any.
    pub fn forget(&self, registry: &str) -> Result<bool, CredentialsError> {
        let path = self.file.clone().ok_or(CredentialsError::Nowhere)?;
        let Some(document) = self.read()? else { return Ok(false) };
        if let Some(helper) = helper(&document, registry) {
            let known = ask(&helper, &key(registry))?.is_some();
            if known {
                run(&helper, "erase", &key(registry))?;
            }
            return Ok(known);
        }
        let known = auths(&document).any(|(name, _)| same(name, registry));
        if known {
            self.write(&path, &with_entry(&document, registry, None))?;
        }
        Ok(known)
    }

    fn read(&self) -> Result<Option<Value>, CredentialsError> {
        let Some(path) = &self.file else { return Ok(None) };
        let bytes = match regular_file::read(path, MAX_FILE) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.wrong(error.to_string())),
        };
        let value = json::parse_with(&bytes, Limits::FOREIGN).map_err(|error| self.wrong(error.to_string()))?;
        match value {
            Value::Object(_) => Ok(Some(value)),
            _ => Err(self.wrong("it is no JSON object".to_owned())),
        }
    }

    fn write(&self, path: &Path, document: &Value) -> Result<(), CredentialsError> {
        let failed = |error: std::io::Error| self.wrong(error.to_string());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}.new", std::process::id()));
        let new = PathBuf::from(new);
        drop(fs::remove_file(&new));
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
        let text = Zeroizing::new(json::pretty(document) + "\n");
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)
    }

    fn wrong(&self, why: String) -> CredentialsError {
        CredentialsError::File { path: self.file.clone().unwrap_or_default(), why }
    }
}

/// The name that a registry has in the file.
fn key(registry: &str) -> String {
    if registry == "docker.io" { DOCKER_KEY.to_owned() } else { registry.to_owned() }
}

/// Whether a name in the file is of this registry: older tools wrote URLs.
fn same(name: &str, registry: &str) -> bool {
    if name == key(registry) {
        return true;
    }
    let host = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://")).unwrap_or(name);
    host.split('/').next() == Some(registry)
}

fn auths(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = match document.get("auths") {
        Some(Value::Object(members)) => Some(members),
        _ => None,
    };
    members.into_iter().flat_map(|members| members.iter())
}

/// The helper that the file names for a registry.
fn helper(document: &Value, registry: &str) -> Option<String> {
    let named =
        document.get("credHelpers").and_then(|helpers| helpers.get(&key(registry)).or_else(|| helpers.get(registry)));
    let named = named.or_else(|| document.get("credsStore")).and_then(Value::as_str);
    named.filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The document with another entry for a registry, or none.
fn with_entry(document: &Value, registry: &str, entry: Option<Value>) -> Value {
    let mut entries = Object::new();
    for (name, old) in auths(document).filter(|(name, _)| !same(name, registry)) {
        entries.push(name, old.clone());
    }
    if let Some(entry) = entry {
        entries.push(&*key(registry), entry);
    }
    let mut out = Object::new();
    let Value::Object(members) = document else { return Value::Object(out) };
    for (name, value) in members.iter().filter(|(name, _)| *name != "auths") {
        out.push(name, value.clone());
    }
    out.push("auths", Value::Object(entries));
    Value::Object(out)
}

/// Asks a helper for credentials.
fn ask(name: &str, server: &str) -> Result<Option<Login>, CredentialsError> {
    let said = match run(name, "get", server) {
        Ok(said) => said,
        Err(CredentialsError::Helper { why, .. }) if why.contains(NOT_FOUND) => return Ok(None),
        Err(error) => return Err(error),
    };
    let helped: Helped = json::from_slice(&said).map_err(|error| CredentialsError::Helper {
        name: name.to_owned(),
        why: format!("answers no credentials: {error}"),
    })?;
    let secret = Zeroizing::new(helped.secret);
    let user = Some(helped.username).filter(|user| user != "<token>");
    Ok(Some(Login { user, secret }))
}

/// Runs a helper; what it says on standard output.
fn run(name: &str, verb: &str, input: &str) -> Result<Zeroizing<Vec<u8>>, CredentialsError> {
    let failed = |why: String| CredentialsError::Helper { name: foreign(name), why };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) {
        return Err(failed("is no name of a credential helper".to_owned()));
    }
    let mut command = Command::new(format!("docker-credential-{name}"));
    // It gets the user's environment, but no token that somebody else is to be signed in with.
    command
        .arg(verb)
        .env_remove("SIGSTORE_ID_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read what it is told answers what it answers.
        drop(stdin.write_all(input.as_bytes()));
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let stdout = Zeroizing::new(output.stdout);
    if output.status.success() {
        return Ok(stdout);
    }
    // Helpers say on standard output why they fail; a secret is not among what a failure says.
    let why = if stdout.is_empty() { &output.stderr } else { &*stdout };
    Err(failed(format!("{verb}: {}", foreign(String::from_utf8_lossy(why).trim()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_keeps_what_it_holds_beside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker/config.json");
        let credentials = Credentials::of(Some(path.clone()));
        assert!(credentials.get("r.example").unwrap().is_none());
        credentials.keep("r.example", "me", "pass:word").unwrap();
        let login = credentials.get("r.example").unwrap().unwrap();
        assert_eq!((login.user.as_deref(), login.secret.as_str()), (Some("me"), "pass:word"));
        assert!(!format!("{login:?}").contains("pass"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("pass:word"));
        fs::write(&path, text.replacen('{', "{\"proxies\":{\"n\":1e400},", 1).replace("1e400", "1")).unwrap();
        credentials.keep("docker.io", "you", "x").unwrap();
        assert_eq!(credentials.get("docker.io").unwrap().unwrap().user.as_deref(), Some("you"));
        assert!(credentials.forget("r.example").unwrap() && !credentials.forget("r.example").unwrap());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("proxies") && text.contains(DOCKER_KEY) && !text.contains("r.example"));
    }

    #[test]
    fn names_of_registries_are_told_apart() {
        assert!(same("https://r.example/v1/", "r.example") && same("r.example", "r.example"));
        assert!(!same("r.example.org", "r.example") && !same("r.example:5000", "r.example"));
        let document = json::parse(br#"{"credsStore":"all","credHelpers":{"r.example":"one"}}"#).unwrap();
        assert_eq!(helper(&document, "r.example").as_deref(), Some("one"));
        assert_eq!(helper(&document, "other.example").as_deref(), Some("all"));
        assert!(run("../evil", "get", "x").is_err());
    }
}
