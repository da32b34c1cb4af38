//! `writ notary`

use std::net::SocketAddr;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

#[derive(ClapArgs, Debug)]
pub struct NotaryRunArgs {
    /// What keeps the key that signs: a file, or the memory of this process.
    #[arg(long, default_value = "process-memory", value_parser = PossibleValuesParser::new(["file", "process-memory"]))]
    pub custody: String,
    /// Also answer hooks that are posted to this address, which has to be loopback: `127.0.0.1:7415`.
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
}

#[derive(Subcommand, Debug)]
pub enum NotaryCommand {
    /// Answer hooks until this process ends.
    #[command(
        after_help = "Examples:\n  writ notary run                       its key lives in its memory\n  writ notary run --custody file        the key is the machine's, in its file\n\nHooks of the same \
        user and state folder find it by themselves. Where none runs, they decide by themselves. Page: spec/notary.md."
    )]
    Run(NotaryRunArgs),
    /// Say whether a notary runs here, since when, and what keeps its key. Exit code 3: none does.
    Status(FormatArgs),
    /// End the notary that runs here. What it answered is on record already.
    Stop,
}
