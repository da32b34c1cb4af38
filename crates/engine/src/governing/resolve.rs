//! From a policy to all that it names: parents, sub-agents' policies, theirs in turn.
//!
//! Reads files and the lock beside the root; fetches nothing, so that no hook waits for a network (R24). Refuses circles, chains above
//! eight, limits looser than a parent's (R23), and whatever is not what it is pinned to. Invariant: a layer that cannot be had is an
//! error, never a layer less. Page: `spec/layers.md`.

use std::path::{Path, PathBuf};

use writ_agentfile::placed::Placed;
use writ_core::Digest;
use writ_policy::{Child, Functionary, Named, Policy, Reference};

use super::bases::{self, Bases};
use super::error::{GoverningError, Missing};
use super::kept;
use super::layers::{self, LayerRef, MOST, Source, source};
use super::lock::{Lock, LockError, Locked};
use super::looser::{Limits, beside, limits_of, looser, merged};
use super::open::{self, Governing, Layered};
use super::signed;
use super::trust::Trust;

/// Longest chain of policies that name each other, the root included.
const DEEPEST: usize = 8;
/// Most bytes that all of them have.
const MAX_BYTES: usize = 1 << 20;

/// Where policies from elsewhere come from.
// EXTENSION POINT: hooks take them from the lock, `writ policy lock` from the network.
pub trait Elsewhere {
    /// The bytes behind an address.
    fn bytes(&self, address: &str) -> Result<Vec<u8>, Missing>;
    /// What is wrong with a file's digest.
    fn check(&self, reference: &str, file: Digest) -> Result<(), Missing>;
}

/// The lock beside a policy, or its absence.
pub struct Locks {
    lock: Option<Lock>,
}

impl Locks {
    /// Of the policy at `path`.
    pub fn of(path: &Path) -> Result<Self, LockError> {
        Ok(Self { lock: Lock::read(path)? })
    }
}

const REMEDY: &str = "a human runs `writ policy lock`";

impl Elsewhere for Locks {
    fn bytes(&self, address: &str) -> Result<Vec<u8>, Missing> {
        let locked = self.lock.as_ref().and_then(|lock| lock.get(address));
        let document = locked.and_then(|locked| locked.document.as_ref());
        let why = || format!("`{address}` is not in the lock beside the policy: {REMEDY}");
        document.map(|text| text.clone().into_bytes()).ok_or_else(|| Missing { rule: "not-locked", why: why() })
    }

    fn check(&self, reference: &str, file: Digest) -> Result<(), Missing> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let why = match lock.get(reference).map(|locked| locked.digest) {
            Some(digest) if digest == file => return Ok(()),
            Some(_) => format!("`{reference}` is not the file that the lock pins: look at what changed, then {REMEDY}"),
            None => format!("`{reference}` is not in the lock beside the policy: {REMEDY}"),
        };
        Err(Missing { rule: "stale-lock", why })
    }
}

/// Opens the policy at `path`. `root` overrides the folder its relative patterns hang off.
pub fn open(path: &Path, root: Option<&Path>, trust: &Trust) -> Result<Governing, GoverningError> {
    open_bytes(path, open::read(path)?, root, trust)
}

/// The same for bytes already read. The files that the policy names have to be there.
pub fn open_bytes(
    path: &Path,
    bytes: Vec<u8>,
    root: Option<&Path>,
    trust: &Trust,
) -> Result<Governing, GoverningError> {
    let governing = open::open_alone(path, bytes, root, trust)?;
    if governing.policy.references().is_empty() {
        return Ok(governing);
    }
    with_layers(governing, root, trust, &Locks::of(path)?).map(|(governing, _)| governing)
}

/// What a run of an agent is held to, as one text: its Agentfile in its place, and what that is built on.
pub fn placed(path: &Path, placed: &Placed, trust: &Trust) -> Result<Vec<u8>, GoverningError> {
    open_bytes(path, placed.to_bytes(), None, trust).map(|governing| kept::whole(&governing))
}

/// A policy with those that it leads to, and what a lock would pin of them.
pub fn with_layers(
    governing: Governing,
    root: Option<&Path>,
    trust: &Trust,
    elsewhere: &dyn Elsewhere,
) -> Result<(Governing, Vec<Locked>), GoverningError> {
    let folder = open::absolute(root.or_else(|| governing.path.parent()).unwrap_or(Path::new("/")));
    let (layers, locked) = resolve(&governing, &folder, trust, elsewhere)?;
    Ok((Governing { layers, ..governing }, locked))
}

/// All layers of a policy, those who name before those who are named, and what a lock would pin.
fn resolve(
    root: &Governing,
    folder: &Path,
    trust: &Trust,
    elsewhere: &dyn Elsewhere,
) -> Result<(Vec<Layered>, Vec<Locked>), GoverningError> {
    let bases = Bases::of(trust.state());
    let mut out = Resolver { root, folder, trust, elsewhere, bases, layers: Vec::new(), locked: Vec::new(), size: 0 };
    out.below(&Above {
        of: None,
        policy: root.policy.clone(),
        bytes: root.bytes.clone(),
        vouched: root.signed.is_trusted(),
        from: Source::File(root.path.clone()),
        shown: root.path.clone(),
        agent: None,
        functionaries: root.policy.functionaries(),
        own: limits_of(&root.policy, &root.path.display().to_string()),
        inherited: Limits::new(),
        chain: vec![Source::File(real(&root.path))],
    })?;
    Ok((out.layers, out.locked))
}

/// A policy whose references are followed.
struct Above {
    of: Option<usize>,
    policy: Policy,
    bytes: Vec<u8>,
    /// Whether it stands under a key that is trusted: signed by one, or pinned by what is.
    vouched: bool,
    from: Source,
    shown: PathBuf,
    agent: Option<String>,
    functionaries: Option<Vec<Functionary>>,
    /// Its own limits.
    own: Limits,
    /// Those of whoever it is a sub-agent of.
    inherited: Limits,
    chain: Vec<Source>,
}

struct Resolver<'a> {
    root: &'a Governing,
    folder: &'a Path,
    trust: &'a Trust,
    elsewhere: &'a dyn Elsewhere,
    bases: Bases,
    layers: Vec<Layered>,
    locked: Vec<Locked>,
    size: usize,
}

impl Resolver<'_> {
    /// Follows a policy's references; gives its limits and its parents'.
    fn below(&mut self, above: &Above) -> Result<Limits, GoverningError> {
        let mut limits = above.own.clone();
        for reference in above.policy.references() {
            let wrong = |rule, why| wrong(&above.shown, &reference.pointer, rule, why);
            let place = source(&reference.policy, &above.from).map_err(|why| wrong("bad-reference", why))?;
            let key = if let Source::File(path) = &place { Source::File(real(path)) } else { place.clone() };
            if key != Source::Here && above.chain.contains(&key) {
                return Err(wrong("circle", "it leads back to a policy that names it".to_owned()));
            }
            if above.chain.len() >= DEEPEST || self.layers.len() >= MOST {
                let why = format!("more than {DEEPEST} policies in a chain, or more than {MOST} beside the first");
                return Err(wrong("too-deep", why));
            }
            let (at, layered, vouched) = self.layer(above, &reference, &place)?;
            let mut next = above.next(at, layered, place, key);
            next.vouched = vouched;
            let Some(child) = &reference.child else {
                // What a parent holds, holds for whoever extends it.
                let held = self.below(&next)?;
                looser(&above.own, &held).map_or(Ok(()), |why| Err(wrong("looser-limit", why)))?;
                limits = merged(limits, &held);
                continue;
            };
            let most = merged(limits.clone(), &above.inherited);
            let beside = beside(child, &above.shown.to_string_lossy(), &reference.pointer);
            looser(&beside, &most).map_or(Ok(()), |why| Err(wrong("looser-limit", why)))?;
            next.inherited = merged(most.clone(), &beside);
            let held = self.below(&next)?;
            looser(&held, &most).map_or(Ok(()), |why| Err(wrong("looser-limit", why)))?;
        }
        Ok(limits)
    }

    /// Reads one layer and lists it.
    fn layer(
        &mut self,
        above: &Above,
        reference: &Reference,
        place: &Source,
    ) -> Result<(usize, Layered, bool), GoverningError> {
        let wrong = |rule, why| wrong(&above.shown, &reference.pointer, rule, why);
        let missing = |missing: Missing| wrong(missing.rule, missing.why);
        let (bytes, shown) = match (place, &reference.policy) {
            (Source::File(path), _) => {
                (open::read(path).map_err(|error| wrong("missing-file", error.to_string()))?, path.clone())
            }
            (Source::Elsewhere(address), _) if bases::is_one(address) => {
                let base = self.bases.bytes(&above.from, &above.bytes, address).map_err(missing)?;
                (base, PathBuf::from(address))
            }
            (Source::Elsewhere(address), _) => {
                (self.elsewhere.bytes(address).map_err(missing)?, PathBuf::from(address))
            }
            (Source::Here, Named::Here(text)) => (text.clone().into_bytes(), above.shown.clone()),
            (Source::Here, Named::At(_)) => return Err(wrong("bad-reference", "it names nothing".to_owned())),
        };
        let path = if let Source::File(path) = place { Some(path) } else { None };
        self.size += bytes.len();
        if self.size > MAX_BYTES {
            return Err(wrong("too-large", format!("the policies that it leads to have more than {MAX_BYTES} bytes")));
        }
        let file = Digest::of(&bytes);
        self.lock(place, file, &bytes).map_err(missing)?;
        let opened = open::open_layer(&shown, bytes, self.folder, self.trust, path.is_some());
        let Governing { policy, signed, bytes, .. } = opened.map_err(|error| wrong("bad-policy", error.to_string()))?;
        let child = reference.child.as_ref();
        let named = child.and_then(|child| child.functionaries.clone()).or_else(|| policy.functionaries());
        let signed = signed::among(named.or_else(|| above.functionaries.clone().filter(|_| child.is_some())), signed);
        let pinned = pinned(child, &policy, file).map_err(|why| wrong("other-digest", why))?;
        let vouched = signed.is_trusted() || above.vouched && (pinned || *place == Source::Here);
        if self.trust.require_signed() && !vouched {
            let why = "it is neither signed by a key you trust nor pinned by a policy that is, and your settings require that";
            return Err(wrong("not-trusted", why.to_owned()));
        }
        let taken = self.layers.iter().map(|layer| layer.at.name.as_str());
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let at = LayerRef {
            name: layers::name_of(&policy, taken),
            path: path.map(|path| text(path)),
            real: path.map(|path| real(path)).filter(|real| Some(real) != path).map(|real| text(&real)),
            address: if let Source::Elsewhere(address) = place { Some(address.clone()) } else { None },
            file,
            digest: policy.digest(),
            signed: signed.as_str().to_owned(),
            anchor: signed.anchor(),
            of: above.of,
            pointer: reference.pointer.clone(),
            agent: child.map(|child| child.agent.clone()).or_else(|| above.agent.clone()),
            prefix: child.and_then(|child| child.prefix.clone()),
        };
        let layered = Layered { at, bytes, policy, signed };
        self.layers.push(layered.clone());
        Ok((self.layers.len() - 1, layered, vouched))
    }

    /// Holds a layer against the lock, and notes it for one.
    fn lock(&mut self, place: &Source, file: Digest, bytes: &[u8]) -> Result<(), Missing> {
        let (reference, document) = match place {
            Source::Here => return Ok(()),
            // The Agentfile's own lock has said what it is.
            Source::Elsewhere(address) if bases::is_one(address) => return Ok(()),
            Source::File(path) => (from(self.root.path.parent().unwrap_or(Path::new("/")), path), None),
            Source::Elsewhere(address) => (address.clone(), String::from_utf8(bytes.to_vec()).ok()),
        };
        self.elsewhere.check(&reference, file)?;
        if !self.locked.iter().any(|locked| locked.reference == reference) {
            self.locked.push(Locked { reference, digest: file, document });
        }
        Ok(())
    }
}

impl Above {
    /// One that it names.
    fn next(&self, at: usize, layered: Layered, place: Source, key: Source) -> Self {
        let shown = match &place {
            Source::File(path) => path.clone(),
            Source::Elsewhere(address) => PathBuf::from(address),
            Source::Here => self.shown.clone(),
        };
        let who = match place {
            Source::Here => format!("{}#{}", shown.display(), layered.at.pointer),
            Source::File(_) | Source::Elsewhere(_) => shown.display().to_string(),
        };
        let mut chain = self.chain.clone();
        chain.push(key);
        Self {
            of: Some(at),
            vouched: false,
            from: if place == Source::Here { self.from.clone() } else { place },
            shown,
            agent: layered.at.agent,
            functionaries: layered.policy.functionaries().or_else(|| self.functionaries.clone()),
            own: limits_of(&layered.policy, &who),
            inherited: self.inherited.clone(),
            policy: layered.policy,
            bytes: layered.bytes,
            chain,
        }
    }
}

fn wrong(path: &Path, pointer: &str, rule: &'static str, why: String) -> GoverningError {
    GoverningError::Layer { path: path.to_owned(), pointer: pointer.to_owned(), rule, why }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether a sub-agent's policy is pinned; an error where it is another.
fn pinned(child: Option<&Child>, policy: &Policy, file: Digest) -> Result<bool, String> {
    match child.and_then(|child| child.digest.as_ref()) {
        None => Ok(false),
        Some(Ok(pinned)) if [policy.digest(), file].contains(pinned) => Ok(true),
        Some(Ok(_)) => Err(format!("its policy is not the one that is pinned: it has {}", policy.digest())),
        Some(Err(algorithms)) => Err(format!("`policyDigest` has no SHA-256 ({algorithms}), and no other is checked")),
    }
}

/// A path from a folder, with `..` where it lies elsewhere.
fn from(folder: &Path, path: &Path) -> String {
    let common = folder.components().zip(path.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| "..".to_owned());
    let down = path.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
