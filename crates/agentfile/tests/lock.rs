//! The lock: what is pinned, that it is stable, that no secret gets in.

use std::cell::RefCell;
use std::collections::BTreeMap;

use writ_agentfile::lock::{self, Found, Lock, Shown, Sources};
use writ_agentfile::reference::OciRef;
use writ_agentfile::{Options, lint};
use writ_core::{Digest, json};

struct Made {
    files: BTreeMap<&'static str, &'static str>,
    asked: RefCell<Vec<String>>,
}

impl Sources for Made {
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        self.asked.borrow_mut().push(path.to_owned());
        Ok(self.files.get(path).map(|text| text.as_bytes().to_vec()))
    }

    fn tree(&self, path: &str) -> Result<Option<BTreeMap<String, Digest>>, String> {
        let below = format!("{path}/");
        let files = self
            .files
            .iter()
            .filter_map(|(name, text)| Some((name.strip_prefix(&below)?.to_owned(), Digest::of(text.as_bytes()))));
        Ok(Some(files.collect::<BTreeMap<_, _>>()).filter(|tree| !tree.is_empty()))
    }

    fn registry(&self, reference: &OciRef) -> Result<Found, String> {
        if reference.repository == "gone" {
            Err("no such thing".to_owned())
        } else {
            Ok(Found { digest: format!("sha256:{}", "1".repeat(64)), package: true })
        }
    }

    fn server(&self, name: &str, _address: Option<&str>) -> Result<Option<Shown>, String> {
        let tool = |name: &str| {
            json::parse(
                format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"description":"d"}}"#).as_bytes(),
            )
        };
        let tools =
            [tool("b"), tool("a")].into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        Ok((name == "github").then_some(Shown { version: "3".to_owned(), tools }))
    }
}

fn made() -> Made {
    let files = [
        (
            "f/review.py",
            "import x\n\ndef other(): pass\n\ndef diff(\n    a: str,\n    b: int = 3,\n) -> str:\n    return a\n",
        ),
        ("skills/pr/SKILL.md", "---\nname: pr\nversion: \"2.1.0\"\n---\nText\n"),
        ("skills/pr/more.txt", "x"),
        ("sops/a.md", "# Overview\n"),
        ("tools/read.json", r#"{"version":"1.0","inputs":{"type":"object"}}"#),
        ("toolsets/safe.json", r#"["utcp:read","utcp:stat"]"#),
    ];
    Made { files: files.into_iter().collect(), asked: RefCell::default() }
}

const TEXT: &str = "AGENT a\nFROM ghcr.io/o/base:1\nAUDIT basic\nTOOL utcp:read\nTOOL mcp:github.a\nTOOLSET s:safe\nFUNCTION ./f/review.py:diff\n\
                    FUNCTION named\nSKILL pr\nSKILL unknown\nSOP ./sops/a.md\nSOP inline\ntext\nEND\nMCP github\nMCP elsewhere\n\
                    CRED t env:PLANTED_NAME host:h.example\n";

fn locked(text: &str, sources: &Made) -> Result<Lock, Vec<String>> {
    let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
    assert!(!linted.has_errors(), "{:?}", linted.found);
    lock::resolve(&linted.agent, &linted.rules, sources)
        .map_err(|found| found.into_iter().map(|found| format!("{}: {}", found.place.line, found.message)).collect())
}

#[test]
fn everything_is_pinned_and_the_same_again() {
    let lock = locked(TEXT, &made()).unwrap();
    assert_eq!(lock, Lock::parse(&lock.to_bytes()).unwrap());
    assert_eq!(lock.to_bytes(), locked(TEXT, &made()).unwrap().to_bytes());
    let tools: Vec<(&str, &str)> = lock.tools.iter().map(|tool| (tool.name.as_str(), tool.source.as_str())).collect();
    assert_eq!(tools, [("mcp:github.a", "mcp:github"), ("utcp:read", "./tools/read.json"), ("utcp:stat", "runner")]);
    assert_eq!(
        lock.skills.iter().map(|skill| (skill.version.as_str(), skill.hash.is_some())).collect::<Vec<_>>(),
        [("2.1.0", true), ("", false)]
    );
    assert!(
        lock.functions
            .iter()
            .any(|function| function.path == "./f/review.py:diff" && function.type_hint_digest.is_some())
    );
    assert!(lock.base_image.as_ref().is_some_and(|base| base.package));
    assert_eq!(
        lock.mcp.iter().map(|server| (server.name.as_str(), server.tools.len())).collect::<Vec<_>>(),
        [("elsewhere", 0), ("github", 2)]
    );
}

#[test]
fn no_source_of_a_secret_gets_in() {
    let text = String::from_utf8(locked(TEXT, &made()).unwrap().to_bytes()).unwrap();
    assert!(text.contains("\"t\"") && !text.contains("PLANTED_NAME") && !text.contains("h.example"), "{text}");
}

#[test]
fn what_changes_is_told_and_nothing_else() {
    let before = locked(TEXT, &made()).unwrap();
    let mut sources = made();
    sources.files.insert("skills/pr/more.txt", "y");
    sources.files.insert("f/review.py", "def diff(a: str, b: str) -> str: ...\n");
    let after = locked(TEXT, &sources).unwrap();
    let told: Vec<String> = lock::differences(&before, &after)
        .into_iter()
        .map(|line| line.split(": ").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        told,
        ["functions/./f/review.py:diff/hash", "functions/./f/review.py:diff/type_hint_digest", "skills/pr/hash"]
    );
    assert_eq!(lock::differences(&before, &before), [] as [String; 0]);
    let kept = after.keeping(&before, &["pr".to_owned()]);
    assert_eq!(lock::differences(&before, &kept).len(), 1, "only the one that was asked for");
}

#[test]
fn what_cannot_be_resolved_is_told_at_its_line() {
    for (line, why) in [
        ("FUNCTION ./f/none.py:x", "no such file"),
        ("FUNCTION ./f/review.py:nope", "declares"),
        ("SKILL ./skills/none", "no such file or folder"),
        ("SKILL ./skills", "SKILL.md"),
        ("TOOLSET s:none", "list of tools"),
        ("FROM ghcr.io/gone", "no such thing"),
    ] {
        let found = locked(&format!("AGENT a\nAUDIT off\n{line}\n"), &made()).unwrap_err();
        assert!(found.iter().any(|found| found.starts_with("3: ") && found.contains(why)), "{line}: {found:?}");
    }
    let found = locked("AGENT a\nAUDIT off\nMCP github\nTOOL mcp:github.none\nALLOW invoke mcp:github.none\n", &made())
        .unwrap_err();
    assert!(found.iter().any(|found| found.contains("no such tool")), "{found:?}");
}
