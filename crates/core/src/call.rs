//! What an agent asks for, in words that fit every client.

use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::json::{self, Value};

/// One tool call as the agent put it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name as the client spells it.
    pub tool: String,
    /// What the tool does, and with what.
    pub kind: ToolKind,
    /// The tool's input: an object in every client known so far, but nothing here relies on it.
    pub input: Value,
    /// The directory that relative paths in the input hang off, absolute.
    pub cwd: String,
    /// The numbers that came with it and that `input` does not keep, as they were written ([`json::rounded`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounded: Vec<String>,
}

/// What a tool does, whatever its client calls it, with the members of its input that say to what. Written as JSON it is the `does`
/// of `spec/clients/generic.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolKind {
    /// Hands a line to a shell.
    Shell {
        /// The line.
        command: String,
    },
    /// Reads files.
    Read {
        /// Which.
        paths: Vec<String>,
    },
    /// Writes whole files.
    Write {
        /// Which.
        paths: Vec<String>,
    },
    /// Changes parts of files.
    Edit {
        /// Which.
        paths: Vec<String>,
        /// Whether the client looks elsewhere for one that is not there.
        #[serde(default, skip_serializing_if = "is_false")]
        searched: bool,
    },
    /// Fetches from the network.
    Fetch {
        /// From where.
        url: String,
    },
    /// Asks a search engine.
    WebSearch,
    /// Starts another agent.
    Delegate {
        /// Of which kind.
        subagent: String,
    },
    /// Calls a tool of an MCP server.
    Mcp {
        /// The server, as the client's configuration names it.
        server: String,
        /// The tool, as the server names it.
        tool: String,
    },
    /// Concerns the client alone: to-do lists, questions to its user, its own commands.
    Own,
    /// Nothing is known of it.
    Other,
    /// Its input lacks what its kind cannot do without.
    Malformed {
        /// What is missing.
        why: String,
    },
    /// Searches below a folder.
    #[serde(untagged)]
    Search(Search),
}

/// What a search looks for, and where; without a folder in the working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Search {
    /// Files by their contents.
    #[serde(rename = "search-contents")]
    Contents {
        /// The folder, or a file.
        #[serde(rename = "folder", skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// More of them.
        #[serde(rename = "also", default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
        /// Names of the files that are looked into.
        #[serde(skip_serializing_if = "Option::is_none")]
        glob: Option<String>,
        /// Their type, as ripgrep calls it.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        file_type: Option<String>,
    },
    /// Files by their names.
    #[serde(rename = "search-names")]
    Names {
        /// The folder.
        #[serde(rename = "folder", skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// More of them.
        #[serde(rename = "also", default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
        /// The names.
        pattern: String,
    },
    /// A folder's entries.
    #[serde(rename = "list")]
    Folder {
        /// The folder.
        #[serde(rename = "folder", skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// More of them.
        #[serde(rename = "also", default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Search {
    /// The folders it looks into, if it names any.
    pub fn paths(&self) -> Vec<&str> {
        let (Self::Contents { path, others, .. } | Self::Names { path, others, .. } | Self::Folder { path, others }) =
            self;
        path.iter().chain(others).map(String::as_str).collect()
    }
}

/// Canonical tools that concern the client alone.
pub const OWN_TOOLS: [&str; 20] = [
    "TodoWrite",
    "TodoRead",
    "BashOutput",
    "KillShell",
    "KillBash",
    "ExitPlanMode",
    "EnterPlanMode",
    "Skill",
    "SlashCommand",
    "AskUserQuestion",
    "ToolSearch",
    "TaskCreate",
    "TaskUpdate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "EnterWorktree",
    "ExitWorktree",
    "ListMcpResources",
];

impl ToolCall {
    /// A call of a tool by its canonical name and with its canonical input (`spec/clients/generic.md`).
    pub fn new(tool: impl Into<String>, input: Value, cwd: impl Into<String>) -> Self {
        let tool = tool.into();
        let kind = ToolKind::canonical(&tool, &input);
        Self::of(tool, kind, input, cwd)
    }

    /// A call that does what `kind` says, whatever its name and its input.
    pub fn of(tool: impl Into<String>, kind: ToolKind, input: Value, cwd: impl Into<String>) -> Self {
        Self { tool: tool.into(), kind, input, cwd: cwd.into(), rounded: Vec::new() }
    }

    /// The text member `name` of the input, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }

    /// What rows, approvals and attestations call its input by: the SHA-256 of the input's canonical JSON. Where name and input do not
    /// say what the call does, a line with the canonical JSON of its kind goes before; where the input has numbers that a double does
    /// not keep, a line with an array of them as they were written. Canonical JSON holds no line break and no kind is an array, so calls
    /// that do different things never have the same digest.
    pub fn digest(&self) -> Digest {
        let kind = (!self.is_canonical()).then(|| json::to_canonical(&self.kind));
        let rounded = (!self.rounded.is_empty()).then(|| json::to_canonical(&self.rounded));
        let lines: Vec<String> = kind.into_iter().chain(rounded).chain([json::canonical(&self.input)]).collect();
        Digest::of(lines.join("\n").as_bytes())
    }

    /// Whether name and input alone say what it does.
    pub fn is_canonical(&self) -> bool {
        ToolKind::canonical(&self.tool, &self.input) == self.kind
    }

    /// The canonical name that a policy's rules may call it by, where that is not its own.
    pub fn known_as(&self) -> Option<String> {
        if self.is_canonical() {
            return (self.tool == "Monitor").then(|| "Bash".to_owned());
        }
        self.kind.name().filter(|name| *name != self.tool)
    }
}

impl ToolKind {
    /// Changes parts of just these files.
    pub fn edit(paths: Vec<String>) -> Self {
        Self::Edit { paths, searched: false }
    }

    /// What a canonical tool does with its input.
    pub fn canonical(tool: &str, input: &Value) -> Self {
        Self::of(tool, input).unwrap_or_else(|why| Self::Malformed { why })
    }

    fn of(tool: &str, input: &Value) -> Result<Self, String> {
        let optional = |name: &str| match input.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().map(|text| Some(text.to_owned())).ok_or(format!("`{name}` is not a text")),
        };
        let text = |name: &str| optional(name)?.ok_or_else(|| format!("`{tool}` without a text `{name}`"));
        let paths = |name: &str| text(name).map(|path| vec![path]);
        Ok(match tool {
            "Bash" | "Monitor" => Self::Shell { command: text("command")? },
            "Read" => Self::Read { paths: paths("file_path")? },
            "NotebookRead" => Self::Read { paths: paths("notebook_path")? },
            "Write" => Self::Write { paths: paths("file_path")? },
            "Edit" | "MultiEdit" => Self::edit(paths("file_path")?),
            "NotebookEdit" => Self::edit(paths("notebook_path")?),
            "Grep" => Self::Search(Search::Contents {
                path: optional("path")?,
                others: Vec::new(),
                glob: optional("glob")?,
                file_type: optional("type")?,
            }),
            "Glob" => {
                Self::Search(Search::Names { path: optional("path")?, others: Vec::new(), pattern: text("pattern")? })
            }
            "LSP" if text("filePath").is_ok() => Self::Read { paths: paths("filePath")? },
            "LS" => Self::Search(Search::Folder { path: optional("path")?, others: Vec::new() }),
            "WebFetch" => Self::Fetch { url: text("url")? },
            "WebSearch" => Self::WebSearch,
            "Task" | "Agent" => Self::Delegate { subagent: optional("subagent_type")?.unwrap_or_default() },
            own if OWN_TOOLS.contains(&own) => Self::Own,
            other => match other.strip_prefix("mcp__") {
                Some(rest) => {
                    let (server, tool) = rest.split_once("__").unwrap_or((rest, ""));
                    Self::Mcp { server: server.to_owned(), tool: tool.to_owned() }
                }
                None => Self::Other,
            },
        })
    }

    /// The canonical name of its tools.
    fn name(&self) -> Option<String> {
        Some(match self {
            Self::Shell { .. } => "Bash".to_owned(),
            Self::Read { .. } => "Read".to_owned(),
            Self::Write { .. } => "Write".to_owned(),
            Self::Edit { .. } => "Edit".to_owned(),
            Self::Search(Search::Contents { .. }) => "Grep".to_owned(),
            Self::Search(Search::Names { .. }) => "Glob".to_owned(),
            Self::Search(Search::Folder { .. }) => "LS".to_owned(),
            Self::Fetch { .. } => "WebFetch".to_owned(),
            Self::WebSearch => "WebSearch".to_owned(),
            Self::Delegate { .. } => "Agent".to_owned(),
            Self::Mcp { server, tool } => format!("mcp__{server}__{tool}"),
            Self::Own | Self::Other | Self::Malformed { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    fn call(tool: &str, kind: &str, input: &str) -> ToolCall {
        let input = json::parse(input.as_bytes()).unwrap();
        let kind = match kind {
            "" => ToolKind::canonical(tool, &input),
            "web" => ToolKind::WebSearch,
            "own" => ToolKind::Own,
            line => ToolKind::Shell { command: line.to_owned() },
        };
        ToolCall::of(tool, kind, input, "/w")
    }

    /// Another deed or another input is another digest; one that tool and input tell in full has the input's own.
    #[test]
    fn calls_that_do_different_things_have_different_digests() {
        let calls = [
            call("t", "git push", "{}"),
            call("t", "rm -rf src", "{}"),
            call("t", "rm -rf src", r#"{"a":1}"#),
            call("t", "web", "{}"),
            call("t", "own", "{}"),
            call("t", "", "{}"),
            call("t", "", r#"{"shell":{"command":"git push"}}"#),
            call("t", "", r#""{\"shell\":{\"command\":\"git push\"}}\n{}""#),
            call("Bash", "", r#"{"command":"git push"}"#),
            call("Bash", "ls", r#"{"command":"git push"}"#),
        ];
        for (at, one) in calls.iter().enumerate() {
            assert!(calls.iter().skip(at + 1).all(|other| one.digest() != other.digest()), "{one:?}");
        }
        let (said, meant) = (call("Bash", "ls", r#"{"command":"ls"}"#), call("Bash", "", r#"{"command":"ls"}"#));
        assert_eq!((said.digest(), meant.digest()), (meant.digest(), Digest::of(br#"{"command":"ls"}"#)));
        let fetched = ToolKind::Fetch { url: "https://x.example".to_owned() };
        let call = ToolCall::of("t", fetched, Value::Object(Object::new()), "/");
        assert_eq!(call.digest(), Digest::of(b"{\"fetch\":{\"url\":\"https://x.example\"}}\n{}"));
    }

    /// A kind is written as the generic client's `does`.
    #[test]
    fn kinds_are_written_as_the_format_says() {
        let folder = || Some("f".to_owned());
        for (kind, told) in [
            (ToolKind::WebSearch, r#""web-search""#),
            (ToolKind::Mcp { server: "s".into(), tool: "t".into() }, r#"{"mcp":{"server":"s","tool":"t"}}"#),
            (ToolKind::Search(Search::Folder { path: folder(), others: Vec::new() }), r#"{"list":{"folder":"f"}}"#),
            (
                ToolKind::Search(Search::Names { path: None, others: Vec::new(), pattern: "*".into() }),
                r#"{"search-names":{"pattern":"*"}}"#,
            ),
            (
                ToolKind::Search(Search::Contents { path: folder(), others: Vec::new(), glob: None, file_type: None }),
                r#"{"search-contents":{"folder":"f"}}"#,
            ),
        ] {
            assert_eq!(json::to_canonical(&kind), told);
        }
    }

    /// The canonical name is there wherever kind or members are not what the tool's own name says.
    #[test]
    fn a_call_is_known_by_what_it_does() {
        let of = |tool: &str, kind: ToolKind| ToolCall::of(tool, kind, Value::Object(Object::new()), "/").known_as();
        let names = ToolKind::Search(Search::Names { path: None, others: Vec::new(), pattern: "*".to_owned() });
        assert_eq!(of("LS", names).as_deref(), Some("Glob"));
        let other = ToolKind::Mcp { server: "gh".to_owned(), tool: "delete".to_owned() };
        assert_eq!(of("mcp__x__y", other.clone()).as_deref(), Some("mcp__gh__delete"));
        assert_eq!(of("mcp__gh__delete", other), None);
        assert_eq!(of("LS", ToolKind::Search(Search::Folder { path: None, others: Vec::new() })), None);
        assert_eq!(of("zz", ToolKind::Own), None);
    }
}
