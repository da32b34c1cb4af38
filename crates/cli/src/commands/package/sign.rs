//! `writ sign`: a package's signature, provenance and bill of materials.

use serde::Serialize;
use writ_core::{Digest, Timestamp, json};
use writ_package::bundled::{PROVENANCE, SBOM, SIGNATURE, SignError, attach};
use writ_package::check::check;
use writ_package::provenance::Provenance;
use writ_package::sbom::Sbom;
use writ_service::registry::Watch;

use super::{Place, open, refused, registry, registry_failure};
use crate::args::SignArgs;
use crate::commands::keys::signing_key;
use crate::environment;
use crate::exit::Failure;
use crate::output;

#[derive(Serialize)]
struct Signed {
    digest: Digest,
    key: Digest,
    referrers: Vec<Digest>,
}

/// Signs it, once it holds.
pub fn run(args: &SignArgs) -> Result<(), Failure> {
    if let Place::Archive(file) = Place::there(&args.package)? {
        return Err(Failure::Usage(format!(
            "{} is an archive, which is not changed: `writ copy` makes a layout of it",
            file.display()
        )));
    }
    let key = signing_key(&args.key)?;
    let opened = open(&args.package, &args.registry)?;
    let (layout, subject) = (&opened.layout, &opened.descriptor);
    let package = check(layout, subject).map_err(|error| refused(&error))?;
    let at = environment::source_date()?.unwrap_or_else(Timestamp::now);
    let failed = |error: SignError| Failure::could_not(error);
    let empty = json::Value::Object(json::Object::new());
    let mut made = vec![attach(layout, subject, SIGNATURE, &empty, &key).map_err(failed)?];
    if !args.no_provenance {
        let provenance = Provenance::of(&package, args.builder.as_deref(), Some(at));
        made.push(attach(layout, subject, PROVENANCE, &provenance, &key).map_err(failed)?);
    }
    if !args.no_sbom {
        made.push(attach(layout, subject, SBOM, Sbom::of(&package, at), &key).map_err(failed)?);
    }
    if let Some(reference) = opened.reference.as_ref().filter(|_| !args.registry.offline) {
        let (to, watch) = (reference.at(subject.digest), Watch::new(output::progress));
        registry(&args.registry)?.push(layout, subject, &to, None, &watch).map_err(registry_failure)?;
    }
    let signed = Signed {
        digest: subject.digest,
        key: key.public().key_id(),
        referrers: made.iter().map(|one| one.digest).collect(),
    };
    if args.format.is_json() {
        output::print_json(&signed);
        return Ok(());
    }
    output::line(format!("signed by {}: {} statements", signed.key, signed.referrers.len()));
    output::line(signed.digest);
    Ok(())
}
