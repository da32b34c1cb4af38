//! What an agent asks for, in words that fit every client.

use crate::json::Value;

/// One tool call as the agent put it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name as the client spells it.
    pub tool: String,
    /// What the tool does, and with what.
    pub kind: ToolKind,
    /// The tool's input: an object in every client known so far, but nothing here relies on it.
    pub input: Value,
    /// The directory that relative paths in the input hang off, absolute.
    pub cwd: String,
}

/// What a tool does, whatever its client calls it, with the members of its input that say to what.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    },
    /// Searches below a folder.
    Search(Search),
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
}

/// What a search looks for, and where; without a folder in the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// Files by their contents.
    Contents {
        /// The folder, or a file.
        path: Option<String>,
        /// Names of the files that are looked into.
        glob: Option<String>,
        /// Their type, as ripgrep calls it.
        file_type: Option<String>,
    },
    /// Files by their names.
    Names {
        /// The folder.
        path: Option<String>,
        /// The names.
        pattern: String,
    },
    /// A folder's entries.
    Folder {
        /// The folder.
        path: Option<String>,
    },
}

impl Search {
    /// The folder it looks into.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Contents { path, .. } | Self::Names { path, .. } | Self::Folder { path } => path.as_deref(),
        }
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
        Self { tool, kind, input, cwd: cwd.into() }
    }

    /// The text member `name` of the input, if there is one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.input.get(name).and_then(Value::as_str)
    }

    /// The canonical name that a policy's rules may call it by, where that is not its own.
    pub fn known_as(&self) -> Option<String> {
        let own = ToolKind::canonical(&self.tool, &self.input);
        if std::mem::discriminant(&own) == std::mem::discriminant(&self.kind) {
            return (self.tool == "Monitor").then(|| "Bash".to_owned());
        }
        self.kind.name()
    }
}

impl ToolKind {
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
            "Edit" | "MultiEdit" => Self::Edit { paths: paths("file_path")? },
            "NotebookEdit" => Self::Edit { paths: paths("notebook_path")? },
            "Grep" => Self::Search(Search::Contents {
                path: optional("path")?,
                glob: optional("glob")?,
                file_type: optional("type")?,
            }),
            "Glob" => Self::Search(Search::Names { path: optional("path")?, pattern: text("pattern")? }),
            "LSP" if text("filePath").is_ok() => Self::Read { paths: paths("filePath")? },
            "LS" => Self::Search(Search::Folder { path: optional("path")? }),
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
