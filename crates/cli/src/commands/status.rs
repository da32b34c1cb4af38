//! `writ status`: which policy governs here, and how the newest session stands.

use writ_core::json::{Object, Value};
use writ_engine::governing::Governing;
use writ_engine::observed::Observed;
use writ_engine::verify::{self, VerifyError};
use writ_engine::{Trust, governing, standing};
use writ_policy::Enforce;

use crate::args::{Format, FormatArgs};
use crate::commands::approve::store;
use crate::commands::doctor::hooks::{self, Look};
use crate::commands::{policy, session};
use crate::environment;
use crate::exit::Failure;
use crate::output;

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
    let standing = newest.as_ref().and_then(|id| standing::of_session(&store, id, &trust));
    let observed = match (&governing, &newest) {
        (Some(governing), Some(id)) if governing.policy.enforce() == Enforce::Observe => {
            store.rows(id).ok().map(|rows| Observed::of(rows.iter(), &governing.policy))
        }
        _ => None,
    };
    if args.format == Format::Json {
        let mut out = Object::new();
        out.push(
            "policy",
            governing.as_ref().map_or(Value::Null, |governing| Value::Object(policy::summary(governing))),
        );
        out.push("problem", Value::from(wrong.as_deref()));
        out.push("standing", Value::from(standing.as_deref()));
        out.push("session", described.map_or(Value::Null, Value::Object));
        let problems = hooks.iter().filter(|finding| !finding.good).map(|finding| Value::from(finding.text.as_str()));
        out.push("hooks", Value::Array(problems.collect()));
        out.push("claims", claims.to_json());
        out.push("observed", observed.map_or(Value::Null, |observed| observed.to_json()));
        output::print_json(&Value::Object(out));
        return Ok(());
    }
    show_policy(governing.as_ref(), wrong, standing.as_deref());
    match &described {
        Some(session) => show_session(session),
        None => output::line("session  none of this repository is on record"),
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

fn show_session(session: &Object) {
    let text = |name| output::plain(session.get(name).and_then(Value::as_str).unwrap_or_default());
    let count = |name| session.get(name).and_then(Value::as_u64).unwrap_or_default();
    let id = output::bold(text("session"));
    if session.get("problem").is_some() {
        return output::line(format!("session  {id}  {}", output::bad(text("problem"))));
    }
    output::line(format!(
        "session  {id}  since {}\n         {} rows: {} allowed, {} asked, {} denied, {} prompts",
        text("started"),
        count("rows"),
        count("calls"),
        count("asked"),
        count("denied"),
        count("turns")
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
    if let Some(text) = governing.and_then(policy::expired) {
        output::line(format!("         {} {text}", output::bad("expired:")));
    }
    if let Some(text) = standing {
        output::line(format!("         {} {text}", output::warn("changed:")));
    }
}
