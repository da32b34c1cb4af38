//! Arguments of the servers and the proxy: `writ serve`, `writ mcp`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{FormatArgs, InstanceArgs};

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
        after_help = "Examples:\n  claude mcp add writ -- writ mcp serve\n  writ mcp serve --attest                signed reports\n  writ mcp serve --guarded               Writ runs what the policy allows\n  \
        writ mcp serve --http 127.0.0.1:7412   at http://127.0.0.1:7412/mcp"
    )]
    Serve(McpServeArgs),
    /// Stand between a client and any MCP server, so that its calls obey the policy and are on record.
    #[command(
        after_help = "Examples:\n  claude mcp add files -- writ mcp proxy --name files -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        writ mcp proxy --name docs --header 'Authorization: Bearer ${DOCS_TOKEN}' https://mcp.example/mcp\n\nPolicies name its tools \
        `mcp__NAME__TOOL`: give the name by which the client knows the server.\n\nExit codes: the server's own; 1 when it cannot be started."
    )]
    Proxy(McpProxyArgs),
    /// Show what servers' tools were when they were first seen, and what has changed since.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  writ mcp pins                     every server of this repository\n  writ mcp pins accept files        all that has changed on `files`\n  \
        writ mcp pins accept files edit   one tool"
    )]
    Pins(McpPinsArgs),
}

#[derive(ClapArgs, Debug)]
pub struct McpProxyArgs {
    /// The server's name in its tools' names (`mcp__NAME__TOOL`); the program's or the host's when left out.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// A header for a server behind a URL; `${NAME}` in it is that variable's value. May be given more than once.
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// The command that starts the server, or its URL (streamable HTTP).
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND | URL")]
    pub server: Vec<OsString>,
}

#[derive(ClapArgs, Debug)]
pub struct McpPinsArgs {
    /// What to do; lists them when left out.
    #[command(subcommand)]
    pub command: Option<McpPinsCommand>,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(Subcommand, Debug)]
pub enum McpPinsCommand {
    /// List them.
    List(FormatArgs),
    /// Let in what a server says now. Only a human at a terminal can.
    Accept {
        /// The server's name.
        server: String,
        /// One of its tools; every one that has changed when left out.
        tool: Option<String>,
    },
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
    /// Offer the tools of the agent's session too, among them `bash`, `read_file` and `write_file`: Writ runs what the policy allows.
    #[arg(long, conflicts_with = "http")]
    pub guarded: bool,
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
