//! What a starter policy says, whatever the repository holds. Data alone: [`super::starter`] puts it together.
//!
//! Each list is one kind of danger. What is denied has no place in an agent's daily work; what asks has one now and then.

/// Secrets in a repository: nobody reads or writes them. What is taken back may be copied to a place that is free
/// (`cp .env.example .env`). What packages bring along is nobody's secret, and goes with the folder it is in; a link in there
/// still leads to the file that it leads to.
pub const SECRETS: &[&str] = &[
    "**/.env",
    "**/.env.*",
    "!**/.env.{example,sample,template,dist,defaults,schema,d.ts}",
    "!**/.env.*.{example,sample,template}",
    "**/id_{rsa,dsa,ecdsa,ed25519}",
    "**/.{netrc,pgpass,git-credentials,pypirc,vault-token}",
    "!**/{node_modules,.venv,venv,site-packages,dist-packages,.terraform,.tox}/**",
];

/// Keys in a repository: nobody reads them, a human is asked before one that is there changes. Packages and builds bring
/// certificates and test keys of their own, which go with the folder they are in (`rm -rf node_modules`).
pub const KEYS: &[&str] = &[
    "**/*.pem",
    "**/*.key",
    "**/*.{p12,pfx,jks,keystore,kdbx}",
    "!**/*.{example,sample,template}",
    "!**/{node_modules,.venv,venv,site-packages,dist-packages,.terraform,.tox}/**",
    "!**/cacert.pem",
];

/// Secrets named only where they are found: file or folder at the top of the repository or of a package, and the rule for it.
pub const FOUND: &[(&str, &str)] = &[
    ("secrets", "**/secrets/**"),
    (".secrets", "**/.secrets/**"),
    ("credentials.json", "**/credentials.json"),
    ("service-account.json", "**/service-account*.json"),
    ("terraform.tfstate", "**/*.tfstate*"),
    (".kube", "**/.kube/**"),
    ("kubeconfig", "**/kubeconfig"),
    ("local.settings.json", "**/local.settings.json"),
    ("master.key", "**/master.key"),
];

/// The user's own credentials: keys, logins of programs, what browsers and keychains keep.
pub const CREDENTIALS: &[&str] = &[
    "~/.ssh/**",
    "!~/.ssh/*.pub",
    "!~/.ssh/known_hosts",
    "~/.gnupg/**",
    "~/.aws/**",
    "~/.azure/**",
    "~/.config/gcloud/**",
    "~/.config/gh/**",
    "~/.config/glab-cli/**",
    "~/.config/hub",
    "~/.config/doctl/**",
    "~/.config/op/**",
    "~/.kube/**",
    "~/.docker/config.json",
    "~/.terraform.d/**",
    "~/.terraformrc",
    "~/.npmrc",
    "~/.yarnrc*",
    "~/.pypirc",
    "~/.cargo/credentials*",
    "~/.gem/credentials",
    "~/.m2/settings*.xml",
    "~/.gradle/gradle.properties",
    "~/.git-credentials",
    "~/.netrc",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.vault-token",
    "~/.password-store/**",
    "~/.local/share/keyrings/**",
    "~/.mozilla/**",
    "~/.config/{google-chrome,chromium,BraveSoftware,microsoft-edge}*/**",
    "~/Library/Keychains/**",
    "~/Library/Application Support/{Google/Chrome,Firefox,BraveSoftware}/**",
    "~/Library/Cookies/**",
];

/// What starts by itself later, outside the repository: no agent's work is there.
pub const STARTS: &[&str] = &[
    "~/.bash*",
    "~/.profile",
    "~/.z{shrc,shenv,profile,login,logout}",
    "~/.config/fish/**",
    "~/.config/autostart/**",
    "~/.config/systemd/**",
    "~/.local/share/systemd/**",
    "~/.config/environment.d/**",
    "~/.xprofile",
    "~/.xinitrc",
    "~/Library/Launch*/**",
    "/Library/Launch*/**",
    "/etc/cron*",
    "/var/spool/cron/**",
    "/etc/systemd/**",
    "/{usr/,}lib/systemd/**",
    "/etc/{profile,bash.bashrc,rc.local,environment}",
    "/etc/{profile.d,init.d,zsh,xdg/autostart,ld.so.conf.d,sudoers.d}/**",
    "/etc/{ld.so.preload,sudoers}",
];

/// What starts by itself later, in the repository: work now and then, so that a human is asked.
pub const STARTS_HERE: &[&str] = &[
    "**/.git/hooks/**",
    "**/.{husky,githooks}/**",
    "**/.pre-commit-config.yaml",
    "**/{lefthook.yml,.lefthook.yml}",
    "**/.vscode/{tasks,launch}.json",
    "**/.idea/**",
    "**/.devcontainer/**",
    "**/.envrc",
    "**/.mcp.json",
    "**/.github/{workflows,actions}/**",
    "**/.gitlab-ci.yml",
    "**/.{circleci,buildkite}/**",
    "**/Jenkinsfile",
    "**/{azure-pipelines,bitbucket-pipelines,.travis,.drone,.woodpecker}.yml",
    "~/.gitconfig",
    "~/.config/git/**",
];

/// Commands that nothing in a repository needs.
pub const NEVER: &[&str] = &["shutdown*", "reboot*", "poweroff*"];

/// Commands that a human is asked about: what leaves the machine, what acts as another user, what prints a login.
pub const ASKED: &[&str] = &[
    "git push",
    "sudo *",
    "doas *",
    "su *",
    "gh release create",
    "gh pr merge",
    "gh repo delete",
    "gh secret *",
    "docker push",
    "podman push",
    "pkexec *",
    "run0 *",
    "systemctl enable",
    "systemctl link",
    "launchctl load",
    "launchctl bootstrap",
    "gh auth status --show-token",
    "kubectl config view --raw",
    "aws configure export-credentials",
    "az account get-access-token",
    "git credential fill",
    "docker-credential-*",
    "npm token *",
    "gh auth token",
    "gcloud auth print-*",
    "security find-*",
    "security dump-keychain*",
    "secret-tool lookup*",
    "gpg --export-secret-keys*",
];

/// Addresses where a cloud hands out its machines' credentials.
pub const METADATA: &[&str] = &[
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "[fd00:ec2::254]",
    "[fd00:ec2::23]",
    "metadata.google.internal",
    "metadata.goog",
    "100.100.100.200",
];
