//! `writ approve` and `writ policy accept`: a human's word, given at a terminal.

use writ_core::{SessionId, Timestamp};
use writ_engine::decide::approvals;
use writ_engine::decide::approvals::Waiting;
use writ_store::Store;

use crate::args::ApproveArgs;
use crate::commands::session_lookup::{session, session_start, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Lists what waits, or lets one call run once.
pub fn run(args: &ApproveArgs) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    let id = session(&store, args.session.as_deref())?;
    if args.list {
        return granted(&store, &id);
    }
    if let Some(name) = &args.revoke {
        human_check::human("take an approval back", &session_start(&store, &id)?, &home)?;
        let grant = approvals::revoke(&store, &id, name, &home).map_err(Failure::could_not)?;
        output::line(format!("{} {} {} may not run any more", output::good("✓"), grant.tool, grant.name()));
        return Ok(());
    }
    let Some(name) = &args.call else {
        let waiting = approvals::waiting(&store, &id).map_err(Failure::could_not)?;
        waiting.iter().for_each(show);
        return Ok(());
    };
    human_check::human("approve a call", &session_start(&store, &id)?, &home)?;
    let call = approvals::approve(&store, &id, name, &home).map_err(Failure::could_not)?;
    show(&call);
    output::line(format!(
        "{} {} {} may run once within 30 minutes",
        output::good("✓"),
        output::plain(&call.tool),
        call.name()
    ));
    Ok(())
}

/// What a call would do, and which rules want a human's yes. Its text is on no record (R8): the client shows that.
fn show(call: &Waiting) {
    output::line(format!("{}  {}  {}", output::bold(call.name()), output::plain(&call.tool), call.asked));
    let unresolved: Vec<String> = call.shown.unresolved.iter().map(|kind| format!("{kind} is not known")).collect();
    let loss: Vec<String> = call.shown.loss.iter().cloned().collect();
    let folder = vec![call.cwd.clone()];
    let lists = [
        ("programs", &call.shown.programs),
        ("paths", &call.shown.paths),
        ("hosts", &call.shown.hosts),
        ("folder", &folder),
        ("unknown", &unresolved),
        ("loses", &loss),
        ("rules", &call.rules),
    ];
    for (name, items) in lists {
        for (at, item) in items.iter().enumerate() {
            let head = if at == 0 { name } else { "" };
            output::line(format!("  {}  {}", output::dim(format!("{head:<8}")), output::plain(item)));
        }
    }
}

fn granted(store: &Store, id: &SessionId) -> Result<(), Failure> {
    let now = Timestamp::now();
    for grant in approvals::granted(store, id).map_err(Failure::could_not)? {
        let ends = if grant.until >= now { "until" } else { "ended" };
        output::line(format!("{}  {}  {ends} {}", output::bold(grant.name()), output::plain(&grant.tool), grant.until));
    }
    Ok(())
}

/// Accepts the policy as it is now.
pub fn accept(named: Option<&str>, none: bool) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    let id = session(&store, named)?;
    human_check::human("accept a policy", &session_start(&store, &id)?, &home)?;
    if none {
        approvals::accept_none(&store, &environment::cwd()?).map_err(Failure::could_not)?;
        output::line(format!("{} new sessions here run under the policy they find, or under none", output::good("✓")));
        return Ok(());
    }
    let governing = approvals::accept(&store, &id, &home).map_err(Failure::could_not)?;
    output::line(format!(
        "{} session {} now runs under {} {}",
        output::good("✓"),
        output::plain(id.as_str()),
        output::path(&governing.path),
        governing.file
    ));
    Ok(())
}
