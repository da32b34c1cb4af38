//! `writ replay`: what a policy would have decided on sessions that are over.

use std::path::Path;

use serde::Serialize;
use writ_core::Digest;
use writ_engine::governing::Governing;
use writ_engine::past::replay::{Replay, replay};
use writ_policy::Enforce;

use crate::args::{Format, ReplayArgs};
use crate::commands::past::{example, failure, not_judged, transcripts, verdict};
use crate::commands::policy::{given_or_found, open};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Replays.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let governing = open(&given_or_found(args.policy.clone())?, args.past.root.as_deref())?;
    let transcripts = transcripts(&args.past)?;
    let progress = output::Steps::new("sessions", transcripts.len());
    let found = replay(&transcripts, &governing, &environment::home(), |done| progress.reach(done));
    let found = found.map_err(failure)?;
    match args.format.format {
        Format::Json => output::print_json(&Replayed::of(&governing, &found)),
        Format::Human => show(&governing, &found),
    }
    if args.strict && found.newly_stopped > 0 { Err(Failure::No) } else { Ok(()) }
}

/// What was replayed, under what.
#[derive(Serialize)]
struct Replayed<'a> {
    policy: PolicySource<'a>,
    #[serde(flatten)]
    replay: &'a Replay,
}

#[derive(Serialize)]
struct PolicySource<'a> {
    name: &'a str,
    #[serde(serialize_with = "writ_core::json::path::serialize")]
    path: &'a Path,
    digest: Digest,
}

impl<'a> Replayed<'a> {
    fn of(governing: &'a Governing, replay: &'a Replay) -> Self {
        let policy = &governing.policy;
        let policy = PolicySource { name: policy.name(), path: &governing.path, digest: policy.digest() };
        Self { policy, replay }
    }
}

fn show(governing: &Governing, found: &Replay) {
    output::line(format!(
        "{} calls of {} sessions under `{}`: {} allowed, {} asked, {} denied",
        found.calls,
        found.sessions,
        output::plain(governing.policy.name()),
        output::good(found.allowed),
        output::warn(found.asked),
        output::bad(found.denied)
    ));
    if found.newly_stopped + found.newly_allowed > 0 {
        output::line(format!(
            "{} that ran then would be stopped, {} that were stopped then would run",
            found.newly_stopped, found.newly_allowed
        ));
    }
    not_judged(found.not_judged);
    if governing.enforce() == Enforce::Observe {
        output::line("The policy observes: it would have recorded these verdicts, and stopped nothing.");
    }
    for rule in &found.rules {
        let text = rule.text.as_ref().map_or_else(String::new, |text| format!("`{text}`, "));
        output::line(format!(
            "\n{:>6}  {}  {}",
            rule.calls,
            verdict(rule.verdict),
            output::bold(output::plain(&format!("{text}{}", rule.rule)))
        ));
        rule.examples.iter().for_each(example);
    }
}
