//! `writ notary`: the process that answers hooks.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use writ_clients::Client;
use writ_core::{Custody, regular_file};
use writ_engine::Home;
use writ_engine::keeper::Place;
use writ_engine::notary::ask::{self, Status};
use writ_engine::notary::door;
use writ_engine::notary::serve::{Key, Notary, Other, TOKEN};

use crate::args::{Format, NotaryCommand, NotaryRunArgs, Pkcs11Args};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Runs one of its commands.
pub fn run(command: NotaryCommand) -> Result<(), Failure> {
    let home = environment::home();
    match command {
        NotaryCommand::Run(args) => serve(home, &args),
        NotaryCommand::Install { of } => install(&of),
        NotaryCommand::Status(args) => status(&home, args.format),
        NotaryCommand::Stop => stop(&home),
    }
}

fn serve(home: Home, args: &NotaryRunArgs) -> Result<(), Failure> {
    human_check::not_agent("run the notary")?;
    let custody = Custody::parse(&args.custody).unwrap_or_default();
    if let Some(of) = &args.of {
        return serve_other(home, args, of);
    }
    let socket = socket(&home)?;
    if custody != Custody::File {
        begin_closed()?;
    }
    let listener = args.http.map(listen).transpose()?;
    let key = match custody {
        Custody::File => Key::File,
        Custody::Pkcs11 => token_key(&args.token)?,
        Custody::ProcessMemory | Custody::OtherUser => Key::Memory,
    };
    let notary = Arc::new(Notary::open(home, key).map_err(Failure::could_not)?);
    if let Some(listener) = listener {
        let (address, token) = (listener.local_addr()?, notary.token().map_err(Failure::could_not)?);
        let answering = Arc::clone(&notary);
        let answers = Box::new(move |client: &'static dyn Client, payload: &[u8], process: Option<u32>| {
            answering.posted(client, payload, process)
        });
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            if let Err(error) = writ_service::notary::serve(listener, &token, geteuid().as_raw(), answers) {
                output::note(format!("{} no more hooks over HTTP: {error}", output::bad("error:")));
            }
        })?;
        output::note(format!("hooks are posted to http://{address}/hook/CLIENT, with the token in {TOKEN}"));
    }
    output::line(format!("notary answers at {} (custody: {custody})", socket.display()));
    notary.serve().map_err(Failure::could_not)
}

/// Longest PIN.
const MAX_PIN: u64 = 1024;

/// The key that these words name.
pub fn token_key(args: &Pkcs11Args) -> Result<Key, Failure> {
    token_place(args).map(|(place, pin)| Key::Token { place, pin })
}

/// Where the key is that these words name, and its PIN.
pub fn token_place(args: &Pkcs11Args) -> Result<(Place, String), Failure> {
    let missing = |what: &str| Failure::Usage(format!("`pkcs11` wants {what}: see `writ notary run --help`"));
    let module = args.module.clone().ok_or_else(|| missing("`--module FILE`, the library of the token's vendor"))?;
    let token = args.token.clone().ok_or_else(|| missing("`--token LABEL`"))?;
    let pin = match &args.pin_file {
        Some(file) => pin(file)?,
        None => environment::pin().ok_or_else(|| missing("a PIN, in `WRIT_PKCS11_PIN` or `--pin-file FILE`"))?,
    };
    let place = Place { module: environment::cwd()?.join(module), token, key: args.key_id.clone() };
    Ok((place, pin.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The PIN in a file that nobody else reads.
fn pin(file: &Path) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::could_not(format!("cannot read {}: {error}", file.display()));
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(Failure::could_not(format!("{0} can be read by others: `chmod 600 {0}`", file.display())));
    }
    regular_file::text(file, MAX_PIN).map_err(failed)
}

/// Begins this program anew where its own user could look into it, so that nobody had a way in before it has a key.
fn begin_closed() -> Result<(), Failure> {
    // Root is kept from nothing.
    if geteuid().is_root() || !writ_sandbox::is_open_to_others() {
        return Ok(());
    }
    let program = std::env::current_exe()?;
    if environment::is_copy(&program) {
        return Err(Failure::could_not("the kernel lets others of this user look into this process"));
    }
    let error = writ_sandbox::begin_closed(&program);
    Err(Failure::could_not(format!("cannot begin anew from memory (`sysctl vm.memfd_noexec`): {error}")))
}

/// Serves another user, as a user of its own.
fn serve_other(home: Home, args: &NotaryRunArgs, of: &str) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Err(Failure::could_not("only root can make a notary that is another user: see `writ notary install`"));
    }
    let (of, group) = account(of)?;
    let groups = groups(of, group)?;
    let (uid, gid) = account(&args.user)?;
    let socket = args.socket.clone().unwrap_or_else(|| PathBuf::from(format!("/run/writ/{of}.sock")));
    let state = args.state.clone().unwrap_or_else(|| PathBuf::from(format!("/var/lib/writ/{of}")));
    let home = Home { state: Some(state), ..home };
    let notary =
        Notary::open_for(home, &Other { uid, gid, of, groups, socket: socket.clone() }).map_err(Failure::could_not)?;
    output::line(format!("notary answers user {of} at {} (custody: {})", socket.display(), Custody::OtherUser));
    Arc::new(notary).serve().map_err(Failure::could_not)
}

/// The numbers of a user and its group, by its name or its number. A name is looked up in `/etc/passwd` alone.
fn account(user: &str) -> Result<(u32, u32), Failure> {
    let lines = fs::read_to_string("/etc/passwd")?;
    let found = lines.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?, fields.next()?);
        (name == user || uid == user).then(|| Some((uid.parse().ok()?, gid.parse().ok()?)))?
    });
    let number = || user.parse().ok().map(|number| (number, number));
    found.or_else(number).ok_or_else(|| Failure::could_not(format!("there is no user `{user}` in /etc/passwd")))
}

/// The groups of a user, by `/etc/group` alone.
fn groups(uid: u32, own: u32) -> Result<Vec<u32>, Failure> {
    let accounts = fs::read_to_string("/etc/passwd")?;
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    let lines = fs::read_to_string("/etc/group")?;
    let member = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let (id, members) = (fields.next()?.parse().ok()?, fields.next()?);
        members.split(',').any(|member| Some(member) == name).then_some(id)
    };
    Ok(std::iter::once(own).chain(lines.lines().filter_map(member)).collect())
}

/// The unit of a notary for each user that it is started for.
const UNIT: &str = include_str!("../../../../packaging/writ-notary@.service");
/// The user that it is.
const ACCOUNT: &str = "u writ - \"Writ notary\" - -";

fn install(of: &str) -> Result<(), Failure> {
    let (of, _) = account(of)?;
    let program = std::env::current_exe()?;
    if let Some(open) = program.ancestors().find(|path| !is_roots_alone(path)) {
        let why = format!("{} is not root's alone: copy writ to /usr/local/bin as root first", open.display());
        return Err(Failure::could_not(why));
    }
    let unit = UNIT.replace("/usr/local/bin/writ", &program.display().to_string());
    output::line("# /etc/sysusers.d/writ.conf");
    output::line(ACCOUNT);
    output::line("# /etc/systemd/system/writ-notary@.service");
    output::line(unit.trim_end());
    output::line("# then, as root:");
    output::line(format!("# systemd-sysusers && systemctl daemon-reload && systemctl enable --now writ-notary@{of}"));
    Ok(())
}

/// Whether nobody but root can put something else there.
fn is_roots_alone(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
}

fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::Usage(format!("{address} is not loopback: hooks are answered on this machine alone")));
    }
    TcpListener::bind(address).map_err(|error| Failure::could_not(format!("cannot listen on {address}: {error}")))
}

fn status(home: &Home, format: Format) -> Result<(), Failure> {
    let Some(status) = ask(home)? else {
        match format {
            Format::Json => output::print_json(&Option::<Status>::None),
            Format::Human => output::line("no notary runs here: hooks decide by themselves (custody: file)"),
        }
        return Err(Failure::No);
    };
    match format {
        Format::Json => output::print_json(&status),
        Format::Human => {
            output::line(format!("notary    process {} of writ {}", status.process, status.version));
            output::line(format!("state     {}", status.state.display()));
            output::line(format!("since     {}", status.since));
            output::line(format!("answered  {} hook calls", status.answered));
            output::line(format!("custody   {}", status.custody));
            if let Some(key) = status.key {
                output::line(format!("key       {key}"));
            }
        }
    }
    Ok(())
}

fn stop(home: &Home) -> Result<(), Failure> {
    human_check::not_agent("stop the notary")?;
    let status = ask(home)?.ok_or_else(|| Failure::could_not("no notary runs here"))?;
    kill(Pid::from_raw(status.process), Signal::SIGTERM)
        .map_err(|error| Failure::could_not(format!("cannot end process {}: {error}", status.process)))?;
    output::line(format!("ended process {}", status.process));
    Ok(())
}

/// How the notary here stands, if there is one.
fn ask(home: &Home) -> Result<Option<Status>, Failure> {
    match ask::status(home) {
        Ok(status) => Ok(Some(status)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(Failure::could_not(error)),
    }
}

fn socket(home: &Home) -> Result<PathBuf, Failure> {
    Ok(door::socket(home.state().map_err(Failure::could_not)?))
}
