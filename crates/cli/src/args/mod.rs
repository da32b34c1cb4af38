//! The command line, typed.

mod attestation;
mod serve;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub use attestation::{
    AttestArgs, AttestationCommand, GateArgs, InstanceArgs, KeyArgs, KeyListArgs, LifeCommand, TrustArgs,
};
pub use serve::{LogFormat, ServeArgs};

/// Hold an AI agent to a written policy, and leave proof of what it did.
#[derive(Parser, Debug)]
#[command(name = "writ", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Examples:\n  writ demo                     the whole road on a built-in example\n  writ init                     policy and hooks \
    for this repository\n  writ verify                   check the newest session of this repository\n  writ why -p .aflock 'git push'  what the \
    policy says about a command\n\nExit codes: 0 fine, 1 could not do it, 2 wrong usage, 3 the answer is no, 4 malformed input."
)]
pub struct Args {
    /// Colours: `auto` means only on a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Color {
    /// On a terminal only.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Default)]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON document.
    Json,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the whole road on a built-in example: declare, decide, enforce, record, verify.
    #[command(
        after_help = "Examples:\n  writ demo\n  writ demo --keep /tmp/writ-demo   keep the repository and the evidence"
    )]
    Demo(DemoArgs),
    /// Write a starter policy and install the hooks in the agent's settings.
    #[command(
        after_help = "Examples:\n  writ init            this project's settings\n  writ init --user     your own settings, for every \
        project\n  writ init --undo     put the settings file back as it was"
    )]
    Init(InitArgs),
    /// Check the installation, and say what is wrong and how to mend it.
    Doctor(FormatArgs),
    /// Answer one hook call of an agent client (JSON on stdin, one JSON object on stdout).
    Hook,
    /// Make, check, show, sign and verify policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Make and list keys, and say whom you trust.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Decide tool calls under a policy.
    #[command(
        after_help = "Examples:\n  echo '{\"tool\":\"Read\",\"input\":{\"file_path\":\"src/a.rs\"}}' | writ decide --policy .aflock\n  \
        writ decide --policy .aflock --tool Bash --input '{\"command\":\"git push\"}'\n\nWith --tool the exit code is 0 for allow and 3 \
        for ask or deny."
    )]
    Decide(DecideArgs),
    /// Explain one decision in prose, with the matched part underlined.
    #[command(
        after_help = "Examples:\n  writ why 'cd sub && git push'\n  writ why --tool Write --input '{\"file_path\":\".env\"}'"
    )]
    Why(WhyArgs),
    /// Look at a shell line the way the policy does.
    #[command(subcommand)]
    Shell(ShellCommand),
    /// Let one asked call run once. Only a human at a terminal can.
    #[command(
        after_help = "Examples:\n  writ approve              list what waits for approval\n  writ approve 3f9a1c02     let that call run once"
    )]
    Approve(ApproveArgs),
    /// List and show recorded sessions.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Show or verify one ledger file.
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Say what an action would do, and what could bring it back.
    #[command(subcommand)]
    Evaluate(EvaluateCommand),
    /// Verify attestations, and show those issued here.
    #[command(subcommand)]
    Attestation(AttestationCommand),
    /// Let an action pass only with a valid, fresh attestation of exactly this action. For CI.
    #[command(
        after_help = "Examples:\n  writ gate --require-attestation tfplan.attestation.json --plan tfplan --max-risk warn\n  writ gate \
        --require-attestation $URL --command 'make deploy' --trust https://writ.example\n\nA command passes in the folder its \
        attestation names only (`--cwd`).\n\nExit codes: 0 passes, 1 the registry cannot be had or Writ's own files fail, 2 wrong usage, 3 does \
        not pass (a missing attestation or plan included), 4 malformed input."
    )]
    Gate(GateArgs),
    /// List and show the rules behind evaluations.
    #[command(subcommand)]
    Consequences(ConsequencesCommand),
    /// Serve evaluations and attestations over HTTP, on this machine unless told otherwise.
    #[command(
        after_help = "Examples:\n  writ serve                       evaluations on http://127.0.0.1:7411\n  writ serve --attest              signed and \
        kept, too\n  writ serve --listen 0.0.0.0:7411 --token-file tokens --tls-cert c.pem --tls-key k.pem \\\n    --attest --base-url https://writ.example:7411"
    )]
    Serve(ServeArgs),
    /// Lay an agent's claim of having finished beside what git says.
    #[command(subcommand)]
    Claim(ClaimCommand),
    /// List a session's claims next to the facts.
    #[command(
        after_help = "Examples:\n  writ claims                the newest session of this repository\n  writ claims 7c0f… --format json"
    )]
    Claims(ClaimsArgs),
    /// Say which policy governs here and how the newest session stands.
    Status(FormatArgs),
    /// Offer evaluation and verification to agents, as tools of the Model Context Protocol.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Verify a session: policy, rows, checkpoints, decisions, coverage.
    #[command(
        after_help = "Examples:\n  writ verify                         the newest session of this repository\n  writ verify 7c0f…                   \
        a session by its id\n  writ verify ./evidence --key k.pem   a folder someone gave you, under a key you know\n\nExit codes: 0 verified, \
        3 not verified, 4 no evidence there."
    )]
    Verify(VerifyArgs),
    /// Print a completion script for your shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(ClapArgs, Debug)]
pub struct FormatArgs {
    /// How to print the answer.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[derive(ClapArgs, Debug)]
pub struct DemoArgs {
    /// Keep the repository and the evidence in this folder (created; must be empty).
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub struct InitArgs {
    /// Install in your own settings instead of the project's.
    #[arg(long)]
    pub user: bool,
    /// Take the hooks out again and put the settings file back.
    #[arg(long)]
    pub undo: bool,
    /// Version of the agent client, when it is not to be asked for it (`2.1.329`).
    #[arg(long, value_name = "VERSION")]
    pub client_version: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum PolicyCommand {
    /// Write a starter policy fitted to this repository.
    New {
        /// Where to write it; `-` for stdout.
        #[arg(default_value = ".aflock")]
        file: PathBuf,
        /// Replace an existing file.
        #[arg(long)]
        force: bool,
    },
    /// Check a policy, and list what nothing enforces yet.
    Check {
        /// The policy, plain or signed; found as a session finds it when left out.
        file: Option<PathBuf>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show the policy that governs here, and where it comes from.
    Show {
        /// The policy; found as a session finds it when left out.
        file: Option<PathBuf>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Sign a policy: a DSSE envelope over its exact bytes.
    Sign {
        /// The plain policy.
        file: PathBuf,
        /// Private key, PKCS#8 PEM (Ed25519 or ECDSA P-256). May be given more than once.
        #[arg(long, required = true)]
        key: Vec<PathBuf>,
        /// Where to write the envelope; `FILE.signed` when left out, `-` for stdout.
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Verify a signed policy's signatures.
    Verify {
        /// The envelope.
        file: PathBuf,
        /// Public key, PEM. Without one, the keys you trust.
        #[arg(long)]
        key: Vec<PathBuf>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Print the JSON Schema for editors.
    Schema,
    /// Accept the policy as it is now for a running session. Only a human at a terminal can.
    Accept {
        /// The session; the newest of this repository when left out.
        session: Option<String>,
    },
}

/// Signature algorithm.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KeyKind {
    /// Ed25519.
    Ed25519,
    /// ECDSA on NIST P-256 with SHA-256.
    P256,
}

#[derive(Subcommand, Debug)]
pub enum KeysCommand {
    /// Make a key pair: PKCS#8 PEM, and the public key beside it with `.pub`.
    Generate {
        /// Where to write the private key (mode 0600). Never overwritten.
        file: PathBuf,
        /// The algorithm.
        #[arg(long, value_enum, default_value_t = KeyKind::Ed25519)]
        algorithm: KeyKind,
    },
    /// Pin a public key as one whose policies you accept.
    Trust {
        /// Public key, PEM.
        file: PathBuf,
    },
    /// Take a pinned key back.
    Distrust {
        /// The key's id, or enough of it.
        id: String,
    },
    /// Require that every policy is signed by a pinned key (`on`), or only warn (`off`).
    RequireSigned {
        /// `on` or `off`.
        #[arg(value_parser = ["on", "off"])]
        switch: String,
    },
    /// List the ledger key, the pinned keys, and the keys that sign attestations.
    List(KeyListArgs),
    #[command(flatten)]
    Life(LifeCommand),
}

#[derive(ClapArgs, Debug)]
pub struct DecideArgs {
    /// The policy, plain or signed.
    #[arg(long, short)]
    pub policy: PathBuf,
    /// The folder relative patterns and calls hang off; the policy's own folder when left out.
    #[arg(long)]
    pub root: Option<PathBuf>,
    /// Decide one call of this tool instead of reading JSON lines.
    #[arg(long, requires = "input")]
    pub tool: Option<String>,
    /// The tool's input, as JSON.
    #[arg(long, requires = "tool")]
    pub input: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct WhyArgs {
    /// A shell line, for the Bash tool.
    #[arg(conflicts_with = "tool", required_unless_present = "tool")]
    pub line: Option<String>,
    /// The policy; found as a session finds it when left out.
    #[arg(long, short)]
    pub policy: Option<PathBuf>,
    /// The folder relative patterns hang off; the policy's own folder when left out.
    #[arg(long)]
    pub root: Option<PathBuf>,
    /// The tool.
    #[arg(long, requires = "input")]
    pub tool: Option<String>,
    /// The tool's input, as JSON.
    #[arg(long, requires = "tool")]
    pub input: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum ShellCommand {
    /// Show the syntax tree and what the line would do.
    #[command(after_help = "Example:\n  writ shell explain 'sudo sh -c \"curl https://x.example | sh\"'")]
    Explain {
        /// The line; `-` for stdin.
        line: String,
        #[command(flatten)]
        format: FormatArgs,
    },
}

#[derive(ClapArgs, Debug)]
pub struct ApproveArgs {
    /// The call's short digest, from the denial; lists what waits when left out.
    pub call: Option<String>,
    /// The session; the newest of this repository when left out.
    #[arg(long)]
    pub session: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum SessionCommand {
    /// List recorded sessions, newest first.
    List(FormatArgs),
    /// Show one session row by row.
    Show {
        /// The session; the newest of this repository when left out.
        session: Option<String>,
        #[command(flatten)]
        format: FormatArgs,
    },
}

#[derive(Subcommand, Debug)]
pub enum LedgerCommand {
    /// Show a ledger's rows.
    Show {
        /// `ledger.jsonl`.
        file: PathBuf,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Verify a ledger's chain, and the checkpoints beside it.
    Verify {
        /// `ledger.jsonl`.
        file: PathBuf,
        #[command(flatten)]
        format: FormatArgs,
    },
}

/// The verdict from which on the exit code is 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Anything but `allow`.
    Warn,
    /// `escalate` and `block`.
    Escalate,
    /// `block` only.
    Block,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Default)]
pub enum ReportFormat {
    /// For people: verdict, the worst thing, why, how to undo it.
    #[default]
    Human,
    /// `recourse.consequence.v1`.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

#[derive(Subcommand, Debug)]
pub enum EvaluateCommand {
    /// A shell line.
    #[command(
        after_help = "Examples:\n  writ evaluate shell 'git push --force'\n  writ evaluate shell --explain 'rm -rf build src'\n  writ evaluate shell \
        --batch < lines.jsonl   {\"command\": …, \"cwd\": …} a line\n\nExit codes: 0, or 3 from --fail-on on."
    )]
    Shell {
        /// The line; stdin when left out or `-`.
        #[arg(default_value = "-")]
        line: String,
        /// Where it would run; here when left out.
        #[arg(long)]
        cwd: Option<PathBuf>,
        #[command(flatten)]
        how: EvaluateArgs,
    },
    /// A Terraform or OpenTofu plan: its JSON, or the plan file itself.
    #[command(
        after_help = "Examples:\n  terraform show -json tfplan | writ evaluate terraform --fail-on warn\n  writ evaluate terraform tfplan --attest \
        --expires 1h   binds the verdict to this plan file: tfplan.attestation.json"
    )]
    Terraform {
        /// The plan as JSON (stdin when left out or `-`), or a plan file, which `terraform` or `tofu` is asked to show.
        #[arg(default_value = "-")]
        file: String,
        /// The state before (`terraform show -json`), when the plan has none.
        #[arg(long)]
        state: Option<PathBuf>,
        #[command(flatten)]
        how: EvaluateArgs,
    },
    /// A call to a tool on a server: `{"tool": …, "arguments": …, "server"?, "annotations"?}`.
    #[command(
        after_help = "Example:\n  echo '{\"tool\":\"execute_sql\",\"arguments\":{\"sql\":\"DROP TABLE a\"}}' | writ evaluate mcp"
    )]
    Mcp {
        /// The call as JSON; stdin when left out or `-`.
        #[arg(default_value = "-")]
        file: String,
        #[command(flatten)]
        how: EvaluateArgs,
    },
}

#[derive(ClapArgs, Debug)]
pub struct EvaluateArgs {
    /// How to print the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// The verdict from which on the exit code is 3.
    #[arg(long, value_enum, default_value_t = FailOn::Block)]
    pub fail_on: FailOn,
    /// JSON lines in, a report a line out.
    #[arg(long)]
    pub batch: bool,
    /// Also show rule, span, evidence used and evidence missing of each finding.
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub attest: AttestArgs,
}

#[derive(Subcommand, Debug)]
pub enum McpCommand {
    /// Serve on standard input and output, or over HTTP.
    #[command(
        after_help = "Examples:\n  claude mcp add writ -- writ mcp serve\n  writ mcp serve --attest                reports under signature\n  \
        writ mcp serve --http 127.0.0.1:7412   at http://127.0.0.1:7412/mcp"
    )]
    Serve(McpServeArgs),
}

#[derive(ClapArgs, Debug)]
pub struct McpServeArgs {
    /// Serve over streamable HTTP at this address. Nobody is asked who they are: keep it on this machine.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,
    /// Another name it is reached by, as `host` or `host:port`. May be given more than once.
    #[arg(long, value_name = "NAME", requires = "http")]
    pub allow_host: Vec<String>,
    /// Put every report under signature; a report that cannot be is not given.
    #[arg(long)]
    pub attest: bool,
    /// An instance whose attestations count when they are verified (`https://host[:port]`); may be given more than once.
    #[arg(long, value_name = "URL")]
    pub trust: Vec<String>,
    #[command(flatten)]
    pub instance: InstanceArgs,
}

#[derive(Subcommand, Debug)]
pub enum ConsequencesCommand {
    /// List every rule with its tier.
    List,
    /// Write a page for each family of rules.
    Pages {
        /// Where to.
        #[arg(default_value = "docs/consequences")]
        folder: PathBuf,
    },
    /// Show one rule.
    Show {
        /// Its id: `git/force-push`, or a Terraform type.
        rule: String,
    },
}

#[derive(Subcommand, Debug)]
pub enum ClaimCommand {
    /// Read a claim: status, files, blockers, whether tests were run.
    #[command(after_help = "Example:\n  printf 'Status: DONE\\nFiles changed: a.py' | writ claim parse")]
    Parse {
        /// The agent's last words; stdin when left out or `-`.
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// Take the state of a work tree: path and fingerprint of everything that differs from HEAD.
    #[command(after_help = "Example:\n  writ claim snapshot --repo . > before.json")]
    Snapshot {
        /// The repository.
        #[arg(long, default_value = ".")]
        repo: PathBuf,
    },
    /// Lay a claim beside a state taken before and the work tree as it is now.
    #[command(
        after_help = "Example:\n  writ claim verify --claim-file words.md --before before.json --repo . --exit-code\n\nExit codes: 0 also for \
        a false claim (3 with --exit-code), 1 when something cannot be read."
    )]
    Verify(ClaimVerifyArgs),
}

#[derive(ClapArgs, Debug)]
pub struct ClaimVerifyArgs {
    /// The agent's last words; `-` for stdin.
    #[arg(long, value_name = "FILE")]
    pub claim_file: PathBuf,
    /// What `writ claim snapshot` printed before.
    #[arg(long, value_name = "FILE")]
    pub before: PathBuf,
    /// The repository.
    #[arg(long, default_value = ".")]
    pub repo: PathBuf,
    /// The agent's transcript: proves writes that were reported and never landed.
    #[arg(long, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// Also print a verdict for each file.
    #[arg(long)]
    pub files: bool,
    /// Exit with 3 when the claim is false.
    #[arg(long)]
    pub exit_code: bool,
}

#[derive(ClapArgs, Debug)]
pub struct ClaimsArgs {
    /// The session; the newest of this repository when left out.
    pub session: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(ClapArgs, Debug)]
pub struct VerifyArgs {
    /// A session id or a folder of evidence; the newest session of this repository when left out.
    pub target: Option<String>,
    /// The public key the checkpoints must be signed with, PEM.
    #[arg(long)]
    pub key: Option<PathBuf>,
    /// The client's transcript, when it is not where the session says.
    #[arg(long)]
    pub transcript: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
}
