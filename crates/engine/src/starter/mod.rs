//! A starter policy fitted to what a repository holds: its languages, lock files and secrets.
//!
//! Owns the knowledge of what to look for; writes nothing itself. The result always parses as a policy without
//! warnings, which a test checks.

use std::path::Path;

use writ_core::json::{self, Object, Value};

/// What a language's presence adds.
struct Toolchain {
    marker: &'static str,
    name: &'static str,
    lock_files: &'static [&'static str],
    publish: &'static [&'static str],
}

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        marker: "Cargo.toml",
        name: "Rust",
        lock_files: &["Cargo.lock"],
        publish: &["cargo publish", "cargo yank"],
    },
    Toolchain {
        marker: "package.json",
        name: "JavaScript",
        lock_files: &["package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"],
        publish: &["npm publish", "pnpm publish", "yarn publish", "bun publish"],
    },
    Toolchain {
        marker: "pyproject.toml",
        name: "Python",
        lock_files: &["uv.lock", "poetry.lock", "Pipfile.lock"],
        publish: &["twine upload", "uv publish", "poetry publish"],
    },
    Toolchain { marker: "requirements.txt", name: "Python", lock_files: &[], publish: &["twine upload"] },
    Toolchain { marker: "go.mod", name: "Go", lock_files: &["go.sum"], publish: &[] },
    Toolchain { marker: "Gemfile", name: "Ruby", lock_files: &["Gemfile.lock"], publish: &["gem push"] },
    Toolchain { marker: "composer.json", name: "PHP", lock_files: &["composer.lock"], publish: &[] },
    Toolchain { marker: "pom.xml", name: "Java", lock_files: &[], publish: &["mvn deploy"] },
    Toolchain { marker: "mix.exs", name: "Elixir", lock_files: &["mix.lock"], publish: &["mix hex.publish"] },
    Toolchain { marker: "flake.nix", name: "Nix", lock_files: &["flake.lock"], publish: &[] },
    Toolchain { marker: "main.tf", name: "Terraform", lock_files: &[".terraform.lock.hcl"], publish: &[] },
];

/// Secrets every repository is likely to meet.
const SECRETS: &[&str] = &[
    "**/.env",
    "**/.env.*",
    "!**/.env.example",
    "!**/.env.sample",
    "!**/.env.template",
    "**/*.pem",
    "**/*.key",
    "**/id_rsa",
    "**/id_ed25519",
    "**/.netrc",
    "~/.ssh/**",
    "~/.aws/**",
    "~/.gnupg/**",
];

/// Secrets named only where they are found: file or folder at the root, and the rule for it.
const FOUND_SECRETS: &[(&str, &str)] = &[
    ("secrets", "**/secrets/**"),
    ("credentials.json", "**/credentials.json"),
    ("service-account.json", "**/service-account*.json"),
    (".npmrc", "**/.npmrc"),
    (".pypirc", "**/.pypirc"),
    ("terraform.tfstate", "**/*.tfstate"),
    (".kube", "**/.kube/**"),
    (".vault-token", "**/.vault-token"),
];

/// A starter policy and what it was fitted to.
#[derive(Clone, Debug)]
pub struct Starter {
    /// The policy as indented JSON with a final newline.
    pub text: String,
    /// What was found, for the user: `Rust`, `Cargo.lock`, `secrets/`.
    pub found: Vec<String>,
}

/// Looks at the top of `root` and writes a policy for it.
pub fn starter(root: &Path) -> Starter {
    let mut found = Vec::new();
    let mut read_only: Vec<&str> = Vec::new();
    let mut approval = vec!["Bash:git push", "Bash:rm -rf *", "Bash:sudo *"];
    for chain in TOOLCHAINS.iter().filter(|chain| root.join(chain.marker).exists()) {
        note(&mut found, chain.name);
        for lock in chain.lock_files.iter().filter(|lock| root.join(lock).exists()) {
            note(&mut found, lock);
            read_only.push(lock);
        }
        approval.extend(chain.publish.iter().copied());
    }
    let mut denied: Vec<&str> = SECRETS.to_vec();
    for (name, rule) in FOUND_SECRETS.iter().filter(|(name, _)| root.join(name).exists()) {
        note(&mut found, name);
        denied.push(rule);
    }
    let mut approvals: Vec<String> = Vec::new();
    for rule in approval {
        let rule = if rule.starts_with("Bash:") { rule.to_owned() } else { format!("Bash:{rule}") };
        if !approvals.contains(&rule) {
            approvals.push(rule);
        }
    }
    let name = root.file_name().map_or_else(|| "policy".to_owned(), |name| name.to_string_lossy().into_owned());
    Starter { text: render(&name, approvals, &denied, &read_only), found }
}

fn note(found: &mut Vec<String>, what: &str) {
    if !found.iter().any(|known| known == what) {
        found.push(what.to_owned());
    }
}

fn render(name: &str, approvals: Vec<String>, denied: &[&str], read_only: &[&str]) -> String {
    let list = |items: &[&str]| Value::Array(items.iter().map(|&item| Value::from(item)).collect());
    let mut tools = Object::new();
    tools.push("deny", list(&["Bash:git push --force*", "Bash:mkfs*", "Bash:shutdown*"]));
    tools.push("requireApproval", Value::Array(approvals.into_iter().map(Value::from).collect()));
    let mut files = Object::new();
    files.push("deny", list(denied));
    if !read_only.is_empty() {
        files.push("readOnly", list(read_only));
    }
    let mut policy = Object::new();
    policy.push("version", Value::from("1.0"));
    policy.push("name", Value::from(name));
    policy.push("tools", Value::Object(tools));
    policy.push("files", Value::Object(files));
    json::pretty(&Value::Object(policy)) + "\n"
}
