//! What the protocol says a verifier does, written down once more and as plainly as possible: lists instead of rules, names instead of
//! types, nothing of the crate under test. Times are milliseconds, keys are numbers in the test's pool.

use std::collections::{BTreeMap, BTreeSet};

/// The states of §5.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    Pending,
    Active,
    Deprecated,
    Retired,
    Compromised,
}

pub const STATES: [State; 5] = [State::Pending, State::Active, State::Deprecated, State::Retired, State::Compromised];

/// The transitions of §5.2 and R31, one by one.
const LEGAL: [(State, State); 8] = [
    (State::Pending, State::Active),
    (State::Pending, State::Deprecated),
    (State::Active, State::Deprecated),
    (State::Deprecated, State::Retired),
    (State::Pending, State::Compromised),
    (State::Active, State::Compromised),
    (State::Deprecated, State::Compromised),
    (State::Retired, State::Compromised),
];

pub fn legal(from: State, to: State) -> bool {
    LEGAL.contains(&(from, to))
}

/// Whether a verifier that saw `from` may see `to` next, having missed any number of versions.
pub fn reachable(from: State, to: State) -> bool {
    let mut reached = BTreeSet::from([from]);
    for _ in STATES {
        let next: Vec<State> = LEGAL.iter().filter(|(a, _)| reached.contains(a)).map(|(_, b)| *b).collect();
        reached.extend(next);
    }
    reached.contains(&to)
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub id: String,
    pub public: usize,
    pub state: State,
    pub until: Option<i64>,
}

/// A registry as it is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doc {
    pub version: u64,
    pub keys: Vec<Key>,
}

impl Doc {
    pub fn key(&self, id: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// §5.2 and §5.1: at most one active key, no id twice.
    pub fn is_registry(&self) -> bool {
        let ids: BTreeSet<&str> = self.keys.iter().map(|key| key.id.as_str()).collect();
        let active = self.keys.iter().filter(|key| key.state == State::Active).count();
        let publics: BTreeSet<usize> = self.keys.iter().map(|key| key.public).collect();
        self.version > 0 && ids.len() == self.keys.len() && publics.len() == ids.len() && active <= 1
    }

    fn sorted(&self) -> Vec<Key> {
        let mut keys = self.keys.clone();
        keys.sort();
        keys
    }
}

/// What an operator does to an instance's registry.
#[derive(Clone, Debug)]
pub enum Deed {
    Publish(usize),
    Plan(i64),
    Activate(String),
    Deprecate(String),
    Retire(String),
    Compromise(String),
}

/// The registry after a deed, or nothing when it is not legal.
pub fn done(doc: &Doc, deed: &Deed, instance: &str, now: i64) -> Option<Doc> {
    let mut next = doc.clone();
    next.version += 1;
    let mut go = |id: &str, to: State| {
        let key = next.keys.iter_mut().find(|key| key.id == id)?;
        if !legal(key.state, to) {
            return None;
        }
        key.state = to;
        if to == State::Deprecated && key.until.is_none() {
            key.until = Some(now);
        }
        Some(())
    };
    match deed {
        Deed::Publish(public) => {
            let id = format!("{instance}-{}", doc.keys.len() + 1);
            next.keys.push(Key { id, public: *public, state: State::Pending, until: None });
        }
        Deed::Plan(at) => {
            let active = next.keys.iter_mut().find(|key| key.state == State::Active)?;
            if *at <= now {
                return None;
            }
            active.until = Some(*at);
        }
        Deed::Activate(id) => {
            go(id, State::Active)?;
            for old in &doc.keys {
                if old.state == State::Active && old.id != *id {
                    // §5.4 step 3; a planned rotation keeps its plan's date.
                    go(&old.id, State::Deprecated)?;
                }
            }
        }
        Deed::Retire(id) => go(id, State::Retired)?,
        Deed::Deprecate(id) | Deed::Compromise(id) => {
            go(id, if matches!(deed, Deed::Deprecate(_)) { State::Deprecated } else { State::Compromised })?;
            let mut line = doc.keys.iter().filter(|key| key.state == State::Pending);
            match (doc.keys.iter().find(|key| key.state == State::Active && key.until.is_some()), line.next()) {
                // A plan outlives its active key: the successor takes over.
                (Some(active), Some(heir)) if active.id == *id => go(&heir.id, State::Active)?,
                // It ends with its successor.
                (Some(active), Some(heir)) if heir.id == *id && line.next().is_none() => {
                    let active = next.keys.iter_mut().find(|key| key.id == active.id)?;
                    active.until = None;
                }
                _ => {}
            }
        }
    }
    Some(next)
}

/// What a verifier remembers of an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cached {
    pub doc: Doc,
    pub gone: BTreeMap<String, usize>,
    pub fetched_at: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disk {
    Missing,
    Damaged,
    Holds(Cached),
}

/// What the network does for one request, tries included.
#[derive(Clone, Debug)]
pub enum Web<T> {
    /// No answer, or a server's error, this often; then `T`.
    Flaky(u8, T),
    /// This status.
    Status(u16),
    /// 200 with something else, or something too large.
    Garbage,
    /// 200.
    Serves(T),
}

impl<T> Web<T> {
    /// What arrives, and how many requests that takes.
    fn got(&self, retries: u8) -> (Result<&T, u16>, usize) {
        match self {
            Self::Serves(it) => (Ok(it), 1),
            Self::Flaky(fails, it) if *fails <= retries => (Ok(it), usize::from(*fails) + 1),
            Self::Flaky(..) => (Err(0), usize::from(retries) + 1),
            Self::Status(status) if *status >= 500 => (Err(*status), usize::from(retries) + 1),
            Self::Status(status) => (Err(*status), 1),
            Self::Garbage => (Err(200), 1),
        }
    }
}

/// An attestation, as far as a verifier's answer depends on it.
#[derive(Clone, Debug)]
pub struct Att {
    pub instance: usize,
    pub key_id: String,
    /// The key that made the signature; none when the bytes were bent since.
    pub signer: Option<usize>,
    pub expires_at: Option<i64>,
    pub nonce: Option<String>,
}

pub struct Settings {
    pub trusted: Vec<usize>,
    pub ttl: i64,
    pub cross_check: bool,
    pub retries: u8,
}

/// A verifier.
#[derive(Default)]
pub struct Reference {
    pub disk: Vec<Disk>,
    pub nonces: Vec<BTreeMap<String, Option<i64>>>,
    pub cleared: Vec<Option<i64>>,
    /// Requests made so far.
    pub requests: usize,
}

/// The key's state and the registry's version, or the code; `state` stands for the verifier's own files.
pub type Answer = Result<(State, u64), &'static str>;

impl Reference {
    pub fn new(instances: usize) -> Self {
        Self {
            disk: vec![Disk::Missing; instances],
            nonces: vec![BTreeMap::new(); instances],
            cleared: vec![None; instances],
            requests: 0,
        }
    }

    pub fn verify(&mut self, att: &Att, set: &Settings, web: &Web<Doc>, copy: &Web<bool>, now: i64) -> Answer {
        if !set.trusted.is_empty() && !set.trusted.contains(&att.instance) {
            return Err("instance_not_trusted");
        }
        let answer = self.signature(att, set, web, now)?;
        if att.expires_at.is_some_and(|end| end <= now) {
            return Err("expired");
        }
        if set.cross_check {
            let (got, requests) = copy.got(set.retries);
            self.requests += requests;
            match got {
                Ok(true) | Err(410) => {}
                Ok(false) | Err(200) => return Err("cross_check_mismatch"),
                Err(_) => return Err("network_error"),
            }
        }
        Ok(answer)
    }

    pub fn verify_once(&mut self, att: &Att, set: &Settings, web: &Web<Doc>, copy: &Web<bool>, now: i64) -> Answer {
        let answer = self.verify(att, set, web, copy, now)?;
        let Some(nonce) = &att.nonce else { return Ok(answer) };
        let (used, cleared) = (&mut self.nonces[att.instance], &mut self.cleared[att.instance]);
        if nonce.starts_with('0') {
            let over = |end: &Option<i64>| end.is_some_and(|end| end <= now);
            let latest = used.values().filter(|end| over(end)).filter_map(|end| *end).max();
            used.retain(|_, end| !over(end));
            *cleared = latest.max(*cleared);
        }
        if used.contains_key(nonce) {
            return Err("nonce_reused");
        }
        if att.expires_at.is_some_and(|end| cleared.is_some_and(|cleared| end <= cleared)) {
            return Err("expired");
        }
        used.insert(nonce.clone(), att.expires_at);
        Ok(answer)
    }

    fn signature(&mut self, att: &Att, set: &Settings, web: &Web<Doc>, now: i64) -> Answer {
        let known = match &self.disk[att.instance] {
            Disk::Damaged => return Err("state"),
            Disk::Missing => None,
            Disk::Holds(cached) => Some(cached.clone()),
        };
        let mut doubt = "";
        if let Some(cached) = &known
            && now >= cached.fetched_at
            && now - cached.fetched_at < set.ttl
        {
            match judged(&cached.doc, att) {
                Ok(answer) => return Ok(answer),
                Err(code) => doubt = code,
            }
        }
        let (got, requests) = web.got(set.retries);
        self.requests += requests;
        let Some(doc) = got.ok().filter(|doc| doc.is_registry()) else {
            return Err(if doubt == "key_compromised" { doubt } else { "network_error" });
        };
        let next = match known {
            None => Cached { doc: doc.clone(), gone: BTreeMap::new(), fetched_at: now },
            Some(known) => followed(&known, doc, now).ok_or("registry_rollback")?,
        };
        let answer = judged(&next.doc, att);
        self.disk[att.instance] = Disk::Holds(next);
        answer
    }

    /// §5.5: whatever is known, what is published is taken. Yields what was discarded (`None`: nothing, `Some(None)`: not readable).
    pub fn force(&mut self, at: usize, set: &Settings, web: &Web<Doc>, now: i64) -> Option<(Option<Option<u64>>, u64)> {
        let (got, requests) = web.got(set.retries);
        self.requests += requests;
        let doc = got.ok().filter(|doc| doc.is_registry())?.clone();
        let discarded = match &self.disk[at] {
            Disk::Missing => None,
            Disk::Damaged => Some(None),
            Disk::Holds(cached) => Some(Some(cached.doc.version)),
        };
        let version = doc.version;
        self.disk[at] = Disk::Holds(Cached { doc, gone: BTreeMap::new(), fetched_at: now });
        Some((discarded, version))
    }
}

fn judged(doc: &Doc, att: &Att) -> Answer {
    let key = doc.key(&att.key_id).ok_or("key_not_found")?;
    match key.state {
        State::Pending => Err("key_pending"),
        State::Compromised => Err("key_compromised"),
        State::Active | State::Deprecated | State::Retired if att.signer == Some(key.public) => {
            Ok((key.state, doc.version))
        }
        _ => Err("signature_invalid"),
    }
}

/// What is remembered after `doc` was fetched, or nothing when it is a rollback.
fn followed(known: &Cached, doc: &Doc, now: i64) -> Option<Cached> {
    if doc.version < known.doc.version || (doc.version == known.doc.version && doc.sorted() != known.doc.sorted()) {
        return None;
    }
    // Everything that ever was: published ones as they stood, withdrawn ones as compromised (§5.3 publishes all others).
    let published = known.doc.keys.iter().map(|key| (key.id.clone(), key.public, key.state));
    let withdrawn = known.gone.iter().map(|(id, public)| (id.clone(), *public, State::Compromised));
    let mut gone = BTreeMap::new();
    for (id, public, state) in published.chain(withdrawn) {
        // A key keeps its name, also one that was withdrawn.
        if doc.keys.iter().any(|key| key.public == public && key.id != id) {
            return None;
        }
        match doc.key(&id) {
            None => {
                gone.insert(id, public);
            }
            Some(key) if key.public != public || !reachable(state, key.state) => return None,
            Some(_) => {}
        }
    }
    let doc = if doc.version == known.doc.version { known.doc.clone() } else { doc.clone() };
    Some(Cached { doc, gone, fetched_at: now })
}
