//! The lists of a policy that is learnt from calls, and why each entry is there.
//!
//! Owns what is put into them, and what is taken out again because it stops a call. Invariant: the policy it gives parses, and holds each entry
//! once, in an order that does not depend on that of the calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{ToolKind, secret};
use writ_policy::{Glob, Uses};
use writ_sandbox::{Noted, Use};
use writ_shell::Access;

use super::super::files::{self, Files, Ground, plain};
use super::{Entry, Group, commands, example};
use crate::Home;

/// What is denied beside: which programs nobody needs, and where a cloud hands out credentials.
use crate::governing::starter::{METADATA, NEVER};

/// An entry's reason.
#[derive(Clone, Debug, Default)]
struct Why {
    calls: usize,
    example: String,
}

type List = BTreeMap<String, Why>;

/// The lists.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    name: String,
    tools: List,
    tools_deny: List,
    files: List,
    read_only: List,
    files_deny: List,
    hosts: List,
    hosts_deny: List,
    /// Calls that hold a token are asked about.
    tokens: bool,
}

/// A policy with these lists.
#[derive(Serialize)]
pub struct Policy<'a> {
    version: &'static str,
    name: &'a str,
    tools: Tools<'a>,
    files: FileLists<'a>,
    domains: HostLists<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'static str>,
}

#[derive(Serialize)]
struct Tools<'a> {
    allow: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileLists<'a> {
    allow: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read_only: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<&'a str>,
}

#[derive(Serialize)]
struct HostLists<'a> {
    allow: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<&'a str>,
}

fn names(list: &List) -> Vec<&str> {
    list.keys().map(String::as_str).collect()
}

impl Lists {
    /// The lists for what calls use.
    pub fn of(groups: &[(&Group<'_>, Uses<'_>)], root: &Path, home: &Home) -> Self {
        let name = root.file_name().map_or_else(|| "learnt".into(), |name| name.to_string_lossy());
        let mut out = Self { name: format!("learnt-{name}"), tokens: true, ..Self::default() };
        for pattern in NEVER {
            out.tools_deny.insert(format!("Bash:{pattern}"), Why::default());
        }
        for host in METADATA {
            out.hosts_deny.insert((*host).to_owned(), Why::default());
        }
        out.take_tools(groups);
        out.take_files(groups, root, home);
        for (group, uses) in groups {
            for host in &uses.hosts {
                add(&mut out.hosts, (*host).to_owned(), group);
            }
        }
        out
    }

    fn take_tools(&mut self, groups: &[(&Group<'_>, Uses<'_>)]) {
        let all = groups.iter().flat_map(|(_, uses)| uses.commands.iter().map(|command| command.text));
        let patterns = commands::patterns(all);
        // Which pattern a command went into.
        let mut of: BTreeMap<&str, &str> = BTreeMap::new();
        for (pattern, texts) in &patterns {
            of.extend(texts.iter().map(|text| (*text, pattern.as_str())));
        }
        for (group, uses) in groups {
            let call = &group.one.call.call;
            let tool = call.known_as().unwrap_or_else(|| call.tool.clone());
            for command in &uses.commands {
                if let Some(pattern) = of.get(command.text) {
                    add(&mut self.tools, format!("Bash:{pattern}"), group);
                }
            }
            match &call.kind {
                ToolKind::Shell { .. } if uses.commands.is_empty() => {
                    // Builtins that no list need name; the tool itself has to be there.
                    self.tools.entry("Bash:true".to_owned()).or_default().calls += group.count;
                }
                ToolKind::Shell { .. } => {}
                ToolKind::Fetch { .. } | ToolKind::Delegate { .. } if !uses.names.is_empty() => {
                    for name in uses.names.iter().filter(|name| !name.is_empty()) {
                        add(&mut self.tools, format!("{tool}:{}", star(name)), group);
                    }
                }
                // Of a tool that acts on files, the lists of files say which.
                // What a policy would take for a slip it cannot name: such a call is left out.
                _ if writ_policy::Policy::may_name(&tool) => {
                    add(&mut self.tools, secret::mask_id(&tool).into_owned(), group)
                }
                _ => {}
            }
        }
    }

    fn take_files(&mut self, groups: &[(&Group<'_>, Uses<'_>)], root: &Path, home: &Home) {
        let mut noted = Noted::default();
        for file in groups.iter().flat_map(|(_, uses)| &uses.files) {
            let path = PathBuf::from(file.path);
            let folder = file.access == Access::List || path.is_dir();
            let changed = file.access == Access::Write;
            let used = noted.paths.entry(path).or_default();
            *used = Use {
                read: used.read || !changed,
                changed: used.changed || changed,
                came_or_went: used.came_or_went || changed && !folder && !Path::new(file.path).exists(),
                folder: used.folder || folder,
                whole: used.whole || file.tree || file.into,
            };
        }
        let ground = Ground { root, home: home.user.as_deref(), search: &[], confinement: None };
        let Files { allow, read_only, deny, .. } = files::files(&noted, &ground);
        for (list, texts) in [(&mut self.files, allow), (&mut self.read_only, read_only), (&mut self.files_deny, deny)]
        {
            list.extend(texts.into_iter().filter(|text| !text.is_empty()).map(|text| (text, Why::default())));
        }
        // Where each file that calls use is named.
        let folder = root.to_string_lossy();
        let globs = |list: &List| list.keys().map(|text| whole(text, &folder, home)).collect::<Vec<_>>();
        for list in [&mut self.files, &mut self.read_only] {
            let globs = globs(list);
            for (group, uses) in groups {
                let mut seen = vec![false; globs.len()];
                for file in &uses.files {
                    for ((glob, seen), why) in globs.iter().zip(&mut seen).zip(list.values_mut()) {
                        if !*seen && glob.as_ref().is_some_and(|glob| glob.matches(file.path)) {
                            *seen = true;
                            why.note(group);
                        }
                    }
                }
            }
        }
    }

    /// Puts an entry in; not where it is there.
    pub fn allow(&mut self, list: Allowed, text: String, group: &Group<'_>) -> bool {
        let is_tool = matches!(list, Allowed::Tool);
        let list = match list {
            Allowed::Tool => &mut self.tools,
            Allowed::Host => &mut self.hosts,
        };
        let named = text.split(':').next().unwrap_or_default();
        if text.is_empty() || list.contains_key(&text) || is_tool && !writ_policy::Policy::may_name(named) {
            return false;
        }
        add(list, text, group);
        true
    }

    /// Names a file by itself, and what lies below where it is a folder.
    pub fn allow_path(&mut self, path: &str, root: &Path, home: &Home, group: &Group<'_>) -> bool {
        let (front, rest) = place(Path::new(path), root, home.user.as_deref());
        let text = format!("{front}{}", plain(&rest));
        let below = if text.ends_with('/') || text.is_empty() { format!("{text}**") } else { format!("{text}/**") };
        let mut texts = vec![below];
        if !text.is_empty() && text != "/" {
            texts.insert(0, text);
        }
        // A file first; its folder's content where that did not do.
        let Some(text) = texts.into_iter().find(|text| !self.files.contains_key(text)) else { return false };
        add(&mut self.files, text, group);
        true
    }

    /// Takes the entry at a pointer of the policy out. Gives its text.
    pub fn forbid_no_more(&mut self, pointer: &str) -> Option<String> {
        if pointer == "/tokens" {
            return std::mem::take(&mut self.tokens).then(|| "tokens: ask".to_owned());
        }
        let (list, at) = pointer.rsplit_once('/')?;
        let list = match list {
            "/tools/deny" => &mut self.tools_deny,
            "/files/deny" => &mut self.files_deny,
            "/files/readOnly" => &mut self.read_only,
            "/domains/deny" => &mut self.hosts_deny,
            _ => return None,
        };
        let text = list.keys().nth(at.parse().ok()?)?.clone();
        list.remove(&text);
        Some(text)
    }

    /// The policy.
    pub fn to_policy(&self) -> Policy<'_> {
        Policy {
            version: "1.0",
            name: &self.name,
            tools: Tools { allow: names(&self.tools), deny: names(&self.tools_deny) },
            files: FileLists {
                allow: names(&self.files),
                read_only: names(&self.read_only),
                deny: names(&self.files_deny),
            },
            domains: HostLists { allow: names(&self.hosts), deny: names(&self.hosts_deny) },
            tokens: self.tokens.then_some("ask"),
        }
    }

    /// Each list's entries with their reasons.
    pub fn entries(&self) -> BTreeMap<&'static str, Vec<Entry>> {
        let lists = [
            ("/tools/allow", &self.tools),
            ("/tools/deny", &self.tools_deny),
            ("/files/allow", &self.files),
            ("/files/readOnly", &self.read_only),
            ("/files/deny", &self.files_deny),
            ("/domains/allow", &self.hosts),
            ("/domains/deny", &self.hosts_deny),
        ];
        let entry =
            |(text, why): (&String, &Why)| Entry { text: text.clone(), calls: why.calls, example: why.example.clone() };
        lists.into_iter().map(|(pointer, list)| (pointer, list.iter().map(entry).collect())).collect()
    }
}

/// The lists that name what is allowed.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// `tools.allow`
    Tool,
    /// `domains.allow`
    Host,
}

impl Why {
    fn note(&mut self, group: &Group<'_>) {
        self.calls += group.count;
        if self.example.is_empty() {
            self.example = example(group.one.call);
        }
    }
}

fn add(list: &mut List, text: String, group: &Group<'_>) {
    list.entry(text).or_default().note(group);
}

/// A text as a pattern: what is not known may be anything.
pub fn star(text: &str) -> String {
    text.replace('…', "*")
}

/// A path below the policy's folder, below the home, or from the root.
fn place(path: &Path, root: &Path, home: Option<&Path>) -> (&'static str, String) {
    let below_home = || home.and_then(|home| path.strip_prefix(home).ok());
    let (front, rest) = match (path.strip_prefix(root), below_home()) {
        (Ok(rest), _) => ("", rest),
        (_, Some(rest)) => ("~/", rest),
        _ => ("/", path.strip_prefix("/").unwrap_or(path)),
    };
    (front, rest.to_string_lossy().into_owned())
}

/// A pattern of a list of allowed files, from the root.
fn whole(text: &str, root: &str, home: &Home) -> Option<Glob> {
    match (text.strip_prefix("~/"), text.starts_with('/')) {
        (Some(rest), _) => Glob::below(&home.user_text()?, rest).ok(),
        (None, true) => Glob::parse(text).ok(),
        (None, false) => Glob::below(root, text).ok(),
    }
}
