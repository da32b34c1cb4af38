//! Operands that a program reads in a way of its own: modes, patterns, archives, `dd`.

use writ_core::Span;

use crate::action::Access;
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::entries::words::{Operands, Role};
use crate::programs::operands::table::Split;
use crate::programs::operands::{all, in_place, unpack};
use crate::programs::searches;
use crate::shape::{literal_prefix, tail, text_word};
use crate::word::Word;

/// Whether a mode is given as an option (`chmod -x`), or by a file that has it.
pub fn has_mode(base: &str, split: &Split<'_>) -> bool {
    let letters = if base == "chmod" { "rwxXstugoa,=+-" } else { "aAcCdDeFijmPsStTux" };
    let is_mode = |flag: &String| {
        flag.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| letters.contains(c)))
    };
    split.flags.iter().any(|flag| flag.starts_with("--ref"))
        || (base != "chown" && base != "chgrp" && split.flags.iter().any(is_mode))
}

/// A script or pattern, then files: `sed`, `grep`, `awk`, `rg`. Those that walk a tree (`walks`) begin where they stand.
pub fn searched(eval: &mut Eval<'_>, base: &str, walks: bool, split: &Split<'_>, arguments: &[Word], span: Span) {
    const LONG: [&str; 5] = ["--expression", "--regexp", "--file", "--from-file", "--source"];
    let given = LONG.iter().any(|long| split.has(&['e', 'f'], long));
    let names_only = walks && split.has(&[], "--files");
    let skip = usize::from(!given && !names_only);
    let files = split.operands.get(skip..).unwrap_or_default();
    let awk = base.ends_with("awk") && split.values.iter().any(|(_, value)| is_inplace(value));
    let edits = awk || matches!(base, "sed" | "gsed") && arguments.iter().any(in_place);
    if !edits && (split.tree || walks) {
        // What is piped in is searched instead of the folder.
        if walks && files.is_empty() && !matches!(eval.stdin, Input::None) {
            return;
        }
        let access = if names_only { Access::List } else { Access::Read };
        return searches::record(eval, base, access, arguments, files, searches::here(span));
    }
    edited_in_place(eval, files, edits, split.tree);
}

/// What is edited is read, too: a script can put it elsewhere.
fn edited_in_place(eval: &mut Eval<'_>, files: &[&Word], edits: bool, tree: bool) {
    if edits {
        all(eval, files, Access::Write, tree);
    }
    all(eval, files, Access::Read, tree);
}

/// gawk's `-i inplace`.
pub fn is_inplace(value: &Word) -> bool {
    value.literal().is_some_and(|text| text.starts_with("inplace"))
}

/// `yq [eval] EXPRESSION files`, which `-i` changes.
pub fn yq(eval: &mut Eval<'_>, split: &Split<'_>) {
    let sub = |word: &&&Word| matches!(word.literal().as_deref(), Some("e" | "eval" | "ea" | "eval-all"));
    let skip = usize::from(split.operands.first().filter(sub).is_some());
    let skip = skip + usize::from(!split.has(&[], "--from-file"));
    let edits = split.has(&['i'], "--inplace");
    edited_in_place(eval, split.operands.get(skip..).unwrap_or_default(), edits, false);
}

/// Archives in and out: `unzip`, `7z`, `unrar`, `cpio`.
pub fn archive(eval: &mut Eval<'_>, base: &str, kind: Operands, split: &Split<'_>, span: Span) {
    let here = text_word(".", span);
    let folder = split.value(Role::TargetFolder).unwrap_or(&here).clone();
    let words = split.operands.as_slice();
    let verb = words.first().and_then(|word| word.literal()).unwrap_or_default();
    if kind == Operands::Cpio {
        if split.has(&['i'], "--extract") && !split.has(&['t'], "--list") {
            unpack(eval, &here);
        } else if split.has(&['p'], "--pass-through") {
            eval.file(here, Access::Read, true);
            words.iter().for_each(|folder| unpack(eval, folder));
        } else if split.has(&['o'], "--create") {
            eval.file(here, Access::Read, true);
        }
        return;
    }
    let seven = kind == Operands::SevenZip;
    let (archive, rest) = if seven || base == "unrar" {
        (words.get(1), words.get(2..).unwrap_or_default())
    } else {
        (words.first(), words.get(1..).unwrap_or_default())
    };
    let adds = seven && matches!(verb.as_str(), "a" | "u" | "d" | "rn");
    let lists = if seven || base == "unrar" {
        !matches!(verb.as_str(), "x" | "e")
    } else {
        base == "unzip" && split.has(&['l', 'p', 'c', 't', 'v', 'Z'], "--list")
    };
    all(
        eval,
        archive.map(std::slice::from_ref).unwrap_or_default(),
        if adds { Access::Write } else { Access::Read },
        false,
    );
    if adds {
        all(eval, rest, Access::Read, true);
    } else if !lists && (rest.is_empty() || base != "unzip") {
        unpack(eval, &folder);
        rest.iter().filter(|_| base == "unrar").for_each(|folder| unpack(eval, folder));
    } else if !lists && rest.iter().any(|word| word.literal().is_none_or(|text| text.contains(['*', '?', '[']))) {
        unpack(eval, &folder);
    } else if !lists {
        eval.in_dir(Some(&folder), |eval| all(eval, rest, Access::Write, true));
    }
}

pub fn dd(eval: &mut Eval<'_>, words: &[&Word]) {
    for word in words {
        for (sign, access) in [("if=", Access::Read), ("of=", Access::Write)] {
            if literal_prefix(word).starts_with(sign) {
                eval.file(tail(word, sign.len()), access, false);
            }
        }
    }
}
