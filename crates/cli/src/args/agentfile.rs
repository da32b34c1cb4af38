//! Arguments of `writ agentfile`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::FormatArgs;

#[derive(Subcommand, Debug)]
pub enum AgentfileCommand {
    /// Write a first Agentfile.
    New {
        /// Where to write it; `-` for stdout.
        #[arg(default_value = "Agentfile")]
        file: PathBuf,
        /// The agent's name; the folder's when left out.
        #[arg(long)]
        name: Option<String>,
        /// Replace an existing file.
        #[arg(long)]
        force: bool,
    },
    /// Say what is wrong with an Agentfile, and where. Exit code 0 with warnings alone, 3 with errors, 4 for what is no text.
    #[command(
        after_help = "Examples:\n  writ agentfile lint\n  writ agentfile lint agents/reviewer.agentfile --format json\n  writ agentfile lint \
                      --format sarif > agentfile.sarif\n  writ agentfile lint --base base/Agentfile          hold it against what it is built on"
    )]
    Lint(LintArgs),
    /// Put an Agentfile into its usual form: white space alone changes.
    #[command(
        after_help = "Examples:\n  writ agentfile fmt\n  writ agentfile fmt --check     exit code 3 where it is not in form"
    )]
    Fmt {
        /// The file; `-` for stdin.
        #[arg(default_value = "Agentfile")]
        file: PathBuf,
        /// Write nothing.
        #[arg(long)]
        check: bool,
    },
    /// Lay out an Agentfile's tools as commands in a folder: scripts, schemas, help, skills, policy and limits.
    #[command(
        after_help = "Example:\n  writ agentfile project /agentrc\n  /agentrc/tools/grep_logs '{\"pattern\": \"ERROR\"}'     is `writ tool call \
                      grep_logs`\n\nLaid out: tools/NAME with .schema.json, .help and .events, functions/, skills/NAME/SKILL.md, proc/audit, proc/policy \
                      and proc/limits.\nAgain in the same folder: what an earlier one wrote is replaced, anything else in the way is refused."
    )]
    Project(super::ProjectArgs),
    /// Show what an Agentfile declares: its directives, the policies they mean, how risky that is.
    Show {
        /// The file; `-` for stdin.
        #[arg(default_value = "Agentfile")]
        file: PathBuf,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Decide a request by an Agentfile's policies. Exit code 3 where it, or any of several, is denied.
    #[command(
        after_help = "Examples:\n  writ agentfile decide --action tool.invoke --resource file_read\n  writ agentfile decide --action network.egress \
                      --resource api.github.com --context '{\"port\":443}'\n  writ agentfile decide < requests.jsonl       one request a line, one answer \
                      a line\n\nA request: {\"action\": \"tool.invoke\", \"resource\": {\"type\": \"Tool\", \"id\": \"file_read\"}, \"context\": {\"path\": \"/w/a\"}}"
    )]
    Decide(AgentDecideArgs),
    /// Prove that a child's policies never allow what its base's do not, or show a request that they do. Needs the solver `cvc5`.
    #[command(
        after_help = "Example:\n  writ agentfile prove --child Agentfile --parent base/Agentfile\n\nExit codes: 0 proved, 1 neither proved nor \
                      refuted (or no solver), 3 refuted, with a request or with both lines."
    )]
    Prove(ProveArgs),
    /// Serve editors: findings, completion, hover and formatting by the Language Server Protocol, on standard input and output.
    Lsp,
    /// Print the Cedar schema that policies are checked against.
    Schema,
}

#[derive(ClapArgs, Debug)]
pub struct LintArgs {
    /// The file; `-` for stdin.
    #[arg(default_value = "Agentfile")]
    pub file: PathBuf,
    /// An Agentfile that it is built on, the nearest first. May be given more than once.
    #[arg(long, value_name = "FILE")]
    pub base: Vec<PathBuf>,
    /// Take directives `X-VENDOR-…` as they are. May be given more than once.
    #[arg(long, value_name = "VENDOR")]
    pub extension: Vec<String>,
    /// How to print the findings.
    #[arg(long, value_enum, default_value_t)]
    pub format: LintFormat,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Default)]
pub enum LintFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

#[derive(ClapArgs, Debug)]
pub struct AgentDecideArgs {
    /// The file.
    #[arg(long, short = 'f', default_value = "Agentfile")]
    pub file: PathBuf,
    /// An Agentfile that it is built on, the nearest first: every one has to allow. May be given more than once.
    #[arg(long, value_name = "FILE")]
    pub base: Vec<PathBuf>,
    /// Record it nowhere: for trials. Else each decision is on record in a session of its own.
    #[arg(long)]
    pub no_record: bool,
    /// Record it in this session; it begins where there is none.
    #[arg(long, value_name = "ID", conflicts_with = "no_record")]
    pub session: Option<String>,
    /// The action: `tool.invoke`. Without it, requests are read from stdin, one JSON object a line.
    #[arg(long, requires = "resource")]
    pub action: Option<String>,
    /// The resource: a bare name, or `AgentRC::Tool::"file_read"`.
    #[arg(long, requires = "action")]
    pub resource: Option<String>,
    /// Who asks; the agent itself when left out.
    #[arg(long, requires = "action")]
    pub principal: Option<String>,
    /// What is known of the request, a JSON object.
    #[arg(long, requires = "action", value_name = "JSON")]
    pub context: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct LockArgs {
    /// The Agentfile.
    #[arg(default_value = "Agentfile")]
    pub file: PathBuf,
    /// Write nothing; exit code 3 with the differences where the lock is stale. For CI.
    #[arg(long)]
    pub check: bool,
    /// Take this reference anew and leave the others as they are locked. May be given more than once; `base` is what FROM names.
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    pub update: Vec<String>,
    /// Where the lock is; `agentrc.lock` beside the Agentfile when left out.
    #[arg(long, short)]
    pub output: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct ProveArgs {
    /// The Agentfile that is built on the other.
    #[arg(long, value_name = "FILE")]
    pub child: PathBuf,
    /// The one it is built on.
    #[arg(long, value_name = "FILE")]
    pub parent: PathBuf,
    #[command(flatten)]
    pub format: FormatArgs,
}
