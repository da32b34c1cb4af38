//! `writ identity`: who the agents of a session are, and how each part of that is known.

use writ_core::json;
use writ_engine::identity::environment::{Seen, Standing};
use writ_engine::identity::shown::{Shown, shown};
use writ_engine::identity::workload::Told;

use crate::args::{Format, IdentityArgs};
use crate::commands::session_lookup::{session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Shows them.
pub fn run(args: &IdentityArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let id = session(&store, args.session.as_deref())?;
    let found = shown(&store, &id, &args.trust_domain).map_err(Failure::could_not)?;
    if args.format.format == Format::Json {
        output::print_json(&found);
        return Ok(());
    }
    output::line(format!("session  {}", output::bold(output::plain(id.as_str()))));
    if found.is_empty() {
        output::line("no row names an identity yet: the next start, stop or judged call does");
    }
    for one in &found {
        show(one, args.explain);
    }
    Ok(())
}

/// What the Workload API says.
fn svid(row: u64, told: &Told) {
    match told {
        Told::Svid { id, certificate, expires, standing } => {
            let how = if *standing == Standing::Observed { "observed" } else { "reported" };
            let id = output::plain(id);
            output::line(format!("workload {id}, until {expires}  {}", output::dim(format!("{how}, row {row}"))));
            output::line(format!("         certificate {certificate}"));
        }
        Told::Nothing { error } => {
            output::line(format!("workload unknown: {}  {}", output::plain(error), output::dim(format!("row {row}"))));
        }
    }
}

fn show(one: &Shown, explain: bool) {
    let kind = one.kind.as_deref().map(|kind| format!(" ({})", output::plain(kind))).unwrap_or_default();
    output::line("");
    output::line(format!("agent    {}{kind}, as of row {}", output::bold(output::plain(&one.agent)), one.row));
    output::line(format!("identity {}", one.hash));
    output::line(format!("spiffe   {}", output::plain(&one.spiffe)));
    one.workload.iter().for_each(|(row, told)| svid(*row, told));
    let parts = &one.document.parts;
    let standing = |name: &str| match one.document.standing.get(name) {
        Some(Standing::Observed) => "observed",
        Some(Standing::Reported) => "reported",
        None => "not known",
    };
    let part = |name: &str, member: &str, value: &str| {
        let how = if explain { format!("  {}", output::dim(standing(member))) } else { String::new() };
        output::line(format!("{name:<8} {}{how}", output::plain(value)));
    };
    part("model", "model", parts.model.as_deref().unwrap_or("unknown"));
    let seen = Seen::recorded(&parts.environment, &one.document.standing);
    for (at, (name, known)) in seen.names().into_iter().enumerate() {
        let how = if known == Standing::Observed { "observed" } else { "reported" };
        let how = if explain { format!("  {}", output::dim(how)) } else { String::new() };
        output::line(format!("{:<8} {}{how}", if at == 0 { "runs in" } else { "" }, output::plain(&name)));
    }
    part("tools", "tools", &parts.tools.join(", "));
    part("policy", "policyDigest", &parts.policy_digest.to_string());
    if let Some(parent) = parts.parent_identity {
        part("parent", "parentIdentity", &parent.to_string());
    }
    if explain {
        let text = json::to_canonical(parts);
        output::line(format!("hashed   {}", output::plain(&text)));
    }
}
