//! Arguments of what looks back at sessions: `writ replay`, `writ policy test`, `learn`, `diff`, `add`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{FormatArgs, complete};

/// Which past sessions are meant.
#[derive(ClapArgs, Debug)]
pub struct PastArgs {
    /// Transcripts of main conversations; those that the clients on this machine keep of this repository when left out.
    #[arg(value_name = "TRANSCRIPT")]
    pub transcripts: Vec<PathBuf>,
    /// The folder that the sessions were about, which relative patterns start from; the policy's own when left out.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// `writ replay`
#[derive(ClapArgs, Debug)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub past: PastArgs,
    /// The policy; found as a session finds it when left out.
    #[arg(long, short, add = complete::policies())]
    pub policy: Option<PathBuf>,
    /// End with exit code 3 where it stops a call that ran then.
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ policy test`
#[derive(ClapArgs, Debug)]
pub struct CasesArgs {
    /// The policy, plain or signed; found as a session finds it when left out.
    #[arg(add = complete::policies())]
    pub file: Option<PathBuf>,
    /// The cases; `FILE.tests.jsonl` or `FILE.tests.json` beside the policy when left out.
    #[arg(long, value_name = "FILE")]
    pub cases: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ policy learn`
#[derive(ClapArgs, Debug)]
pub struct LearnArgs {
    #[command(flatten)]
    pub past: PastArgs,
    /// Write the policy to a new file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write what each entry is for, as Markdown, to a new file instead of standard error.
    #[arg(long, value_name = "FILE")]
    pub notes: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ policy diff`
#[derive(ClapArgs, Debug)]
pub struct DiffArgs {
    /// The policy that is.
    #[arg(add = complete::policies())]
    pub before: PathBuf,
    /// The policy that would be.
    #[arg(add = complete::policies())]
    pub after: PathBuf,
    #[command(flatten)]
    pub past: PastArgs,
    /// Compare the rules alone.
    #[arg(long, conflicts_with = "transcripts")]
    pub rules: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ policy add`
#[derive(ClapArgs, Debug)]
pub struct AddArgs {
    /// The change: a list and an entry (`tools.allow Bash:cargo test *`), `remove /tools/deny/0`, or a refusal's own words.
    #[arg(required_unless_present = "last", conflicts_with = "last")]
    pub rule: Option<String>,
    /// What the last refusal in this repository suggests.
    #[arg(long)]
    pub last: bool,
    /// The policy, plain; found as a session finds it when left out.
    #[arg(long, short, value_name = "FILE", add = complete::policies())]
    pub policy: Option<PathBuf>,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}
