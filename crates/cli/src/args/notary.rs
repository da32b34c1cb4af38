//! `writ notary`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};

use super::FormatArgs;

#[derive(ClapArgs, Debug)]
pub struct NotaryRunArgs {
    /// What keeps the key that signs: a file, the memory of this process, or a PKCS#11 token.
    #[arg(
        long, default_value = "process-memory",
        value_parser = PossibleValuesParser::new(["file", "process-memory", "pkcs11"])
    )]
    pub custody: String,
    #[command(flatten)]
    pub token: Pkcs11Args,
    /// Be a user of your own for this user, by name or number: the state is then that user's no more (for root; spec/notary.md).
    #[arg(long = "for", value_name = "USER", conflicts_with_all = ["custody", "http"])]
    pub of: Option<String>,
    /// The user that the notary then is.
    #[arg(long = "as", value_name = "USER", default_value = "writ", requires = "of")]
    pub user: String,
    /// Where hooks then ask, in a folder that only root can write to; `/run/writ/UID.sock` when left out.
    #[arg(long, value_name = "PATH", requires = "of")]
    pub socket: Option<PathBuf>,
    /// Where the state then is; `/var/lib/writ/UID` when left out.
    #[arg(long, value_name = "DIR", requires = "of")]
    pub state: Option<PathBuf>,
    /// Also answer hooks that are posted to this address, which has to be loopback: `127.0.0.1:7415`.
    #[arg(long, value_name = "ADDRESS")]
    pub http: Option<SocketAddr>,
}

/// A key in a PKCS#11 token.
#[derive(ClapArgs, Debug)]
pub struct Pkcs11Args {
    /// The library of the token's vendor, for `pkcs11`.
    #[arg(long, value_name = "FILE", env = "WRIT_PKCS11_MODULE")]
    pub module: Option<PathBuf>,
    /// The token's label.
    #[arg(long, value_name = "LABEL")]
    pub token: Option<String>,
    /// The id of the key in it, in hexadecimal; ECDSA on P-256.
    #[arg(long, value_name = "HEX", default_value = "01")]
    pub key_id: String,
    /// A file with the PIN; else it is in `WRIT_PKCS11_PIN`.
    #[arg(long, value_name = "FILE")]
    pub pin_file: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub enum NotaryCommand {
    /// Answer hooks until this process ends.
    #[command(
        after_help = "Examples:\n  writ notary run                       its key lives in its memory\n  writ notary run --custody file        the key is the machine's, in its file\n  \
        writ notary run --custody pkcs11 --module /usr/lib/softhsm/libsofthsm2.so --token writ --pin-file PIN\n\nHooks of the same \
        user and state folder find it by themselves. Where none runs, they decide by themselves. Page: spec/notary.md."
    )]
    Run(Box<NotaryRunArgs>),
    /// Print the systemd unit and the user of a notary that is a user of its own, and what to do with them.
    #[command(after_help = "Example:\n  writ notary install --for alice | less")]
    Install {
        /// The user whose hooks ask.
        #[arg(long = "for", value_name = "USER")]
        of: String,
    },
    /// Say whether a notary runs here, since when, and what keeps its key. Exit code 3: none does.
    Status(FormatArgs),
    /// End the notary that runs here. What it answered is on record already.
    Stop,
}
