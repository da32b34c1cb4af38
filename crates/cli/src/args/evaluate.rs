//! Arguments of evaluations, and of the rules behind them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::AttestArgs;

/// The verdict from which on the exit code is 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Anything but `allow`.
    Warn,
    /// `escalate` and `block`.
    Escalate,
    /// `block` only.
    Block,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Default)]
pub enum ReportFormat {
    /// For people: verdict, the worst finding, why, how to undo it.
    #[default]
    Human,
    /// `recourse.consequence.v1`.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

#[derive(Subcommand, Debug)]
pub enum EvaluateCommand {
    /// A shell line.
    #[command(
        after_help = "Examples:\n  writ evaluate shell 'git push --force'\n  writ evaluate shell --explain 'rm -rf build src'\n  writ evaluate shell \
        --batch < lines.jsonl   {\"command\": …, \"cwd\": …} a line\n\nExit codes: 0, or 3 from --fail-on on."
    )]
    Shell {
        /// The line; stdin when left out or `-`.
        #[arg(default_value = "-")]
        line: String,
        /// Where it would run; here when left out.
        #[arg(long)]
        cwd: Option<PathBuf>,
        #[command(flatten)]
        how: EvaluateArgs,
    },
    /// A Terraform or OpenTofu plan: its JSON, or the plan file itself.
    #[command(
        after_help = "Examples:\n  terraform show -json tfplan | writ evaluate terraform --fail-on warn\n  writ evaluate terraform tfplan --attest \
        --expires 1h   binds the verdict to this plan file: tfplan.attestation.json"
    )]
    Terraform {
        /// The plan as JSON (stdin when left out or `-`), or a plan file, which `terraform show` or `tofu show` prints.
        #[arg(default_value = "-")]
        file: String,
        /// The state before (`terraform show -json`), when the plan has none.
        #[arg(long)]
        state: Option<PathBuf>,
        #[command(flatten)]
        how: EvaluateArgs,
    },
    /// A call to a tool on a server: `{"tool": …, "arguments": …, "server"?, "annotations"?}`.
    #[command(
        after_help = "Example:\n  echo '{\"tool\":\"execute_sql\",\"arguments\":{\"sql\":\"DROP TABLE a\"}}' | writ evaluate mcp"
    )]
    Mcp {
        /// The call as JSON; stdin when left out or `-`.
        #[arg(default_value = "-")]
        file: String,
        #[command(flatten)]
        how: EvaluateArgs,
    },
}

#[derive(ClapArgs, Debug)]
pub struct EvaluateArgs {
    /// How to print the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// The verdict from which on the exit code is 3.
    #[arg(long, value_enum, default_value_t = FailOn::Block)]
    pub fail_on: FailOn,
    /// JSON lines in, one report per line out.
    #[arg(long)]
    pub batch: bool,
    /// Also show rule, span, evidence used and evidence missing of each finding.
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub attest: AttestArgs,
}

#[derive(Subcommand, Debug)]
pub enum ConsequencesCommand {
    /// List every rule with its tier.
    List,
    /// Write a page for each family of rules.
    Pages {
        /// The folder to write them to.
        #[arg(default_value = "docs/consequences")]
        folder: PathBuf,
    },
    /// Show one rule.
    Show {
        /// Its id: `git/force-push`, or a Terraform type.
        rule: String,
    },
}
