//! `writ agentflow`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

#[derive(Subcommand, Debug)]
pub enum AgentflowCommand {
    /// Begin a run: the sessions that begin in this repository from now on, held to a policy. Prints its id, where its record goes, and its limits.
    #[command(
        after_help = "Examples:\n  writ agentflow start --policy feature-search.aflock\n  export CURRENT_RUN=$(writ agentflow start --policy .aflock --format id)"
    )]
    Start(StartArgs),
    /// Verify a run: each of its sessions, under its policy. PASS is exit code 0, FAIL 3.
    #[command(
        after_help = "Examples:\n  writ agentflow verify --policy feature-search.aflock --run-id 3f9a1c02b7de\n  writ agentflow verify          the last run of this repository, else its newest \
        session\n\nA session's id names a run of that one session. `writ init --pre-push` has git run this before each push."
    )]
    Verify(VerifyRunArgs),
}

#[derive(ClapArgs, Debug)]
pub struct StartArgs {
    /// The policy; the one found here when left out.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: StartFormat,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object.
    Json,
    /// The run's id alone.
    Id,
}

#[derive(ClapArgs, Debug)]
pub struct VerifyRunArgs {
    /// The policy that its sessions have to have run under; the one found here when left out.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The run, or a session; `$CURRENT_RUN` when left out, else the last run of this repository.
    #[arg(long, value_name = "ID", env = "CURRENT_RUN")]
    pub run_id: Option<String>,
    /// Let records pass that hold and do not speak for everything (`writ verify` says for what).
    #[arg(long)]
    pub allow_absent: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}
