//! Paths that a line writes, and searches that delete.

use writ_shell::{Analysis, Arrival, Command, Dir, Env, FileUse, Word};

use super::overwrite::{Overwrite, lost};
use super::unknown::{JudgedPath, judged_path};
use super::{Findings, text_of};
use crate::paths::{Git, PathOperation, Place, Seen, is_made_again, judge, land};
use crate::report::{Origin, Tier};
use crate::rules;

/// Programs that take what they are given away.
pub(super) const DELETES: [&str; 6] = ["rm", "unlink", "rmdir", "shred", "srm", "trash"];
/// Programs that only change who may do what with a file.
const PERMITS: [&str; 5] = ["chmod", "chown", "chgrp", "setfacl", "chattr"];

impl Findings<'_> {
    /// A path that is written.
    pub(super) fn path(&mut self, file: &FileUse, owner: Option<&Command>, analysis: &Analysis) {
        let program = owner.and_then(|command| command.words.first()).and_then(Word::literal).unwrap_or_default();
        let base = program.rsplit('/').next().unwrap_or_default();
        let has = |text: &str| {
            owner.is_some_and(|command| {
                command.words.iter().take(64).any(|word| word.literal().as_deref() == Some(text))
            })
        };
        if base == "rmdir" || base == "find" && has("-empty") {
            return;
        }
        let doing = match base {
            base if DELETES.contains(&base) => PathOperation::Delete,
            base if PERMITS.contains(&base) => PathOperation::Permit,
            "git" if has("rm") && !has("--cached") => PathOperation::Delete,
            "find" if has("-delete") => PathOperation::Delete,
            "mv" | "rename" => PathOperation::Move,
            _ => PathOperation::Overwrite,
        };
        let (path, glob, seen) = match judged_path(&file.path, analysis) {
            // What a device's writer aims at is a matter of its own.
            JudgedPath::Path { seen: false, path, .. } if path.starts_with("/dev/") && within_dd(analysis, file) => {
                return;
            }
            JudgedPath::Path { path, glob, seen } => (path, glob, seen),
            JudgedPath::Nothing => return,
            JudgedPath::Anything => return self.anything(file, doing, base),
        };
        for dir in &file.dirs {
            let absolute = match dir {
                Dir::Start(dir) => absolute(self.env, dir, &path),
                Dir::Unknown if path.starts_with('/') => path.clone(),
                Dir::Unknown if doing == PathOperation::Delete => folded(&path),
                Dir::Unknown | Dir::Open(_) => continue,
            };
            // What was moved there in this very line goes with it.
            let moved = (doing == PathOperation::Delete)
                .then(|| self.moved_from(&absolute, file.span.start, analysis))
                .flatten();
            let absolute = moved.unwrap_or(absolute);
            // What a partition tool does to its device is a matter of its own rules.
            if absolute.starts_with("/dev/") && rules::of(base).any(|family| ["disks", "system"].contains(&family.name))
            {
                continue;
            }
            let place = Place {
                path: &absolute,
                tree: file.tree,
                glob,
                cwd: self.env.cwd.as_deref(),
                home: self.env.home.as_deref(),
            };
            let look = if seen { self.probe.look(&absolute) } else { Seen::default() };
            let mut found = judge(doing, &place, look);
            if doing == PathOperation::Overwrite && found.tier <= Tier::WithEffort {
                let over = self.overwrite(file, owner, analysis);
                found = lost(over, &place, look).unwrap_or(found);
            }
            // Without force, git takes only what it could give back.
            let kept = base == "git" && !["-f", "--force", "-rf", "-fr"].into_iter().any(has);
            if found.tier == Tier::Reversible || kept && found.tier == Tier::FromBackup {
                continue;
            }
            let kind = if file.tree { "folder" } else { "file" };
            let mut mutation =
                self.mutation(found.tier, done(doing), kind, &found.why, file.span, Some(absolute), Origin::Rules);
            mutation.recoverability.confidence = found.confidence;
            mutation.evidence = found.evidence;
            mutation.missing = found.missing;
            mutation.recoverability.suggestions.push(undo(doing, look, found.tier).to_owned());
            if self.seen.insert((mutation.recoverability.reasoning.clone(), file.span.start, file.span.end)) {
                self.mutations.push(mutation);
            }
        }
    }

    /// Where the line took a path from that it removes: `mv src /tmp/x && rm -rf /tmp/x`.
    fn moved_from(&self, path: &str, before: usize, analysis: &Analysis) -> Option<String> {
        let moves = |command: &&Command| {
            command.span.end <= before
                && command.words.first().and_then(Word::literal).is_some_and(|program| rules::name_of(&program) == "mv")
        };
        analysis.commands.iter().filter(moves).find_map(|command| {
            let Some(Dir::Start(dir)) = command.dirs.first() else { return None };
            let words: Vec<String> = command.words.iter().skip(1).map(Word::literal).collect::<Option<_>>()?;
            let mut operands: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
            let target = absolute(self.env, dir, operands.pop()?);
            operands.into_iter().map(|source| absolute(self.env, dir, source)).find(|source| {
                let name = source.rsplit('/').next().unwrap_or_default();
                let below = target.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                below || path == format!("{target}/{name}")
            })
        })
    }

    /// Something that is copied, moved or linked to a path.
    pub(super) fn arrival(&mut self, arrival: &Arrival, analysis: &Analysis) {
        let JudgedPath::Path { path, seen, .. } = judged_path(&arrival.target.path, analysis) else { return };
        let source = arrival.source.as_ref().and_then(text_of);
        for dir in &arrival.target.dirs {
            let Dir::Start(dir) = dir else { continue };
            let mut absolute = absolute(self.env, dir, &path);
            let mut look = if seen { self.probe.look(&absolute) } else { Seen::default() };
            if look.folder {
                // It lands in the folder, under its own name.
                let Some(name) = source.as_deref().and_then(|source| source.trim_end_matches('/').rsplit('/').next())
                else {
                    continue;
                };
                absolute = format!("{absolute}/{name}");
                look = self.probe.look(&absolute);
            }
            let (cwd, home) = (self.env.cwd.as_deref(), self.env.home.as_deref());
            let place = Place { path: &absolute, tree: false, glob: false, cwd, home };
            let empties = source.as_deref() == Some("/dev/null") && !arrival.link;
            let over = if empties { Overwrite::Emptied } else { Overwrite::Replaced };
            let whole = empties
                .then(|| judge(PathOperation::Overwrite, &place, look))
                .filter(|found| found.tier > Tier::WithEffort);
            let Some(found) = whole.or_else(|| land(&place)).or_else(|| lost(over, &place, look)) else { continue };
            let span = arrival.target.span;
            if !self.seen.insert((found.why.clone(), span.start, span.end)) {
                continue;
            }
            let id = Some(absolute.clone());
            let mut mutation = self.mutation(found.tier, "overwrite", "file", &found.why, span, id, Origin::Rules);
            mutation.recoverability.confidence = found.confidence;
            mutation.recoverability.suggestions.push(undo(PathOperation::Overwrite, look, found.tier).to_owned());
            (mutation.evidence, mutation.missing) = (found.evidence, found.missing);
            self.mutations.push(mutation);
        }
    }

    /// The command that runs another for each name it is fed: its operands stand nowhere in the line.
    pub(super) fn fed_by<'a>(&self, analysis: &'a Analysis, file: &FileUse) -> Option<&'a Command> {
        let unknown = file.path.literal().is_none();
        let within = |command: &&Command| {
            command.span.start <= file.span.start && file.span.end <= command.span.end && !command.via.is_empty()
        };
        let operand = |command: &&Command| command.words.iter().skip(1).any(|word| word.parts == file.path.parts);
        analysis.commands.iter().filter(within).find(|command| unknown && operand(command))
    }

    /// What a search deletes when its names do not bound it.
    pub(super) fn search(&mut self, command: &Command) {
        let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        let roots: Vec<&String> = words.iter().skip(1).take_while(|word| !word.starts_with(['-', '(', '!'])).collect();
        let negated = words.windows(2).any(|pair| match pair {
            [not, what] => {
                matches!(not.as_str(), "!" | "-not") && matches!(what.as_str(), "-name" | "-iname" | "-type")
            }
            _ => false,
        });
        let either = words.iter().any(|word| matches!(word.as_str(), "-o" | "-or"));
        let names = words.windows(2).filter_map(|pair| match pair {
            [flag, name] => matches!(flag.as_str(), "-name" | "-iname").then_some(name),
            _ => None,
        });
        let mut names = names.peekable();
        let grouped = words.iter().any(|word| word == "(") && !words.windows(2).any(|pair| pair == ["-o", "-delete"]);
        let bounded = !negated
            && (!either || grouped && names.peek().is_some() && names.all(|name| is_made_again(name)))
            && !roots.iter().any(|root| root.as_str() == "/" || Some(root.as_str()) == self.env.home.as_deref());
        if !bounded && words.iter().any(|word| word == "-delete") {
            let why = "every match is deleted, also what the names do not bound";
            self.add(Tier::FromBackup, "delete", "files", why, command.span, None, Origin::Rules);
        }
    }
}

/// Whether a path is one that `dd` writes.
fn within_dd(analysis: &Analysis, file: &FileUse) -> bool {
    analysis.commands.iter().any(|command| {
        command.span.start <= file.span.start
            && file.span.end <= command.span.end
            && command.words.first().and_then(Word::literal).is_some_and(|program| rules::name_of(&program) == "dd")
    })
}

/// What is done, in the report's words.
fn done(doing: PathOperation) -> &'static str {
    match doing {
        PathOperation::Delete => "delete",
        PathOperation::Overwrite => "overwrite",
        PathOperation::Move => "move",
        PathOperation::Permit => "permissions",
    }
}

/// What brings a thing back that this is done to.
fn undo(doing: PathOperation, seen: Seen, tier: Tier) -> &'static str {
    match (doing, seen.git) {
        (PathOperation::Permit, _) => "Set the old owner and mode again (`stat` shows them before).",
        (PathOperation::Move, _) => "Move it back.",
        (_, Some(Git::Clean)) => "`git checkout -- <path>`.",
        (_, Some(Git::Changed)) => "`git checkout -- <path>` brings back the last commit, not the changes since.",
        (_, Some(Git::Ignored)) => "Build or download it again.",
        (_, Some(Git::Untracked)) => "Only from a backup: no commit has it. `git stash -u` keeps it first.",
        _ if tier == Tier::WithEffort => "Build or download it again, or take it from version control.",
        _ => "From a backup, or from version control where it has it.",
    }
}

/// The search that deletes what it finds: its finds stand nowhere in the line.
pub(super) fn search_of<'a>(analysis: &'a Analysis, file: &FileUse) -> Option<&'a Command> {
    analysis.commands.iter().find(|command| {
        let words: Vec<String> = command.words.iter().filter_map(Word::literal).collect();
        let within = command.span.start <= file.span.start && file.span.end <= command.span.end;
        within
            && words.first().is_some_and(|first| first.ends_with("find"))
            && words.iter().any(|word| word == "-delete")
    })
}

/// A path from nobody knows where, without `.` and with as few `..` as can be.
fn folded(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// Folded, from where the line starts.
fn absolute(env: &Env, dir: &str, path: &str) -> String {
    let base = match (dir.starts_with('/'), &env.cwd) {
        (true, _) => dir.to_owned(),
        (false, Some(cwd)) => format!("{cwd}/{dir}"),
        (false, None) if path.starts_with('/') => String::new(),
        (false, None) => return folded(&format!("{dir}/{path}")),
    };
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}
