//! `writ keys`: make key pairs, and say whose policies you accept.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{Digest, Timestamp};
use writ_engine::Home;
use writ_engine::attest::archive::Archive;
use writ_engine::attest::issuer::IssuerError;
use writ_engine::governing::Trust;
use writ_evidence::keys::{Algorithm, PublicKey, SigningKey};
use writ_evidence::registry::{Change, Key, KeyState, Registry};
use writ_store::Store;

use super::{attest, session_lookup, trusted};
use crate::args::{Format, InstanceArgs, KeyArgs, KeyKind, KeyListArgs, KeysCommand, LifeCommand};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::input;
use crate::output;

/// Runs one of the key commands.
pub fn run(command: KeysCommand) -> Result<(), Failure> {
    let home = environment::home();
    let trust = Trust::open(home.state.as_deref());
    match command {
        KeysCommand::Generate { file, algorithm } => generate(&file, algorithm),
        KeysCommand::Trust(args) => trusted::add(&trust, &args),
        KeysCommand::Trusted(args) => trusted::list(&trust, &args),
        KeysCommand::Distrust { id } => {
            human_check::not_agent("distrust a key")?;
            let found = trust.unpin(&id).map_err(Failure::could_not)?;
            output::line(format!("no longer trusted {found}"));
            Ok(())
        }
        KeysCommand::RequireSigned { switch } => {
            human_check::not_agent("say whether signatures are required")?;
            trust.set_require_signed(switch == "on").map_err(Failure::could_not)?;
            output::line(format!("signatures are {}", if switch == "on" { "required" } else { "not required" }));
            Ok(())
        }
        KeysCommand::Approval => {
            let about = session_lookup::every_start(&session_lookup::store(&home)?)?;
            human_check::set_passphrase(&about, &home)
        }
        KeysCommand::List(args) => list(&home, &trust, &args),
        KeysCommand::Life(command) => life(&command),
    }
}

/// How long a key should stay deprecated before it is retired (the protocol's section on rotation).
const RETENTION_DAYS: i64 = 90;

fn days_between(from: Timestamp, to: Timestamp) -> i64 {
    to.millis().saturating_sub(from.millis()) / 86_400_000
}

/// Changes the registry of the keys that sign attestations, or prints it.
fn life(command: &LifeCommand) -> Result<(), Failure> {
    if !matches!(command, LifeCommand::Registry { .. }) {
        human_check::not_agent("change the keys that sign attestations")?;
    }
    let now = Timestamp::now();
    let change = |args: &KeyArgs, change: Change| {
        attest::existing(&args.instance)?.change(&change, now).map_err(Failure::could_not)
    };
    let registry = match command {
        LifeCommand::Rotate { at, instance } => {
            attest::issuer(instance)?.rotate(*at, now).map_err(Failure::could_not)?
        }
        LifeCommand::Deprecate(args) => change(args, Change::Deprecate { id: args.id.clone() })?,
        LifeCommand::Retire(args) => {
            let registry = change(args, Change::Retire { id: args.id.clone() })?;
            let key = registry.keys().iter().find(|key| key.id == args.id);
            if let Some(days) = key.and_then(|key| key.deprecated_at).map(|at| days_between(at, now))
                && days < RETENTION_DAYS
            {
                output::note(format!(
                    "{} `{}` was deprecated {days} days ago: a key should stay deprecated for {RETENTION_DAYS}, because \
                     what it signed can no longer be fetched once it is retired",
                    output::warn("warning:"),
                    args.id
                ));
            }
            registry
        }
        LifeCommand::Compromise(args) => change(args, Change::Compromise { id: args.id.clone() })?,
        LifeCommand::Registry { history: true, instance } => {
            attest::existing(instance)?.history().map_err(Failure::could_not)?.iter().for_each(output::line);
            return Ok(());
        }
        LifeCommand::Registry { history: false, instance } => {
            let registry = attest::existing(instance)?.registry(now).map_err(Failure::could_not)?;
            output::print_json(&registry);
            return Ok(());
        }
    };
    output::line(format!("{} registry version {}", output::good("✓"), registry.version()));
    registry.keys().iter().for_each(|key| output::line(shown(key)));
    Ok(())
}

fn shown(key: &Key) -> String {
    let end = key.valid_until.filter(|_| key.state == KeyState::Active);
    let end = end.map(|end| format!("  until {end}")).unwrap_or_default();
    format!("attests      {}  {}{end}", key.id, key.state)
}

/// Reads a private key file.
pub fn signing_key(path: &Path) -> Result<SigningKey, Failure> {
    SigningKey::from_pem(&input::text(path)?)
        .map_err(|error| Failure::malformed(format!("{}: {error}", path.display())))
}

/// Reads a public key file.
pub fn public_key(path: &Path) -> Result<PublicKey, Failure> {
    PublicKey::from_pem(&input::text(path)?).map_err(|error| Failure::malformed(format!("{}: {error}", path.display())))
}

fn generate(file: &Path, kind: KeyKind) -> Result<(), Failure> {
    let algorithm = match kind {
        KeyKind::Ed25519 => Algorithm::Ed25519,
        KeyKind::P256 => Algorithm::P256,
    };
    let key = SigningKey::generate(algorithm).map_err(Failure::could_not)?;
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    create(file, key.to_pem().as_bytes(), 0o600)?;
    create(&public, key.public().to_pem().as_bytes(), 0o644)?;
    output::line(format!(
        "{} (private, keep it)\n{} (public)\n{}",
        file.display(),
        public.display(),
        key.public().key_id()
    ));
    Ok(())
}

/// Creates a file that was not there before; a key is never overwritten.
fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let io = |error| Failure::could_not(format!("cannot create {}: {error}", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(io)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io)
}

fn list(home: &Home, trust: &Trust, args: &KeyListArgs) -> Result<(), Failure> {
    let state = home.state().map_err(Failure::could_not)?;
    let store = Store::open(state.to_owned()).map_err(Failure::could_not)?;
    let ledger = store.held_ledger_key().map_err(Failure::could_not)?.map(|key| key.public().clone());
    let pinned = trust.keys().map_err(Failure::could_not)?;
    let registry = published(state, &args.instance).map_err(Failure::could_not)?;
    if args.format == Format::Json {
        output::print_json(&listing(ledger.as_ref(), &pinned, trust.require_signed(), registry.as_ref()));
        return Ok(());
    }
    match &ledger {
        Some(key) => output::line(format!("ledger key   {}  {}  custody: file", key.key_id(), key.algorithm())),
        None => output::line("ledger key   none yet"),
    }
    trusted::lines(trust)?.iter().for_each(output::line);
    let attesting = registry.iter().flat_map(Registry::keys);
    attesting.for_each(|key| output::line(format!("{}  custody: file", shown(key))));
    output::line(format!("signed policies are {}", if trust.require_signed() { "required" } else { "not required" }));
    Ok(())
}

/// The registry, if there is one: a listing makes nothing.
fn published(state: &Path, args: &InstanceArgs) -> Result<Option<Registry>, IssuerError> {
    if args.database.is_none() && !state.join(writ_store::instance::FILE).exists() {
        return Ok(None);
    }
    Archive::open(state, args.database.as_deref())?.registry(Timestamp::now())
}

/// The keys that count here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing<'a> {
    ledger: Option<Own>,
    trusted: Vec<Listed>,
    registry: Option<&'a Registry>,
    require_signed: bool,
}

#[derive(Serialize)]
struct Own {
    #[serde(flatten)]
    key: Listed,
    custody: &'static str,
}

#[derive(Serialize)]
struct Listed {
    id: Digest,
    algorithm: String,
    pem: String,
}

fn listing<'a>(
    ledger: Option<&PublicKey>,
    pinned: &[PublicKey],
    required: bool,
    registry: Option<&'a Registry>,
) -> Listing<'a> {
    let listed =
        |key: &PublicKey| Listed { id: key.key_id(), algorithm: key.algorithm().to_string(), pem: key.to_pem() };
    Listing {
        ledger: ledger.map(|key| Own { key: listed(key), custody: "file" }),
        trusted: pinned.iter().map(listed).collect(),
        registry,
        require_signed: required,
    }
}
