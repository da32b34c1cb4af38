//! `writ policy diff`: what becomes allowed or denied between two policies.

use writ_core::Verdict;
use writ_engine::past::diff::{Difference, compare};

use super::open;
use crate::args::{DiffArgs, Format};
use crate::commands::past::{self, example, not_judged, transcripts, verdict};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Compares them.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    let root = args.past.root.as_deref();
    let before = open(&args.before, root)?;
    // The same patterns mean the same files, wherever the other policy lies.
    let folder = before.path.parent().filter(|_| root.is_none());
    let after = open(&args.after, root.or(folder))?;
    let transcripts = if args.rules { Vec::new() } else { transcripts(&args.past)? };
    let progress = output::Steps::new("sessions", transcripts.len());
    let found = compare(&before, &after, &transcripts, &environment::home(), |done| progress.reach(done));
    let found = found.map_err(past::failure)?;
    match args.format.format {
        Format::Json => output::print_json(&found),
        Format::Human => show(&found, args.rules),
    }
    Ok(())
}

fn show(found: &Difference, rules_alone: bool) {
    if found.rules.is_empty() {
        output::line("the documents say the same");
    }
    for change in &found.rules {
        let pointer = output::plain(&change.pointer);
        if let Some(text) = &change.before {
            output::line(format!("{} {pointer}  {}", output::bad("-"), output::plain(text)));
        }
        if let Some(text) = &change.after {
            output::line(format!("{} {pointer}  {}", output::good("+"), output::plain(text)));
        }
    }
    if rules_alone {
        return;
    }
    output::line(format!(
        "\n{} of {} past calls of {} sessions come to something else",
        found.changed, found.calls, found.sessions
    ));
    not_judged(found.not_judged);
    for moved in &found.moved {
        let text = moved.text.as_ref().map_or_else(String::new, |text| format!("`{text}`, "));
        let rule = if moved.rule.is_empty() { String::new() } else { format!("{text}{}", moved.rule) };
        let whose = if moved.before > Verdict::Allow && moved.before > moved.after { "no more " } else { "" };
        output::line(format!(
            "\n{:>6}  {} → {}  {whose}{}",
            moved.calls,
            verdict(moved.before),
            verdict(moved.after),
            output::bold(output::plain(&rule))
        ));
        moved.examples.iter().for_each(example);
    }
}
