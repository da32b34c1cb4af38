//! The attestations of turns against the transcripts as they are now.
//!
//! Owns the second reading: the same lines give the same leaves, sums and models, or the statement is wrong. Refuses to accuse: a client
//! rewrites its transcripts at times, and what cannot be read again is not spoken for. Page: `spec/turns.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use writ_clients::ahead;
use writ_clients::transcript::{Line, Transcripts};
use writ_clients::usage::Spoken;
use writ_core::Digest;
use writ_evidence::merkle::{Digest512, NodeHash};
use writ_evidence::session_tree::Binding;
use writ_evidence::tally::Tally;

use super::{OfAgent, Turns};
use crate::limits::meter::prices_of;
use crate::limits::prices::Prices;
use crate::turns::predicate::{Metrics, Usd};
use crate::turns::reading::{Pending, Reader, metrics};
use crate::verify::phase::{Outcome, Phase, Standing};
use crate::verify::phase_names::{BINDING, LEFT_OUT};
use crate::verify::sources::{Hidden, Sources};

/// One statement, as far as the transcript is to be asked about it.
pub struct Checked {
    /// The row that names it.
    pub row: u64,
    /// The turn's number.
    pub turn: u64,
    /// The transcript was read anew for it.
    pub rewritten: bool,
    /// The first byte of its lines.
    pub from: u64,
    /// Behind the last.
    pub to: u64,
    /// Its place in the tree.
    pub binding: Binding,
    /// What was used in it.
    pub metrics: Metrics,
    /// What of that belongs to the turn before.
    pub told_late: writ_evidence::session_tree::Metrics,
    /// The model that answered last.
    pub model: Option<String>,
    /// The prices that money was counted with.
    pub prices: Option<Digest>,
}

/// What a second look at the transcripts found.
struct Found {
    good: u64,
    wrong: Tally,
    doubts: Tally,
    /// The prices that were asked for last: statements that follow each other name the same.
    prices: Option<(Digest, Result<Prices, String>)>,
}

impl Default for Found {
    fn default() -> Self {
        Self { good: 0, wrong: Tally::new(), doubts: Tally::new(), prices: None }
    }
}

impl Found {
    /// The prices of that digest, which the folder keeps.
    fn prices(&mut self, folder: &Path, digest: Digest) -> &Result<Prices, String> {
        let known = self.prices.take().filter(|(known, _)| *known == digest);
        &self.prices.insert(known.unwrap_or_else(|| (digest, prices_of(folder, digest)))).1
    }
}

impl Turns<'_> {
    /// One phase on their place in the session's tree, held against the transcripts as they are.
    pub fn binding(
        &self,
        transcripts: Option<&dyn Transcripts>,
        main: Option<&Path>,
        sources: &Sources,
    ) -> Option<Phase> {
        if self.count == 0 {
            return None;
        }
        if sources.withheld() {
            let summary =
                "the transcripts are not in the bundle; proofs and roots were checked with the turns".to_owned();
            return Some(Phase {
                name: LEFT_OUT,
                outcome: Outcome::Absent,
                standing: Standing::Reported,
                summary,
                findings: Vec::new(),
            });
        }
        let mut found = Found::default();
        let listed =
            transcripts.zip(main).map(|(kept, main)| kept.files(main).map(|all| all.files).unwrap_or_default());
        let files: HashMap<String, PathBuf> = listed.unwrap_or_default().into_iter().collect();
        for (agent, own) in self.agents.iter().filter(|(_, own)| own.last.is_some()) {
            if own.unbound > 0 {
                found.doubts.apart(format!("{agent}: {} statements name no place in a transcript", own.unbound));
            }
            let Some((kept, path)) = transcripts.zip(files.get(agent).filter(|path| path.exists())) else {
                if !own.checked.is_empty() {
                    found.doubts.apart(format!("{agent}: its transcript is gone, or cannot be read here"));
                }
                continue;
            };
            let sha512 = own.checked.first().is_some_and(|one| one.binding.algorithm == Digest512::NAME);
            if sha512 {
                if sources.is_masked(path) {
                    found.doubts.apart(format!("{agent}: a bundle keeps no SHA-512 of lines that it masks"));
                    continue;
                }
                own.reread::<Digest512>(self.folder, kept, path, agent, &|_| None, &mut found);
            } else {
                let hidden = |line| sources.hidden(path)?.get(&line).copied();
                own.reread::<Digest>(self.folder, kept, path, agent, &hidden, &mut found);
            }
            own.told_behind(agent, self.ended).into_iter().for_each(|told| found.doubts.apart(told));
        }
        let (outcome, summary) = match (found.wrong.total(), found.doubts.total()) {
            (0, 0) => {
                (Outcome::Passed, format!("{} statements are where the transcripts have their turns", found.good))
            }
            (0, _) => (Outcome::Absent, "not every statement can be held against its transcript".to_owned()),
            _ => (Outcome::Failed, "a statement says something else than the lines that it is bound to".to_owned()),
        };
        let findings = found.wrong.texts().into_iter().chain(found.doubts.texts()).collect();
        Some(Phase { name: BINDING, outcome, standing: Standing::Reported, summary, findings })
    }
}

impl OfAgent {
    /// Reads the transcript again and holds each statement against it.
    fn reread<H: NodeHash>(
        &self,
        folder: &Path,
        kept: &dyn Transcripts,
        path: &Path,
        agent: &str,
        hidden: &dyn Fn(u64) -> Option<Hidden>,
        found: &mut Found,
    ) {
        // What stood in a transcript before it was rewritten nobody can read again.
        let begin = self.checked.iter().rposition(|one| one.rewritten).unwrap_or(0);
        if begin > 0 {
            found.doubts.apart(format!("{agent}: the transcript was rewritten after {begin} statements spoke for it"));
        }
        let mut marks = self.checked.iter().skip(begin).peekable();
        let mut reader = Reader::<H>::default();
        let (last, mut behind) = (self.checked.last().map(|one| one.to), Behind::default());
        // Masked lines have other lengths than those that statements count.
        let (mut number, mut length, mut longer, mut shorter) = (0, 0_u64, 0_u64, 0_u64);
        let read = ahead::lines(kept, path, 0, &mut |line| {
            length += line.bytes.len() as u64;
            let masked = hidden(number);
            if line.ends {
                if let Some(masked) = masked {
                    longer += masked.length.saturating_sub(length);
                    shorter += length.saturating_sub(masked.length);
                }
                (number, length) = (number + 1, 0);
            }
            let line = Line { end: (line.end + longer).saturating_sub(shorter), ..line };
            if last.is_some_and(|last| line.end > last) {
                behind.line(&line);
            }
            reader.line_or(&line, masked.and_then(|masked| H::new(masked.hash.as_bytes())));
            while let Some(one) = marks.next_if(|one| line.ends && one.to == line.end) {
                match reader.take() {
                    Some(pending) => one.compare(folder, agent, &pending, found),
                    None => found.doubts.apart(format!("{agent}: turn {} is not there any more", one.turn)),
                }
            }
        });
        if let Err(error) = read {
            found.doubts.apart(format!("{agent}: {error}"));
        }
        for one in marks {
            found.doubts.apart(format!("row {}: {agent}: no line ends where turn {} did", one.row, one.turn));
        }
        self.behind.set(behind);
    }
}

/// What a transcript tells behind the last turn that is attested.
#[derive(Clone, Copy, Default)]
pub struct Behind {
    /// Turns that another followed.
    over: u64,
    /// A turn has begun; whether it was answered.
    open: Option<bool>,
}

impl Behind {
    fn line(&mut self, line: &Line<'_>) {
        if line.prompt.is_some() {
            self.over += u64::from(self.open == Some(true));
            self.open = Some(false);
        }
        if matches!(line.spoken, Some(Spoken::Message { .. })) && self.open.is_some() {
            self.open = Some(true);
        }
    }

    /// How many turns are over: the last, too, where its session is.
    pub fn over(self, ended: bool) -> u64 {
        self.over + u64::from(ended && self.open == Some(true))
    }
}

impl Checked {
    fn compare(&self, folder: &Path, agent: &str, pending: &Pending, found: &mut Found) {
        let Self { row, turn, .. } = self;
        if pending.binding.leaf.content_hash != self.binding.leaf.content_hash
            || pending.binding.previous_turn_hash != self.binding.previous_turn_hash
            || pending.binding.merkle_root != self.binding.merkle_root && pending.binding.leaf == self.binding.leaf
        {
            let why = "the transcript was rewritten after it was read";
            return found.doubts.apart(format!("row {row}: {agent}, turn {turn}: {why}"));
        }
        let tokens = metrics(pending.used.tokens());
        let cost = self.prices.map_or(Ok(None), |digest| {
            found.prices(folder, digest).as_ref().map(|prices| prices.cost(&pending.used).ok().map(Usd))
        });
        let Ok(cost_usd) = cost else {
            return found.wrong.apart(format!("row {row}: {agent}, turn {turn}: the prices that it names are gone"));
        };
        let counted = Metrics {
            tokens_in: tokens.tokens_in,
            tokens_out: tokens.tokens_out,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            cost_usd,
            duration_ms: self.metrics.duration_ms,
        };
        let same = counted == self.metrics && pending.told_late == self.told_late && pending.model == self.model;
        if !same || pending.binding != self.binding || pending.from != self.from {
            let why = "its lines, counted again, say something else";
            return found.wrong.apart(format!("row {row}: {agent}, turn {turn}: {why}"));
        }
        found.good += 1;
    }
}
