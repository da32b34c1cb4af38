//! Places that every sandbox treats alike: what programs need, what is a credential, what runs outside later.

/// What programs need to run at all, where only named files may be read.
pub const SYSTEM: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/var/lib/dpkg",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    // How much memory and how many processors there are to use.
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
];

/// The same in the user's home: toolchains, package caches, settings without secrets.
pub const TOOLS: [&str; 24] = [
    ".cargo/bin",
    ".cargo/env",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/config.toml",
    ".rustup",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".sdkman",
    ".asdf",
    ".volta",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".npm",
    ".cache/pip",
    ".cache/uv",
    ".cache/go-build",
    "go",
    ".gitconfig",
    ".config/git",
    ".profile",
    ".bashrc",
];

/// Of these, what programs write to.
pub const CACHES: [&str; 7] =
    [".cargo/registry", ".cargo/git", ".npm", ".cache/pip", ".cache/uv", ".cache/go-build", "go"];

/// Credentials in the user's home.
pub const SECRETS: [&str; 40] = [
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
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/rclone/rclone.conf",
    ".config/composer/auth.json",
    ".composer/auth.json",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".gem/credentials",
    ".s3cfg",
    ".boto",
    ".databrickscfg",
    ".oci",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
];

/// Where a container is handed its credentials: a service account's token, mounted secrets.
pub const HANDED_IN: [&str; 2] = ["/run/secrets", "/var/run/secrets"];

/// Names which shells, editors and clients obey outside the sandbox: kept in the policy's folder, also where they are not there yet, and in
/// the one a call starts in. A last `/` is a folder.
pub const KEPT: [&str; 15] = [
    ".claude/",
    ".mcp.json",
    ".codex/",
    ".gemini/",
    ".qwen/",
    ".opencode/",
    "opencode.json",
    "opencode.jsonc",
    ".cursor/",
    ".vscode/",
    ".idea/",
    ".zed/",
    ".envrc",
    ".mise.toml",
    "mise.toml",
];

/// Folders of a project that hold more than what clients obey: a name in them is kept where its own folder is there.
pub const SHARED: [&str; 2] = [".github", ".factory"];

/// The same, kept where they are there: a repository's own are obeyed only where somebody says so, or who has a client that few have. In
/// the home they are kept anyway.
pub const KEPT_IF_THERE: [&str; 10] = [
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".gitconfig",
    ".gitmodules",
    ".factory/",
    "crush.json",
    ".crush.json",
];

/// What git runs or obeys, below its own folder.
pub const GIT_OBEYS: [&str; 6] = ["hooks/", "config", "commondir", "config.worktree", "info/attributes", "modules/"];
