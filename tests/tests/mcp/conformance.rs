//! The public conformance suite (npm `@modelcontextprotocol/conformance`) against `writ mcp serve --http`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::server::{Http, folder};

const VERSION: &str = "0.1.16";
/// The suite needs Node 22; the package of that name carries it.
const NODE: &str = "22";

/// Scenarios about what Writ serves.
const APPLICABLE: [&str; 4] = ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"];

/// Scenarios that do not apply, and why (`docs/mcp.md`).
const OTHERS: [(&str, &[&str]); 5] = [
    (
        "they call fixture tools of the suite's own example server (`test_simple_text`, …)",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "json-schema-2020-12",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    ("Writ has no sessions, which are optional", &["server-sse-polling", "server-sse-multiple-streams"]),
    (
        "Writ has no resources",
        &[
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "Writ has no prompts",
        &[
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
    ("Writ sends no log messages and completes no arguments", &["logging-set-level", "completion-complete"]),
];

/// The suite and its Node, installed from npm once.
struct Suite {
    node: PathBuf,
    program: PathBuf,
}

impl Suite {
    fn installed() -> Self {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mcp-conformance-{VERSION}"));
        fs::create_dir_all(&cache).unwrap();
        let lock = File::create(cache.join("lock")).unwrap();
        lock.lock().unwrap();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let package = format!("node-linux-{architecture}");
        let modules = cache.join("node_modules");
        let suite = Self {
            node: modules.join(&package).join("bin/node"),
            program: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        };
        if !(suite.node.is_file() && suite.program.is_file()) {
            let dependencies = json!({ "@modelcontextprotocol/conformance": VERSION, package: NODE });
            let manifest =
                json!({ "name": "conformance", "private": true, "version": "0.0.0", "dependencies": dependencies });
            fs::write(cache.join("package.json"), manifest.to_string()).unwrap();
            let npm = Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
                .current_dir(&cache)
                .output()
                .expect("npm is needed to install the conformance suite");
            assert!(npm.status.success(), "the suite cannot be installed: {}", String::from_utf8_lossy(&npm.stderr));
        }
        assert!(suite.node.is_file() && suite.program.is_file(), "the suite's packages hold other files than they did");
        suite
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.node).arg(&self.program).args(arguments).output().expect("the suite's Node starts")
    }
}

/// Whether something was checked, and nothing but successes came of it.
fn all_passed(said: &str) -> bool {
    let counts = said.lines().find_map(|line| line.trim().strip_prefix("Passed: "));
    counts.and_then(|counts| counts.split_once(", ")).is_some_and(|(passed, rest)| {
        let (done, all) = passed.split_once('/').unwrap_or_default();
        done == all && all != "0" && rest == "0 failed, 0 warnings"
    })
}

#[test]
fn the_applicable_scenarios_pass() {
    let suite = Suite::installed();
    let folder = folder("conformance");
    let server = Http::start(&folder, &[]);
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let mut failures = String::new();
    for scenario in APPLICABLE {
        let out = folder.join(scenario);
        let ran = suite.run(&["server", "--url", &url, "--scenario", scenario, "--output-dir", &out.to_string_lossy()]);
        let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if !(ran.status.success() && all_passed(&said)) {
            failures.push_str(&format!("\n--- {scenario}\n{said}"));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_scenario_is_accounted_for() {
    let suite = Suite::installed();
    let listed = String::from_utf8(suite.run(&["list", "--server"]).stdout).unwrap();
    let mut listed: Vec<&str> =
        listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next()).collect();
    let others = OTHERS.iter().flat_map(|(_, scenarios)| scenarios.iter().copied());
    let mut known: Vec<&str> = APPLICABLE.into_iter().chain(others).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}
