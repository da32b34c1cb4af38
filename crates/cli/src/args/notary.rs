//! `writ notary`

use clap::Subcommand;

use super::FormatArgs;

#[derive(Subcommand, Debug)]
pub enum NotaryCommand {
    /// Answer hooks until this process ends.
    #[command(
        after_help = "Examples:\n  writ notary run                       in the foreground\n  writ notary run &\n\nHooks of the same \
        user and state folder find it by themselves. Where none runs, they decide by themselves. Page: spec/notary.md."
    )]
    Run,
    /// Say whether a notary runs here, since when, and what keeps its key. Exit code 3: none does.
    Status(FormatArgs),
    /// End the notary that runs here. What it answered is on record already.
    Stop,
}
