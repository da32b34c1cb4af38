//! Where programs take secrets by options and places of their own.

use std::sync::LazyLock;

/// What a program's words say of the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// The next word is a secret.
    Next,
    /// What is glued to it is.
    Glued(usize),
    /// Nothing.
    Nothing,
}

/// Programs, a word that has to stand in the command (or none), options whose value is a secret, options that it may be glued to.
type Row = (&'static [&'static str], &'static str, &'static [&'static str], &'static [&'static str]);

const ROWS: &[Row] = &[
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlshow",
            "mariadb",
            "mariadb-dump",
            "mycli",
            "mysqlsh",
        ],
        "",
        &[],
        &["-p"],
    ),
    (&["redis-cli", "valkey-cli", "keydb-cli"], "", &["-a", "--pass", "AUTH", "auth"], &[]),
    (
        &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "mongostat"],
        "",
        &["-p"],
        &["-p"],
    ),
    (&["curl"], "", &["--oauth2-bearer", "-b", "--cookie", "--pass", "--proxy-pass", "--tlspassword"], &["-b"]),
    (
        &[
            "docker", "podman", "nerdctl", "buildah", "skopeo", "crane", "oras", "helm", "regctl", "az", "oc",
            "argocd", "cf", "ibmcloud",
        ],
        "login",
        &["-p"],
        &["-p"],
    ),
    (&["sshpass"], "", &["-p"], &["-p"]),
    (&["openssl"], "", &["-k", "-K", "-passin", "-passout", "-pass", "-password", "-macopt"], &[]),
    (&["zip", "unzip", "zipcloak"], "", &["-P"], &["-P"]),
    (&["7z", "7za", "7zz", "rar", "unrar"], "", &[], &["-p", "-hp"]),
    (&["ssh-keygen"], "", &["-N", "-P"], &["-N", "-P"]),
    (
        &["keytool", "jarsigner"],
        "",
        &["-storepass", "-keypass", "-srcstorepass", "-deststorepass", "-destkeypass", "-srckeypass"],
        &[],
    ),
    (
        &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"],
        "",
        &["-w", "-s", "-a"],
        &["-w"],
    ),
    (&["sqlcmd", "bcp", "isql", "osql", "tsql"], "", &["-P"], &["-P"]),
    (&["useradd", "usermod"], "", &["-p"], &[]),
    (&["rdesktop", "winexe"], "", &["-p"], &["-p"]),
    (&["xfreerdp", "wfreerdp"], "", &[], &["/p:"]),
    (&["security"], "", &["-w", "-p", "-P"], &[]),
    (&["twine", "poetry", "flit"], "", &["-p"], &["-p"]),
    (&["cargo"], "login", &["login"], &[]),
    (&["nuget", "dotnet"], "push", &["-k", "-ApiKey", "-sk"], &[]),
    (&["vault"], "login", &["login"], &[]),
    (&["ngrok"], "", &["authtoken", "add-authtoken"], &[]),
    (&["snyk"], "auth", &["auth"], &[]),
    (&["glab", "doctl", "flyctl", "fly", "hcloud"], "auth", &["-t", "--access-token"], &[]),
    (&["swaks"], "", &["-ap", "--auth-password"], &[]),
    (&["sendemail", "sendEmail"], "", &["-xp"], &[]),
    (&["rclone"], "obscure", &["obscure"], &[]),
    (&["wpa_passphrase"], "", &[], &[]),
    (&["az"], "secret", &["--value"], &[]),
    (
        &["aws"],
        "",
        &[
            "--secret-string",
            "--secret-binary",
            "--master-user-password",
            "--password",
            "--new-password",
            "--old-password",
        ],
        &[],
    ),
    (&["aws"], "put-parameter", &["--value"], &[]),
    (&["gh", "glab"], "secret", &["-b", "--body", "--value", "-v"], &[]),
    (&["http", "https", "xh", "sqlplus", "sqlldr", "smbclient", "rpcclient"], "", &[], &[]),
    (&["clickhouse-client", "influx", "cqlsh", "sqoop", "beeline", "snowsql"], "", &["-p"], &[]),
    (&["nmcli", "net", "networksetup", "mysqladmin"], "", &["password", "psk"], &[]),
    (&["pg_dump", "pg_restore"], "", &[], &[]),
    (&["htpasswd", "gpg", "gpg2"], "", &["--passphrase"], &[]),
    (&["lftp", "ncftp", "ncftpput", "wput"], "", &["-p"], &["-p"]),
    (&["impacket-secretsdump", "crackmapexec", "netexec", "nxc", "evil-winrm", "hydra"], "", &["-p", "-H"], &[]),
    (&["tailscale"], "", &["--authkey", "--auth-key"], &[]),
    (
        &[
            "expo",
            "eas",
            "xcrun",
            "altool",
            "psexec",
            "rabbitmqadmin",
            "racadm",
            "ipmitool",
            "mosquitto_pub",
            "mosquitto_sub",
            "couchbase-cli",
            "cbq",
            "cypher-shell",
            "arangosh",
            "jf",
            "jfrog",
            "p4",
            "wpscan",
            "kadmin",
            "rancher",
            "nexus",
            "octo",
            "appcenter",
            "tccli",
            "dsconf",
        ],
        "",
        &["-p", "-P", "-w", "-t"],
        &[],
    ),
    (&["az"], "create", &["-p"], &[]),
    (&["openssl"], "", &["-hmac"], &[]),
    (&["snmpwalk", "snmpget", "snmpset", "snmpbulkwalk", "snmptrap"], "", &["-c", "-A", "-X"], &[]),
    (&["aws"], "", &["--sse-c-key", "--sse-customer-key"], &[]),
    (&["gem"], "push", &["--key", "-k"], &[]),
    (&["kaggle"], "set", &["-v"], &[]),
    (&["gh"], "secret", &[], &["-b"]),
    (&["influx", "vercel", "supabase", "codecov"], "", &["-t", "-p"], &[]),
    (&["dotnet", "nuget"], "source", &["-p"], &[]),
    (&["netlify"], "", &["--auth", "-a"], &[]),
];

/// Options whose value is `user:secret`, of any program.
const USERS: [&str; 12] = [
    "-u",
    "--user",
    "-U",
    "--proxy-user",
    "--creds",
    "--src-creds",
    "--dest-creds",
    "-a",
    "--auth",
    "-E",
    "--cert",
    "--userinfo",
];
/// Words after which what a line prints is a secret's way to a program.
const SINKS: [&str; 33] = [
    "secret create",
    "secret bulk",
    "lpass ",
    "terraform login",
    "keepassxc-cli",
    "-password-file",
    "private-key <(",
    "| passwd",
    "|passwd",
    "passwd --stdin",
    "passwd <<<",
    "pass insert",
    "env add",
    "secrets create",
    "secrets versions add",
    "secret-tool store",
    "kinit ",
    "cryptsetup ",
    "--auth-user-pass",
    "--password-command",
    "smbpasswd",
    "htpasswd -i",
    "--password-stdin",
    "chpasswd",
    "sudo -S",
    "--stdin",
    "--passphrase-fd",
    "--with-token",
    "secret put",
    "secret set",
    "secrets set",
    "secrets add",
    "--pinentry-mode",
];

/// The rows about a program, in their order.
fn rows(program: &str) -> impl Iterator<Item = &'static Row> + use<'_> {
    // Every word of a line is asked about.
    static INDEX: LazyLock<Vec<(&str, &Row)>> = LazyLock::new(|| {
        let each = |row: &'static Row| row.0.iter().map(move |program| (*program, row));
        let mut index: Vec<_> = ROWS.iter().flat_map(each).collect();
        index.sort_by_key(|(program, _)| *program);
        index
    });
    let first = INDEX.partition_point(|(name, _)| *name < program);
    let from = INDEX.get(first..).unwrap_or_default().iter();
    from.take_while(move |(name, _)| *name == program).map(|(_, row)| *row)
}

/// Whether a word is the name of a program with ways of its own.
pub(super) fn is_known(word: &str) -> bool {
    rows(word).next().is_some()
}

/// What a word says of the next in a command of this program.
pub(super) fn takes(program: &str, said: &[&str], word: &str) -> Takes {
    for (_, sub, next, glued) in rows(program) {
        if !sub.is_empty() && !said.contains(sub) && word != *sub {
            continue;
        }
        if next.contains(&word) {
            return Takes::Next;
        }
        let longer =
            |option: &&&str| word.len() > option.len() && word.starts_with(**option) && !word.starts_with("--");
        if let Some(option) = glued.iter().find(longer) {
            return Takes::Glued(option.len());
        }
    }
    Takes::Nothing
}

/// Whether the value of an option is `user:secret`.
pub(super) fn is_user(program: &str, word: &str) -> bool {
    match word {
        "-u" | "--user" => true,
        "--auth" | "-auth" => true,
        "-a" => matches!(program, "http" | "https" | "xh" | "httpie"),
        "-U" => matches!(program, "curl" | "smbclient" | "rpcclient"),
        "-E" | "--cert" => program == "curl",
        _ if program == "curl" && word.len() > 2 && word.starts_with('-') && word.ends_with('u') => {
            word.get(1..).is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
        }
        _ => USERS.contains(&word),
    }
}

/// Whether what the line prints goes where secrets are asked for.
pub(super) fn feeds_secret(line: &str) -> bool {
    SINKS.iter().any(|sink| line.contains(sink))
}

/// How many words after this one are a secret's: `htpasswd -b FILE USER SECRET`, `aws configure set NAME SECRET`.
pub(super) fn sets(program: &str, said: &[&str], word: &str) -> bool {
    match program {
        "aws" | "git" | "npm" | "pnpm" | "yarn" | "poetry" | "gcloud" | "pip" | "pulumi" | "doppler" | "gh" => {
            let sets = said.iter().any(|said| matches!(*said, "set" | "config" | "add"));
            sets && word != "--secret"
                && word.rsplit('.').next().is_some_and(super::names::is_secret)
                && super::names::is_secret(word.trim_start_matches('/'))
                || word.starts_with("pypi-token.")
        }
        _ => false,
    }
}

/// Whether a word names the secret that the next one is: `setenv API_TOKEN …`, `kv put db/password …`, `requirepass …`.
pub(super) fn names_next(program: &str, said: &[&str], word: &str) -> bool {
    const SETTERS: [&str; 13] = [
        "set", "SET", "put", "setenv", "setx", "set-env", "write", "config", "CONFIG", "create", "define", "modify",
        "-x",
    ];
    let setter = |word: &&str| SETTERS.contains(word) || word.ends_with(":set");
    let name = word.rsplit(['/', ':', '.']).next().unwrap_or_default();
    let compound = matches!(name, "token" | "password" | "secret") && word.contains('.')
        || word.contains(['_', '/'])
        || matches!(name, "requirepass" | "masterauth" | "password" | "passwd");
    let verb =
        ["set-", "get-", "put-", "create-", "delete-", "update-", "list-"].iter().any(|verb| name.starts_with(verb));
    (SETTERS.contains(&program) || said.iter().any(setter))
        && program != "git"
        && !word.starts_with('-')
        && !word.contains(['=', ' '])
        && compound
        && !verb
        && super::names::is_secret(name)
}
