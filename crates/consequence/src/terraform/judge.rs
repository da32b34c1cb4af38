//! One change: its tier, why, and what that rests on.

use super::plan::{Action, Change, Plan, bare};
use super::rule::{Condition, Loss, Op};
use super::table::{self, Known};
use crate::report::{
    Confidence, Effect, Evidence, Intent, Metadata, Missing, Mutation, Origin, Recoverability, Target, Tier,
};
use std::collections::{BTreeSet, HashMap};
use writ_core::json::{Object, Value};

/// Most drifted attributes that are named.
const MAX_DRIFTED: usize = 16;

/// A change and what is made of it.
#[derive(Debug)]
pub struct Judged<'a> {
    pub change: &'a Change<'a>,
    pub known: Option<&'static Known>,
    pub mutation: Mutation,
    /// The attribute whose protection an update or a replacement takes away.
    pub unprotected: Option<&'static str>,
    /// The same, taken away outside Terraform since the last apply.
    pub drifted_open: Option<&'static str>,
}

/// What is collected on the way.
#[derive(Default)]
struct Notes {
    findings: Vec<(Tier, String)>,
    seen: BTreeSet<&'static str>,
    missing: BTreeSet<&'static str>,
    unprotected: Option<&'static str>,
}

/// Judges a change; `None` when it changes nothing.
pub fn judge<'a>(change: &'a Change<'a>, plan: &Plan<'a>) -> Option<Judged<'a>> {
    let known = table::known(change.kind);
    let mut notes = Notes::default();
    match change.action {
        Action::Nothing if change.imported => {
            notes.find(Tier::Reversible, "it is taken into the state; nothing is changed")
        }
        Action::Nothing => {
            let previous = change.previous.filter(|previous| *previous != change.address)?;
            notes.find(Tier::Reversible, format!("its address was `{previous}`; only the state's name for it changes"));
        }
        Action::Unknown => {
            notes.find(Tier::NeedsReview, "the plan's action is none that is known: what it would do cannot be told");
        }
        Action::Forget | Action::ForgetAndCreate => {
            let text = "it leaves the state and stays where it is: `terraform import` brings it back under control";
            notes.find(Tier::WithEffort, text);
        }
        Action::Create | Action::Update | Action::Delete | Action::Replace => {}
    }
    match known {
        Some(known) => notes.judge_known(change, known),
        None => notes.judge_unknown(change),
    }
    let drift = plan.drift.get(change.address).filter(|_| change.deposed.is_none());
    let drifted_open = drift.zip(known).and_then(|((before, after), known)| {
        let gone = known
            .updates
            .iter()
            .find(|rule| rule.loss == Loss::Protection && rule.happens(before, after) == Some(true));
        gone.map(|rule| rule.path)
    });
    // What commands do, no plan says; most set something up.
    let runs = change.action.deletes() || matches!(change.action, Action::Create | Action::ForgetAndCreate);
    if runs && !plan.provisioned.is_empty() && plan.provisioned.contains(&bare(change.address)) {
        notes.missing.insert("provisioner");
    }
    let unprotected = notes.unprotected;
    let mut mutation = notes.mutation(change, known);
    if let Some((before, after)) = drift {
        mutation.evidence.extend(drifted(before.values, after.values));
    }
    Some(Judged { change, known, mutation, unprotected, drifted_open })
}

/// The names of what changed outside Terraform; values may be anything, and are not shown.
fn drifted(before: Option<&Value>, after: Option<&Value>) -> Option<Evidence> {
    let (value, description) = match (before.and_then(Value::as_object), after.and_then(Value::as_object)) {
        (Some(before), Some(after)) => {
            let is: HashMap<&str, &Value> = after.iter().collect();
            let changed = before.iter().filter(|(name, was)| is.get(name) != Some(was));
            let names = changed.take(MAX_DRIFTED).map(|(name, _)| Value::from(name)).collect();
            (Value::Array(names), "changed outside Terraform since the last apply: this plan puts it back")
        }
        (Some(_), None) => (Value::from("gone"), "deleted outside Terraform since the last apply"),
        _ => return None,
    };
    Some(Evidence { key: "drift".into(), value, present: true, description: description.into() })
}

impl Notes {
    fn find(&mut self, tier: Tier, reason: impl Into<String>) {
        let finding = (tier, reason.into());
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn judge_unknown(&mut self, change: &Change<'_>) {
        let kind = change.kind;
        if change.action == Action::Create {
            let reason = format!("`{kind}` is not a type that is known; what is made new loses nothing");
            self.find(Tier::Reversible, reason);
        }
        if matches!(change.action, Action::Update | Action::Delete | Action::Replace | Action::ForgetAndCreate) {
            self.find(Tier::NeedsReview, format!("`{kind}` is not a type that is known: names prove nothing"));
        }
    }

    fn judge_known(&mut self, change: &Change<'_>, known: &'static Known) {
        let action = change.action;
        if action.deletes() {
            self.judge_delete(change, known);
        }
        if matches!(action, Action::Update | Action::Replace) {
            self.judge_losses(change, known);
        }
        if matches!(action, Action::Create | Action::Update | Action::Replace | Action::ForgetAndCreate) {
            self.judge_openings(change, known);
        }
        if self.findings.is_empty() {
            let reason = if action == Action::Create {
                "it is made new: destroying it undoes that"
            } else {
                "it is changed in place, and the former settings are in the plan"
            };
            self.find(Tier::Reversible, reason);
        }
    }

    fn judge_delete(&mut self, change: &Change<'_>, known: &'static Known) {
        let view = &change.before;
        if view.values.is_none() && view.state.is_none() && !known.deletes.is_empty() {
            self.missing.insert("before");
        }
        let rule = known.deletes.iter().find(|rule| {
            let mut all = true;
            for condition in &rule.conditions {
                self.seen.insert(condition.path);
                match condition.holds(view) {
                    Some(true) => {}
                    Some(false) => {
                        all = false;
                        break;
                    }
                    None => {
                        self.missing.insert(condition.path);
                        all = false;
                    }
                }
            }
            all
        });
        let (tier, reason) = rule.map_or((known.tier, known.reason), |rule| (rule.tier, rule.reason));
        let verb = match (change.action, change.create_first) {
            (Action::Replace, true) => "replaced (the new one first): ",
            (Action::Replace, false) => "replaced: ",
            _ if change.deposed.is_some() => "what a replacement left behind is deleted: ",
            _ => "",
        };
        self.find(tier, format!("{verb}{reason}"));
    }

    fn judge_losses(&mut self, change: &Change<'_>, known: &'static Known) {
        for rule in &known.updates {
            match rule.happens(&change.before, &change.after) {
                Some(true) => {
                    self.seen.insert(rule.path);
                    self.find(Tier::FromBackup, format!("{} (`{}`)", rule.loss.says(), rule.path));
                    if rule.loss == Loss::Protection {
                        self.unprotected = self.unprotected.or(Some(rule.path));
                    }
                }
                Some(false) => {}
                None => {
                    self.missing.insert(rule.path);
                }
            }
        }
    }

    fn judge_openings(&mut self, change: &Change<'_>, known: &'static Known) {
        for rule in &known.creates {
            let path = rule.named();
            match rule.holds(&change.after) {
                Some(true) if rule.holds(&change.before) == Some(true) && same(change, &rule.conditions) => {}
                Some(true) => {
                    self.seen.extend(rule.conditions.iter().map(|test| test.path));
                    self.find(Tier::FromBackup, format!("{} (`{path}`)", rule.loss.says()));
                }
                Some(false) => {}
                None if change.after.find(path).unknown => {
                    self.missing.insert(path);
                }
                None => {}
            }
        }
    }

    fn mutation(self, change: &Change<'_>, known: Option<&'static Known>) -> Mutation {
        let mut findings = self.findings;
        findings.sort_by_key(|(tier, _)| std::cmp::Reverse((tier.verdict(), *tier)));
        let tier = findings.first().map_or(Tier::NeedsReview, |(tier, _)| *tier);
        let reasons: Vec<&str> = findings.iter().map(|(_, reason)| reason.as_str()).collect();
        let unknown = tier == Tier::NeedsReview || known.is_none();
        let recoverability = Recoverability {
            tier,
            reasoning: format!("`{}`: {}", change.address, reasons.join("; ")),
            source: if unknown { Origin::Default } else { Origin::Rules },
            confidence: match (unknown, self.missing.is_empty()) {
                (true, _) => Confidence::Low,
                (false, true) => Confidence::High,
                (false, false) => Confidence::Medium,
            },
            suggestions: suggestion(tier, change.action).map(str::to_owned).into_iter().collect(),
        };
        let evidence = self.seen.iter().filter_map(|path| evidence(change, path)).collect();
        let missing = self.missing.iter().map(|path| missing(path, tier)).collect();
        let (before, after) =
            (states(&self.seen, |path| change.before.shown(path)), states(&self.seen, |path| change.after.shown(path)));
        let provider = change.provider.and_then(|name| name.rsplit('/').next());
        let intent = Intent {
            source: "terraform",
            action: match (change.action, change.imported, change.previous) {
                (Action::Nothing, true, _) => "import".to_owned(),
                (Action::Nothing, false, _) => "move".to_owned(),
                (action, ..) => action.as_str().to_owned(),
            },
            target: Target {
                provider: provider.or(change.kind.split('_').next()).map(str::to_owned),
                service: known.map(|known| known.service.to_owned()),
                kind: Some(change.kind.to_owned()),
                id: Some(change.address.to_owned()),
                name: change.name.map(str::to_owned),
            },
            before: before.filter(|_| change.action != Action::Create),
            after: after.filter(|_| change.action != Action::Delete),
            metadata: metadata(change),
            ..Intent::default()
        };
        Mutation { intent, recoverability, evidence, missing, dependencies: Vec::new() }
    }
}

/// Whether what a rule looked at is as it was: a group open to all that gets one more open port is opened again.
fn same(change: &Change<'_>, conditions: &[Condition]) -> bool {
    conditions.iter().all(|test| {
        let top = if test.op == Op::World { test.path.split('.').next().unwrap_or(test.path) } else { test.path };
        let (was, is) = (change.before.find(top), change.after.find(top));
        was.values.iter().map(|pair| pair.0).eq(is.values.iter().map(|pair| pair.0))
    })
}

fn states(paths: &BTreeSet<&'static str>, shown: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    let members: Object = paths.iter().filter_map(|path| Some(((*path).to_owned(), shown(path)?))).collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

fn evidence(change: &Change<'_>, path: &str) -> Option<Evidence> {
    let side = if change.action == Action::Create { &change.after } else { &change.before };
    let value = side.shown(path)?;
    let present = value != Value::Null;
    let description = if change.action == Action::Create { "as planned" } else { "as it is before the change" };
    Some(Evidence { key: path.to_owned(), value, present, description: description.to_owned() })
}

fn missing(path: &str, tier: Tier) -> Missing {
    let effect = match (path, tier) {
        ("before", _) => Effect::RequiresReview,
        ("provisioner", _) => Effect::LowersConfidence,
        (_, Tier::Unrecoverable) => Effect::BlocksSafeVerdict,
        _ => Effect::LowersConfidence,
    };
    let description = match path {
        "before" => "the resource's former values are in neither the plan nor a prior state".to_owned(),
        "provisioner" => "a provisioner runs commands with this change: they are not judged here".to_owned(),
        _ => format!("`{path}` is not known, and would decide what can be brought back"),
    };
    Missing { key: path.to_owned(), description, effect }
}

const fn suggestion(tier: Tier, action: Action) -> Option<&'static str> {
    Some(match (tier, action) {
        (Tier::Unrecoverable, _) => "make and test a copy first, or keep it: `lifecycle { prevent_destroy = true }`",
        (Tier::FromBackup, Action::Delete | Action::Replace) => "check that the copy is there and can be restored",
        (Tier::FromBackup, _) => "check that this is meant, and who may reach or delete it afterwards",
        (Tier::NeedsReview, _) => "read in the provider's documentation what this does, and have somebody look",
        (Tier::Reversible | Tier::WithEffort, _) => return None,
    })
}

fn metadata(change: &Change<'_>) -> Metadata {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let names = change.replace_paths.iter().take(MAX_DRIFTED);
    Metadata {
        previous_address: text(change.previous),
        deposed: text(change.deposed),
        action_reason: text(change.why),
        imported: change.imported,
        replaced_for: names.filter_map(|path| text(path.as_array()?.first()?.as_str())).collect(),
        ..Metadata::default()
    }
}
