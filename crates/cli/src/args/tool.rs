//! Arguments of `writ tool`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{FormatArgs, complete};

#[derive(Subcommand, Debug)]
pub enum ToolCommand {
    /// Call a declared tool: arguments against its schema, the call against policy, the result on record.
    #[command(
        after_help = "Examples:\n  writ tool call grep_logs '{\"pattern\": \"ERROR\"}'\n  writ tool call grep_logs --arg pattern=ERROR --arg context=3\n  \
                      echo '{\"number\": 7}' | writ tool call mcp:github.get_issue -\n  writ tool call weather --file agents/a/Agentfile --arg city=Bern \
                      --format json\n\nExit codes: 0 it ran; 1 it failed, or its result is not what it says; 3 the answer is no: a rule, the lock, no \
                      such tool (nothing on stdout);\n4 the arguments or the description are malformed."
    )]
    Call(ToolCallArgs),
    /// List the declared tools: how each is called, and whether that is known here.
    List(ToolsArgs),
    /// Show what a tool takes and gives, and how it is called.
    #[command(
        after_help = "Examples:\n  writ tool describe grep_logs\n  writ tool describe mcp:github.get_issue --format json"
    )]
    Describe(ToolArgs),
    /// Show the calls of a tool that are on record, one JSON object a line.
    #[command(
        after_help = "Examples:\n  writ tool events grep_logs\n  writ tool events grep_logs --session tools-a-0123456789abcdef\n\nEach line is a row \
                      of the ledger: its decision, the rule where it was denied, and the digest of its result."
    )]
    Events(ToolEventsArgs),
}

#[derive(ClapArgs, Debug)]
pub struct ToolsArgs {
    /// The Agentfile.
    #[arg(long, short = 'f', default_value = "Agentfile")]
    pub file: PathBuf,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(ClapArgs, Debug)]
pub struct ToolArgs {
    /// The tool: its name, or its whole reference (`utcp:grep_logs`).
    #[arg(add = complete::tools())]
    pub name: String,
    #[command(flatten)]
    pub tools: ToolsArgs,
}

#[derive(ClapArgs, Debug)]
pub struct ToolEventsArgs {
    /// The tool: its name, or its whole reference (`utcp:grep_logs`).
    #[arg(add = complete::tools())]
    pub name: String,
    /// The Agentfile.
    #[arg(long, short = 'f', default_value = "Agentfile")]
    pub file: PathBuf,
    /// The session; that of calls under the Agentfile as it is when left out.
    #[arg(long, value_name = "ID", add = complete::sessions())]
    pub session: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct ToolCallArgs {
    /// The tool: its name, or its whole reference (`utcp:grep_logs`).
    #[arg(add = complete::tools())]
    pub name: String,
    /// Its arguments, a JSON object; `-` for stdin.
    #[arg(value_name = "JSON")]
    pub arguments: Option<String>,
    /// One argument. A value that is not to be a text by the tool's schema is read as JSON. May be given more than once.
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub arg: Vec<String>,
    /// Record it in this session; it begins where there is none.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    #[command(flatten)]
    pub tools: ToolsArgs,
}

#[derive(ClapArgs, Debug)]
pub struct ProjectArgs {
    /// The folder that is laid out. What is in it and not of an earlier projection is left, or refused where it is in the way.
    pub folder: PathBuf,
    /// The Agentfile.
    #[arg(long, short = 'f', default_value = "Agentfile")]
    pub file: PathBuf,
}
