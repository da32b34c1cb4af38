//! `writ notary`: the process that answers hooks.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use writ_clients::Client;
use writ_core::Custody;
use writ_engine::Home;
use writ_engine::notary::ask::{self, Status};
use writ_engine::notary::door;
use writ_engine::notary::serve::{Notary, TOKEN};

use crate::args::{Format, NotaryCommand, NotaryRunArgs};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Runs one of its commands.
pub fn run(command: NotaryCommand) -> Result<(), Failure> {
    let home = environment::home();
    match command {
        NotaryCommand::Run(args) => serve(home, &args),
        NotaryCommand::Status(args) => status(&home, args.format),
        NotaryCommand::Stop => stop(&home),
    }
}

fn serve(home: Home, args: &NotaryRunArgs) -> Result<(), Failure> {
    human_check::not_agent("run the notary")?;
    let custody = Custody::parse(&args.custody).unwrap_or_default();
    let socket = socket(&home)?;
    let listener = args.http.map(listen).transpose()?;
    let notary = Arc::new(Notary::open(home, custody).map_err(Failure::could_not)?);
    if let Some(listener) = listener {
        let (address, token) = (listener.local_addr()?, notary.token().map_err(Failure::could_not)?);
        let answering = Arc::clone(&notary);
        let answers = Box::new(move |client: &'static dyn Client, payload: &[u8]| answering.posted(client, payload));
        thread::Builder::new().name("http".to_owned()).spawn(move || {
            if let Err(error) = writ_service::notary::serve(listener, &token, answers) {
                output::note(format!("{} no more hooks over HTTP: {error}", output::bad("error:")));
            }
        })?;
        output::note(format!("hooks are posted to http://{address}/hook/CLIENT, with the token in {TOKEN}"));
    }
    output::line(format!("notary answers at {} (custody: {custody})", socket.display()));
    notary.serve().map_err(Failure::could_not)
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
    match ask::status(&socket(home)?) {
        Ok(status) => Ok(Some(status)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
        Err(error) => Err(Failure::could_not(error)),
    }
}

fn socket(home: &Home) -> Result<PathBuf, Failure> {
    Ok(door::socket(home.state().map_err(Failure::could_not)?))
}
