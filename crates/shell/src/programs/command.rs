//! One command, by its program: what it keeps and links, then builtins, wrappers, interpreters, and the files and hosts of its
//! operands.

use crate::action::{Access, NetTarget};
use crate::eval::Eval;
use crate::eval::command::{Place, Programs};
use crate::eval::input::Input;
use crate::programs::operands::{self, patch, sends};
use crate::programs::{copies, interpreters, prints, read_only, scripts, variables, wrappers};
use crate::shape::{is_flag, is_system, split_assignment, text_word};
use crate::word::{Part, Word};

/// All that the walk asks of those who know programs.
pub const PROGRAMS: Programs = Programs {
    run,
    variable_set: variables::variable_set,
    output: prints::output,
    printed: prints::printed,
    is_read_only: read_only::is_read_only,
    finish: operands::hosts_of_wrapped,
};

/// Programs that write what they make from a project's own files, or change a file's properties alone.
const MAKERS: [&str; 45] = [
    "chmod", "chown", "chgrp", "touch", "mkdir", "ln", "cp", "mv", "install", "rm", "rmdir", "git", "gcc", "cc", "g++",
    "c++", "clang", "clang++", "ld", "go", "rustc", "cargo", "tsc", "esbuild", "javac", "kotlinc", "swiftc", "zig",
    "ghc", "nim", "dotnet", "make", "cmake", "ninja", "npm", "pnpm", "yarn", "bun", "pip", "uv", "ruff", "black",
    "prettier", "gofmt", "tee",
];

fn run(eval: &mut Eval<'_>, words: &[Word], place: &Place<'_>) {
    let &Place { base, span, input, .. } = place;
    let Some((first, arguments)) = words.split_first() else { return };
    let is_path = |name: &str| name.contains('/') && !is_system(name);
    if first.text().is_some_and(|name| is_path(&name)) {
        eval.file(first.clone(), Access::Exec, false);
        scripts::run_file(eval, first, "", Some(words.to_vec()));
    }
    scripts::run_by_name(eval, base, arguments, span);
    eval.written.keeping = MAKERS.contains(&base);
    if matches!(base, "." | "source") {
        let script = arguments.iter().find(|word| !is_flag(word));
        return script.into_iter().for_each(|script| interpreters::script(eval, script, base, input));
    }
    if !matches!(input, Input::None) && sends::fed(base, arguments) {
        eval.net(NetTarget::Unknown, span);
    }
    if eval.builtin(base, arguments, span, input) || wrapper(eval, words, place) {
        return;
    }
    copies::note(eval, base, arguments);
    eval.links.ignored = copies::ON_LINKS.contains(&base);
    if interpreters::run(eval, base, arguments, span, input) {
        return;
    }
    let outer = std::mem::replace(&mut eval.stdin, input.clone());
    operands::run(eval, base, arguments, span, input);
    eval.stdin = outer;
    match base {
        "tee" | "sponge" | "sed" | "gsed" | "dd" => settings(eval, arguments, place),
        "patch" => patch::run(eval, arguments, input, span),
        "apply_patch" | "applypatch" => patch::enveloped(eval, arguments, input, span),
        _ => {}
    }
    if base == "tee" {
        tee(eval, arguments, input);
    }
}

/// Hosts in the settings files that a command writes.
fn settings(eval: &mut Eval<'_>, arguments: &[Word], place: &Place<'_>) {
    let text = match (place.input, place.base) {
        (Input::Text(text), "tee" | "sponge") => Some(text.as_str()),
        _ => None,
    };
    if place.base.ends_with("sed") && !arguments.iter().any(operands::in_place) {
        return;
    }
    for word in arguments {
        let path = word.literal().map(|text| text.trim_start_matches("of=").to_owned()).unwrap_or_default();
        eval.settings_file(&text_word(&path, word.span), text);
    }
}

/// `tee file`
fn tee(eval: &mut Eval<'_>, arguments: &[Word], input: &Input) {
    let text = if let Input::Text(text) = input { Some(text.as_str()) } else { None };
    let flag = |word: &&Word| word.literal().is_some_and(|text| text.starts_with('-'));
    let append = arguments.iter().filter(flag).any(|word| matches!(word.literal().as_deref(), Some("-a" | "--append")));
    arguments.iter().filter(|word| !flag(word)).for_each(|file| eval.note_text(file, text, append));
}

fn wrapper(eval: &mut Eval<'_>, words: &[Word], place: &Place<'_>) -> bool {
    if !matches!(place.base, "env" | "sudo" | "doas") {
        return wrappers::run_wrapped(eval, words, place);
    }
    // `env A=b sh -c …`: the command sees A.
    let mark = eval.changes.len();
    for word in words.iter().skip(1) {
        let Some((name, value)) = word.literal().as_deref().and_then(split_assignment) else {
            continue;
        };
        eval.exports += 1;
        eval.conditionally(|eval| eval.set_all(&name, vec![vec![vec![Part::Text(value)]]], None, place.span));
        eval.exports -= 1;
    }
    let done = wrappers::run_wrapped(eval, words, place);
    eval.undo(mark);
    done
}
