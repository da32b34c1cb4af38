//! The cases of `vectors/claims.jsonl`, claims made up in many spellings, and text that was made to hurt.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use writ_claims::{Claim, Source};
use writ_core::json::{Value, compact, parse, to_compact, to_value};

#[expect(clippy::unwrap_used, reason = "without its vectors the test must fail")]
fn cases() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/claims.jsonl");
    fs::read_to_string(file).unwrap().lines().map(|line| parse(line.as_bytes()).unwrap()).collect()
}

#[test]
fn vectors_come_out_as_they_say() {
    let mut wrong = Vec::new();
    let cases = cases();
    for case in &cases {
        let text = case.get("text").and_then(Value::as_str).expect("a case has a text");
        let claim = to_value(&Claim::parse(text));
        let differs = |name: &&str| case.get(name).is_some_and(|expected| claim.get(name) != Some(expected));
        let names = ["status", "files", "source", "blockers", "ran_tests", "unparsed"];
        if names.iter().any(differs) {
            wrong.push(format!("{}\n   {}", compact(case), compact(&claim)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() > 150, "{} cases", cases.len());
}

#[test]
fn json_has_the_order_of_the_page() {
    let claim = Claim::parse("## Handoff\nstatus: DONE\nfiles_changed: a.py, src/*.py\nblockers: rain\ntests: yes");
    let expected = r#"{"status":"DONE","files":["a.py"],"blockers":"rain","ran_tests":true,"source":"handoff","unparsed":["src/*.py"]}"#;
    assert_eq!(to_compact(&claim), expected);
}

#[test]
fn the_last_lines_of_a_long_text_count() {
    let filler = "words of no weight\n".repeat(80_000);
    assert_eq!(Claim::parse(&format!("{filler}Status: DONE\nFiles changed: a.py")).files, ["a.py"]);
    assert_eq!(Claim::parse(&format!("Status: DONE\nFiles changed: a.py\n{filler}")).source, Source::None);
    assert_eq!(
        Claim::parse(&format!("```\n{filler}Status: DONE\n```")).source,
        Source::None,
        "the fence opened before"
    );
    assert_eq!(Claim::parse(&format!("Status: DONE {}", "x".repeat(2 << 20))).source, Source::None);
}

#[test]
fn a_thousand_files_are_kept() {
    let names: Vec<String> = (0..1500).map(|n| format!("src/{n}.py")).collect();
    let claim = Claim::parse(&format!("Files changed: {}", names.join(", ")));
    assert_eq!(claim.files, names[..1000]);
    let claim = Claim::parse(&format!("Files changed:\n- {}", names.join("\n- ")));
    assert_eq!(claim.files, names[..1000]);
    let doubts = "Files changed: the parser\n".repeat(5000);
    assert_eq!(Claim::parse(&doubts).unparsed.len(), 1000);
}

#[test]
fn a_megabyte_of_anything_is_read_in_no_time() {
    let tokens = [
        "(", ")", "[", "]", "{", "`", "\"", "'", "**", "*", "_", "#", ":", "-", "->", "→", "—", ",", ";", "|", "and ",
        " and", "\\", "/", ".", "..", "%", "<", ">", "```", "~~~", "\n", "\r", " ", "\t", "- ", "1. ", "[a](", "[ ] ",
        "(a, ", "a.py:", "a.py(", "a.py ", "`a ", "x,", "no ", "DONE ", "tests ", "file://", "# ", "\u{200b}", "✅",
        "“", "é",
    ];
    let keys =
        ["", "Files changed: ", "Files changed:\n- ", "Status: ", "## Handoff\nblockers: ", "Tests: ", "```\n", "**"];
    let lines = [
        "- a.py\n",
        "Files changed:\n",
        "Files changed: [\n",
        "## Handoff\n",
        "```\n",
        "> x\n",
        "- a\n  - b\n",
        "blockers:\n- ",
    ];
    let limit = Duration::from_secs(5);
    let time = |text: &str| {
        let start = Instant::now();
        drop(Claim::parse(text));
        start.elapsed()
    };
    for token in tokens {
        for key in keys {
            let size = if key.starts_with("Files") { 1_000_000 } else { 200_000 };
            let text = format!("{key}{}", token.repeat(size / token.len()));
            assert!(time(&text) < limit, "{key:?} {token:?} {:?}", time(&text));
        }
    }
    for line in lines {
        let text = line.repeat(1_000_000 / line.len());
        assert!(time(&text) < limit, "{line:?} {:?}", time(&text));
    }
}

/// Names of files, each other than all others.
const NAMES: [&str; 16] = [
    "a.py",
    "src/b.rs",
    "src/deep/er/c.tsx",
    "Makefile",
    ".gitignore",
    "LICENSE",
    "docs/read me.md",
    "Grüße.txt",
    "文件/d.md",
    "app/[id]/page.tsx",
    "pkg/__init__.py",
    "x-y_z.test.js",
    "a+b.toml",
    "scripts/run",
    "Dockerfile",
    "v1.2/notes.txt",
];

/// Ways to write a file in a list; `@` is the name.
const SPELLINGS: [&str; 14] = [
    "`@`",
    "\"@\"",
    "**`@`**",
    "`@` (new)",
    "`@` - added things",
    "`@` — added things",
    "`@`: fixed things",
    "`@:12-40`",
    "`@` (lines 3–9)",
    "`./@`",
    "[@](@)",
    "`@`.",
    "`@#L3-L9`",
    "✅ `@`",
];

/// What stands before a key and behind it.
const KEYS: [&str; 7] = [
    "files_changed:",
    "Files changed:",
    "**Files changed:**",
    "- Files changed:",
    "### Modified files:",
    "* **Changed files**:",
    "files-modified :",
];

fn spelled() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    subsequence(NAMES.to_vec(), 1..NAMES.len()).prop_flat_map(|names| {
        let count = names.len();
        let written = prop::collection::vec(select(SPELLINGS.to_vec()), count);
        (Just(names), written).prop_map(|(names, written)| {
            let entry = |(name, spelling): (&&str, &&str)| {
                let link = spelling.contains("](");
                spelling.replace('@', &if link { name.replace(' ', "%20") } else { (*name).to_owned() })
            };
            (names.iter().map(|name| (*name).to_owned()).collect(), names.iter().zip(&written).map(entry).collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_honest_claim_is_read_in_any_spelling(
        (names, entries) in spelled(),
        key in select(KEYS.to_vec()),
        bullet in select(vec!["- ", "* ", "+ ", "• ", "1. ", "  - [x] "]),
        inline in any::<bool>(),
        handoff in any::<bool>(),
        end in select(vec!["\n", "\r\n"]),
        separator in select(vec![", ", " and ", ", and ", "; "]),
    ) {
        let indent = if key.starts_with("- ") || key.starts_with("* ") { "  " } else { "" };
        let list = if inline {
            format!("{key} {}", entries.join(separator))
        } else {
            entries.iter().fold(key.to_owned(), |list, entry| format!("{list}\n{indent}{bullet}{entry}"))
        };
        let head = if handoff { "## Handoff\n" } else { "Here is what became of it.\n\n" };
        let text = format!("{head}{list}\nStatus: DONE\n").replace('\n', end);
        let claim = Claim::parse(&text);
        prop_assert_eq!(&claim.files, &names, "{}", text);
        prop_assert!(claim.unparsed.is_empty(), "{} {:?}", text, claim.unparsed);
        prop_assert_eq!(claim.source, if handoff { Source::Handoff } else { Source::Lines });
    }

    #[test]
    fn fences_and_quotes_claim_nothing((_, entries) in spelled(), fence in select(vec!["```", "~~~~", "  ```text"])) {
        let list = format!("## Handoff\nStatus: DONE\nFiles changed: {}", entries.join(", "));
        let mark = fence.trim_end_matches("text");
        for text in [format!("{fence}\n{list}\n{mark}\n"), format!("> {}", list.replace('\n', "\n> ")), format!("{fence}\n{list}\n")] {
            let claim = Claim::parse(&text);
            prop_assert_eq!((claim.source, claim.status, claim.files.len()), (Source::None, None, 0), "{}", text);
        }
    }

    #[test]
    fn any_text_is_read(text in "(\\PC|\n){0,200}") {
        drop(to_value(&Claim::parse(&text)));
    }

    #[test]
    fn any_list_is_read(text in "(## Handoff\n)?(Files changed|Status|Tests|blockers):( |\n- )[-a-c./\\\\:#()\\[\\]{}`\"'*_ ,;|→—%~\n]{0,80}") {
        let claim = Claim::parse(&text);
        for file in &claim.files {
            prop_assert!(!file.is_empty() && file.trim() == file, "{text:?} {file:?}");
            prop_assert!(!file.contains(['\n', '*', '\\', '`']) || file.contains('`'), "{text:?} {file:?}");
        }
    }
}
