//! Arguments of attestations: issuing, verifying, gating, and the keys behind them.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use writ_consequence::Verdict;
use writ_core::Timestamp;

use super::{Format, FormatArgs};

/// Where the instance keeps its registry and attestations.
#[derive(ClapArgs, Debug, Clone)]
pub struct InstanceArgs {
    /// `postgres://…` of the instance's database; a SQLite file in Writ's state folder when left out.
    #[arg(long, env = "WRIT_DATABASE", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct AttestArgs {
    /// Sign the report and keep the attestation; it stands in the report's member `attestation`.
    #[arg(long)]
    pub attest: bool,
    /// Also write the attestation to a file of its own.
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub attest_to: Option<PathBuf>,
    /// How long the verdict holds: `90s`, `15m`, `2h`, `7d`.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = seconds, requires = "attest")]
    pub expires: i64,
    /// The attestation this one rests on: it becomes its parent, and both share a chain.
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub parent: Option<PathBuf>,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

#[derive(Subcommand, Debug)]
pub enum AttestationCommand {
    /// Check an attestation's form, key, signature and time.
    #[command(after_help = "Examples:\n  writ attestation verify plan.attestation.json\n  writ attestation verify \
        https://writ.example/.well-known/attestations/….json --trust https://writ.example\n  writ attestation verify a.json --registry \
        recourse-keys.json   without any network\n\nExit codes: 0 valid, 1 the registry cannot be fetched, 3 not valid, 4 unreadable.")]
    Verify {
        /// A file, a URL, or `-`.
        attestation: String,
        #[command(flatten)]
        trust: TrustArgs,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Take an instance's registry as it is published now, whatever version is known: lifts the protection against rollback once.
    #[command(
        after_help = "Example:\n  writ attestation refresh https://writ.example --operator me --because 'restored from a backup'\n\nThe refresh is \
        recorded before it takes effect."
    )]
    Refresh {
        /// The instance (`https://host[:port]`).
        instance: String,
        /// Who asks for it.
        #[arg(long)]
        operator: Option<String>,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        because: Option<String>,
    },
    /// Print an attestation that was issued here.
    Show {
        /// Its id: 32 hexadecimal digits.
        id: String,
        #[command(flatten)]
        instance: InstanceArgs,
    },
}

/// Whom to believe.
#[derive(ClapArgs, Debug)]
pub struct TrustArgs {
    /// An instance whose attestations count (`https://host[:port]`); may be given more than once. Your own always counts.
    #[arg(long, value_name = "URL")]
    pub trust: Vec<String>,
    /// A registry you got another way: nothing is fetched.
    #[arg(long, value_name = "FILE")]
    pub registry: Option<PathBuf>,
    /// Also fetch the copy behind the attestation's URL and compare.
    #[arg(long)]
    pub cross_check: bool,
    /// Use the nonce up: the same attestation is refused from then on.
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

#[derive(ClapArgs, Debug)]
#[group(id = "what", required = true, multiple = true, args = ["plan", "plan_json", "command", "call"])]
pub struct GateArgs {
    /// The attestation: a file, a URL, or `-`.
    #[arg(long, value_name = "FILE|URL")]
    pub require_attestation: String,
    /// The plan file that is to be applied.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The plan's document (`terraform show -json`).
    #[arg(long, value_name = "FILE")]
    pub plan_json: Option<PathBuf>,
    /// The shell line that is to be run.
    #[arg(long, value_name = "LINE")]
    pub command: Option<String>,
    /// The call that is to be made: `{tool, server?, arguments?}`.
    #[arg(long, value_name = "FILE")]
    pub call: Option<PathBuf>,
    /// The worst verdict that passes.
    #[arg(long, value_enum, default_value_t = Risk::Allow)]
    pub max_risk: Risk,
    /// How old the verdict may be, whatever it says of itself.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub max_age: Option<i64>,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// A verdict, as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Risk {
    /// Nothing that could not be undone with some effort.
    Allow,
    /// What a backup brings back.
    Warn,
    /// What somebody has to look at.
    Escalate,
    /// Anything.
    Block,
}

impl From<Risk> for Verdict {
    fn from(risk: Risk) -> Self {
        match risk {
            Risk::Allow => Self::Allow,
            Risk::Warn => Self::Warn,
            Risk::Escalate => Self::Escalate,
            Risk::Block => Self::Block,
        }
    }
}

/// The life of the keys that sign attestations.
#[derive(Subcommand, Debug)]
pub enum LifeCommand {
    /// Make a new key and let it sign: now, or at a moment that is published beforehand.
    #[command(
        after_help = "Examples:\n  writ keys rotate\n  writ keys rotate --at 2027-01-15T06:00:00Z   the new key is published now and signs \
        from then on"
    )]
    Rotate {
        /// When (RFC 3339).
        #[arg(long, value_name = "TIME", value_parser = moment)]
        at: Option<Timestamp>,
        #[command(flatten)]
        instance: InstanceArgs,
    },
    /// Take a key out of signing; what it signed still counts.
    Deprecate(KeyArgs),
    /// Take a deprecated key out of rotation for good; what it signed still counts.
    Retire(KeyArgs),
    /// Declare a key compromised: nothing it ever signed counts.
    Compromise(KeyArgs),
    /// Print the registry as it is published.
    Registry {
        /// Every version there ever was, one a line, oldest first.
        #[arg(long)]
        history: bool,
        #[command(flatten)]
        instance: InstanceArgs,
    },
}

#[derive(ClapArgs, Debug)]
pub struct KeyArgs {
    /// The key's id.
    pub id: String,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

#[derive(ClapArgs, Debug)]
pub struct KeyListArgs {
    /// How to print the answer.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|error| error.to_string())
}

/// `90s`, `15m`, `2h`, `7d`.
fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is no time: write `90s`, `15m`, `2h` or `7d`");
    let unit = |(number, unit): (&str, i64)| Some(number.parse::<u32>().ok()?).map(|number| i64::from(number) * unit);
    [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)]
        .into_iter()
        .find_map(|(letter, size)| Some((text.strip_suffix(letter)?, size)))
        .and_then(unit)
        .filter(|seconds| *seconds > 0)
        .ok_or_else(wrong)
}
