//! `agentrc.lock`: what an Agentfile's references were when they were resolved, by digest.
//!
//! Owns the format of the lockfile and its comparison with another. Resolves nothing (the engine does) and has no room for a secret's
//! value. Invariant: the same Agentfile and the same things behind it give the same bytes, whenever and wherever. Specification: §13.
//! Page: `spec/lock.md`.

mod resolve;

use serde::{Deserialize, Serialize};
use writ_core::Digest;
use writ_core::json::{self, FormatError, Value};

use crate::agent::{Agent, Entry};
use crate::directive::{Base, Directive, Toolset};
use crate::reference::{OciRef, ToolRef};

pub use resolve::{
    Found, Shown, Sources, described, description_path, is_left_out, locked_tool, program_path, resolve, set_path,
    set_tools,
};

/// The version of the format.
pub const VERSION: &str = "1";

/// A lockfile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// [`VERSION`].
    pub version: String,
    /// Digest of the Agentfile's bytes.
    pub agentfile_hash: Digest,
    /// What `FROM` names; absent for `scratch` and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_image: Option<BaseImage>,
    /// Tools, sorted by name; those of tool sets are among them.
    pub tools: Vec<LockedTool>,
    /// Sets of tools, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<Locked>,
    /// Functions, sorted by path.
    pub functions: Vec<LockedFunction>,
    /// Skills, sorted by name.
    pub skills: Vec<Locked>,
    /// Procedures, sorted by name.
    pub sops: Vec<Locked>,
    /// MCP servers, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<LockedServer>,
    /// Digest of the policy that is in force: blocks and lowered directives, in order.
    pub policy_hash: Digest,
    /// Names of secrets, sorted. Never values.
    pub credential_names: Vec<String>,
}

/// A base by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseImage {
    /// The registry's host.
    pub registry: String,
    /// The repository.
    pub name: String,
    /// The tag it was resolved by, if one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Digest of the manifest.
    pub digest: String,
    /// Whether it is an agent's package, whose ceiling holds.
    pub package: bool,
}

impl BaseImage {
    /// Whether it is what a reference names.
    pub fn is_named(&self, reference: &OciRef) -> bool {
        let digest = reference.digest.as_ref().is_none_or(|digest| *digest == self.digest);
        let registry = reference.registry.as_deref().unwrap_or("docker.io");
        digest && self.name == reference.repository && self.registry == registry && self.tag == reference.tag
    }

    /// Whether it is what an agent's `FROM` names.
    pub fn is_of(&self, agent: &Agent) -> bool {
        matches!(agent.base(), Some(Base::Reference(reference)) if self.is_named(reference))
    }
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTool {
    /// `utcp:file_read`.
    pub name: String,
    /// Its version; empty where it states none.
    pub version: String,
    /// Digest of the canonical JSON of its input and output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_hash: Option<Digest>,
    /// Where its description was found: a path, a reference, `mcp:<server>`, or `runner` where a runner has to know it.
    pub source: String,
    /// Digest of its whole description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Digest of the program beside the Agentfile that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Digest>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedFunction {
    /// As it was written: `./functions/review.py:summarize_diff`.
    pub path: String,
    /// Digest of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    /// Digest of the line that declares it: its parameters and their types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_hint_digest: Option<Digest>,
    /// `local`, or `runner` where a runner has to know it.
    pub source: String,
    /// Its version; empty where it states none.
    pub version: String,
}

/// A skill, a procedure, a set of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// Its name.
    pub name: String,
    /// Its version; empty where it states none.
    pub version: String,
    /// Digest of its content: of the file, of a folder's tree, of a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Its path or reference, `inline`, or `runner` where a runner has to know it.
    pub source: String,
}

/// An MCP server: the tools that it showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedServer {
    /// Its name.
    pub name: String,
    /// The version it states.
    pub version: String,
    /// Its address, its reference, or `stdio`.
    pub source: String,
    /// Digest of the canonical JSON of its tools' definitions, sorted by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its tools, sorted by name.
    pub tools: Vec<LockedTool>,
}

impl Lock {
    /// Reads a lockfile.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        json::from_slice(bytes)
    }

    /// The file's bytes: canonical in content, indented for review, with a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = json::pretty(&json::to_value(&self.sorted()));
        text.push('\n');
        text.into_bytes()
    }

    /// The tools of an agent's sets that no line declares, as references. A set in a registry tells none.
    pub fn brought(&self, agent: &Agent) -> Vec<String> {
        let is_set = |entry: &Entry| matches!(&entry.directive, Directive::Toolset(Toolset::Named(_)));
        if !agent.entries.iter().any(is_set) {
            return Vec::new();
        }
        let declared: Vec<String> = agent.tools().map(|(_, tool)| tool.to_string()).collect();
        let names = self.tools.iter().map(|tool| &tool.name);
        names.filter(|name| !declared.contains(name) && ToolRef::parse(name).is_some()).cloned().collect()
    }

    /// Digest of its canonical JSON.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(&self.sorted()).as_bytes())
    }

    /// The same with every list in order.
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut out = self.clone();
        out.tools.sort_by(|a, b| a.name.cmp(&b.name));
        out.toolsets.sort_by(|a, b| a.name.cmp(&b.name));
        out.functions.sort_by(|a, b| a.path.cmp(&b.path));
        out.skills.sort_by(|a, b| a.name.cmp(&b.name));
        out.sops.sort_by(|a, b| a.name.cmp(&b.name));
        out.mcp.sort_by(|a, b| a.name.cmp(&b.name));
        for server in &mut out.mcp {
            server.tools.sort_by(|a, b| a.name.cmp(&b.name));
        }
        out.credential_names.sort();
        out.credential_names.dedup();
        out
    }
}

/// In what one lock differs from another, a line each: `tools/utcp:x: sha256:… → sha256:…`.
pub fn differences(before: &Lock, after: &Lock) -> Vec<String> {
    let mut out = Vec::new();
    compare("", Some(&json::to_value(&before.sorted())), Some(&json::to_value(&after.sorted())), &mut out);
    out
}

/// What a member of a list is called.
fn name_of(value: &Value) -> Option<&str> {
    value.get("name").or_else(|| value.get("path")).and_then(Value::as_str)
}

fn compare(place: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<String>) {
    if before == after {
        return;
    }
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), json::canonical);
    let join = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut names: Vec<&str> = old.iter().chain(new.iter()).map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(&join(name), old.get(name), new.get(name), out);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if old.iter().chain(new).all(|item| name_of(item).is_some()) =>
        {
            let mut names: Vec<&str> = old.iter().chain(new).filter_map(name_of).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let of = |list: &'_ [Value]| list.iter().position(|item| name_of(item) == Some(name));
                compare(&join(name), of(old).and_then(|at| old.get(at)), of(new).and_then(|at| new.get(at)), out);
            }
        }
        _ => out.push(format!("{place}: {} → {}", shown(before), shown(after))),
    }
}

impl Lock {
    /// What its entries are called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().map(|tool| tool.name.as_str());
        let bundles = self.toolsets.iter().chain(&self.skills).chain(&self.sops).map(|bundle| bundle.name.as_str());
        let functions = self.functions.iter().map(|function| function.path.as_str());
        tools.chain(bundles).chain(functions).chain(self.mcp.iter().map(|server| server.name.as_str()))
    }

    /// This lock with every entry of another that is not called one of `names`: what is not to be updated stays.
    #[must_use]
    pub fn keeping(&self, known: &Self, names: &[String]) -> Self {
        let mut out = self.clone();
        let stays = |name: &str| !names.iter().any(|wanted| wanted == name);
        keep(&mut out.tools, &known.tools, |tool| &tool.name, &stays);
        keep(&mut out.toolsets, &known.toolsets, |set| &set.name, &stays);
        keep(&mut out.functions, &known.functions, |function| &function.path, &stays);
        keep(&mut out.skills, &known.skills, |skill| &skill.name, &stays);
        keep(&mut out.sops, &known.sops, |sop| &sop.name, &stays);
        keep(&mut out.mcp, &known.mcp, |server| &server.name, &stays);
        if let (Some(base), Some(old)) = (&out.base_image, &known.base_image)
            && stays("base")
            && (&base.registry, &base.name, &base.tag) == (&old.registry, &old.name, &old.tag)
        {
            out.base_image = Some(old.clone());
        }
        out
    }
}

fn keep<T: Clone>(new: &mut [T], old: &[T], name: impl Fn(&T) -> &String, stays: &impl Fn(&str) -> bool) {
    for item in new.iter_mut().filter(|item| stays(name(item))) {
        if let Some(known) = old.iter().find(|known| name(known) == name(item)) {
            *item = known.clone();
        }
    }
}
