//! Patches: which files one names, and what applies it.

use writ_core::Span;

use crate::action::{Access, RepositoryAct};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::own;
use crate::programs::entries::words::Role;
use crate::shape::{is_flag, text_word};
use crate::word::Word;

/// Most lines of a patch that are looked at for names.
const MAX_LINES: usize = 100_000;

/// The files that a patch names, as written, and once more without their first folder (`a/`, `b/`).
pub fn patch_names(text: &str) -> Vec<String> {
    const SIGNS: [&str; 9] =
        ["--- ", "+++ ", "*** ", "Index: ", "rename from ", "rename to ", "copy from ", "copy to ", "diff --git "];
    let mut out: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let name = name.trim().trim_matches('"');
        let short = name.split_once('/').map_or(name, |(_, rest)| rest);
        for name in [name, short] {
            if !name.is_empty() && name != "/dev/null" && name != "dev/null" && !out.iter().any(|known| known == name) {
                out.push(name.to_owned());
            }
        }
    };
    for line in text.lines().take(MAX_LINES) {
        let Some(rest) = SIGNS.iter().find_map(|sign| line.strip_prefix(sign)) else { continue };
        let rest = rest.split('\t').next().unwrap_or_default();
        add(rest);
        rest.split_whitespace().for_each(&mut add);
    }
    out
}

/// `git apply file…`, `git apply < file`
pub fn apply(eval: &mut Eval<'_>, files: Vec<Word>, input: &Input, span: Span) {
    let files: Vec<Word> = files.into_iter().filter(|file| file.literal().as_deref() != Some("-")).collect();
    if !files.is_empty() {
        return of_files(eval, files, span);
    }
    match input {
        Input::Text(text) => named(eval, text, span),
        Input::None => {}
        Input::Unknown | Input::Partly(_) => {
            let file = eval.standard_input();
            of_files(eval, file.into_iter().collect(), span);
        }
    }
}

/// What the files of a patch name: by the text that the line wrote there, or by what they hold now where nothing in the line may
/// change it before; else anything.
fn of_files(eval: &mut Eval<'_>, files: Vec<Word>, span: Span) {
    let written: Vec<Option<String>> = files.iter().map(|file| eval.text_in(file)).collect();
    if !written.is_empty() && written.iter().all(Option::is_some) {
        return written.iter().flatten().for_each(|text| named(eval, text, span));
    }
    let kept = eval.only_reads(Some(span));
    eval.repository(RepositoryAct::Patch, Vec::new(), if kept { files } else { Vec::new() }, span);
}

fn named(eval: &mut Eval<'_>, text: &str, span: Span) {
    for name in patch_names(text) {
        eval.guess(&text_word(&name, span), Access::Write, false);
    }
}

/// `patch -p1 < file`: without a file to patch, the patch names them.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], input: &Input, span: Span) {
    let options = Options::read(arguments, own("patch"), true);
    if !options.operands.is_empty() || options.of(Role::Writes).next().is_some() || options.has('\0', "--dry-run") {
        return;
    }
    let given: Vec<Word> = options.of(Role::Reads).cloned().collect();
    let dir = options.of(Role::RunsIn).next().cloned();
    let input = if matches!(input, Input::None) && given.is_empty() { &Input::Unknown } else { input };
    eval.in_dir(dir.as_ref(), |eval| apply(eval, given, input, span));
}

/// Lines of a patch in an envelope that name a file.
const ENVELOPE: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// `apply_patch <<EOF`, `apply_patch PATCH`: some agents' clients do the patch themselves when they read such a line.
pub fn enveloped(eval: &mut Eval<'_>, arguments: &[Word], input: &Input, span: Span) {
    let given = arguments.iter().find(|word| !is_flag(word));
    let text = match (given, input) {
        (Some(word), _) => word.literal(),
        (None, Input::Text(text)) => Some(text.clone()),
        (None, Input::None) => return,
        (None, Input::Unknown | Input::Partly(_)) => None,
    };
    let Some(text) = text else {
        return eval.repository(RepositoryAct::Patch, Vec::new(), Vec::new(), span);
    };
    for line in text.lines().take(MAX_LINES) {
        if let Some(path) = ENVELOPE.iter().find_map(|sign| line.trim_start().strip_prefix(sign)) {
            eval.file(text_word(path.trim(), span), Access::Write, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let names =
            patch_names("diff --git a/x/y b/x/z\n--- a/x/y\t2026\n+++ b/x/z\n@@ -1 +1 @@\n-a\n+b\nrename to q\n");
        for name in ["x/y", "x/z", "q"] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
        assert!(patch_names("no patch\n- a list\n").is_empty());
    }
}
