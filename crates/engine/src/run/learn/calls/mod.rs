//! A policy from single calls of sessions that are over: the tightest that people can read and that lets them through.
//!
//! Owns the making: what the calls use is folded into lists, the calls are decided under these, and what still stops one is mended, until none
//! is stopped. Decides nothing itself ([`Sessionless`]). Invariant: each call that was not left out is allowed by the policy, and each that was
//! is told with its reason. Page: `spec/learn.md`.

mod commands;
mod lists;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use writ_clients::Client;
use writ_clients::past::PastCall;
use writ_core::{Digest, json};

use super::some;
use crate::Home;
use crate::governing::GoverningError;
use crate::past::what;

/// Examples that are kept of calls that were left out for one reason.
const EXAMPLES: usize = 3;

/// What was learnt of calls.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LearntCalls {
    /// The policy as indented JSON with a final newline.
    #[serde(skip)]
    pub policy: String,
    /// Calls that it was made from, each as often as it was made.
    pub calls: usize,
    /// The entries of each list, by its pointer, with what each is for.
    pub lists: BTreeMap<&'static str, Vec<Entry>>,
    /// Calls that are not in it.
    pub left_out: Vec<LeftOut>,
    /// What a human should look at, in words.
    pub remarks: Vec<String>,
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// As it stands in the policy.
    pub text: String,
    /// Calls that need it; none where it only forbids.
    pub calls: usize,
    /// What one of them did with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// Calls that no policy as tight as this lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Why.
    pub why: String,
    /// How many.
    pub calls: usize,
    /// Some of them: the tool, and what it was about.
    pub examples: Vec<String>,
}

/// A call, and whose.
#[derive(Clone, Copy)]
pub struct Learn<'a> {
    /// The call.
    pub call: &'a PastCall,
    /// The client that made it.
    pub client: &'static dyn Client,
}

/// Calls that are alike in all that a decision sees.
struct Group<'a> {
    one: Learn<'a>,
    /// How often it was made.
    count: usize,
}

/// Learns the policy of a folder from calls. Those that somebody stopped then are left out.
pub fn learn(calls: &[Learn<'_>], root: &Path, home: &Home) -> Result<LearntCalls, GoverningError> {
    let (groups, refused) = grouped(calls);
    let made = groups.iter().map(|group| group.count).sum();
    let result = rounds::settle(groups, root, home)?;
    let again: Vec<&Group<'_>> = refused.iter().collect();
    let again: BTreeSet<usize> =
        rounds::stopped(&again, &result.lists, root, home)?.into_iter().map(|(at, _)| at).collect();
    let why = |at| if again.contains(&at) { STOPPED_THEN } else { LET_THROUGH };
    let mut left_out: Vec<Left> =
        refused.iter().enumerate().map(|(at, group)| Left::of(group, why(at).to_owned())).collect();
    left_out.extend(result.left_out);
    let policy = result.lists.to_policy();
    let mut out = LearntCalls {
        calls: made,
        lists: result.lists.entries(),
        left_out: told(left_out),
        remarks: result.remarks,
        policy: json::pretty(&json::to_value(&policy)) + "\n",
    };
    let then = [STOPPED_THEN, LET_THROUGH];
    let now = out.left_out.iter().filter(|left| !then.contains(&left.why.as_str()));
    out.calls -= now.map(|left| left.calls).sum::<usize>();
    if result.dropped.is_empty() {
        return Ok(out);
    }
    let dropped = some(&result.dropped);
    out.remarks.push(format!("calls broke rules that a first policy would have, and which are not in it: {dropped}"));
    Ok(out)
}

/// Why calls that were stopped are left out.
const STOPPED_THEN: &str = "it was stopped then: denied, refused, or there was no such tool";
/// The same where what others need is all that it needs.
const LET_THROUGH: &str = "it was stopped then, and this policy lets it through, for it needs no more than others do: \
                           narrow it where that is wrong";

/// A call that was left out.
struct Left {
    why: String,
    count: usize,
    example: String,
}

impl Left {
    fn of(group: &Group<'_>, why: String) -> Self {
        Self { why, count: group.count, example: example(group.one.call) }
    }
}

/// A call in a few words.
fn example(call: &PastCall) -> String {
    format!("{} {}", call.call.tool, what(&call.call)).trim_end().to_owned()
}

/// Calls that are alike, once; and those that were stopped.
fn grouped<'a>(calls: &[Learn<'a>]) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
    let mut known: BTreeMap<(Digest, &str, &str, Option<&str>, &str), usize> = BTreeMap::new();
    let (mut groups, mut stopped): (Vec<Group<'a>>, Vec<Group<'a>>) = (Vec::new(), Vec::new());
    for learn in calls {
        let call = learn.call;
        if call.was_stopped() {
            stopped.push(Group { one: *learn, count: 1 });
            continue;
        }
        let agent = call.agent.as_ref().map(|agent| agent.kind.as_deref().unwrap_or_default());
        let key = (call.call.digest(), call.call.tool.as_str(), call.call.cwd.as_str(), agent, learn.client.name());
        match known.get(&key).and_then(|at| groups.get_mut(*at)) {
            Some(group) => group.count += 1,
            None => {
                known.insert(key, groups.len());
                groups.push(Group { one: *learn, count: 1 });
            }
        }
    }
    (groups, stopped)
}

/// Those of one reason together, most first.
fn told(left: Vec<Left>) -> Vec<LeftOut> {
    let mut out: BTreeMap<String, LeftOut> = BTreeMap::new();
    for Left { why, count, example } in left {
        let of = out.entry(why.clone()).or_insert_with(|| LeftOut { why, calls: 0, examples: Vec::new() });
        of.calls += count;
        if of.examples.len() < EXAMPLES && !of.examples.contains(&example) {
            of.examples.push(example);
        }
    }
    let mut out: Vec<LeftOut> = out.into_values().collect();
    out.sort_by_key(|left| std::cmp::Reverse(left.calls));
    out
}
