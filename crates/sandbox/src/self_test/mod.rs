//! Whether a confinement holds, tried before it is relied on.
//!
//! Owns a small world outside (a secret, a listener, shared memory), the same attacks on it from outside and from inside, and the
//! comparison. Refuses to call anything held that it could not do outside. Its invariant: the confinement that is tested is the one given,
//! with the world's own files granted, masked and kept beside its own.

mod ground;
mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use serde::{Deserialize, Serialize};
use writ_core::json;

use crate::attack::{BEYOND_A_KERNEL, LATER, Suite, TOLD_OUTSIDE, World, list};
use crate::confinement::{Confinement, Network, Reading, UnixSockets};
use crate::features::Level;
use crate::supervise::{self, Command, End, Host, Listeners, RunError};

use ground::Ground;

use outside::Outside;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelfTest {
    /// Which list of attacks.
    pub version: u32,
    /// By attack.
    pub results: BTreeMap<String, Result>,
    /// Of those that are not testable, what stood in their way outside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub why: BTreeMap<String, String>,
}

impl SelfTest {
    /// What got out.
    pub fn escaped(&self) -> impl Iterator<Item = &str> {
        self.results.iter().filter(|(_, result)| **result == Result::Escaped).map(|(id, _)| id.as_str())
    }

    /// How many were held.
    pub fn held(&self) -> usize {
        self.results.values().filter(|result| **result == Result::Held).count()
    }
}

/// What came of one attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Result {
    /// It succeeded outside and not inside.
    Held,
    /// It succeeded inside.
    Escaped,
    /// It succeeded nowhere, so it says nothing.
    NotTestable,
    /// The confinement allows it.
    Granted,
    /// No kernel holds it; [`BEYOND_A_KERNEL`] says what does.
    Named,
}

/// Why no result came.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    /// The confinement could not be entered.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The world outside could not be made.
    #[error("could not prepare the self-test: {0}")]
    World(#[from] io::Error),
    /// The program that was started again did not attack to the end.
    #[error("the self-test {0} did not finish")]
    Unfinished(&'static str),
}

/// Raised with the list of attacks.
const VERSION: u32 = 3;

/// What each attack came to: nothing, or why not.
type Attacked = BTreeMap<String, std::result::Result<(), i32>>;

/// Tests a confinement. `arguments` make this very program call [`crate::attack`] with what follows them.
pub fn self_test(
    confinement: &Confinement,
    suite: Suite,
    arguments: &[OsString],
    host: Host<'_>,
) -> std::result::Result<SelfTest, SelfTestError> {
    let mounts = host.features.missing(Level::Namespaces).is_empty();
    // What cannot be removed now is no reason not to test.
    ground::sweep_grounds(confinement).unwrap_or_default();
    let here = Outside::new(suite)?;
    let control = Ground::new(None, suite)?;
    let inside = Ground::new(supervise::owner(confinement, host.features)?, suite)?;
    let tested = inside.confinement(confinement, suite, host.features);
    let (world, outer) = (here.world(&tested, &inside, true)?, here.world(&tested, &control, false)?);
    let outside = std::process::Command::new("/proc/self/exe")
        .args(arguments)
        .arg(text(&outer))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (read, write) = io::pipe()?;
    let command = Command {
        descriptor: Some(File::open("/proc/self/exe")?.into()),
        output: Some(OwnedFd::from(write)),
        ..Command::new("self-test", arguments.iter().cloned().chain([text(&world)]))
    };
    let ready = |listeners: Listeners| {
        // Sockets are given, so that what is done with them is attacked too.
        listeners.connected.iter().for_each(|connected| connected.received_by(|_asked| Ok(())));
        Ok(())
    };
    let outcome = supervise::carry_out(&tested, command, host, ready, || ());
    ground::clear(confinement);
    let outcome = outcome?;
    let attacked = done(read)?.filter(|_| outcome.end == End::Exited(0)).ok_or(SelfTestError::Unfinished("inside"))?;
    let possible = outside.wait_with_output()?;
    let possible = done(possible.stdout.as_slice())?.ok_or(SelfTestError::Unfinished("outside"))?;
    if suite == Suite::Whole {
        // What is left behind tells late.
        std::thread::sleep(LATER * 2);
    }
    let seen =
        Sides { inside: (attacked, here.seen(true, &inside)?), outside: (possible, here.seen(false, &control)?) };
    let plan = Tested { confinement, mounts, fresh_proc: host.features.fresh_proc, ground: &inside.path };
    Ok(seen.compared(suite, &plan))
}

/// What both sides said, and what was seen of them.
struct Sides {
    inside: (Attacked, BTreeSet<&'static str>),
    outside: (Attacked, BTreeSet<&'static str>),
}

impl Sides {
    fn compared(&self, suite: Suite, plan: &Tested<'_>) -> SelfTest {
        let succeeded = |side: &(Attacked, BTreeSet<&str>), id: &str| match side.0.get(id) {
            Some(Ok(())) => !TOLD_OUTSIDE.contains(&id) || side.1.contains(id),
            _ => false,
        };
        let result = |id: &str| match (succeeded(&self.inside, id), succeeded(&self.outside, id)) {
            _ if plan.grants(id) => Result::Granted,
            (true, _) => Result::Escaped,
            (false, true) => Result::Held,
            (false, false) => Result::NotTestable,
        };
        let mut results: BTreeMap<_, _> = list(suite).map(|(id, _)| (id.to_owned(), result(id))).collect();
        let why = results.iter().filter(|(_, result)| **result == Result::NotTestable);
        let why = why.map(|(id, _)| (id.clone(), reason(id, self.outside.0.get(id)))).collect();
        if suite == Suite::Whole {
            results.extend(BEYOND_A_KERNEL.iter().map(|(id, _)| ((*id).to_owned(), Result::Named)));
            return SelfTest { version: VERSION, results, why };
        }
        SelfTest { version: VERSION, results, why: BTreeMap::new() }
    }
}

fn reason(id: &str, outside: Option<&std::result::Result<(), i32>>) -> String {
    match outside {
        Some(Err(libc::ENOSYS)) if id == "R02" => {
            "no control group can be made here; a policy that limits memory is refused".to_owned()
        }
        Some(Ok(())) => "nothing of it was seen outside either".to_owned(),
        Some(Err(number)) => format!("outside too: {}", io::Error::from_raw_os_error(*number)),
        None => "it was not tried outside".to_owned(),
    }
}

/// What was tested.
struct Tested<'a> {
    confinement: &'a Confinement,
    mounts: bool,
    fresh_proc: bool,
    ground: &'a Path,
}

impl Tested<'_> {
    /// Whether an attack does what the confinement allows: the host's network, or what only mounts could hide where there are none.
    fn grants(&self, id: &str) -> bool {
        let open = self.confinement.reading == Reading::Open;
        let outside = open && ["F09", "I27"].contains(&id);
        // Temporary files that lie elsewhere are files like others.
        let elsewhere = open && id == "F09" && !self.ground.starts_with("/tmp");
        elsewhere
            || (self.confinement.network == Network::Open && OF_THE_NETWORK.contains(&id))
            || (self.confinement.unix_sockets == UnixSockets::Open && UNIX_SOCKETS.contains(&id))
            || (!self.mounts && (outside || OF_LAYERS.contains(&id)))
            // Names of processes are seen in a `/proc` that is not fresh.
            || (!self.fresh_proc && id == "I11")
    }
}

/// Without mounts there are no layers, and a plan that needs them is refused.
const OF_LAYERS: &[&str] = &["P22", "P23"];

/// What the host's network gives everybody.
const OF_THE_NETWORK: &[&str] = &["N01", "N02", "N03", "N04", "N05", "N06", "N08", "N15", "N18", "N21"];

const UNIX_SOCKETS: &[&str] = &["I01", "I02", "I03", "I22", "I23", "I24"];

/// What each attack came to; `None` if the list was cut short.
fn done(mut output: impl Read) -> io::Result<Option<Attacked>> {
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    let complete = text.strip_suffix("end\n");
    Ok(complete.map(|lines| {
        let pairs = lines.lines().filter_map(|line| line.split_once(' '));
        let result = |text: &str| if text == "done" { Ok(()) } else { Err(text.parse().unwrap_or(0)) };
        pairs.map(|(id, text)| (id.to_owned(), result(text))).collect()
    }))
}

fn text(world: &World) -> OsString {
    json::to_canonical(world).into()
}
