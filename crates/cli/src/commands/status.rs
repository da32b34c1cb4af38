//! `writ status`: which policy governs here, and how the newest session stands.

use writ_core::json::{Object, Value};
use writ_engine::observed::Observed;
use writ_engine::{Trust, governing, human, standing};
use writ_policy::Enforce;

use crate::args::{Format, FormatArgs};
use crate::commands::approve::store;
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
    let newest = human::newest(&store, governing::repository(&cwd)).map_err(Failure::could_not)?;
    let claims = writ_engine::claims::enforced(&environment::home(), &cwd);
    let mut described = None;
    let standing = newest.as_ref().and_then(|id| standing::of_session(&store, id, &trust));
    if let Some(id) = &newest {
        let first = store.first_row(id).map_err(Failure::could_not)?;
        let last = store.last_row(id).map_err(Failure::could_not)?;
        described = first.zip(last).map(|(first, last)| session::describe(&first, &last));
    }
    let observed = match (&governing, &newest) {
        (Some(governing), Some(id)) if governing.policy.enforce() == Enforce::Observe => {
            let rows = store.rows(id).map_err(Failure::could_not)?;
            Some(Observed::of(rows.iter(), &governing.policy))
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
        out.push("claims", claims.to_json());
        out.push("observed", observed.map_or(Value::Null, |observed| observed.to_json()));
        output::print_json(&Value::Object(out));
        return Ok(());
    }
    match &governing {
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
    if let Some(text) = governing.as_ref().and_then(policy::expired) {
        output::line(format!("         {} {text}", output::bad("expired:")));
    }
    if let Some(text) = &standing {
        output::line(format!("         {} {text}", output::warn("changed:")));
    }
    match &described {
        Some(session) => {
            let text = |name| output::plain(session.get(name).and_then(Value::as_str).unwrap_or_default());
            let count = |name| session.get(name).and_then(Value::as_u64).unwrap_or_default();
            output::line(format!(
                "session  {}  since {}\n         {} rows: {} allowed, {} asked, {} denied, {} prompts",
                output::bold(text("session")),
                text("started"),
                count("rows"),
                count("calls"),
                count("asked"),
                count("denied"),
                count("turns")
            ));
        }
        None => output::line("session  none of this repository is on record"),
    }
    output::line(format!("claims   {}", claims.text().trim_start_matches("claims are ")));
    if let Some(observed) = observed {
        output::line(format!("observe  {}", observed.summary()));
        observed.lines().iter().for_each(|line| output::line(format!("         {}", output::plain(line))));
    }
    Ok(())
}
