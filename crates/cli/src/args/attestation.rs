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
    /// Sign the report and keep the attestation; it is the report's member `attestation`.
    #[arg(long)]
    pub attest: bool,
    /// Also write the attestation to a file of its own.
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub attest_to: Option<PathBuf>,
    /// How long the verdict holds: `90s`, `15m`, `2h`, `7d`.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = seconds, requires = "attest")]
    pub expires: i64,
    /// Leave the input out of the attestation, which then holds only digests; the report names nothing of the input.
    #[arg(long, requires = "attest")]
    pub hash_only: bool,
    /// The attestation this one rests on: it becomes its parent, and both share a chain.
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub parent: Option<PathBuf>,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

#[derive(Subcommand, Debug)]
pub enum AttestationCommand {
    /// Check an attestation's form, instance, key, signature and time. The result is recorded.
    #[command(after_help = "Examples:\n  writ attestation verify plan.attestation.json\n  writ attestation verify \
        https://writ.example/.well-known/attestations/….json \\\n    --trust https://writ.example\n  writ attestation verify a.json --registry \
        recourse-keys.json   without any network\n  writ attestation verify report.json --mode verify   a report need not have one\n\nExit \
        codes: 0 go on, 1 the file or the registry cannot be read, 2 wrong usage, 3 not valid, 4 the registry's file is malformed.")]
    Verify {
        /// An attestation, or a report that holds one: a file, a URL, or `-`.
        attestation: String,
        /// What to do with it: ignore it, record it, verify it where there is one, or require one.
        #[arg(long, value_enum, default_value_t)]
        mode: Mode,
        #[command(flatten)]
        trust: TrustArgs,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Accept an instance's registry as it is published now, whatever version is known: skips the rollback protection once.
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
    /// List the attestations that were issued here, the newest first, or those of a session's turns. Each is told by its type.
    #[command(
        after_help = "Examples:\n  writ attestation list              verdicts that were attested here, and the turns of the newest session\n  \
        writ attestation list SESSION      the turns of that session alone"
    )]
    List {
        /// A session: only its turns are listed.
        session: Option<String>,
        /// How many to show at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        most: usize,
        #[command(flatten)]
        format: FormatArgs,
        #[command(flatten)]
        instance: InstanceArgs,
    },
    /// Delete attestations that expired long ago. Whoever holds a copy can still verify it.
    #[command(after_help = "Example:\n  writ attestation prune --ended 90d\n\nFor people: an agent may not run it.")]
    Prune {
        /// Delete those that expired at least this long ago.
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = seconds)]
        ended: i64,
        /// Say how many, and delete none.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        instance: InstanceArgs,
    },
    /// Print an attestation: a verdict's document, or what the statement of a turn says.
    #[command(
        after_help = "Examples:\n  writ attestation show 0123456789abcdef0123456789abcdef\n  writ attestation show turn-1.json\n  writ attestation \
        show turn-1.json --session SESSION\n\nExit codes: 0 shown, 1 there is none, or it is not what its row names."
    )]
    Show {
        /// A verdict's id, 32 hexadecimal digits, or the name of a turn's file.
        id: String,
        /// The session whose turn it is. The newest one here when left out.
        #[arg(long)]
        session: Option<String>,
        #[command(flatten)]
        instance: InstanceArgs,
    },
    /// Take a statement that somebody else signed into a session's record: of witness, of the Go aflock, of any in-toto tool.
    #[command(
        after_help = "Examples:\n  writ attestation import build.json --key ci.pub\n  writ attestation import scan.json --key ci.pub --name \
        security-scan\n\nIt is the key's word, and counts where the policy's `functionaries` name the key. Exit codes: 0 taken, 1 it cannot be, or is there \
        already, 4 it is no signed statement."
    )]
    Import {
        /// The DSSE envelope; `-` for standard input.
        file: PathBuf,
        /// The public key that signed it, PEM; may be given more than once.
        #[arg(long, value_name = "PEM", required = true)]
        key: Vec<PathBuf>,
        /// The step that it is of; the name of its collection when left out.
        #[arg(long)]
        name: Option<String>,
        /// The session. The newest one here when left out.
        #[arg(long)]
        session: Option<String>,
    },
    /// Store a session's signed statements, of turns and steps, in an Archivista.
    #[command(
        after_help = "Example:\n  writ attestation push --to https://archivista.example.org\n\nFor people: an agent may not run it. Exit codes: 0 \
        stored, 1 one is gone or changed, or the store did not take it as it is."
    )]
    Push {
        /// The session. The newest one here when left out.
        session: Option<String>,
        /// The store's address.
        #[arg(long, value_name = "URL")]
        to: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Fetch a signed statement from an Archivista by its git object id. What it says is not checked: `import` does.
    #[command(
        after_help = "Example:\n  writ attestation fetch 2cf8d83d… --from https://archivista.example.org -o build.json\n\nFor people: an agent \
        may not run it. Exit codes: 0 fetched, 1 it is not there, or is another."
    )]
    Fetch {
        /// The git object id, 64 hexadecimal digits.
        gitoid: String,
        /// The store's address.
        #[arg(long, value_name = "URL")]
        from: String,
        /// Where it is written; standard output when left out.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace that file, where it is there.
        #[arg(long)]
        force: bool,
    },
    /// List the signed statements that an Archivista has about something with a digest.
    #[command(
        after_help = "Example:\n  writ attestation search 9f86d081884c7d65… --at https://archivista.example.org\n\nFor people: an agent may not \
        run it. Exit codes: 0 asked, 1 the store does not answer."
    )]
    Search {
        /// The digest of a statement's subject, in hexadecimal.
        digest: String,
        /// The store's address.
        #[arg(long, value_name = "URL")]
        at: String,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Copy the signed statements of a session's turns into a folder, for others to verify.
    #[command(
        after_help = "Example:\n  writ attestation export --to proof\n\nNothing that is there is written over. Exit codes: 0 copied, 1 a \
        statement is gone or changed, or cannot be written."
    )]
    Export {
        /// The session. The newest one here when left out.
        session: Option<String>,
        /// The folder; it is made.
        #[arg(long, value_name = "FOLDER")]
        to: PathBuf,
    },
}

/// Whom to trust.
#[derive(ClapArgs, Debug)]
pub struct TrustArgs {
    /// An instance whose attestations count (`https://host[:port]`); may be given more than once. Your own always counts.
    #[arg(long, value_name = "URL")]
    pub trust: Vec<String>,
    /// A registry you got another way: nothing is fetched. Trust, times and nonces are still checked; without `--trust` it
    /// speaks for any instance.
    #[arg(long, value_name = "FILE", conflicts_with = "cross_check")]
    pub registry: Option<PathBuf>,
    /// Also fetch the copy behind the attestation's URL over the network and compare.
    #[arg(long)]
    pub cross_check: bool,
    /// Use up the nonce, as the last step: a gate refuses the same attestation from then on. One without a nonce is refused.
    #[arg(long)]
    pub once: bool,
    /// How long a fetched registry is used before it is fetched again.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = seconds)]
    pub ttl: i64,
    /// How often a request is repeated after no answer or a 5xx.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub retries: u8,
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
    /// The folder it is to be run in, or the call made from; must be the attestation's. The current folder when left out.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The call that is to be made: `{tool, server?, arguments?}`.
    #[arg(long, value_name = "FILE")]
    pub call: Option<PathBuf>,
    /// The worst verdict that passes.
    #[arg(long, value_enum, default_value_t = Risk::Allow)]
    pub max_risk: Risk,
    /// How old the verdict may be, whatever its own expiry.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub max_age: Option<i64>,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// What to do with attestations (`attestation_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum Mode {
    /// Look at nothing, record nothing, go on.
    Ignore,
    /// Record what came, go on.
    Log,
    /// Verify what came; go on with a warning where nothing did.
    Verify,
    /// Go on with a verified attestation only.
    #[default]
    Require,
}

impl From<Mode> for writ_verifier::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Ignore => Self::Ignore,
            Mode::Log => Self::Log,
            Mode::Verify => Self::Verify,
            Mode::Require => Self::Require,
        }
    }
}

/// A verdict, as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Risk {
    /// Only what can be undone with some effort.
    Allow,
    /// Also what a backup brings back.
    Warn,
    /// Also what a human has to review.
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
    /// Make a new key and let it sign: now, or at a time that is published beforehand.
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
    /// Declare a key compromised: nothing it ever signed counts any more.
    Compromise(KeyArgs),
    /// Print the registry as it is published.
    Registry {
        /// Every version so far, one per line, oldest first.
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
