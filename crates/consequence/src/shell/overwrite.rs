//! What is written over: gone like what is removed, where nothing else has it.
//!
//! Owns how a program writes (anew, to the end, in place) and what disk and git say of what was there. A new file, one that is
//! committed as it is, and one that is made again are no loss.

use writ_shell::{Analysis, Command, FileUse, Word};

use super::Findings;
use crate::paths::{Git, Outcome, Place, Seen, is_kept_nowhere, is_record};
use crate::report::{Confidence, Effect, Evidence, Missing, Tier};
use crate::rules;
use writ_core::json::Value;

/// What becomes of what a file held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    /// It is emptied.
    Emptied,
    /// Something else stands there.
    Replaced,
    /// It is changed in place.
    Edited,
    /// It is added to.
    Kept,
}

impl Findings<'_> {
    /// How a command, or a redirection where there is none, writes a file.
    pub(super) fn overwrite(&self, file: &FileUse, owner: Option<&Command>, analysis: &Analysis) -> Overwrite {
        let Some(owner) = owner else { return self.redirected(file, analysis) };
        let words: Vec<String> = owner.words.iter().filter_map(Word::literal).collect();
        let has = |flags: &[&str]| words.iter().skip(1).any(|word| flags.contains(&word.as_str()));
        match words.first().map(|program| rules::name_of(program)).unwrap_or_default().as_str() {
            "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" | "ed" | "ex" => Overwrite::Edited,
            "tee" if has(&["-a", "--append", "-ai", "-ia"]) => Overwrite::Kept,
            "tee" | "sort" | "openssl" | "gpg" | "pg_dump" | "mysqldump" | "wget" | "install" => Overwrite::Replaced,
            "curl" if !has(&["-C", "--continue-at"]) => Overwrite::Replaced,
            "dd" if words.iter().any(|word| word == "if=/dev/null") => Overwrite::Emptied,
            "dd" if !words.iter().any(|word| word.starts_with("conv=") || word.starts_with("oflag=append")) => {
                Overwrite::Replaced
            }
            _ => Overwrite::Kept,
        }
    }

    fn redirected(&self, file: &FileUse, analysis: &Analysis) -> Overwrite {
        let before = self.line.get(..file.span.start).unwrap_or_default().trim_end();
        let own = self.line.get(file.span.start..file.span.end).unwrap_or_default();
        if before.ends_with(">>") || own.contains(">>") || before.ends_with("<>") {
            return Overwrite::Kept;
        }
        // The innermost command that the redirection stands in.
        let writer = analysis
            .commands
            .iter()
            .rev()
            .find(|command| command.span.start <= file.span.start && file.span.end <= command.span.end);
        let Some(writer) = writer else {
            // `> file` alone, or the redirection of a whole group.
            let alone = before.trim_end_matches(['>', '|', '1', '&']).trim_end();
            let empties = alone.is_empty() || alone.ends_with([';', '&', '|', '\n', '(', '{']);
            return if empties { Overwrite::Emptied } else { Overwrite::Replaced };
        };
        let words: Vec<Option<String>> = writer.words.iter().map(Word::literal).collect();
        let words: Vec<&str> = words.iter().map(|word| word.as_deref().unwrap_or("…")).collect();
        match words.as_slice() {
            [":" | "true" | "echo"] | ["echo" | "printf", ""] | ["echo", "-n", ""] | ["echo", "-n"] => {
                Overwrite::Emptied
            }
            ["cat", "/dev/null"] => Overwrite::Emptied,
            _ => Overwrite::Replaced,
        }
    }
}

/// What is lost when a file is written over. `None` where nothing is.
pub(super) fn lost(over: Overwrite, place: &Place<'_>, seen: Seen) -> Option<Outcome> {
    let path = place.path;
    if over == Overwrite::Kept || !is_record(path) && (over == Overwrite::Edited || is_kept_nowhere(place)) {
        return None;
    }
    let what = match over {
        Overwrite::Emptied => "is emptied",
        Overwrite::Edited => "is changed",
        Overwrite::Replaced | Overwrite::Kept => "is written over",
    };
    let outcome = |why: String, confidence, git: Option<&str>| {
        let evidence = git.map(|value| Evidence {
            key: "git.status".to_owned(),
            value: Value::from(value),
            present: true,
            description: "what version control has of it".to_owned(),
        });
        Outcome {
            tier: Tier::FromBackup,
            why,
            confidence,
            evidence: evidence.into_iter().collect(),
            missing: Vec::new(),
        }
    };
    if is_record(path) {
        return Some(outcome(
            format!("`{path}` {what}, and with it the record of what happened"),
            Confidence::Medium,
            None,
        ));
    }
    match (seen.exists, seen.git) {
        (Some(false), _) | (_, Some(Git::Clean | Git::Ignored)) => None,
        (_, Some(Git::Changed)) => {
            let why = format!("`{path}` {what}: its changes since the last commit are in no commit");
            Some(outcome(why, Confidence::High, Some("changed")))
        }
        (Some(true), Some(Git::Untracked)) => {
            Some(outcome(format!("`{path}` {what}, and is in no commit"), Confidence::High, Some("untracked")))
        }
        (Some(true), Some(Git::Outside) | None) => {
            Some(outcome(format!("`{path}` {what}, and no version control has it"), Confidence::Medium, None))
        }
        (None, _) if over == Overwrite::Emptied => {
            let missing = Missing {
                key: "exists".to_owned(),
                description: "whether it is there, and whether version control has it".to_owned(),
                effect: Effect::LowersConfidence,
            };
            let found = outcome(format!("what `{path}` held is gone"), Confidence::Low, None);
            Some(Outcome { missing: vec![missing], ..found })
        }
        (None, _) if path.contains("/.ssh/") || path.contains("/.gnupg/") => {
            let why = format!("what `{path}` held is gone, and it may be made nowhere else");
            Some(outcome(why, Confidence::Low, None))
        }
        (None, _) => None,
    }
}
