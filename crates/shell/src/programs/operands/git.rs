//! `git`: which files a subcommand reads and writes, which remotes it contacts. A subcommand is an entry
//! `git NAME` of `data/programs/vcs.toml`.

use writ_core::Span;

use crate::action::{Access, RepositoryAct, UnknownUseKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::entries::words::Role;
use crate::programs::operands::repository::{self, Call};
use crate::programs::operands::table::Split;
use crate::programs::operands::{by_entry, printing, unpack, value_flags, values};

use crate::shape::{is_flag, text_word};
use crate::word::Word;

/// Global options with a value.
pub const GLOBALS: &str =
    "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source";

/// Subcommands that push by another name.
const PUSHES: [&str; 5] = ["send-pack", "http-push", "remote-https", "remote-http", "remote-ssh"];

/// Puts the files and hosts of a git command on record.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], span: Span, input: &Input) {
    let at = value_flags(arguments, GLOBALS);
    let globals = arguments.get(..at).unwrap_or_default();
    let mut dirs: Vec<Word> = Vec::new();
    for (flag, next) in globals.iter().zip(arguments.iter().skip(1)) {
        let text = flag.literal().unwrap_or_default();
        let glued = ["--work-tree=", "--git-dir="].iter().find_map(|option| text.strip_prefix(option));
        let folder = match text.as_str() {
            "-C" => {
                dirs.push(next.clone());
                continue;
            }
            "--work-tree" | "--git-dir" => next.clone(),
            _ => match glued {
                Some(folder) => text_word(folder, flag.span),
                None => continue,
            },
        };
        eval.file(folder.clone(), Access::List, false);
        let own = folder.literal().map(|text| text.strip_suffix(".git").map_or(text.clone(), |it| format!("{it}.")));
        dirs.push(own.map_or(folder, |text| text_word(&text, flag.span)));
    }
    let sub = arguments.get(at).and_then(Word::literal).unwrap_or_default();
    let rest = arguments.get(at + 1..).unwrap_or_default();
    in_dirs(eval, &dirs, &mut |eval| subcommand(eval, &sub, rest, span, input));
}

/// The files that `git config` changes, where they are not the repository's own. That it reads the one it is given stands in its entry.
fn config_files(eval: &mut Eval<'_>, split: &Split<'_>, span: Span) {
    const READS: [&str; 8] = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--get-color",
        "--get-colorbool",
        "--list",
        "--default",
    ];
    const CHANGES: [&str; 7] =
        ["--unset", "--unset-all", "--add", "--replace-all", "--remove-section", "--rename-section", "--edit"];
    let given = |names: &[&str]| names.iter().any(|name| split.has(&[], name));
    let verb = split.operands.first().and_then(|word| word.literal());
    let looks = matches!(verb.as_deref(), Some("get" | "list")) || given(&READS) || split.has(&['l'], "--list");
    let open = split.operands.iter().any(|word| word.literal().is_none());
    let changes = given(&CHANGES) || split.has(&['e'], "--edit") || (!looks && split.operands.len() > 1) || open;
    if !changes {
        return;
    }
    let files = split.values.iter().filter(|(role, _)| *role == Role::Reads);
    files.for_each(|(_, file)| values::value(eval, Role::Writes, file));
    if given(&["--global"]) {
        let home = eval.home().unwrap_or_else(|| "~".to_owned());
        eval.file(text_word(&format!("{home}/.gitconfig"), span), Access::Write, false);
    } else if given(&["--system"]) {
        eval.file(text_word("/etc/gitconfig", span), Access::Write, false);
    }
}

/// `git -C a -C b`
fn in_dirs<'e>(eval: &mut Eval<'e>, dirs: &[Word], run: &mut dyn FnMut(&mut Eval<'e>)) {
    match dirs.split_first() {
        Some((first, rest)) => eval.in_dir(Some(first), |eval| in_dirs(eval, rest, run)),
        None => run(eval),
    }
}

/// `git-push …` is `git push …`.
pub fn by_its_own_name(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) -> bool {
    let Some(sub) = base.strip_prefix("git-").filter(|sub| !sub.is_empty()) else { return false };
    as_git(eval, &[sub], arguments, span);
    true
}

/// Follows a command that another one amounts to.
pub fn as_git(eval: &mut Eval<'_>, words: &[&str], rest: &[Word], span: Span) {
    let front = std::iter::once("git").chain(words.iter().copied()).map(|word| text_word(word, span));
    eval.inner(front.chain(rest.iter().cloned()).collect(), &[], "git", span, &Input::None);
}

fn subcommand(eval: &mut Eval<'_>, sub: &str, rest: &[Word], span: Span, input: &Input) {
    if PUSHES.contains(&sub) {
        return as_git(eval, &["push"], rest, span);
    }
    let plain: Vec<&Word> = rest.iter().filter(|word| !is_flag(word)).collect();
    let verb = plain.first().and_then(|word| word.literal()).unwrap_or_default();
    if sub == "subtree" && matches!(verb.as_str(), "push" | "pull") {
        let named: Vec<Word> = plain.iter().skip(1).map(|word| (*word).clone()).collect();
        return as_git(eval, &[&verb], &named, span);
    }
    let Some(split) = by_entry(eval, &format!("git {sub}"), rest, span) else {
        // A program of its own, or an alias.
        if let Some(alias) = eval.aliases.get(&format!("git {sub}")).cloned() {
            let words: Vec<&str> = alias.split_whitespace().collect();
            if words.first() != Some(&sub) {
                return as_git(eval, &words, rest, span);
            }
        }
        let known = sub.is_empty() || matches!(sub, "lfs" | "subtree" | "filter-repo");
        if known {
            repository::run(eval, &Call { sub, rest, operands: &repository::plain(rest), span, input });
        } else {
            eval.repository(RepositoryAct::Alias, vec![text_word(sub, span)], rest.to_vec(), span);
            eval.unknown_use(UnknownUseKind::Arguments, rest.to_vec(), span);
        }
        return;
    };
    let words = split.operands.as_slice();
    let call = Call { sub, rest, operands: words, span, input };
    printing::run(eval, &call);
    repository::run(eval, &call);
    match sub {
        "config" => config_files(eval, &split, span),
        "worktree" if matches!(verb.as_str(), "add" | "move") => {
            words.iter().skip(1).take(1).for_each(|folder| unpack(eval, folder));
        }
        "clone" => lands(eval, words),
        "submodule" if verb == "add" => lands(eval, words.get(1..).unwrap_or_default()),
        _ => {}
    }
}

/// A repository, and the folder that its files land in: one of its own name where none is given.
fn lands(eval: &mut Eval<'_>, words: &[&Word]) {
    let Some(source) = words.first() else { return };
    if let Some(target) = words.get(1) {
        eval.file((*target).clone(), Access::Write, false);
        return unpack(eval, target);
    }
    let Some(text) = source.literal() else { return };
    let name = text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(name);
    if !matches!(name, "" | "." | "..") {
        unpack(eval, &text_word(name, source.span));
    }
}

/// The same of programs whose first words say that they fetch a repository.
pub fn fetched(eval: &mut Eval<'_>, base: &str, words: &[&Word]) {
    let said = |at: usize| words.get(at).and_then(|word| word.literal()).unwrap_or_default();
    let skip = match (base, said(0).as_str(), said(1).as_str()) {
        ("gh" | "glab", "repo", "clone") => 2,
        ("svn", "checkout" | "co" | "export", _) | ("hg", "clone", _) => 1,
        ("degit" | "tiged", _, _) => 0,
        _ => return,
    };
    // What `gh repo clone x/y -- …` gives git is no folder.
    let words = words.get(skip..).unwrap_or_default();
    let end = words.iter().position(|word| is_flag(word)).unwrap_or(words.len());
    lands(eval, words.get(..end).unwrap_or_default());
}

/// Operands that are revisions or paths; behind `--` they are paths. `HEAD:secrets/key` reads that path, whatever the commit.
pub fn revisions(eval: &mut Eval<'_>, words: &[&Word], arguments: &[Word], access: Access) {
    let text = |word: &Word| word.literal().unwrap_or_default();
    let cut = arguments.iter().position(|word| text(word) == "--");
    let behind = cut.map(|at| arguments.get(at + 1..).unwrap_or_default()).unwrap_or_default();
    let apart = arguments.iter().any(|word| text(word) == "--no-index");
    for word in words {
        let whole = text(word);
        let inside = whole.split_once(':').filter(|(_, path)| !path.is_empty() && !path.starts_with('/'));
        // `:0:path` is the path in the index.
        let inside = inside.map(|(commit, path)| match path.split_once(':') {
            Some((stage, path)) if commit.is_empty() && stage.len() == 1 => (commit, path),
            _ => (commit, path),
        });
        if apart {
            eval.file((*word).clone(), Access::Read, true);
        } else if behind.iter().any(|path| path.span == word.span && path == *word) {
            eval.file((*word).clone(), access, access == Access::Write && !is_top(&whole));
        } else if let Some((_, path)) = inside {
            eval.file(text_word(path, word.span), Access::Read, false);
        } else if access == Access::Write && !is_top(&whole) {
            eval.guess(word, access, true);
        } else {
            eval.guess(word, access, false);
        }
    }
}

/// The whole tree: what of it is written is for whoever can look at the repository.
fn is_top(path: &str) -> bool {
    matches!(path, "." | "./" | ":/" | ":" | "*")
}

/// `git restore`: with `--staged` alone it writes no file.
pub fn restored(eval: &mut Eval<'_>, words: &[&Word], arguments: &[Word]) {
    let has = |names: &[&str]| arguments.iter().filter_map(Word::literal).any(|text| names.contains(&text.as_str()));
    if has(&["-S", "--staged"]) && !has(&["-W", "--worktree", "-SW", "-WS"]) {
        return;
    }
    for word in words {
        let tree = !is_top(&word.literal().unwrap_or_default());
        eval.file((*word).clone(), Access::Write, tree);
    }
}

/// A remote on this machine is a folder to read.
pub fn local_remote(eval: &mut Eval<'_>, word: &Word) {
    if word.literal().is_some_and(|text| text.starts_with(['/', '.', '~'])) {
        eval.file(word.clone(), Access::Read, true);
    }
}
