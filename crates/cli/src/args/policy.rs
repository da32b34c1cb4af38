//! Arguments of policies: written, signed, asked, and the keys they are signed with.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use writ_evidence::signer::Name;

use super::{AddArgs, CasesArgs, DiffArgs, FormatArgs, KeyListArgs, LearnArgs, LifeCommand, Pkcs11Args, complete};

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
        /// Decide and record everything, and stop nothing (`"enforce": "observe"`).
        #[arg(long)]
        observe: bool,
    },
    /// Check a policy, and list what nothing enforces yet.
    Check {
        /// The policy, plain or signed; found as a session finds it when left out.
        #[arg(add = complete::policies())]
        file: Option<PathBuf>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Show the policy that governs here, and where it comes from.
    #[command(
        after_help = "Examples:\n  writ policy show\n  writ policy show --resolved   every policy it leads to, with file and digest"
    )]
    Show {
        /// The policy; found as a session finds it when left out.
        #[arg(add = complete::policies())]
        file: Option<PathBuf>,
        /// Show each policy that it leads to by `extends` and `sublayouts`: file, digest, on whose calls it speaks.
        #[arg(long)]
        resolved: bool,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Pin what `extends` and `sublayouts` lead to, and keep what is from elsewhere, in `FILE.lock`.
    #[command(
        after_help = "Examples:\n  writ policy lock                                       fetch what is not locked yet, pin the files\n  writ policy \
                      lock --check                               exit code 3 where anything is another now\n  writ policy lock --update \
                      https://policies.example/base.aflock   take what is there now\n\nThe only command that fetches policies. For people: an agent \
                      may not run it."
    )]
    Lock {
        /// The policy; found as a session finds it when left out.
        #[arg(add = complete::policies())]
        file: Option<PathBuf>,
        /// Write nothing: fetch everything anew and say what is another.
        #[arg(long)]
        check: bool,
        /// Fetch this reference anew, though it is locked. May be given more than once.
        #[arg(long, value_name = "REF", conflicts_with = "check")]
        update: Vec<String>,
    },
    /// Sign a policy: a DSSE envelope over its exact bytes.
    #[command(
        after_help = "Examples:\n  writ policy sign .aflock --key team.pem\n  writ policy sign .aflock --key me.pem --cert chain.pem   the certificate \
                      of that key first, then those above it\n  cosign sign-blob .aflock --bundle b.json && writ policy sign .aflock --bundle b.json\n  writ policy sign .aflock --pkcs11 \
                      --module /usr/lib/softhsm/libsofthsm2.so --token writ   a key that a token keeps"
    )]
    Sign {
        /// The plain policy.
        file: PathBuf,
        /// Private key, PKCS#8 PEM (Ed25519 or ECDSA P-256). May be given more than once.
        #[arg(long, required_unless_present_any = ["bundle", "pkcs11"], add = complete::keys())]
        key: Vec<PathBuf>,
        /// The key's certificate and those above it, PEM: whoever trusts their root trusts the signature.
        #[arg(long, value_name = "CHAIN", conflicts_with = "bundle")]
        cert: Option<PathBuf>,
        /// A Sigstore bundle over the policy's bytes, made by another tool, instead of a key.
        #[arg(long, conflicts_with = "key")]
        bundle: Option<PathBuf>,
        /// Sign with a key that a PKCS#11 token keeps; the PIN is in `WRIT_PKCS11_PIN` or `--pin-file`.
        #[arg(long, requires_all = ["module", "token"], conflicts_with_all = ["key", "bundle"])]
        pkcs11: bool,
        #[command(flatten)]
        token: Box<Pkcs11Args>,
        /// Where to write the envelope; `FILE.signed` when left out, `-` for stdout.
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Verify a signed policy's signatures.
    Verify {
        /// The envelope.
        file: PathBuf,
        /// Public key, PEM. Without one, the keys and authorities you trust.
        #[arg(long)]
        key: Vec<PathBuf>,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Check the cases beside a policy: calls, and what each is to come to.
    #[command(
        after_help = "Examples:\n  writ policy test\n  writ policy test strict.aflock --cases cases.jsonl\n\nA case is a line of `.aflock.tests.jsonl`:\n  {\"line\": \"git push\", \
                      \"expect\": \"ask\"}\n  {\"tool\": \"Write\", \"input\": {\"file_path\": \".env\"}, \"expect\": \"deny\", \"rule\": \"/files/deny/0\"}\n\nExit codes: 0 all \
                      pass, 1 there are none, 3 one fails, 4 a case does not read."
    )]
    Test(CasesArgs),
    /// Write the tightest policy that lets the calls of past sessions through, for a human to edit.
    #[command(
        after_help = "Examples:\n  writ policy learn                                this repository's sessions\n  writ policy learn -o learnt.aflock --notes learnt.md\n  \
                      writ policy learn --format json                  with what each entry is for\n\nCalls that were stopped then are left out, as are those that no list can \
                      name. For people: an agent may not run it."
    )]
    Learn(LearnArgs),
    /// Show what becomes allowed or denied between two policies: their rules, and past calls under both.
    #[command(
        after_help = "Examples:\n  writ policy diff .aflock strict.aflock\n  writ policy diff .aflock strict.aflock --rules   without any past call\n\nExit codes: 0 compared, 1 a \
                      transcript cannot be read."
    )]
    Diff(DiffArgs),
    /// Put a rule into the policy, or take one out, and leave the rest as it is written. Shows the change first.
    #[command(
        after_help = "Examples:\n  writ policy add 'tools.allow Bash:cargo test *'\n  writ policy add 'remove /tools/deny/0'\n  writ policy add --last         what the last \
                      refusal here suggests\n  writ policy add --last --yes   for scripts\n\nFor people: an agent may not run it. Exit codes: 0 changed, 1 could not do it, 3 nobody \
                      said yes."
    )]
    Add(AddArgs),
    /// Print the JSON Schema for editors, or what services implement that evaluate.
    Schema {
        /// Print the gRPC service that `evaluators.grpc` names, in protocol buffers (`.proto`).
        #[arg(long)]
        services: bool,
    },
    /// Accept the policy as it is now for a running session. Only a human at a terminal can.
    Accept {
        /// The session; the newest of this repository when left out.
        session: Option<String>,
        /// Accept that there is no policy any more: new sessions here run without one.
        #[arg(long)]
        none: bool,
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
    /// Create a key pair: PKCS#8 PEM, and the public key beside it with `.pub`.
    Generate {
        /// Where to write the private key (mode 0600). Never overwritten.
        file: PathBuf,
        /// The algorithm.
        #[arg(long, value_enum, default_value_t = KeyKind::Ed25519)]
        algorithm: KeyKind,
    },
    /// Say whose policies you accept: whoever has a key, a certificate under a root, or an identity.
    #[command(
        after_help = "Examples:\n  writ keys trust team.pem.pub\n  writ keys trust --ca root.pem --name 'CN=Release,O=Example'\n  writ keys trust \
                      --sigstore trusted_root.json \\\n    --issuer https://accounts.google.com --identity me@example.org\n\nA certificate authority \
                      without --name vouches for everybody to whom it gives a certificate."
    )]
    Trust(TrustedArgs),
    /// List whose policies you accept.
    Trusted(FormatArgs),
    /// Trust a key, an authority or an identity no more.
    Distrust {
        /// Its id, or the beginning of it.
        #[arg(add = complete::pinned())]
        id: String,
    },
    /// Require that every policy is signed by a pinned key (`on`), or only warn (`off`).
    RequireSigned {
        /// `on` or `off`.
        #[arg(value_parser = ["on", "off"])]
        switch: String,
    },
    /// Set the passphrase that approvals need from then on. Only a human at a terminal can.
    Approval,
    /// List the ledger key, the pinned keys, and the keys that sign attestations.
    List(KeyListArgs),
    #[command(flatten)]
    Life(LifeCommand),
}

/// Whom to trust: one of three kinds.
#[derive(ClapArgs, Debug)]
pub struct TrustedArgs {
    /// Public key, PEM.
    #[arg(required_unless_present_any = ["ca", "sigstore"], conflicts_with_all = ["ca", "sigstore"])]
    pub file: Option<PathBuf>,
    /// Certificate of an authority, PEM.
    #[arg(long, value_name = "ROOT", conflicts_with = "sigstore")]
    pub ca: Option<PathBuf>,
    /// The only subject whose certificates of that authority count, as a whole (RFC 4514). May be given more than once.
    #[arg(long, value_name = "SUBJECT", requires = "ca")]
    pub name: Vec<Name>,
    /// A Sigstore instance's `trusted_root.json`.
    #[arg(long, value_name = "FILE", requires = "issuer", requires = "who")]
    pub sigstore: Option<PathBuf>,
    /// The OIDC issuer that vouches for the identity, as a whole.
    #[arg(long, value_name = "URL", requires = "sigstore")]
    pub issuer: Option<String>,
    /// The identity, as a whole: an address, or a workflow's URI.
    #[arg(long, value_name = "TEXT", requires = "sigstore", group = "who")]
    pub identity: Option<String>,
    /// The same, where `*` stands for any text up to the next `/`, and `**` for any text.
    #[arg(long, value_name = "PATTERN", requires = "sigstore", group = "who")]
    pub identity_pattern: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub struct DecideArgs {
    /// The policy, plain or signed.
    #[arg(long, short, add = complete::policies())]
    pub policy: PathBuf,
    /// The folder that relative patterns and calls start from; the policy's own folder when left out.
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
    #[arg(conflicts_with = "tool", required_unless_present_any = ["tool", "last"])]
    pub line: Option<String>,
    /// The last call that was denied in this repository, from its record.
    #[arg(long, conflicts_with_all = ["line", "tool", "policy", "root", "agent"])]
    pub last: bool,
    /// The policy; found as a session finds it when left out.
    #[arg(long, short, add = complete::policies())]
    pub policy: Option<PathBuf>,
    /// The folder that relative patterns start from; the policy's own folder when left out.
    #[arg(long)]
    pub root: Option<PathBuf>,
    /// Decide it as a call of a sub-agent of this type: under its sublayouts too.
    #[arg(long, value_name = "TYPE")]
    pub agent: Option<String>,
    /// The tool.
    #[arg(long, requires = "input")]
    pub tool: Option<String>,
    /// The tool's input, as JSON.
    #[arg(long, requires = "tool")]
    pub input: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}
