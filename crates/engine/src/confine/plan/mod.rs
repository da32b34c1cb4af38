//! Policies into what the kernel is to hold around a call.
//!
//! Owns the way from rules to places: the disk is walked as far as rules can differ, and each path is asked of the policies
//! themselves. Refuses a disk too large to look at. Invariant: a place is never given more than every policy gives it; what no
//! kernel can hold stands in [`Said::advised`].

mod homes;
mod keep;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use writ_policy::{POLICY_NAMES, Policy, Reach, Setting};
use writ_sandbox::{Confinement, HostPath, HostPathError, Network, Pass, Ports, Reading};

use super::begun::Begun;
use super::places::{HANDED_IN, KEPT_IF_THERE, SECRETS, SHARED, SYSTEM, TOOLS};
use homes::{OTHER_KEYS, homes};

/// A name that no rule is about, to ask what becomes of names that are not there yet.
const ANY_NAME: &str = "\u{1}writ";
/// Most folders and files that are looked at.
const MOST: usize = 400_000;
/// Deepest folders.
const DEEPEST: usize = 128;

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The policies, each of which has to permit.
    pub layers: &'a [&'a Policy],
    /// What is protected whatever they say.
    pub setting: &'a Setting,
    /// The folder that may be worked in, where no policy names files: the policy's.
    pub root: &'a Path,
    /// Where the command starts.
    pub folder: &'a Path,
    /// Writ's state.
    pub state: Option<&'a Path>,
    /// Where programs are looked up.
    pub search: &'a [PathBuf],
    /// Whether a human lets it use what the policies leave to them.
    pub approved: bool,
    /// Which repositories were there when the session began; without it, all were.
    pub begun: Option<&'a Begun>,
}

/// A plan, and what it leaves to reading command lines.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What the kernel holds.
    pub confinement: Confinement,
    /// What is left to be said.
    pub said: Said,
}

/// What a plan says beside what is held.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// What is not held: rules about names that are not there yet, and about places that are not looked at.
    pub advised: Vec<String>,
    /// What is hidden although no rule names it, and why.
    pub hidden: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is too much to look at.
    #[error("`{}` holds more than {MOST} files, and a rule of the policy may be about any of them: name folders in its patterns", .0.display())]
    TooMany(PathBuf),
    /// Folders in folders without end.
    #[error("`{}` lies more than {DEEPEST} folders deep, and a rule of the policy may be about something in it", .0.display())]
    TooDeep(PathBuf),
    /// A folder cannot be read.
    #[error("`{}`: {error}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// No path of a sandbox.
    #[error("`{}`: {error}", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// Why.
        error: HostPathError,
    },
}

/// What is to be held around a command.
pub fn plan(ground: &Ground<'_>) -> Result<Planned, PlanError> {
    let mut walk = Walk {
        ground,
        confinement: Confinement::reading(host(ground.folder)?),
        seen: 0,
        most: Reach::Write,
        said: Said::default(),
    };
    let named = ground.layers.iter().any(|policy| policy.names_all_files());
    if named {
        walk.confinement.reading = Reading::Closed;
        walk.confinement.hollow.push(host(ground.root)?);
        walk.system()?;
    }
    let home = ground.setting.home.as_deref();
    walk.said.advised = ground.layers.iter().flat_map(|policy| policy.advised(home)).collect();
    walk.folder(ground.root, if named { Reach::Unnamed } else { Reach::Read }, 0)?;
    walk.elsewhere()?;
    walk.secrets()?;
    walk.protected()?;
    let restricted = ground.layers.iter().any(|policy| policy.domains().any());
    walk.confinement.network = if restricted { Network::Proxied(Ports::default()) } else { Network::Open };
    walk.confinement.environment.pass = Pass::All;
    walk.said.advised.extend(unseen_requests(ground.layers, restricted));
    let Walk { mut confinement, mut said, .. } = walk;
    for list in
        [&mut confinement.writable, &mut confinement.readable, &mut confinement.masked, &mut confinement.read_only]
    {
        list.sort();
        list.dedup();
    }
    for list in [&mut said.advised, &mut said.hidden] {
        list.sort();
        list.dedup();
    }
    Ok(Planned { confinement, said })
}

/// What of grants of URLs is left to reading command lines.
fn unseen_requests(layers: &[&Policy], proxied: bool) -> Option<String> {
    let ruled = layers.iter().any(|policy| !policy.web_grants().is_empty());
    let unseen = match proxied {
        true => "paths inside TLS that is passed through",
        false => "what programs ask hosts for, for no `domains` closes the network",
    };
    ruled.then(|| format!("/grants/apis, /grants/storage: {unseen}"))
}

/// Whether a rule names what may lie anywhere, so that no plan can hold it.
pub fn beyond_looking(layers: &[&Policy], root: &Path, home: Option<&str>) -> bool {
    let Some(root) = root.to_str() else { return true };
    layers.iter().any(|policy| policy.reaches_anywhere(root, home))
}

fn host(path: &Path) -> Result<HostPath, PlanError> {
    HostPath::new(path.as_os_str()).map_err(|error| PlanError::Path { path: path.to_owned(), error })
}

struct Walk<'a> {
    ground: &'a Ground<'a>,
    confinement: Confinement,
    seen: usize,
    /// What rules can give where it looks now.
    most: Reach,
    said: Said,
}

impl Walk<'_> {
    fn home(&self) -> Option<&str> {
        self.ground.setting.home.as_deref()
    }

    /// What every policy lets programs do with a path. One that is no text is what its readable part says, and what other names there are,
    /// whichever is less.
    fn reach(&self, path: &Path) -> Reach {
        let text = path.to_string_lossy();
        let other = path.to_str().is_none().then(|| any_name(path.parent().unwrap_or(path)));
        let reach = |policy: &Policy, text: &str| policy.reach(text, self.home(), self.ground.approved);
        let both = |policy: &&Policy| {
            let own = reach(policy, &text);
            other.as_deref().map_or(own, |other| own.min(reach(policy, other)))
        };
        self.ground.layers.iter().map(both).min().unwrap_or(Reach::Denied).min(self.most)
    }

    /// What they let programs do with names below a folder that no rule is about.
    fn below(&self, folder: &Path) -> Reach {
        let name = any_name(folder);
        let reach = |policy: &&Policy| policy.reach(&name, self.home(), self.ground.approved);
        self.ground.layers.iter().map(reach).min().unwrap_or(Reach::Denied).min(self.most)
    }

    fn is_alike(&self, folder: &Path) -> bool {
        let Some(text) = folder.to_str() else { return false };
        self.ground.layers.iter().all(|policy| policy.is_alike_below(text, self.home()))
    }

    /// Gives a folder and what lies below it their due, where that is not what the folder above has.
    fn folder(&mut self, folder: &Path, above: Reach, depth: usize) -> Result<(), PlanError> {
        let own = self.below(folder);
        if own != above {
            self.give(folder, own)?;
        }
        let git = folder.join(".git");
        if let Ok(found) = git.symlink_metadata() {
            if self.was_there(&git) {
                self.repository(&git, found.is_dir(), own)?;
            }
            if own != Reach::Denied {
                self.hide_objects(&git)?;
            }
        }
        if own == Reach::Write {
            self.keep_names(folder, depth == 0)?;
        }
        let alike = self.is_alike(folder);
        if alike && (!self.may_hold_repositories(own) || depth > DEEPEST) {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(PlanError::TooDeep(folder.to_owned()));
        }
        let disk = |error| PlanError::Disk { path: folder.to_owned(), error };
        let entries = match fs::read_dir(folder) {
            // It went while the tree was looked at.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // Its owner could open it again, inside.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return if alike { Ok(()) } else { self.give(folder, Reach::Denied) };
            }
            entries => entries.map_err(disk)?,
        };
        let mut of_git = 0;
        for entry in entries {
            let entry = entry.map_err(disk)?;
            of_git += u32::from(["HEAD", "objects", "refs"].iter().any(|name| entry.file_name() == *name));
            self.seen += 1;
            if self.seen > MOST {
                return Err(PlanError::TooMany(self.ground.root.to_owned()));
            }
            let path = entry.path();
            let kind = entry.file_type().map_err(disk)?;
            if kind.is_dir() {
                if entry.file_name() != ".git" {
                    self.folder(&path, own, depth + 1)?;
                }
                continue;
            }
            let reach = self.reach(&path);
            if reach != own {
                self.give(&path, reach)?;
            }
        }
        if of_git == 3 && self.may_hold_repositories(own) && self.was_there(folder) {
            // A repository without a work tree.
            self.keep(folder)?;
        }
        Ok(())
    }

    fn give(&mut self, path: &Path, reach: Reach) -> Result<(), PlanError> {
        let list = match reach {
            Reach::Denied => &mut self.confinement.masked,
            // Below a folder that is readable, what is not named is hidden; elsewhere it is hidden already.
            Reach::Unnamed => &mut self.confinement.masked,
            Reach::Read => &mut self.confinement.read_only,
            Reach::Write => &mut self.confinement.writable,
        };
        list.push(host(path)?);
        if reach == Reach::Read && self.confinement.reading == Reading::Closed {
            self.confinement.readable.push(host(path)?);
        }
        Ok(())
    }

    /// Places outside the folder that rules name by where they are.
    fn elsewhere(&mut self) -> Result<(), PlanError> {
        if self.confinement.reading == Reading::Open {
            // A rule that takes something there gives nothing beside it.
            self.most = Reach::Read;
        }
        let anchors: Vec<String> = self.ground.layers.iter().flat_map(|policy| policy.places(self.home())).collect();
        for anchor in anchors {
            let path = PathBuf::from(anchor);
            if path.starts_with(self.ground.root) {
                continue;
            }
            if self.ground.root.starts_with(&path) {
                // Where a rule may name anything, nobody looks, and questions are asked as ever.
                if !beyond_looking(self.ground.layers, self.ground.root, self.home()) {
                    self.beside(&path, 0)?;
                }
                continue;
            }
            let Ok(found) = path.symlink_metadata() else { continue };
            let above = if self.confinement.reading == Reading::Closed { Reach::Unnamed } else { Reach::Read };
            if found.is_dir() {
                self.folder(&path, above, 1)?;
                continue;
            }
            let reach = self.reach(&path);
            if reach != above {
                self.give(&path, reach)?;
            }
        }
        Ok(())
    }

    /// What rules name beside the policy's folder, below a folder that holds both.
    fn beside(&mut self, folder: &Path, depth: usize) -> Result<(), PlanError> {
        let above = if self.confinement.reading == Reading::Closed { Reach::Unnamed } else { Reach::Read };
        // What this process may not look into, the command may not either.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            self.seen += 1;
            if self.seen > MOST || depth > DEEPEST {
                return Err(PlanError::TooMany(folder.to_owned()));
            }
            let path = entry.path();
            if path == self.ground.root {
                continue;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let reach = if is_folder { self.below(&path) } else { self.reach(&path) };
            if reach != above {
                self.give(&path, reach)?;
            } else if is_folder && self.is_beside(&path) {
                self.beside(&path, depth + 1)?;
            }
        }
        Ok(())
    }

    fn is_beside(&self, folder: &Path) -> bool {
        let (Some(folder), Some(root)) = (folder.to_str(), self.ground.root.to_str()) else { return true };
        self.ground.root.starts_with(folder)
            || self.ground.layers.iter().any(|policy| policy.reaches_beside(root, folder, self.home()))
    }

    /// What programs need to run at all.
    fn system(&mut self) -> Result<(), PlanError> {
        let home = self.home().map(PathBuf::from);
        let tools = home.iter().flat_map(|home| TOOLS.iter().map(|name| home.join(name)));
        let all: Vec<PathBuf> =
            SYSTEM.iter().map(PathBuf::from).chain(tools).chain(self.ground.search.iter().cloned()).collect();
        for path in all.into_iter().filter(|path| path.exists() && may_be_entered(path)) {
            self.confinement.readable.push(host(&path)?);
        }
        Ok(())
    }

    /// Credentials in the user's home, unless a policy's list names them, and those of a container.
    fn secrets(&mut self) -> Result<(), PlanError> {
        let homes = homes(self.home(), self.ground.root);
        let own = self.home().map(PathBuf::from);
        let keys = homes.iter().filter(|home| Some(*home) != own.as_ref()).map(|home| home.join(OTHER_KEYS));
        let all = homes.iter().flat_map(|home| SECRETS.iter().map(|name| home.join(name)));
        for path in all.chain(keys) {
            let named = self.confinement.reading == Reading::Closed && self.reach(&path) >= Reach::Read;
            if !named && path.symlink_metadata().is_ok() {
                self.confinement.masked.push(host(&path)?);
            }
        }
        // Where only what is listed can be read, nothing shows these.
        let open = self.confinement.reading == Reading::Open;
        let mut system: Vec<_> = HANDED_IN.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect();
        system.dedup();
        for path in system.iter().filter(|_| open) {
            self.confinement.masked.push(host(path)?);
        }
        Ok(())
    }

    /// The policy, Writ's state and keys, the clients' settings.
    fn protected(&mut self) -> Result<(), PlanError> {
        for protected in &self.ground.setting.protected {
            if protected.path.contains('*') {
                continue;
            }
            let at = Path::new(&protected.path);
            if is_shadowed(at) || self.is_in_no_folder(at) {
                continue;
            }
            let path = host(at)?;
            if protected.secret { self.confinement.masked.push(path) } else { self.confinement.read_only.push(path) }
        }
        if let Some(state) = self.ground.state {
            self.confinement.masked.push(host(&state.join("keys"))?);
        }
        Ok(())
    }

    /// Whether a name could only be held by making it where nobody may have a use for it, or its folder in one that others use.
    fn is_in_no_folder(&self, path: &Path) -> bool {
        let at = |name: &&str| self.ground.root.join(name);
        if KEPT_IF_THERE.iter().any(|name| path == at(name)) && path.symlink_metadata().is_err() {
            return true;
        }
        let shared = SHARED.iter().any(|name| path.starts_with(at(name)));
        shared && path.parent().is_some_and(|folder| folder.symlink_metadata().is_err())
    }
}

/// Whether a name that is not there could be made and would be no policy: one that comes first is there.
fn is_shadowed(path: &Path) -> bool {
    let is_file = |name: &&str| path.with_file_name(name).symlink_metadata().is_ok_and(|found| found.is_file());
    let name = path.file_name().and_then(|name| name.to_str());
    let place = POLICY_NAMES.iter().position(|policy| Some(*policy) == name);
    path.symlink_metadata().is_err() && place.is_some_and(|place| POLICY_NAMES.iter().take(place).any(is_file))
}

/// Whether the confined user, who is not root, can come to a path. Only root has folders that are closed to it.
fn may_be_entered(path: &Path) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let open = |folder: &Path| fs::metadata(folder).is_ok_and(|found| found.mode() & 0o001 != 0);
    !is_root || path.ancestors().skip(1).all(open)
}

fn any_name(folder: &Path) -> String {
    format!("{}/{ANY_NAME}", folder.to_string_lossy().trim_end_matches('/'))
}
