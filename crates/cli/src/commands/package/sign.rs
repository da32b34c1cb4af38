//! `writ sign`: a package's signature, provenance and bill of materials.

use serde::Serialize;
use writ_core::{Digest, Timestamp, json};
use writ_evidence::intoto::Bundle;
use writ_evidence::keys::SigningKey;
use writ_evidence::sigstore::certificate::Named;
use writ_package::bundled::{self, PROVENANCE, SBOM, SIGNATURE, attach_signed, statement};
use writ_package::check::check;
use writ_package::provenance::Provenance;
use writ_package::sbom::Sbom;
use writ_service::registry::Watch;
use writ_service::sigstore::Keyless;

use super::{Place, keyless, layout_failure, open, refused, registry, registry_failure};
use crate::args::SignArgs;
use crate::commands::keys::signing_key;
use crate::environment;
use crate::exit::Failure;
use crate::output;

#[derive(Serialize)]
struct Signed {
    digest: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyless: Option<Logged>,
    referrers: Vec<Digest>,
}

/// Whom a Sigstore instance vouched for, and where that is logged.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Logged {
    #[serde(flatten)]
    named: Named,
    log_indexes: Vec<i64>,
}

/// Who signs.
enum Signer {
    Key(Box<SigningKey>),
    Keyless(Box<Keyless>, Vec<i64>),
}

impl Signer {
    fn sign(&mut self, statement: &str) -> Result<Bundle, Failure> {
        match self {
            Self::Key(key) => bundled::sign(statement, key.as_ref()).map_err(Failure::could_not),
            Self::Keyless(keyless, indexes) => {
                let vouched = keyless.sign(statement).map_err(keyless::failure)?;
                indexes.push(vouched.log_index);
                Ok(vouched.bundle)
            }
        }
    }

    fn who(&self) -> String {
        match self {
            Self::Key(key) => key.public().key_id().to_string(),
            Self::Keyless(keyless, _) => format!("`{}`, by {}", keyless.named().identity, keyless.named().issuer),
        }
    }
}

/// Signs it, once it holds. Nothing is attached before all of it is signed.
pub fn run(args: &SignArgs) -> Result<(), Failure> {
    if let Place::Archive(file) = Place::there(&args.package)? {
        return Err(Failure::Usage(format!(
            "{} is an archive, which is not changed: `writ copy` makes a layout of it",
            file.display()
        )));
    }
    // What is wrong with the command line is said before anything is fetched.
    let key = args.key.as_deref().map(signing_key).transpose()?;
    let services = if key.is_none() { Some(keyless::services(&args.keyless)?) } else { None };
    let opened = open(&args.package, &args.registry)?;
    let (layout, subject) = (&opened.layout, &opened.descriptor);
    let package = check(layout, subject).map_err(|error| refused(&error))?;
    let at = environment::source_date()?.unwrap_or_else(Timestamp::now);
    let empty = json::Value::Object(json::Object::new());
    let mut statements = vec![(SIGNATURE, statement(subject, SIGNATURE, &empty))];
    if !args.no_provenance {
        let provenance = Provenance::of(&package, args.builder.as_deref(), Some(at));
        statements.push((PROVENANCE, statement(subject, PROVENANCE, &provenance)));
    }
    if !args.no_sbom {
        statements.push((SBOM, statement(subject, SBOM, Sbom::of(&package, at))));
    }
    let mut signer = match (key, services) {
        (Some(key), _) => Signer::Key(Box::new(key)),
        (None, Some(services)) => Signer::Keyless(Box::new(keyless::begin(&args.keyless, &services)?), Vec::new()),
        (None, None) => return Err(Failure::Usage("name --key, or the services that vouch for you".to_owned())),
    };
    let sign = |(kind, text): (&'static str, String)| Ok((kind, signer.sign(&text)?));
    let bundles: Vec<(&str, Bundle)> = statements.into_iter().map(sign).collect::<Result<_, Failure>>()?;
    let attach = |(kind, bundle): &(&str, Bundle)| attach_signed(layout, subject, kind, bundle);
    let made = bundles.iter().map(attach).collect::<Result<Vec<_>, _>>().map_err(layout_failure)?;
    if let Some(reference) = opened.reference.as_ref().filter(|_| !args.registry.offline) {
        let (to, watch) = (reference.at(subject.digest), Watch::new(output::progress));
        registry(&args.registry)?.push(layout, subject, &to, None, &watch).map_err(registry_failure)?;
    }
    told(args, subject.digest, signer, made.iter().map(|one| one.digest).collect());
    Ok(())
}

fn told(args: &SignArgs, digest: Digest, signer: Signer, referrers: Vec<Digest>) {
    let (who, count) = (signer.who(), referrers.len());
    let (key, keyless) = match signer {
        Signer::Key(key) => (Some(key.public().key_id()), None),
        Signer::Keyless(keyless, log_indexes) => (None, Some(Logged { named: keyless.named().clone(), log_indexes })),
    };
    if args.format.is_json() {
        output::print_json(&Signed { digest, key, keyless, referrers });
        return;
    }
    output::line(output::plain(&format!("signed by {who}: {count} statements")));
    if let Some(keyless) = keyless {
        let indexes: Vec<String> = keyless.log_indexes.iter().map(ToString::to_string).collect();
        output::line(format!("in the log at {}", indexes.join(", ")));
    }
    output::line(digest);
}
