//! Whether the person who gives a word is outside the agent's client.
//!
//! Owns the look at the processes above this one. A terminal is no proof: an agent's process can make one, and leave its client's
//! tree. So something above this process has to be older than the session. Refuses wherever that cannot be told: then the approval
//! passphrase is what shows a human (R71).

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Write};

use writ_core::{SessionId, Timestamp};
use writ_engine::Home;
use writ_engine::decide::approvals::{self, Presence};
use writ_engine::decide::passphrase;
use writ_engine::procfs;
use writ_engine::session::namespace;
use writ_engine::session::process::{self, ClientProcess, Process};
use writ_store::Store;
use zeroize::Zeroizing;

use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Clock ticks a second, as the kernel counts a process's start on every platform Writ is built for.
const TICKS: i64 = 100;
/// How much older than the session something has to be, in milliseconds: the kernel's clock is no finer.
const MARGIN: i64 = 20;
/// Programs that start others for nobody in particular: a process below them may have been the agent's.
const SERVERS: [&str; 22] = [
    "systemd",
    "init",
    "(sd-pam)",
    "launchd",
    "atd",
    "cron",
    "crond",
    "anacron",
    "dbus-daemon",
    "dbus-broker",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "conmon",
    "s6-svscan",
    "supervisord",
    "runsv",
    "inetd",
    "xinetd",
    "containerd-shim",
    "podman",
];

/// The session that a word is given about.
pub struct SessionStart {
    /// Its id, where it is about one.
    pub session: Option<SessionId>,
    /// When it began.
    pub began: Timestamp,
    /// The process namespace it began in.
    pub namespace: Option<String>,
    /// The clients' processes that it, and every other session that may still run, was seen to be of.
    pub clients: Vec<ClientProcess>,
    /// Not every client is named.
    pub crowded: bool,
}

impl SessionStart {
    /// That of a session which begins now.
    pub fn now() -> Self {
        Self { session: None, began: Timestamp::now(), namespace: namespace(), clients: Vec::new(), crowded: false }
    }
}

/// Makes sure that a human outside the client gives this word, and says how that is known.
pub fn human(what: &str, about: &SessionStart, home: &Home) -> Result<Presence, Failure> {
    not_agent(what)?;
    if environment::says_agent() {
        return agent(what);
    }
    if below_its_client(about) {
        return refuse(&format!("the client of this session runs this: {what} from a terminal of your own"));
    }
    if !std::io::stdin().is_terminal() {
        return refuse(&format!("only a human at a terminal can {what}"));
    }
    if let Some(kept) = passphrase::read(home).map_err(Failure::could_not)? {
        return if kept.is(&secret("approval passphrase: ")?) {
            Ok(Presence::Passphrase)
        } else {
            if let Some(id) = &about.session {
                let store =
                    Store::open(home.state().map_err(Failure::could_not)?.to_owned()).map_err(Failure::could_not)?;
                approvals::wrong_passphrase(&store, id, home).map_err(Failure::could_not)?;
            }
            refuse("that is not the approval passphrase")
        };
    }
    match why_not_human(about) {
        None => Ok(Presence::Terminal),
        Some(why) => refuse(&format!(
            "cannot tell that a human is here: {why}\n  {} {what} from a terminal that was open before the session began; or set a passphrase \
             there once with `writ keys approval`, which then counts everywhere",
            output::bold("help:")
        )),
    }
}

/// Refuses what changes the binding of an agent to whatever a client started, under any name that this program is given. A process that
/// was detached from its client is not found out.
pub fn not_agent(what: &str) -> Result<(), Failure> {
    match process::ancestors(std::process::id()) {
        Some(above) if above.iter().any(Process::is_client) => agent(what),
        Some(_) => Ok(()),
        None => {
            refuse(&format!("the processes above this one cannot be looked at, so an agent's may be: {what} elsewhere"))
        }
    }
}

/// The same, also where the environment alone says that an agent's client started this.
pub fn outside_agent(what: &str) -> Result<(), Failure> {
    not_agent(what)?;
    if environment::says_agent() { agent(what) } else { Ok(()) }
}

/// Whether an agent's client is above this process, or may be: what runs below it is not a human's own terminal, whatever terminal it has
/// made for itself.
pub fn below_agent() -> bool {
    let above = process::ancestors(std::process::id());
    environment::says_agent() || above.is_none_or(|above| above.iter().any(Process::is_client))
}

fn agent<T>(what: &str) -> Result<T, Failure> {
    refuse(&format!("an agent's client runs this: {what} from a terminal of your own"))
}

/// Sets the approval passphrase, or another one.
pub fn set_passphrase(about: &SessionStart, home: &Home) -> Result<(), Failure> {
    human("set the approval passphrase", about, home)?;
    let text = secret("new approval passphrase: ")?;
    if text != secret("the same again: ")? {
        return refuse("the two are not the same");
    }
    passphrase::set(home, &text).map_err(Failure::could_not)?;
    output::line(format!("{} approvals now need this passphrase", output::good('✓')));
    Ok(())
}

fn refuse<T>(why: &str) -> Result<T, Failure> {
    output::note(format!("{} {why}", output::bad("error:")));
    Err(Failure::No)
}

/// A password from the terminal, which is not shown.
pub fn hidden(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    Ok(Zeroizing::new(secret(prompt)?))
}

/// A line from the terminal that is not shown.
fn secret(prompt: &str) -> Result<String, Failure> {
    output::note_start(prompt);
    let input = std::io::stdin();
    let before = tcgetattr(&input).ok();
    let hidden = before.as_ref().is_some_and(|before| {
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(&input, SetArg::TCSAFLUSH, &silent).is_ok()
    });
    let mut text = String::new();
    let read = input.lock().read_line(&mut text);
    if let Some(before) = before.filter(|_| hidden) {
        // A terminal that is gone shows nothing.
        tcsetattr(&input, SetArg::TCSANOW, &before).ok();
        drop(writeln!(std::io::stderr()));
    }
    read?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Whether one of the processes above is a client that was seen in the session. One that cannot be seen is found below.
fn below_its_client(about: &SessionStart) -> bool {
    let above = process::ancestors(std::process::id()).unwrap_or_default();
    above.iter().any(|process| about.clients.iter().any(|client| client.is(process)))
}

/// Why this process may be the agent's; `None` where something above it was there before the session.
fn why_not_human(about: &SessionStart) -> Option<String> {
    let here = namespace();
    if here.is_none() {
        return Some("this system does not show the processes above this one".to_owned());
    }
    if about.crowded {
        return Some("not every client of this session is on record".to_owned());
    }
    let first = here.as_deref().is_some_and(procfs::is_first);
    if !first && about.namespace.is_some() && about.namespace != here {
        return Some("this process has a process namespace of its own".to_owned());
    }
    let Some(above) = process::ancestors(std::process::id()) else {
        return Some("the processes above this one cannot be looked at".to_owned());
    };
    let now = Timestamp::now().millis();
    let own = above.first().map_or(0, |process| process.started);
    let older = |process: &Process| {
        let began = now.saturating_sub((own - process.started).saturating_mul(1000 / TICKS));
        began < about.began.millis().saturating_sub(MARGIN)
    };
    let person = |process: &Process| process.id != 1 && !SERVERS.iter().any(|name| process.name.starts_with(name));
    // A process without a parent that is not the first came in from outside, as `docker exec` brings it.
    let entered = |process: &Process| process.parent == 0 && process.id != 1;
    let shown = above.iter().skip(1).any(|process| person(process) && (older(process) || entered(process)));
    (!shown).then(|| {
        "nothing above this terminal was there before the session began, so the agent may have started it".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_is_older_than_a_session_that_begins_now() {
        let long_ago = SessionStart { began: Timestamp::from_millis(0), ..SessionStart::now() };
        assert!(why_not_human(&long_ago).is_some(), "nothing here is older than the epoch");
        let elsewhere = SessionStart { namespace: Some("pid:[1]".to_owned()), ..SessionStart::now() };
        assert!(namespace().is_some_and(|own| procfs::is_first(&own)) || why_not_human(&elsewhere).is_some());
        assert!(why_not_human(&SessionStart { crowded: true, ..SessionStart::now() }).is_some());
    }
}
