//! Arguments of agent packages: built, moved, signed, looked at.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Format, FormatArgs, KeylessArgs};

/// How registries are asked.
#[derive(ClapArgs, Debug, Clone)]
pub struct RegistryArgs {
    /// Speak to registries on other machines without TLS, too. To this machine, Writ always does.
    #[arg(long)]
    pub plain_http: bool,
    /// Blobs that are moved at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub concurrency: u8,
    /// Read from here before the registry itself; repeat it, or separate several by commas.
    #[arg(long, value_name = "REGISTRY=HOST[/PREFIX]", env = "WRIT_MIRROR", value_delimiter = ',')]
    pub mirror: Vec<String>,
    /// Ask no registry: take what was pulled before.
    #[arg(long)]
    pub offline: bool,
}

impl RegistryArgs {
    /// Asks none.
    pub const fn offline() -> Self {
        Self { plain_http: false, concurrency: 1, mirror: Vec::new(), offline: true }
    }

    /// Asks as nobody said otherwise.
    pub const fn usual() -> Self {
        Self { plain_http: false, concurrency: 4, mirror: Vec::new(), offline: false }
    }
}

/// `writ build`
#[derive(ClapArgs, Debug)]
pub struct BuildArgs {
    /// The folder that holds the `Agentfile` and its `agentrc.lock`.
    #[arg(default_value = ".", value_name = "DIR")]
    pub folder: PathBuf,
    /// Where the package goes: a layout's folder, or an archive where it ends in `.tar`.
    #[arg(short, long, value_name = "LAYOUT|ARCHIVE")]
    pub output: PathBuf,
    /// What it is called there.
    #[arg(long, value_name = "NAME", default_value = "latest")]
    pub tag: String,
    /// The Agentfile, when it has another name.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A file or folder below DIR for the source layer; repeat it for several.
    #[arg(long, value_name = "PATH")]
    pub source: Vec<PathBuf>,
    /// A file that holds what looks like a secret and is none.
    #[arg(long, value_name = "PATH")]
    pub known_token: Vec<PathBuf>,
    /// The package's version.
    #[arg(long = "package-version", value_name = "VERSION")]
    pub version: Option<String>,
    /// Its licence, as SPDX names it.
    #[arg(long, value_name = "SPDX")]
    pub licenses: Option<String>,
    /// Where its source is.
    #[arg(long, value_name = "URL")]
    pub source_url: Option<String>,
    /// Which commit that was.
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,
    /// Where the run manifest goes, when the Agentfile says where it runs.
    #[arg(long, value_name = "FILE")]
    pub run_manifest: Option<PathBuf>,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ push`
#[derive(ClapArgs, Debug)]
pub struct PushArgs {
    /// What to send: `LAYOUT[:NAME]`, an archive, or a reference that was pulled.
    #[arg(value_name = "PACKAGE")]
    pub from: String,
    /// Where to: `HOST[:PORT]/REPOSITORY[:TAG]`.
    #[arg(value_name = "REFERENCE")]
    pub to: String,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ pull`
#[derive(ClapArgs, Debug)]
pub struct PullArgs {
    /// What to fetch.
    #[arg(value_name = "REFERENCE")]
    pub from: String,
    /// Also write it to a layout's folder, or to an archive where it ends in `.tar`.
    #[arg(short, long, value_name = "LAYOUT|ARCHIVE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ copy`
#[derive(ClapArgs, Debug)]
pub struct CopyArgs {
    /// From: a reference, `LAYOUT[:NAME]` or an archive.
    #[arg(value_name = "FROM")]
    pub from: String,
    /// To: a reference, `LAYOUT[:NAME]`, or an archive where it ends in `.tar`.
    #[arg(value_name = "TO")]
    pub to: String,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ tag`
#[derive(ClapArgs, Debug)]
pub struct TagArgs {
    /// What gets another name: a reference or `LAYOUT[:NAME]`.
    #[arg(value_name = "PACKAGE")]
    pub package: String,
    /// The new name.
    #[arg(value_name = "TAG")]
    pub tag: String,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ login`
#[derive(ClapArgs, Debug)]
pub struct LoginArgs {
    /// The registry: `HOST[:PORT]`.
    #[arg(value_name = "REGISTRY")]
    pub registry: String,
    /// The user.
    #[arg(short, long, value_name = "NAME")]
    pub username: String,
    /// Read the password from standard input; without it, it is asked for on the terminal.
    #[arg(long)]
    pub password_stdin: bool,
    /// Speak to the registry without TLS, though it is another machine.
    #[arg(long)]
    pub plain_http: bool,
}

/// `writ logout`
#[derive(ClapArgs, Debug)]
pub struct LogoutArgs {
    /// The registry: `HOST[:PORT]`.
    #[arg(value_name = "REGISTRY")]
    pub registry: String,
}

/// `writ discover`
#[derive(ClapArgs, Debug)]
pub struct DiscoverArgs {
    /// A reference, `LAYOUT[:NAME]` or an archive.
    #[arg(value_name = "PACKAGE")]
    pub package: String,
    /// Artifacts of one type alone.
    #[arg(long, value_name = "TYPE")]
    pub artifact_type: Option<String>,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ inspect`
#[derive(ClapArgs, Debug)]
pub struct InspectArgs {
    /// A reference, `LAYOUT[:NAME]` or an archive.
    #[arg(value_name = "PACKAGE")]
    pub package: String,
    /// Show what this one, an update, asks for that PACKAGE did not.
    #[arg(long, value_name = "PACKAGE")]
    pub diff: Option<String>,
    /// With `--diff`, exit with 3 where it asks for more.
    #[arg(long, requires = "diff")]
    pub exit_code: bool,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ sign`
#[derive(ClapArgs, Debug)]
#[command(group = clap::ArgGroup::new("signer").required(true))]
pub struct SignArgs {
    /// A reference, `LAYOUT[:NAME]`; it is signed by its digest.
    #[arg(value_name = "PACKAGE")]
    pub package: String,
    /// The private key, PEM (`writ keys generate` makes one).
    #[arg(long, value_name = "PEM", group = "signer")]
    pub key: Option<PathBuf>,
    #[command(flatten)]
    pub keyless: KeylessArgs,
    /// Do not say how it was built.
    #[arg(long)]
    pub no_provenance: bool,
    /// Do not list what is in it.
    #[arg(long)]
    pub no_sbom: bool,
    /// Who built it, as a URI.
    #[arg(long, value_name = "URI")]
    pub builder: Option<String>,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

impl FormatArgs {
    /// Whether the answer is JSON.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}
