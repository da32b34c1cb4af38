//! Everything that is made before anything is started.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetError, Scope,
};
use rustix::fs::{FileType, fstat};
use rustix::process::Resource;
use seccompiler::sock_filter;
use writ_core::Digest;

use super::identity::{self, Who};
use super::reserved::Names;
use super::{Awaited, Command, Host, Joined, Overlays, RunError, environment, temporary};
use crate::calls::{self, Watched};
use crate::confinement::{Confinement, Limits, Network, UnixSockets};
use crate::features::{Features, Layer, Level};
use crate::inside::{Join, Orders};
use crate::message::{Failure, Step};
use crate::plan::{Account, Ground, Plan};
use crate::plan::{CHANGES, PlanError, work};
use crate::sys::process::{Stack, Texts};
use crate::sys::signal::{Ignored, Mask};

/// What the supervisor itself needs of it.
pub struct Prepared {
    pub namespaces: i32,
    pub identity: Who,
    /// A namespace of users in which root's files are the command's, where one was lent.
    pub owners: Option<OwnedFd>,
    /// What the folders are called that the kernel works in for its overlays.
    pub work: String,
    /// The tree of its own that it has to make itself, in words, where another could have made it.
    pub tree: Option<Vec<u8>>,
}

/// Refuses to hand a folder in: it belongs to the mounts outside.
pub fn without_folders() -> Result<(), RunError> {
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let all =
        [("standard input", input.as_fd()), ("standard output", output.as_fd()), ("standard error", errors.as_fd())];
    let is_folder = |stream: BorrowedFd<'_>| {
        fstat(stream).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    };
    match all.into_iter().find(|(_, stream)| is_folder(*stream)) {
        Some((name, _)) => Err(RunError::Folder(name)),
        None => Ok(()),
    }
}

/// Makes it.
pub fn prepare(
    confinement: &Confinement,
    mut command: Command,
    host: Host<'_>,
    (mask, ignored): (Mask, Ignored),
) -> Result<(Prepared, Orders, Names), RunError> {
    let features = host.features;
    let namespaces = features.missing(Level::Namespaces).is_empty();
    if let Some(missing) = features.missing(Level::Landlock).first().filter(|_| !namespaces) {
        return Err(RunError::Layer(*missing));
    }
    let identity = identity::of(confinement, features)?;
    let abi = features.landlock_abi().ok_or(RunError::Layer(Layer::Landlock))?;
    let (filters, watched) = filters(confinement, &command, features, (abi, namespaces))?;
    let variables = environment::of(&confinement.environment, std::env::vars_os(), command.environment);
    folders(confinement, features, &identity)?;
    let home =
        variables.iter().find(|(name, _)| name == "HOME").map_or(Vec::new(), |(_, value)| value.as_bytes().to_vec());
    // Not while the record of names is looked at: who lends may be waiting to give some back.
    let mut shared = command.shared.take().map(Awaited::lent).transpose().map_err(RunError::NotLent)?;
    let owners = shared.as_mut().and_then(|shared| shared.owners.take());
    let names = Names::begin(host.state).map_err(|error| RunError::Outside("keep the record of names", error))?;
    let mut plan = Plan::new(
        confinement,
        &command.shown,
        Ground { landlock: abi, fresh_proc: features.fresh_proc, stand_in: identity.mapped, namespaces },
        &Account { uid: identity.uid, gid: identity.gid, home },
        &|| names.folders().map_err(|error| PlanError::Disk { path: names.folder().to_owned(), error }),
    )?;
    let lent = shared.as_mut().and_then(|shared| shared.overlays.take());
    let lent = lent.and_then(|Overlays { work, trees }| Some((work, in_order(trees, &plan)?)));
    if lent.is_some() {
        plan.without_layers();
    }
    let lent_tree = shared.as_mut().map(|shared| shared.tree.take());
    let (tree, wanted) = lent_tree.map(|lent| own_tree(&mut plan, lent)).unwrap_or_default();
    let (work, layers) = lent.unwrap_or_else(|| (work(), plan.layers.iter().map(|_| None).collect()));
    let text = |text: OsString| CString::new(text.into_vec());
    let arguments: Result<Vec<CString>, _> =
        [command.program.clone()].into_iter().chain(command.arguments).map(text).collect();
    let arguments = arguments.map_err(|error| RunError::Outside("pass the arguments on", error.into()))?;
    let own = if namespaces { self::namespaces(confinement) } else { 0 };
    let join = join(shared, confinement, own)?;
    let made = if join.is_some() { 0 } else { own };
    let orders = Orders {
        lent: identity::lent(&identity, &plan),
        slots: plan.taken.iter().map(|_| None).collect(),
        layers,
        tree,
        plan,
        become_user: identity.other.then_some((identity.uid, identity.gid)),
        namespaces,
        fresh_proc: features.fresh_proc,
        network: confinement.network.clone(),
        session: confinement.session,
        survivors: confinement.survivors,
        limits: resources(&confinement.limits),
        // What earlier runs left in the same namespace of processes can be signalled, and nothing else is to be seen in it.
        rules: Some(rules(abi, !join.as_ref().is_some_and(Join::shares_processes))?),
        join,
        watched,
        filters,
        mask,
        ignored,
        programs: environment::programs(&command.program, &variables),
        descriptor: command.descriptor,
        output: command.output,
        kept: command.kept,
        arguments: Texts::new(arguments),
        environment: Texts::new(environment::texts(&variables)),
        stack: Some(Stack::new()),
    };
    Ok((Prepared { namespaces: made, identity, owners, work, tree: wanted }, orders, names))
}

/// Overlays that were lent, as the plan has them; nothing where it has others.
fn in_order(trees: Vec<OwnedFd>, plan: &Plan) -> Option<Vec<Option<OwnedFd>>> {
    let mut trees: Vec<Option<OwnedFd>> = trees.into_iter().map(Some).collect();
    plan.layers.iter().map(|layer| trees.get_mut(layer.number)?.take().map(Some)).collect()
}

/// The tree that was lent, where it is the plan's, whose steps to it are then not needed; else what the plan's is, in words.
fn own_tree(plan: &mut Plan, lent: Option<(Digest, OwnedFd)>) -> (Option<OwnedFd>, Option<Vec<u8>>) {
    let Some(words) = plan.tree().map(|tree| tree.to_words()) else { return (None, None) };
    match lent.filter(|(of, _)| *of == Digest::of(&words)) {
        Some((_, tree)) => {
            plan.without_tree();
            (Some(tree), None)
        }
        None => (None, Some(words)),
    }
}

/// A filter, as the kernel takes it.
type Filter = Vec<sock_filter>;

/// Filters on system calls, and the one that hands calls over.
fn filters(
    confinement: &Confinement,
    command: &Command,
    features: &Features,
    (abi, namespaces): (ABI, bool),
) -> Result<(Vec<Filter>, Option<Filter>), RunError> {
    let connected = !namespaces && matches!(confinement.network, Network::Proxied(_));
    if connected && confinement.unix_sockets == UnixSockets::Open {
        // Whose address is connected to would be decided by memory that may change behind the answer.
        return Err(RunError::Layer(Layer::Networks));
    }
    let setting = calls::Setting {
        unix_sockets: confinement.unix_sockets,
        namespaces,
        internet: namespaces || confinement.network == Network::Open,
        connected,
        signals_kept: abi >= ABI::V6,
    };
    let filters = calls::filters(setting)
        .map_err(|error| RunError::Outside("make filters on system calls", io::Error::other(error)))?;
    let naming = command.watched && features.notifications;
    let which = Watched { naming, asking: naming && command.noted, connecting: connected };
    let watched = (naming || connected).then(|| calls::watched(which));
    Ok((filters, watched))
}

/// Makes the folders for what it writes, where an earlier command did not.
fn folders(confinement: &Confinement, features: &Features, identity: &Who) -> Result<(), RunError> {
    let namespaces = features.missing(Level::Namespaces).is_empty();
    let own = [confinement.temporary_folder.as_ref(), confinement.home.as_ref().map(|home| &home.source)];
    for folder in own.into_iter().flatten().filter(|_| namespaces) {
        temporary::make(folder.as_path(), identity, &[])?;
    }
    if let Some(first) = confinement.layered.first() {
        if !namespaces {
            return Err(RunError::Plan(PlanError::NeedsMounts(first.path.as_path().to_owned())));
        }
        if !features.overlay {
            return Err(RunError::Layer(Layer::Overlay));
        }
    }
    for layered in &confinement.layered {
        temporary::make(layered.layer.as_path(), identity, &[CHANGES])?;
    }
    Ok(())
}

/// What is entered instead of made anew.
fn join(shared: Option<Joined>, confinement: &Confinement, own: i32) -> Result<Option<Join>, RunError> {
    match shared {
        Some(_) if own == 0 => Err(RunError::Layer(Layer::Processes)),
        shared => shared.map(|shared| shared.join(confinement, own)).transpose(),
    }
}

pub fn namespaces(confinement: &Confinement) -> i32 {
    let always = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    match confinement.network {
        Network::Open => always,
        Network::Closed | Network::Proxied(_) => always | libc::CLONE_NEWNET,
    }
}

fn resources(limits: &Limits) -> Vec<(Resource, u64)> {
    let pairs = [
        (Resource::Cpu, limits.cpu_time),
        (Resource::Data, limits.process_memory),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_size),
        (Resource::Nofile, limits.open_files),
    ];
    pairs.into_iter().filter_map(|(resource, limit)| Some((resource, limit?))).collect()
}

/// A rule set that refuses everything, to which rights are added inside.
fn rules(abi: ABI, signals: bool) -> Result<OwnedFd, RunError> {
    let made = || -> Result<RulesetCreated, RulesetError> {
        // Path sockets are closed by the filter, or open on purpose.
        let files: BitFlags<AccessFs> = AccessFs::from_all(abi) & !BitFlags::from(AccessFs::ResolveUnix);
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(files)?;
        let scopes: BitFlags<Scope> = Scope::from_all(abi);
        let scopes = if signals { scopes } else { scopes & !BitFlags::from(Scope::Signal) };
        let rules = if abi >= ABI::V6 { rules.scope(scopes)? } else { rules };
        rules.create()
    };
    let rules: Option<OwnedFd> = made().ok().ok_or(RunError::Layer(Layer::Landlock))?.into();
    rules.ok_or(RunError::Layer(Layer::Landlock))
}

/// A failure inside, in words.
pub fn explain(failure: Failure, plan: &Plan, program: &OsString) -> RunError {
    let error = io::Error::from_raw_os_error(failure.error);
    let item = usize::try_from(failure.item).unwrap_or(usize::MAX);
    let about = match failure.step {
        Step::Execute => return RunError::Program { program: program.clone(), error },
        Step::Overlay => {
            let slot = plan.layers.get(item).map(|layer| layer.slots[0]);
            slot.and_then(|slot| plan.taken.get(slot)?.as_deref())
        }
        Step::Take => plan.taken.get(item).and_then(Option::as_deref),
        Step::Place | Step::Reserve | Step::Proc => plan.placed.get(item).map(|placed| placed.target.as_c_str()),
        Step::Make => plan.made.get(item).map(|made| made.path.as_c_str()),
        Step::Landlock => plan.rights.get(item).map(|(path, _)| path.as_c_str()),
        Step::Folder => Some(plan.folder.as_c_str()),
        Step::Map
        | Step::Identity
        | Step::Join
        | Step::Tie
        | Step::Loopback
        | Step::Listen
        | Step::Private
        | Step::Terminals
        | Step::ReadOnly
        | Step::Root
        | Step::Tell
        | Step::Start
        | Step::Session
        | Step::Limits
        | Step::Capabilities
        | Step::Filter
        | Step::Descriptors => None,
    };
    RunError::Inside { step: failure.step, error, about: about.map(|text| text.to_string_lossy().into_owned()) }
}
