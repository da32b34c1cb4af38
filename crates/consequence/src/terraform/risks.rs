//! Risks that only several changes together make.

use super::graph::Graph;
use super::judge::Judged;
use super::plan::bare;
use super::plan::{Change, Plan};
use super::rule::Role;
use super::table::{self, Known};
use super::view::View;
use crate::report::{Risk, Tier};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use writ_core::json::{Object, Value};

/// Most risks of a plan, addresses of a risk, and resources that share one name.
const MAX_RISKS: usize = 256;
const MAX_ADDRESSES: usize = 64;
const MAX_NAMESAKES: usize = 8;
/// Attributes that tell which thing a resource is.
const NAMES: [&str; 12] = [
    "id",
    "arn",
    "identifier",
    "cluster_identifier",
    "replication_group_id",
    "name",
    "bucket",
    "self_link",
    "key_id",
    "resource_id",
    "domain_name",
    "function_name",
];
/// How much of a resource is searched for the key it is encrypted with.
const MAX_TEXTS: usize = 256;
const MAX_DEPTH: usize = 12;
/// Shorter texts than this may stand for anything.
const SHORTEST_KEY: usize = 8;

/// What a risk is of, and the address it is about; then who takes part.
type Risks<'a> = BTreeMap<(&'static str, &'a str), BTreeSet<&'a str>>;

/// A risk as it is found.
pub struct Found {
    kind: &'static str,
    /// What it is about first.
    addresses: Vec<String>,
}

/// The risks of a plan's changes.
pub fn find<'a>(judged: &'a [Judged<'a>], plan: &'a Plan<'a>, graph: &Graph) -> Vec<Found> {
    let deleted = Deleted::of(judged);
    if deleted.all.is_empty() {
        return Vec::new();
    }
    let mut risks = Risks::new();
    linked(&mut risks, judged, &deleted, graph);
    keys(&mut risks, plan, &deleted, graph);
    unprotected(&mut risks, judged, &deleted, graph);
    let risk = |((kind, about), parts): (&(&'static str, &str), &BTreeSet<&str>)| {
        let others = parts.iter().filter(|part| *part != about);
        let addresses = std::iter::once(about).chain(others).take(MAX_ADDRESSES);
        Found { kind, addresses: addresses.map(|address| (*address).to_owned()).collect() }
    };
    risks.iter().take(MAX_RISKS).map(risk).collect()
}

/// A key that can still be had back for a time is no more than a warning away from data that cannot be read.
pub fn raise(judged: &mut Judged<'_>, risks: &[Found]) {
    let (address, own) = (judged.change.address, &mut judged.mutation.recoverability);
    let about = |risk: &&Found| risk.kind == KEPT && risk.addresses.first().is_some_and(|first| first == address);
    if !is_key(judged.known) || own.tier >= Tier::FromBackup {
        return;
    }
    if let Some(risk) = risks.iter().find(about) {
        own.tier = Tier::FromBackup;
        own.reasoning.push_str("; ");
        own.reasoning.push_str(risk.says());
        own.suggestions.push("encrypt that data with another key first, or keep this one".to_owned());
    }
}

const KEPT: &str = "key-of-kept-data";

impl Found {
    fn says(&self) -> &'static str {
        match self.kind {
            "backup-with-data" => "it is deleted in one plan with a backup of it: nothing is left to restore from",
            "replica-with-primary" => "it is deleted in one plan with its replica: no copy is left to promote",
            "key-with-data" => "it is deleted in one plan with data it encrypts: copies of that cannot be read either",
            KEPT => "it is deleted while what it encrypts stays: that data can no longer be read",
            "protection-drifted" => "its protection was taken away outside Terraform before this plan deletes it",
            _ => "its protection is taken away in the plan that deletes what belongs to it",
        }
    }

    /// As the report tells it.
    pub fn told(self) -> Risk {
        let about = self.addresses.first().map_or("", String::as_str);
        Risk { kind: self.kind, reason: format!("`{about}`: {}", self.says()), addresses: self.addresses }
    }
}

/// What the plan deletes or replaces.
struct Deleted<'a> {
    all: Vec<&'a Judged<'a>>,
    by_name: HashMap<&'a str, Vec<usize>>,
    by_address: HashMap<String, Vec<usize>>,
}

impl<'a> Deleted<'a> {
    fn of(judged: &'a [Judged<'a>]) -> Self {
        let all: Vec<&Judged<'_>> = judged.iter().filter(|judged| judged.change.action.deletes()).collect();
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_address: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, judged) in all.iter().enumerate() {
            let names: BTreeSet<&str> = NAMES.iter().filter_map(|name| top(&judged.change.before, name)).collect();
            for name in names {
                let namesakes = by_name.entry(name).or_default();
                if namesakes.len() < MAX_NAMESAKES {
                    namesakes.push(index);
                }
            }
            let instances = by_address.entry(bare(judged.change.address)).or_default();
            if instances.len() < MAX_NAMESAKES {
                instances.push(index);
            }
        }
        Self { all, by_name, by_address }
    }

    /// Those a name or ARN stands for.
    fn named(&self, name: &str) -> impl Iterator<Item = &'a Judged<'a>> {
        let tail = name.rsplit(['/', ':']).next().filter(|tail| *tail != name);
        let found = [Some(name), tail].into_iter().flatten().find_map(|name| self.by_name.get(name));
        self.at(found)
    }

    fn at(&self, found: Option<&Vec<usize>>) -> impl Iterator<Item = &'a Judged<'a>> {
        let found: Vec<&'a Judged<'a>> =
            found.into_iter().flatten().filter_map(|index| self.all.get(*index).copied()).collect();
        found.into_iter()
    }

    fn beside(&self, address: &str, graph: &Graph) -> Vec<&'a Judged<'a>> {
        graph.neighbours(address).into_iter().flat_map(|name| self.at(self.by_address.get(name))).collect()
    }
}

/// A text attribute of the resource itself; whole values only.
fn top<'a>(view: &View<'a>, name: &str) -> Option<&'a str> {
    let own = view.values.and_then(|values| values.get(name));
    own.or_else(|| view.state?.0.get(name))?.as_str().filter(|text| !text.is_empty())
}

/// Backups, replicas and guards that go with what they are for.
fn linked<'a>(risks: &mut Risks<'a>, judged: &'a [Judged<'a>], deleted: &Deleted<'a>, graph: &Graph) {
    for from in judged.iter().filter(|judged| judged.change.action.deletes()) {
        for link in from.known.into_iter().flat_map(|known| &known.links) {
            let kind = match link.role {
                Role::Backup => "backup-with-data",
                Role::Replica => "replica-with-primary",
                Role::Guard => "protection-then-delete",
                Role::Key => continue,
            };
            let fits = |to: &&Judged<'_>| {
                let kind = to.change.kind;
                (link.kind == "*" || link.kind == kind) && to.change.address != from.change.address
            };
            let named = from.change.before.text(link.path);
            let mut found: Vec<&Judged<'_>> =
                named.into_iter().flat_map(|name| deleted.named(name)).filter(fits).collect();
            // A replica is one only where the attribute says so.
            if found.is_empty() && (link.role != Role::Replica || named.is_some()) {
                found = deleted.beside(from.change.address, graph).into_iter().filter(fits).collect();
            }
            for to in found {
                risks.entry((kind, to.change.address)).or_default().insert(from.change.address);
            }
        }
    }
}

fn holds_data(known: Option<&Known>) -> bool {
    known.is_some_and(|known| matches!(known.tier, Tier::FromBackup | Tier::Unrecoverable))
}

fn is_key(known: Option<&Known>) -> bool {
    known.is_some_and(|known| known.links.iter().any(|link| link.role == Role::Key))
}

/// Keys that go, and the data they encrypt.
fn keys<'a>(risks: &mut Risks<'a>, plan: &'a Plan<'a>, deleted: &Deleted<'a>, graph: &Graph) {
    let keys: Vec<&Judged<'_>> = deleted.all.iter().copied().filter(|judged| is_key(judged.known)).collect();
    if keys.is_empty() {
        return;
    }
    let mut by_name: HashMap<&str, &Judged<'_>> = HashMap::new();
    for key in &keys {
        let names = NAMES.iter().filter_map(|name| top(&key.change.before, name));
        by_name.extend(names.filter(|name| name.len() >= SHORTEST_KEY).map(|name| (name, *key)));
    }
    let add = |risks: &mut Risks<'a>, key: &'a str, data: &Change<'a>| {
        let kind = if data.action.deletes() { "key-with-data" } else { KEPT };
        risks.entry((kind, key)).or_default().insert(data.address);
    };
    let mut by_address: HashMap<String, &Change<'a>> = HashMap::new();
    for change in &plan.changes {
        let known = table::known(change.kind);
        if !holds_data(known) || is_key(known) {
            continue;
        }
        for text in texts(&change.before) {
            if let Some(key) = by_name.get(text) {
                add(risks, key.change.address, change);
            }
        }
        by_address.insert(bare(change.address), change);
    }
    // A plan for some targets only says nothing of the rest: the prior state does.
    let changed: HashSet<&str> = plan.changes.iter().map(|change| change.previous.unwrap_or(change.address)).collect();
    for found in plan.state.iter().filter(|found| !changed.contains(found.address.as_ref())) {
        let address = bare(&found.address);
        let known = address.rsplit('.').nth(1).and_then(table::known);
        if !holds_data(known) || is_key(known) {
            continue;
        }
        let view = View { values: Some(found.values), ..View::default() };
        for key in texts(&view).into_iter().filter_map(|text| by_name.get(text)) {
            risks.entry((KEPT, key.change.address)).or_default().insert(found.address.as_ref());
        }
    }
    for key in keys {
        for name in graph.neighbours(key.change.address) {
            // What is only now made, or not there before, holds nothing yet.
            if let Some(data) = by_address.get(name).filter(|data| data.before.values.is_some()) {
                add(risks, key.change.address, data);
            }
        }
    }
}

fn texts<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut stack: Vec<(&Value, usize)> =
        view.values.or(view.state.map(|state| state.0)).map(|all| (all, 0)).into_iter().collect();
    while let Some((value, depth)) = stack.pop() {
        out.extend(value.as_str().filter(|text| text.len() >= SHORTEST_KEY));
        if depth < MAX_DEPTH {
            stack.extend(value.as_array().unwrap_or_default().iter().map(|item| (item, depth + 1)));
            let members = value.as_object().into_iter().flat_map(Object::iter);
            stack.extend(members.map(|(_, item)| (item, depth + 1)));
        }
        if out.len() >= MAX_TEXTS {
            break;
        }
    }
    out
}

/// Protection that is taken away in the plan that deletes.
fn unprotected<'a>(risks: &mut Risks<'a>, judged: &'a [Judged<'a>], deleted: &Deleted<'a>, graph: &Graph) {
    let mut by_service: HashMap<(&str, &str), Vec<&Judged<'_>>> = HashMap::new();
    for gone in deleted.all.iter().filter(|judged| judged.mutation.recoverability.tier >= Tier::FromBackup) {
        if let Some(known) = gone.known {
            let same = by_service.entry((known.provider, known.service)).or_default();
            if same.len() < MAX_ADDRESSES {
                same.push(gone);
            }
        }
        if gone.drifted_open.is_some() {
            risks.entry(("protection-drifted", gone.change.address)).or_default();
        }
    }
    let open = judged.iter().filter(|judged| judged.unprotected.is_some() && !judged.change.action.deletes());
    // INVARIANT: one risk for each of at most MAX_RISKS changes, each with bounded neighbours.
    for open in open.take(MAX_RISKS) {
        let service = open.known.and_then(|known| by_service.get(&(known.provider, known.service)));
        let beside = deleted.beside(open.change.address, graph);
        for gone in service.into_iter().flatten().copied().chain(beside) {
            risks.entry(("protection-then-delete", open.change.address)).or_default().insert(gone.change.address);
        }
    }
}
