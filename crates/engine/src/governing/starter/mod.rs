//! A starter policy fitted to what a repository holds: its languages, packages and secrets.
//!
//! Owns the knowledge of what to look for; writes nothing itself. The result always parses as a policy without
//! warnings, and lets daily work in eight kinds of repositories pass, which tests check. Page: `spec/starter.md`.

mod packages;
mod rules;

pub use rules::{METADATA, NEVER};

use std::fs;
use std::path::Path;

use serde::Serialize;
use writ_core::json;

/// What a language's presence adds.
struct Toolchain {
    marker: &'static str,
    name: &'static str,
    /// What sends the repository's work to others, or acts on what others use.
    publish: &'static [&'static str],
}

const TOOLCHAINS: &[Toolchain] = &[
    Toolchain { marker: "Cargo.toml", name: "Rust", publish: &["cargo publish", "cargo yank"] },
    Toolchain {
        marker: "package.json",
        name: "JavaScript",
        publish: &[
            "npm publish",
            "npm unpublish",
            "pnpm publish",
            "yarn publish",
            "yarn npm publish",
            "bun publish",
            "lerna publish",
        ],
    },
    Toolchain { marker: "pyproject.toml", name: "Python", publish: PYTHON },
    Toolchain { marker: "setup.py", name: "Python", publish: PYTHON },
    Toolchain { marker: "requirements.txt", name: "Python", publish: PYTHON },
    Toolchain { marker: "go.mod", name: "Go", publish: &["goreleaser release"] },
    Toolchain { marker: "Gemfile", name: "Ruby", publish: &["gem push"] },
    Toolchain { marker: "composer.json", name: "PHP", publish: &[] },
    Toolchain { marker: "pom.xml", name: "Java", publish: &["mvn deploy", "mvn release*"] },
    Toolchain { marker: "build.gradle", name: "Java", publish: GRADLE },
    Toolchain { marker: "build.gradle.kts", name: "Java", publish: GRADLE },
    Toolchain { marker: "mix.exs", name: "Elixir", publish: &["mix hex.publish"] },
    Toolchain { marker: "flake.nix", name: "Nix", publish: &[] },
    Toolchain { marker: "main.tf", name: "Terraform", publish: TERRAFORM },
    Toolchain { marker: "versions.tf", name: "Terraform", publish: TERRAFORM },
    Toolchain { marker: "Chart.yaml", name: "Helm", publish: &["helm push", "helm install", "helm upgrade"] },
];
const PYTHON: &[&str] = &["twine upload", "uv publish", "poetry publish", "hatch publish", "flit publish"];
const GRADLE: &[&str] = &["gradle publish*", "gradlew publish*"];
const TERRAFORM: &[&str] = &[
    "terraform apply",
    "terraform destroy",
    "terraform import",
    "terraform state rm",
    "terraform state mv",
    "tofu apply",
    "tofu destroy",
    "terragrunt apply",
    "terragrunt destroy",
];

/// A starter policy and what it was fitted to.
#[derive(Clone, Debug)]
pub struct Starter {
    /// The policy as indented JSON with a final newline.
    pub text: String,
    /// What was found, for the user: `Rust`, `5 packages`, `secrets/`.
    pub found: Vec<String>,
}

/// Looks at `root` and the packages below it, and writes a policy for them. One that observes stops nothing.
pub fn starter(root: &Path, observe: bool) -> Starter {
    let mut found = Vec::new();
    let mut asked: Vec<&str> = rules::ASKED.to_vec();
    let mut denied: Vec<&str> = [rules::SECRETS, rules::CREDENTIALS].concat();
    let mut count = 0;
    for folder in packages::folders(root) {
        let chains = TOOLCHAINS.iter().filter(|chain| folder.join(chain.marker).exists());
        let mut is_package = false;
        for chain in chains {
            is_package = true;
            note(&mut found, chain.name);
            asked.extend(chain.publish);
        }
        count += usize::from(is_package && folder != root);
        for (name, rule) in rules::FOUND.iter().filter(|(name, _)| folder.join(name).exists()) {
            note(&mut found, name);
            denied.push(rule);
        }
        if holds_login(&folder.join(".npmrc")) {
            note(&mut found, ".npmrc");
            denied.push("**/.npmrc");
        }
    }
    match count {
        0 => {}
        1 => found.push("1 package below".to_owned()),
        more => found.push(format!("{more} packages below")),
    }
    let name = root.file_name().map_or_else(|| "policy".to_owned(), |name| name.to_string_lossy().into_owned());
    Starter { text: render(&name, &asked, &denied, observe), found }
}

/// Whether an `.npmrc` holds more than settings.
fn holds_login(npmrc: &Path) -> bool {
    fs::read_to_string(npmrc)
        .is_ok_and(|text| ["_authToken", "_auth", "_password"].iter().any(|key| text.contains(key)))
}

fn note(found: &mut Vec<String>, what: &str) {
    if !found.iter().any(|known| known == what) {
        found.push(what.to_owned());
    }
}

fn render(name: &str, asked: &[&str], denied: &[&str], observe: bool) -> String {
    let reads = rules::KEYS.iter().map(|rule| format!("Read:{rule}"));
    let kept = rules::KEYS.iter().map(|rule| format!("Edit:{rule}"));
    let starts = rules::STARTS_HERE.iter().flat_map(|rule| [format!("Write:{rule}"), format!("Edit:{rule}")]);
    let policy = Policy {
        version: "1.0",
        name,
        enforce: observe.then_some("observe"),
        tools: Tools {
            deny: once(commands(rules::NEVER).chain(reads)),
            require_approval: once(commands(asked).chain(starts).chain(kept)),
        },
        files: Files {
            deny: once(denied.iter().map(ToString::to_string)),
            read_only: once(rules::STARTS.iter().map(ToString::to_string)),
        },
        domains: Domains { deny: once(rules::METADATA.iter().map(ToString::to_string)) },
        tokens: "ask",
        consequences: Consequences { ask: 3, deny: 4 },
    };
    json::pretty(&json::to_value(&policy)) + "\n"
}

/// The members of a policy that a starter has, in the order people read them.
#[derive(Serialize)]
struct Policy<'a> {
    version: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    enforce: Option<&'static str>,
    tools: Tools,
    files: Files,
    domains: Domains,
    tokens: &'static str,
    consequences: Consequences,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    deny: Vec<String>,
    require_approval: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    deny: Vec<String>,
    read_only: Vec<String>,
}

#[derive(Serialize)]
struct Domains {
    deny: Vec<String>,
}

#[derive(Serialize)]
struct Consequences {
    ask: u8,
    deny: u8,
}

fn commands<'a>(patterns: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    patterns.iter().map(|pattern| format!("Bash:{pattern}"))
}

/// A list in which each text stands once.
fn once(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for item in items {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}
