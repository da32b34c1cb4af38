//! `writ limits`: what a session used, and a human's word that lets it use more.

use writ_core::Timestamp;
use writ_engine::limits::raise;
use writ_engine::limits::shown::{AgentShown, Standing, standing};
use writ_engine::notary::late;
use writ_policy::Measure;

use crate::args::{Format, LimitsCommand, RaiseArgs};
use crate::commands::session_lookup::{session, session_start, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Shows or raises.
pub fn run(command: &LimitsCommand) -> Result<(), Failure> {
    match command {
        LimitsCommand::Show { session: named, format } => {
            let store = store(&environment::home())?;
            let id = session(&store, named.as_deref())?;
            let found = standing(&store, &id, Timestamp::now()).map_err(Failure::could_not)?;
            let limited = found.is_some();
            let found = found.unwrap_or_default();
            if format.format == Format::Json {
                output::print_json(&found);
                return Ok(());
            }
            output::line(format!("session  {}", output::bold(output::plain(id.as_str()))));
            if !limited {
                output::line("its policy limits nothing");
                return Ok(());
            }
            show(&found);
            found.agents.iter().for_each(agent);
            Ok(())
        }
        LimitsCommand::Raise(args) => raise_limit(args),
    }
}

fn raise_limit(args: &RaiseArgs) -> Result<(), Failure> {
    let limit = Measure::ALL.into_iter().find(|measure| measure.name() == args.limit);
    let limit = limit.ok_or_else(|| Failure::Usage(format!("there is no limit `{}`", args.limit)))?;
    let wanted = if limit == Measure::Spend { "dollars, as in `10` or `2.50`" } else { "a whole number" };
    let to = limit.read(&args.to).filter(|to| *to < 1 << 53);
    let to = to.ok_or_else(|| Failure::Usage(format!("`{}` is no {limit}: write {wanted}", args.to)))?;
    let home = environment::home();
    let store = store(&home)?;
    let id = session(&store, args.session.as_deref())?;
    human_check::human("raise a limit", &session_start(&store, &id)?, &home)?;
    let raised = raise::raise(&store, &id, (limit, args.agent.as_deref()), to, &home).map_err(Failure::could_not)?;
    late::settle(&store, &id, &home).map_err(Failure::could_not)?;
    output::line(format!(
        "{} {limit} of session {}: {} instead of {}",
        output::good("✓"),
        output::plain(id.as_str()),
        limit.shown(raised.to),
        limit.shown(raised.from)
    ));
    Ok(())
}

/// One line a limit.
pub fn show(standing: &Standing) {
    for (at, limit) in standing.limits.iter().enumerate() {
        let head = if at == 0 { "limits" } else { "" };
        let text = output::plain(&limit.text());
        let text = if limit.is_used_up() { output::bad(text) } else { text };
        output::line(format!("{head:<8} {:<18} {text}", limit.limit.name()));
    }
}

/// One line an agent: what it read and wrote, and what that cost.
pub fn agent(agent: &AgentShown) {
    let kind = agent.kind.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let cost = agent.spend.map_or_else(|| "no price".to_owned(), |spend| spend.to_string());
    let cached = match agent.tokens.cache_read {
        0 => String::new(),
        read => format!(", {} of it from a cache", Measure::TokensIn.shown(read)),
    };
    let text = format!(
        "{}{kind}  {cost}  in {}{cached}, out {}  {}",
        agent.agent,
        Measure::TokensIn.shown(agent.tokens.all_input()),
        Measure::TokensOut.shown(agent.tokens.output),
        agent.models.join(", ")
    );
    output::line(format!("agent    {}", output::plain(text.trim_end())));
}
