//! The words of `writ sandbox`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

/// `writ sandbox`
#[derive(Subcommand, Debug)]
pub enum SandboxCommand {
    /// What a call may read, write and reach.
    #[command(after_help = "Examples:\n  writ sandbox plan\n  writ sandbox plan --format json")]
    Plan(FormatArgs),
    /// Attack a sandbox made from a policy, from inside, each attack beside its control outside. Exit code 0 only when none gets out, 3 when one does.
    #[command(
        after_help = "Examples:\n  writ sandbox test                            all attacks on what the policy here gives a call\n  writ sandbox test --policy strict.aflock     another \
        policy, for its own folder\n  writ sandbox test --quick --format json      those that run before each session\n\nEach attack is held, escaped, granted (the policy allows it), \
        not testable (it succeeds nowhere here; why is said) or named (no kernel holds it; what does is said)."
    )]
    Test(TestArgs),
    /// Show what a run with `--copy` would change: first what would run outside later.
    #[command(
        after_help = "Examples:\n  writ run --copy -- claude         the agent works in a copy of the folder\n  writ sandbox diff                 the newest copy of this \
        repository\n  writ sandbox diff run-3f… --format json"
    )]
    Diff(CopyDiffArgs),
    /// Carry out what a run with `--copy` changed, or throw it away. Only a human, or a script of theirs with `--yes`.
    #[command(
        after_help = "Examples:\n  writ sandbox apply                asks at the terminal\n  writ sandbox apply --yes          for scripts\n  writ sandbox apply --all          also what \
        binds agents: hooks, settings, policies\n  writ sandbox apply --discard      throw it away\n\nExit codes: 0 done, 1 could not do it, 3 not applied: something changed outside \
        meanwhile, is protected, or nobody said yes."
    )]
    Apply(CopyApplyArgs),
    /// What the test runs inside.
    #[command(hide = true)]
    Attack {
        /// The world it attacks.
        world: String,
    },
}

/// `writ sandbox test`
#[derive(ClapArgs, Debug)]
pub struct TestArgs {
    /// The policy that is tested; the one that governs here when left out.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Only the attacks that run before each session, in some milliseconds.
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ sandbox diff`
#[derive(ClapArgs, Debug)]
pub struct CopyDiffArgs {
    /// The run's session; the newest copy of this repository when left out.
    pub session: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ sandbox apply`
#[derive(ClapArgs, Debug)]
pub struct CopyApplyArgs {
    /// The run's session; the newest copy of this repository when left out.
    pub session: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Also what is protected. A human at a terminal has to say so, whether or not `--yes` is there.
    #[arg(long, conflicts_with = "discard")]
    pub all: bool,
    /// Also over what changed outside since the run began, which is lost then. As `--all`, a human's to say.
    #[arg(long, conflicts_with = "discard")]
    pub over: bool,
    /// Throw the changes away.
    #[arg(long)]
    pub discard: bool,
}
