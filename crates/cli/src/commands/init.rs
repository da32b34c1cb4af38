//! `writ init`: a policy, and the hooks that make the client ask.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use writ_clients::claude_code::ClientVersion;
use writ_clients::settings::{HookSpec, Pin, Settings, command_for};
use writ_clients::{CLIENTS, Client, DEFAULT};
use writ_core::regular_file;
use writ_engine::Home;
use writ_engine::governing::{self, starter};
use writ_engine::setup::install::{self, Target};
use writ_evidence::keys;

use crate::args::InitArgs;
use crate::commands::agentfile;
use crate::commands::policy::{self, found};
use crate::commands::pre_push;
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Largest administrator's file.
const MAX_PIN: u64 = 4 << 20;

/// A client, and the file that its hooks go into.
struct Place {
    client: &'static dyn Client,
    path: PathBuf,
    spec: HookSpec,
}

impl Place {
    fn target(&self) -> Result<Target<'_>, Failure> {
        Target::new(self.client, &self.path)
            .ok_or_else(|| Failure::could_not(format!("`{}` has no settings", self.client.name())))
    }
}

/// Writes what is missing, or takes the hooks out again.
pub fn run(args: &InitArgs) -> Result<(), Failure> {
    let home = environment::home();
    let cwd = environment::cwd()?;
    let places = places(args, &home, &cwd)?;
    if args.undo {
        human_check::not_agent("take the hooks out")?;
        let mut failed = None;
        for place in &places {
            match install::undo(place.target()?, &home) {
                Ok(outcome) => {
                    let word = if outcome.changed { "hooks taken out of" } else { "no hooks of Writ's in" };
                    output::line(format!("{} {word} {}", output::good("✓"), place.path.display()));
                }
                // The others are no worse for it.
                Err(error) if failed.is_some() => output::note(format!("{} {error}", output::bad("error:"))),
                Err(error) => failed = Some(failure(error)),
            }
        }
        pre_push::remove(governing::repository(&cwd))?;
        return failed.map_or(Ok(()), Err);
    }
    // Nothing is written before everything that is there already has been read.
    if let Some(path) = governing::find(&cwd) {
        policy::open(&path, None)?;
    }
    for place in &places {
        install::check(place.target()?, &place.spec, &home).map_err(failure)?;
    }
    match &args.agentfile {
        Some(file) => extend(governing::repository(&cwd), &cwd, file, args.observe)?,
        None => write_policy(governing::repository(&cwd), &cwd, args.observe)?,
    }
    for place in &places {
        put_in(place, &home)?;
    }
    if args.pre_push {
        pre_push::install(governing::repository(&cwd), &command()?)?;
    }
    output::line(
        "\nNext: `writ policy check` shows what is enforced, `writ why 'git push'` tries a command, `writ doctor` checks all this.",
    );
    Ok(())
}

fn put_in(place: &Place, home: &Home) -> Result<(), Failure> {
    let outcome = install::install(place.target()?, &place.spec, home).map_err(failure)?;
    let word = if outcome.changed { "hooks installed in" } else { "hooks are already in" };
    output::line(format!("{} {word} {}", output::good("✓"), place.path.display()));
    let is_default = place.client.name() == DEFAULT.name();
    if is_default && !place.spec.on_failure_block {
        output::line(format!(
            "{} this client is older than {}: a hook that crashes or times out lets the tool run",
            output::warn("warning:"),
            ClientVersion::ON_FAILURE
        ));
    }
    if !place.client.is_tried() {
        output::line(format!("{} {}", output::warn("warning:"), untried(place.client)));
    }
    let pin = place.client.settings().and_then(Settings::pin);
    if let Some(pin) = pin.filter(|pin| !is_pinned(pin)) {
        output::line(format!("  {} {}", output::dim("better:"), pin.how));
    }
    Ok(())
}

/// The clients that are meant, and where.
fn places(args: &InitArgs, home: &Home, cwd: &Path) -> Result<Vec<Place>, Failure> {
    let clients: Vec<&'static dyn Client> = if args.all {
        CLIENTS.into_iter().filter(|client| client.settings().is_some() && is_here(*client, home)).collect()
    } else {
        writ_clients::named(&args.client).into_iter().collect()
    };
    if clients.is_empty() {
        return Err(Failure::could_not(
            "no agent client is found here: `writ init --client NAME` installs for one all the same",
        ));
    }
    // A repository's settings could name one that is everywhere the same.
    let name = format!("writ-{:016x}", keys::random().map_err(Failure::could_not)? >> 64);
    let spec = |client: &dyn Client| {
        let is_default = client.name() == DEFAULT.name();
        let version = if is_default { client_version(args.client_version.as_deref())? } else { None };
        let on_failure_block = version.is_none_or(ClientVersion::blocks_on_failure);
        Ok::<_, Failure>(HookSpec { command: command()?, on_failure_block, name: Some(name.clone()) })
    };
    let place = |client: &'static dyn Client| {
        Ok(Place { client, path: settings_path(client, home, cwd, args)?, spec: spec(client)? })
    };
    clients.into_iter().map(place).collect()
}

/// What is to be known of a client that nobody has tried.
pub fn untried(client: &dyn Client) -> String {
    format!("`{}` is held as its documents say: this was not tried with the real client", client.name())
}

/// Whether the administrator of this machine holds a client's switches.
pub fn is_pinned(pin: &Pin) -> bool {
    let elsewhere = pin.moved_by.is_some_and(|name| std::env::var_os(name).is_some());
    !elsewhere && regular_file::text(Path::new(pin.file), MAX_PIN).is_ok_and(|text| (pin.is_in)(&text))
}

/// Whether a client is on this machine: its program is in `PATH`, or its user's own folder is there.
pub fn is_here(client: &dyn Client, home: &Home) -> bool {
    let names = client.programs();
    let found = home.search.iter().any(|folder| names.iter().any(|name| folder.join(name).is_file()));
    // A hook file of its own may lie a folder deeper than what the client keeps.
    let own = |file: &Path| {
        let below = home.user.as_deref().is_some_and(|user| file.starts_with(user));
        let folders = file.ancestors().skip(1).take(if below { 2 } else { 1 });
        let is_own = |folder: &&Path| Some(*folder) != home.user.as_deref() && !folder.ends_with(".config");
        folders.take_while(is_own).any(Path::is_dir)
    };
    found || home.places(client, Path::new("/")).is_some_and(|places| own(&places.user))
}

/// The settings file hooks go into.
fn settings_path(client: &dyn Client, home: &Home, cwd: &Path, args: &InitArgs) -> Result<PathBuf, Failure> {
    let places = home
        .places(client, governing::repository(cwd))
        .ok_or_else(|| Failure::could_not("cannot tell where the client's settings are: set HOME"))?;
    let personal = client.settings().is_some_and(Settings::is_personal);
    match (args.managed, args.user || personal && !args.project) {
        (true, _) => places
            .managed
            .ok_or_else(|| Failure::could_not(format!("`{}` has no settings of an administrator's", client.name()))),
        (false, true) => Ok(places.user),
        (false, false) => Ok(places.project),
    }
}

fn write_policy(root: &Path, cwd: &Path, observe: bool) -> Result<(), Failure> {
    if let Some(path) = governing::find(cwd) {
        output::line(format!("{} policy {} is there already", output::good("✓"), path.display()));
        if observe {
            output::line("  to observe first, put `\"enforce\": \"observe\"` into it");
        }
        return Ok(());
    }
    let starter = starter::starter(root, observe);
    let path = root.join(".aflock");
    fs::write(&path, &starter.text).map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    output::line(format!("{} wrote {}{}", output::good("✓"), path.display(), found(&starter.found)));
    Ok(())
}

/// A policy that extends an Agentfile, so that this governs sessions too.
fn extend(root: &Path, cwd: &Path, file: &Path, observe: bool) -> Result<(), Failure> {
    let linted = agentfile::usable(file)?;
    let file = fs::canonicalize(file)?;
    let inside = file.strip_prefix(fs::canonicalize(root)?).map_err(|_outside| {
        Failure::Usage(format!("{}: the Agentfile has to lie in the repository that it governs", file.display()))
    })?;
    if let Some(path) = governing::find(cwd) {
        let why = format!(
            "policy {} is there already: put `\"extends\": \"./{}\"` into it",
            path.display(),
            inside.display()
        );
        return Err(Failure::could_not(why));
    }
    let name = linted.agent.name_or_default();
    let text = writ_agentfile::extending(&linted.agent, name, &format!("./{}", inside.display()), observe);
    let path = root.join(".aflock");
    fs::write(&path, text).map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    // One that cannot be used is not left behind: it would deny every call.
    policy::open(&path, None).inspect_err(|_why| drop(fs::remove_file(&path)))?;
    output::line(format!("{} wrote {}, which extends {}", output::good("✓"), path.display(), inside.display()));
    Ok(())
}

/// The program as the settings name it: by name where `PATH` leads to this very file, else by its place.
fn command() -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let real = fs::canonicalize(&program)?;
    let in_path = environment::search_path().iter().map(|dir| dir.join("writ")).find(|path| path.is_file());
    let same = in_path.and_then(|path| fs::canonicalize(path).ok()).is_some_and(|path| path == real);
    Ok(command_for(&program, same))
}

/// The client's version as given or as it says itself; `None` when there is no client to ask.
pub fn client_version(given: Option<&str>) -> Result<Option<ClientVersion>, Failure> {
    if let Some(text) = given {
        return ClientVersion::parse(text).map(Some).map_err(|error| Failure::Usage(error.to_string()));
    }
    let child = Command::new("claude")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return Ok(None) };
    let mut text = String::new();
    if let Some(out) = child.stdout.take() {
        drop(out.take(256).read_to_string(&mut text));
    }
    drop(child.wait());
    Ok(ClientVersion::parse(&text).ok())
}

fn failure(error: install::InstallError) -> Failure {
    match error {
        install::InstallError::Settings { ref source, .. } => {
            let cause = std::error::Error::source(source).map_or_else(String::new, |cause| format!(": {cause}"));
            Failure::malformed(format!("{error}{cause}"))
        }
        install::InstallError::Io { .. } | install::InstallError::NoStateDir(_) => Failure::could_not(error),
    }
}
