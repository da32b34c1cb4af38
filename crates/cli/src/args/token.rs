//! `writ token`

use clap::{Args as ClapArgs, Subcommand};

#[derive(ClapArgs, Debug)]
pub struct TokenArgs {
    /// The session; the newest of this repository when left out.
    #[arg(long)]
    pub session: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum TokenCommand {
    /// Have the notary issue a token for an agent of a session, and print it.
    #[command(after_help = "Examples:\n  writ token issue\n  writ token issue --session 7c0f… --agent a1")]
    Issue {
        /// A sub-agent's id; the main agent when left out.
        #[arg(long)]
        agent: Option<String>,
        #[command(flatten)]
        of: TokenArgs,
    },
    /// Check a token, and print what it says. Exit code 3: it does not hold.
    Check {
        /// The token; `-` for standard input.
        token: String,
        #[command(flatten)]
        of: TokenArgs,
    },
    /// Print a new token for one that holds.
    Refresh {
        /// The token; `-` for standard input.
        token: String,
        #[command(flatten)]
        of: TokenArgs,
    },
    /// Let no token of a session hold that was issued so far.
    Revoke(TokenArgs),
    /// Print the public key that tokens are signed with, PEM.
    Key,
}
