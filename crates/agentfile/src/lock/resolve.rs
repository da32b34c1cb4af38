//! An Agentfile → its lock: each reference is asked of whoever can read it.
//!
//! Owns what is asked and in which order, and what of the answers is pinned. Reads neither disk nor network itself. Invariant: the lock
//! depends on the Agentfile and on the answers alone.

use std::collections::BTreeMap;

use writ_core::Digest;
use writ_core::json::{self, Value};

use super::{BaseImage, Lock, Locked, LockedFunction, LockedServer, LockedTool, VERSION};
use crate::agent::Agent;
use crate::cedar::Rules;
use crate::diagnostic::{Diagnostic, Place};
use crate::directive::{Base, Bundle, Directive, Function, Mcp, Sop, Toolset};
use crate::reference::{OciRef, ToolRef};

/// What a registry says of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Digest of the manifest.
    pub digest: String,
    /// Whether it is an agent's package.
    pub package: bool,
}

/// A server's word on its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Its version.
    pub version: String,
    /// Its tools' definitions.
    pub tools: Vec<Value>,
}

/// Who can read what an Agentfile refers to.
// EXTENSION POINT: the command reads disk and network, tests neither.
pub trait Sources {
    /// A file below the Agentfile's folder; `None` where there is none.
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, String>;
    /// The digest of every file below a folder by its path from there; `None` where there is no such folder.
    fn tree(&self, path: &str) -> Result<Option<BTreeMap<String, Digest>>, String>;
    /// A reference of a registry.
    fn registry(&self, reference: &OciRef) -> Result<Found, String>;
    /// The tools of an MCP server; `None` where nothing here knows how to ask it.
    fn server(&self, name: &str, address: Option<&str>) -> Result<Option<Shown>, String>;
}

/// What a name means that nothing here resolves: a runner has to know it.
const RUNNER: &str = "runner";

/// The lock of an Agentfile, or everything that could not be resolved, each at its line.
pub fn resolve(agent: &Agent, rules: &Rules, sources: &dyn Sources) -> Result<Lock, Vec<Diagnostic>> {
    let mut resolver = Resolver { agent, sources, found: Vec::new(), lock: empty(agent, rules) };
    for entry in &agent.entries {
        if let Err((what, why)) = resolver.entry(&entry.directive) {
            let help = "mend the reference, or take the line out";
            resolver.found.push(Diagnostic::error("unresolved", entry.argument(0), format!("`{what}`: {why}"), help));
        }
    }
    resolver.tools();
    if resolver.found.is_empty() { Ok(resolver.lock.sorted()) } else { Err(resolver.found) }
}

fn empty(agent: &Agent, rules: &Rules) -> Lock {
    Lock {
        version: VERSION.to_owned(),
        agentfile_hash: agent.digest(),
        base_image: None,
        tools: Vec::new(),
        toolsets: Vec::new(),
        functions: Vec::new(),
        skills: Vec::new(),
        sops: Vec::new(),
        mcp: Vec::new(),
        policy_hash: rules.digest(),
        credential_names: agent.creds().map(|(_, cred)| cred.name.clone()).collect(),
    }
}

type Wrong = (String, String);

struct Resolver<'a> {
    agent: &'a Agent,
    sources: &'a dyn Sources,
    found: Vec<Diagnostic>,
    lock: Lock,
}

impl Resolver<'_> {
    fn entry(&mut self, directive: &Directive) -> Result<(), Wrong> {
        match directive {
            Directive::From(Base::Reference(reference)) => {
                let found = self.sources.registry(reference).map_err(|why| (reference.text.clone(), why))?;
                self.lock.base_image = Some(BaseImage {
                    registry: reference.registry.clone().unwrap_or_else(|| "docker.io".to_owned()),
                    name: reference.repository.clone(),
                    tag: reference.tag.clone(),
                    digest: found.digest,
                    package: found.package,
                });
            }
            Directive::Toolset(set) => {
                let locked = self.toolset(set)?;
                self.lock.toolsets.push(locked);
            }
            Directive::Function(function) => {
                let locked = self.function(function)?;
                self.lock.functions.push(locked);
            }
            Directive::Skill(bundle) => {
                let locked = self.bundle(bundle, "skills")?;
                self.lock.skills.push(locked);
            }
            Directive::Sop(Sop::Reference { bundle }) => {
                let locked = self.bundle(bundle, "sops")?;
                self.lock.sops.push(locked);
            }
            Directive::Sop(Sop::Inline { name, block }) => {
                let hash = Some(Digest::of(block.text.as_bytes()).to_string());
                self.lock.sops.push(Locked {
                    name: name.clone(),
                    version: String::new(),
                    hash,
                    source: "inline".to_owned(),
                });
            }
            Directive::Mcp(mcp) => {
                let locked = self.server(mcp)?;
                self.lock.mcp.push(locked);
            }
            _ => {}
        }
        Ok(())
    }

    fn bundle(&self, bundle: &Bundle, folder: &str) -> Result<Locked, Wrong> {
        let name = bundle.name().to_owned();
        let locked = |version: String, hash: Option<String>, source: String| Locked {
            name: name.clone(),
            version,
            hash,
            source,
        };
        let (path, must) = match bundle {
            Bundle::Registry(reference) => {
                let found = self.sources.registry(reference).map_err(|why| (reference.text.clone(), why))?;
                let version = reference.tag.clone().unwrap_or_default();
                return Ok(locked(version, Some(found.digest), reference.text.clone()));
            }
            Bundle::Local { path } => (path.clone(), true),
            Bundle::Named { name } => (format!("{folder}/{name}"), false),
        };
        let failed = |why: String| (path.clone(), why);
        if let Some(bytes) = self.sources.file(&path).map_err(failed)? {
            return Ok(locked(version(&bytes), Some(Digest::of(&bytes).to_string()), format!("./{path}")));
        }
        if let Some(tree) = self.sources.tree(&path).map_err(failed)? {
            let main = ["SKILL.md", "SOP.md"].into_iter().find(|name| tree.contains_key(*name));
            let main = main.ok_or_else(|| (path.clone(), "there is no SKILL.md in the folder".to_owned()))?;
            let main = self.sources.file(&format!("{path}/{main}")).map_err(failed)?.unwrap_or_default();
            return Ok(locked(version(&main), Some(tree_digest(&tree).to_string()), format!("./{path}")));
        }
        if must {
            Err((path, "there is no such file or folder".to_owned()))
        } else {
            Ok(locked(String::new(), None, RUNNER.to_owned()))
        }
    }

    fn function(&self, function: &Function) -> Result<LockedFunction, Wrong> {
        let (path, symbol) = match function {
            Function::Named { name } => {
                let (path, source) = (name.clone(), RUNNER.to_owned());
                return Ok(LockedFunction { path, hash: None, type_hint_digest: None, source, version: String::new() });
            }
            Function::Local { path, symbol } => (path, symbol),
        };
        let bytes = self.sources.file(path).map_err(|why| (path.clone(), why))?;
        let bytes = bytes.ok_or_else(|| (path.clone(), "there is no such file".to_owned()))?;
        let text = String::from_utf8_lossy(&bytes);
        let head = declaration(&text, symbol)
            .ok_or_else(|| (format!("{path}:{symbol}"), format!("nothing in the file declares `{symbol}`")))?;
        Ok(LockedFunction {
            path: format!("./{path}:{symbol}"),
            hash: Some(Digest::of(&bytes)),
            type_hint_digest: Some(Digest::of(head.as_bytes())),
            source: "local".to_owned(),
            version: String::new(),
        })
    }

    /// A set's list: `toolsets/<name>.json`, an array of tools' references.
    fn toolset(&mut self, set: &Toolset) -> Result<Locked, Wrong> {
        let tool = match set {
            Toolset::Registry { path, digest } => {
                let wrong = |why: String| (path.clone(), why);
                let reference = OciRef::parse(&format!("{path}@{digest}")).map_err(wrong)?;
                let found = self.sources.registry(&reference).map_err(wrong)?;
                if found.digest != *digest {
                    return Err((path.clone(), format!("the registry has {}, not what is pinned", found.digest)));
                }
                return Ok(Locked {
                    name: path.clone(),
                    version: String::new(),
                    hash: Some(found.digest),
                    source: format!("registry://{path}"),
                });
            }
            Toolset::Named(tool) => tool,
        };
        let (name, path) = (tool.to_string(), set_path(tool));
        let wrong = |why: String| (name.clone(), why);
        let bytes = self.sources.file(&path).map_err(wrong)?;
        let bytes = bytes.ok_or_else(|| {
            wrong(format!("a set of tools has to become a list of tools, and there is no `{path}` with one"))
        })?;
        for tool in set_tools(&bytes).map_err(|why| wrong(format!("{path}: {why}")))? {
            let locked = self.tool(&tool).map_err(|(_, why)| wrong(why))?;
            self.lock.tools.push(locked);
        }
        Ok(Locked {
            name: name.clone(),
            version: String::new(),
            hash: Some(Digest::of(&bytes).to_string()),
            source: format!("./{path}"),
        })
    }

    fn server(&self, mcp: &Mcp) -> Result<LockedServer, Wrong> {
        let name = mcp.name().to_owned();
        let declared =
            self.agent.servers().find(|(_, (known, _))| *known == name).map(|(_, (_, address))| address.text.as_str());
        let shown = self.sources.server(&name, declared).map_err(|why| (name.clone(), why))?;
        let version = if let Mcp::Registry { version, .. } = mcp { version.clone() } else { String::new() };
        let source = match (mcp, declared) {
            (Mcp::Registry { path, version }, _) => format!("registry://{path}@{version}"),
            (Mcp::Named { .. }, Some(address)) => address.to_owned(),
            (Mcp::Named { .. }, None) => if shown.is_some() { "stdio" } else { RUNNER }.to_owned(),
        };
        let Some(shown) = shown else {
            return Ok(LockedServer { name, version, source, digest: None, tools: Vec::new() });
        };
        let mut by_name: Vec<(String, &Value)> = Vec::new();
        for tool in &shown.tools {
            let called = tool
                .get("name")
                .and_then(Value::as_str)
                .ok_or_else(|| (name.clone(), "a tool without a name".to_owned()))?;
            by_name.push((called.to_owned(), tool));
        }
        by_name.sort_by(|a, b| a.0.cmp(&b.0));
        let whole = Value::Array(by_name.iter().map(|(_, tool)| (*tool).clone()).collect());
        let tools =
            by_name.iter().map(|(called, tool)| described(format!("mcp:{name}.{called}"), tool, format!("mcp:{name}")));
        let version = if version.is_empty() { shown.version.clone() } else { version };
        Ok(LockedServer {
            digest: Some(Digest::of(json::canonical(&whole).as_bytes())),
            tools: tools.collect(),
            name,
            version,
            source,
        })
    }

    /// The tools that the file declares: of a server that was asked, of a description beside the file, or a runner's.
    fn tools(&mut self) {
        for (entry, tool) in self.agent.tools() {
            match self.tool(tool) {
                Ok(locked) if self.lock.tools.iter().any(|known| known.name == locked.name) => {}
                Ok(locked) => self.lock.tools.push(locked),
                Err((what, why)) => {
                    let place: Place = entry.argument(0);
                    self.found.push(Diagnostic::error(
                        "unresolved",
                        place,
                        format!("`{what}`: {why}"),
                        "mend the reference, or take the line out",
                    ));
                }
            }
        }
    }

    fn tool(&self, tool: &ToolRef) -> Result<LockedTool, Wrong> {
        let name = tool.to_string();
        if tool.namespace == "mcp" {
            let server = tool.name.split('.').next().unwrap_or_default();
            let asked = self.lock.mcp.iter().find(|known| known.name == server && known.digest.is_some());
            if let Some(asked) = asked {
                let shown = asked.tools.iter().find(|known| known.name == name).cloned();
                return shown.ok_or_else(|| (name, format!("the server `{server}` has no such tool")));
            }
        }
        locked_tool(tool, self.sources)
    }
}

/// Where a tool's description is, from the Agentfile's folder.
pub fn description_path(tool: &ToolRef) -> String {
    format!("{}.json", program_path(tool))
}

/// Where a tool's program is, where it is one.
pub fn program_path(tool: &ToolRef) -> String {
    format!("tools/{}", tool.name.replace('/', "_"))
}

/// Where a set's list is.
pub fn set_path(set: &ToolRef) -> String {
    format!("toolsets/{}.json", set.name)
}

/// The tools in a set's list.
pub fn set_tools(bytes: &[u8]) -> Result<Vec<ToolRef>, String> {
    let tools: Vec<String> = json::from_slice(bytes).map_err(|error| error.to_string())?;
    tools.iter().map(|text| ToolRef::parse(text).ok_or_else(|| format!("`{text}` is no tool"))).collect()
}

/// A tool by what is beside the Agentfile: its description, its program, or neither. No server's.
pub fn locked_tool(tool: &ToolRef, sources: &dyn Sources) -> Result<LockedTool, (String, String)> {
    let name = tool.to_string();
    let file = |path: &str| sources.file(path).map_err(|why| (name.clone(), why));
    let (path, program) = (description_path(tool), program_path(tool));
    let executable = file(&program)?.map(|bytes| Digest::of(&bytes));
    let Some(bytes) = file(&path)? else {
        let source = if executable.is_some() { format!("./{program}") } else { RUNNER.to_owned() };
        return Ok(LockedTool {
            name,
            version: String::new(),
            schema_hash: None,
            source,
            digest: None,
            program: executable,
        });
    };
    let value = json::parse(&bytes).map_err(|error| (name.clone(), format!("{path}: {error}")))?;
    Ok(LockedTool { program: executable, ..described(name, &value, format!("./{path}")) })
}

/// A tool by its description: the digest of its schemas, and of the whole.
pub fn described(name: String, tool: &Value, source: String) -> LockedTool {
    let of = |names: &[&str]| names.iter().find_map(|name| tool.get(name)).cloned().unwrap_or(Value::Null);
    let schemas = Value::Array(vec![
        of(&["inputSchema", "inputs", "input_schema"]),
        of(&["outputSchema", "outputs", "output_schema"]),
    ]);
    LockedTool {
        name,
        version: tool.get("version").and_then(Value::as_str).unwrap_or_default().to_owned(),
        schema_hash: Some(Digest::of(json::canonical(&schemas).as_bytes())),
        source,
        digest: Some(Digest::of(json::canonical(tool).as_bytes()).to_string()),
        program: None,
    }
}

/// Digest of a folder: the canonical JSON of its files' paths and digests.
fn tree_digest(tree: &BTreeMap<String, Digest>) -> Digest {
    let pairs: Vec<(&String, &Digest)> = tree.iter().collect();
    Digest::of(json::to_canonical(&pairs).as_bytes())
}

/// What belongs to no bundle and no package: version control, what a build made.
pub fn is_left_out(name: &str) -> bool {
    matches!(name, ".git" | "__pycache__" | "node_modules" | ".venv" | ".DS_Store") || name.ends_with(".pyc")
}

/// `version:` in a text's front matter.
fn version(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return String::new();
    }
    let inside = lines.take_while(|line| line.trim_end() != "---");
    let found = inside.filter_map(|line| line.trim_start().strip_prefix("version:")).next();
    found.map_or_else(String::new, |version| version.trim().trim_matches(['"', '\'']).to_owned())
}

/// The line that declares a name, as far as its parameters and types: from the name to what begins the body.
fn declaration(text: &str, symbol: &str) -> Option<String> {
    let words = [
        "def ",
        "async def ",
        "function ",
        "export function ",
        "export async function ",
        "async function ",
        "fn ",
        "pub fn ",
        "func ",
        "const ",
        "export const ",
        "class ",
    ];
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let named = words.iter().any(|word| {
            let rest = trimmed.strip_prefix(word).and_then(|rest| rest.strip_prefix(symbol));
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        if named {
            let rest = text.get(start..)?;
            let mut depth = 0usize;
            let end = rest.char_indices().find(|(_, c)| {
                match c {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && matches!(c, '{' | '\n')
            });
            let head = rest.get(..end.map_or(rest.len(), |(at, _)| at))?;
            return Some(head.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        start += line.len();
    }
    None
}
