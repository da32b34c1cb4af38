//! Two policies beside each other: their rules, and what past calls would have come to under each.
//!
//! Owns the comparison. Invariant: a call is told where its verdict differs, under the rules that make the difference.

use std::collections::BTreeMap;

use serde::Serialize;
use writ_core::json::Value;
use writ_core::{Decision, Verdict};

use super::replay::{NotJudged, decisions};
use super::{Example, PastError, Transcript};
use crate::Home;
use crate::governing::Governing;

/// Examples that are kept of one change.
const EXAMPLES: usize = 3;

/// What differs.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Entries of the documents that only one has, and members whose value differs.
    pub rules: Vec<Change>,
    /// Sessions that were read.
    pub sessions: u64,
    /// Calls that were judged under both.
    pub calls: u64,
    /// Calls that come to something else.
    pub changed: u64,
    /// What could not be judged.
    pub not_judged: NotJudged,
    /// What becomes of those calls, by verdicts and rule, those of most calls first.
    pub moved: Vec<Moved>,
}

/// A part of the documents that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where: the list, or the member.
    pub pointer: String,
    /// What the first has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What the second has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Calls that come to something else for one rule.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Under the first.
    pub before: Verdict,
    /// Under the second.
    pub after: Verdict,
    /// The rule that makes it so, of the stricter one.
    pub rule: String,
    /// How it is written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How many.
    pub calls: u64,
    /// The first of them.
    pub examples: Vec<Example>,
}

/// Compares two policies, on transcripts if there are any.
pub fn compare(
    before: &Governing,
    after: &Governing,
    transcripts: &[Transcript],
    home: &Home,
    mut progress: impl FnMut(usize),
) -> Result<Difference, PastError> {
    let mut out = Difference::default();
    changes(before.policy.document(), after.policy.document(), "", &mut out.rules);
    let mut moved: BTreeMap<(Verdict, Verdict, String), Moved> = BTreeMap::new();
    for (at, transcript) in transcripts.iter().enumerate() {
        progress(at);
        let session = transcript.session()?;
        out.sessions += 1;
        out.not_judged.add(session.unseen);
        let (one, other) =
            (decisions(&session, before, transcript, home), decisions(&session, after, transcript, home));
        for ((call, one), other) in session.calls.iter().zip(&one).zip(&other) {
            out.calls += 1;
            if one.verdict == other.verdict {
                continue;
            }
            out.changed += 1;
            let stricter = if one.verdict > other.verdict { (one, before) } else { (other, after) };
            let (rule, message) = carries(stricter.0);
            let entry = moved.entry((one.verdict, other.verdict, rule.clone())).or_insert_with(|| {
                use crate::session::shown::Rules;
                let text = stricter.1.text(&rule);
                Moved { before: one.verdict, after: other.verdict, rule, text, calls: 0, examples: Vec::new() }
            });
            entry.calls += 1;
            if entry.examples.len() < EXAMPLES {
                entry.examples.push(Example::of(transcript, call, &message));
            }
        }
    }
    progress(transcripts.len());
    out.moved = moved.into_values().collect();
    out.moved.sort_by_key(|moved| std::cmp::Reverse((moved.after, moved.calls)));
    Ok(out)
}

/// The rule that carries a verdict, and what it says.
fn carries(decision: &Decision) -> (String, String) {
    decision.reasons.first().map(|reason| (reason.rule.clone(), reason.message.clone())).unwrap_or_default()
}

/// Where two documents differ. Lists are compared as sets: an entry that only moved says the same, but for `!` entries, whose place counts.
fn changes(before: &Value, after: &Value, pointer: &str, out: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names: Vec<&str> = one.iter().chain(other.iter()).map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let step = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (before.get(name), after.get(name)) {
                    (Some(one), Some(other)) => changes(one, other, &step, out),
                    (one, other) => whole(one, other, &step, out),
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            let lost = one.iter().filter(|item| !other.contains(item));
            out.extend(lost.map(|item| change(pointer, Some(item), None)));
            let new = other.iter().filter(|item| !one.contains(item));
            out.extend(new.map(|item| change(pointer, None, Some(item))));
            let both = |item: &&Value| one.contains(item) && other.contains(item);
            let order = |items: &[Value]| items.iter().filter(both).cloned().collect::<Vec<_>>();
            if one.iter().chain(other.iter()).any(takes_back) && order(one) != order(other) {
                out.push(Change {
                    pointer: pointer.to_owned(),
                    before: Some("the entries in this order".to_owned()),
                    after: Some("the entries in another order".to_owned()),
                });
            }
        }
        (one, other) if one != other => out.push(change(pointer, Some(one), Some(other))),
        _ => {}
    }
}

fn takes_back(item: &Value) -> bool {
    item.as_str().is_some_and(|text| text.starts_with('!') || text.contains(":!"))
}

/// A member that only one has: each entry of a list by itself.
fn whole(before: Option<&Value>, after: Option<&Value>, pointer: &str, out: &mut Vec<Change>) {
    let items = |value: Option<&Value>| value.and_then(Value::as_array).map(<[Value]>::to_vec);
    match (items(before), items(after)) {
        (Some(lost), _) if !lost.is_empty() => out.extend(lost.iter().map(|item| change(pointer, Some(item), None))),
        (_, Some(new)) if !new.is_empty() => out.extend(new.iter().map(|item| change(pointer, None, Some(item)))),
        _ => match before.or(after).and_then(Value::as_object) {
            Some(members) => {
                for (name, value) in members.iter() {
                    let step = format!("{pointer}/{name}");
                    let (one, other) = (before.map(|_| value), after.map(|_| value));
                    whole(one, other, &step, out);
                }
            }
            None => out.push(change(pointer, before, after)),
        },
    }
}

fn change(pointer: &str, before: Option<&Value>, after: Option<&Value>) -> Change {
    let shown = |value: &Value| value.as_str().map_or_else(|| writ_core::json::compact(value), str::to_owned);
    Change { pointer: pointer.to_owned(), before: before.map(shown), after: after.map(shown) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_core::json;

    fn told(before: &str, after: &str) -> Vec<String> {
        let mut out = Vec::new();
        let read = |text: &str| json::parse(text.as_bytes()).unwrap();
        changes(&read(before), &read(after), "", &mut out);
        let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        out.iter()
            .map(|change| format!("{} {} {}", change.pointer, side(&change.before), side(&change.after)))
            .collect()
    }

    #[test]
    fn entries_that_only_one_has_are_told() {
        assert_eq!(told(r#"{"a":[1,"x"]}"#, r#"{"a":["x","y"]}"#), ["/a 1 -", "/a - y"]);
        assert_eq!(told(r#"{"a":["x","y"]}"#, r#"{"a":["y","x"]}"#), Vec::<String>::new());
        assert_eq!(told(r#"{"a":["x","!y"]}"#, r#"{"a":["!y","x"]}"#).len(), 1);
        assert_eq!(told("{}", r#"{"t":{"deny":["x"]}}"#), ["/t/deny - x"]);
        assert_eq!(told(r#"{"n":"a"}"#, r#"{"n":"b"}"#), ["/n a b"]);
        assert_eq!(told(r#"{"n":{"m":1}}"#, "{}"), ["/n/m 1 -"]);
    }
}
