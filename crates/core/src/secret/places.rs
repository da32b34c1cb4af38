//! Which operands of a command are secrets: by their place, and by what the command is about.

/// Places of secrets among the operands: program, a word before them (or none), how many operands lie between.
const PLACES: &[(&str, &str, usize)] = &[
    ("rabbitmqctl", "add_user", 1),
    ("rabbitmqctl", "change_password", 1),
    ("rabbitmqctl", "authenticate_user", 1),
    ("mc", "set", 3),
    ("mc", "add", 3),
    ("mcli", "set", 3),
    ("b2", "authorize-account", 1),
    ("b2", "authorize_account", 1),
    ("twilio", "login", 1),
    ("bw", "unlock", 0),
    ("bw", "login", 1),
    ("wandb", "login", 0),
    ("travis", "encrypt", 0),
    ("vault", "unseal", 0),
    ("mkpasswd", "", 0),
    ("openssl", "passwd", 0),
    ("radtest", "", 1),
    ("net", "user", 1),
    ("net", "use", 1),
    ("gcloud", "activate-refresh-token", 1),
    ("ansible-vault", "encrypt_string", 0),
    ("consul", "put", 1),
    ("glab", "set", 1),
    ("snyk", "config", 2),
    ("dotnet", "set", 1),
    ("op", "signin", 3),
    ("keyctl", "add", 2),
    ("cmdkey", "/pass", 0),
    ("pdbedit", "-t", 0),
    ("influx", "-password", 0),
    ("net", "use", 2),
    ("pdftk", "input_pw", 0),
    ("pdftk", "user_pw", 0),
    ("pdftk", "owner_pw", 0),
    ("cloudflared", "install", 0),
    ("consul", "bootstrap", 0),
    ("nuget", "setapikey", 0),
    ("ConvertTo-SecureString", "", 0),
    ("poetry", "config", 2),
    ("composer", "config", 2),
    ("chef-vault", "create", 2),
];

/// Whether an operand stands where a program takes a secret.
pub(super) fn is_place(program: &str, said: &[&str]) -> bool {
    PLACES.iter().any(|(name, sub, between)| {
        let from = if sub.is_empty() { Some(0) } else { said.iter().position(|word| word == sub).map(|at| at + 1) };
        *name == program
            && from.is_some_and(|from| {
                let operands = said
                    .iter()
                    .skip(from)
                    .filter(|word| !word.starts_with('-') && word.rsplit('/').next() != Some(program));
                operands.count() == *between
            })
    })
}

/// Words that say that a command is about a secret of its operands.
const ABOUT: [&str; 19] = [
    "login",
    "signin",
    "auth",
    "authtoken",
    "adduser",
    "password",
    "passwd",
    "unlock",
    "unseal",
    "secret",
    "secrets",
    "token",
    "tokens",
    "credential",
    "credentials",
    "setapikey",
    "apikey",
    "authenticate",
    "variable",
];
/// What such commands do: none of these words is a secret, and those that read name what they read.
pub(super) const VERBS: &[&str] = &[
    "set",
    "put",
    "add",
    "create",
    "write",
    "update",
    "edit",
    "new",
    "store",
    "import",
    "bulk",
    "versions",
    "lookup",
    "renew",
    "revoke",
    "rotate",
    "reset",
    "generate",
    "encrypt",
    "generic",
    "tls",
    "docker-registry",
    "cloud",
    "production",
    "preview",
    "development",
    "staging",
    "configure",
    "login",
    "logout",
    "auth",
    "token",
    "secret",
    "secrets",
    "setup-git",
    "switch",
    "refresh",
    "sso",
    "print-access-token",
    "application-default",
    "init",
    "status",
];
/// Words of commands that only read, and so have no secret among their operands.
const READS: [&str; 12] =
    ["get", "list", "ls", "delete", "rm", "remove", "describe", "show", "view", "status", "logout", "can-i"];
/// Programs whose operands are files, texts and names, whatever they are called.
const PLAIN: [&str; 62] = [
    "ls", "cd", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "grep", "rg", "ag", "find", "fd", "git", "head",
    "tail", "less", "more", "vi", "vim", "nvim", "nano", "code", "echo", "printf", "sed", "awk", "sort", "uniq", "wc",
    "diff", "tree", "stat", "file", "chmod", "chown", "ln", "tar", "zip", "make", "just", "task", "pytest", "jest",
    "vitest", "mocha", "rspec", "go", "rustc", "node", "python", "python3", "ruby", "kubectl", "oc", "k", "test",
    "export", "cut", "which", "man",
];

/// Whether the words so far say that secrets may follow: `login`, `secret set`, `token create`.
pub(super) fn about_secrets(program: &str, said: &[&str]) -> bool {
    let mut subcommand = said.iter().skip(1).filter(|word| !word.starts_with('-')).take(3);
    !PLAIN.contains(&program)
        && subcommand.any(|word| ABOUT.contains(word) || word.starts_with("http-basic.") || word.contains("-oauth."))
        && !said.iter().any(|word| READS.contains(word))
        && !said.iter().any(|word| matches!(*word, "test" | "--password-stdin" | "--with-token" | "--stdin"))
}

/// Whether what a command assigns (`name=value`) are secrets, whatever their names.
pub(super) fn assigns_secrets(program: &str, said: &[&str]) -> bool {
    let has = |words: &[&str]| said.iter().any(|word| words.contains(word));
    match program {
        "vault" => has(&["put", "write", "patch", "login"]),
        "snyk" | "bundle" => has(&["config"]),
        "occ" => said.iter().any(|word| super::names::is_secret(word)),
        _ => has(&["secret", "secrets"]) && has(&["set", "put", "add", "import", "update"]),
    }
}
