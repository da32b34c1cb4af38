//! What git commands print of tracked files beside what they do: the changes that they ask about, or put before their user.
//!
//! Owns which options make them. Invariant: such a command reads what differs, whatever else it is. Page: `spec/shell.md`.

use crate::action::RepositoryAct;
use crate::eval::Eval;
use crate::programs::operands::repository::Call;

/// Puts on record what a subcommand prints.
pub fn run(eval: &mut Eval<'_>, call: &Call<'_>) {
    let differ = |eval: &mut Eval<'_>, revisions, paths| {
        eval.repository(RepositoryAct::Differ, revisions, paths, call.span);
    };
    match call.sub {
        "status" if asks(call, "v", "", &["--verbose"]) => differ(eval, Vec::new(), call.all()),
        "add" | "stage" if asks(call, "pie", "", &["--patch", "--interactive", "--edit"]) => {
            differ(eval, Vec::new(), call.all());
        }
        "commit" if asks(call, "pv", "mFCctSu", &["--patch", "--verbose", "--interactive"]) => {
            differ(eval, Vec::new(), call.all());
        }
        "checkout" | "restore" | "reset" if asks(call, "p", "bBsU", &["--patch"]) => {
            let (before, behind) = call.sides();
            differ(eval, before, behind);
        }
        "stash" => match call.verb().as_str() {
            "" | "push" | "save" if asks(call, "p", "m", &["--patch"]) => differ(eval, Vec::new(), call.after_verb()),
            "list" if call.patches() => {
                eval.commits(RepositoryAct::History, call.word("refs/stash"), Vec::new(), call.most(), call.span);
            }
            _ => {}
        },
        "rerere" if call.verb() == "diff" => differ(eval, Vec::new(), Vec::new()),
        "request-pull" if asks(call, "p", "", &["--patch"]) => {
            eval.commits(RepositoryAct::History, call.all(), Vec::new(), None, call.span);
        }
        "bisect" if matches!(call.verb().as_str(), "view" | "visualize") && call.patches() => {
            eval.commits(RepositoryAct::History, call.word("HEAD"), Vec::new(), call.most(), call.span);
        }
        "am" | "rebase" if long(call, "--show-current-patch") => {
            eval.repository(RepositoryAct::Show, call.word("REBASE_HEAD"), Vec::new(), call.span);
        }
        _ => {}
    }
}

/// Whether one of these letters is an option of it, by itself or behind others that take no value (those of `takes` do), or one of these
/// names, which may be cut short.
fn asks(call: &Call<'_>, letters: &str, takes: &str, names: &[&str]) -> bool {
    let short = |text: String| {
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        let own = cluster.chars().take_while(|letter| letter.is_ascii_alphabetic() && !takes.contains(*letter));
        own.into_iter().any(|letter| letters.contains(letter))
    };
    call.texts().any(short) || names.iter().any(|name| long(call, name))
}

/// Whether an option is given by its name, or by the beginning of it.
fn long(call: &Call<'_>, name: &str) -> bool {
    call.texts().any(|text| {
        let own = text.split_once('=').map_or(text.as_str(), |(own, _)| own);
        own.len() > 2 && own.starts_with("--") && name.starts_with(own)
    })
}
