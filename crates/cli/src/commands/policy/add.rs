//! `writ policy add`: one rule more or less, shown before it is written.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;

use serde::Serialize;
use writ_engine::decide::approvals;
use writ_engine::governing::edit::{Edit, EditError};
use writ_engine::governing::{self, GoverningError, Trust};
use writ_engine::past::denied;
use writ_engine::session::shown::Rules;

use super::{given_or_found, report};
use crate::args::{AddArgs, Format};
use crate::commands::session_lookup::{every_start, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Lines around a change that are shown too.
const AROUND: usize = 2;

/// What was changed.
#[derive(Serialize)]
struct Changed<'a> {
    #[serde(serialize_with = "writ_core::json::path::serialize")]
    policy: &'a Path,
    changed: bool,
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
}

/// Shows the change, asks, and makes it.
pub fn run(args: &AddArgs) -> Result<(), Failure> {
    human_check::outside_agent("change the policy")?;
    let home = environment::home();
    let path = std::path::absolute(given_or_found(args.policy.clone())?)?;
    let (edit, stood) = match &args.rule {
        Some(rule) => (Edit::read(rule).map_err(failure)?, None),
        None => suggested()?,
    };
    let bytes = governing::read(&path).map_err(report)?;
    if governing::inner(&path, &bytes).map_err(report)?.is_some() {
        let file = path.display();
        return Err(Failure::could_not(format!("{file} is signed: change the plain policy, and sign it again")));
    }
    if let (Edit::Remove { pointer }, Some(stood)) = (&edit, &stood) {
        let opened = governing::open(&path, None, &Trust::open(home.state.as_deref())).map_err(report)?;
        if opened.text(pointer).as_ref() != Some(stood) {
            return Err(Failure::could_not(format!(
                "{stood} stands no more at {pointer} of {}: the policy was changed since that call, and nothing is taken out",
                path.display()
            )));
        }
    }
    let before = String::from_utf8(bytes).map_err(|_not_text| Failure::malformed("the policy is no UTF-8 text"))?;
    let root = path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let after = edit.apply(&before, &root).map_err(failure)?;
    let change = Lines::of(&before, &after);
    if args.format.format == Format::Human {
        change.show(&path);
    }
    let mut next = false;
    if args.yes {
        replace(&path, &before, &after)?;
    } else {
        human_check::human("change the policy", &every_start(&store(&home)?)?, &home)?;
        if !asked() {
            output::note(format!("{} nothing is changed", output::bad("error:")));
            return Err(Failure::No);
        }
        // What nobody can read is accepted by nobody.
        let opened = governing::open(&path, None, &Trust::open(home.state.as_deref())).ok();
        replace(&path, &before, &after)?;
        if let Some(opened) = opened.filter(|opened| opened.bytes == before.as_bytes()) {
            next = approvals::accept_edited(&store(&home)?, &opened, &after, &home).map_err(Failure::could_not)?;
        }
    }
    match args.format.format {
        Format::Json => output::print_json(&Changed {
            policy: &path,
            changed: true,
            removed: change.removed.clone(),
            added: change.added.clone(),
        }),
        Format::Human => {
            output::line(format!("{} {} is changed", output::good("✓"), output::path(&path)));
            let begins = if next { "the next session here begins under it; " } else { "" };
            output::line(output::dim(format!(
                "{begins}a session that runs goes on under the policy it has, until `writ policy accept`"
            )));
        }
    }
    Ok(())
}

/// What the last refusal here suggests, and the rule that it names, as it stood then.
fn suggested() -> Result<(Edit, Option<String>), Failure> {
    let cwd = environment::cwd()?;
    let found = denied::last(&store(&environment::home())?, governing::repository(&cwd), true);
    let Some(stopped) = found.map_err(Failure::could_not)? else {
        return Err(Failure::could_not("no call was stopped in this repository"));
    };
    let strictest = if stopped.decision == "DENIED" { "deny " } else { "ask " };
    let reasons: Vec<_> = stopped.reasons.iter().filter(|told| told.rule.starts_with(strictest)).collect();
    if let [one] = reasons.as_slice()
        && let Ok(edit) = Edit::read(&one.instead)
    {
        return Ok((edit, one.text.clone()));
    }
    let suggestions: Vec<&str> =
        reasons.iter().map(|told| told.instead.as_str()).filter(|text| !text.is_empty()).collect();
    let suggestions = if suggestions.is_empty() { "nothing".to_owned() } else { suggestions.join("; ") };
    Err(Failure::could_not(format!(
        "the last refusal ({}) suggests no single change of the policy but: {}; write the rule yourself",
        stopped.call.summary(),
        suggestions
    )))
}

fn failure(error: EditError) -> Failure {
    match error {
        EditError::NotUnderstood { .. } => Failure::Usage(error.to_string()),
        EditError::Policy(_) | EditError::Text { .. } => Failure::malformed(error),
        EditError::There { .. } | EditError::WouldTighten { .. } | EditError::Nothing { .. } => {
            Failure::could_not(error)
        }
    }
}

fn asked() -> bool {
    output::note_start("write it? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().is_terminal()
        && std::io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "yes")
}

/// Puts the new text in the old one's place as a whole, unless it is another meanwhile.
fn replace(path: &Path, before: &str, after: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::could_not(format!("{}: {error}", path.display()));
    // A link leads to the file that is meant.
    let real = path.canonicalize().map_err(failed)?;
    let folder = real.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    new.write_all(after.as_bytes()).map_err(failed)?;
    new.as_file().set_permissions(real.metadata().map_err(failed)?.permissions()).map_err(failed)?;
    new.as_file().sync_all().map_err(failed)?;
    if governing::read(&real).map_err(|error: GoverningError| report(error))? != before.as_bytes() {
        return Err(Failure::could_not(format!("{} was changed meanwhile: nothing is written", path.display())));
    }
    new.persist(&real).map_err(|error| failed(error.error))?;
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// The lines that differ, and some around them.
struct Lines<'a> {
    /// The first line that differs, from 0.
    at: usize,
    front: Vec<&'a str>,
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
    behind: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    fn of(before: &'a str, after: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
        let most = old.len().min(new.len()).saturating_sub(same);
        let ends = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
        let part = |lines: &[&'a str], from: usize, to: usize| lines.get(from..to).unwrap_or_default().to_vec();
        let behind = old.len() - ends;
        Self {
            at: same,
            front: part(&old, same.saturating_sub(AROUND), same),
            removed: part(&old, same, behind),
            added: part(&new, same, new.len() - ends),
            behind: part(&old, behind, (behind + AROUND).min(old.len())),
        }
    }

    fn show(&self, path: &Path) {
        output::line(output::dim(format!("{}:{}", output::path(path), self.at + 1)));
        self.front.iter().for_each(|line| output::line(format!("  {}", output::plain(line))));
        self.removed.iter().for_each(|line| output::line(output::bad(format!("- {}", output::plain(line)))));
        self.added.iter().for_each(|line| output::line(output::good(format!("+ {}", output::plain(line)))));
        self.behind.iter().for_each(|line| output::line(format!("  {}", output::plain(line))));
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn only_what_differs_is_shown() {
        let lines = Lines::of("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nx\ny\ne\nf\n");
        assert_eq!((lines.at, lines.front, lines.removed), (3, vec!["b", "c"], vec!["d"]));
        assert_eq!((lines.added, lines.behind), (vec!["x", "y"], vec!["e", "f"]));
        let lines = Lines::of("a\na\n", "a\na\na\n");
        assert_eq!((lines.removed, lines.added), (vec![], vec!["a"]));
    }
}
