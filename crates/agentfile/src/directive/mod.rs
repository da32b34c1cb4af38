//! The directives of an Agentfile as types, one variant each.
//!
//! Owns what each directive holds once it is read, and the table of their names. Reads nothing itself ([`read`] does). Invariant: a
//! directive exists only whole: what it holds has been checked word by word. Specification: §9. Page: `spec/agentfile.md`.

mod argument;
mod read;
mod table;

use serde::Serialize;

pub(crate) use read::{read, sop_is_reference};
pub use table::{Class, DIRECTIVES, Known, known};

use crate::reference::{OciRef, ToolRef};

/// What an agent is built on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Base {
    /// Nothing.
    Scratch,
    /// A package or an image.
    Reference(OciRef),
}

/// `name[:variant][@version]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shell {
    /// The framework.
    pub name: String,
    /// What follows the colon.
    pub variant: Option<String>,
    /// What follows the `@`.
    pub version: Option<String>,
}

/// A tool set, by name or in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Toolset {
    /// `<namespace>:<name>`.
    Named(ToolRef),
    /// `registry://…@sha256:…`.
    Registry {
        /// Without scheme and digest.
        path: String,
        /// `sha256:…`.
        digest: String,
    },
}

/// A function, in a file or known to a framework.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Function {
    /// `<path>:<symbol>`.
    Local {
        /// From the Agentfile's folder.
        path: String,
        /// Its name in that file.
        symbol: String,
    },
    /// A name that a framework resolves.
    Named {
        /// The name.
        name: String,
    },
}

impl Function {
    /// What policies call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Local { symbol, .. } => symbol,
            Self::Named { name } => name,
        }
    }
}

/// Where a bundle of text comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Bundle {
    /// A name that a runner resolves.
    Named {
        /// The name.
        name: String,
    },
    /// A file or folder, from the Agentfile's folder.
    Local {
        /// Its path.
        path: String,
    },
    /// In a registry.
    Registry(OciRef),
}

impl Bundle {
    /// What policies call it: the last part of its place, without an extension.
    pub fn name(&self) -> &str {
        let text = match self {
            Self::Named { name } => return name,
            Self::Local { path } => path,
            Self::Registry(reference) => &reference.repository,
        };
        let last = text.rsplit('/').next().unwrap_or(text);
        last.strip_suffix(".md").unwrap_or(last)
    }
}

/// An MCP server that the agent depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Mcp {
    /// By a name that `SERVER` or the runner explains.
    Named {
        /// The name.
        name: String,
    },
    /// `registry://<path>@<version>`.
    Registry {
        /// Without scheme and version.
        path: String,
        /// The version.
        version: String,
    },
}

impl Mcp {
    /// What policies call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Named { name } => name,
            Self::Registry { path, .. } => path.rsplit('/').next().unwrap_or(path),
        }
    }
}

/// An address whose host may be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// As it was written.
    pub text: String,
    /// `http` or `https`.
    pub scheme: String,
    /// Its host, lower case.
    pub host: String,
    /// Its port, the scheme's where none is written.
    pub port: u16,
}

/// Where the value of a secret comes from. Never the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// A variable of the host that resolves it.
    Env {
        /// Its name.
        variable: String,
    },
    /// `vault://path#key`.
    Vault {
        /// The path.
        path: String,
        /// The key.
        key: String,
    },
    /// A user's keyring.
    Keyring {
        /// The entry.
        key: String,
    },
}

/// Where a secret goes in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Inject {
    /// In a header.
    Header,
    /// In the query, too.
    Query,
}

/// A secret, bound to a source and to hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cred {
    /// What the agent calls it.
    pub name: String,
    /// Where its value comes from.
    pub source: Source,
    /// The hosts it may be sent to, lower case.
    pub hosts: Vec<String>,
    /// Where it goes in a request.
    pub inject: Inject,
}

/// How a host's path comes into the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BindMode {
    /// Copied before the start.
    Copy,
    /// As it is.
    Direct,
    /// Read only.
    Ro,
    /// Read and written.
    Rw,
}

/// Whether something may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Read only.
    Ro,
    /// Read and written.
    Rw,
}

/// So many in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// How many.
    pub count: u64,
    /// In what time.
    pub unit: Unit,
}

/// A time that is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A second.
    Sec,
    /// A minute.
    Min,
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl Unit {
    /// How long it is.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Sec => 1,
            Self::Min => 60,
            Self::Hour => 3600,
            Self::Day => 86_400,
        }
    }

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sec => "sec",
            Self::Min => "min",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// What has to be recorded. Ordered: more is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Audit {
    /// Nothing.
    Off,
    /// Calls and lifecycle.
    Basic,
    /// Tools, functions, policy, credentials, rates.
    All,
    /// Structured, for review.
    Compliance,
}

impl Audit {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Basic => "basic",
            Self::All => "all",
            Self::Compliance => "compliance",
        }
    }
}

/// A block's body, verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The lines between the opening line and `END`, with their ends.
    pub text: String,
    /// The number of its first line.
    pub first_line: usize,
    /// Where it begins, in bytes of the file.
    pub start: usize,
}

/// A standard operating procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Sop {
    /// In a file or a registry.
    Reference {
        /// Where.
        bundle: Bundle,
    },
    /// Written out.
    Inline {
        /// Its name.
        name: String,
        /// Its text.
        block: Block,
    },
}

impl Sop {
    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Reference { bundle } => bundle.name(),
            Self::Inline { name, .. } => name,
        }
    }
}

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "directive", content = "value", rename_all = "UPPERCASE")]
pub enum Directive {
    /// The agent's name.
    Agent(String),
    /// What it is built on.
    From(Base),
    /// The framework of its entry point.
    Shell(Shell),
    /// The command that starts it.
    Cmd(Vec<String>),
    /// A tool it may ask for.
    Tool(ToolRef),
    /// Several tools.
    Toolset(Toolset),
    /// A function it may ask for.
    Function(Function),
    /// A skill.
    Skill(Bundle),
    /// A server that tools are on.
    Server {
        /// Its name.
        name: String,
        /// Its address.
        address: Address,
    },
    /// An MCP server.
    Mcp(Mcp),
    /// A destination in the network.
    Url(Address),
    /// A secret.
    Cred(Cred),
    /// A host's path in the environment. Placement.
    Bind {
        /// On the host.
        source: String,
        /// In the environment.
        target: String,
        /// How; `None` where it was not written, which means `copy`.
        mode: Option<BindMode>,
    },
    /// A path the agent sees.
    Mount {
        /// The path.
        path: String,
        /// Whether it may be written.
        mode: Mode,
    },
    /// A capability asked of the runner. Placement.
    Plugin(String),
    /// Where secrets are resolved. Placement.
    Broker(String),
    /// Shorthand for a permit.
    Allow(String),
    /// Shorthand for a forbid.
    Deny(String),
    /// At most so many calls of a tool.
    RateLimit {
        /// The tool, as it was written.
        tool: String,
        /// How many.
        rate: Rate,
    },
    /// A named limit.
    Limit {
        /// What is limited.
        name: String,
        /// How much.
        count: u64,
        /// In what time, where it is a rate.
        unit: Option<Unit>,
    },
    /// Longest run, in seconds.
    Timeout(u64),
    /// Resources asked for. Placement.
    Slice(Vec<(String, String)>),
    /// What has to be recorded.
    Audit(Audit),
    /// Traces: `None` is `on`, else where they go.
    Trace(Option<String>),
    /// An image. Placement.
    Image(OciRef),
    /// A remote end. Placement.
    Backend(String),
    /// How it is kept apart. Placement.
    Isolation(String),
    /// An optimizer.
    Optimizer(String),
    /// A state the agent keeps.
    Memory {
        /// Its name.
        name: String,
        /// Its schema's file.
        schema_path: String,
        /// The type in it.
        schema: String,
        /// `ro`, `rw` or `append`.
        mode: String,
    },
    /// A probe.
    Healthcheck {
        /// Between two probes, in milliseconds.
        interval: Option<u64>,
        /// Longest probe, in milliseconds.
        timeout: Option<u64>,
        /// The probe.
        command: Vec<String>,
    },
    /// Cedar policies.
    Policy(Block),
    /// Instructions.
    Sop(Sop),
    /// A directive of a vendor's, where it is enabled.
    #[serde(rename = "X")]
    Extension {
        /// `X-<vendor>-<NAME>`.
        name: String,
        /// Its words.
        arguments: Vec<String>,
    },
}
