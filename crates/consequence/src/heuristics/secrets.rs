//! Secrets on their way out: what prints them, what holds them, what sends what it reads.

use writ_core::Span;
use writ_shell::{Command, Word};

use super::program;

/// Whether a command prints every variable, or keys.
pub fn lists_environment(command: &Command) -> bool {
    let keys = command.words.iter().filter_map(Word::literal).any(|word| word.starts_with("--export-secret-"));
    if keys && program(command).is_some_and(|program| program.starts_with("gpg")) {
        return true;
    }
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let alone = words.len() == 1 || words.len() == 2 && words.last().is_some_and(|last| last == "-p");
    program(command)
        .is_some_and(|program| alone && matches!(program.as_str(), "env" | "printenv" | "set" | "export" | "declare"))
}

/// Whether a command sends what it reads to the network.
pub fn sends_input(command: &Command) -> bool {
    match program(command).as_deref() {
        Some(
            "nc" | "ncat" | "netcat" | "socat" | "mail" | "mailx" | "sendmail" | "mutt" | "telnet" | "ftp"
            | "pastebinit",
        ) => true,
        Some("openssl") => command.words.get(1).and_then(Word::literal).as_deref() == Some("s_client"),
        Some("curl" | "http" | "https" | "wget") => {
            command.words.iter().skip(1).filter_map(Word::literal).any(|word| {
                word.ends_with("@-")
                    || word.ends_with("=-")
                    || word.ends_with("<-")
                    || word == "/dev/stdin"
                    || matches!(word.as_str(), "-T-" | "--upload-file=-")
            }) || command.words.windows(2).any(|pair| match pair {
                [flag, value] => {
                    matches!(flag.literal().as_deref(), Some("-T" | "--upload-file"))
                        && value.literal().as_deref() == Some("-")
                }
                _ => false,
            })
        }
        _ => false,
    }
}

/// What a command prints that nobody else should read: where it stands, and what it is.
pub fn prints_secret(command: &Command, line: &str) -> Option<(Span, &'static str)> {
    const PRINTERS: [(&str, &[&str], &str); 27] = [
        ("pg_dump", &[], "a whole database"),
        ("pg_dumpall", &[], "a whole database"),
        ("mysqldump", &[], "a whole database"),
        ("mariadb-dump", &[], "a whole database"),
        ("mongodump", &[], "a whole database"),
        ("docker", &["save"], "an image with everything in it"),
        ("docker", &["export"], "a container with everything in it"),
        ("kubectl", &["get", "secret"], "a secret of the cluster"),
        ("kubectl", &["get", "secrets"], "a secret of the cluster"),
        ("kubectl", &["config", "view"], "the cluster's credentials"),
        ("aws", &["get-secret-value"], "a secret"),
        ("aws", &["get-parameter"], "a parameter that may be secret"),
        ("aws", &["get-session-token"], "a token"),
        ("aws", &["export-credentials"], "credentials"),
        ("vault", &["get"], "a secret"),
        ("vault", &["read"], "a secret"),
        ("gcloud", &["print-access-token"], "a token"),
        ("gcloud", &["versions", "access"], "a secret"),
        ("az", &["get-access-token"], "a token"),
        ("az", &["secret", "show"], "a secret"),
        ("gh", &["auth", "token"], "a token"),
        ("op", &["read"], "a secret"),
        ("pass", &["show"], "a password"),
        ("sops", &["-d"], "a secret"),
        ("security", &["-w"], "a password"),
        ("docker", &["logs"], "what a container logged"),
        ("kubectl", &["logs"], "what a container logged"),
    ];
    let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
    let name = program(command)?;
    if matches!(name.as_str(), "history" | "journalctl" | "dmesg" | "last") {
        return Some((command.span, "the record of what was done here"));
    }
    if matches!(name.as_str(), "echo" | "printf") && command.words.iter().skip(1).any(|word| names_secret(word, line)) {
        return Some((command.span, "a secret of the environment"));
    }
    let says = |wanted: &&&str| words.iter().any(|word| word == **wanted);
    let known = PRINTERS.iter().find(|(program, marks, _)| *program == name && marks.iter().all(|mark| says(&mark)))?;
    Some((command.span, known.2))
}

/// Whether a word is the value of a variable that is named like a secret: `"$AWS_SECRET_ACCESS_KEY"`.
fn names_secret(word: &Word, line: &str) -> bool {
    let text = line.get(word.span.start..word.span.end).unwrap_or_default();
    text.split('$').skip(1).any(|rest| {
        let name = rest.trim_start_matches('{');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY"]
            .iter()
            .any(|part| name.to_ascii_uppercase().contains(part))
    })
}

/// Where a command names the keys it proves itself with, or settings it takes in: those it does not send.
pub fn own_keys(command: &Command) -> Vec<(usize, usize)> {
    const FLAGS: [&str; 9] =
        ["-E", "--key", "--cert", "--cacert", "--identity", "--kubeconfig", "--env-file", "--ssh-key", "--netrc-file"];
    const COPIES: [&str; 4] = ["scp", "sftp", "rsync", "mosh"];
    let span = |word: &Word| (word.span.start, word.span.end);
    if matches!(
        program(command).as_deref(),
        Some(
            "source"
                | "."
                | "ssh"
                | "ssh-add"
                | "ssh-keygen"
                | "ssh-copy-id"
                | "docker"
                | "podman"
                | "docker-compose"
                | "openssl"
                | "kubectl"
                | "helm"
        )
    ) {
        return command.words.iter().map(span).collect();
    }
    let copies = program(command).is_some_and(|program| COPIES.contains(&program.as_str()));
    let after = command.words.windows(2).filter_map(|pair| match pair {
        [flag, value] => {
            let flag = flag.literal().unwrap_or_default();
            let own = copies && matches!(flag.as_str(), "-i" | "-F") || FLAGS.contains(&flag.as_str());
            own.then(|| span(value))
        }
        _ => None,
    });
    let glued = command.words.iter().filter(|word| {
        word.literal().is_some_and(|word| word.split_once('=').is_some_and(|(flag, _)| FLAGS.contains(&flag)))
    });
    after.chain(glued.map(span)).collect()
}

/// Whether a file holds secrets, or the record of what was done, by its name.
pub fn is_secret(path: &str) -> bool {
    const NAMES: [&str; 38] = [
        "passwd",
        ".env",
        "id_rsa",
        "id_dsa",
        "id_ed25519",
        "id_ecdsa",
        "credentials",
        ".netrc",
        "_netrc",
        "shadow",
        "gshadow",
        ".pgpass",
        ".my.cnf",
        "kubeconfig",
        ".git-credentials",
        ".ssh",
        ".aws",
        ".gnupg",
        ".npmrc",
        ".pypirc",
        ".vault-token",
        ".htpasswd",
        "master.key",
        "credentials.json",
        "application_default_credentials.json",
        "service-account.json",
        "secrets.yml",
        "secrets.yaml",
        "secrets.json",
        "secrets.toml",
        "terraform.tfstate",
        "wallet.dat",
        "Cookies",
        "key4.db",
        "logins.json",
        "environ",
        "auth.log",
        ".boto",
    ];
    const PATTERNS: [&str; 5] = [".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults"];
    const ENDINGS: [&str; 8] = [".pem", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".ppk", "_history"];
    const FOLDERS: [&str; 8] = [
        "/.ssh/",
        "/.gnupg/",
        "/.kube/config",
        "/.aws/",
        "/.docker/config.json",
        "/.config/gh/",
        "/.config/gcloud/",
        "/.azure/",
    ];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if PATTERNS.contains(&name) || name.ends_with(".pub") || name.starts_with("known_hosts") {
        return false;
    }
    NAMES.contains(&name)
        || name.starts_with(".env.")
        || ENDINGS.iter().any(|end| name.ends_with(end))
        || FOLDERS.iter().any(|part| path.contains(part))
}
