//! Cases beside a policy: calls, and what each is to come to.
//!
//! Owns their form and their check; each is decided as `writ why` decides it. Refuses what it does not know: a misspelt member would make a
//! case that tests something else. Invariant: a case passes only where its verdict, and the rule it names, are those that it expects. Page:
//! `spec/policy-tests.md`.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_core::json::{self, FormatError, Limits, Object, Value};
use writ_core::{Decision, ToolCall, Verdict, regular_file};

use super::what;
use crate::Home;
use crate::decide::Sessionless;
use crate::governing::Governing;
use crate::governing::layers::Caller;

/// Largest file of cases.
const MAX_BYTES: u64 = 16 << 20;
/// What a file of cases is called, behind the policy's own name.
const ENDINGS: [&str; 2] = [JSON_LINES, ".tests.json"];
/// One case a line.
const JSON_LINES: &str = ".tests.jsonl";

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    name: Option<String>,
    /// A shell line, for the Bash tool.
    #[serde(default)]
    line: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    /// Where it would run, from the policy's folder.
    #[serde(default)]
    cwd: Option<String>,
    /// The type of the sub-agent that makes it.
    #[serde(default)]
    agent: Option<String>,
    expect: Expected,
    /// The rule that has to be among those that carry the verdict.
    #[serde(default)]
    rule: Option<String>,
}

/// What a case is to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// It may run.
    Allow,
    /// A human is asked.
    Ask,
    /// It must not run.
    Deny,
    /// One of the last two.
    NotAllow,
}

impl Expected {
    fn is(self, verdict: Verdict) -> bool {
        match self {
            Self::Allow => verdict == Verdict::Allow,
            Self::Ask => verdict == Verdict::Ask,
            Self::Deny => verdict == Verdict::Deny,
            Self::NotAllow => verdict > Verdict::Allow,
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(json::word(self))
    }
}

/// What a case came to.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Its name, or its place in the file.
    pub name: String,
    /// Whether it came to what it expects.
    pub passed: bool,
    /// The tool.
    pub tool: String,
    /// What it is about.
    pub what: String,
    /// What it expects.
    pub expect: Expected,
    /// The rule that it expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What it came to, and why.
    #[serde(flatten)]
    pub decision: Decision,
}

/// Why cases cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// There is no file of cases.
    #[error("no cases beside {}: write {}, one JSON object a line: {{\"line\": \"git push\", \"expect\": \"ask\"}}", policy.display(), wanted.display())]
    None {
        /// The policy.
        policy: PathBuf,
        /// Where they would be.
        wanted: PathBuf,
    },
    /// A file without a case.
    #[error("{} holds no cases: write one JSON object a line, {{\"line\": \"git push\", \"expect\": \"ask\"}}", .0.display())]
    Empty(PathBuf),
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A case that does not read.
    #[error("{}: case {number}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
}

/// The file of cases beside a policy.
pub fn beside(policy: &Path) -> Result<PathBuf, CasesError> {
    let named = |ending: &str| {
        let mut name = policy.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        policy.with_file_name(name)
    };
    let found = ENDINGS.iter().map(|ending| named(ending)).find(|path| path.exists());
    found.ok_or_else(|| CasesError::None { policy: policy.to_owned(), wanted: named(JSON_LINES) })
}

/// Checks the cases of a file under a policy.
pub fn check(path: &Path, governing: &Governing, client: &dyn Client, home: &Home) -> Result<Vec<Checked>, CasesError> {
    let judge = Sessionless::new(governing, home);
    let root = governing.path.parent().unwrap_or(Path::new("/"));
    let mut out = Vec::new();
    let cases = read(path)?;
    if cases.is_empty() {
        return Err(CasesError::Empty(path.to_owned()));
    }
    for (at, case) in cases.into_iter().enumerate() {
        let call = case.call(root).map_err(|why| malformed(path, at, why))?;
        let caller = case.agent.as_deref().map_or(Caller::Main, Caller::SubAgent);
        let decision = judge.decide(&call, caller, client);
        let mut carries = decision.reasons.iter().filter(|reason| reason.verdict == decision.verdict);
        let named = case.rule.as_ref().is_none_or(|rule| carries.any(|reason| reason.rule == *rule));
        out.push(Checked {
            name: case.name.unwrap_or_else(|| format!("case {}", at + 1)),
            passed: case.expect.is(decision.verdict) && named,
            tool: call.tool.clone(),
            what: what(&call),
            expect: case.expect,
            rule: case.rule,
            decision,
        });
    }
    Ok(out)
}

fn malformed(path: &Path, at: usize, why: impl fmt::Display) -> CasesError {
    CasesError::Malformed { path: path.to_owned(), number: at + 1, why: why.to_string() }
}

/// One case a line, or a list of them.
fn read(path: &Path) -> Result<Vec<Case>, CasesError> {
    let bytes = regular_file::read(path, MAX_BYTES).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => malformed(path, 0, format!("the file is larger than {} MiB", MAX_BYTES >> 20)),
        _ => CasesError::Io { path: path.to_owned(), source },
    })?;
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    if bytes.trim_ascii_start().starts_with(b"[") {
        return json::from_slice_with(bytes, Limits::OURS).map_err(|error| malformed(path, 0, error));
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let case = |(at, line): (usize, &[u8])| {
        json::from_slice_with(line, Limits::OURS).map_err(|error: FormatError| malformed(path, at, error))
    };
    lines.enumerate().map(case).collect()
}

impl Case {
    fn call(&self, root: &Path) -> Result<ToolCall, &'static str> {
        let cwd = self.cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd));
        let cwd = cwd.to_string_lossy().into_owned();
        match (&self.line, &self.tool, &self.input) {
            (Some(line), None, None) => {
                let input: Object = [("command", Value::from(line.as_str()))].into();
                Ok(ToolCall::new("Bash", Value::Object(input), cwd))
            }
            (None, Some(tool), Some(input)) if !tool.is_empty() => Ok(ToolCall::new(tool, input.clone(), cwd)),
            _ => Err("it needs a `line`, or a `tool` with its `input`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_a_line_or_a_tool_and_nothing_unknown() {
        let read = |text: &str| json::from_slice_with::<Case>(text.as_bytes(), Limits::OURS);
        let call = |text: &str| read(text).unwrap().call(Path::new("/w")).map(|call| (call.tool, call.cwd));
        let bash = Ok(("Bash".to_owned(), "/w/sub".to_owned()));
        assert_eq!(call(r#"{"line":"ls","cwd":"sub","expect":"allow"}"#), bash);
        assert_eq!(call(r#"{"tool":"X","input":{},"expect":"not-allow"}"#), Ok(("X".into(), "/w".into())));
        for text in [r#"{"expect":"allow"}"#, r#"{"line":"a","tool":"X","input":{},"expect":"allow"}"#] {
            assert!(call(text).is_err(), "{text}");
        }
        for text in [r#"{"line":"a"}"#, r#"{"line":"a","expect":"maybe"}"#, r#"{"line":"a","expect":"ask","rul":""}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
