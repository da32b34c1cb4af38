//! The readers of other languages end, and soon, whatever they are given: every line of the decisions, damaged in many ways,
//! and shapes that make readers slow.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use writ_core::json::{self, Limits, Value};
use writ_shell::{Env, analyze};

const VECTORS: &str = include_str!("../../../vectors/decisions.jsonl");

/// A small generator, the same on every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }
}

fn lines() -> Vec<String> {
    let line = |text: &str| {
        let case = json::parse_with(text.as_bytes(), Limits::FOREIGN).ok()?;
        let id = case.get("id")?.as_str()?.to_owned();
        let command = case.get("call")?.get("input")?.get("command").and_then(Value::as_str)?.to_owned();
        (id.starts_with("code-") || id.starts_with("written-")).then_some(command)
    };
    VECTORS.lines().filter_map(line).collect()
}

fn damaged(line: &str, other: &str, chance: &mut Chance) -> String {
    let mut chars: Vec<char> = line.chars().collect();
    let with: Vec<char> = other.chars().collect();
    for _ in 0..=chance.below(3) {
        let at = chance.below(chars.len());
        match chance.below(4) {
            0 => drop(chars.drain(at..chars.len().min(at + 1 + chance.below(4)))),
            1 => {
                let from = chance.below(with.len());
                let piece = with[from..with.len().min(from + chance.below(12))].to_vec();
                chars.splice(at..at, piece);
            }
            2 if !chars.is_empty() => {
                let signs = ['"', '\'', '(', ')', '{', '}', '[', ']', '\\', '/', '$', '`', '#', '\n', '%', ':'];
                chars[at] = signs[chance.below(signs.len())];
            }
            _ => {
                let piece = chars[at..chars.len().min(at + chance.below(20))].to_vec();
                chars.splice(at..at, piece);
            }
        }
    }
    chars.into_iter().collect()
}

#[test]
fn damaged_code_is_read_to_its_end() {
    let (lines, env) = (lines(), Env::default());
    assert!(lines.len() > 500);
    let rounds = std::env::var("WRIT_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10);
    let mut chance = Chance(7);
    for round in 0..rounds {
        for line in &lines {
            let other = &lines[chance.below(lines.len())];
            let line = damaged(line, other, &mut chance);
            let start = Instant::now();
            let _ = analyze(&line, &env);
            assert!(start.elapsed() < Duration::from_secs(2), "round {round}: {line}");
        }
    }
}

#[test]
fn shapes_that_make_readers_slow_are_read_soon() {
    let programs = ["python3 -c", "node -e", "perl -e", "ruby -e", "php -r", "lua -e", "Rscript -e"];
    let shapes = [
        "(",
        "[",
        "{",
        "((",
        "a=b+b;b=a+a;",
        "for x in y ",
        "def f(a): pass\n",
        "lambda ",
        "f(",
        "a as b,",
        "{a:",
        "x=>",
        "[0](",
        "\\",
        "/",
        "#{",
        "$x{",
        "<",
        "%w[",
        "import a as b\n",
        "a.b.c(",
        "x=x+x+x+x+x+x\n",
        "open(a,b)(",
        "f\"{",
        "`${",
        "case a: ",
        "const {a}=",
        "a['b']",
        "sub a ",
        "|a",
        "\"+\"",
        "p=p/p\n",
        "def a(b):a(b)\n",
    ];
    for program in programs {
        for shape in shapes {
            for line in [
                format!("{program} '{}'", shape.replace('\'', "").repeat(60_000 / shape.len())),
                format!("{program} '{}{}'", shape.replace('\'', "").repeat(2_000), "open(a)".repeat(2_000)),
            ] {
                let start = Instant::now();
                let _ = analyze(&line, &Env::default());
                assert!(start.elapsed() < Duration::from_secs(5), "{program} {shape}: {:?}", start.elapsed());
            }
        }
    }
}
