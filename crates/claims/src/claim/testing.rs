//! Whether a text says that tests were run. It informs and decides nothing, so it reads prose, clause by clause.

/// Runners whose name alone speaks of a test run.
const RUNNERS: [&str; 16] = [
    "pytest",
    "unittest",
    "bats",
    "jest",
    "vitest",
    "nextest",
    "tox",
    "nox",
    "rspec",
    "phpunit",
    "mocha",
    "ctest",
    "pest",
    "playwright",
    "cypress",
    "busted",
];

/// Tools whose `test` command runs tests.
const TOOLS: [&str; 24] = [
    "npm", "yarn", "pnpm", "bun", "deno", "cargo", "go", "make", "just", "mix", "dotnet", "swift", "gradle", "gradlew",
    "mvn", "mvnw", "bazel", "rake", "rails", "dart", "flutter", "sbt", "zig", "ant",
];

/// What a text says of tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Said {
    /// They ran, or they passed or failed.
    ran: bool,
    /// A runner or a command is named.
    named: bool,
    /// They did not run.
    denied: bool,
}

impl Said {
    /// What the lines together say: a result outweighs a denial elsewhere, a denial outweighs a name.
    pub(super) const fn ran(self) -> bool {
        self.ran || (self.named && !self.denied)
    }

    /// Adds what a line says.
    pub(super) fn read(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let lower = line.to_lowercase().replace('’', "'");
        for clause in lower.replace(" but ", ";").split([';', '!', '?', ',']).flat_map(|part| part.split(". ")) {
            self.clause(clause);
        }
    }

    fn clause(&mut self, clause: &str) {
        let split = |c: char| !(c.is_alphanumeric() || c == '\'' || c == '_');
        let words: Vec<&str> = clause.split(split).filter(|word| !word.is_empty()).collect();
        let (mut ran, mut named) = (false, false);
        for (at, word) in words.iter().enumerate() {
            let next = |offset: usize| words.get(at + offset).copied().unwrap_or_default();
            let tool = TOOLS.contains(word) && (is_test(next(1)) || (next(1) == "run" && is_test(next(2))));
            named |= RUNNERS.contains(word) || tool || (*word == "test" && next(1) == "suite");
            ran |=
                matches!(*word, "ran" | "run" | "running" | "executed" | "reran") && (1..=4).any(|n| is_test(next(n)));
            ran |= is_test(word) && (1..=3).any(|n| is_result(next(n)));
            ran |= word.bytes().all(|b| b.is_ascii_digit()) && matches!(next(1), "passed" | "passing" | "pass");
        }
        let spoken = ran || named || words.iter().any(|word| is_test(word));
        if spoken && is_denied(&words) {
            self.denied = true;
        } else {
            self.ran |= ran;
            self.named |= named;
        }
    }
}

/// What the value of a `tests` key says; `None` when it does not say.
pub(super) fn answer(value: &str) -> Option<bool> {
    let lower = value.to_lowercase().replace('’', "'");
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|w| !w.is_empty()).collect();
    let first = words.first().copied().unwrap_or_default();
    if matches!(first, "yes" | "true" | "passed" | "passing" | "pass" | "green" | "ok" | "ran" | "y" | "done") {
        return Some(true);
    }
    if matches!(first, "no" | "false" | "none" | "n" | "na" | "skipped" | "0" | "never") || lower.starts_with("n/a") {
        return Some(false);
    }
    let mut said = Said::default();
    said.read(&format!("tests {value}"));
    if said.ran() {
        return Some(true);
    }
    let result = |(at, word): (usize, &&str)| {
        let number = at > 0 && words.get(at - 1).is_some_and(|before| before.bytes().all(|b| b.is_ascii_digit()));
        is_result(word) || (number && is_test(word))
    };
    if !said.denied && (words.iter().enumerate().any(result) || value.contains(['✅', '✓', '✔'])) {
        return Some(true);
    }
    said.denied.then_some(false)
}

fn is_test(word: &str) -> bool {
    matches!(word, "test" | "tests" | "testsuite" | "pytest" | "unittest" | "unittests" | "bats" | "suite" | "suites")
}

fn is_result(word: &str) -> bool {
    matches!(
        word,
        "pass"
            | "passed"
            | "passes"
            | "passing"
            | "green"
            | "ok"
            | "succeed"
            | "succeeded"
            | "failed"
            | "failing"
            | "fail"
    )
}

/// Whether the clause says no, or speaks of what is still to be done.
fn is_denied(words: &[&str]) -> bool {
    let denies = |(at, word): (usize, &&str)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        match *word {
            "not" | "never" | "without" | "skipped" | "skip" | "unable" | "cannot" | "please" | "should" | "must"
            | "todo" => true,
            "untested" | "unrun" | "pending" => true,
            "no" => is_test(next) || next == "automated" || next == "unit",
            "failed" => next == "to",
            "yet" | "to" | "need" | "needs" => matches!(next, "run" | "execute" | "to" | "rerun"),
            other => other.ends_with("n't"),
        }
    };
    words.iter().enumerate().any(denies)
}
