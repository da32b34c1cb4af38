//! A plan's changes, read out of `terraform show -json` (format 0.1 to 1.x) or its OpenTofu twin.
//!
//! <https://developer.hashicorp.com/terraform/internals/json-format>

use super::view::View;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use writ_core::json::{self, Object, Value};

/// Most changes, or resources of a state, that are read.
pub const MAX_RESOURCES: usize = 200_000;

/// Longest path of modules that is followed.
pub const MAX_PATH: usize = 512;

/// Why a document cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No plan: some other JSON.
    #[error("not a Terraform plan: {found}")]
    NotAPlan {
        /// What it is instead.
        found: &'static str,
    },
    /// Another format.
    #[error("unsupported plan format `{version}`: 0.1 to 1.x are read")]
    UnsupportedVersion {
        /// `format_version`.
        version: String,
    },
    /// More than [`MAX_RESOURCES`].
    #[error("{count} resources, the limit is {limit}")]
    TooLarge {
        /// How many there are.
        count: usize,
        /// How many are read.
        limit: usize,
    },
    /// A part that is not as the format has it.
    #[error("`{pointer}` is not {expected}")]
    Malformed {
        /// Where: a JSON pointer.
        pointer: String,
        /// What should be there.
        expected: &'static str,
    },
    /// The prior state is none.
    #[error("not a Terraform state: neither `values` nor `resources`")]
    NotAState,
}

/// What Terraform would do to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing, or a read.
    Nothing,
    Create,
    Update,
    Delete,
    /// `delete, create` or `create, delete`.
    Replace,
    /// Out of the state; the thing itself stays.
    Forget,
    /// Out of the state, and another one made.
    ForgetAndCreate,
    /// An action this release does not know.
    Unknown,
}

impl Action {
    fn of(actions: &[Value]) -> Self {
        let mut has = [false; 6];
        for action in actions {
            let place = match action.as_str() {
                Some("no-op" | "read") => 0,
                Some("create") => 1,
                Some("update") => 2,
                Some("delete") => 3,
                Some("forget") => 4,
                _ => 5,
            };
            if let Some(slot) = has.get_mut(place) {
                *slot = true;
            }
        }
        match has {
            [_, _, _, _, _, true] => Self::Unknown,
            [_, true, _, true, ..] => Self::Replace,
            [_, _, _, true, ..] => Self::Delete,
            [_, true, _, _, true, _] => Self::ForgetAndCreate,
            [_, _, _, _, true, _] => Self::Forget,
            [_, _, true, ..] => Self::Update,
            [_, true, ..] => Self::Create,
            [true, ..] => Self::Nothing,
            // An empty list says nothing, and nothing is not the same as "nothing to do".
            [false, false, false, false, false, false] => Self::Unknown,
        }
    }

    /// `create`, `delete`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "no-op",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::Forget => "forget",
            Self::ForgetAndCreate => "forget-and-create",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the thing that is there goes.
    pub const fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::Replace)
    }
}

/// One entry of `resource_changes`.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    pub address: &'a str,
    pub previous: Option<&'a str>,
    pub kind: &'a str,
    pub name: Option<&'a str>,
    pub provider: Option<&'a str>,
    /// The key of an object that a replacement left behind.
    pub deposed: Option<&'a str>,
    pub action: Action,
    /// `create_before_destroy`.
    pub create_first: bool,
    pub before: View<'a>,
    pub after: View<'a>,
    pub imported: bool,
    pub replace_paths: &'a [Value],
    /// `action_reason`.
    pub why: Option<&'a str>,
}

/// One resource of a prior state.
#[derive(Clone, Debug)]
pub struct Resource<'a> {
    pub address: Cow<'a, str>,
    pub values: &'a Value,
    pub sensitive: Option<&'a Value>,
    pub depends_on: &'a [Value],
}

/// What is read of a plan.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Managed resources only: reading a data source changes nothing.
    pub changes: Vec<Change<'a>>,
    /// `resource_drift`, by address.
    pub drift: HashMap<&'a str, (View<'a>, View<'a>)>,
    pub state: Vec<Resource<'a>>,
    /// Resources, without indexes, whose `provisioner` blocks run commands.
    pub provisioned: HashSet<String>,
    /// `configuration.root_module`.
    pub configuration: Option<&'a Value>,
}

impl<'a> Plan<'a> {
    /// Reads a plan; `state` stands in where the plan has no prior state of its own.
    pub fn read(document: &'a Value, state: Option<&'a Value>) -> Result<Self, PlanError> {
        check(document)?;
        let own = document.get("prior_state").filter(|state| state.get("values").is_some());
        let state = match (own, state) {
            (Some(own), _) => resources(own)?,
            (None, Some(state)) => resources(state)?,
            (None, None) => Vec::new(),
        };
        let by_address: HashMap<&str, &Resource<'_>> =
            state.iter().map(|found| (found.address.as_ref(), found)).collect();
        let mut changes = Vec::new();
        for (index, entry) in list(document, "resource_changes")?.iter().enumerate() {
            let mut change = read(entry).ok_or_else(|| malformed(format!("/resource_changes/{index}"), "a change"))?;
            // Data sources and ephemeral resources are read, and change nothing.
            if matches!(entry.get("mode").and_then(Value::as_str), Some("data" | "ephemeral")) {
                continue;
            }
            // A deposed object has its own values: the state's are those of the one in use.
            let found = change.deposed.is_none().then(|| by_address.get(change.previous.unwrap_or(change.address)));
            change.before.state = found.flatten().map(|found| (found.values, found.sensitive));
            changes.push(change);
        }
        let drifted = list(document, "resource_drift")?.iter().filter_map(read);
        let drift = drifted.map(|change| (change.address, (change.before, change.after))).collect();
        let configuration = document.get("configuration").and_then(|all| all.get("root_module"));
        let provisioned = configuration.map(provisioned).unwrap_or_default();
        Ok(Self { changes, drift, state, provisioned, configuration })
    }
}

fn check(document: &Value) -> Result<(), PlanError> {
    let Value::Object(members) = document else { return Err(PlanError::NotAPlan { found: document.kind() }) };
    let Some(version) = members.get("format_version").and_then(Value::as_str) else {
        let state = members.get("lineage").is_some() && members.get("serial").is_some();
        return Err(PlanError::NotAPlan { found: if state { "a state file" } else { "no `format_version`" } });
    };
    // Terraform 0.12 to 1.0 wrote 0.1 and 0.2, which are 1.0 under other names.
    if !matches!(version.split('.').next(), Some("0" | "1")) {
        return Err(PlanError::UnsupportedVersion { version: version.chars().take(40).collect() });
    }
    let parts = ["resource_changes", "planned_values", "output_changes", "configuration"];
    if parts.iter().all(|part| members.get(part).is_none()) {
        let state = members.get("values").is_some();
        return Err(PlanError::NotAPlan { found: if state { "a state" } else { "no `resource_changes`" } });
    }
    let count = list(document, "resource_changes")?.len();
    within(count)
}

/// That there are not too many of them.
pub fn within(count: usize) -> Result<(), PlanError> {
    if count > MAX_RESOURCES { Err(PlanError::TooLarge { count, limit: MAX_RESOURCES }) } else { Ok(()) }
}

fn malformed(pointer: String, expected: &'static str) -> PlanError {
    PlanError::Malformed { pointer, expected }
}

/// A list that may be absent.
pub fn list<'a>(document: &'a Value, name: &str) -> Result<&'a [Value], PlanError> {
    match document.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(malformed(format!("/{name}"), "a list")),
    }
}

fn read(entry: &Value) -> Option<Change<'_>> {
    let text = |name| entry.get(name).and_then(Value::as_str);
    let change = entry.get("change")?;
    let actions = change.get("actions")?.as_array()?;
    let known = |name| change.get(name).filter(|value| **value != Value::Null);
    let before = View { values: known("before"), sensitive: change.get("before_sensitive"), ..View::default() };
    let (sensitive, unknown) = (change.get("after_sensitive"), change.get("after_unknown"));
    Some(Change {
        address: text("address")?,
        previous: text("previous_address"),
        kind: text("type")?,
        name: text("name"),
        provider: text("provider_name"),
        deposed: text("deposed"),
        action: Action::of(actions),
        create_first: actions.first().and_then(Value::as_str) == Some("create"),
        before,
        after: View { values: known("after"), sensitive, unknown, state: None },
        imported: change.get("importing").is_some_and(|id| *id != Value::Null),
        replace_paths: change.get("replace_paths").and_then(Value::as_array).unwrap_or_default(),
        why: text("action_reason"),
    })
}

/// The resources of a state as `terraform show -json` writes it (modules nest to any depth), or of a state file.
fn resources(state: &Value) -> Result<Vec<Resource<'_>>, PlanError> {
    let state = state.get("prior_state").unwrap_or(state);
    let Some(values) = state.get("values") else { return state_file(state) };
    let mut out = Vec::new();
    let mut modules: Vec<&Value> = values.get("root_module").into_iter().collect();
    while let Some(module) = modules.pop() {
        for resource in items(module, "resources") {
            let managed = resource.get("mode").and_then(Value::as_str) != Some("data");
            let deposed = resource.get("deposed_key").is_some();
            let (Some(address), Some(values), true, false) =
                (resource.get("address").and_then(Value::as_str), resource.get("values"), managed, deposed)
            else {
                continue;
            };
            let (sensitive, depends_on) = (resource.get("sensitive_values"), items(resource, "depends_on"));
            out.push(Resource { address: Cow::Borrowed(address), values, sensitive, depends_on });
        }
        within(out.len())?;
        modules.extend(items(module, "child_modules"));
    }
    Ok(out)
}

/// A state file (version 4). Which of its values are sensitive it says only in part: none of them is shown.
fn state_file(state: &Value) -> Result<Vec<Resource<'_>>, PlanError> {
    static ALL: Value = Value::Bool(true);
    let file = state.get("version").and_then(Value::as_u64) == Some(4) && state.get("resources").is_some();
    if !file {
        return Err(PlanError::NotAState);
    }
    let mut out = Vec::new();
    for resource in items(state, "resources") {
        let text = |name| resource.get(name).and_then(Value::as_str);
        let (Some("managed"), Some(kind), Some(name)) = (text("mode"), text("type"), text("name")) else { continue };
        let module = text("module").map_or_else(String::new, |module| format!("{module}."));
        for instance in items(resource, "instances").iter().filter(|one| one.get("deposed").is_none()) {
            let Some(values) = instance.get("attributes") else { continue };
            let index = match instance.get("index_key") {
                None | Some(Value::Null) => String::new(),
                Some(index) => format!("[{}]", json::compact(index)),
            };
            let address = Cow::Owned(format!("{module}{kind}.{name}{index}"));
            out.push(Resource { address, values, sensitive: Some(&ALL), depends_on: items(instance, "dependencies") });
        }
        within(out.len())?;
    }
    Ok(out)
}

fn provisioned(root: &Value) -> HashSet<String> {
    let mut out = HashSet::new();
    let mut modules = vec![(String::new(), root)];
    while let Some((path, module)) = modules.pop() {
        for resource in items(module, "resources").iter().filter(|one| !items(one, "provisioners").is_empty()) {
            out.extend(resource.get("address").and_then(Value::as_str).map(|address| format!("{path}{address}")));
        }
        let calls = module.get("module_calls").and_then(Value::as_object);
        for (name, call) in
            calls.into_iter().flat_map(Object::iter).filter(|(name, _)| path.len() + name.len() < MAX_PATH)
        {
            modules.extend(call.get("module").map(|module| (format!("{path}module.{name}."), module)));
        }
    }
    out
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).unwrap_or_default()
}

/// An address without `[0]` and `["key"]`: keys may hold dots, brackets and escaped quotes.
pub fn bare(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    let (mut inside, mut quoted, mut escaped) = (false, false, false);
    for letter in address.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' if inside => quoted = !quoted,
            ']' if inside && !quoted => inside = false,
            '[' if !inside => inside = true,
            _ if inside => {}
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn indexes_go_whatever_they_hold() {
        for (address, want) in [
            ("aws_x.y", "aws_x.y"),
            ("aws_x.y[0]", "aws_x.y"),
            ("module.a[\"b.c\"].aws_x.y[\"]\"]", "module.a.aws_x.y"),
            ("module.a[\"q\\\"].z\"].aws_x.y", "module.a.aws_x.y"),
        ] {
            assert_eq!(bare(address), want);
        }
    }
}
