//! What is a secret although nobody named it: it matters only where `grants.secrets.allow` names the only ones that may be used.

/// Words in names of variables that hold secrets.
const WORDS: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "PRIVATE",
    "SIGNATURE",
    "COOKIE",
    "AUTH",
    "DSN",
];
/// The same, as whole parts between underscores.
const PARTS: [&str; 9] = ["KEY", "PASS", "PWD", "PAT", "CREDS", "PW", "JWT", "BEARER", "SSHPASS"];
/// What names begin with whose rest says whose secret it is.
const BEGINNINGS: [&str; 2] = ["BW_SESSION", "OP_SESSION"];
/// Names with such a part that are known not to be secrets.
const PLAIN: [&str; 8] = [
    "PWD",
    "OLDPWD",
    "SSH_AUTH_SOCK",
    "XAUTHORITY",
    "KEYMAP",
    "DBUS_SESSION_BUS_ADDRESS",
    "TOKENIZERS_PARALLELISM",
    "GOPRIVATE",
];

/// Places in the home where credentials lie: files, and folders with all below.
const AT_HOME: [&str; 25] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/gcloud",
    ".config/op",
    ".config/hub",
    ".config/rclone/rclone.conf",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".terraform.d",
    ".gem/credentials",
];
/// Places anywhere.
const ANYWHERE: [&str; 3] = ["/run/secrets", "/var/run/secrets", "/etc/shadow"];
/// Names of files, wherever they lie.
const NAMES: [&str; 12] = [
    ".env",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".pypirc",
    ".vault-token",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    "secrets.json",
];
/// How such names end.
const ENDINGS: [&str; 5] = [".key", ".p12", ".pfx", ".jks", ".keystore"];
/// Examples are no secrets.
const EXAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".pub"];

/// Whether a variable's name says that it holds a secret.
pub fn is_secret_variable(name: &str) -> bool {
    // Who wrote something is no secret: `GIT_AUTHOR_NAME`; what `AUTHORIZATION` holds is one.
    let name = name.to_ascii_uppercase().replace("AUTHOR_", "_");
    let name = name.strip_suffix("AUTHOR").unwrap_or(&name);
    let part = |part: &str| PARTS.contains(&part);
    let begins = BEGINNINGS.iter().any(|start| name.starts_with(start));
    !PLAIN.contains(&name) && (begins || WORDS.iter().any(|word| name.contains(word)) || name.split('_').any(part))
}

/// Whether a path is that of a file that is known to hold secrets.
pub fn is_secret_file(path: &str, home: Option<&str>) -> bool {
    let below = |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let at_home = home.is_some_and(|home| AT_HOME.iter().any(|place| below(&format!("{home}/{place}"))));
    let name = path.rsplit('/').next().unwrap_or_default();
    let named = NAMES.contains(&name) || name.starts_with(".env.") || ENDINGS.iter().any(|end| name.ends_with(end));
    // Most of these are certificates, which are no secrets.
    let named = named || name.ends_with(".pem") && name.contains("key");
    let example = EXAMPLES.iter().any(|end| name.ends_with(end));
    !example && (named || at_home || ANYWHERE.iter().any(|place| below(place)))
}

/// Whether places that are known to hold secrets lie below a folder.
pub fn keeps_secrets(folder: &str, home: Option<&str>) -> bool {
    let folder = folder.trim_end_matches('/');
    let above = |place: &str| place.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    home.is_some_and(|home| AT_HOME.iter().any(|place| above(&format!("{home}/{place}"))))
        || ANYWHERE.iter().any(|place| above(place))
}
