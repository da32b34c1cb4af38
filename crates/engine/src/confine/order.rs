//! What a call is to run in: made before it is decided, granted with the decision, kept for the run.
//!
//! Owns the value that a grant names by its digest. Invariant: what runs is what was granted, byte for byte of its canonical form.

use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fs};

use serde::{Deserialize, Serialize};
use writ_clients::Client;
use writ_clients::program::Needs;
use writ_core::json::{self, Value};
use writ_core::{Answer, Custody, Decision, Digest, SessionId, ToolCall, ToolKind};
use writ_egress::{Places, Rules, variables};
use writ_policy::sandbox::Secret;
use writ_policy::{Confine, Grant, GrantRule, Held, Policy};
use writ_sandbox::{Confinement, Features, HostPath, Level, Network, Reading, Survivors};
use writ_store::{Store, regular_file};

use super::begun::{Begun, GRANTED};
use super::layers::{self, TEMPORARY};
use super::plan::{self, Ground, Said};
use super::secrets::{self, Source};
use super::trust::{self, TrustPlace};
use super::{bare, client, copy, limits, mounts, network, strength};
use crate::Home;
use crate::governing;
use crate::session::{Session, SessionError};

/// Where the hooks of a client that has a network of its own ask.
const HOOKS: u16 = 3129;
/// Largest order that was kept.
const MAX_ORDER: u64 = 64 << 20;

/// What a command runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What the kernel holds.
    pub confinement: Confinement,
    /// What the egress proxy lets through.
    pub egress: Rules,
    /// Where the values of its secrets come from, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Source>,
    /// Which of the caller's variables are not passed on, beside those that the confinement names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_variables: Vec<GrantRule>,
    /// Where the run's authority is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<TrustPlace>,
    /// Calls of a session that have the same here share a network, and the processes that they leave running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Digest>,
    /// Whose calls they are, by the client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
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

    /// The one that was kept last.
    pub fn last(store: &Store, session: &SessionId) -> Option<Self> {
        let kept = fs::read_dir(store.folder(session).join(GRANTED)).ok()?.flatten();
        let last = kept.max_by_key(|entry| entry.metadata().and_then(|found| found.modified()).ok())?;
        json::from_slice(&regular_file::read(&last.path(), MAX_ORDER).ok()?).ok()
    }

    /// Where it is kept in the session's folder.
    pub fn file_name(digest: Digest) -> String {
        format!("{GRANTED}/{}.json", digest.hex())
    }
}

/// An order, and what it holds on this machine.
#[derive(Clone, Debug)]
pub struct Prepared {
    order: Order,
    /// What needs no question.
    pub held: Held,
}

/// What the policies want of the machine, where they want it for this call.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What the machine allows.
    pub features: Features,
    /// The level that the call is held at.
    pub level: Level,
}

/// What holds a call under these policies; `None` where none of them wants that, or it runs no program. An error says why it cannot be.
pub fn wanted(session: &Session<'_>, call: &ToolCall, layers: &[&Policy]) -> Option<Result<Wanted, String>> {
    let wanted = layers.iter().filter_map(|policy| policy.confine()).max_by_key(|confine| confine.at_least)?;
    let found = match machine(session, wanted) {
        Ok(found) => found,
        Err(why) => return Some(Err(why)),
    };
    if !matches!(call.kind, ToolKind::Shell { .. }) {
        return None;
    }
    if session.client.is_none_or(|client| client.shell_calls().is_none()) {
        return Some(Err("its client takes no other line than the model's".to_owned()));
    }
    if session.home.keeper.as_ref().is_some_and(|keeper| keeper.custody() == Custody::OtherUser) {
        return Some(Err("the record is another user's, and `writ exec` could not write to it".to_owned()));
    }
    if session.home.program.is_none() {
        return Some(Err("where Writ's own program is cannot be found out".to_owned()));
    }
    Some(Ok(found))
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
    /// Whether what it writes to the policy's folder goes to a layer.
    pub copy: bool,
}

/// What holds a run under these policies, none of which need have asked for it.
pub fn wanted_whole(session: &Session<'_>, layers: &[&Policy]) -> Result<Wanted, String> {
    let wanted = layers.iter().filter_map(|policy| policy.confine()).max_by_key(|confine| confine.at_least);
    machine(session, wanted.unwrap_or(Confine { at_least: 1 }))
}

/// What a run under these policies is to run in. What needs a human's yes stays as it is throughout.
pub fn prepare_whole(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    whole: &Whole<'_>,
) -> Result<Prepared, String> {
    let wanted = wanted_whole(session, layers)?;
    let order = order_whole(session, call, layers, whole, &wanted)?;
    refusal(session, &wanted.features).map_or(Ok(Prepared { held: held(session, layers, wanted.level), order }), Err)
}

/// The plan for a run, at the level it is held at.
pub fn order_whole(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    whole: &Whole<'_>,
    wanted: &Wanted,
) -> Result<Order, String> {
    let mut order = order(session, call, layers, false, wanted)?;
    let confinement = &mut order.confinement;
    // It shares nothing, and what it leaves ends with it.
    (order.shared, confinement.survivors) = (None, Survivors::End);
    confinement.session = writ_sandbox::Session::Terminal;
    if let Network::Proxied(ports) = &mut confinement.network {
        ports.hooks = Some(HOOKS);
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
    mounts::add(session, layers, confinement, &wanted.features)?;
    if whole.copy {
        let root = session.state.policy.as_ref().map_or(Path::new(&call.cwd), |policy| policy.root());
        let folder = session.store.folder(&session.id);
        copy::into_layers(confinement, root, (&folder, copy::COPY), &wanted.features)
            .map_err(|error| error.to_string())?;
    }
    Ok(order)
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
fn machine(session: &Session<'_>, wanted: Confine) -> Result<Wanted, String> {
    let features = strength::features(session.store).map_err(|error| error.to_string())?;
    let level = strength::level(&features, wanted).map_err(|error| error.to_string())?;
    Ok(Wanted { features, level })
}

/// What needs no question: what the kernel holds at this level, and a plan was looked for everywhere.
fn held(session: &Session<'_>, layers: &[&Policy], level: Level) -> Held {
    let namespaces = level >= Level::Namespaces;
    let root = session.state.policy.as_ref().map(|policy| policy.root());
    let home = session.setting.home.as_deref();
    let beyond = root.is_some_and(|root| plan::beyond_looking(layers, root, home));
    Held { files: namespaces && !beyond, hosts: namespaces }
}

/// Why nothing may run in the sandbox of this session, if nothing may.
fn refusal(session: &Session<'_>, features: &Features) -> Option<String> {
    let now = Digest::of(json::to_canonical(features).as_bytes());
    match &session.state.tested {
        Some(tested) if tested.features == now => tested.refused.clone(),
        Some(_) | None => Some("it was not tested on this machine as it is now".to_owned()),
    }
}

/// What a call under these policies is to run in; `None` where none of them wants that, or it runs no program. An error says why
/// it cannot be, which denies. `approved` says that a human lets it use what the policies leave to them.
pub fn prepare(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    approved: bool,
) -> Option<Result<Prepared, String>> {
    let wanted = match wanted(session, call, layers)? {
        Ok(wanted) => wanted,
        Err(why) => return Some(Err(why)),
    };
    let order = match order(session, call, layers, approved, &wanted) {
        Ok(order) => order,
        Err(why) => return Some(Err(why)),
    };
    Some(
        refusal(session, &wanted.features)
            .map_or(Ok(Prepared { held: held(session, layers, wanted.level), order }), Err),
    )
}

/// The plan for a call, at the level it is held at.
pub fn order(
    session: &Session<'_>,
    call: &ToolCall,
    layers: &[&Policy],
    approved: bool,
    wanted: &Wanted,
) -> Result<Order, String> {
    let Wanted { features, level } = wanted;
    let namespaces = *level >= Level::Namespaces;
    let root = session.state.policy.as_ref().map_or(Path::new(&call.cwd), |policy| policy.root());
    let begun = Begun::of(session, root).map_err(|error| error.to_string())?;
    let ground = Ground {
        layers,
        setting: &session.setting,
        root,
        folder: Path::new(&call.cwd),
        state: session.home.state.as_deref(),
        search: &session.home.search,
        approved,
        begun: begun.as_ref(),
    };
    let bound = secrets::bound(layers);
    let placeholders = if bound.is_empty() { BTreeMap::new() } else { placeholders(session, &bound)? };
    let mut order = compose(&ground, &bound, &placeholders)?.0;
    order.client = session.client.map(|client| client.name().to_owned());
    secrets::values(&order.sources, session.home).map_err(|error| error.to_string())?;
    if let Some(why) = limits::unheld(&order.confinement.limits) {
        return Err(why);
    }
    let confinement = &mut order.confinement;
    if namespaces {
        // What one call leaves in `/tmp`, the next finds; without mounts there is no `/tmp` to write to.
        confinement.environment.set.push(("TMPDIR".into(), "/tmp".into()));
    }
    // A root that may not mount outside of namespaces has no way to lend what lies where only it may go: `/tmp` is each call's own then.
    if namespaces && (features.user != 0 || features.mapped_owners) {
        let folder = session.store.folder(&session.id);
        let temporary = HostPath::new(folder.join(TEMPORARY)).map_err(|error| error.to_string())?;
        confinement.temporary_folder = Some(temporary);
        layers::add(confinement, features, session.setting.home.as_deref(), &folder);
    }
    if !namespaces {
        bare::fit(confinement);
    }
    confinement.environment.drop.extend(session.home.secret_variables.iter().cloned());
    if namespaces {
        share(&mut order, layers, approved);
    }
    Ok(order)
}

/// Which calls share a network, and processes with it. What a call leaves running goes on under the rules it began with: so only under the
/// same policies, never with what a human let one call do, and not where a limit is on the call as a whole.
fn share(order: &mut Order, layers: &[&Policy], approved: bool) {
    let confinement = &mut order.confinement;
    let limits = &confinement.limits;
    if !approved && limits.wall_time.is_none() && limits.memory.is_none() {
        confinement.survivors = Survivors::Stay;
    }
    let policies: Vec<Digest> = layers.iter().map(|policy| policy.digest()).collect();
    let alike = (policies, &confinement.network, &order.egress, confinement.identity);
    order.shared = Some(Digest::of(json::to_canonical(&alike).as_bytes()));
}

fn placeholders(session: &Session<'_>, bound: &[Secret]) -> Result<BTreeMap<String, String>, String> {
    secrets::placeholders(session, bound).map_err(|error| error.to_string())
}

/// Policies into one order, and what is to be said of it. `placeholders` has one for each secret that is bound.
pub fn compose(
    ground: &Ground<'_>,
    bound: &[Secret],
    placeholders: &BTreeMap<String, String>,
) -> Result<(Order, Said), String> {
    let home = ground.setting.home.as_deref();
    let plan::Planned { mut confinement, said } = plan::plan(ground).map_err(|error| error.to_string())?;
    let mut egress = network::rules(ground.layers)?;
    confinement.limits = limits::limits(ground.layers);
    // What any layer binds is no plain variable or file, whether or not the others let it be used.
    for secret in ground.layers.iter().flat_map(|policy| &policy.sandbox().secrets.bind) {
        match secrets::source(&secret.source, ground.root, home)? {
            Source::Variable(name) => confinement.environment.drop.push(name),
            Source::File(path) => confinement.masked.push(HostPath::new(path).map_err(|error| error.to_string())?),
        }
    }
    let mut sources = BTreeMap::new();
    let refused_variables = ground.layers.iter().flat_map(|policy| policy.refused_variables()).collect();
    let Network::Proxied(ports) = &mut confinement.network else {
        let trust = Vec::new();
        return Ok((
            Order { confinement, egress, sources, refused_variables, trust, shared: None, client: None },
            said,
        ));
    };
    for secret in bound {
        let placeholder = placeholders.get(&secret.name).ok_or("a secret has no placeholder")?;
        confinement.environment.set.push(((&secret.name).into(), placeholder.into()));
        egress.secrets.push(secrets::rule(secret, placeholder.clone()));
        sources.insert(secret.name.clone(), secrets::source(&secret.source, ground.root, home)?);
    }
    egress.check().map_err(|error| error.to_string())?;
    ports.direct = egress.listening_ports().into_iter().collect();
    // Its own port is the first that nobody else means.
    ports.http = (ports.http..).find(|port| !ports.direct.contains(port)).unwrap_or(ports.http);
    let trust = if egress.needs_authority() { trust::places(home) } else { Ok(Vec::new()) };
    let trust = trust.map_err(|error| error.to_string())?;
    let shown = (!trust.is_empty()).then(|| (Path::new(trust::AUTHORITY), Path::new(trust::BUNDLE)));
    let set = variables(&Places { proxy: ports.http, trust: shown });
    confinement.environment.set.extend(set.into_iter().map(|(name, value)| (name.into(), value.into())));
    Ok((Order { confinement, egress, sources, refused_variables, trust, shared: None, client: None }, said))
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
    let input = session.client.and_then(|client| wrapped_input(client, call, (&session.id, id), session.home));
    Answer { input, ..answer }
}

/// The input of a call, with a line that has Writ run the model's, by the session and the id of the call. `None` for what is no shell call.
pub fn wrapped_input(client: &dyn Client, call: &ToolCall, of: (&SessionId, &str), home: &Home) -> Option<Value> {
    let (ToolKind::Shell { command }, Some(client), Some(program)) =
        (&call.kind, client.shell_calls(), home.program.as_deref())
    else {
        return None;
    };
    Some(client.with_line(&call.input, &wrapped(program, of.0.as_str(), of.1, &command.to_string())))
}

/// The line that runs another in a sandbox. Where that ended well, the shell goes on in the folder it ended in: Writ writes its name
/// to descriptor 9. Everything else is left to it as it is. The shell is copied once, by the substitution: `exec` is what spares the
/// second copy, and a third is made only where the code is not 0.
fn wrapped(program: &Path, session: &str, call: &str, line: &str) -> String {
    // Claude Code looks at the first word to tell what ends when its time is up from what goes on in the background.
    let sleeps = line.split([' ', ';', '&', '|', '\n']).next() == Some("sleep");
    let first = if sleeps { "sleep 0; " } else { "" };
    let [program, session, call] = [&program.to_string_lossy(), session, call].map(quoted);
    let line = if is_long(line) { escaped(line) } else { quoted(line) };
    format!(
        "{first}{{ writ_folder=$(exec {program} exec --session {session} --call {call} -- {line} 9>&1 >&8 8>&-); }} 8>&1; \
         writ_status=$?; [ -z \"$writ_folder\" ] || cd -- \"$writ_folder\"; \
         [ \"$writ_status\" -eq 0 ] || (exit $writ_status)"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether a quoted line that a client quotes once more may be too long to be an argument (128 KiB), and is shorter without its quotes.
fn is_long(line: &str) -> bool {
    let count = |sign: char| line.matches(sign).count();
    // Three of its own, each of which the client makes five signs of, and a backslash.
    let quotes = 16 * count('\'');
    line.len() + quotes > 90_000 && count('\\') + 4 * count('\'') < quotes
}

/// The same without a quote in it, for bash and zsh alone.
fn escaped(text: &str) -> String {
    format!("$'{}'", text.replace('\\', r"\\").replace('\'', r"\047"))
}

/// The grant that a row says.
pub fn granted(detail: &Value) -> Option<Grant> {
    json::from_value(detail.get("sandbox")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_many_quotes_is_as_long_as_without_writ() {
        let text = "cat <<'EOF'\nit's \\n 'a' \\047 $x `y` \"z\" é\nEOF\n".repeat(800);
        assert!(is_long(&text) && !is_long("echo 'a'") && !is_long(&"x".repeat(120_000)));
        assert!(!is_long(&format!("'{}", "\\".repeat(100_000))));
        let said = std::process::Command::new("bash").args(["-c", &format!("printf %s {}", escaped(&text))]).output();
        assert_eq!(String::from_utf8(said.unwrap().stdout).unwrap(), text);
        let client = wrapped(Path::new("/writ"), "s", "c", &text).replace('\'', "'\"'\"'");
        assert!(client.len() < text.replace('\'', "'\"'\"'").len() + 1000);
    }
}
