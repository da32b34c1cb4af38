//! Files that are run: what stands in them is followed, where this line or the agent wrote it.
//!
//! Owns which reader a file gets: the shell's own, that of another language, that of a project's file of a known name. A file
//! of which nobody knows the text is left to whoever put it on record. Page: `spec/shell.md`.

pub mod languages;
pub mod projects;

use writ_core::Span;

use crate::action::UnresolvedKind;
use crate::code;
use crate::eval::Eval;
use crate::eval::files::written::Stored;
use crate::programs::interpreters::makefile;
use crate::shape::text_word;
use crate::word::Word;
use languages::Origin;

const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash"];

/// Programs that run what a file of a known name says; `python -m` beside them.
const BY_NAME: [&str; 12] =
    ["npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "direnv", "pytest", "py.test", "cargo", "task"];

/// A file is run by an interpreter (`what`), or by itself where that is empty.
pub fn run_file(eval: &mut Eval<'_>, file: &Word, what: &str, arguments: Option<Vec<Word>>) {
    if eval.quiet > 0 || eval.remote > 0 || !eval.knows_texts() {
        return;
    }
    let path = file.place().filter(|_| !file.is_glob());
    let places = match &path {
        Some(path) => eval.places(path),
        None => eval.named_places(file),
    };
    for place in places {
        let path = path.clone().unwrap_or_else(|| place.clone());
        match eval.stored(&place) {
            None => {}
            Some(Stored::Line(texts, known)) => {
                texts
                    .iter()
                    .for_each(|text| run_text(eval, text, what, &path, file.span, arguments.clone(), Origin::Line));
                if !known {
                    let what = format!("{what} {path}");
                    eval.unresolved(UnresolvedKind::Script, what.trim(), file.span);
                }
            }
            Some(Stored::Earlier(text)) => {
                run_text(eval, &text, what, &path, file.span, arguments.clone(), Origin::Earlier)
            }
        }
    }
}

/// Whether the first line of a script says more than which shell or language reads it.
fn is_line(shebang: &str) -> bool {
    let mut words = shebang.split_whitespace();
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let Some(first) = words.next().map(base) else { return false };
    match first.as_str() {
        "env" => words.next().is_some_and(|word| match word.strip_prefix("--") {
            Some(long) => long.starts_with('s'),
            None => word.starts_with('-') && word.contains('S'),
        }),
        other => !is_shell(other) && code::Language::of(other).is_none() && !matches!(other, "make" | "just"),
    }
}

fn run_text(
    eval: &mut Eval<'_>,
    text: &str,
    what: &str,
    path: &str,
    span: Span,
    arguments: Option<Vec<Word>>,
    origin: Origin,
) {
    if !eval.spend(16 + text.len() / 8) {
        return;
    }
    let shebang = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).unwrap_or_default();
    if what.is_empty() && is_line(shebang) {
        // The kernel, or `env -S`, makes a command of it, with the file's name behind.
        let line = text_word(&format!("{shebang} '{}'", path.replace('\'', "'\\''")), span);
        if !eval.deeper(|eval| eval.code(&line, None, "sh")) {
            eval.unresolved(UnresolvedKind::Limit, path, span);
        }
    }
    let named = shebang.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or_default());
    let named = named.filter(|word| *word != "env" && !word.starts_with('-')).map(str::to_owned).next();
    let interpreter = if what.is_empty() { named.unwrap_or_else(|| "sh".to_owned()) } else { what.to_owned() };
    if is_shell(&interpreter) || matches!(interpreter.as_str(), "." | "source") {
        if !eval.deeper(|eval| eval.code(&text_word(text, span), arguments, &interpreter)) {
            eval.unresolved(UnresolvedKind::Limit, path, span);
        }
    } else if matches!(interpreter.as_str(), "make" | "just") {
        makefile::text(eval, &interpreter, &text_word(&makefile::with_variables(text), span));
    } else if interpreter == "package.json" {
        package_scripts(eval, text, span);
    } else {
        let known = eval.deeper(|eval| languages::script(eval, &interpreter, path, text, span, arguments, origin));
        if !known {
            eval.unresolved(UnresolvedKind::Limit, path, span);
        }
    }
}

/// The modules that a program loads, where this line or the agent wrote them.
pub fn run_modules(eval: &mut Eval<'_>, base: &str, modules: &[String], span: Span) {
    for module in modules.iter().take(64) {
        let files = match code::Language::of(base) {
            Some(code::Language::Python) => vec![format!("{module}.py"), format!("{module}/__init__.py")],
            Some(code::Language::JavaScript) => {
                ["", ".js", ".mjs", ".cjs", ".ts", "/index.js"].iter().map(|end| format!("{module}{end}")).collect()
            }
            _ => Vec::new(),
        };
        files.iter().for_each(|file| run_file(eval, &text_word(file, span), base, None));
    }
}

/// Programs that run what a file of a known name says: `npm run`, `make`, `pytest`, `direnv`.
pub fn run_by_name(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) {
    if eval.quiet > 0 || eval.remote > 0 || !eval.knows_texts() {
        return;
    }
    projects::run(eval, base, arguments, span);
    if !BY_NAME.contains(&base) && !base.starts_with("python") {
        return;
    }
    let first = arguments.iter().filter_map(Word::literal).find(|text| !text.starts_with('-'));
    let first = first.as_deref().unwrap_or_default();
    let runs: (&[&str], &str) = match (base, first) {
        (
            "npm" | "pnpm" | "yarn",
            "run" | "run-script" | "test" | "t" | "start" | "install" | "i" | "ci" | "add" | "publish" | "pack",
        )
        | ("bun", "run" | "install" | "i" | "add") => (&["package.json"], "package.json"),
        ("yarn" | "pnpm", _) => (&["package.json"], "package.json"),
        ("make" | "gmake", _) => (&["GNUmakefile", "makefile", "Makefile"], "make"),
        ("just", _) => (&["justfile", "Justfile", ".justfile"], "just"),
        ("direnv", "allow" | "exec" | "reload" | "export") => (&[".envrc"], "source"),
        (python, _) if python.starts_with("python") => return run_module(eval, base, arguments, span),
        ("pytest" | "py.test", _) => (&["conftest.py"], "python3"),
        ("cargo", "build" | "test" | "run" | "check" | "clippy" | "b" | "t" | "r" | "c") => (&["build.rs"], "rust"),
        ("task", _) => (&["Taskfile.yml", "Taskfile.yaml"], "task"),
        _ => return,
    };
    for file in runs.0 {
        run_file(eval, &text_word(file, span), runs.1, None);
    }
    if matches!(base, "pytest" | "py.test") {
        let python = |path: &String| path.ends_with(".py");
        let mut files: Vec<String> = eval.written.places().map(str::to_owned).filter(python).collect();
        files.extend(arguments.iter().filter_map(Word::literal).filter(python));
        files.dedup();
        files.iter().for_each(|file| run_file(eval, &text_word(file, span), "python3", None));
    }
}

/// `python -m module`
fn run_module(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) {
    let at = arguments.iter().position(|word| word.literal().as_deref() == Some("-m"));
    let Some((at, module)) = at.and_then(|at| Some((at, arguments.get(at + 1)?.literal()?))) else { return };
    if module == "pytest" {
        return run_by_name(eval, "pytest", arguments.get(at + 2..).unwrap_or_default(), span);
    }
    let path = module.replace('.', "/");
    run_modules(eval, base, &[path.clone(), format!("{path}/__main__")], span);
}

/// Every script of a `package.json`.
pub fn package_scripts(eval: &mut Eval<'_>, text: &str, span: Span) {
    let parsed = writ_core::json::parse_with(text.as_bytes(), writ_core::json::Limits::FOREIGN).ok();
    let Some(scripts) = parsed.as_ref().and_then(|package| package.get("scripts")?.as_object()) else { return };
    for (_, script) in scripts.iter().take(64) {
        if let Some(script) = script.as_str() {
            eval.deeper(|eval| eval.code(&text_word(script, span), None, "npm run"));
        }
    }
}

/// Follows a text of a known kind that the agent wrote.
pub fn followed(eval: &mut Eval<'_>, what: &str, path: &str, text: &str, span: Span) {
    run_text(eval, text, what, path, span, None, Origin::Earlier);
}

/// Whether a program is a shell.
pub fn is_shell(base: &str) -> bool {
    SHELLS.contains(&base)
}
