//! Commands whose output is the names of files on the disk.

use crate::eval::Eval;
use crate::listing::{Ignores, Listing, Printed, Test};
use crate::programs::operands::table;
use crate::programs::{find, searches};
use crate::shape::{is_flag, text_word};
use crate::text::{Text, tidy};
use crate::word::{Part, Source, Word};

/// What a command prints that lists files.
pub fn listed(eval: &mut Eval<'_>, base: &str, arguments: &[Word]) -> Option<Text> {
    let span = eval.here;
    match base {
        "ls" | "dir" | "vdir" | "ll" | "la" => ls(eval, base, arguments),
        "find" | "gfind" => find::printed(eval, arguments, span),
        "fd" | "fdfind" => find::printed_fd(eval, arguments, span),
        "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" => {
            let split = table::split(table::lookup(base)?, arguments);
            let given = split.has(&['e', 'f'], "--regexp") || split.has(&[], "--file") || split.has(&[], "--files");
            let roots: Vec<Word> =
                split.operands.iter().skip(usize::from(!given)).map(|word| (*word).clone()).collect();
            searches::printed(eval, base, arguments, &roots, searches::here(span))
        }
        "git" => git_names(eval, arguments),
        _ => None,
    }
}

fn ls(eval: &mut Eval<'_>, base: &str, arguments: &[Word]) -> Option<Text> {
    let flags: Vec<String> = arguments.iter().filter(|word| is_flag(word)).filter_map(Word::literal).collect();
    let has = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    if has('Q') || has('i') || has('s') || has('m') || has('x') {
        return None;
    }
    let hidden = base == "la" || has('a') || has('A') || has('f') || flags.iter().any(|flag| flag.contains("all"));
    let mut folders: Vec<Word> = arguments.iter().filter(|word| !is_flag(word)).cloned().collect();
    if folders.is_empty() {
        folders.push(text_word(".", eval.here));
    }
    let mut out = Text::new();
    for folder in folders {
        if has('l') || base == "ll" {
            for _ in 0..8 {
                out.extend([Part::Unknown(Source::Name), Part::Text(" ".to_owned())]);
            }
        }
        if has('d') {
            out.extend(folder.parts);
        } else {
            let (dirs, test) = (eval.dirs.clone(), Test::Here);
            let (tree, printed) = (has('R'), Printed::Name);
            out.push(eval.listing(Listing { folder, dirs, test, tree, hidden, ignores: Ignores::Nothing, printed }));
        }
        out.push(Part::Text("\n".to_owned()));
    }
    Some(tidy(out))
}

/// `git ls-files`, `git diff --name-only`, `git status --short`, `git grep -l`.
fn git_names(eval: &mut Eval<'_>, arguments: &[Word]) -> Option<Text> {
    let (sub, rest) = arguments.split_first()?;
    let sub = sub.literal()?;
    let texts: Vec<String> = rest.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let has = |flag: &str| texts.iter().any(|text| text == flag);
    let columns = |letters: &str| {
        texts
            .iter()
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letters.contains(c)))
    };
    let behind = texts.iter().position(|text| text == "--").map_or(rest.len(), |at| at + 1);
    let plain = |words: &[Word]| words.iter().filter(|word| !is_flag(word)).cloned().collect::<Vec<Word>>();
    let (paths, maybe, front, ignores) = match sub.as_str() {
        "ls-files" if !columns("stvfz") || has("-z") => {
            let others = columns("oi") || has("--others") || has("--ignored");
            (plain(rest), false, false, !others || has("--exclude-standard"))
        }
        "diff" | "diff-tree" | "diff-index" | "diff-files" | "show" | "log" if has("--name-only") => {
            (plain(rest.get(behind..).unwrap_or_default()), true, false, true)
        }
        "diff" | "diff-tree" | "diff-index" | "show" if has("--name-status") => {
            (plain(rest.get(behind..).unwrap_or_default()), true, true, true)
        }
        "status" if has("-s") || has("--short") || texts.iter().any(|text| text.starts_with("--porcelain")) => {
            (Vec::new(), true, true, !has("--ignored"))
        }
        "grep" if columns("lL") || has("--name-only") || has("--files-with-matches") => {
            (plain(rest.get(behind..).unwrap_or_default()), true, false, true)
        }
        _ => return None,
    };
    let relative = sub == "ls-files" || sub == "grep" || has("--relative");
    let folder = if relative { None } else { eval.toplevel() };
    let folder = text_word(folder.as_deref().unwrap_or("."), eval.here);
    let mut tests = vec![pathspecs(&paths), Test::Here];
    if maybe {
        tests.insert(0, Test::Maybe);
    }
    let (dirs, test) = (eval.dirs.clone(), Test::All(tests));
    let ignores = if ignores { Ignores::Git } else { Ignores::Nothing };
    let listing = Listing { folder, dirs, test, tree: true, hidden: true, ignores, printed: Printed::Relative };
    let mut out = Text::new();
    if front {
        out.extend([Part::Unknown(Source::Number), Part::Text(" ".to_owned())]);
    }
    out.extend([eval.listing(listing), Part::Text("\n".to_owned())]);
    Some(out)
}

/// Git's pathspecs: a path and everything below it, or a pattern whose `*` matches a slash.
fn pathspecs(paths: &[Word]) -> Test {
    let known: Option<Vec<String>> = paths.iter().map(Word::literal).collect();
    let Some(known) = known.filter(|paths| !paths.iter().any(|path| path.starts_with(':'))) else { return Test::Maybe };
    if known.iter().all(|path| matches!(path.as_str(), "." | "./")) {
        return Test::Always;
    }
    let test = |path: &String| {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let name = |pattern: String| Test::Name { pattern, path: true, folded: false };
        Test::Either(vec![name(path.to_owned()), name(format!("{path}/*"))])
    };
    Test::Either(known.iter().map(test).collect())
}
