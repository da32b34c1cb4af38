//! What a line aims at or runs without saying so: targets and code that are known only once it runs.
//!
//! Owns R36's second half: a program that is known to destroy and whose target is not known is looked at by somebody. What of a
//! target is known counts: a folder in front, a last name behind. Invariant: nothing is left out because it is not known.

use writ_core::Span;
use writ_shell::{Analysis, Command, FileUse, Part, Source, UnresolvedKind, Word};

use super::Findings;
use crate::heuristics;
use crate::paths::{PathOperation, Place, Seen, is_surely_made_again, judge};
use crate::report::{Confidence, Effect, Missing, Origin, Tier, Unseen};
use crate::rules::{self, Rule};

/// Programs whose output is made to be run by the shell that calls them.
const EMITTERS: [&str; 34] = [
    "ssh-agent",
    "gpg-agent",
    "direnv",
    "pyenv",
    "rbenv",
    "nodenv",
    "goenv",
    "jenv",
    "brew",
    "starship",
    "zoxide",
    "fnm",
    "mise",
    "rtx",
    "asdf",
    "dircolors",
    "opam",
    "conda",
    "mamba",
    "micromamba",
    "luarocks",
    "minikube",
    "docker-machine",
    "register-python-argcomplete",
    "thefuck",
    "fzf",
    "atuin",
    "poetry",
    "pipx",
    "hatch",
    "lesspipe",
    "resize",
    "nvm",
    "volta",
];
/// Variables that name a program by convention.
const PROGRAMS: [&str; 22] = [
    "EDITOR", "VISUAL", "PAGER", "BROWSER", "SHELL", "CC", "CXX", "CPP", "LD", "AR", "MAKE", "PYTHON", "PYTHON3",
    "NODE", "NPM", "GO", "CARGO", "RUSTC", "JAVA", "PHP", "RUBY", "PERL",
];

/// How a path that is not fully known is judged.
pub(super) enum JudgedPath {
    /// As this path.
    Path { path: String, glob: bool, seen: bool },
    /// As anything.
    Anything,
    /// As nothing that anybody keeps.
    Nothing,
}

/// What a path is judged as.
pub(super) fn judged_path(word: &Word, analysis: &Analysis) -> JudgedPath {
    let mut path = String::new();
    let (mut glob, mut seen) = (false, true);
    for (at, part) in word.parts.iter().enumerate() {
        match part {
            Part::Text(text) | Part::Glob(text) => path.push_str(text),
            Part::Unknown(Source::Number | Source::Fresh | Source::Name) => {
                path.push('…');
                seen = false;
            }
            Part::Unknown(Source::Listed(index)) if at == 0 || path.is_empty() => {
                let Some(names) = listed(*index, analysis) else { return tail(word) };
                path = names;
                (glob, seen) = (true, false);
            }
            // A value from outside holds no `..`: below a folder it stays there.
            Part::Unknown(Source::Outside) if path.rsplit_once('/').is_some_and(|(folder, _)| folder.len() > 1) => {
                path.push('…');
                seen = false;
            }
            Part::Unknown(_) => return tail(word),
        }
    }
    glob |= word.is_glob();
    JudgedPath::Path { path, glob, seen }
}

/// By its last name alone: wherever it lies, some names are given to nothing that anybody keeps.
fn tail(word: &Word) -> JudgedPath {
    let last = word.parts.iter().rev().map_while(|part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
        Part::Unknown(_) => None,
    });
    let mut tail: Vec<&str> = last.collect();
    tail.reverse();
    let tail = tail.concat();
    let named = tail.split_once('/').is_some_and(|(_, names)| {
        !names.split('/').any(|name| name == "..") && names.split('/').any(is_surely_made_again)
    });
    if named { JudgedPath::Nothing } else { JudgedPath::Anything }
}

/// The names of a listing as a glob.
fn listed(index: u16, analysis: &Analysis) -> Option<String> {
    analysis.listings.get(usize::from(index))?.as_globs().0.first()?.literal()
}

impl Findings<'_> {
    /// A use of a path that may be anything.
    pub(super) fn anything(&mut self, file: &FileUse, doing: PathOperation, program: &str) {
        if self.is_scratch(file.span) {
            return;
        }
        let known = known_start(&file.path);
        let why = match doing {
            PathOperation::Delete if file.tree => "a tree is removed, and which is not known before it runs",
            PathOperation::Delete => "files are removed, and which is not known before it runs",
            PathOperation::Permit if file.tree => {
                "the modes of a tree change, and of which is not known before it runs"
            }
            PathOperation::Overwrite if matches!(program, "dd" | "truncate") => {
                "something is overwritten, and what is not known before it runs"
            }
            // Where the known part leads counts.
            PathOperation::Overwrite | PathOperation::Move | PathOperation::Permit => {
                let place = Place { path: &format!("{known}…"), tree: file.tree, glob: false, cwd: None, home: None };
                let found = judge(doing, &place, Seen::default());
                if known.starts_with('/') && found.tier > Tier::WithEffort {
                    self.add(found.tier, "overwrite", "file", &found.why, file.span, None, Origin::Rules);
                }
                return;
            }
        };
        let kind = if file.tree { "folder" } else { "file" };
        let action = if doing == PathOperation::Delete { "delete" } else { "overwrite" };
        self.not_known(action, kind, why, file.span);
    }

    /// R36: something that destroys, aimed at nobody knows what. The unknown is named.
    pub(super) fn not_known(&mut self, action: &str, kind: &str, why: &str, span: Span) {
        if !self.seen.insert((why.to_owned(), span.start, span.end)) {
            return;
        }
        let mut mutation = self.mutation(Tier::NeedsReview, action, kind, why, span, None, Origin::Rules);
        let text = self.line.get(span.start..span.end).unwrap_or_default();
        mutation.missing.push(Missing {
            key: "target".to_owned(),
            description: format!("what `{text}` stands for"),
            effect: Effect::RequiresReview,
        });
        mutation.recoverability.suggestions.push("Print what it stands for first (`echo`, `ls`).".to_owned());
        self.mutations.push(mutation);
    }

    /// R36: a rule that takes away, and whose target is not known, is for somebody to look at.
    pub(super) fn raised(&self, rule: &Rule, tier: Tier, targets: &[String]) -> Tier {
        let takes = matches!(rule.action, "delete" | "destroy" | "stop" | "unpublish" | "withdraw");
        let unknown = targets.iter().any(|target| target.contains(rules::UNKNOWN));
        let history = rule.id.starts_with("git/");
        if takes && unknown && !history && tier >= Tier::FromBackup { Tier::NeedsReview } else { tier }
    }

    /// `dd of=/dev/$D`: what a device's writer aims at.
    pub(super) fn writes_unknown(&mut self, command: &Command, base: &str) {
        if base != "dd" {
            return;
        }
        for word in &command.words {
            let starts = matches!(word.parts.first(), Some(Part::Text(text)) if text.starts_with("of="));
            if starts && word.literal().is_none() && !self.is_scratch(word.span) {
                let why = "something is overwritten, and what is not known before it runs";
                self.not_known("overwrite", "device", why, word.span);
            }
        }
    }

    /// Code that is not known: what a shell or an interpreter is fed, and programs whose name is not known.
    pub(super) fn code(&mut self, analysis: &Analysis) {
        for open in &analysis.unresolved {
            let text = self.line.get(open.span.start..open.span.end).unwrap_or_default();
            match open.kind {
                UnresolvedKind::Limit => {
                    let why = "the line is too large or too deep to be followed to its end";
                    self.add(Tier::NeedsReview, "run", "code", why, open.span, None, Origin::Rules);
                }
                UnresolvedKind::Script if self.is_scratch(open.span) || emitted(analysis, open.span) => {}
                UnresolvedKind::Script if only_reads(analysis, open.what.starts_with('|')) => {
                    self.unseen(text, "what the script says that is fed to it");
                }
                UnresolvedKind::Script => {
                    let why = "code runs that is not known before it runs";
                    self.not_known("run", "code", why, open.span);
                }
                UnresolvedKind::Code if handed_whole(analysis, open.span) => {
                    self.not_known("run", "code", "code runs that is not known before it runs", open.span);
                }
                UnresolvedKind::Code => self.unseen(&open.what, "the code is in another language"),
                UnresolvedKind::Program | UnresolvedKind::Environment | UnresolvedKind::Directory => {}
            }
        }
        let judged = |first: &Word| {
            let mut code = analysis.unresolved.iter().filter(|open| open.kind == UnresolvedKind::Script);
            code.any(|open| open.span.start <= first.span.start && first.span.end <= open.span.end)
        };
        for command in &analysis.commands {
            if !command.words.first().is_some_and(judged) {
                self.unknown_program(command);
            }
        }
    }

    /// A command whose program is not known.
    fn unknown_program(&mut self, command: &Command) {
        let Some(first) = command.words.first().filter(|word| word.parts.iter().any(Part::is_unknown)) else { return };
        let text = self.line.get(first.span.start..first.span.end).unwrap_or_default();
        let bare = text.trim_matches(['"', '$', '{', '}']);
        let conventional = PROGRAMS.iter().any(|name| bare == *name || bare.starts_with(&format!("{name}:")));
        if conventional || name_behind(first).is_some() {
            return self.unseen(text, "which program it is depends on the surroundings");
        }
        self.not_known("run", "program", "a program runs whose name is not known before it runs", first.span);
    }

    /// Notes what was not looked into.
    pub(super) fn unseen(&mut self, what: &str, why: &str) {
        let what: String = what.chars().take(80).collect();
        let unseen = Unseen { what, why: why.to_owned() };
        if !self.unseen.contains(&unseen) && self.unseen.len() < 32 {
            self.unseen.push(unseen);
        }
    }

    /// The same as a finding, which names it in the report.
    pub(super) fn not_looked_into(&mut self, what: &str, why: &str, kind: &str, span: Span) {
        self.unseen(what, why);
        let reason = format!("not looked into: {why}");
        let id = Some(what.chars().take(80).collect());
        let mut mutation = self.mutation(Tier::Reversible, "run", kind, &reason, span, id, Origin::Default);
        mutation.recoverability.confidence = Confidence::Low;
        self.mutations.push(mutation);
    }

    /// Whether every variable in a part of the line was given the name of a scratch folder in it.
    pub(super) fn is_scratch(&self, span: Span) -> bool {
        let text = self.line.get(span.start..span.end).unwrap_or_default();
        let mut names = text.split('$').skip(1).map(|rest| {
            let rest = rest.trim_start_matches('{');
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
        });
        let scratch = |name: &str| {
            ["", "\""].iter().any(|quote| self.line.contains(&format!("{name}={quote}$(mktemp")))
                && self.line.matches(&format!("{name}=")).count() == 1
        };
        let mut names = names.by_ref().peekable();
        names.peek().is_some() && names.all(|name| !name.is_empty() && scratch(name))
    }
}

/// The program's name where a path ends in it: `$(brew --prefix)/bin/jq`.
pub(super) fn name_behind(word: &Word) -> Option<String> {
    let Some(Part::Text(text)) = word.parts.last() else { return None };
    let name = text.rsplit_once('/')?.1;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The text before what is not known.
fn known_start(word: &Word) -> String {
    let known = word.parts.iter().map_while(|part| match part {
        Part::Text(text) | Part::Glob(text) => Some(text.as_str()),
        Part::Unknown(_) => None,
    });
    known.collect()
}

/// Whether what is evaluated is the output of programs that print what a shell is to run.
fn emitted(analysis: &Analysis, span: Span) -> bool {
    let within = |command: &&Command| span.start < command.span.start && command.span.end <= span.end;
    let prints = |command: &Command| {
        let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        let program = words.first().map(|program| rules::name_of(program)).unwrap_or_default();
        EMITTERS.contains(&program.as_str()) || words.iter().any(|word| word == "completion" || word == "completions")
    };
    let mut inside = analysis.commands.iter().filter(within).peekable();
    inside.peek().is_some() && inside.all(prints)
}

/// Whether the code of an interpreter is the value of a variable, or what a command prints, and nothing else: `node -e "$CODE"`.
fn handed_whole(analysis: &Analysis, span: Span) -> bool {
    let unknown = |word: &Word| !word.parts.is_empty() && word.parts.iter().all(Part::is_unknown);
    let code = |command: &Command| {
        command.words.windows(2).any(|pair| match pair {
            [option, code] => {
                option.literal().is_some_and(|option| matches!(option.as_str(), "-c" | "-e" | "-r" | "--eval" | "-p"))
                    && unknown(code)
            }
            _ => false,
        })
    };
    analysis.commands.iter().any(|command| {
        command.span.start <= span.start
            && span.end <= command.span.end
            && heuristics::runs_code(command)
            && code(command)
    })
}

/// Whether a shell is fed nothing but files as they are: the same as naming them to it.
fn only_reads(analysis: &Analysis, piped: bool) -> bool {
    const PLAIN: [&str; 11] = ["cat", "bash", "sh", "zsh", "dash", "ksh", "sudo", "cd", "set", "tee", "source"];
    let plain = |command: &Command| {
        let program = command.words.first().and_then(Word::literal).unwrap_or_default();
        PLAIN.contains(&rules::name_of(&program).as_str()) && command.words.iter().all(|word| word.literal().is_some())
    };
    let reads = analysis.commands.iter().any(|command| {
        command.words.first().and_then(Word::literal).as_deref() == Some("cat") && command.words.len() > 1
    });
    piped && reads && analysis.nets.is_empty() && analysis.commands.iter().all(plain)
}
