//! The programs that tests call, present or installed.
//!
//! Owns what has to be on the machine beside the toolchain. Refuses to skip: a program that is missing is installed with the
//! system's packages or cargo, or the run fails and names it. Invariant: after [`require`], every program answers.

use std::process::Command;

use anyhow::{Result, bail};

use crate::run::{call, cargo, quietly, say};

/// A program, how to ask whether it is there, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    probe: &'static str,
    package: &'static str,
}

/// Git, bash, Node, OpenSSL, Python and Chromium are the oracles of the tests; npm fetches the real agent client and a TypeScript compiler,
/// a virtual environment of Python's the fuzzer of the service; PostgreSQL is what several replicas share. The egress proxy is asked by
/// curl, Python, pip and Java too; tokens are read by PyJWT, of the system's own Python. runc makes the containers that Writ is
/// tried in; docker-registry and skopeo are the other side of packages; SoftHSM is the token that keeps a notary's key, asked through OpenSC.
const TOOLS: [Tool; 22] = [
    Tool { program: "git", probe: "--version", package: "git" },
    Tool { program: "bash", probe: "--version", package: "bash" },
    Tool { program: "openssl", probe: "version", package: "openssl" },
    Tool { program: "node", probe: "--version", package: "nodejs" },
    Tool { program: "npm", probe: "--version", package: "npm" },
    Tool { program: "python3", probe: "-cimport ensurepip, venv", package: "python3-venv" },
    Tool { program: "chromium", probe: "--version", package: "chromium" },
    Tool { program: "curl", probe: "--version", package: "curl" },
    Tool { program: "python3", probe: "-cimport requests", package: "python3-requests" },
    Tool { program: "python3", probe: "-mpip", package: "python3-pip" },
    Tool { program: "/usr/bin/python3", probe: "-cimport jwt", package: "python3-jwt" },
    Tool { program: "/usr/bin/python3", probe: "-cimport cryptography", package: "python3-cryptography" },
    Tool { program: "java", probe: "-version", package: "default-jre-headless" },
    Tool { program: "ps", probe: "--version", package: "procps" },
    Tool { program: "runc", probe: "--version", package: "runc" },
    Tool { program: "ip", probe: "-V", package: "iproute2" },
    Tool { program: "softhsm2-util", probe: "--version", package: "softhsm2" },
    Tool { program: "opensc-tool", probe: "--info", package: "opensc" },
    Tool { program: "docker-registry", probe: "--version", package: "docker-registry" },
    Tool { program: "skopeo", probe: "--version", package: "skopeo" },
    Tool { program: "cvc5", probe: "--version", package: "cvc5" },
    Tool { program: "initdb", probe: "--version", package: "postgresql-15" },
];

/// Installs what tests need and this machine lacks.
pub fn require() -> Result<()> {
    let missing = missing();
    if !missing.is_empty() {
        install(&missing)?;
    }
    node_is_new_enough()?;
    cargo_tool("nextest", "cargo-nextest")
}

/// Debian 12 brings Node 18, whose WebCrypto is behind a flag; `verifiers/ts` wants 20.
fn node_is_new_enough() -> Result<()> {
    let said = quietly("node", &["--version"]).map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let said = said.unwrap_or_default();
    let major = said.strip_prefix('v').and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if major.is_none_or(|major| major < 20) {
        bail!("`node --version` says `{said}`, 20 is needed\nhelp: Debian 13 has it as a package");
    }
    Ok(())
}

/// Installs a cargo subcommand that is not there.
pub fn cargo_tool(subcommand: &str, package: &str) -> Result<()> {
    if answers("cargo", &[subcommand, "--version"]) {
        return Ok(());
    }
    say(&format!("    `cargo {subcommand}` is missing: installing {package}"));
    call(&mut cargo(["install", "--locked", package]))
}

/// Whether a program starts and ends well.
pub fn answers(program: &str, args: &[&str]) -> bool {
    quietly(program, args).is_some_and(|output| output.status.success())
}

fn missing() -> Vec<&'static Tool> {
    TOOLS.iter().filter(|tool| !answers(tool.program, &[tool.probe]) && !in_debian_folder(tool)).collect()
}

/// Debian keeps PostgreSQL's server out of the path.
fn in_debian_folder(tool: &Tool) -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    tool.program == "initdb" && versions.into_iter().any(|version| version.path().join("bin/initdb").is_file())
}

fn install(tools: &[&Tool]) -> Result<()> {
    let packages: Vec<&str> = tools.iter().map(|tool| tool.package).collect();
    let list = packages.join(" ");
    if !is_root() || !answers("apt-get", &["--version"]) {
        bail!("these programs are missing: {list}\nhelp: install them, on Debian with `sudo apt-get install {list}`");
    }
    say(&format!("    missing: {list}; installing with apt-get"));
    call(Command::new("apt-get").arg("update"))?;
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "--yes", "--no-install-recommends"]);
    call(install.args(&packages))?;
    match self::missing().first() {
        Some(tool) => bail!("`{}` does not run although its package is installed", tool.program),
        None => Ok(()),
    }
}

fn is_root() -> bool {
    quietly("id", &["-u"]).is_some_and(|output| output.stdout == b"0\n")
}
