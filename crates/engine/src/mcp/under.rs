//! Calls that Writ makes for an agent under its Agentfile: which policy that is, and which session they are in.
//!
//! Owns the composition of the two policies that may govern, and the session that such calls share. Decides nothing. Refuses where a policy
//! that governed is gone, or waits for a human. Invariant: where a policy governs the folder, it holds beside the Agentfile, or no call is
//! made. Page: `spec/tools.md`.

use std::path::{Path, PathBuf};

use writ_agentfile::placed::Placed;
use writ_core::{Digest, Event, EventKind, SessionId, Timestamp};
use writ_store::Store;

use super::Gate;
use crate::Home;
use crate::governing::in_force::PolicyRef;
use crate::governing::{self, Governing, GoverningError, Trust, in_force, kept};
use crate::session::{Session, SessionError, Wanted, seal};

/// What ids of sessions of such calls begin with.
pub const TOOLS: &str = "tools-";

/// What calls are held to.
#[derive(Clone, Debug)]
pub struct HeldTo {
    /// Both policies as one text.
    pub bytes: Vec<u8>,
    /// Where the one stands that leads to the other.
    pub path: PathBuf,
    /// The policy that governs the folder, where one does.
    pub beside: Option<PathBuf>,
}

/// Why nothing says what calls are held to.
#[derive(Debug, thiserror::Error)]
pub enum UnderError {
    /// One of the policies.
    #[error(transparent)]
    Governing(#[from] GoverningError),
    /// A policy that governed here is gone, or was changed.
    #[error("{0}")]
    Open(String),
    /// An Agentfile is no signed policy.
    #[error("your settings require signed policies, and an Agentfile is none")]
    NotSigned,
}

/// Finds it, for calls in `cwd` of the tools of the Agentfile at `path`.
pub fn held_to(path: &Path, placed: &Placed, cwd: &Path, home: &Home) -> Result<HeldTo, UnderError> {
    let trust = Trust::open(home.state.as_deref());
    if trust.require_signed() {
        return Err(UnderError::NotSigned);
    }
    let store = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok());
    let open = store.and_then(|store| in_force::left_open(&store, cwd).ok().flatten());
    let found = governing::find(cwd);
    if let Some(open) =
        open.filter(|open| found.is_some() || open.path.parent().is_some_and(|dir| cwd.starts_with(dir)))
    {
        return Err(UnderError::Open(in_force::pending(&open.path)));
    }
    let Some(found) = found else {
        let bytes = governing::placed(path, placed, &trust)?;
        return Ok(HeldTo { bytes, path: path.to_owned(), beside: None });
    };
    let opened = governing::open(&found, None, &trust)?;
    if leads_to(&opened, path, placed) {
        // It names the Agentfile itself, so that both allow already.
        return Ok(HeldTo { bytes: kept::whole(&opened), path: found.clone(), beside: Some(found) });
    }
    let beside = Some(found.to_string_lossy().into_owned());
    let bytes = governing::placed(path, &Placed { beside, ..placed.clone() }, &trust)?;
    Ok(HeldTo { bytes, path: path.to_owned(), beside: Some(found) })
}

/// Whether a policy extends this very Agentfile, for whoever calls.
fn leads_to(governing: &Governing, path: &Path, placed: &Placed) -> bool {
    let file = Digest::of(placed.agentfile.as_bytes());
    let is_it = |at: &Path| at == path || at.canonicalize().is_ok_and(|at| at == path);
    governing.layers.iter().any(|layer| {
        layer.at.agent.is_none()
            && layer.at.file == file
            && layer.at.path.as_deref().is_some_and(|at| is_it(Path::new(at)))
    })
}

impl HeldTo {
    /// The session of an agent's calls under exactly this: what was called before counts for its rates and limits.
    pub fn session(&self, agent: &str) -> SessionId {
        let whole = [self.path.as_os_str().as_encoded_bytes(), b"\0", &self.bytes].concat();
        let digest = Digest::of(&whole).hex();
        SessionId::new(format!("{TOOLS}{agent}-{}", digest.get(..16).unwrap_or_default()))
    }

    /// Whether calls under it are counted, by a rate or a limit: then another session would begin the count anew.
    pub fn counts(&self, home: &Home) -> Result<bool, GoverningError> {
        let opened = kept::open_whole(&self.path, self.bytes.clone(), &Trust::open(home.state.as_deref()))?;
        Ok(opened.counted().any(|(_, policy)| !policy.limits().is_empty() || !policy.rates().is_empty()))
    }
}

impl Gate {
    /// Begins the session of calls that are held to something of their own; or refuses one that is there and under something else.
    pub(super) fn ready(&self) -> Result<(), SessionError> {
        let Some(held) = &self.held else { return Ok(()) };
        let store = Store::open(self.home.state()?.to_owned())?;
        if !store.exists(&self.own) {
            let start = EventKind::SessionStart { source: Some("startup".to_owned()) };
            let event: Event = self.event(writ_clients::mcp::NAME, &self.own, start);
            let wanted = Wanted::Own(&held.bytes, &held.path);
            return Session::open_under(&store, &self.own, &event, &self.home, Timestamp::now(), wanted).map(drop);
        }
        let trust = Trust::open(self.home.state.as_deref());
        let wanted = PolicyRef::to(&kept::open_whole(&held.path, held.bytes.clone(), &trust)?);
        let under = self.state().and_then(|state| state.policy);
        let same = under.is_some_and(|under| (under.file, under.layers) == (wanted.file, wanted.layers));
        if same { Ok(()) } else { Err(SessionError::Other { session: self.own.clone() }) }
    }

    /// Seals what is on record so far.
    pub fn seal(&self) -> Result<(), SessionError> {
        let Some(store) = self.store().filter(|store| store.exists(&self.own)) else { return Ok(()) };
        seal::seal(&mut Session::resume(&store, &self.own, &self.home, Timestamp::now())?)
    }
}
