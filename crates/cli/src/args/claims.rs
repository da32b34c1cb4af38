//! Arguments of claims: read, measured, listed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

#[derive(Subcommand, Debug)]
pub enum ClaimCommand {
    /// Read a claim: status, files, blockers, whether tests were run.
    #[command(after_help = "Example:\n  printf 'Status: DONE\\nFiles changed: a.py' | writ claim parse")]
    Parse {
        /// The agent's last message; stdin when left out or `-`.
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Print the state of a work tree: path and fingerprint of everything that differs from HEAD.
    #[command(after_help = "Example:\n  writ claim snapshot --repo . > before.json")]
    Snapshot {
        /// The repository.
        #[arg(long, default_value = ".")]
        repo: PathBuf,
    },
    /// Compare a claim with an earlier snapshot and the work tree as it is now.
    #[command(
        after_help = "Example:\n  writ claim verify --claim-file words.md --before before.json --repo . --exit-code\n\nExit codes: 0 also for \
        a false claim (3 with --exit-code), 1 when something cannot be read."
    )]
    Verify(ClaimVerifyArgs),
}

#[derive(ClapArgs, Debug)]
pub struct ClaimVerifyArgs {
    /// The agent's last message; `-` for stdin.
    #[arg(long, value_name = "FILE")]
    pub claim_file: PathBuf,
    /// What `writ claim snapshot` printed before.
    #[arg(long, value_name = "FILE")]
    pub before: PathBuf,
    /// The repository.
    #[arg(long, default_value = ".")]
    pub repo: PathBuf,
    /// The agent's transcript: shows writes that were reported and never happened.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// Also print a verdict for each file.
    #[arg(long)]
    pub files: bool,
    /// Exit with 3 when the claim is false.
    #[arg(long)]
    pub exit_code: bool,
}

#[derive(ClapArgs, Debug)]
pub struct ClaimsArgs {
    /// The session; the newest of this repository when left out.
    pub session: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}
