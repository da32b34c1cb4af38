//! What an Agentfile is built on, as the lock beside it says (§16).
//!
//! Owns the way from `FROM` to the levels that a file is held against: from Writ's own layout. Asks no
//! registry: `writ lock` did. Invariant: a base that cannot be had is an error, never no inheritance.

use std::path::Path;

use writ_agentfile::ceiling::Level;
use writ_agentfile::directive::Base;
use writ_agentfile::{Agent, Lock};
use writ_core::regular_file;
use writ_engine::verify::package::{Parents, chain};
use writ_package::{Descriptor, Layout, Reference};

use crate::args::RegistryArgs;
use crate::commands::package::build::Pulled;
use crate::exit::Failure;

/// Largest lock.
const MAX_LOCK: u64 = 16 << 20;

/// Packages that were pulled.
struct Kept(RegistryArgs);

impl Parents for Kept {
    fn find(&self, reference: &Reference) -> Result<(Layout, Descriptor), String> {
        Pulled(&self.0).find(reference).map_err(|why| format!("{why}; `writ lock` fetches it"))
    }

    fn kind(&self, _reference: &Reference) -> Result<String, String> {
        // A registry was asked when the lock was written.
        Ok("image".to_owned())
    }
}

/// Whether it names something to be built on.
pub fn is_named(agent: &Agent) -> bool {
    matches!(agent.base(), Some(Base::Reference(_)))
}

/// The lock beside a file; nothing where there is none.
pub fn lock(file: &Path) -> Result<Option<Lock>, Failure> {
    let path = file.with_file_name("agentrc.lock");
    match regular_file::read(&path, MAX_LOCK) {
        Ok(bytes) => {
            Lock::parse(&bytes).map(Some).map_err(|error| Failure::malformed(format!("{}: {error}", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::could_not(format!("{}: {error}", path.display()))),
    }
}

/// The lock beside a file, where it is of this very file.
pub fn lock_of(file: &Path, agent: &Agent) -> Option<Lock> {
    lock(file).ok().flatten().filter(|lock| lock.agentfile_hash == agent.digest())
}

/// What a file is built on, nearest first, as its lock says.
pub fn locked(file: &Path, agent: &Agent) -> Result<Vec<Level>, Failure> {
    if !is_named(agent) {
        return Ok(Vec::new());
    }
    let remedy = "`writ lock` says what it is, `--base FILE` names it";
    let Some(lock) = lock(file)? else {
        return Err(Failure::could_not(format!("{}: no lock says what FROM leads to: {remedy}", agent.file)));
    };
    let Some(base) = lock.base_image.as_ref().filter(|base| base.is_of(agent)) else {
        return Err(Failure::could_not(format!("{}: the lock says nothing of its FROM: {remedy}", agent.file)));
    };
    if !base.package {
        return Ok(Vec::new());
    }
    chain(&lock, &Kept(RegistryArgs::offline())).map_err(Failure::could_not)
}
