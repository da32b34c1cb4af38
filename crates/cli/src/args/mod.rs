//! The command line, typed.

mod agentfile;
mod agentflow;
mod approvals;
mod attestation;
mod claims;
pub mod complete;
mod evaluate;
mod identity;
mod keyless;
mod limits;
mod looking;
mod notary;
mod package;
mod past;
mod policy;
mod sandbox;
mod schema;
mod serve;
mod step;
mod token;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::env::{CompleteEnv, Shells};
use writ_clients::mcp::NAME as NO_HOOKS;
use writ_clients::{CLIENTS, DEFAULT};

use crate::output::Color;

pub use agentfile::{AgentDecideArgs, AgentfileCommand, LintArgs, LintFormat, LockArgs, ProveArgs};
pub use agentflow::{AgentflowCommand, StartArgs, StartFormat, VerifyRunArgs};
pub use approvals::{AnswerArgs, ApprovalsArgs, ApproveArgs, WordArgs};
pub use attestation::{
    AttestArgs, AttestationCommand, GateArgs, InstanceArgs, KeyArgs, KeyListArgs, LifeCommand, TrustArgs,
};
pub use claims::{ClaimCommand, ClaimVerifyArgs, ClaimsArgs};
pub use evaluate::{ConsequencesCommand, EvaluateArgs, EvaluateCommand, FailOn, ReportFormat};
pub use identity::IdentityArgs;
pub use keyless::KeylessArgs;
pub use limits::{LimitsCommand, PriceArgs, PricesCommand, RaiseArgs};
pub use looking::{OpenArgs, ReportArgs, WatchArgs};
pub use notary::{NotaryCommand, NotaryRunArgs, Pkcs11Args};
pub use package::{
    BuildArgs, CopyArgs, DiscoverArgs, InspectArgs, LoginArgs, LogoutArgs, PullArgs, PushArgs, RegistryArgs, SignArgs,
    TagArgs,
};
pub use past::{AddArgs, CasesArgs, DiffArgs, LearnArgs, PastArgs, ReplayArgs};
pub use policy::{DecideArgs, KeyKind, KeysCommand, PolicyCommand, TrustedArgs, WhyArgs};
pub use sandbox::{CopyApplyArgs, CopyDiffArgs, SandboxCommand, TestArgs};
pub use schema::SchemaArgs;
pub use serve::{LogFormat, McpCommand, McpPinsArgs, McpPinsCommand, McpProxyArgs, McpServeArgs, ServeArgs};
pub use step::{StepCommand, StepRunArgs};
pub use token::{TokenArgs, TokenCommand};
pub use tool::{ProjectArgs, ToolArgs, ToolCallArgs, ToolCommand, ToolEventsArgs, ToolsArgs};

/// Hold an AI agent to a written policy, and leave proof of what it did.
#[derive(Parser, Debug)]
#[command(name = "writ", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Examples:\n  writ demo                     every step on a built-in example\n  writ init                     policy and hooks \
    for this repository\n  writ run -- claude            the whole agent in a sandbox\n  writ verify                   check the newest session of this repository\n  writ why -p .aflock 'git push'  what the \
    policy says about a command\n\nExit codes: 0 fine, 1 could not do it, 2 wrong usage, 3 the answer is no, 4 malformed input."
)]
pub struct Args {
    /// Colours: `auto` means only on a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

/// The variable by which a shell's script asks for completions.
const COMPLETE: &str = "WRIT_COMPLETE";

/// Answers a shell that asks for completions. Says whether one did.
pub fn completed() -> Result<bool, clap::Error> {
    let cwd = std::env::current_dir().ok();
    CompleteEnv::with_factory(Args::command).var(COMPLETE).try_complete(std::env::args_os(), cwd.as_deref())
}

/// The script that has a shell ask.
pub fn completion_script(shell: clap_complete::Shell) -> std::io::Result<Vec<u8>> {
    let (mut script, name) = (Vec::new(), shell.to_string());
    let shells = Shells::builtins();
    let known = shells.completer(&name).ok_or_else(|| std::io::Error::other(format!("no completions for {name}")))?;
    known.write_registration(COMPLETE, "writ", "writ", "writ", &mut script)?;
    Ok(script)
}

/// The whole command line, for its manual pages.
pub fn command() -> clap::Command {
    Args::command()
}

/// The command line, with colours in help and errors as it says itself.
pub fn parse() -> Result<Args, clap::Error> {
    let choice = match color(std::env::args_os()) {
        Color::Auto => clap::ColorChoice::Auto,
        Color::Always => clap::ColorChoice::Always,
        Color::Never => clap::ColorChoice::Never,
    };
    Args::command().color(choice).try_get_matches().and_then(|matches| Args::from_arg_matches(&matches))
}

/// What the words say of colours, before they are known to make sense: help and errors obey it too.
pub fn color(words: impl Iterator<Item = OsString>) -> Color {
    let mut words = words.skip(1).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        let value = match word.to_str().and_then(|word| word.strip_prefix("--color")) {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(OsString::from),
            None => None,
        };
        if let Some(choice) = value.and_then(|value| Color::from_str(value.to_str()?, false).ok()) {
            return choice;
        }
    }
    Color::Auto
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
    /// Run every step on a built-in example: declare, decide, enforce, record, verify.
    #[command(
        after_help = "Examples:\n  writ demo\n  writ demo --keep /tmp/writ-demo   keep the repository and the evidence"
    )]
    Demo(DemoArgs),
    /// Write a starter policy and install the hooks in the agent's settings.
    #[command(
        after_help = "Examples:\n  writ init            this project's settings\n  writ init --user     your own settings, for every \
        project\n  writ init --undo     put the settings file back as it was"
    )]
    #[command(
        after_help = "Examples:\n  writ init                       a policy, and Claude Code's hooks in the project's settings\n  writ init --client codex        the hooks \
        of Codex, in your own settings\n  writ init --all                 the hooks of every client that is found here\n  writ init --client qwen --managed   as root: for every user\n  \
        writ init --client codex --undo     the settings as they were"
    )]
    Init(InitArgs),
    /// Check the installation, and say what is wrong and how to fix it.
    Doctor(FormatArgs),
    /// Answer one hook call of an agent client (JSON on stdin, one JSON object on stdout).
    Hook(HookArgs),
    /// Run an agent's client, or any command, with all its children in one sandbox made from the policy.
    #[command(
        after_help = "Examples:\n  writ run -- claude                        the whole client: terminal, hooks and record as ever\n  writ run -- claude -p 'fix the \
        tests'\n  writ run --policy strict.aflock -- make test\n  writ run --copy -- claude                 leave the folder as it is: see `writ sandbox diff`\n  writ run --learn -- make test             and print the \
        tightest policy for what it did\n  writ run --learn -o learnt.aflock -- make test\n  writ run Agentfile                        the agent's CMD, held to what its Agentfile says\n  writ run --manifest run.json ghcr.io/org/reviewer:1.2 -- further words\n\nExit codes: the command's own; 125 Writ could not run it, 126 the policy does not let it run, 127 there is no \
        such program."
    )]
    Run(RunArgs),
    /// Run the line of an allowed call in its sandbox. The hook writes this; people have no need of it.
    #[command(hide = true)]
    Exec(ExecArgs),
    /// Hold what the confined calls of a session share. `writ exec` starts it.
    #[command(hide = true)]
    Keep(KeepArgs),
    /// Run a rule of a policy. `writ verify` starts it.
    #[command(hide = true)]
    Rego,
    /// Write, check and ask an Agentfile: one file that declares one agent.
    #[command(subcommand)]
    Agentfile(AgentfileCommand),
    /// Resolve an Agentfile's references to digests: base, tools, functions, skills, procedures, MCP servers, policy.
    #[command(
        after_help = "Examples:\n  writ lock\n  writ lock --check                in CI: exit code 3 with the differences where it is stale\n  writ lock \
                      --update pr-review     take this one anew, leave the others\n\nAn MCP server is asked for its tools: by SERVER's address, or as the \
                      project's own .mcp.json starts it. Values of secrets are never read."
    )]
    Lock(LockArgs),
    /// Call, list and describe the tools that an Agentfile declares.
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Say which profiles of the Agentfile specification hold, by the built-in cases.
    Conformance(FormatArgs),
    /// Run the steps that a policy wants attested.
    #[command(subcommand)]
    Step(StepCommand),
    /// Show what the kernel holds around a call under the policy here, and test it.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Create, check, show, sign and verify policies.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Create and list keys, and say whom you trust.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Decide tool calls under a policy.
    #[command(
        after_help = "Examples:\n  echo '{\"tool\":\"Read\",\"input\":{\"file_path\":\"src/a.rs\"}}' | writ decide --policy .aflock\n  \
        writ decide --policy .aflock --tool Bash --input '{\"command\":\"git push\"}'\n\nWith --tool the exit code is 0 for allow and 3 \
        for ask or deny."
    )]
    Decide(DecideArgs),
    /// Explain one decision, with the matched part underlined.
    #[command(
        after_help = "Examples:\n  writ why 'cd sub && git push'\n  writ why --tool Write --input '{\"file_path\":\".env\"}'\n  writ why --last    the last call that was \
        denied in this repository"
    )]
    Why(WhyArgs),
    /// Say what a policy would have decided on sessions that are over, from their clients' transcripts.
    #[command(
        after_help = "Examples:\n  writ replay                             this repository's sessions, under the policy here\n  writ replay --policy strict.aflock       \
        under another one\n  writ replay session.jsonl --policy p.aflock --root /home/me/project   a session that was elsewhere\n\nEach call is decided alone, on this machine's \
        file system as it is now. Exit codes: 0 replayed, 1 a transcript cannot be read, 3 with --strict where a call is stopped that ran then."
    )]
    Replay(ReplayArgs),
    /// Look at a shell line the way the policy does.
    #[command(subcommand)]
    Shell(ShellCommand),
    /// List the calls that wait for a human, of every session on this machine.
    #[command(after_help = "Examples:\n  writ approvals\n  writ approvals --session 7c0f… --format json")]
    Approvals(ApprovalsArgs),
    /// Let one asked call run once. Only a human at a terminal can.
    #[command(
        after_help = "Examples:\n  writ approve 3f9a1c02                 let that call run once, within 30 minutes\n  writ approve 3f9a1c02 --for 10m       as often as it \
        is called, for 10 minutes\n  writ approve 3f9a1c02 --for session   until the session ends or its policy changes\n  writ approve 3f9a1c02 --key me.pem    signed with \
        your own key, which is pinned\n  writ approve --list                   what was said and still stands\n  writ approve --revoke 3f9a1c02        take it back\n\nWhat \
        waits: `writ approvals`. A word is for one action: another input, folder, agent, session or policy asks again."
    )]
    Approve(ApproveArgs),
    /// Begin a run of a workflow under a policy, and verify it.
    #[command(subcommand)]
    Agentflow(AgentflowCommand),
    /// Say no to an asked call: made again, it is denied. Only a human at a terminal can.
    #[command(
        after_help = "Examples:\n  writ deny 3f9a1c02                 for 30 minutes\n  writ deny 3f9a1c02 --for session\n  writ approve --revoke 3f9a1c02     take that back"
    )]
    Deny(AnswerArgs),
    /// Show who the agents of a session are: model, environment, tools, policy, parent, and their hash.
    #[command(
        after_help = "Examples:\n  writ identity\n  writ identity --explain             how each part is known, and what is hashed\n  writ identity 7c0f… --format json"
    )]
    Identity(IdentityArgs),
    /// Show what a session used of its limits, or raise one.
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Show and set what models cost.
    #[command(subcommand)]
    Prices(PricesCommand),
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
    /// Compare an agent's claim to be done with what git says.
    #[command(subcommand)]
    Claim(ClaimCommand),
    /// List a session's claims next to the facts.
    #[command(
        after_help = "Examples:\n  writ claims                the newest session of this repository\n  writ claims 7c0f… --format json\n\nExit codes: 0, or \
        3 when the last claim of an agent is false."
    )]
    Claims(ClaimsArgs),
    /// Build an agent's package from its Agentfile and lock: an OCI layout or archive, always the same for the same input.
    #[command(
        after_help = "Examples:\n  writ build -o out                          the Agentfile here, as a layout in out/\n  writ build agents/review -o review.tar     as an \
        archive\n  writ build -o out --source src --tag 1.2   with the code that CMD starts\n\nWhere an agent runs (BIND, SLICE, IMAGE, ISOLATION, BROKER, BACKEND, PLUGIN) stays \
        out of the package:\n`--run-manifest FILE` keeps it. The last line is the package's digest. Exit codes: 0 built, 1 could not do it, 3 \
        the lock is stale, a secret is\nin a file or the base forbids it, 4 the Agentfile has errors."
    )]
    Build(BuildArgs),
    /// Send a package to a registry, with its signatures.
    #[command(
        after_help = "Examples:\n  writ push out ghcr.io/org/reviewer:1.2\n  writ push review.tar 127.0.0.1:5000/reviewer:1.2\n\nWhat the registry has is not sent; a large \
        blob goes on where it stopped. The last line is the digest."
    )]
    Push(PushArgs),
    /// Fetch a package, with its signatures. Nothing is unpacked.
    #[command(
        after_help = "Examples:\n  writ pull ghcr.io/org/reviewer:1.2              kept, for `inspect`, `verify` and `run`\n  writ pull ghcr.io/org/reviewer:1.2 -o out       \
        also as a layout\n  writ pull ghcr.io/org/reviewer@sha256:… -o r.tar\n\nThe last line is the digest."
    )]
    Pull(PullArgs),
    /// Copy a package between registries, layouts and archives, with its signatures.
    #[command(
        after_help = "Examples:\n  writ copy ghcr.io/org/reviewer:1.2 registry.internal/agents/reviewer:1.2\n  writ copy out:1.2 review.tar"
    )]
    Copy(CopyArgs),
    /// Give a package another name.
    #[command(after_help = "Examples:\n  writ tag ghcr.io/org/reviewer:1.2 stable\n  writ tag out:1.2 stable")]
    Tag(TagArgs),
    /// Keep credentials for a registry, where Docker keeps them.
    #[command(
        after_help = "Examples:\n  writ login ghcr.io -u me\n  writ login ghcr.io -u me --password-stdin < token\n\nThey go to the credential helper that `config.json` names, else \
        into that file, readable for you alone."
    )]
    Login(LoginArgs),
    /// Forget the credentials for a registry.
    Logout(LogoutArgs),
    /// List signatures and attestations of a package.
    #[command(after_help = "Examples:\n  writ discover ghcr.io/org/reviewer:1.2\n  writ discover out --format json")]
    Discover(DiscoverArgs),
    /// Show what a package asks for: a report for reviewers, with a risk tier and why.
    #[command(
        after_help = "Examples:\n  writ inspect out\n  writ inspect ghcr.io/org/reviewer:1.1 --diff ghcr.io/org/reviewer:1.2   what the update newly asks for\n\nIt says what the \
        package says; whether that holds, `writ verify` says."
    )]
    Inspect(InspectArgs),
    /// Sign a package, and say how it was built and what is in it.
    #[command(
        after_help = "Examples:\n  writ keys generate release.pem --algorithm p256\n  writ sign ghcr.io/org/reviewer:1.2 --key release.pem\n  writ sign out --key release.pem     before \
        it is pushed; signatures travel with it\n  writ sign out --signing-config signing_config.json --identity-token-file token     without a key: Sigstore's services \
        vouch for whom the token names\n\nSignatures are Sigstore bundles in cosign's form. With a key they are in no public log; without one, the identity and the \
        package's digest are in the log that is named. The last line is the digest that was signed."
    )]
    Sign(SignArgs),
    /// Say which policy governs here and how the newest session stands.
    Status(FormatArgs),
    /// Offer evaluation and verification to agents, as tools of the Model Context Protocol.
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Issue, check and revoke the tokens that agents show.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Run, look at and end the process that answers hooks with a key that they cannot reach.
    #[command(subcommand)]
    Notary(NotaryCommand),
    /// Write a session's record into one file that can be verified elsewhere.
    #[command(
        after_help = "Examples:\n  writ export -o run.tar                  the newest session of this repository\n  writ export 7c0f… -o run.tar --transcripts   \
        with its transcripts, their secrets masked\n  writ verify run.tar --trust k.pem       checks it, on any machine\n\nWithout \
        `--transcripts` a bundle is verified by its rows: what transcripts alone tell is not looked for. The last line is the \
        bundle's digest. Exit codes: 0 made, 1 could not do it."
    )]
    Export(ExportArgs),
    /// Verify a session (policy, rows, checkpoints, decisions, coverage), or a package (content, base, signatures, provenance).
    #[command(
        after_help = "Examples:\n  writ verify                         the newest session of this repository\n  writ verify 7c0f…                   \
        a session by its id\n  writ verify ./evidence --key k.pem   a folder someone gave you, under a key you know\n  writ verify run.tar --trust k.pem    a bundle that `writ export` made\n  writ verify ghcr.io/org/reviewer:1.2 --key release.pem.pub   a package, before anything of it is unpacked\n\nExit codes: 0 verified, \
        1 a file cannot be read, 3 not verified, or with exceptions, 4 no evidence there, or none any more."
    )]
    Verify(VerifyArgs),
    /// Write a session as one HTML page that needs nothing else: picture, timeline, reasons, files, hosts, claims, verification.
    #[command(
        after_help = "Examples:\n  writ report -o report.html          the newest session of this repository\n  writ report 7c0f… --format json     what the page is made from\n\nIt \
        loads nothing, runs nothing, prints well and is dark where your browser is. Exit codes: 0 written, 1 could not do it."
    )]
    Report(ReportArgs),
    /// Follow a running session: one line for each thing that happens, until it ends.
    #[command(
        after_help = "Examples:\n  writ watch                           the newest session of this repository\n  writ watch --stopped                 only what was asked about or \
        denied\n  writ watch --all --format json       from its beginning, one JSON object a line"
    )]
    Watch(WatchArgs),
    /// Answer an editor about policies, over the Language Server Protocol: what is wrong, what a member is for, what could stand there.
    #[command(
        after_help = "Example, for Neovim:\n  vim.lsp.start({ name = 'writ', cmd = { 'writ', 'lsp' }, root_dir = vim.fn.getcwd() })\n\nIt speaks on standard input and output."
    )]
    Lsp,
    /// Print the JSON Schema of what a command prints as JSON, or list them.
    #[command(
        after_help = "Examples:\n  writ schema                                the schemas, and the commands that each is for\n  writ schema decide > decide.schema.json\n  writ schema session list                   by the \
        command\n  writ schema --format json                  the list, for scripts\n\nOf documents that are read rather than printed: `writ policy schema`, `writ agentfile schema`. A schema says exactly what this version \
        prints."
    )]
    Schema(SchemaArgs),
    /// Write manual pages, one for each command.
    #[command(after_help = "Example:\n  writ man ~/.local/share/man/man1 && man writ-policy-learn")]
    Man {
        /// The folder; made where it is not there.
        folder: PathBuf,
    },
    /// Print a completion script for your shell: it asks `writ` for sessions, policies and keys.
    #[command(
        after_help = "Examples:\n  source <(writ completions bash)\n  writ completions zsh > ~/.zfunc/_writ\n  writ completions fish > ~/.config/fish/completions/writ.fish"
    )]
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
    /// The agent client whose hooks are installed.
    #[arg(long, value_name = "NAME", default_value = DEFAULT.name(), value_parser = installable())]
    pub client: String,
    /// Every client that is found on this machine, instead of one.
    #[arg(long, conflicts_with = "client")]
    pub all: bool,
    /// Install in your own settings, for every project. For every client but Claude Code this is so anyway.
    #[arg(long, conflicts_with_all = ["project", "managed"])]
    pub user: bool,
    /// Install in the project's settings.
    #[arg(long, conflicts_with = "managed")]
    pub project: bool,
    /// Install in the administrator's settings, for every user of this machine.
    #[arg(long)]
    pub managed: bool,
    /// Remove the hooks and restore the settings file.
    #[arg(long)]
    pub undo: bool,
    /// Write a policy that decides and records everything, and stops nothing.
    #[arg(long, conflicts_with = "undo")]
    pub observe: bool,
    /// Have git run `writ agentflow verify` before each push.
    #[arg(long, conflicts_with = "undo")]
    pub pre_push: bool,
    /// Let an Agentfile govern: the policy that is written extends it, so that both have to allow.
    #[arg(long, value_name = "FILE", conflicts_with = "undo")]
    pub agentfile: Option<PathBuf>,
    /// Version of the agent client (`2.1.329`); the client is asked when left out.
    #[arg(long, value_name = "VERSION")]
    pub client_version: Option<String>,
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
    /// Show what Writ knows of a program: its operands, options, what it runs, variables.
    #[command(
        after_help = "Examples:\n  writ shell programs              list the programs\n  writ shell programs rsync\n  \
        writ shell programs 'docker run' --format json"
    )]
    Programs {
        /// The program, or in quotes a subcommand; all are listed when left out.
        name: Option<String>,
        #[command(flatten)]
        format: FormatArgs,
        /// Print the page `spec/programs.md`, which is made from the entries.
        #[arg(long, conflicts_with = "name")]
        page: bool,
    },
}

#[derive(Subcommand, Debug)]
pub enum SessionCommand {
    /// Open a session in the terminal: timeline, decisions with their reasons, files, hosts, spend, claims.
    #[command(
        after_help = "Examples:\n  writ session open                   the newest session of this repository; it goes on while the session does\n  writ session open 7c0f… --search push\n\n\
        Keys: arrows move, n goes to the next that was stopped, f filters, / searches, Tab or 1 to 5 change the pane, q ends."
    )]
    Open(OpenArgs),
    /// List recorded sessions, newest first.
    List(FormatArgs),
    /// Show one session row by row.
    Show {
        /// The session; the newest of this repository when left out.
        #[arg(add = complete::sessions())]
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

#[derive(ClapArgs, Debug)]
pub struct ExportArgs {
    /// The session; the newest of this repository when left out.
    #[arg(add = complete::sessions())]
    pub session: Option<String>,
    /// Where the bundle is written, `-` for standard output; `SESSION.tar` here when left out.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Take the text of the transcripts along, with secrets masked; without it, their digests.
    #[arg(long)]
    pub transcripts: bool,
    /// Replace a file that is there.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(ClapArgs, Debug)]
pub struct VerifyArgs {
    /// A session id, a folder of evidence, a bundle, or a package (reference, layout or archive); the newest session of this repository when
    /// left out.
    #[arg(add = complete::sessions())]
    pub target: Option<String>,
    /// The public key the checkpoints, or the package, must be signed with, PEM.
    #[arg(long, visible_alias = "trust", value_name = "PEM", add = complete::keys())]
    pub key: Option<PathBuf>,
    /// The client's transcript, when it is not where the session says.
    #[arg(long)]
    pub transcript: Option<PathBuf>,
    /// Exit with 0 also where the record does not speak for everything: a field that nothing enforced, a claim that is false, a
    /// beginning in the middle of the session.
    #[arg(long)]
    pub allow_absent: bool,
    /// Ask the models and services that the policy's evaluators name. Models are asked at `WRIT_EVALUATOR_URL` (any endpoint that speaks
    /// Chat Completions, with `WRIT_EVALUATOR_KEY`), else at Anthropic's, with `ANTHROPIC_API_KEY`.
    #[arg(long)]
    pub evaluators: bool,
    /// Write what it comes to as a SLSA Verification Summary Attestation, in a signed envelope.
    #[arg(long, value_name = "FILE", requires = "vsa_key")]
    pub vsa: Option<PathBuf>,
    /// Write what evaluators said as an in-toto Test Result, in a signed envelope: which passed, which failed, which were not asked, and why.
    #[arg(long, value_name = "FILE", requires = "vsa_key")]
    pub results: Option<PathBuf>,
    /// The private key that signs these, PEM (`writ keys generate` makes one).
    #[arg(long, value_name = "PEM")]
    pub vsa_key: Option<PathBuf>,
    #[command(flatten)]
    pub registry: RegistryArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `writ run`
#[derive(ClapArgs, Debug)]
pub struct RunArgs {
    /// The policy, plain or signed; found as a session finds it when left out.
    #[arg(long, value_name = "FILE", add = complete::policies())]
    pub policy: Option<PathBuf>,
    /// Afterwards print the tightest policy for what it did. Where no policy governs, it may write its folder and reach every host.
    #[arg(long)]
    pub learn: bool,
    /// Write that policy to a new file instead.
    #[arg(short, long, value_name = "FILE", requires = "learn")]
    pub output: Option<PathBuf>,
    /// Leave the policy's folder as it is: what is written there goes to a layer, for `writ sandbox diff` and `apply`.
    #[arg(long)]
    pub copy: bool,
    /// Of an agent: where it runs, in the place of what its Agentfile says of that.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "learn"])]
    pub manifest: Option<PathBuf>,
    /// Of a package: the public key that it has to be signed with, PEM.
    #[arg(long, value_name = "PEM", add = complete::keys())]
    pub key: Option<PathBuf>,
    /// Of a package: run it also where `writ verify` says *verified, except*.
    #[arg(long)]
    pub allow_absent: bool,
    #[command(flatten)]
    pub registry: RegistryArgs,
    /// The command and its arguments; or an Agentfile or an agent's package (reference, layout or archive), and further words for its CMD.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND|AGENT")]
    pub words: Vec<OsString>,
}

/// `writ exec`
#[derive(ClapArgs, Debug)]
pub struct ExecArgs {
    /// The session.
    #[arg(long)]
    pub session: String,
    /// The call's id.
    #[arg(long)]
    pub call: String,
    /// The line.
    #[arg(last = true)]
    pub line: String,
}

/// `writ keep`
#[derive(ClapArgs, Debug)]
pub struct KeepArgs {
    /// The session.
    #[arg(long)]
    pub session: String,
    /// The digest of an order of calls that share it.
    #[arg(long)]
    pub order: String,
}

/// `writ hook`
#[derive(ClapArgs, Debug)]
pub struct HookArgs {
    /// The agent client that sends the payload and reads the answer.
    #[arg(long, value_name = "NAME", default_value = DEFAULT.name(), value_parser = clients())]
    pub client: String,
}

/// Clients that are told of Writ by a settings file.
fn installable() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().filter(|client| client.settings().is_some()).map(|client| client.name()))
}

fn clients() -> PossibleValuesParser {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name()).filter(|name| *name != NO_HOOKS))
}
