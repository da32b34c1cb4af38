//! Arguments of what looks at a session: `writ session open`, `writ report`, `writ watch`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::FormatArgs;

/// `writ session open`
#[derive(ClapArgs, Debug)]
pub struct OpenArgs {
    /// The session; the newest of this repository when left out.
    #[arg(add = super::complete::sessions())]
    pub session: Option<String>,
    /// Show only what holds this text, as `/` does there.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
}

/// `writ report`
#[derive(ClapArgs, Debug)]
pub struct ReportArgs {
    /// The session; the newest of this repository when left out.
    #[arg(add = super::complete::sessions())]
    pub session: Option<String>,
    /// Where the page is written, `-` for standard output; `SESSION.html` here when left out.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace a file that is there.
    #[arg(long)]
    pub force: bool,
    /// Leave out what `writ verify` says of the record.
    #[arg(long)]
    pub unverified: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ watch`
#[derive(ClapArgs, Debug)]
pub struct WatchArgs {
    /// The session; the newest of this repository when left out, waiting for one where there is none.
    #[arg(add = super::complete::sessions())]
    pub session: Option<String>,
    /// Begin with what has happened so far.
    #[arg(long)]
    pub all: bool,
    /// Show only what was asked about or denied.
    #[arg(long)]
    pub stopped: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}
