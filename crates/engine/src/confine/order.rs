//! What a call is to run in: made before it is decided, granted with the decision, kept for the run.
//!
//! Owns the value that a grant names by its digest. Invariant: what runs is what was granted, byte for byte of its canonical form.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_clients::program::Needs;
use writ_core::json::{self, Value};
use writ_core::{Answer, Decision, Digest, ToolCall, ToolKind};
use writ_egress::{Places, Rules, variables};
use writ_policy::{Confine, Domains, Grant, Held, Policy};
use writ_sandbox::{Confinement, HostPath, Level, Network, Reading};

use super::plan::{self, Ground};
use super::{client, strength};
use crate::governing;
use crate::session::{Session, SessionError};

/// The folder in the session's that is `/tmp` to its calls.
const TEMPORARY: &str = "tmp";
/// Where the hooks of a client that has a network of its own ask.
const HOOKS: u16 = 3129;

/// What a command runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What the kernel holds.
    pub confinement: Confinement,
    /// What the egress proxy lets through.
    pub egress: Rules,
}

impl Order {
    /// The digest of its canonical form.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
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
    let level = match level(session, wanted) {
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
    Some(order(session, call, layers, approved, namespaces).map(|order| Prepared { held: held(namespaces), order }))
}

/// What is run as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// What it needs beside what policies give, where it is a client's.
    pub needs: Option<&'a Needs>,
    /// Where what it has of its own lies.
    pub copies: &'a Path,
    /// The program itself, where it is found.
    pub program: Option<&'a Path>,
}

/// What a run under these policies is to run in. What needs a human's yes stays as it is throughout.
pub fn prepare_whole(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    whole: &Whole<'_>,
) -> Result<Prepared, String> {
    let wanted = layers.iter().filter_map(|policy| policy.confine()).max_by_key(|confine| confine.at_least);
    let namespaces = level(session, wanted.unwrap_or(Confine { at_least: 1 }))? >= Level::Namespaces;
    let mut order = order(session, call, layers, false, namespaces)?;
    let confinement = &mut order.confinement;
    confinement.session = writ_sandbox::Session::Terminal;
    if let Network::Proxied(ports) = &mut confinement.network {
        ports.hooks = Some(HOOKS);
    }
    if namespaces {
        confinement.environment.set.push(("TMPDIR".into(), "/tmp".into()));
    }
    if confinement.reading == Reading::Closed {
        let programs = [whole.program, session.home.program.as_deref()];
        for program in programs.into_iter().flatten() {
            // By the name it is called by too, which may be a link.
            let plain = program.canonicalize().ok();
            let names = [Some(program), plain.as_deref()];
            confinement.readable.extend(names.into_iter().flatten().filter_map(|name| HostPath::new(name).ok()));
        }
    }
    if let Some(needs) = whole.needs {
        let user = session.home.user.as_deref();
        let obeyed = obeyed(session, Path::new(&call.cwd));
        client::give(confinement, needs, whole.copies, &obeyed, layers, user).map_err(|error| error.to_string())?;
    }
    Ok(Prepared { held: held(namespaces), order })
}

/// The files that the session's client has its hooks and servers from.
fn obeyed(session: &Session<'_>, cwd: &Path) -> Vec<PathBuf> {
    let Some(client) = session.client else { return Vec::new() };
    let (home, folder) = (session.home, session.home.folder(client));
    let settings = home.places(client, governing::repository(cwd)).map(|places| places.settings).unwrap_or_default();
    let servers = home.user.as_deref().or(folder).zip(client.servers());
    let servers = servers.map(|(user, servers)| servers.files(cwd, user, folder)).unwrap_or_default();
    settings.into_iter().chain(servers).collect()
}

/// What this machine can hold, if that is what the policies want.
fn level(session: &Session<'_>, wanted: Confine) -> Result<Level, String> {
    let features = strength::features(session.store).map_err(|error| error.to_string())?;
    strength::level(&features, wanted).map_err(|error| error.to_string())
}

/// What needs no question.
const fn held(namespaces: bool) -> Held {
    Held { files: namespaces, hosts: namespaces }
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
    Ok(Order { confinement, egress: Rules { domains, ..Rules::default() } })
}

impl Prepared {
    /// What was prepared.
    pub const fn order(&self) -> &Order {
        &self.order
    }

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
/// to descriptor 9. Everything else is left to it as it is.
fn wrapped(program: &Path, session: &str, call: &str, line: &str) -> String {
    let [program, session, call, line] = [&program.to_string_lossy(), session, call, line].map(quoted);
    format!(
        "{{ writ_folder=$({program} exec --session {session} --call {call} -- {line} 9>&1 >&8 8>&-); }} 8>&1; \
         writ_status=$?; [ -z \"$writ_folder\" ] || cd -- \"$writ_folder\"; (exit $writ_status)"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The grant that a row says.
pub fn granted(detail: &Value) -> Option<Grant> {
    json::from_value(detail.get("sandbox")?).ok()
}
