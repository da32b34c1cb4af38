//! `cargo xtask layers`: the rooms and the arrows between them.
//!
//! Owns the map of which room may use which, and what a library may not depend on. Refuses a crate that is not in the map.
//! Invariant: a workspace that passes has only arrows that run down (`ARCHITECTURE.md`).

use std::fs;

use anyhow::{Context, Result, bail};

use crate::import_cycles;
use crate::licences;
use crate::metadata::{Metadata, Package};
use crate::run::say;

/// Each room and the rooms it may use. Every room may use `core`; `engine`, `service` and `cli` compose the others.
const ROOMS: [(&str, &[&str]); 17] = [
    ("core", &[]),
    ("shell", &[]),
    ("policy", &["shell"]),
    ("consequence", &["shell"]),
    ("evidence", &[]),
    ("claims", &[]),
    ("agentfile", &["policy"]),
    ("package", &["agentfile", "policy", "evidence"]),
    ("store", &["evidence"]),
    ("verifier", &["evidence"]),
    ("sandbox", &["policy"]),
    ("egress", &["policy"]),
    ("evaluators", &["policy"]),
    ("clients", &[]),
    ("engine", BELOW_ENGINE),
    ("service", BELOW_SERVICE),
    ("cli", BELOW_CLI),
];

const BELOW_ENGINE: &[&str] = &[
    "shell",
    "policy",
    "consequence",
    "evidence",
    "claims",
    "agentfile",
    "package",
    "store",
    "verifier",
    "sandbox",
    "egress",
    "evaluators",
    "clients",
];
const BELOW_SERVICE: &[&str] = &[
    "shell",
    "policy",
    "consequence",
    "evidence",
    "claims",
    "agentfile",
    "package",
    "store",
    "verifier",
    "sandbox",
    "egress",
    "evaluators",
    "clients",
    "engine",
];
const BELOW_CLI: &[&str] = &[
    "shell",
    "policy",
    "consequence",
    "evidence",
    "claims",
    "agentfile",
    "package",
    "store",
    "verifier",
    "sandbox",
    "egress",
    "evaluators",
    "clients",
    "engine",
    "service",
];

/// What belongs to the command line's edge: a library has typed errors and no terminal.
const EDGE_ONLY: [&str; 10] = [
    "anyhow",
    "clap",
    "clap_complete",
    "clap_mangen",
    "miette",
    "anstream",
    "anstyle",
    "lsp-server",
    "lsp-types",
    "ratatui",
];

/// Checks arrows between crates, import cycles between files, lint tables and licences.
pub fn run() -> Result<()> {
    let workspace = Metadata::workspace()?;
    let mut findings = arrows(&workspace);
    let lints = fs::read_to_string(workspace.root.join("Cargo.toml")).context("the workspace's manifest")?;
    for package in &workspace.packages {
        let manifest = fs::read_to_string(&package.manifest).with_context(|| package.manifest.display().to_string())?;
        // End-to-end tests fail by panicking; they have lints of their own.
        let takes = match package.name.as_str() {
            "writ-tests" => true,
            "writ-sandbox" => repeats_lints_but_unsafe(&manifest, &lints),
            _ => takes_workspace_lints(&manifest),
        };
        if !takes {
            findings.push(format!("`{}` lacks `[lints] workspace = true`", package.name));
        }
    }
    for package in &workspace.packages {
        findings.extend(import_cycles::of(&package.name, &package.manifest.with_file_name("src"))?);
    }
    let all = Metadata::with_dependencies()?;
    findings.extend(licences::check(&all.packages));
    if !findings.is_empty() {
        bail!("{} findings\n  {}", findings.len(), findings.join("\n  "));
    }
    let own = workspace.packages.len();
    say(&format!("    {own} crates in their places, licences of {} dependencies allowed", all.packages.len() - own));
    Ok(())
}

/// Every arrow of the workspace that the map does not have.
fn arrows(workspace: &Metadata) -> Vec<String> {
    let crates = workspace.root.join("crates");
    let rooms = workspace.packages.iter().filter(|package| package.manifest.starts_with(&crates));
    rooms.flat_map(arrows_of).collect()
}

fn arrows_of(package: &Package) -> Vec<String> {
    let Some(room) = room(&package.name) else {
        return vec![format!("`{}` is no room of this house", package.name)];
    };
    let Some((_, below)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("`{room}` is not in the map of rooms")];
    };
    let mut findings = Vec::new();
    for used in &package.uses {
        match self::room(used) {
            Some(other) if other != "core" && !below.contains(&other) => {
                findings.push(format!("`{room}` may not use `{other}`"));
            }
            Some("core") if room == "core" => findings.push("`core` may not use itself".to_owned()),
            _ => {}
        }
        if room != "cli" && EDGE_ONLY.contains(&used.as_str()) {
            findings.push(format!("`{room}` is a library and may not use `{used}`"));
        }
    }
    findings
}

/// The room a package name stands for; `None` for everybody else's packages.
fn room(package: &str) -> Option<&str> {
    if package == "writ" { Some("cli") } else { package.strip_prefix("writ-") }
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.by_ref().take_while(|line| !line.starts_with('[')).any(|line| line == "workspace = true")
}

/// Whether a manifest repeats the workspace's lints, with `unsafe` denied, so that a file can say why it has it, instead of forbidden.
fn repeats_lints_but_unsafe(manifest: &str, workspace: &str) -> bool {
    let table = |text: &str, name: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| *line != name).skip(1);
        lines.take_while(|line| !line.starts_with('[') && !line.trim().is_empty()).map(str::to_owned).collect()
    };
    let mut wanted = table(workspace, "[workspace.lints.rust]");
    for line in &mut wanted {
        *line = line.replace("unsafe_code = \"forbid\"", "unsafe_code = \"deny\"");
    }
    table(manifest, "[lints.rust]") == wanted
        && table(manifest, "[lints.clippy]") == table(workspace, "[workspace.lints.clippy]")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn workspace(name: &str, uses: &[&str]) -> Metadata {
        let package = Package {
            name: name.to_owned(),
            manifest: PathBuf::from("/w/crates/x/Cargo.toml"),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        };
        Metadata { root: PathBuf::from("/w"), packages: vec![package] }
    }

    #[test]
    fn arrows_run_down() {
        for (name, uses) in [
            ("writ-core", &["ryu-js"][..]),
            ("writ-policy", &["writ-core", "writ-shell", "url"]),
            ("writ-store", &["writ-core", "writ-evidence"]),
            ("writ-engine", &["writ-policy", "writ-store", "writ-clients"]),
            ("writ", &["writ-engine", "anyhow", "clap"]),
        ] {
            assert_eq!(arrows(&workspace(name, uses)), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn other_arrows_are_found() {
        for (name, uses, finding) in [
            ("writ-core", &["writ-shell"][..], "`core` may not use `shell`"),
            ("writ-shell", &["writ-core", "writ-policy"], "`shell` may not use `policy`"),
            ("writ-clients", &["writ-policy"], "`clients` may not use `policy`"),
            ("writ-engine", &["writ"], "`engine` may not use `cli`"),
            ("writ-policy", &["anyhow"], "`policy` is a library and may not use `anyhow`"),
            ("writ-attic", &[], "`attic` is not in the map of rooms"),
            ("shed", &[], "`shed` is no room of this house"),
        ] {
            assert_eq!(arrows(&workspace(name, uses)), [finding]);
        }
    }

    #[test]
    fn the_map_has_no_cycle() {
        for (place, (room, below)) in ROOMS.iter().enumerate() {
            for used in *below {
                let other = ROOMS.iter().position(|(name, _)| name == used);
                assert!(other.is_some_and(|other| other < place), "{room} → {used}");
            }
        }
    }

    #[test]
    fn the_sandbox_repeats_the_lints() {
        let workspace =
            "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n\n[workspace.lints.clippy]\nexit = \"deny\"\n";
        let same = "[lints.rust]\nunsafe_code = \"deny\"\n\n[lints.clippy]\nexit = \"deny\"\n";
        assert!(repeats_lints_but_unsafe(same, workspace));
        assert!(!repeats_lints_but_unsafe(&same.replace("exit", "todo"), workspace));
        assert!(!repeats_lints_but_unsafe(&same.replace("deny\"\n\n", "allow\"\n\n"), workspace));
        assert!(!repeats_lints_but_unsafe("[lints.rust]\nunsafe_code = \"deny\"\n", workspace));
    }

    #[test]
    fn lint_tables_are_seen() {
        assert!(takes_workspace_lints("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n"));
        assert!(!takes_workspace_lints("[package]\nname = \"a\"\n\n[lints]\n\n[dependencies]\nworkspace = true\n"));
        assert!(!takes_workspace_lints("[package]\nname = \"a\"\n"));
    }
}
