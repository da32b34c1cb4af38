//! What the data files' rules say of a resource's attributes.

use super::document;
use super::view::{Found, View};
use crate::report::Tier;
use writ_core::json::Value;

/// What an update or a create may take away or open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// What keeps it from being deleted.
    Protection,
    /// Copies, or how long they are kept.
    Backup,
    /// Former versions.
    Versioning,
    /// Encryption.
    Encryption,
    /// Open to everybody.
    Exposure,
    /// Easier to get in, or to do harm inside.
    Access,
    /// All rights.
    Admin,
    /// Logs of who did what.
    Audit,
    /// Data that goes by itself afterwards.
    Data,
}

impl Loss {
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "protection" => Self::Protection,
            "backup" => Self::Backup,
            "versioning" => Self::Versioning,
            "encryption" => Self::Encryption,
            "exposure" => Self::Exposure,
            "access" => Self::Access,
            "admin" => Self::Admin,
            "audit" => Self::Audit,
            "data" => Self::Data,
            _ => return None,
        })
    }

    /// What it means, in front of the attribute it was seen in.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Protection => "protection against deletion is taken away",
            Self::Backup => "backups are cut or kept for a shorter time",
            Self::Versioning => "former versions are no longer kept",
            Self::Encryption => "encryption is taken away",
            Self::Exposure => "it is opened to everybody",
            Self::Access => "access is guarded less",
            Self::Admin => "all rights are granted",
            Self::Audit => "the record of who did what is cut",
            Self::Data => "data goes with this change",
        }
    }
}

/// How a condition compares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Op {
    /// One of the values.
    Is,
    /// None of the values.
    Not,
    /// A number above.
    Above(f64),
    /// A number below.
    Below(f64),
    /// Not null, not empty.
    Set,
    /// Null or empty.
    Empty,
    /// An address range or principal that means everybody.
    World,
    /// A policy document that allows every action.
    Admin,
    /// A policy document that allows everybody something.
    Public,
}

/// One attribute's condition.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Names joined by `.`; a list on the way means any of its elements.
    pub path: &'static str,
    pub op: Op,
    pub values: Vec<&'static str>,
}

/// On a delete or replacement: the first rule whose conditions all hold gives the tier.
#[derive(Clone, PartialEq, Debug)]
pub struct OnDelete {
    pub conditions: Vec<Condition>,
    pub tier: Tier,
    pub reason: &'static str,
}

/// What an attribute must become on an update for [`Loss`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Transition {
    /// Was on, is off.
    Off,
    /// A number gets smaller.
    Less,
    /// A time gets shorter, where 0 and nothing mean for ever.
    Shorter,
    /// Any change.
    Changed,
    /// Becomes this.
    To(&'static str),
}

/// On an update.
#[derive(Clone, PartialEq, Debug)]
pub struct OnUpdate {
    pub path: &'static str,
    pub transition: Transition,
    pub loss: Loss,
}

/// On a create, and on an update when it was not so before.
#[derive(Clone, PartialEq, Debug)]
pub struct OnCreate {
    pub conditions: Vec<Condition>,
    pub loss: Loss,
}

/// What a resource is to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Backup,
    Replica,
    Guard,
    Key,
}

/// A role, the attribute that names the other resource, and the other's type (`*` for any).
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    pub role: Role,
    pub path: &'static str,
    pub kind: &'static str,
}

impl Condition {
    /// Whether it holds; `None` when the attribute is not known.
    pub fn holds(&self, view: &View<'_>) -> Option<bool> {
        self.holds_at(view, self.path)
    }

    fn holds_at(&self, view: &View<'_>, path: &str) -> Option<bool> {
        let found = view.find(path);
        let any = |test: &dyn Fn(&Value) -> bool| found.values.iter().any(|(value, _)| test(value));
        let holds = match self.op {
            Op::Is => any(&|value| self.values.iter().any(|text| same(value, text))),
            Op::Above(limit) => any(&|value| number(value).is_some_and(|number| number > limit)),
            Op::Below(limit) => any(&|value| number(value).is_some_and(|number| number < limit)),
            Op::Set => any(&|value| !empty(value)),
            Op::World => any(&document::is_world),
            Op::Admin => any(&document::is_admin),
            Op::Public => any(&document::is_public),
            Op::Empty => !found.values.is_empty() && !any(&|value| !empty(value)),
            Op::Not => !found.values.is_empty() && !any(&|value| self.values.iter().any(|text| same(value, text))),
        };
        if !holds && (found.unknown || found.values.is_empty()) { None } else { Some(holds) }
    }
}

impl OnCreate {
    /// The attribute that is named with the loss: the one that opens, rather than those that say where it stands.
    pub fn named(&self) -> &'static str {
        let opens = self.conditions.iter().find(|test| matches!(test.op, Op::World | Op::Admin | Op::Public));
        opens.or(self.conditions.first()).map_or("", |test| test.path)
    }

    /// Whether all conditions hold: for one and the same block when all of them are about one kind of block.
    pub fn holds(&self, view: &View<'_>) -> Option<bool> {
        let mut parents =
            self.conditions.iter().map(|test| test.path.rsplit_once('.').map_or("", |(parent, _)| parent));
        let parent = parents.next().filter(|parent| self.conditions.len() > 1 && !parent.is_empty());
        let Some(parent) = parent.filter(|parent| parents.all(|other| other == *parent)) else {
            return self.conditions.iter().try_fold(true, |all, test| Some(all && test.holds(view)?));
        };
        let found = view.find(parent);
        let blocks = found.values.iter().flat_map(|(value, _)| value.as_array().unwrap_or(std::slice::from_ref(value)));
        let leaf = |test: &Condition| test.path.rsplit('.').next().unwrap_or(test.path);
        let holds = blocks
            .map(|block| View { values: Some(block), ..View::default() })
            .any(|block| self.conditions.iter().all(|test| test.holds_at(&block, leaf(test)) == Some(true)));
        if holds || !(found.unknown || found.values.is_empty()) { Some(holds) } else { None }
    }
}

impl OnUpdate {
    /// Whether the update does it; `None` when what it becomes is not known.
    pub fn happens(&self, before: &View<'_>, after: &View<'_>) -> Option<bool> {
        let (was, becomes) = (before.find(self.path), after.find(self.path));
        let was_on = was.values.iter().any(|(value, _)| on(value));
        if becomes.unknown {
            return if was_on { None } else { Some(false) };
        }
        Some(match self.transition {
            Transition::Off => was_on && !becomes.values.iter().any(|(value, _)| on(value)),
            Transition::Less => match (lowest(&was), lowest(&becomes)) {
                (Some(was), Some(becomes)) => becomes < was,
                (Some(was), None) => was > 0.0,
                _ => false,
            },
            Transition::Shorter => {
                let forever = |found| lowest(found).filter(|time| *time > 0.0).unwrap_or(f64::INFINITY);
                forever(&becomes) < forever(&was)
            }
            Transition::Changed => was.values.iter().map(|pair| pair.0).ne(becomes.values.iter().map(|pair| pair.0)),
            Transition::To(text) => {
                becomes.values.iter().any(|(value, _)| same(value, text))
                    && !was.values.iter().any(|(value, _)| same(value, text))
            }
        })
    }
}

fn lowest(found: &Found<'_>) -> Option<f64> {
    found.values.iter().filter_map(|(value, _)| number(value)).reduce(f64::min)
}

/// A number, or text that is one: some providers keep numbers as text, and times with a unit (`604800s`, `7d`).
fn number(value: &Value) -> Option<f64> {
    let Some(text) = value.as_str() else { return value.as_f64() };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match text.strip_prefix(digits)? {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * seconds)
}

fn same(value: &Value, text: &str) -> bool {
    match value {
        Value::Bool(truth) => text == if *truth { "true" } else { "false" },
        Value::Number(number) => text.parse() == Ok(*number),
        Value::String(string) => string == text,
        Value::Null => text == "null",
        // A list of texts: any of them. Lists in it are no texts.
        Value::Array(items) => items.iter().any(|item| item.as_array().is_none() && same(item, text)),
        Value::Object(_) => false,
    }
}

/// Null, `""`, `[]`, `{}`.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a setting is on.
fn on(value: &Value) -> bool {
    const OFF: [&str; 8] = ["false", "off", "none", "disabled", "disable", "suspended", "0", "inactive"];
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => *number != 0.0,
        Value::String(text) => !empty(value) && !OFF.iter().any(|off| text.eq_ignore_ascii_case(off)),
        Value::Null | Value::Array(_) | Value::Object(_) => !empty(value),
    }
}
