//! `writ status`: which policy governs here, and how the newest session stands.

use serde::Serialize;
use writ_core::{SessionId, Timestamp};
use writ_engine::claims::Enforced;
use writ_engine::governing::layers::LayerRef;
use writ_engine::governing::{self, Governing, Trust, unenforced};
use writ_engine::limits::shown::{Standing, standing as limits_of};
use writ_engine::session::observed::Observed;
use writ_engine::session::{rows, stands};
use writ_engine::verify::{self, VerifyError};

use writ_policy::Enforce;
use writ_store::Store;

use crate::args::{Format, FormatArgs};
use crate::commands::doctor::{Look, hooks};
use crate::commands::session::Listed;
use crate::commands::session_lookup::store;
use crate::commands::{limits, policy, session};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// How things stand.
#[derive(Serialize)]
struct Status<'a> {
    policy: Option<policy::Summary<'a>>,
    /// The policies that it leads to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<LayerRef>,
    /// What stands in them and nothing enforces.
    #[serde(rename = "notEnforced", skip_serializing_if = "Vec::is_empty")]
    not_enforced: Vec<String>,
    problem: Option<&'a str>,
    standing: Option<&'a str>,
    session: Option<&'a Listed>,
    /// What is wrong with the hooks.
    hooks: Vec<&'a str>,
    claims: &'a Enforced,
    observed: Option<&'a Observed>,
    limits: Option<&'a Standing>,
}

/// Says how things stand.
pub fn run(args: &FormatArgs) -> Result<(), Failure> {
    let cwd = environment::cwd()?;
    let home = environment::home();
    let trust = Trust::open(home.state.as_deref());
    let (governing, wrong) = match governing::find(&cwd).map(|path| governing::open(&path, None, &trust)) {
        None => (None, None),
        Some(Ok(governing)) => (Some(governing), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    let store = store(&home)?;
    let found = verify::newest(&store, governing::repository(&cwd));
    let hooks = hooks::check(&home, &cwd, Look::Settings);
    let claims = writ_engine::claims::enforced(&environment::home(), &cwd);
    let described = match &found {
        Ok(id) => session::summary(&store, id),
        Err(VerifyError::NoSession { .. }) => None,
        Err(VerifyError::Lost { session: id, .. }) => {
            Some(session::problem(id, "lost: it began here, and its rows are gone"))
        }
        Err(error) => return Err(Failure::could_not(error)),
    };
    let newest = found.ok();
    let standing = newest.as_ref().and_then(|id| stands(&store, id, &trust));
    let observed = match (&governing, &newest) {
        (Some(governing), Some(id)) if governing.enforce() == Enforce::Observe => {
            Observed::of(&store, id, governing).ok()
        }
        _ => None,
    };
    let used = newest.as_ref().and_then(|id| limits_of(&store, id, Timestamp::now()).ok().flatten());
    let idle = governing.as_ref().map(|governing| idle(governing, &store, newest.as_ref())).unwrap_or_default();
    if args.format == Format::Json {
        let problems = hooks.iter().filter(|finding| !finding.good);
        output::print_json(&Status {
            policy: governing.as_ref().map(policy::summary),
            layers: governing.as_ref().map(Governing::list).unwrap_or_default(),
            not_enforced: idle,
            problem: wrong.as_deref(),
            standing: standing.as_deref(),
            session: described.as_ref(),
            hooks: problems.map(|finding| finding.text.as_str()).collect(),
            claims: &claims,
            observed: observed.as_ref(),
            limits: used.as_ref(),
        });
        return Ok(());
    }
    show_policy(governing.as_ref(), wrong, standing.as_deref());
    for field in &idle {
        output::line(format!("         {} {}", output::warn("not enforced:"), output::plain(field)));
    }
    match &described {
        Some(session) => show_session(session),
        None => output::line("session  none of this repository is on record"),
    }
    if let Some(used) = &used {
        limits::show(used);
        used.agents.iter().for_each(limits::agent);
    }
    match hooks.iter().find(|finding| !finding.good) {
        Some(finding) => {
            let text = output::plain(&finding.text);
            output::line(format!("hooks    {} (`writ doctor`)", output::bad(text)));
        }
        None => output::line("hooks    installed"),
    }
    output::line(format!("claims   {}", claims.text().trim_start_matches("claims are ")));
    if let Some(observed) = observed {
        output::line(format!("observe  {}", observed.summary()));
        observed.lines().iter().for_each(|line| output::line(format!("         {}", output::plain(line))));
    }
    Ok(())
}

/// What nothing enforces, with the client of the newest session.
fn idle(governing: &Governing, store: &Store, newest: Option<&SessionId>) -> Vec<String> {
    let genesis = newest.and_then(|id| store.first_row(id).ok().flatten());
    unenforced::of(governing, genesis.and_then(|genesis| rows::client(&genesis.detail).ok()))
}

fn show_session(session: &Listed) {
    let session = match session {
        Listed::Described(session) => session,
        Listed::Problem { session, problem } => {
            let (id, what) = (output::bold(output::plain(session)), output::bad(output::plain(problem)));
            return output::line(format!("session  {id}  {what}"));
        }
    };
    let count = |count: Option<u64>| count.unwrap_or_default();
    output::line(format!(
        "session  {}  since {}\n         {} rows: {} allowed, {} asked, {} denied, {} prompts",
        output::bold(output::plain(session.session.as_deref().unwrap_or_default())),
        session.started,
        session.rows,
        count(session.calls),
        count(session.asked),
        count(session.denied),
        count(session.turns)
    ));
}

fn show_policy(governing: Option<&Governing>, wrong: Option<String>, standing: Option<&str>) {
    match governing {
        None if wrong.is_some() => output::line(format!("policy   {}", output::bad(wrong.unwrap_or_default()))),
        None if standing.is_some() => output::line("policy   none at its place"),
        Some(governing) => output::line(format!(
            "policy   `{}`  {}  {}",
            output::plain(governing.policy.name()),
            output::path(&governing.path),
            governing.signed.as_str()
        )),
        None => output::line("policy   none: every call is allowed and nothing is recorded (`writ init` writes one)"),
    }
    for layer in governing.iter().flat_map(|governing| governing.list()) {
        let (name, about) = (output::plain(&layer.name), output::plain(&layer.about()));
        output::line(format!("         with `{name}`  {}  {about}", output::plain(&layer.place())));
    }
    if let Some(text) = governing.and_then(policy::expired) {
        output::line(format!("         {} {text}", output::bad("expired:")));
    }
    if let Some(text) = standing {
        output::line(format!("         {} {text}", output::warn("changed:")));
    }
}
