//! Arguments of the two servers: `writ serve` and `writ mcp serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::InstanceArgs;

/// Format of the service's log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// `time level name=value …`
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(ClapArgs, Debug)]
pub struct ServeArgs {
    /// Address and port to listen on; a port of 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    pub listen: SocketAddr,
    /// Sign every verdict, and keep it.
    #[arg(long)]
    pub attest: bool,
    /// The instance's name, from its first start on.
    #[arg(long, value_name = "NAME", requires = "attest")]
    pub instance: Option<String>,
    /// Where others reach it: scheme, host and port of its attestations' URLs.
    #[arg(long, value_name = "URL", requires = "attest")]
    pub base_url: Option<String>,
    /// How long a verdict holds, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = writ_engine::attest::issuer::SHELF_LIFE_SECONDS, requires = "attest",
        value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub shelf_life: i64,
    #[command(flatten)]
    pub database: InstanceArgs,
    /// File of access tokens, one per line, that only its owner can read.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate chain, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM, that only its owner can read.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Requests per second of each token or peer; 0 for no limit.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    pub rate: u32,
    /// Largest body, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = clap::value_parser!(u32).range(1..=67_108_864))]
    pub max_body: u32,
    /// How long an answer may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
    /// Where to send spans and metrics (OTLP over HTTP); the `OTEL_EXPORTER_OTLP_*` variables count when left out.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Format of the log on stderr.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
}

#[derive(Subcommand, Debug)]
pub enum McpCommand {
    /// Serve on standard input and output, or over HTTP.
    #[command(
        after_help = "Examples:\n  claude mcp add writ -- writ mcp serve\n  writ mcp serve --attest                signed reports\n  \
        writ mcp serve --http 127.0.0.1:7412   at http://127.0.0.1:7412/mcp"
    )]
    Serve(McpServeArgs),
}

#[derive(ClapArgs, Debug)]
pub struct McpServeArgs {
    /// Serve over streamable HTTP at this address. Beyond this machine only with `--token-file`.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// File of access tokens, one per line, that only its owner can read.
    #[arg(long, value_name = "FILE", requires = "http")]
    pub token_file: Option<PathBuf>,
    /// Where others reach it: scheme, host and port of its attestations' URLs.
    #[arg(long, value_name = "URL", requires_all = ["http", "attest"])]
    pub base_url: Option<String>,
    /// Another name it is reached by, as `host` or `host:port`. May be given more than once.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allow_host: Vec<String>,
    /// Sign every report; a report that cannot be signed is not given.
    #[arg(long)]
    pub attest: bool,
    /// Leave the input out of the attestations, which then hold only digests; reports name nothing of the input.
    #[arg(long, requires = "attest")]
    pub hash_only: bool,
    /// An instance whose attestations count when they are verified (`https://host[:port]`); may be given more than once.
    #[arg(long, value_name = "URL")]
    pub trust: Vec<String>,
    #[command(flatten)]
    pub instance: InstanceArgs,
}
