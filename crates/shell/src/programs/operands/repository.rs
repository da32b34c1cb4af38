//! What a git command does with a whole repository: which commits it takes, which of the tracked files it writes or reads.
//!
//! Knows subcommands and their options, no repository: whether a ruled file is tracked, or differs between two commits, is for
//! whoever can look. Page: `spec/shell.md`.

use writ_core::Span;

use crate::action::{Access, RepositoryAct};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::operands::patch;
use crate::shape::{is_flag, literal_prefix, text_word};
use crate::word::Word;

/// One invocation.
pub struct Call<'c> {
    pub sub: &'c str,
    /// What follows the subcommand.
    pub rest: &'c [Word],
    /// The same without options and their values.
    pub operands: &'c [&'c Word],
    pub span: Span,
    pub input: &'c Input,
}

impl Call<'_> {
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.rest.iter().map(|word| word.literal().unwrap_or_default()).take_while(|text| text != "--")
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.texts().any(|text| names.contains(&text.as_str()))
    }

    /// Whether an option begins with one of these.
    fn begins(&self, names: &[&str]) -> bool {
        self.texts().any(|text| names.iter().any(|name| text.starts_with(name)))
    }

    /// The value of an option.
    fn value(&self, short: &str, long: &str) -> Option<Word> {
        for (at, word) in self.rest.iter().enumerate() {
            let text = word.literal().unwrap_or_default();
            if text == short || text == long {
                return self.rest.get(at + 1).cloned();
            }
            let glued = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            let cut = text.strip_prefix(short).filter(|_| !text.starts_with("--"));
            if let Some(value) = glued.or(cut) {
                return Some(text_word(value, word.span));
            }
        }
        None
    }

    /// The values of a long option that may be cut short; one that is not known stands for itself.
    fn named(&self, long: &str) -> Vec<Word> {
        let mut out = Vec::new();
        for (at, word) in self.rest.iter().enumerate() {
            let lead = literal_prefix(word);
            let (name, value) = lead.split_once('=').map_or((lead.as_str(), None), |(name, value)| (name, Some(value)));
            if name.len() < 5 || !long.starts_with(name) {
                continue;
            }
            match value {
                Some(value) if word.literal().is_some() => out.push(text_word(value, word.span)),
                Some(_) => out.push(word.clone()),
                None => out.extend(self.rest.get(at + 1).cloned()),
            }
        }
        out
    }

    /// What stands in front of `--`, and what behind it.
    pub(super) fn sides(&self) -> (Vec<Word>, Vec<Word>) {
        let cut = self.rest.iter().position(|word| word.literal().as_deref() == Some("--"));
        let behind = cut.and_then(|at| self.rest.get(at + 1..)).unwrap_or_default();
        let own = |word: &&&Word| !behind.iter().any(|other| std::ptr::eq(other, **word));
        (self.operands.iter().filter(own).map(|word| (*word).clone()).collect(), behind.to_vec())
    }

    pub(super) fn verb(&self) -> String {
        self.operands.first().and_then(|word| word.literal()).unwrap_or_default()
    }

    pub(super) fn after_verb(&self) -> Vec<Word> {
        self.operands.iter().skip(1).map(|word| (*word).clone()).collect()
    }

    pub(super) fn all(&self) -> Vec<Word> {
        self.operands.iter().map(|word| (*word).clone()).collect()
    }

    /// `-3`, `-n 3`, `--max-count=3`
    pub(super) fn most(&self) -> Option<u32> {
        let short = self.texts().find_map(|text| text.strip_prefix('-')?.parse().ok());
        short.or_else(|| self.value("-n", "--max-count")?.literal()?.parse().ok())
    }

    pub(super) fn word(&self, text: &str) -> Vec<Word> {
        vec![text_word(text, self.span)]
    }

    /// Whether content is printed by what else prints it.
    pub(super) fn patches(&self) -> bool {
        const PATCH: [&str; 12] = [
            "-p",
            "-u",
            "--patch",
            "--patch-with-stat",
            "--patch-with-raw",
            "-W",
            "--function-context",
            "--cc",
            "-c",
            "--binary",
            "--color-words",
            "--remerge-diff",
        ];
        self.has(&PATCH) || self.begins(&["-U", "--unified", "-L", "--word-diff", "--color-words="])
    }

    /// Whether only names and numbers are printed by what else prints content.
    fn sums_up(&self) -> bool {
        const SUMS: [&str; 14] = [
            "--stat",
            "--numstat",
            "--shortstat",
            "--dirstat",
            "--summary",
            "--name-only",
            "--name-status",
            "--raw",
            "--quiet",
            "-q",
            "-s",
            "--no-patch",
            "--check",
            "--compact-summary",
        ];
        !self.patches() && (self.has(&SUMS) || self.begins(&["--stat=", "--dirstat="]))
    }
}

/// Puts on record what a subcommand does beyond the files it names.
pub fn run(eval: &mut Eval<'_>, call: &Call<'_>) {
    if matches!(call.sub, "fetch" | "pull" | "push" | "ls-remote" | "fetch-pack" | "lfs" | "request-pull" | "archive") {
        remote(eval, call);
    }
    if call.sub == "clone" {
        // What has no colon is a folder of this machine's.
        let far = |word: &&&Word| word.literal().is_some_and(|text| text.contains(':'));
        let named = call.operands.first().filter(far).map(|word| (*word).clone());
        named.into_iter().for_each(|word| contact(eval, call, vec![word]));
    }
    match call.sub {
        "checkout" | "switch" | "restore" | "reset" | "stash" | "read-tree" | "checkout-index" => restoring(eval, call),
        "merge" | "rebase" | "cherry-pick" | "revert" | "pull" | "am" | "apply" | "bisect" | "subtree" => {
            apply_commits(eval, call);
        }
        "sparse-checkout" | "filter-branch" | "filter-repo" | "rm" | "clean" | "worktree" | "remote" | "submodule" => {
            rearrange_tree(eval, call);
        }
        _ => reading(eval, call),
    }
}

/// Subcommands that contact the remote they name, by an operand or an option; `--all` stands for every remote.
fn remote(eval: &mut Eval<'_>, call: &Call<'_>) {
    let first = |skip: usize| call.operands.get(skip).map(|word| (*word).clone()).into_iter().collect();
    let every = matches!(call.sub, "fetch" | "pull") && call.has(&["--all", "--al"]);
    let several = call.sub == "fetch" && call.begins(&["--mul"]);
    let mut remotes: Vec<Word> = match call.sub {
        _ if every => call.word("--all"),
        _ if several => call.all(),
        "lfs" if matches!(call.verb().as_str(), "push" | "pull" | "fetch" | "prune") => first(1),
        "lfs" | "request-pull" | "archive" => Vec::new(),
        _ => first(0),
    };
    let named = match call.sub {
        "push" => call.named("--repo"),
        "archive" => call.named("--remote"),
        "lfs" => call.named("--remote"),
        _ => Vec::new(),
    };
    if call.sub == "archive" && named.is_empty() {
        return;
    }
    remotes.extend(named);
    if call.begins(&["--recurse-submodules"]) && call.sub != "push" {
        eval.repository(RepositoryAct::Submodules, remotes, Vec::new(), call.span);
    } else {
        contact(eval, call, remotes);
    }
}

fn contact(eval: &mut Eval<'_>, call: &Call<'_>, remotes: Vec<Word>) {
    eval.repository(RepositoryAct::Contact, remotes, Vec::new(), call.span);
}

/// Subcommands that give files a content that the repository keeps.
fn restoring(eval: &mut Eval<'_>, call: &Call<'_>) {
    let (before, behind) = call.sides();
    let restore = |eval: &mut Eval<'_>, revisions, paths| {
        eval.repository(RepositoryAct::Restore, revisions, paths, call.span);
    };
    match call.sub {
        "checkout" | "switch" => {
            let makes = call.begins(&["-b", "-B", "--orphan"])
                || (call.sub == "switch" && call.begins(&["-c", "-C", "--create", "--force-create"]));
            let forced = call.has(&["-f", "--force", "--discard-changes", "-p", "--patch", "--ours", "--theirs", "-m"]);
            if call.sub == "switch" && call.begins(&["--orphan"]) {
                eval.repository(RepositoryAct::Write, Vec::new(), Vec::new(), call.span);
            } else if forced && !makes || !behind.is_empty() {
                restore(eval, before, behind);
            } else if !before.is_empty() {
                eval.repository(RepositoryAct::Switch, before, behind, call.span);
            }
        }
        "restore" => {
            let staged = call.has(&["-S", "--staged"]) && !call.has(&["-W", "--worktree", "-SW", "-WS"]);
            if !staged {
                restore(eval, call.value("-s", "--source").into_iter().collect(), call.all());
            }
        }
        "reset" if call.has(&["--hard", "--merge", "--keep"]) => restore(eval, before, Vec::new()),
        "stash" => stash(eval, call, behind),
        "read-tree" if call.begins(&["-u"]) || call.has(&["-mu", "-um"]) => restore(eval, before, Vec::new()),
        "checkout-index" if call.begins(&["--prefix", "--temp"]) => {
            eval.repository(RepositoryAct::Search, Vec::new(), call.all(), call.span);
        }
        "checkout-index" => restore(eval, Vec::new(), call.all()),
        _ => {}
    }
}

fn stash(eval: &mut Eval<'_>, call: &Call<'_>, behind: Vec<Word>) {
    let named = || call.operands.get(1).map_or_else(|| call.word("stash@{0}"), |word| vec![(*word).clone()]);
    match call.verb().as_str() {
        "" | "push" | "save" => {
            if call.has(&["-u", "--include-untracked", "-a", "--all"]) {
                let every = call.has(&["-a", "--all"]);
                let act = if every { RepositoryAct::CleanAll } else { RepositoryAct::Clean };
                eval.repository(act, Vec::new(), behind.clone(), call.span);
            }
            eval.repository(RepositoryAct::Restore, Vec::new(), behind, call.span);
        }
        "pop" | "apply" => eval.repository(RepositoryAct::Pick, named(), Vec::new(), call.span),
        "branch" => {
            let stash = call.operands.get(2).map_or_else(|| call.word("stash@{0}"), |word| vec![(*word).clone()]);
            eval.repository(RepositoryAct::Pick, stash, Vec::new(), call.span);
        }
        "show" if call.patches() => eval.repository(RepositoryAct::Show, named(), Vec::new(), call.span),
        _ => {}
    }
}

/// Subcommands that bring what other commits changed.
fn apply_commits(eval: &mut Eval<'_>, call: &Call<'_>) {
    let bring = |eval: &mut Eval<'_>, revisions| {
        eval.repository(RepositoryAct::Bring, revisions, Vec::new(), call.span);
    };
    let any = |eval: &mut Eval<'_>| eval.repository(RepositoryAct::Write, Vec::new(), Vec::new(), call.span);
    if call.has(&["--abort", "--quit", "--skip", "--continue"]) {
        let back = ["ORIG_HEAD", "REBASE_HEAD", "CHERRY_PICK_HEAD"].map(|name| text_word(name, call.span));
        return eval.repository(RepositoryAct::Pick, back.to_vec(), Vec::new(), call.span);
    }
    match call.sub {
        "merge" if call.operands.is_empty() => bring(eval, call.word("@{upstream}")),
        "rebase" => rebase(eval, call),
        "merge" => bring(eval, call.all()),
        "cherry-pick" | "revert" => eval.repository(RepositoryAct::Pick, call.all(), Vec::new(), call.span),
        "pull" | "subtree" => any(eval),
        // Without commits it waits for these.
        "bisect" if call.verb() == "start" && call.rest.len() == 1 => {}
        "bisect" if !matches!(call.verb().as_str(), "" | "log" | "view" | "visualize" | "terms" | "help") => any(eval),
        "apply" if call.has(&["--check", "--stat", "--numstat", "--summary", "--cached"]) => {}
        "apply" | "am" => patch::apply(eval, call.all(), call.input, call.span),
        _ => {}
    }
}

/// A rebase brings what the other side changed; onto another commit, and with an editor of its steps, it may drop what this one did.
fn rebase(eval: &mut Eval<'_>, call: &Call<'_>) {
    let upstream = call.operands.first().map_or_else(|| text_word("@{upstream}", call.span), |word| (*word).clone());
    let between = |from: &Word, to: &Word| match (from.literal(), to.literal()) {
        (Some(from), Some(to)) => text_word(&format!("{from}..{to}"), call.span),
        _ => Word { parts: [from.parts.as_slice(), to.parts.as_slice()].concat(), span: call.span },
    };
    let head = text_word("HEAD", call.span);
    let pick = |eval: &mut Eval<'_>, range| eval.repository(RepositoryAct::Pick, vec![range], Vec::new(), call.span);
    match call.value("--onto", "--onto") {
        Some(onto) => pick(eval, between(&onto, &upstream)),
        None => eval.repository(RepositoryAct::Bring, vec![upstream.clone()], Vec::new(), call.span),
    }
    if call.has(&["-i", "--interactive", "--edit-todo", "--autosquash"]) || call.begins(&["-x", "--exec"]) {
        pick(eval, between(&upstream, &head));
    }
}

/// Subcommands that rearrange the work tree, and those about other work trees and machines.
fn rearrange_tree(eval: &mut Eval<'_>, call: &Call<'_>) {
    let write = |eval: &mut Eval<'_>, paths| eval.repository(RepositoryAct::Write, Vec::new(), paths, call.span);
    let verb = call.verb();
    match call.sub {
        "sparse-checkout" if matches!(verb.as_str(), "set" | "add" | "reapply" | "disable" | "init") => {
            write(eval, Vec::new());
        }
        "filter-branch" | "filter-repo" => write(eval, Vec::new()),
        "rm" if !call.has(&["--cached", "-n", "--dry-run"]) => write(eval, call.all()),
        "clean" if !call.has(&["-n", "--dry-run", "-nd", "-dn", "-ndx", "-nx", "-nxd"]) => {
            let short = |text: String| text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']);
            let act = if call.texts().any(short) { RepositoryAct::CleanAll } else { RepositoryAct::Clean };
            eval.repository(act, Vec::new(), call.all(), call.span);
        }
        "worktree" if verb == "add" && !call.has(&["--no-checkout"]) => {
            let commit = call.operands.get(2).map_or_else(|| call.word("HEAD"), |word| vec![(*word).clone()]);
            eval.repository(RepositoryAct::Content, commit, Vec::new(), call.span);
        }
        "remote" if verb == "update" => {
            let named = call.after_verb();
            contact(eval, call, if named.is_empty() { call.word("--all") } else { named });
        }
        "remote" if matches!(verb.as_str(), "show" | "prune" | "set-head") => {
            contact(eval, call, call.after_verb().into_iter().take(1).collect());
        }
        "submodule" if matches!(verb.as_str(), "update" | "add" | "foreach") => {
            eval.repository(RepositoryAct::Submodules, Vec::new(), Vec::new(), call.span);
        }
        _ => {}
    }
}

/// Subcommands that print content.
fn reading(eval: &mut Eval<'_>, call: &Call<'_>) {
    let (mut before, mut behind) = call.sides();
    if call.has(&["--full-diff"]) {
        // Commits that touch the paths are shown whole.
        (before, behind) = (Vec::new(), Vec::new());
    }
    let use_of = |eval: &mut Eval<'_>, act| eval.repository(act, before.clone(), behind.clone(), call.span);
    match call.sub {
        "show" if !call.sums_up() => use_of(eval, RepositoryAct::Show),
        "log" | "whatchanged" | "reflog" | "rev-list" if call.patches() => {
            lines(eval, call);
            eval.commits(RepositoryAct::History, before, behind, call.most(), call.span);
        }
        "diff" | "difftool" if !call.sums_up() && !call.has(&["--no-index"]) => use_of(eval, RepositoryAct::Differ),
        "diff-files" | "diff-index" if call.patches() => use_of(eval, RepositoryAct::Differ),
        "diff-tree" if call.patches() && before.len() < 2 => use_of(eval, RepositoryAct::Show),
        "diff-tree" if call.patches() => use_of(eval, RepositoryAct::Differ),
        "format-patch" | "range-diff" | "send-email" => {
            eval.commits(RepositoryAct::History, before, behind, call.most(), call.span);
        }
        "fast-export" | "bundle" | "archive" => {
            use_of(eval, if call.sub == "archive" { RepositoryAct::Content } else { RepositoryAct::History });
        }
        "grep" => grep(eval, call, before, behind),
        "cat-file" => objects(eval, call, before),
        "unpack-file" => use_of(eval, RepositoryAct::Object),
        "merge-tree" => use_of(eval, RepositoryAct::Content),
        "daemon" | "http-backend" | "upload-archive" | "upload-pack" | "instaweb" => {
            eval.repository(RepositoryAct::History, call.word("--all"), Vec::new(), call.span);
        }
        _ => {}
    }
}

/// `git log -L1,9:file`
fn lines(eval: &mut Eval<'_>, call: &Call<'_>) {
    for word in call.rest {
        let text = word.literal().unwrap_or_default();
        if let Some((_, file)) = text.rsplit_once(':').filter(|_| text.starts_with("-L") || text.contains(',')) {
            eval.file(text_word(file, word.span), Access::Read, false);
        }
    }
}

fn grep(eval: &mut Eval<'_>, call: &Call<'_>, before: Vec<Word>, paths: Vec<Word>) {
    if call.has(&["--no-index", "--untracked"]) {
        let named: Vec<Word> = before.iter().skip(1).chain(&paths).cloned().collect();
        if named.is_empty() {
            eval.file(text_word(".", call.span), Access::Read, true);
        }
        named.into_iter().for_each(|path| eval.file(path, Access::Read, true));
    }
    let given = call.begins(&["-e", "-f", "--and", "--or"]);
    let named: Vec<Word> = before.into_iter().skip(usize::from(!given)).collect();
    eval.repository(RepositoryAct::Search, named, paths, call.span);
}

/// `git cat-file -p HEAD:file`, `git cat-file --batch`
fn objects(eval: &mut Eval<'_>, call: &Call<'_>, before: Vec<Word>) {
    if call.has(&["-t", "-s", "-e", "--batch-check"]) {
        return;
    }
    let mut named: Vec<Word> = before;
    if matches!(named.first().and_then(Word::literal).as_deref(), Some("blob" | "tree" | "commit" | "tag")) {
        named.remove(0);
    }
    if call.begins(&["--batch"]) {
        let lines = match call.input {
            Input::Text(text) if !call.has(&["--batch-all-objects"]) => text.clone(),
            _ => "--all".to_owned(),
        };
        named = lines.lines().take(64).map(|line| text_word(line.trim(), call.span)).collect();
    }
    for word in &named {
        let text = word.literal().unwrap_or_default();
        if let Some((_, path)) = text.split_once(':').filter(|(_, path)| !path.is_empty()) {
            let path = path.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(':');
            eval.guess(&text_word(path, word.span), Access::Read, false);
        }
    }
    eval.repository(RepositoryAct::Object, named, Vec::new(), call.span);
}

/// The operands of a subcommand that has no line.
pub fn plain(rest: &[Word]) -> Vec<&Word> {
    rest.iter().filter(|word| !is_flag(word)).collect()
}
