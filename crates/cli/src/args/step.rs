//! `writ step`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

/// `writ step`
#[derive(Subcommand, Debug)]
pub enum StepCommand {
    /// Run a command and attest it: what went in, what came out, how it ended.
    #[command(
        after_help = "Examples:\n  writ step run quality-check -- cargo test\n  writ step run build -m src -m Cargo.toml -p target/release/app -- cargo build --release\n\nA policy wants steps by \
        `requiredAttestations`; `writ verify` holds the session to that. Exit code: the command's own; 1 it could not be run or attested."
    )]
    Run(StepRunArgs),
}

/// `writ step run`
#[derive(ClapArgs, Debug)]
pub struct StepRunArgs {
    /// The step's name.
    pub name: String,
    /// A file or folder that goes in; may be given several times.
    #[arg(short, long = "material", value_name = "PATH")]
    pub materials: Vec<PathBuf>,
    /// A file or folder that comes out; may be given several times.
    #[arg(short, long = "product", value_name = "PATH")]
    pub products: Vec<PathBuf>,
    /// The session that the step belongs to; the newest of this repository when left out.
    #[arg(long)]
    pub session: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Program and arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
