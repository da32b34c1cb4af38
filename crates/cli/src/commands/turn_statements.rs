//! The statements of a session's turns: listed, shown, copied.

use std::path::{Path, PathBuf};

use writ_engine::notary::attest;
use writ_engine::session::statements::Attested;
use writ_engine::steps::imported::ImportError;
use writ_engine::turns::shown::{self, Shown};
use writ_evidence::dsse::Envelope;
use writ_store::Store;

use super::keys::public_key;
use super::session_lookup;
use crate::exit::Failure;
use crate::{environment, input, output};

/// Those of a session, or of the newest one here; none where there is no session here and none is named.
pub fn of(session: Option<&str>) -> Result<Vec<Shown>, Failure> {
    let home = environment::home();
    if session.is_none() && home.state.as_deref().is_none_or(|state| !state.join("sessions").exists()) {
        return Ok(Vec::new());
    }
    let store = session_lookup::store(&home)?;
    let id = match (session, session_lookup::session(&store, session)) {
        (None, Err(_)) => return Ok(Vec::new()),
        (_, found) => found?,
    };
    shown::shown(&store, &id).map_err(Failure::could_not)
}

fn bytes(store: &Store, one: &Shown) -> Result<Vec<u8>, Failure> {
    let id = writ_core::SessionId::new(one.session.clone());
    let gone = || Failure::could_not(format!("{} is gone, or is not what row {} names", one.name, one.row));
    shown::file(store, &id, one).ok_or_else(gone)
}

/// Prints what a statement says.
pub fn show(name: &str, session: Option<&str>) -> Result<(), Failure> {
    let found = of(session)?;
    let one = found.iter().find(|one| one.name == name);
    let one = one.ok_or_else(|| Failure::could_not(format!("no turn of this session left `{name}`")))?;
    let store = session_lookup::store(&environment::home())?;
    let envelope = Envelope::parse(&bytes(&store, one)?).map_err(Failure::malformed)?;
    output::document(&String::from_utf8_lossy(envelope.payload()));
    Ok(())
}

/// Takes a statement of somebody else's into a session's record.
pub fn import(file: &Path, keys: &[PathBuf], name: Option<&str>, session: Option<&str>) -> Result<(), Failure> {
    let home = environment::home();
    let store = session_lookup::store(&home)?;
    let id = session_lookup::session(&store, session)?;
    let keys = keys.iter().map(|key| public_key(key)).collect::<Result<Vec<_>, _>>()?;
    let bytes = input::bytes(file)?;
    let taken = attest::import(&store, &id, &home, &bytes, &keys, name);
    let (attested, imported) = taken.map_err(|error| {
        let why = format!("{}: {error}", file.display());
        match error {
            ImportError::Step(_) | ImportError::Twice { .. } => Failure::could_not(why),
            _ => Failure::malformed(why),
        }
    })?;
    let Attested { name, kind, digest, .. } = &attested;
    output::line(format!("{} `{}` {}", output::good("✓"), output::plain(name), output::plain(kind)));
    output::line(format!("  {}, {digest}", imported.told()));
    output::note("it counts where the policy's `functionaries` name that key, and somebody trusted signed the policy");
    Ok(())
}

/// Copies the signed statements into a folder.
pub fn export(session: Option<&str>, to: &Path) -> Result<(), Failure> {
    let home = environment::home();
    let store = session_lookup::store(&home)?;
    session_lookup::outside_state(to, &home)?;
    let found = of(session)?;
    for one in &found {
        let path = to.join(&one.name);
        if !writ_store::publish(&path, &bytes(&store, one)?).map_err(Failure::could_not)? {
            return Err(Failure::could_not(format!("{} is there already", path.display())));
        }
    }
    output::line(format!("{} {} statements in {}", output::good("✓"), found.len(), output::path(to)));
    Ok(())
}
