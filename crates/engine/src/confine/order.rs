//! What a call is to run in: made before it is decided, granted with the decision, kept for the run.
//!
//! Owns the value that a grant names by its digest. Invariant: what runs is what was granted, byte for byte of its canonical form.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Answer, Decision, Digest, SessionId, ToolCall, ToolKind};
use writ_egress::{Places, Rules, variables};
use writ_policy::{Domains, Grant, Held, Policy};
use writ_sandbox::{Confinement, HostPath, Level, Network, Survivors};
use writ_store::{Store, regular_file};

use super::plan::{self, Ground};
use super::strength;
use crate::session::{Session, SessionError};

/// Largest order that was kept.
const MAX_ORDER: u64 = 64 << 20;
/// The folder in the session's that is `/tmp` to its calls.
const TEMPORARY: &str = "tmp";

/// What a command runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What the kernel holds.
    pub confinement: Confinement,
    /// What the egress proxy lets through.
    pub egress: Rules,
    /// Calls of a session that have the same here share a network, and the processes that they leave running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Digest>,
}

impl Order {
    /// The digest of its canonical form.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }

    /// The one of this digest, as it was granted; else where it should be.
    pub fn kept(store: &Store, session: &SessionId, digest: Digest) -> Result<Self, PathBuf> {
        let path = store.folder(session).join(Self::file_name(digest));
        let bytes = regular_file::read(&path, MAX_ORDER).ok().filter(|bytes| Digest::of(bytes) == digest);
        bytes.and_then(|bytes| json::from_slice(&bytes).ok()).ok_or(path)
    }

    /// Where it is kept in the session's folder.
    pub fn file_name(digest: Digest) -> String {
        format!("sandboxes/{}.json", digest.hex())
    }
}

/// An order, and what it holds on this machine.
#[derive(Clone, Debug)]
pub struct Prepared {
    order: Order,
    /// What needs no question.
    pub held: Held,
}

/// What a call under these policies is to run in; `None` where none of them wants that, or it runs no program. An error says why
/// it cannot be, which denies. `approved` says that a human lets it use what the policies leave to them.
pub fn prepare(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    approved: bool,
) -> Option<Result<Prepared, String>> {
    let wanted = layers.iter().filter_map(|policy| policy.confine()).max_by_key(|confine| confine.at_least)?;
    let found = || -> Result<Level, String> {
        let features = strength::features(session.store).map_err(|error| error.to_string())?;
        strength::level(&features, wanted).map_err(|error| error.to_string())
    };
    let level = match found() {
        Ok(level) => level,
        Err(why) => return Some(Err(why)),
    };
    if !matches!(call.kind, ToolKind::Shell { .. }) {
        return None;
    }
    if session.client.is_none_or(|client| client.shell_calls().is_none()) {
        return Some(Err("its client takes no other line than the model's".to_owned()));
    }
    if session.home.program.is_none() {
        return Some(Err("where Writ's own program is cannot be found out".to_owned()));
    }
    let namespaces = level >= Level::Namespaces;
    Some(
        order(session, call, layers, approved, namespaces)
            .map(|order| Prepared { held: Held { files: namespaces, hosts: namespaces }, order }),
    )
}

fn order(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    approved: bool,
    namespaces: bool,
) -> Result<Order, String> {
    let root = session.state.policy.as_ref().map_or(Path::new(&call.cwd), |policy| policy.root());
    let ground = Ground {
        layers,
        setting: &session.setting,
        root,
        folder: Path::new(&call.cwd),
        state: session.home.state.as_deref(),
        search: &session.home.search,
        approved,
    };
    let mut confinement = plan::plan(&ground).map_err(|error| error.to_string())?.confinement;
    let domains: Vec<Domains> = layers.iter().map(|policy| policy.domains().clone()).filter(Domains::any).collect();
    if let Network::Proxied(ports) = &confinement.network {
        let set = variables(&Places { proxy: ports.http, trust: None });
        confinement.environment.set.extend(set.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
    if namespaces {
        // What one call leaves in `/tmp`, the next finds; without mounts there is no `/tmp` to write to.
        let folder = session.store.folder(&session.id).join(TEMPORARY);
        confinement.temporary_folder = Some(HostPath::new(folder).map_err(|error| error.to_string())?);
    }
    confinement.environment.drop.extend(session.home.secret_variables.iter().cloned());
    let egress = Rules { domains, ..Rules::default() };
    let shared = namespaces.then(|| share(&mut confinement, &egress, layers, approved));
    Ok(Order { confinement, egress, shared })
}

/// Which calls share a network, and processes with it. What a call leaves running goes on under the rules it began with: so only under the
/// same policies, never with what a human let one call do, and not where a limit is on the call as a whole.
fn share(confinement: &mut Confinement, egress: &Rules, layers: &[&Policy], approved: bool) -> Digest {
    let limits = &confinement.limits;
    if !approved && limits.wall_time.is_none() && limits.memory.is_none() {
        confinement.survivors = Survivors::Stay;
    }
    let policies: Vec<Digest> = layers.iter().map(|policy| policy.digest()).collect();
    let alike = (policies, &confinement.network, egress, confinement.identity);
    Digest::of(json::to_canonical(&alike).as_bytes())
}

impl Prepared {
    /// Keeps the order and gives the right to run the call's line in it, which its row is to say.
    pub fn grant(
        &self,
        session: &Session<'_>,
        decision: &Decision,
        call: &ToolCall,
    ) -> Result<Option<Grant>, SessionError> {
        let ToolKind::Shell { command } = &call.kind else { return Ok(None) };
        let digest = self.order.digest();
        let Some(grant) = Grant::of(decision, digest, command) else { return Ok(None) };
        session.keep(&Order::file_name(digest), json::to_canonical(&self.order).as_bytes())?;
        Ok(Some(grant))
    }
}

/// The answer to a call that runs in a sandbox: the same, with a line that has Writ run the model's.
pub fn answer(session: &Session<'_>, call: &ToolCall, id: &str, answer: Answer) -> Answer {
    let (ToolKind::Shell { command }, Some(client), Some(program)) =
        (&call.kind, session.client.and_then(|client| client.shell_calls()), session.home.program.as_deref())
    else {
        return answer;
    };
    let line = wrapped(program, session.id.as_str(), id, command);
    Answer { input: Some(client.with_line(&call.input, &line)), ..answer }
}

/// The line that runs another in a sandbox. Where that ended well, the shell goes on in the folder it ended in: Writ writes its name
/// to descriptor 9. Everything else is left to it as it is. The shell is copied once, by the substitution: `exec` is what spares the
/// second copy, and a third is made only where the code is not 0.
fn wrapped(program: &Path, session: &str, call: &str, line: &str) -> String {
    let [program, session, call, line] = [&program.to_string_lossy(), session, call, line].map(quoted);
    format!(
        "{{ writ_folder=$(exec {program} exec --session {session} --call {call} -- {line} 9>&1 >&8 8>&-); }} 8>&1; \
         writ_status=$?; [ -z \"$writ_folder\" ] || cd -- \"$writ_folder\"; \
         [ \"$writ_status\" -eq 0 ] || (exit $writ_status)"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The grant that a row says.
pub fn granted(detail: &Value) -> Option<Grant> {
    json::from_value(detail.get("sandbox")?).ok()
}
