//! Which commands are test runs, and what came of them: claims about tests against the calls on record.

use serde::Serialize;
use writ_core::json::{self, Value};
use writ_evidence::row::{Row, RowDecision};
use writ_shell::{Env, Word, analyze};

/// Test runners, one a line: the words a command begins with.
const RUNNERS: &str = include_str!("runners.txt");

/// The test runs in a command line, as `runner`, and whether the line's outcome is theirs.
pub fn runs(line: &str) -> Vec<(String, bool)> {
    let mut programs = RUNNERS.lines().filter_map(|runner| runner.split(' ').next());
    // This is on the way of every call, and few lines run tests.
    if !programs.any(|program| line.contains(program)) {
        return Vec::new();
    }
    let analysis = analyze(line, &Env::default());
    let mut out = Vec::new();
    for command in &analysis.commands {
        let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        let Some(runner) = runner(&words) else { continue };
        let behind = line.get(command.span.end..).unwrap_or_default();
        let behind = behind.replace("2>&1", "").replace("&&", "");
        out.push((runner, !behind.contains(['|', ';', '\n', '&'])));
    }
    out
}

fn runner(words: &[String]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let base = program.rsplit('/').next()?;
    let plain: Vec<&str> =
        rest.iter().map(String::as_str).filter(|word| !word.starts_with('-') || *word == "-m").collect();
    RUNNERS.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut own = line.split(' ');
        let fits = own.next() == Some(base)
            && own.enumerate().all(|(at, want)| plain.get(at).is_some_and(|word| text_fits(want, word)));
        fits.then(|| line.trim_end_matches('*').to_owned())
    })
}

fn text_fits(want: &str, word: &str) -> bool {
    want.strip_suffix('*').map_or(want == word, |start| word.starts_with(start))
}

/// What the record says to a claim that tests were run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tests {
    /// The last run that tells came out well.
    Passed,
    /// The last run that tells failed.
    Failed,
    /// The agent ran none, and nothing that could have been one under another name.
    NoneRan,
    /// There were runs, or commands that may have been, and their outcome is hidden behind other commands, or not on record.
    Unclear,
}

impl Tests {
    /// `passed`, `failed`, `none-ran`, `unclear`.
    pub fn as_str(self) -> &'static str {
        json::word(&self)
    }

    /// What speaks against a claim that tests were run and pass.
    pub const fn against(self) -> Option<&'static str> {
        match self {
            Self::Failed => Some("tests are claimed to pass, and the last run on record failed"),
            Self::NoneRan => Some("tests are claimed, and no test run is on record"),
            Self::Passed | Self::Unclear => None,
        }
    }
}

/// Follows a session's rows and looks for the agent's test runs.
pub struct TestRuns<'a> {
    agent: Option<&'a str>,
    /// Whether a command may have been a run under another name.
    maybe: bool,
    last: Option<LastRun>,
}

/// The last run that a row tells of.
struct LastRun {
    call_id: Option<String>,
    /// Whether the command's outcome is that of the tests.
    tells: bool,
    /// How the call ended.
    ended: Option<RowDecision>,
}

impl<'a> TestRuns<'a> {
    /// Before the first row. `agent` is `None` for the main agent.
    pub const fn of(agent: Option<&'a str>) -> Self {
        Self { agent, maybe: false, last: None }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: Row) {
        if matches!(row.decision, RowDecision::Completed | RowDecision::Failed) {
            let own = self.last.as_mut().filter(|last| last.call_id == row.call_id);
            own.map(|last| last.ended.get_or_insert(row.decision));
            return;
        }
        let agent = row.detail.get("agent").and_then(|own| own.get("id")).and_then(Value::as_str);
        if row.decision != RowDecision::Approved || agent != self.agent {
            return;
        }
        let Some(tests) = row.detail.get("tests").and_then(Value::as_array) else {
            let (tool, facts) = (row.tool_name.as_deref().unwrap_or_default(), row.detail.get("facts"));
            self.maybe = self.maybe || may_test(tool, facts.unwrap_or(&Value::Null));
            return;
        };
        let tells = tests.last().and_then(|last| last.get("tells")).and_then(Value::as_bool) == Some(true);
        self.last = Some(LastRun { call_id: row.call_id, tells, ended: None });
    }

    /// What the rows so far say.
    pub fn outcome(&self) -> Tests {
        match &self.last {
            None if self.maybe => Tests::Unclear,
            None => Tests::NoneRan,
            Some(LastRun { tells: true, ended: Some(RowDecision::Completed), .. }) => Tests::Passed,
            Some(LastRun { tells: true, ended: Some(RowDecision::Failed), .. }) => Tests::Failed,
            Some(_) => Tests::Unclear,
        }
    }
}

/// Programs that run no tests.
const NEVER_TESTS: [&str; 32] = [
    "ls", "cat", "cd", "pwd", "echo", "printf", "git", "grep", "rg", "find", "head", "tail", "wc", "sort", "uniq",
    "diff", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "chmod", "ln", "which", "sed", "awk", "tree", "stat", "date",
    "true", "jq",
];

/// Whether a call may have run tests under a name that nobody knows: `./check.sh`, a tool on a server.
fn may_test(tool: &str, facts: &Value) -> bool {
    // A client may call its shell otherwise; the facts know what it is.
    let tool = facts.get("knownAs").and_then(Value::as_str).unwrap_or(tool);
    if tool != "Bash" {
        return tool.starts_with("mcp__");
    }
    let texts = facts.get("texts").and_then(Value::as_array).unwrap_or_default();
    texts.iter().filter_map(|text| text.get("name").and_then(Value::as_str)).any(|name| !NEVER_TESTS.contains(&name))
}

/// A run of tests, as a row about a command carries it.
#[derive(Serialize)]
pub struct Run {
    runner: String,
    /// Whether the command's outcome is that of the tests.
    tells: bool,
}

/// Most runs that a row carries.
const MOST: usize = 16;

/// The runs that a row carries.
pub fn told(runs: Vec<(String, bool)>) -> Vec<Run> {
    runs.into_iter().take(MOST).map(|(runner, tells)| Run { runner, tells }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_test_runs_and_whether_they_tell() {
        let one = |line: &str| runs(line).pop();
        assert_eq!(one("cargo test -p x"), Some(("cargo test".to_owned(), true)));
        assert_eq!(one("cd a && python3 -m pytest -q 2>&1"), Some(("python3 -m pytest".to_owned(), true)));
        assert_eq!(one("npm run test:unit && echo ok"), Some(("npm run test".to_owned(), true)));
        assert_eq!(one("pytest | tail -5"), Some(("pytest".to_owned(), false)));
        assert_eq!(one("go test ./... || true"), Some(("go test".to_owned(), false)));
        assert_eq!(one("cargo build"), None);
        assert_eq!(one("echo cargo test"), None);
    }
    #[test]
    fn a_shell_may_run_tests_whatever_its_client_calls_it() {
        let may = |tool: &str, facts: &str| may_test(tool, &json::parse(facts.as_bytes()).unwrap());
        let script = r#""texts":[{"name":"ls"},{"name":"./check.sh"}]"#;
        assert!(may("Bash", &format!("{{{script}}}")));
        assert!(may("terminal", &format!(r#"{{"knownAs":"Bash",{script}}}"#)));
        assert!(!may("terminal", &format!("{{{script}}}")));
        assert!(!may("Bash", r#"{"texts":[{"name":"ls"}]}"#));
        assert!(may("mcp__ci__run", "{}") && may("ci", r#"{"knownAs":"mcp__ci__run"}"#) && !may("Read", "{}"));
    }
}
