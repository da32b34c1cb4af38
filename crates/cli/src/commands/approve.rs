//! `writ approve`, `writ deny` and `writ policy accept`: a human's word, given at a terminal.

use writ_core::{SessionId, Timestamp};
use writ_engine::Home;
use writ_engine::decide::approvals::{self, Word};
use writ_engine::notary::late;
use writ_engine::session::state::Uses;
use writ_store::Store;

use crate::args::{AnswerArgs, ApproveArgs, WordArgs};
use crate::commands::approvals::{found, show};
use crate::commands::keys::signing_key;
use crate::commands::session_lookup::{session, session_start, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Lists what waits, or lets one call run.
pub fn run(args: &ApproveArgs) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    if let Some(name) = &args.call {
        return answer(&store, name, true, &args.word, &home);
    }
    let id = session(&store, args.word.session.as_deref())?;
    if args.list {
        return granted(&store, &id);
    }
    if let Some(name) = &args.revoke {
        human_check::human("take an approval back", &session_start(&store, &id)?, &home)?;
        let grant = approvals::revoke(&store, &id, name, &home).map_err(Failure::could_not)?;
        late::settle(&store, &id, &home).map_err(Failure::could_not)?;
        let now = if grant.uses == Uses::Never { "asks again" } else { "may not run any more" };
        output::line(format!("{} {} {} {now}", output::good("✓"), output::plain(&grant.tool), grant.name()));
        return Ok(());
    }
    let now = Timestamp::now();
    let waiting = approvals::waiting(&store, &id, now).map_err(Failure::could_not)?;
    waiting.iter().for_each(|call| show(&id, call, now));
    Ok(())
}

/// Says no to one call.
pub fn deny(args: &AnswerArgs) -> Result<(), Failure> {
    let home = environment::home();
    answer(&store(&home)?, &args.call, false, &args.word, &home)
}

fn answer(store: &Store, name: &str, yes: bool, args: &WordArgs, home: &Home) -> Result<(), Failure> {
    let id = match &args.session {
        Some(named) => session(store, Some(named))?,
        None => of_call(store, name)?,
    };
    let key = args.key.as_deref().map(signing_key).transpose()?;
    let what = if yes { "approve a call" } else { "refuse a call" };
    let presence = human_check::human(what, &session_start(store, &id)?, home)?;
    let word = Word { yes, lasts: args.lasts, presence, key: key.as_ref() };
    let (call, grant) = approvals::answer(store, &id, name, &word, home).map_err(Failure::could_not)?;
    late::settle(store, &id, home).map_err(Failure::could_not)?;
    show(&id, &call, Timestamp::now());
    let until = grant.until.map_or_else(|| "while the session lasts".to_owned(), |until| format!("until {until}"));
    let may = match grant.uses {
        Uses::Once => "may run once",
        Uses::Any => "may run as often as it is called",
        Uses::Never => "is denied",
    };
    output::line(format!("{} {} {} {may}, {until}", output::good("✓"), output::plain(&call.tool), call.name()));
    Ok(())
}

/// The session in which the call of that name waits.
fn of_call(store: &Store, name: &str) -> Result<SessionId, Failure> {
    let requests = approvals::everywhere(store, Timestamp::now()).map_err(Failure::could_not)?;
    let (found, unread) = found(requests);
    let mut sessions: Vec<SessionId> =
        found.into_iter().filter(|(_, call)| call.is_named(name)).map(|(session, _)| session).collect();
    sessions.dedup();
    let matches = sessions.len();
    match (sessions.pop(), matches) {
        (Some(session), 1) => Ok(session),
        _ => {
            let unread = unread.first().map(|why| format!("; {why}")).unwrap_or_default();
            Err(Failure::could_not(format!(
                "waiting calls of {matches} sessions match `{name}`: `writ approvals` lists them{unread}"
            )))
        }
    }
}

fn granted(store: &Store, id: &SessionId) -> Result<(), Failure> {
    let now = Timestamp::now();
    for grant in approvals::granted(store, id).map_err(Failure::could_not)? {
        let uses = match grant.uses {
            Uses::Once => "once",
            Uses::Any => "as often as called",
            Uses::Never => "denied",
        };
        let ends = match grant.until {
            None => "while the session lasts".to_owned(),
            Some(until) if until >= now => format!("until {until}"),
            Some(until) => format!("ended {until}"),
        };
        output::line(format!("{}  {}  {uses}  {ends}", output::bold(grant.name()), output::plain(&grant.tool)));
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
    late::settle(&store, &id, &home).map_err(Failure::could_not)?;
    output::line(format!(
        "{} session {} now runs under {} {}",
        output::good("✓"),
        output::plain(id.as_str()),
        output::path(&governing.path),
        governing.file
    ));
    Ok(())
}
