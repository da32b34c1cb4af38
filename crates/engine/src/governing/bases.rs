//! What an Agentfile is built on, as policies that tighten it (§16).
//!
//! Owns the way from `FROM` through `agentrc.lock` to the Agentfile of the base in Writ's own layout. Asks no registry: what was not pulled
//! before is an error, never no inheritance. Invariant: a base speaks only where the lock's digest named it, its package held together, and
//! the agent that is built on it stays within it. Page: `spec/agentfile.md`, "Built on another".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use writ_agentfile::ceiling::{Level, violations};
use writ_agentfile::directive::Base;
use writ_agentfile::lock::BaseImage;
use writ_agentfile::placed::{BASE, Placed, base_address, placement_lines};
use writ_agentfile::reference::OciRef;
use writ_agentfile::{Agent, Lock};
use writ_package::Layout;
use writ_package::check::{check, manifest};
use writ_store::regular_file;

use super::error::Missing;
use super::layers::{AGENT_LOCK, Source};

/// Largest lock.
const MAX_LOCK: u64 = 16 << 20;
/// What an image comes to: it bounds nothing.
const IMAGE: &str = r#"{"name":"image","version":"1.0"}"#;

/// Where bases are found.
pub struct Bases {
    packages: Option<PathBuf>,
    /// Those that were found.
    found: BTreeMap<String, Found>,
}

/// A base that was found.
struct Found {
    lock: Lock,
    /// The agents that are built on it, by way of others too, each with its lock.
    children: Vec<(Agent, Lock)>,
}

/// Whether an address names a base.
pub fn is_one(address: &str) -> bool {
    address.starts_with(BASE)
}

impl Bases {
    /// In Writ's state.
    pub fn of(state: Option<&Path>) -> Self {
        Self { packages: state.map(|state| state.join("packages")), found: BTreeMap::new() }
    }

    /// The policy of the base at an address, which the Agentfile `child` from `from` is built on.
    pub fn bytes(&mut self, from: &Source, child: &[u8], address: &str) -> Result<Vec<u8>, Missing> {
        let unlocked = |why: String| Missing { rule: "not-locked", why };
        let placed = Placed::read(child).ok_or_else(|| unlocked("it is no text".to_owned()))?;
        let agent = placed.agent(&shown(from));
        let Some(Base::Reference(reference)) = agent.base() else {
            return Err(unlocked(format!("`{address}` is the base of an Agentfile alone")));
        };
        let (base, child_lock) = self.locked(from, reference)?;
        if !base.package {
            // Whoever says that a package is an image is rid of its ceiling.
            if self.is_package(&base) {
                let name = format!("{}/{}@{}", base.registry, base.name, base.digest);
                let why = format!(
                    "the lock says that its base {name} is an image, and it is an agent's package: a human runs `writ lock`"
                );
                return Err(Missing { rule: "bad-base", why });
            }
            return Ok(IMAGE.as_bytes().to_vec());
        }
        let (text, lock) = self.package(&base)?;
        let file = format!("{}/{}@{}", base.registry, base.name, base.digest);
        let mut children = placed.children.clone();
        children.push(agent.name_or_default().to_owned());
        let placement = Some(lines(&agent, &placed));
        let image = lock.base_image.as_ref().is_some_and(|base| !base.package);
        // What its sets bring it declares: its lock was held against their lists.
        let known = Placed { agentfile: text, ..Placed::default() }.agent(&file);
        let tools = lock.brought(&known);
        let agentfile = known.text;
        let own = Placed { agentfile, children, placement, image, manifest: None, tools, ..placed };
        let level = Level::new(own.agent(&file), Some(lock.clone()));
        let address = base_address(reference);
        let mut below = match from {
            Source::Elsewhere(of) => self.found.get(of).map(|found| found.children.clone()).unwrap_or_default(),
            Source::File(_) | Source::Here => Vec::new(),
        };
        below.push((agent, child_lock));
        for (child, lock) in &below {
            if let Some(found) = violations(child, Some(lock), &level).into_iter().next() {
                return Err(Missing { rule: found.rule.code(), why: found.diagnostic(child).message });
            }
        }
        self.found.insert(address, Found { lock, children: below });
        Ok(own.to_bytes())
    }

    /// What the lock beside an Agentfile, or in a package, says of its base.
    fn locked(&self, from: &Source, reference: &OciRef) -> Result<(BaseImage, Lock), Missing> {
        let remedy = "a human runs `writ lock`";
        let missing = |why: String| Missing { rule: "not-locked", why: format!("{why}: {remedy}") };
        let read;
        let lock = match from {
            Source::File(path) => {
                let path = path.with_file_name(AGENT_LOCK);
                let bytes = regular_file::read(&path, MAX_LOCK)
                    .map_err(|error| missing(format!("`FROM {reference}` needs {}: {error}", path.display())))?;
                let bad = |error| missing(format!("{}: {error}", path.display()));
                read = Lock::parse(&bytes).map_err(bad)?;
                &read
            }
            Source::Elsewhere(address) => {
                let found = self.found.get(address).map(|found| &found.lock);
                found.ok_or_else(|| missing(format!("`{address}` has no lock, so nobody knows what {reference} is")))?
            }
            Source::Here => return Err(missing(format!("nothing says what `FROM {reference}` is"))),
        };
        let base = lock.base_image.clone().filter(|base| base.is_named(reference));
        let base = base.ok_or_else(|| missing(format!("the lock says nothing of `FROM {reference}`")))?;
        Ok((base, lock.clone()))
    }

    /// Whether Writ's own layout has it as an agent's package.
    fn is_package(&self, base: &BaseImage) -> bool {
        let layout = self.packages.as_ref().and_then(|folder| Layout::open(folder).ok());
        let found = layout.and_then(|layout| {
            let descriptor = layout.resolve(Some(&base.digest)).ok()?;
            manifest(&layout, &descriptor).ok()
        });
        found.is_some()
    }

    /// A package's Agentfile and lock, from Writ's own layout.
    fn package(&self, base: &BaseImage) -> Result<(String, Lock), Missing> {
        let name = format!("{}/{}@{}", base.registry, base.name, base.digest);
        let away = |why: String| Missing {
            rule: "base-away",
            why: format!(
                "its base {name} is not here, so nobody knows its ceiling ({why}): `writ pull {name}` fetches it"
            ),
        };
        let folder = self.packages.as_ref().ok_or_else(|| away("there is no state folder".to_owned()))?;
        let layout = Layout::open(folder).map_err(|error| away(error.to_string()))?;
        let descriptor = layout.resolve(Some(&base.digest)).map_err(|error| away(error.to_string()))?;
        let package = check(&layout, &descriptor)
            .map_err(|error| Missing { rule: "bad-base", why: format!("its base {name} does not hold: {error}") })?;
        Ok((package.linted.agent.text, package.lock))
    }
}

/// Where an agent runs, as lines: what is built on another runs where that does.
fn lines(agent: &Agent, placed: &Placed) -> Vec<String> {
    if let Some(lines) = &placed.placement {
        return lines.clone();
    }
    let own = placement_lines(agent);
    agent.entries.iter().filter(|entry| own.contains(&entry.line())).map(writ_agentfile::Entry::quoted).collect()
}

fn shown(from: &Source) -> String {
    match from {
        Source::File(path) => path.display().to_string(),
        Source::Elsewhere(address) => address.clone(),
        Source::Here => "Agentfile".to_owned(),
    }
}
