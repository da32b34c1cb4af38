//! From lists to lists that stop none of the calls.
//!
//! Owns the rounds: the calls are decided under the lists, and each reason that stops one says what would have allowed it; what no list can
//! allow is left out. Invariant: it ends, since each round puts in, takes out or leaves out something, and there is a last one.

use std::path::Path;
use std::thread;

use writ_core::{Decision, Reason, Subject, Verdict, json};
use writ_policy::{Facts, Uses};

use super::lists::{Allowed, Lists, star};
use super::{Group, Left};
use crate::Home;
use crate::decide::Sessionless;
use crate::governing::{Governing, GoverningError, Trust, open_alone};
use crate::past::caller;

/// Most rounds; what is stopped after them is left out.
const ROUNDS: usize = 12;
/// A policy that names everything a call uses, and allows nothing of it.
const PROBE: &[u8] = br#"{"version":"1.0","name":"probe","tools":{"allow":["Bash:-"]},"files":{"allow":["-"]},"domains":{"allow":["x.invalid"]}}"#;
/// What cannot be known of a search's extent is no command of its own.
const SEARCH: &str = "search";

/// What the rounds came to.
pub struct Settled {
    pub lists: Lists,
    pub left_out: Vec<Left>,
    pub remarks: Vec<String>,
    /// Rules of a first policy that calls broke.
    pub dropped: Vec<String>,
}

/// Makes lists that stop none of the calls that are not left out.
pub fn settle(groups: Vec<Group<'_>>, root: &Path, home: &Home) -> Result<Settled, GoverningError> {
    let mut left_out = Vec::new();
    let probe = governing(PROBE.to_vec(), root)?;
    let judge = Sessionless::new(&probe, home);
    let facts: Vec<Facts> = each(&groups, |group| judge.facts(&group.one.call.call, group.one.client));
    let mut kept: Vec<(&Group<'_>, Uses<'_>)> = Vec::new();
    for (group, facts) in groups.iter().zip(&facts) {
        let uses = facts.uses();
        match uses.unresolved.iter().find(|kind| **kind != SEARCH) {
            Some(kind) => {
                let why = format!("what it does is not known before it runs ({kind}), so that no list can name it");
                left_out.push(Left::of(group, why));
            }
            None => kept.push((group, uses)),
        }
    }
    let mut lists = Lists::of(&kept, root, home);
    let mut groups: Vec<&Group<'_>> = kept.iter().map(|(group, _)| *group).collect();
    let mut dropped = Vec::new();
    for round in 0..=ROUNDS {
        let stopped = stopped(&groups, &lists, root, home)?;
        if stopped.is_empty() {
            break;
        }
        let mut gone = Vec::new();
        // Pointers are those of the lists as they were decided under: what is taken out is taken out at the end.
        let mut broken: Vec<&str> = Vec::new();
        for (at, decision) in &stopped {
            let Some(group) = groups.get(*at) else { continue };
            if let Some(why) = (round == ROUNDS).then(|| blocks(decision)).or_else(|| hopeless(decision)) {
                left_out.push(Left::of(group, why));
                gone.push(*at);
                continue;
            }
            let mut mended = false;
            for reason in stops(decision) {
                mended |= mend(&mut lists, reason, group, root, home);
                if forbids(reason) && !broken.contains(&reason.rule.as_str()) {
                    broken.push(&reason.rule);
                }
            }
            if !mended && !stops(decision).any(forbids) {
                left_out.push(Left::of(group, blocks(decision)));
                gone.push(*at);
            }
        }
        take_out(&mut lists, broken, &mut dropped);
        let mut at = 0;
        groups.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    }
    let remarks = remarks(&lists);
    Ok(Settled { lists, left_out, remarks, dropped })
}

fn remarks(lists: &Lists) -> Vec<String> {
    let mut out =
        vec!["limits, approvals and labels of data are not in it: nothing of a session is counted here".to_owned()];
    let entries = lists.entries();
    let all = |pointer: &str, text: &str| entries.get(pointer).into_iter().flatten().any(|entry| entry.text == text);
    if all("/files/allow", "**") {
        out.push("the whole folder may be used: some call looked at, or wrote, all of it".to_owned());
    }
    out
}

/// A policy of a folder, as a text.
fn governing(bytes: Vec<u8>, root: &Path) -> Result<Governing, GoverningError> {
    let trust = Trust::open(None);
    open_alone(&root.join(".aflock"), bytes, Some(root), &trust)
}

/// The calls that lists stop, each by its place.
pub fn stopped(
    groups: &[&Group<'_>],
    lists: &Lists,
    root: &Path,
    home: &Home,
) -> Result<Vec<(usize, Decision)>, GoverningError> {
    let text = json::to_compact(&lists.to_policy());
    let under = governing(text.into_bytes(), root)?;
    let judge = Sessionless::new(&under, home);
    let decided = each(groups, |group| {
        let learn = group.one;
        judge.decide(&learn.call.call, caller(learn.call), learn.client)
    });
    Ok(decided.into_iter().enumerate().filter(|(_, decision)| decision.verdict > Verdict::Allow).collect())
}

/// Does it with each, on several threads where there are many.
fn each<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let size = items.len().div_ceil(threads).max(64);
    let act = &act;
    thread::scope(|scope| {
        let pieces: Vec<_> =
            items.chunks(size).map(|piece| scope.spawn(move || piece.iter().map(act).collect::<Vec<_>>())).collect();
        // A thread that does not come back ended by a panic, which ends the program.
        pieces.into_iter().flat_map(|piece| piece.join().unwrap_or_default()).collect()
    })
}

fn stops(decision: &Decision) -> impl Iterator<Item = &Reason> {
    decision.reasons.iter().filter(|reason| reason.verdict > Verdict::Allow)
}

/// Whether a rule forbids, so that taking it out allows.
fn forbids(reason: &Reason) -> bool {
    let lists = ["/tools/deny/", "/files/deny/", "/files/readOnly/", "/domains/deny/"];
    reason.rule == "/tokens" || lists.iter().any(|list| reason.rule.starts_with(list))
}

/// Why no list lets a call through, where that is so.
fn hopeless(decision: &Decision) -> Option<String> {
    let hopeless = stops(decision).find(|reason| {
        let allows = matches!(reason.rule.as_str(), "/tools/allow" | "/files/allow" | "/domains/allow");
        let open = matches!(reason.matched.subject, Subject::Unresolved);
        !(allows && !open || forbids(reason))
    });
    hopeless.map(|reason| format!("{} ({})", reason.message, reason.rule))
}

fn blocks(decision: &Decision) -> String {
    stops(decision).next().map(|reason| format!("{} ({})", reason.message, reason.rule)).unwrap_or_default()
}

/// Puts what a reason asks for into the lists.
fn mend(lists: &mut Lists, reason: &Reason, group: &Group<'_>, root: &Path, home: &Home) -> bool {
    let text = reason.matched.text.as_str();
    let call = &group.one.call.call;
    let tool = || call.known_as().unwrap_or_else(|| call.tool.clone());
    match (reason.rule.as_str(), reason.matched.subject) {
        ("/tools/allow", Subject::Command) => lists.allow(Allowed::Tool, format!("Bash:{}", star(text)), group),
        ("/tools/allow", Subject::Host) => lists.allow(Allowed::Tool, format!("{}:{}", tool(), star(text)), group),
        ("/tools/allow", Subject::Tool) if !text.is_empty() && *text != call.tool => {
            lists.allow(Allowed::Tool, format!("{}:{}", tool(), star(text)), group)
                || lists.allow(Allowed::Tool, tool(), group)
        }
        ("/tools/allow", Subject::Tool | Subject::Path) => lists.allow(Allowed::Tool, call.tool.clone(), group),
        ("/files/allow", _) => lists.allow_path(text, root, home, group),
        ("/domains/allow", _) => lists.allow(Allowed::Host, text.to_owned(), group),
        _ => false,
    }
}

/// Takes rules that calls break out of the lists, the last first, so that the pointers of the others stay.
fn take_out(lists: &mut Lists, mut broken: Vec<&str>, dropped: &mut Vec<String>) {
    let place = |pointer: &&str| pointer.rsplit('/').next().and_then(|at| at.parse::<usize>().ok());
    broken.sort_by_key(|pointer| std::cmp::Reverse(place(pointer)));
    for pointer in broken {
        let read_only = pointer.starts_with("/files/readOnly");
        dropped.extend(lists.forbid_no_more(pointer).filter(|_| !read_only));
    }
}
