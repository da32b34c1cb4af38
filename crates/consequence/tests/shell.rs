//! The data files by their own examples, and lines that must, or must not, come out as `allow`.

use writ_consequence::{NoProbe, Probe, Report, Seen, Verdict, rules, shell};
use writ_shell::Env;

fn evaluate(line: &str) -> Report {
    let env = Env { home: Some("/home/me".to_owned()), cwd: Some("/home/me/project".to_owned()), ..Env::default() };
    shell::evaluate(line, &env, &NoProbe)
}

fn hits(report: &Report, rule: &str) -> bool {
    report.mutations.iter().any(|it| it.intent.metadata.rule.as_deref() == Some(rule))
}

#[test]
fn every_example_of_every_rule_holds() {
    let mut wrong = Vec::new();
    let mut examples = 0;
    for family in rules::families() {
        assert!(!family.programs.is_empty() && !family.rules.is_empty(), "a file of data does not read: {family:?}");
        for rule in &family.rules {
            for line in &rule.bad {
                examples += 1;
                let report = evaluate(line);
                let counts = match rule.tier {
                    rules::Judged::As(tier) if tier.number() < 3 => true,
                    rules::Judged::Unseen => !report.unseen.is_empty(),
                    rules::Judged::As(_) | rules::Judged::ByPath | rules::Judged::BySql => {
                        report.verdict() != Verdict::Allow
                    }
                };
                if !hits(&report, &rule.id) || !counts {
                    wrong.push(format!("{}: not hit by `{line}`: {}", rule.id, report.verdict().as_str()));
                }
            }
            for line in &rule.ok {
                examples += 1;
                if hits(&evaluate(line), &rule.id) {
                    wrong.push(format!("{}: hit by `{line}`", rule.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples > 300, "{examples} examples");
}

#[test]
fn files_are_read_without_a_mistake() {
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/data/shell")).expect("the data") {
        let path = file.expect("an entry").path();
        let text: &'static str = std::fs::read_to_string(&path).expect("text").leak();
        rules::read("file", text).expect("a file of rules");
    }
}

/// A rule about a program that its file's head does not name is never asked.
#[test]
fn programs_of_rules_stand_in_their_heads() {
    let mut absent = Vec::new();
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/data/shell")).expect("the data") {
        let path = file.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let heads: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("programs: ")).flat_map(str::split_whitespace).collect();
        for line in text.lines().filter_map(|line| line.strip_prefix("when: ~")) {
            let first = line.split_whitespace().next().unwrap_or_default();
            let plain = |name: &&str| {
                name.starts_with(|c: char| c.is_ascii_lowercase())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
            };
            let names = first.split('|').map(|name| name.trim_start_matches('~')).filter(plain);
            absent.extend(
                names
                    .filter(|name| !heads.contains(name))
                    .map(|name| format!("{}: `{name}` in `{line}`", path.file_name().unwrap_or_default().display())),
            );
        }
    }
    assert!(absent.is_empty(), "{}", absent.join("\n"));
}

/// The reference's mistakes, and everyday lines beside them.
#[test]
fn lines_that_lose_something_and_lines_that_do_not() {
    let mut wrong = Vec::new();
    let lines = include_str!("lines.txt").lines().chain(include_str!("losses.txt").lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((expected, line)) = line.split_once(' ') else { continue };
        let line = line.replace("\\n", "\n");
        let report = evaluate(&line);
        let got = report.verdict();
        let fits = match expected {
            "lose" => got != Verdict::Allow,
            "keep" => got == Verdict::Allow,
            "unseen" | "seen" => got == Verdict::Allow && report.unseen.is_empty() == (expected == "seen"),
            verdict => got.as_str() == verdict,
        };
        if !fits {
            wrong.push(format!("{expected}: {} for `{line}`", got.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_project_is_not_scratch_because_of_where_it_lies() {
    for cwd in ["/tmp/project", "/home/me/build/project"] {
        let env = Env { home: Some("/home/me".to_owned()), cwd: Some(cwd.to_owned()), ..Env::default() };
        let verdict = |line: &str| shell::evaluate(line, &env, &NoProbe).verdict();
        assert_ne!(verdict("rm -rf src"), Verdict::Allow, "{cwd}");
        assert_ne!(verdict("rm -rf ."), Verdict::Allow, "{cwd}");
        assert_eq!(verdict("rm -rf node_modules"), Verdict::Allow, "{cwd}");
    }
}

#[test]
fn a_home_is_not_scratch_because_of_where_it_lies() {
    let env = Env { home: Some("/tmp/h/me".to_owned()), cwd: Some("/tmp/h/project".to_owned()), ..Env::default() };
    let verdict = |line: &str| shell::evaluate(line, &env, &NoProbe).verdict();
    for line in ["rm -rf ~", "rm -rf ~/Documents", "rm -rf \"$HOME\"/*", "rm -rf /tmp/h", "rm ~/.bash_history"] {
        assert_ne!(verdict(line), Verdict::Allow, "{line}");
    }
    for line in ["rm -rf /tmp/other", "rm -rf ~/.cache/pip"] {
        assert_eq!(verdict(line), Verdict::Allow, "{line}");
    }
}

#[test]
fn hostile_lines_end() {
    for line in ["$(".repeat(500_000), "rm ".repeat(80_000), "a|".repeat(100_000), "{a,b}".repeat(5000)] {
        evaluate(&line);
    }
}

#[test]
fn records_are_records_wherever_the_line_starts() {
    for cwd in [None, Some("/home/me/project".to_owned())] {
        let env = Env { home: Some("/home/me".to_owned()), cwd, ..Env::default() };
        for line in ["rm ~/.bash_history", "rm -rf /var/log/*", "rm -f /var/log/wtmp", "rm -rf /var/log/audit"] {
            assert_ne!(shell::evaluate(line, &env, &NoProbe).verdict(), Verdict::Allow, "{line}");
        }
        for line in ["rm -rf logs/*", "rm app.log", "rm -rf node_modules"] {
            assert_eq!(shell::evaluate(line, &env, &NoProbe).verdict(), Verdict::Allow, "{line}");
        }
    }
}

/// A script that the agent wrote before is judged as its text; another is not looked into.
#[test]
fn what_the_agent_wrote_is_judged_when_it_runs() {
    struct Wrote;
    impl Probe for Wrote {
        fn look(&self, _path: &str) -> Seen {
            Seen::default()
        }

        fn authored(&self, path: &str) -> Option<String> {
            (path == "/home/me/project/x.sh").then(|| "set -e\nrm -rf ~\n".to_owned())
        }
    }
    let env = Env { home: Some("/home/me".to_owned()), cwd: Some("/home/me/project".to_owned()), ..Env::default() };
    for line in ["bash x.sh", "sh ./x.sh", ". ./x.sh", "cd /home/me/project && bash -e x.sh"] {
        assert_eq!(shell::evaluate(line, &env, &Wrote).verdict(), Verdict::Block, "{line}");
    }
    for line in ["bash y.sh", "cat x.sh"] {
        assert_eq!(shell::evaluate(line, &env, &Wrote).verdict(), Verdict::Allow, "{line}");
    }
}
