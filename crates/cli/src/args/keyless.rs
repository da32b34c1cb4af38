//! Arguments of a signature without a key of one's own.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// The services that vouch for a signer without a key.
#[derive(ClapArgs, Debug)]
pub struct KeylessArgs {
    /// Sign as whoever an identity token names, with the services in this file, as cosign's `--signing-config` has it.
    #[arg(long, value_name = "JSON", group = "signer", conflicts_with_all = ["fulcio_url", "rekor_url", "tsa_url"])]
    pub signing_config: Option<PathBuf>,
    /// Sign as whoever an identity token names: the address of Fulcio, which certifies a key made for this.
    #[arg(long, value_name = "URL", group = "signer", requires = "rekor_url")]
    pub fulcio_url: Option<String>,
    /// The transparency log, a Rekor of version 1, that the signatures are put into.
    #[arg(long, value_name = "URL", requires = "fulcio_url")]
    pub rekor_url: Option<String>,
    /// A timestamp authority (RFC 3161) that says when, beside the log.
    #[arg(long, value_name = "URL", requires = "fulcio_url")]
    pub tsa_url: Option<String>,
    /// The identity token; `-` is standard input. Without it, the variable `SIGSTORE_ID_TOKEN` holds it.
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    pub identity_token_file: Option<PathBuf>,
}
