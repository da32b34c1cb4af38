//! What a policy would have decided on sessions that are over.
//!
//! Owns the counting. Each call is decided alone: what a session counts and remembers (limits, labels of data, approvals) is left out, as is
//! what a sandbox would hold. Invariant: every call counts once under its verdict, and once under each rule that carries that verdict.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;
use writ_clients::past::{PastCall, Unseen};
use writ_core::{Decision, Verdict};

use super::{Example, PastError, PastSession, Transcript, caller};
use crate::Home;
use crate::decide::Sessionless;
use crate::governing::Governing;

/// Examples that are kept of one rule.
const EXAMPLES: usize = 3;
/// Fewest calls that are worth a thread.
const WORTH: usize = 64;

/// What it came to.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// Sessions that were read.
    pub sessions: u64,
    /// Calls that were judged.
    pub calls: u64,
    /// Of these, those that it allows or says nothing of.
    pub allowed: u64,
    /// Those that a human would have been asked about.
    pub asked: u64,
    /// Those that it denies.
    pub denied: u64,
    /// Calls that it stops and that ran then.
    pub newly_stopped: u64,
    /// Calls that it lets through and that were stopped then.
    pub newly_allowed: u64,
    /// What could not be judged.
    pub not_judged: NotJudged,
    /// The rules that stop calls, those of most calls first.
    pub rules: Vec<RuleCount>,
}

/// What tells of no call that can be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotJudged {
    /// Lines, or calls, that cannot be read.
    pub unreadable: u64,
    /// Calls that the model's provider ran.
    pub server_side: u64,
    /// Sub-agents beyond the number that is read.
    pub agents: u64,
}

impl NotJudged {
    /// Adds those of a session.
    pub const fn add(&mut self, unseen: Unseen) {
        self.unreadable += unseen.unreadable;
        self.server_side += unseen.server_side;
        self.agents += unseen.agents;
    }

    /// Whether everything was judged.
    pub const fn is_nothing(&self) -> bool {
        self.unreadable + self.server_side + self.agents == 0
    }
}

/// A rule that stops calls.
#[derive(Clone, Debug, Serialize)]
pub struct RuleCount {
    /// `ask` or `deny`.
    pub verdict: Verdict,
    /// Where it stands in the policy.
    pub rule: String,
    /// How it is written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many calls it stops.
    pub calls: u64,
    /// The first of them.
    pub examples: Vec<Example>,
}

/// Decides the calls of a session, in their order; on several threads where there are many.
pub fn decisions(session: &PastSession, governing: &Governing, transcript: &Transcript, home: &Home) -> Vec<Decision> {
    let judge = Sessionless::new(governing, home);
    let decide = |calls: &[PastCall]| {
        calls.iter().map(|call| judge.decide(&call.call, caller(call), transcript.client)).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = session.calls.len().div_ceil(threads).max(WORTH);
    if each >= session.calls.len() {
        return decide(&session.calls);
    }
    std::thread::scope(|scope| {
        let pieces: Vec<_> = session.calls.chunks(each).map(|calls| scope.spawn(move || decide(calls))).collect();
        // A thread that does not come back ended by a panic, which ends the program.
        pieces.into_iter().flat_map(|piece| piece.join().unwrap_or_default()).collect()
    })
}

/// Replays transcripts under a policy. `progress` is told how many of them are done.
pub fn replay(
    transcripts: &[Transcript],
    governing: &Governing,
    home: &Home,
    mut progress: impl FnMut(usize),
) -> Result<Replay, PastError> {
    let mut out = Replay::default();
    let mut rules: BTreeMap<(Verdict, String), RuleCount> = BTreeMap::new();
    for (at, transcript) in transcripts.iter().enumerate() {
        progress(at);
        let session = transcript.session()?;
        out.sessions += 1;
        out.not_judged.add(session.unseen);
        let decided = decisions(&session, governing, transcript, home);
        for (call, decision) in session.calls.iter().zip(&decided) {
            out.count(call, decision.verdict);
            note(&mut rules, governing, transcript, (call, decision));
        }
    }
    progress(transcripts.len());
    out.rules = rules.into_values().collect();
    out.rules.sort_by_key(|rule| std::cmp::Reverse((rule.calls, rule.verdict)));
    Ok(out)
}

impl Replay {
    const fn count(&mut self, call: &PastCall, verdict: Verdict) {
        self.calls += 1;
        match verdict {
            Verdict::Allow => {
                self.allowed += 1;
                self.newly_allowed += call.was_stopped() as u64;
            }
            Verdict::Ask => self.asked += 1,
            Verdict::Deny => self.denied += 1,
        }
        if !matches!(verdict, Verdict::Allow) {
            self.newly_stopped += !call.was_stopped() as u64;
        }
    }
}

/// Counts a call at each rule that carries its verdict.
fn note(
    rules: &mut BTreeMap<(Verdict, String), RuleCount>,
    governing: &Governing,
    transcript: &Transcript,
    (call, decision): (&PastCall, &Decision),
) {
    use crate::session::shown::Rules;
    let stops = decision.reasons.iter().filter(|reason| reason.verdict == decision.verdict);
    let mut seen: Vec<&str> = Vec::new();
    for reason in stops.filter(|reason| reason.verdict > Verdict::Allow) {
        if seen.contains(&reason.rule.as_str()) {
            continue;
        }
        seen.push(&reason.rule);
        let count = match rules.entry((reason.verdict, reason.rule.clone())) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(RuleCount {
                verdict: reason.verdict,
                rule: reason.rule.clone(),
                text: governing.text(&reason.rule),
                calls: 0,
                examples: Vec::new(),
            }),
        };
        count.calls += 1;
        if count.examples.len() < EXAMPLES {
            count.examples.push(Example::of(transcript, call, &reason.message));
        }
    }
}
