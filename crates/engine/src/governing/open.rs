//! A policy as it was read, and who signed it (R11).
//!
//! Opens it and asks whose word it is; never judges a call. Invariant: a [`Governing`] holds the very
//! bytes whose digests it names.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use writ_agentfile::placed::Placed;
use writ_core::Digest;
use writ_evaluators::named::Named;
use writ_policy::{Enforce, Limit, Policy, PolicyError, strictest};
use writ_store::regular_file;

use super::error::GoverningError;
use super::layers::{self, Caller, LayerRef, OfAgent};
use super::signed::{self, Signed, When};
use super::trust::Trust;

/// Largest policy file.
const MAX_BYTES: u64 = 4 << 20;

/// A policy with the bytes it was read from.
#[derive(Clone, Debug)]
pub struct Governing {
    /// The file, absolute.
    pub path: PathBuf,
    /// Digest of the file as it stands (the envelope, when there is one).
    pub file: Digest,
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// The checked policy; its digest is that of the bytes inside the envelope.
    pub policy: Policy,
    /// Whose word it is.
    pub signed: Signed,
    /// The policies beside it that it leads to.
    pub layers: Vec<Layered>,
}

/// A policy beside the root, with what it was read from.
#[derive(Clone, Debug)]
pub struct Layered {
    /// What the list says of it.
    pub at: LayerRef,
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// The checked policy.
    pub policy: Policy,
    /// Whose word it is.
    pub signed: Signed,
}

/// A path as a policy writes it, from the policy's folder, without `.` and `..`.
pub fn beside(policy: &Path, wanted: &str) -> PathBuf {
    let mut out = policy.parent().unwrap_or(Path::new("/")).to_owned();
    for part in Path::new(wanted).components() {
        match part {
            Component::Normal(part) => out.push(part),
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            Component::RootDir | Component::Prefix(_) => out = PathBuf::from("/"),
        }
    }
    out
}

/// What a session calls a rule in a file of its own: as the policy names it, behind the layer's name where a layer does.
pub fn rule_name(layer: Option<&str>, file: &str) -> String {
    layer.map_or_else(|| file.to_owned(), |layer| format!("{layer}:{file}"))
}

impl Governing {
    /// The rules that it and its layers name in files of their own: as a session calls them ([`rule_name`]), and where they are.
    pub fn rules(&self) -> Vec<(String, PathBuf)> {
        let files = |policy: &Policy| {
            let named = Named::of(policy.document()).rego;
            named.iter().filter_map(|rule| rule.file().map(str::to_owned)).collect::<Vec<String>>()
        };
        let own = |layer: Option<&str>, policy: &Policy, place: &Path| {
            let one = |file: String| (rule_name(layer, &file), beside(place, &file));
            files(policy).into_iter().map(one).collect::<Vec<_>>()
        };
        let mut all = own(None, &self.policy, &self.path);
        for layer in &self.layers {
            // One from elsewhere names no files here.
            let place = self.place(&layer.at);
            all.extend(place.into_iter().flat_map(|place| own(Some(&layer.at.name), &layer.policy, &place)));
        }
        all
    }

    /// The file that a layer stands in, where it is one of this machine.
    fn place(&self, layer: &LayerRef) -> Option<PathBuf> {
        match (&layer.path, &layer.address, layer.of) {
            (Some(path), ..) => Some(PathBuf::from(path)),
            (None, Some(_), _) => None,
            (None, None, Some(above)) => self.place(&self.layers.get(above)?.at),
            (None, None, None) => Some(self.path.clone()),
        }
    }

    /// The list of its layers.
    pub fn list(&self) -> Vec<LayerRef> {
        self.layers.iter().map(|layer| layer.at.clone()).collect()
    }

    /// Its layers that speak on somebody's calls.
    pub fn applying(&self, caller: Caller<'_>) -> Vec<&Layered> {
        let list: Vec<&LayerRef> = self.layers.iter().map(|layer| &layer.at).collect();
        layers::applying(&list, caller).into_iter().filter_map(|at| self.layers.get(at)).collect()
    }

    /// All policies that speak on somebody's calls, the root first.
    pub fn policies(&self, caller: Caller<'_>) -> Vec<&Policy> {
        let layers = self.applying(caller).into_iter().map(|layer| &layer.policy);
        std::iter::once(&self.policy).chain(layers).collect()
    }

    /// The policies whose limits are counted for the session as a whole: the root, and what it extends. Each with what its rules are
    /// named with.
    pub fn counted(&self) -> impl Iterator<Item = (Option<&str>, &Policy)> {
        let layers = self.applying(Caller::Main).into_iter();
        let layers = layers.map(|layer| (Some(layer.at.name.as_str()), &layer.policy));
        std::iter::once((None, &self.policy)).chain(layers)
    }

    /// Of a layer that is about one type of sub-agent, what of `policy`, which is its own or what that was changed to, limits those.
    pub fn of_agent<'a>(&'a self, layer: &'a Layered, policy: &Policy) -> Option<OfAgent<'a>> {
        let limits = layers::own_limits(&layer.at, policy, Some(self.above(layer)));
        Some(OfAgent { agent: layer.at.agent.as_deref()?, layer: &layer.at.name, limits })
    }

    /// The policy that names a layer.
    fn above(&self, layer: &Layered) -> &Policy {
        let above = layer.at.of.and_then(|at| self.layers.get(at));
        above.map_or(&self.policy, |above| &above.policy)
    }

    /// The layers that limit sub-agents of one type, as they were accepted.
    pub fn of_agents(&self) -> impl Iterator<Item = (&Layered, OfAgent<'_>)> {
        let layers = self.layers.iter();
        let limited = layers.filter_map(|layer| Some((layer, self.of_agent(layer, &layer.policy)?)));
        limited.filter(|(_, agent)| !agent.limits.is_empty())
    }

    /// What the session as a whole may use.
    pub fn limits(&self) -> Vec<Limit> {
        strictest(self.counted().flat_map(|(_, policy)| policy.limits()))
    }

    /// What goes before the names of somebody's attestations: the word of the policy of its type, or of whoever names that.
    pub fn prefix(&self, caller: Caller<'_>) -> Option<&str> {
        self.applying(caller).into_iter().rev().find_map(|layer| layer.at.prefix.as_deref())
    }

    /// What becomes of decisions about the main agent's calls.
    pub fn enforce(&self) -> Enforce {
        Enforce::strictest(self.policies(Caller::Main).into_iter().map(Policy::enforce))
    }
}

/// Reads a policy file's bytes, bounded.
pub fn read(path: &Path) -> Result<Vec<u8>, GoverningError> {
    regular_file::read(path, MAX_BYTES).map_err(|source| {
        let path = path.to_owned();
        if source.kind() == ErrorKind::FileTooLarge {
            GoverningError::TooLarge { path }
        } else {
            GoverningError::Unreadable { path, source }
        }
    })
}

/// Opens a policy's bytes, with the policies that it leads to left out. The files that it names have to be there.
pub fn open_alone(
    path: &Path,
    bytes: Vec<u8>,
    root: Option<&Path>,
    trust: &Trust,
) -> Result<Governing, GoverningError> {
    let governing = open_at(path, bytes, root, trust, When::now())?;
    check_files(&governing)?;
    wanted(&governing, trust)?;
    Ok(governing)
}

/// Whether a policy is as trusted as the user's settings want it.
fn wanted(governing: &Governing, trust: &Trust) -> Result<(), GoverningError> {
    if !trust.require_signed() || governing.signed.is_trusted() {
        return Ok(());
    }
    Err(GoverningError::NotTrusted { path: governing.path.clone(), why: governing.signed.told() })
}

/// A layer of a policy: its patterns hang off the root's folder. Whose word it may be is the caller's to say.
pub(super) fn open_layer(
    path: &Path,
    bytes: Vec<u8>,
    folder: &Path,
    trust: &Trust,
    is_file: bool,
) -> Result<Governing, GoverningError> {
    let governing = open_at(path, bytes, Some(folder), trust, When::now())?;
    if is_file {
        check_files(&governing)?;
    }
    Ok(governing)
}

/// Opens a policy that was accepted before, from its kept bytes and the list of its layers; `kept` gives those of each. `when` says
/// when the root's certificates count; those of layers count as they did when they were accepted, unless it is a moment.
pub fn open_kept(
    path: &Path,
    bytes: Vec<u8>,
    list: Vec<LayerRef>,
    trust: &Trust,
    when: When<'_>,
    kept: impl Fn(Digest) -> Result<Vec<u8>, GoverningError>,
) -> Result<Governing, GoverningError> {
    let mut governing = open_at(path, bytes, None, trust, when)?;
    wanted(&governing, trust)?;
    let folder = absolute(path.parent().unwrap_or(Path::new("/")));
    for at in list {
        let shown = PathBuf::from(at.place());
        let when = match when {
            When::At(_) => when,
            When::Accepted(..) => When::Accepted(&at.signed, at.anchor),
        };
        let opened = open_at(&shown, kept(at.file)?, Some(&folder), trust, when)?;
        let Governing { policy, signed, bytes, .. } = opened;
        governing.layers.push(Layered { at, bytes, policy, signed });
    }
    Ok(governing)
}

fn open_at(
    path: &Path,
    bytes: Vec<u8>,
    root: Option<&Path>,
    trust: &Trust,
    when: When<'_>,
) -> Result<Governing, GoverningError> {
    let folder = absolute(root.or_else(|| path.parent()).unwrap_or(Path::new("/")));
    let (inner, signed) = signed::unwrap(path, &bytes, trust, when)?;
    let document = inner.as_deref().unwrap_or(&bytes);
    let policy = parse(path, document, &folder.to_string_lossy()).map_err(|source| invalid(path, document, source))?;
    let signed = signed::among(policy.functionaries(), signed);
    Ok(Governing { path: path.to_owned(), file: Digest::of(&bytes), bytes, policy, signed, layers: Vec::new() })
}

/// The policy in a document, which is one in JSON or an Agentfile, alone or with its place.
pub(super) fn parse(path: &Path, document: &[u8], root: &str) -> Result<Policy, PolicyError> {
    if writ_agentfile::is_agentfile(document) || Placed::of(document).is_some() {
        return writ_agentfile::policy(document, &path.to_string_lossy(), root);
    }
    Policy::parse(document, root)
}

/// Whether the files that it names are there.
fn check_files(governing: &Governing) -> Result<(), GoverningError> {
    let folder = governing.path.parent().unwrap_or(Path::new("/"));
    let document = document(governing)?;
    let read = |file: &str| read(&folder.join(file)).ok();
    let checked = governing.policy.check_files_by(&document, read, |bytes, root| parse(&governing.path, bytes, root));
    checked.map_err(|source| invalid(&governing.path, &document, source))
}

/// Relative roots hang off the process's own folder (R81); `.` and `..` are folded, so that patterns meet resolved paths.
pub(super) fn absolute(root: &Path) -> PathBuf {
    let whole = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let plain =
        root.is_absolute() && !root.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    if plain { whole } else { std::fs::canonicalize(&whole).unwrap_or(whole) }
}

fn document(governing: &Governing) -> Result<Vec<u8>, GoverningError> {
    let inner = signed::inner(&governing.path, &governing.bytes)?;
    Ok(inner.unwrap_or_else(|| governing.bytes.clone()))
}

fn invalid(path: &Path, document: &[u8], source: PolicyError) -> GoverningError {
    let text = String::from_utf8_lossy(document).into_owned();
    GoverningError::Invalid { path: path.to_owned(), text, source: Box::new(source) }
}
