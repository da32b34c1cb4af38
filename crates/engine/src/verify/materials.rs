//! What a policy binds its attestations to (`materialsFrom`): the session's transcript, the work tree, artifacts, sub-agents' sessions.
//!
//! Each that can be looked at is held against what the policy expects. Refuses to fetch anything: an artifact that is no file here is not
//! known. Page: `spec/turns.md`.

use std::io::Read;
use std::path::{Path, PathBuf};

use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use writ_clients::transcript::{MAIN, Transcripts};
use writ_core::Digest;
use writ_core::json::{Object, Value};
use writ_evidence::merkle::{Digest512, NodeHash};
use writ_evidence::tally::Tally;
use writ_policy::{Policy, percent_decoded};
use writ_store::regular_file;

use super::phase::{Outcome, Phase, Standing};
use super::phase_names::MATERIALS;
use super::turns::{Order, Turns};
use crate::turns::reading::Reader;
use crate::turns::work_tree;

/// The variables by which policies name the session's own transcript.
const OWN: [&str; 2] = ["${CLAUDE_SESSION_PATH}", "$CLAUDE_SESSION_PATH"];

/// What there is to look at.
pub struct Here<'a> {
    /// The policy's folder.
    pub root: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The session's main transcript.
    pub main: Option<&'a Path>,
    /// How its client's transcripts are read.
    pub transcripts: Option<&'a dyn Transcripts>,
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name).and_then(Value::as_str)
}

/// What a policy wants of the order of turns.
pub fn order(policy: &Policy) -> Order {
    let session = policy.document().get("materialsFrom").and_then(|materials| materials.get("session"));
    let wanted = session.and_then(|session| session.get("constraints"));
    Order {
        distance: wanted.and_then(|wanted| wanted.get("maxTurnDistance")).and_then(Value::as_u64),
        contiguous: wanted
            .and_then(|wanted| wanted.get("requireContiguousTurns"))
            .and_then(Value::as_bool)
            .unwrap_or(false),
    }
}

/// Whether turns of these agents are as near to each other as a policy wants; nothing where it wants nothing, or none was attested.
pub fn ordered(order: Order, turns: &Turns<'_>, whose: &dyn Fn(&str) -> bool) -> Option<Phase> {
    let wants = order.contiguous || order.distance.is_some();
    if !wants || !turns.agents().any(|(agent, used, _)| used.is_some() && whose(agent)) {
        return None;
    }
    let findings = turns.gaps(order, whose);
    let (outcome, summary) = match (findings.is_empty(), order.contiguous) {
        (true, true) => (Outcome::Passed, "no turn is left out between those that are attested".to_owned()),
        (true, false) => (Outcome::Passed, "turns are as near as the policy wants".to_owned()),
        (false, _) => (Outcome::Failed, "turns are further apart than the policy wants".to_owned()),
    };
    Some(Phase { name: MATERIALS, outcome, standing: Standing::Observed, summary, findings })
}

/// What came of looking.
struct Looked {
    good: Vec<String>,
    wrong: Tally,
    unknown: Tally,
}

/// One phase; nothing where the policy binds to nothing.
pub fn check(policy: &Policy, here: &Here<'_>, turns: &Turns<'_>) -> Option<Phase> {
    let materials = policy.document().get("materialsFrom")?;
    let mut looked = Looked { good: Vec::new(), wrong: Tally::new(), unknown: Tally::new() };
    let session = materials.get("session");
    let algorithm = session.and_then(|session| text(session, "algorithm")).unwrap_or("sha256");
    if let Some(session) = session {
        looked.session(session, algorithm, here);
    }
    if let Some(git) = materials.get("git") {
        looked.git(git, here, turns);
    }
    for artifact in materials.get("artifacts").and_then(Value::as_array).unwrap_or_default() {
        looked.artifact(artifact, here);
    }
    let sessions = materials.get("sublayoutSessions").and_then(Value::as_object);
    for (name, wanted) in sessions.into_iter().flat_map(Object::iter) {
        looked.sub_agents((name, wanted), algorithm, here, turns);
    }
    let Looked { good, wrong, unknown } = looked;
    let (outcome, summary) = match (wrong.total(), unknown.total()) {
        (0, 0) if good.is_empty() => return None,
        (0, 0) => (Outcome::Passed, good.join("; ")),
        (0, _) => (Outcome::Absent, "not everything that the policy binds attestations to can be looked at".to_owned()),
        _ => (Outcome::Failed, "something that the policy binds attestations to is another".to_owned()),
    };
    let findings = wrong.texts().into_iter().chain(unknown.texts()).collect();
    Some(Phase { name: MATERIALS, outcome, standing: Standing::Observed, summary, findings })
}

impl Looked {
    fn compare(&mut self, what: &str, wanted: &str, found: &str) {
        if wanted.eq_ignore_ascii_case(found) {
            self.good.push(format!("{what} is {found}"));
        } else {
            self.wrong
                .apart(format!("{what} is {found}, and the policy expects {wanted}: accept one with the new value"));
        }
    }

    fn session(&mut self, session: &Value, algorithm: &str, here: &Here<'_>) {
        let other = text(session, "path").filter(|path| !OWN.contains(path));
        let path = other.map(|path| placed(path, here)).or_else(|| here.main.map(Path::to_owned));
        let Some(wanted) = text(session, "merkleRoot") else {
            if let Some(other) = other.filter(|_| path.as_deref() != here.main) {
                self.unknown.apart(format!(
                    "turns are bound to the session's own transcript, not to `{other}`: name its `merkleRoot`, or leave `path` out"
                ));
            }
            return;
        };
        match path.as_deref().map(|path| root_of(path, algorithm, here.transcripts)) {
            None => self.unknown.apart("the session's transcript is not known".to_owned()),
            Some(Err(why)) => self.unknown.apart(why),
            Some(Ok(found)) => self.compare("the session's root", bare(wanted), &found),
        }
    }

    fn git(&mut self, git: &Value, here: &Here<'_>, turns: &Turns<'_>) {
        let tree = match work_tree::of(here.root, here.home) {
            Ok(tree) => tree,
            Err(error) => {
                let last = turns.tree().map(|tree| format!("; the last attestation says {tree}")).unwrap_or_default();
                return self.unknown.apart(format!("the work tree's hash: {error}{last}"));
            }
        };
        if let Some(wanted) = text(git, "treeHash") {
            let filters = if tree.filtered { " (without the filters that git would apply)" } else { "" };
            self.compare(&format!("the work tree's hash{filters}"), bare(wanted), &tree.hash);
        }
        if let Some(wanted) = text(git, "branch") {
            match tree.branch.as_deref() {
                Some(found) if found == wanted => self.good.push(format!("the branch is {found}")),
                found => self.wrong.apart(format!("the branch is {}, not {wanted}", found.unwrap_or("none"))),
            }
        }
    }

    fn artifact(&mut self, artifact: &Value, here: &Here<'_>) {
        let name = text(artifact, "name").or_else(|| text(artifact, "uri")).unwrap_or("an artifact without a name");
        let uri = text(artifact, "uri").unwrap_or_default();
        let Some(path) = file_of(uri, here) else {
            return self.unknown.apart(format!("`{name}`: only files are looked at, and `{uri}` is none"));
        };
        let digests = artifact.get("digest").and_then(Value::as_object);
        let digests: Vec<(&str, &str)> =
            digests.into_iter().flat_map(Object::iter).filter_map(|(name, hex)| Some((name, hex.as_str()?))).collect();
        if digests.is_empty() {
            self.unknown.apart(format!("`{name}`: the policy names no digest of it"));
        }
        for (algorithm, wanted) in digests {
            let Some(function) = function(algorithm) else {
                self.unknown.apart(format!("`{name}`: `{algorithm}` is no digest that is known here"));
                continue;
            };
            match hashed(&path, function) {
                Ok(found) => self.compare(&format!("{algorithm} of `{name}`"), bare(wanted), &found),
                // On another machine the policy's folder is not there, and nobody expects it.
                Err(error) if !here.root.exists() => {
                    self.unknown.apart(format!("`{name}`: {} is not on this machine: {error}", here.root.display()));
                }
                Err(error) => self.wrong.apart(format!("`{name}` cannot be read: {}: {error}", path.display())),
            }
        }
    }

    fn sub_agents(&mut self, (name, wanted): (&str, &Value), algorithm: &str, here: &Here<'_>, turns: &Turns<'_>) {
        if let Some(turn) = wanted.get("spawnedAtTurn").and_then(Value::as_u64) {
            let (spawned, last) = turns.spawned(name);
            if last == 0 {
                self.unknown.apart(format!("`{name}`: no turn of the session was attested"));
            } else if turn == 0 || turn > last {
                self.wrong.apart(format!("`{name}`: there is no turn {turn}, the session has {last}"));
            } else if spawned.contains(&turn) {
                self.good.push(format!("`{name}` was started in turn {turn}"));
            } else {
                self.wrong.apart(format!("`{name}`: turn {turn} started none of it"));
            }
        }
        let Some(root) = text(wanted, "merkleRoot") else { return };
        let listed = here.transcripts.zip(here.main).and_then(|(kept, main)| kept.files(main).ok());
        let files = listed.map(|listed| listed.files).unwrap_or_default();
        let agents: Vec<&str> = turns.agents_of(name).filter(|agent| *agent != MAIN).collect();
        let paths = files.iter().filter(|(agent, _)| agents.contains(&agent.as_str()));
        let roots: Vec<_> = paths.map(|(_, path)| root_of(path, algorithm, here.transcripts)).collect();
        if roots.is_empty() {
            return self.unknown.apart(format!("`{name}`: no transcript of such a sub-agent can be read"));
        }
        let wanted = bare(root);
        match roots.iter().find(|found| found.as_deref().is_ok_and(|found| found.eq_ignore_ascii_case(wanted))) {
            Some(_) => self.good.push(format!("the root of `{name}` is {wanted}")),
            None => self.wrong.apart(format!("`{name}`: no session of such a sub-agent has the root {wanted}")),
        }
    }
}

/// A digest without the name of its function.
fn bare(digest: &str) -> &str {
    digest.rsplit_once(':').map_or(digest, |(_, hex)| hex)
}

fn placed(path: &str, here: &Here<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), here.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => here.root.join(path),
    }
}

/// The file that a URI names; a path without a scheme is one too.
fn file_of(uri: &str, here: &Here<'_>) -> Option<PathBuf> {
    let path = match uri.split_once("://") {
        Some(("file", rest)) => {
            percent_decoded(rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest))?
        }
        Some(_) => return None,
        None => uri.to_owned(),
    };
    (!path.is_empty()).then(|| placed(&path, here))
}

fn root_of(path: &Path, algorithm: &str, kept: Option<&dyn Transcripts>) -> Result<String, String> {
    let kept = kept.ok_or("the session's client keeps no transcript that is read here")?;
    fn read<H: NodeHash>(path: &Path, kept: &dyn Transcripts) -> Result<String, String> {
        let mut reader = Reader::<H>::default();
        reader.read(kept, path).map_err(|error| error.to_string())?;
        Ok(reader.root().hex())
    }
    if algorithm == Digest512::NAME { read::<Digest512>(path, kept) } else { read::<Digest>(path, kept) }
}

fn function(name: &str) -> Option<&'static Algorithm> {
    match name.to_ascii_lowercase().as_str() {
        "sha1" => Some(&SHA1_FOR_LEGACY_USE_ONLY),
        "sha256" => Some(&SHA256),
        "sha384" => Some(&SHA384),
        "sha512" => Some(&SHA512),
        _ => None,
    }
}

fn hashed(path: &Path, function: &'static Algorithm) -> std::io::Result<String> {
    let mut file = regular_file::open(path)?;
    let (mut hash, mut piece) = (Context::new(function), vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()),
            some => hash.update(piece.get(..some).unwrap_or_default()),
        }
    }
}
