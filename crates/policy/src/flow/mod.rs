//! Which labels the policy gives to what is read and written (`dataFlow.classify`), and which may not reach which (`flowRules`).
//!
//! Owns the reading of the member and what a session has taken in ([`Taint`]); judges nothing. Finds nothing in a call itself. Invariant:
//! what was taken in is never forgotten, and what may have been is held against every rule, as a doubt. Page: `spec/flow.md`.

mod entry;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use writ_core::json::{Object, Value};

use crate::error::{Found, did_you_mean};
use crate::grants::{Kind, Pattern};
use crate::rules::{PathRule, last_word};
use crate::schema::join;

pub use entry::Entry;

/// Most labels of one policy.
const MOST_LABELS: usize = 16;
/// Longest name of a label.
const LONGEST: usize = 64;

/// What a policy says of data.
#[derive(Clone, Debug, Default)]
pub struct DataFlow {
    /// The labels, in the order of their names.
    pub labels: Vec<Label>,
    /// What may not reach what.
    pub rules: Vec<Rule>,
}

/// A label, and what has it.
#[derive(Clone, Debug)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// What has it, files apart.
    pub entries: Vec<Entry>,
    /// The files that have it; `!pattern` takes back.
    pub files: Vec<PathRule>,
}

impl Label {
    /// Whether it is on a file at one of these paths.
    pub fn is_on(&self, paths: [&str; 2], home: Option<&str>) -> bool {
        paths.iter().any(|path| last_word(&self.files, path, home).is_some())
    }

    /// Whether it is on what lies on this machine, which any program may read.
    pub fn is_local(&self) -> bool {
        !self.files.is_empty() || self.entries.iter().any(|entry| matches!(entry, Entry::Resource(Kind::Secrets, _)))
    }
}

/// What has taken in one label may not reach another.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its JSON pointer.
    pub pointer: String,
    /// The label that is taken in.
    pub from: String,
    /// The label that it goes to.
    pub to: String,
    /// What the agent is told beside.
    pub message: Option<String>,
}

/// What a call takes in and where it lets something go, by label; `false` where it only may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// What it reads or receives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub takes: BTreeMap<String, bool>,
    /// Where it writes or sends to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gives: BTreeMap<String, bool>,
    /// What a program of it, or a tool, may take in and let go without that being known. Alone that is no flow: anything that runs could.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub may: BTreeSet<String>,
}

impl Flow {
    /// Whether nothing is labelled.
    pub fn is_nothing(&self) -> bool {
        self.takes.is_empty() && self.gives.is_empty() && self.may.is_empty()
    }

    /// Notes a label; what is sure stays sure.
    pub fn note(labels: &mut BTreeMap<String, bool>, label: &str, sure: bool) {
        *labels.entry(label.to_owned()).or_default() |= sure;
    }

    /// What all of them come to: a label is one in every policy of a session.
    pub fn all<'a>(flows: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = Self::default();
        for flow in flows {
            flow.takes.iter().for_each(|(label, sure)| Self::note(&mut out.takes, label, *sure));
            flow.gives.iter().for_each(|(label, sure)| Self::note(&mut out.gives, label, *sure));
            out.may.extend(flow.may.iter().cloned());
        }
        out
    }
}

/// The labels of what a session has taken in so far; `false` where it only may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Taint(BTreeMap<String, bool>);

impl Taint {
    /// Takes in what a call does that may run. Says whether that is more than before.
    pub fn take(&mut self, flow: &Flow) -> bool {
        let before = self.0.clone();
        flow.takes.iter().for_each(|(label, sure)| Flow::note(&mut self.0, label, *sure));
        flow.may.iter().for_each(|label| Flow::note(&mut self.0, label, false));
        self.0 != before
    }

    /// Each label, and whether it is sure.
    pub fn labels(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(label, sure)| (label.as_str(), *sure))
    }

    /// Whether a label was taken in, and whether that is sure.
    pub fn of(&self, label: &str) -> Option<bool> {
        self.0.get(label).copied()
    }
}

impl DataFlow {
    pub(crate) fn read(document: &Value, root: &str, found: &mut Vec<Found>) -> Self {
        let Some(member) = document.get("dataFlow") else { return Self::default() };
        let mut labels = Vec::new();
        for (name, list) in member.get("classify").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
            let place = join("/dataFlow/classify", name);
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c) && !name.contains("->");
            if name.is_empty() || name.len() > LONGEST || !name.chars().all(plain) || labels.len() == MOST_LABELS {
                let help = format!("at most {MOST_LABELS} labels of letters, digits, `.`, `_` and `-`");
                found.push(Found::value(&place, format!("`{name}` cannot be a label"), help).rule("bad-flow"));
            }
            let (mut entries, mut files) = (Vec::new(), Vec::new());
            for (at, item) in list.as_array().unwrap_or_default().iter().enumerate() {
                let (Some(text), pointer) = (item.as_str(), format!("{place}/{at}")) else { continue };
                match Entry::parse(pointer.clone(), text, root) {
                    Some(Entry::File(rule)) => files.push(rule),
                    Some(entry) => entries.push(entry),
                    None => {
                        let help = "`Tool`, `Tool:pattern`, a path, `domain:host`, a URL, `env:NAME`, `vault:PATH`";
                        found.push(Found::value(&pointer, format!("`{text}` names nothing"), help).rule("bad-flow"));
                    }
                }
            }
            labels.push(Label { name: name.to_owned(), entries, files });
        }
        labels.sort_by(|one, other| one.name.cmp(&other.name));
        let rules = member.get("flowRules").and_then(Value::as_array).unwrap_or_default().iter().enumerate();
        let rules =
            rules.filter_map(|(at, rule)| Rule::read(rule, &format!("/dataFlow/flowRules/{at}"), found)).collect();
        Self { labels, rules }
    }

    /// Whether anything is labelled.
    pub const fn any(&self) -> bool {
        !self.labels.is_empty()
    }

    /// Addresses of stores that have a label.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &Pattern> {
        self.labels.iter().flat_map(|label| &label.entries).filter_map(|entry| match entry {
            Entry::Resource(Kind::Storage, pattern) => Some(pattern),
            Entry::Resource(..) | Entry::Tool(_) | Entry::File(_) | Entry::Host(_) => None,
        })
    }

    /// The labels that it gives.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.labels
            .iter()
            .filter(|label| !label.entries.is_empty() || !label.files.is_empty())
            .map(|label| label.name.as_str())
    }

    /// Pointers of the rules about a label that none of the policies gives to anything.
    pub fn idle(&self, given: &BTreeSet<&str>) -> impl Iterator<Item = &str> {
        let idle = |rule: &&Rule| ![&rule.from, &rule.to].iter().all(|label| given.contains(label.as_str()));
        self.rules.iter().filter(idle).map(|rule| rule.pointer.as_str())
    }

    /// Labels that rules name and this policy gives to nothing: another policy may.
    pub fn unlabelled(&self) -> Vec<String> {
        let known = |label: &str| self.labels.iter().any(|own| own.name == label);
        let missing = |rule: &Rule| {
            let label = [&rule.from, &rule.to].into_iter().find(|label| !known(label))?;
            let near = did_you_mean(label, self.labels.iter().map(|own| own.name.as_str()));
            let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            Some(format!("{}: nothing here is labelled `{label}`{near}", rule.pointer))
        };
        self.rules.iter().filter_map(missing).collect()
    }
}

impl Rule {
    fn read(rule: &Value, place: &str, found: &mut Vec<Found>) -> Option<Self> {
        let text = rule.get("deny").and_then(Value::as_str)?;
        let parts = text.split_once("->").map(|(from, to)| (from.trim(), to.trim()));
        let Some((from, to)) = parts.filter(|(from, to)| !from.is_empty() && !to.is_empty() && !to.contains("->"))
        else {
            let pointer = format!("{place}/deny");
            found.push(
                Found::value(&pointer, format!("`{text}` is no flow"), "`from->to`, two labels").rule("bad-flow"),
            );
            return None;
        };
        let message = rule.get("message").and_then(Value::as_str).map(str::to_owned);
        Some(Self { pointer: place.to_owned(), from: from.to_owned(), to: to.to_owned(), message })
    }
}
