//! `writ run AGENTFILE | PACKAGE`: what is run, and what holds it.
//!
//! Owns the way from a word of the command line to an Agentfile in its place: a package is taken over, verified and unpacked in a folder of
//! its own; the run manifest says where it runs. Refuses what `writ verify` refuses, and every directive that this machine cannot hold.
//! Invariant: nothing of a package is unpacked before it was verified, and nothing of it is left when its run is over, or when the next begins. Page:
//! `spec/agentfile.md`, "A run".

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use writ_agentfile::ceiling::Level as Above;
use writ_agentfile::directive::{Base, BindMode, Directive};
use writ_agentfile::placed::Placed;
use writ_agentfile::{Agent, Linted, Lock, Machine, Unmet, is_agentfile, unmet};
use writ_core::regular_file;
use writ_engine::Home;
use writ_engine::confine::strength;
use writ_engine::governing::{self, Trust};
use writ_engine::setup::watch;
use writ_engine::verify::package::chain;
use writ_package::portable::{RunManifest, is_placement};
use writ_package::{Descriptor, Layout, Reference, archive, check, layer};
use writ_sandbox::{Cgroups, Level};
use writ_store::Store;

use super::{DENIED, FAILED, say, secrets};
use crate::args::{RegistryArgs, RunArgs};
use crate::commands::package::build::Pulled;
use crate::commands::package::verify::worth;
use crate::commands::package::{Place, moved, open};
use crate::commands::tool::brought;
use crate::exit::Failure;

/// Largest Agentfile, lock or manifest.
const MAX_FILE: u64 = 16 << 20;

/// Why an agent does not run: the exit code, and what is said, a line each.
pub struct Refused(pub u8, pub Vec<String>);

impl Refused {
    fn one(code: u8, why: impl std::fmt::Display) -> Self {
        Self(code, vec![why.to_string()])
    }
}

/// An agent that can be run.
pub struct AgentRun {
    /// Its command.
    pub words: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// What holds it.
    pub held: Vec<u8>,
    /// Where its Agentfile stands.
    pub path: PathBuf,
    /// Its package, unpacked.
    _room: Option<Room>,
}

/// A folder that goes with the run, or with the next one where this was killed: who runs holds its lock.
struct Room(PathBuf, #[expect(dead_code, reason = "held, not read")] File);

impl Drop for Room {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// What a word names.
pub enum Target {
    /// A file.
    Agentfile(PathBuf),
    /// A package, as `writ verify` takes it.
    Package(String),
}

/// What the first word of a command line names, where that is no program.
pub fn target(words: &[OsString]) -> Option<Target> {
    let word = words.first()?.to_str()?;
    let path = Path::new(word);
    if path.is_file() {
        let agentfile = || regular_file::read(path, MAX_FILE).is_ok_and(|bytes| is_agentfile(&bytes));
        return if archive::is_one(path) {
            Some(Target::Package(word.to_owned()))
        } else {
            agentfile().then(|| Target::Agentfile(path.to_owned()))
        };
    }
    let plain = word.strip_prefix("oci://").unwrap_or(word);
    let layout = matches!(Place::there(plain), Ok(Place::Layout(..)));
    let named = word.contains('/') && !path.exists() && Reference::parse(plain).is_ok();
    (layout || named).then(|| Target::Package(plain.to_owned()))
}

/// Makes it ready.
pub fn prepare(target: &Target, args: &RunArgs, home: &Home, cwd: &Path) -> Result<AgentRun, Refused> {
    let (path, package, room) = match target {
        Target::Agentfile(path) => (path.canonicalize().map_err(|error| at(path, &error))?, None, None),
        Target::Package(text) => {
            let room = new_room(home)?;
            let (path, manifest) = unpacked(text, args, home, &room.0)?;
            (path, Some(manifest), Some(room))
        }
    };
    let bytes = regular_file::read(&path, MAX_FILE).map_err(|error| at(&path, &error))?;
    let text = String::from_utf8(bytes).map_err(|_error| Refused::one(FAILED, "the Agentfile is no UTF-8 text"))?;
    let mut placed =
        Placed { agentfile: text, run: true, package: package.is_some(), manifest: package, ..Placed::default() };
    if let Some(file) = &args.manifest {
        place(&mut placed, file)?;
    }
    let file = if room.is_some() { "Agentfile".to_owned() } else { path.display().to_string() };
    let linted = placed.linted(&file);
    let own = if placed.placement.is_some() { placed.own_lines() } else { usize::MAX };
    check_lines(&linted, &file, own)?;
    placed.tools = brought(&linted, &path).map_err(|_said| {
        Refused::one(DENIED, "what its sets of tools bring is not known: `writ tool list` says why")
    })?;
    let linted = if placed.tools.is_empty() { linted } else { placed.linted(&file) };
    check_lines(&linted, &file, own)?;
    let agent = &linted.agent;
    let words = command(agent, args)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let cwd = if room.is_none() && cwd.starts_with(folder) { cwd.to_owned() } else { folder.to_owned() };
    let bases = base(&path, args)?;
    secrets::fetch(agent, home, room.as_ref().map(|room| room.0.as_path()))
        .map_err(|why| Refused(DENIED, vec![format!("{file}:{why}")]))?;
    let from = matches!(agent.base(), Some(Base::Reference(_)));
    placed.image = from && bases.is_empty();
    let found = told(agent, &placed, &file, home, &(cwd.as_path(), folder, words.first()), &bases)?;
    if !found.is_empty() {
        return Err(Refused(DENIED, found));
    }
    let trust = Trust::open(home.state.as_deref());
    let held = governing::placed(&path, &placed, &trust).map_err(|error| Refused::one(DENIED, error))?;
    Ok(AgentRun { words, cwd, held, path, _room: room })
}

fn new_room(home: &Home) -> Result<Room, Refused> {
    let state = home.state().map_err(|error| Refused::one(FAILED, error))?;
    let runs = state.join("unpacked");
    room_in(&runs).map_err(|error| at(&runs, &error))
}

fn room_in(runs: &Path) -> io::Result<Room> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(runs)?;
    // Nobody makes a room, or takes one for left behind, while another does.
    let all = File::open(runs)?;
    all.lock()?;
    for left in fs::read_dir(runs)?.flatten() {
        if File::open(left.path()).is_ok_and(|room| room.try_lock().is_ok()) {
            drop(fs::remove_dir_all(left.path()));
        }
    }
    let room = tempfile::Builder::new().prefix("package-").tempdir_in(runs)?;
    let held = File::open(room.path())?;
    held.lock()?;
    Ok(Room(room.keep(), held))
}

/// Takes a package over, verifies it and unpacks it: where its Agentfile is, and its manifest's digest.
fn unpacked(text: &str, args: &RunArgs, home: &Home, room: &Path) -> Result<(PathBuf, String), Refused> {
    let failed = |failure: Failure| Refused::one(FAILED, words_of(failure));
    let opened = open(text, &args.registry).map_err(failed)?;
    // What is verified is what is unpacked: nobody else writes to this copy.
    let own = room.join("layout");
    moved::put(&opened, &Place::Layout(own.clone(), None), Some("package")).map_err(failed)?;
    let layout = Layout::open(&own).map_err(|error| Refused::one(FAILED, error))?;
    let report = worth(&layout, &opened.descriptor, args.key.as_deref(), &args.registry, home).map_err(failed)?;
    if !(report.verified() || args.allow_absent && report.holds()) {
        let phases = report.phases.iter().filter(|phase| phase.outcome != writ_engine::verify::Outcome::Passed);
        let phases = phases.map(|phase| format!("{}: {}", phase.name, phase.summary));
        return Err(Refused(DENIED, std::iter::once(report.verdict()).chain(phases).collect()));
    }
    let folder = room.join("agent");
    unpack(&layout, &opened.descriptor, &folder)?;
    Ok((folder.join("Agentfile"), report.digest.to_string()))
}

fn unpack(layout: &Layout, descriptor: &Descriptor, folder: &Path) -> Result<(), Refused> {
    let package = check::check(layout, descriptor).map_err(|error| Refused::one(DENIED, error))?;
    // Closed to others, so that it is root's own folder for whoever stands in for root inside.
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(|error| at(folder, &error))?;
    let mut budget = layer::Budget::default();
    for one in &package.layers {
        layer::unpack(layout, one, folder, &mut budget).map_err(|error| Refused::one(DENIED, error))?;
    }
    for (name, bytes) in
        [("Agentfile", package.linted.agent.text.as_bytes()), ("agentrc.lock", package.lock.to_bytes().as_slice())]
    {
        let to = folder.join(name);
        let made = File::create_new(&to).and_then(|mut file| std::io::Write::write_all(&mut file, bytes));
        made.map_err(|error| at(&to, &error))?;
    }
    Ok(())
}

/// What the operator says of where it runs.
fn place(placed: &mut Placed, file: &Path) -> Result<(), Refused> {
    let bytes = regular_file::read(file, MAX_FILE).map_err(|error| at(file, &error))?;
    let bad = |why: String| Refused::one(FAILED, format!("the run manifest {}: {why}", file.display()));
    let manifest = RunManifest::parse(&bytes).map_err(|error| bad(error.to_string()))?;
    let name = placed.agent("Agentfile").name_or_default().to_owned();
    if manifest.agent != name {
        return Err(bad(format!("it is for the agent `{}`, and this one is `{name}`", manifest.agent)));
    }
    let folder = file.canonicalize().map_err(|error| at(file, &error))?;
    let folder = folder.parent().unwrap_or(Path::new("/"));
    let text = manifest.placement.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (lines, found) = writ_agentfile::parse(text.as_bytes(), "run manifest");
    if let Some(found) = found.iter().find(|found| found.is_error()) {
        return Err(bad(format!("placement, line {}: {}", found.place.line, found.message)));
    }
    let other = lines.entries.iter().find(|entry| !is_placement(&entry.directive));
    if let Some(entry) = other {
        return Err(bad(format!("`{}` says what an agent is, and not where it runs", entry.quoted())));
    }
    let whole = lines.entries.iter().map(|entry| match &entry.directive {
        Directive::Bind { source, target, mode } => {
            let word = match mode {
                None | Some(BindMode::Copy) => "copy",
                Some(BindMode::Direct) => "direct",
                Some(BindMode::Ro) => "ro",
                Some(BindMode::Rw) => "rw",
            };
            // Its parts alone: `./` is the folder itself.
            let source: PathBuf = folder.join(source).components().collect();
            format!("BIND {} {target} {word}", source.display())
        }
        _ => entry.quoted(),
    });
    placed.placement = Some(whole.collect());
    placed.private = manifest.private;
    Ok(())
}

/// Lines behind the file's `own` are those of the run manifest.
fn check_lines(linted: &Linted, file: &str, own: usize) -> Result<(), Refused> {
    let errors = linted.found.iter().filter(|found| found.is_error());
    let told = |found: &writ_agentfile::Diagnostic| match found.place.line.checked_sub(own) {
        None | Some(0) => format!("{file}:{}: {}", found.place.line, found.message),
        Some(line) => format!("run manifest, placement, line {line}: {}", found.message),
    };
    let told: Vec<String> = errors.map(told).collect();
    if told.is_empty() { Ok(()) } else { Err(Refused(DENIED, told)) }
}

/// Its CMD, and what the command line adds.
fn command(agent: &Agent, args: &RunArgs) -> Result<Vec<OsString>, Refused> {
    let own = agent.command().filter(|words| !words.is_empty());
    let own = own.ok_or_else(|| Refused::one(FAILED, "the Agentfile has no CMD, so nothing says what to start"))?;
    let more = match args.words.get(1..).unwrap_or_default() {
        [mark, more @ ..] if mark == "--" => more,
        [other, ..] => {
            let other = other.to_string_lossy();
            let why = "Writ's options stand before the agent, and words for its CMD behind `--`";
            return Err(Refused::one(FAILED, format!("`{other}` stands behind the agent: {why}")));
        }
        [] => &[],
    };
    Ok(own.iter().map(OsString::from).chain(more.iter().cloned()).collect())
}

/// The packages that it is built on, nearest first, pulled where they are not here.
fn base(path: &Path, args: &RunArgs) -> Result<Vec<Above>, Refused> {
    let lock = path.with_file_name("agentrc.lock");
    let Ok(bytes) = regular_file::read(&lock, MAX_FILE) else { return Ok(Vec::new()) };
    let lock = Lock::parse(&bytes).map_err(|error| Refused::one(FAILED, format!("{}: {error}", lock.display())))?;
    if lock.base_image.as_ref().is_none_or(|base| !base.package) {
        return Ok(Vec::new());
    }
    // What was fetched when it was locked is here, and no registry is asked for it.
    let here = chain(&lock, &Pulled(&RegistryArgs::offline()));
    here.or_else(|_away| chain(&lock, &Pulled(&args.registry))).map_err(|error| Refused::one(DENIED, error))
}

/// Directives of a base that bind what is built on it.
const BINDING: [&str; 4] = ["LIMIT ", "HEALTHCHECK ", "TRACE ", "OPTIMIZER "];

/// What of it, and of what it is built on, cannot be held here, a line each.
fn told(
    agent: &Agent,
    placed: &Placed,
    file: &str,
    home: &Home,
    (cwd, folder, program): &(&Path, &Path, Option<&OsString>),
    bases: &[Above],
) -> Result<Vec<String>, Refused> {
    let failed = |error: &dyn std::fmt::Display| Refused::one(FAILED, error);
    let store =
        Store::open(home.state().map_err(|error| failed(&error))?.to_owned()).map_err(|error| failed(&error))?;
    let features = strength::features(&store).map_err(|error| failed(&error))?;
    let name = program.and_then(|program| Path::new(program).file_name()?.to_str());
    let client = name.and_then(writ_clients::of_program);
    let machine = Machine {
        namespaces: features.level().is_some_and(|level| level >= Level::Namespaces),
        overlays: features.overlay,
        control_groups: Cgroups::find().memory.is_some(),
        client: client.map(|client| !watch::installed(home, client, cwd).is_empty()),
        base_is_package: !bases.is_empty(),
        variable: &|name| home.variable(name).is_some_and(|value| !value.is_empty()),
        there: &|path| Path::new(path).exists(),
        itself: &|path| {
            // Above the Agentfile's folder links are this machine's own.
            let path = Path::new(path);
            let most = if path.starts_with(folder) { usize::MAX } else { 1 };
            path.ancestors().take_while(|part| **part != **folder).take(most).all(|part| !part.is_symlink())
        },
        root: &folder.to_string_lossy(),
    };
    let own = placed.own_lines();
    let told = |Unmet { line, directive, why }: Unmet| match line <= own {
        true => format!("{file}:{line}: `{directive}`: {why}"),
        false => format!("run manifest: `{directive}`: {why}"),
    };
    let mut found: Vec<String> = unmet(agent, &machine).into_iter().map(told).collect();
    for Above { agent, .. } in bases {
        // Where it runs, and what it is given there, is the child's to say.
        let binds = |one: &Unmet| BINDING.iter().any(|word| one.directive.starts_with(word));
        let of_base = |Unmet { line, directive, why }: Unmet| format!("{}:{line}: `{directive}`: {why}", agent.file);
        found.extend(unmet(agent, &machine).into_iter().filter(binds).map(of_base));
    }
    Ok(found)
}

fn words_of(failure: Failure) -> String {
    match failure {
        Failure::CouldNot(error) | Failure::Malformed(error) => error.to_string(),
        Failure::Usage(text) => text,
        Failure::No | Failure::Said(_) | Failure::MalformedReport(_) => "it is not what it should be".to_owned(),
    }
}

fn at(path: &Path, error: &std::io::Error) -> Refused {
    Refused::one(FAILED, format!("{}: {error}", path.display()))
}

/// Says why it does not run.
pub fn refuse(Refused(code, why): Refused) -> Failure {
    say("it did not run:");
    why.iter().for_each(|text| say(text));
    Failure::Said(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_left_to_whoever_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (dead, alive) = (folder.path().join("package-dead"), room_in(folder.path()).unwrap());
        fs::create_dir_all(dead.join("agent")).unwrap();
        let next = room_in(folder.path()).unwrap();
        assert!(!dead.exists() && alive.0.exists() && next.0.exists());
        drop(alive);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
