//! Names whose values are secrets: of variables, options, members, parameters.

/// Words that make a name one.
const WORDS: [&str; 28] = [
    "otp",
    "passcode",
    "requirepass",
    "masterauth",
    "password",
    "passwords",
    "passphrases",
    "passwd",
    "passphrase",
    "passwort",
    "pass",
    "pwd",
    "pw",
    "secret",
    "secrets",
    "token",
    "apikey",
    "apitoken",
    "accesskey",
    "secretkey",
    "privatekey",
    "authtoken",
    "authkey",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "psk",
];
/// Pairs of words that do, one behind the other.
const PAIRS: [(&str, &str); 23] = [
    ("api", "key"),
    ("dsonar", "login"),
    ("mfa", "code"),
    ("token", "code"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("account", "key"),
    ("encryption", "key"),
    ("signing", "key"),
    ("auth", "key"),
    ("session", "key"),
    ("master", "key"),
    ("shared", "key"),
    ("storage", "key"),
    ("license", "key"),
    ("function", "key"),
    ("deploy", "key"),
    ("app", "key"),
    ("service", "key"),
    ("host", "key"),
    ("sas", "key"),
    ("connection", "string"),
];
/// Last words that say that the value is something else: where the secret is, or how it is made.
const OTHERWISE: [&str; 42] = [
    "file", "files", "path", "name", "names", "id", "ids", "stdin", "fd", "env", "length", "count", "type", "url",
    "uri", "ttl", "expiry", "expires", "field", "policy", "manager", "arn", "version", "store", "prompt", "dir",
    "folder", "ref", "limit", "size", "hint", "required", "usage", "endpoint", "provider", "command", "cmd", "scope",
    "scopes", "rotation", "reset", "mode",
];

/// Whether a name's value is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    // A shell's own folder variables.
    if matches!(name, "PWD" | "OLDPWD" | "pwd") || name.len() > 128 {
        return false;
    }
    let words = words(name);
    if words.last().is_some_and(|last| OTHERWISE.contains(&last.as_str())) {
        return false;
    }
    words.iter().any(|word| WORDS.contains(&word.as_str()) || is_joined(word))
        || words.windows(2).any(|pair| match pair {
            [one, other] => PAIRS.iter().any(|(first, second)| one == first && other == second),
            _ => false,
        })
        || matches!(words.as_slice(), [.., kind, last] if last == "key" && is_upper(name) && !KINDS.contains(&kind.as_str()))
        || words.len() > 1 && words.last().is_some_and(|last| last == "auth")
        || matches!(name, "_auth" | "cookie" | "Cookie" | "Set-Cookie" | "set-cookie")
}

/// Keys that are no secrets.
const KINDS: [&str; 18] = [
    "primary",
    "foreign",
    "public",
    "sort",
    "partition",
    "cache",
    "index",
    "unique",
    "hot",
    "short",
    "range",
    "hash",
    "row",
    "group",
    "object",
    "map",
    "bucket",
    "registry",
];

/// Whether a name is written as variables of the environment are.
fn is_upper(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// `pgpassword`, `dbpassword`, `mypasswd`: written as one.
fn is_joined(word: &str) -> bool {
    ["password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "authtoken", "accesstoken"]
        .iter()
        .any(|end| word.ends_with(end))
        || word.ends_with("pass") && !["bypass", "compass", "trespass", "surpass", "encompass"].contains(&word)
}

/// Whether a parameter of an address is a secret.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    const PARAMETERS: [&str; 14] = [
        "key",
        "sig",
        "signature",
        "code",
        "auth",
        "jwt",
        "sas",
        "hash",
        "otp",
        "x-amz-signature",
        "x-amz-credential",
        "x-goog-signature",
        "skoid",
        "session",
    ];
    is_secret(name) || PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

/// `DB_PASS`, `db-pass`, `dbPass`, `DbPass` as `db`, `pass`.
fn words(name: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let starts = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphanumeric() || starts {
            out.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
        before = letter;
    }
    out.retain(|word| !word.is_empty());
    out
}
