//! What a line itself does to git's settings, branches and remotes, which a later contact of it goes by.
//!
//! Owns the reading of the commands that change these. Looks at no repository: what a change comes to is for whoever holds its
//! settings. Invariant: a change that cannot be followed is [`Change::Unknown`], never left out. Page: `spec/shell.md`.

use writ_core::Span;
use writ_shell::{Analysis, Command, Dir, Word};

/// Sections of settings that decide where a contact goes.
const SECTIONS: [&str; 6] = ["remote.", "remotes.", "branch.", "url.", "include", "extensions."];
/// Options of git's own with a value.
const GLOBALS: [&str; 9] = [
    "-C",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--super-prefix",
    "--config-env",
    "--attr-source",
    "--list-cmds",
];

/// What one command changes.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A setting has a value.
    Setting(String, String),
    /// What one section said another one says.
    Renamed(String, String),
    /// Another branch may be checked out; which one is not known where there is no name.
    Branch(Option<String>),
    /// A branch follows one of a remote, `origin/main`; of which is not known where there is no name.
    Upstream(Option<String>),
    /// Fewer remotes are left.
    Removed,
    /// A repository is made.
    Made(Made),
    /// What else a contact goes by is changed.
    Unknown,
}

/// A repository that the line makes.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Where the command may run.
    pub dirs: Vec<Dir>,
    /// Its folder as written; the one that the command runs in where there is none.
    pub folder: Option<String>,
    pub of: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A clone of what stands there, if that is known.
    Clone(Option<String>),
    /// Another work tree of the repository that the command runs in.
    WorkTree,
    Empty,
}

/// All that a line changes, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    all: Vec<(usize, Change)>,
    /// Commands may run again, so that what stands behind comes before, too.
    repeats: bool,
}

impl Changes {
    /// Of a line, behind those that were made before it.
    pub fn of(line: &str, analysis: &Analysis, before: Vec<Change>) -> Self {
        const AGAIN: [&str; 6] = ["for ", "while ", "until ", "function ", "()", "trap "];
        let mut all: Vec<(usize, Change)> = before.into_iter().map(|change| (0, change)).collect();
        for command in &analysis.commands {
            all.extend(changed(command).into_iter().map(|change| (command.span.start, change)));
        }
        Self { all, repeats: AGAIN.iter().any(|sign| line.contains(sign)) }
    }

    /// What may have happened once a command runs, its own options included.
    pub fn before(&self, span: Span) -> impl Iterator<Item = &Change> {
        self.all.iter().filter(move |(at, _)| self.comes_before(*at, span)).map(|(_, change)| change)
    }

    /// Whether what stands at a place may happen before a command.
    pub const fn comes_before(&self, at: usize, span: Span) -> bool {
        self.repeats || at <= span.start
    }
}

fn changed(command: &Command) -> Vec<Change> {
    let Some((program, arguments)) = command.words.split_first() else { return Vec::new() };
    let program = program.literal().unwrap_or_default();
    match program.rsplit('/').next() {
        Some("git" | "hub") => by_git(command, arguments),
        Some("gh" | "glab") => {
            let plain = Parts::of(arguments, &[]).plain;
            let said = |at: usize| plain.get(at).cloned().flatten().unwrap_or_default();
            match (said(0).as_str(), said(1).as_str()) {
                ("repo", "clone") => vec![made(command, plain.get(3), plain.get(2), Origin::Clone(None))],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn by_git(command: &Command, arguments: &[Word]) -> Vec<Change> {
    let mut out = Vec::new();
    let mut words = arguments.iter();
    let sub = loop {
        let Some(word) = words.next() else { return out };
        match word.literal() {
            Some(text) if text == "-c" => out.extend(words.next().map(setting_of)),
            Some(text) if GLOBALS.contains(&text.as_str()) => {
                words.next();
            }
            Some(text) if text.starts_with('-') => {}
            Some(text) => break text,
            // Whatever it is, it may change what a later contact goes by.
            None => {
                out.push(Change::Unknown);
                return out;
            }
        }
    };
    let rest = words.as_slice();
    match sub.as_str() {
        "config" => out.extend(configured(rest)),
        "remote" => out.extend(remote(rest)),
        "checkout" | "switch" => out.extend(switched(&sub, rest)),
        "branch" => out.extend(branch(rest)),
        "symbolic-ref" => {
            let plain = Parts::of(rest, &["-m"]).plain;
            out.extend(plain.get(1).map(|name| {
                Change::Branch(name.as_ref().map(|name| name.trim_start_matches("refs/heads/").to_owned()))
            }));
        }
        "stash" | "rebase" => {
            let plain = Parts::of(rest, &["--onto", "-x", "--exec", "-s", "-X"]).plain;
            let moves = sub == "rebase" || plain.first() == Some(&Some("branch".to_owned()));
            out.extend(plain.get(1).filter(|_| moves).map(|name| Change::Branch(name.clone())));
        }
        "submodule" => {
            let plain = Parts::of(rest, &["-b", "--name", "--reference", "--depth"]).plain;
            if let [Some(verb), Some(path), Some(url)] = plain.as_slice()
                && verb == "set-url"
            {
                out.push(Change::Setting(format!("submodule.{path}.url"), url.clone()));
            }
        }
        _ => out.extend(made_by(command, &sub, rest)),
    }
    out
}

/// Subcommands that make a repository.
fn made_by(command: &Command, sub: &str, rest: &[Word]) -> Option<Change> {
    const VALUES: [&str; 14] = [
        "-b",
        "--branch",
        "--depth",
        "-o",
        "--origin",
        "-c",
        "--config",
        "-j",
        "--jobs",
        "--filter",
        "-u",
        "--reference",
        "--template",
        "--separate-git-dir",
    ];
    let plain = |values: &[&str]| Parts::of(rest, values).plain;
    match sub {
        "clone" => {
            let plain = plain(&VALUES);
            let source = plain.first().cloned().flatten();
            Some(made(command, plain.get(1), plain.first(), Origin::Clone(source)))
        }
        "worktree" => {
            let plain = plain(&["-b", "-B", "--reason"]);
            let adds = plain.first() == Some(&Some("add".to_owned()));
            adds.then(|| made(command, plain.get(1), None, Origin::WorkTree))
        }
        "init" => {
            let plain = plain(&["-b", "--initial-branch", "--template", "--object-format"]);
            Some(made(command, plain.first(), None, Origin::Empty))
        }
        _ => None,
    }
}

/// A repository in the folder that is named, or in one called as what it is a clone of.
fn made(command: &Command, folder: Option<&Option<String>>, source: Option<&Option<String>>, of: Origin) -> Change {
    let last = |text: &String| {
        let name = text.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        name.strip_suffix(".git").unwrap_or(name).to_owned()
    };
    let folder = match (folder, source) {
        (Some(folder), _) => folder.clone(),
        (None, Some(source)) => source.as_ref().map(last),
        (None, None) => Some(".".to_owned()),
    };
    Change::Made(Made { dirs: command.dirs.clone(), folder, of })
}

/// A command's words told apart: those that are no options and no values of these, each as far as it is known.
struct Parts {
    flags: Vec<String>,
    plain: Vec<Option<String>>,
}

impl Parts {
    fn of(words: &[Word], values: &[&str]) -> Self {
        let mut out = Self { flags: Vec::new(), plain: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.literal() {
                Some(text) if text.starts_with('-') && text.len() > 1 => {
                    if values.contains(&text.as_str()) {
                        words.next();
                    }
                    out.flags.push(text);
                }
                text => out.plain.push(text),
            }
        }
        out
    }

    /// Whether an option is given, by a letter alone or in its long form, which may be cut short.
    fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| {
            let name = flag.split('=').next().unwrap_or_default();
            let long = |own: &&str| own.starts_with("--") && name.len() > 4 && own.starts_with(name);
            names.contains(&name) || names.iter().any(long)
        })
    }
}

/// A setting's name as git compares it: section and variable in lower case.
fn canonical(name: &str) -> String {
    let (Some(first), Some(last)) = (name.find('.'), name.rfind('.')) else { return name.to_lowercase() };
    let piece = |range: std::ops::Range<usize>| name.get(range).unwrap_or_default();
    format!("{}{}{}", piece(0..first).to_lowercase(), piece(first..last), piece(last..name.len()).to_lowercase())
}

/// Whether a setting, or all of a section, decides where a contact goes.
fn leads(name: &str) -> bool {
    let name = name.to_lowercase();
    let kept = [".rebase", ".description", ".mergeoptions", ".fetch", ".tagopt", ".prune"];
    SECTIONS.iter().any(|section| name.starts_with(section)) && !kept.iter().any(|end| name.ends_with(end))
}

/// `-c NAME=VALUE`
fn setting_of(word: &Word) -> Change {
    let Some(text) = word.literal() else { return Change::Unknown };
    let (name, value) = text.split_once('=').unwrap_or((text.as_str(), "true"));
    Change::Setting(canonical(name), value.to_owned())
}

/// `git config …`
fn configured(rest: &[Word]) -> Option<Change> {
    const READS: [&str; 4] = ["--get", "--list", "-l", "--name-only"];
    let parts = Parts::of(rest, &["-f", "--file", "--blob", "--type", "--default", "--comment", "--value"]);
    let verb = parts.plain.first().cloned().flatten().unwrap_or_default();
    let reads = parts.has(&READS) || parts.flags.iter().any(|flag| flag.starts_with("--get"));
    if reads || matches!(verb.as_str(), "get" | "list") {
        return None;
    }
    let verbs = matches!(verb.as_str(), "set" | "unset" | "rename-section" | "remove-section" | "edit");
    let plain = parts.plain.get(usize::from(verbs)..).unwrap_or_default();
    let is = |option: &str, own: &str| parts.has(&[option]) || verb == own;
    let names = |name: &Option<String>| name.as_ref().is_none_or(|name| leads(&format!("{name}.")) || leads(name));
    if is("--edit", "edit") || parts.has(&["-e"]) {
        return Some(Change::Unknown);
    }
    if is("--rename-section", "rename-section") {
        return match plain {
            [Some(old), Some(new), ..] => Some(Change::Renamed(old.clone(), new.clone())),
            _ => Some(Change::Unknown),
        };
    }
    if is("--remove-section", "remove-section") || is("--unset", "unset") || parts.has(&["--unset-all"]) {
        return plain.first().filter(|name| names(name)).map(|_| Change::Unknown);
    }
    match plain {
        [Some(name), Some(value), ..] => Some(Change::Setting(canonical(name), value.clone())),
        [name, _, ..] => names(name).then_some(Change::Unknown),
        _ => None,
    }
}

/// `git remote …`
fn remote(rest: &[Word]) -> Option<Change> {
    let parts = Parts::of(rest, &["-t", "--track", "-m", "--master"]);
    let [Some(verb), rest @ ..] = parts.plain.as_slice() else { return None };
    let section = |name: &str| format!("remote.{name}");
    match (verb.as_str(), rest) {
        ("set-url", _) if parts.has(&["--delete"]) => Some(Change::Unknown),
        ("add" | "set-url", [Some(name), Some(url), ..]) => {
            Some(Change::Setting(format!("remote.{name}.url"), url.clone()))
        }
        ("rename", [Some(old), Some(new), ..]) => Some(Change::Renamed(section(old), section(new))),
        ("remove" | "rm", _) => Some(Change::Removed),
        ("add" | "set-url" | "rename", _) => Some(Change::Unknown),
        _ => None,
    }
}

/// `git checkout …`, `git switch …`
fn switched(sub: &str, rest: &[Word]) -> Vec<Change> {
    const MAKES: [&str; 6] = ["-b", "-B", "-c", "-C", "--create", "--force-create"];
    if sub == "checkout" && rest.iter().any(|word| word.literal().as_deref() == Some("--")) {
        return Vec::new();
    }
    let parts = Parts::of(rest, &["--conflict"]);
    let mut plain = parts.plain.into_iter();
    let flags = Parts { flags: parts.flags, plain: Vec::new() };
    let mut out = Vec::new();
    let branch = |name: Option<String>| Change::Branch(name.filter(|name| name != "-" && !name.starts_with('@')));
    if flags.has(&MAKES) || flags.has(&["--orphan"]) {
        out.extend(plain.next().map(branch));
        out.extend(plain.next().map(upstream));
    } else if flags.has(&["-t", "--track"]) {
        out.extend(plain.next().map(upstream));
    } else {
        out.extend(plain.next().map(branch));
    }
    out
}

fn upstream(name: Option<String>) -> Change {
    Change::Upstream(name.map(|name| name.trim_start_matches("refs/remotes/").to_owned()))
}

/// `git branch …`
fn branch(rest: &[Word]) -> Vec<Change> {
    let parts = Parts::of(rest, &[]);
    let set = parts.flags.iter().find_map(|flag| flag.strip_prefix("--set-upstream-to=").or(flag.strip_prefix("-u")));
    match (set, parts.plain.as_slice()) {
        (Some(name), _) if !name.is_empty() => vec![upstream(Some(name.to_owned()))],
        (_, [name, ..]) if parts.has(&["-u", "--set-upstream-to"]) => vec![upstream(name.clone())],
        (_, [old, new]) if parts.has(&["-m", "-M", "-c", "-C", "--move", "--copy"]) => match (old, new) {
            (Some(old), Some(new)) => vec![Change::Renamed(format!("branch.{old}"), format!("branch.{new}"))],
            _ => vec![Change::Branch(None)],
        },
        (_, [_, start]) if !parts.has(&["-d", "-D", "--delete"]) => vec![upstream(start.clone())],
        _ => Vec::new(),
    }
}
