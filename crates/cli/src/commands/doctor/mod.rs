//! `writ doctor`: what is wrong with the installation, and how to mend it.

mod app_server;
mod client;
mod dry_run;
pub mod hooks;
mod sandbox;
mod state;

use std::path::Path;

use serde::Serialize;
use writ_engine::governing::Trust;
use writ_engine::verify::VerifyError;
use writ_engine::{Home, governing, session, verify};
use writ_store::Store;

use crate::args::{Format, FormatArgs};
use crate::commands::init::client_version;
use crate::commands::policy;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// One question, its answer, and the remedy.
#[derive(Serialize)]
pub struct Finding {
    pub good: bool,
    pub text: String,
    /// What mends it; of a good one, what would make it better.
    remedy: String,
}

/// How closely the hooks are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The settings alone.
    Settings,
    /// Also whether their command line answers.
    Answers,
}

fn good(text: impl Into<String>) -> Finding {
    Finding { good: true, text: text.into(), remedy: String::new() }
}

fn bad(text: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { good: false, text: text.into(), remedy: remedy.into() }
}

/// What is as it should be, and could be better.
fn better(text: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { good: true, text: text.into(), remedy: remedy.into() }
}

/// Checks everything. Exit code 3 when anything needs mending.
pub fn run(args: &FormatArgs) -> Result<(), Failure> {
    let home = environment::home();
    let cwd = environment::cwd()?;
    let mut findings = state::check(&home);
    findings.extend(governs(&home, &cwd));
    findings.push(good(writ_engine::claims::enforced(&home, &cwd).text()));
    findings.extend(hooks::check(&home, &cwd, Look::Answers));
    findings.push(client()?);
    findings.extend(sandbox::check(&home, &cwd));
    if args.format == Format::Json {
        output::print_json(&findings);
    } else {
        for finding in &findings {
            let mark = if finding.good { output::good('✓') } else { output::bad('✗') };
            output::line(format!("{mark} {}", output::plain(&finding.text)));
            if !finding.remedy.is_empty() {
                let word = output::dim(if finding.good { "better:" } else { "mend it:" });
                output::line(format!("    {word} {}", output::plain(&finding.remedy)));
            }
        }
    }
    if findings.iter().all(|finding| finding.good) { Ok(()) } else { Err(Failure::No) }
}

/// The policy that governs here, and how the newest session stands to it.
fn governs(home: &Home, cwd: &Path) -> Vec<Finding> {
    let trust = Trust::open(home.state.as_deref());
    let store = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok());
    let newest = store.as_ref().map(|store| (store, verify::newest(store, governing::repository(cwd))));
    let (stands, unusable) = match newest {
        Some((store, Ok(id))) => {
            (session::stands(store, &id, &trust), store.last_row(&id).err().map(|e| e.to_string()))
        }
        Some((_, Err(error @ VerifyError::Lost { .. }))) => (None, Some(error.to_string())),
        Some((_, Err(_))) | None => (None, None),
    };
    // Where it is gone, the accepted copy goes on governing, and what is said of that is all there is to say.
    let gone = stands.is_some() && governing::find(cwd).is_none();
    let mut out = if gone { Vec::new() } else { vec![at_its_place(cwd, &trust)] };
    let accept = if gone { "writ policy accept --none" } else { "writ policy accept" };
    out.extend(
        unusable.map(|text| {
            bad(text, "put the session's folder back, or start a new session: this one is denied every call")
        }),
    );
    out.extend(stands.map(|text| bad(text, format!("put the file back, or a human runs `{accept}` in a terminal"))));
    out
}

fn at_its_place(cwd: &Path, trust: &Trust) -> Finding {
    let Some(path) = governing::find(cwd) else {
        return bad("no policy governs here: every call is allowed and nothing is recorded", "run `writ init`");
    };
    let shown = path.display();
    match governing::open(&path, None, trust) {
        Ok(governing) => match policy::expired(&governing) {
            Some(_) => bad(
                format!("the policy {shown} has expired: every call is denied"),
                format!("give it a later `expires` in {shown}"),
            ),
            None => {
                let (name, signed) = (governing.policy.name(), governing.signed.as_str());
                good(format!("policy `{name}` governs ({shown}, {signed})"))
            }
        },
        Err(error @ governing::GoverningError::NotTrusted { .. }) => bad(
            error.to_string(),
            format!(
                "run `writ keys require-signed off`, or sign it: writ policy sign {shown} --key KEY, and trust that key"
            ),
        ),
        Err(error @ governing::GoverningError::Unreadable { .. }) => bad(
            error.to_string(),
            format!(
                "put the file back, as with `git checkout -- '{shown}'`; or take away what is at {shown}, then `writ init`"
            ),
        ),
        Err(error) => {
            bad(error.to_string(), format!("`writ policy check {shown}` shows the places; mend them in {shown}"))
        }
    }
}

fn client() -> Result<Finding, Failure> {
    Ok(match client_version(None)? {
        None => good("no `claude` on the PATH to ask for its version"),
        Some(version) if version.blocks_on_failure() => good(format!("client {version} blocks when a hook fails")),
        Some(version) => bad(format!("client {version} lets a tool run when a hook fails"), "update the client"),
    })
}
