//! `writ agentfile decide`: requests in, decisions out, each with the line that decided it.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_agentfile::Linted;
use writ_agentfile::cedar::{Decided, Request};
use writ_agentfile::ceiling::{self, Level};
use writ_agentfile::placed::Placed;
use writ_core::json::{self, Limits, Object};
use writ_core::{Digest, SessionId};
use writ_engine::decide::requests::{self, Requests};
use writ_engine::governing::{self, Trust};
use writ_store::Store;

use super::levels::inherited;
use super::usable;
use crate::args::AgentDecideArgs;
use crate::commands::session_lookup::store;
use crate::commands::tool::brought;
use crate::environment;
use crate::exit::Failure;
use crate::input::{self, Line};
use crate::output;

/// Longest line of standard input.
const MAX_LINE: u64 = 1 << 20;
/// Most requests that are answered at once: their rows are made durable together.
const MOST: usize = 1000;

/// An answer, and whose it is.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    decided: Decided,
    /// The file that denied, where it is one that this one is built on.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The Agentfile that decides.
struct Own {
    /// Its text, and what its sets of tools bring.
    placed: Placed,
    /// The file's digest.
    digest: Digest,
    /// What is asked.
    level: Level,
}

impl Own {
    fn of(linted: Linted, file: &Path) -> Result<Self, Failure> {
        let (digest, name) = (linted.agent.digest(), linted.agent.file.clone());
        let tools = brought(&linted, file)?;
        let placed = Placed { agentfile: linted.agent.text.clone(), tools, ..Placed::default() };
        let whole = if placed.tools.is_empty() { linted } else { placed.linted(&name) };
        match whole.found.iter().find(|found| found.is_error()) {
            Some(error) => Err(Failure::malformed(format!("{name}:{}: {}", error.place.line, error.message))),
            None => Ok(Self { placed, digest, level: Level::of(whole) }),
        }
    }
}

/// Decides one request, or one a line.
pub fn run(args: &AgentDecideArgs) -> Result<(), Failure> {
    let linted = usable(&args.file)?;
    let chain = inherited(&args.file, &linted.agent, &args.base)?;
    let own = Own::of(linted, &args.file)?;
    let home = environment::home();
    let kept = if args.no_record { None } else { Some(store(&home)?) };
    let mut record = kept.as_ref().map(|store| begin(store, &home, args, &own)).transpose()?;
    let decided = decide_all(args, &own, &chain, record.as_mut());
    if let Some(record) = record {
        let id = record.id().clone();
        record.end().map_err(Failure::could_not)?;
        output::note(format!("writ: on record in {id}"));
    }
    decided
}

/// The session that they are recorded in.
fn begin<'a>(
    store: &'a Store,
    home: &'a writ_engine::Home,
    args: &AgentDecideArgs,
    own: &Own,
) -> Result<Requests<'a>, Failure> {
    let path = if args.file == Path::new("-") { PathBuf::from("Agentfile") } else { args.file.clone() };
    let path = std::path::absolute(path)?;
    // Bases that were named are not those that the lock leads to.
    let image = !args.base.is_empty();
    let placed = Placed { image, ..own.placed.clone() };
    let held = governing::placed(&path, &placed, &Trust::open(home.state.as_deref())).map_err(Failure::could_not)?;
    let named = args.session.as_deref().map(SessionId::new);
    Requests::begin(store, home, (&held, &path), named.as_ref()).map_err(Failure::could_not)
}

fn decide_all(
    args: &AgentDecideArgs,
    own: &Own,
    chain: &[Level],
    mut record: Option<&mut Requests<'_>>,
) -> Result<(), Failure> {
    if let (Some(action), Some(resource)) = (&args.action, &args.resource) {
        let context = match &args.context {
            None => Object::default(),
            Some(text) => {
                let value = input::json("--context", text.as_bytes(), Limits::OURS)?;
                value
                    .as_object()
                    .cloned()
                    .ok_or_else(|| Failure::malformed("`--context` is no JSON object".to_owned()))?
            }
        };
        let request =
            Request::from_words(args.principal.as_deref(), action, resource, context).map_err(Failure::malformed)?;
        let answer = decide(&own.level, chain, &request);
        let allowed = answer.decided.is_allowed();
        tell(&mut vec![(Some(request), answer)], own, record.as_deref_mut())?;
        return if allowed { Ok(()) } else { Err(Failure::No) };
    }
    let mut stdin = BufReader::with_capacity(1 << 16, std::io::stdin());
    let (mut denied, mut wrong, mut blank, mut open) = (false, 0, 0, Vec::new());
    for number in 1.. {
        let Some(line) = input::line(&mut stdin, MAX_LINE)? else { break };
        let request = match line {
            Line::Whole(line) => Request::parse(&line).map_err(|error| error.to_string()),
            Line::Blank => {
                blank += 1;
                continue;
            }
            Line::TooLong => Err(format!("longer than {MAX_LINE} bytes")),
        };
        let (request, answer) = match request {
            Ok(request) => {
                let answer = decide(&own.level, chain, &request);
                (Some(request), answer)
            }
            Err(why) => {
                wrong += 1;
                (None, malformed(number, &why))
            }
        };
        denied |= !answer.decided.is_allowed();
        open.push((request, answer));
        // Whoever waits for an answer gets it; what came together is answered together.
        if open.len() >= MOST || !stdin.buffer().contains(&b'\n') {
            tell(&mut open, own, record.as_deref_mut())?;
        }
    }
    tell(&mut open, own, record)?;
    if blank > 0 {
        // Whoever pairs lines with answers has to know.
        output::note(format!("writ: blank lines are no requests, and have no answers: {blank} of them"));
    }
    match (wrong, denied) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::No),
        _ => Err(Failure::malformed(format!("{wrong} lines are no requests; each was denied in its place"))),
    }
}

/// Records answers, then gives them.
fn tell(
    answers: &mut Vec<(Option<Request>, Answer)>,
    own: &Own,
    record: Option<&mut Requests<'_>>,
) -> Result<(), Failure> {
    if let Some(record) = record {
        let agentfile = own.digest;
        let rows = answers.iter().filter_map(|(request, answer)| {
            let request = request.as_ref()?;
            Some(requests::Decided {
                agentfile,
                action: request.action.name,
                resource: &request.resource,
                principal: request.principal.as_deref(),
                context: Digest::of(json::canonical(&json::Value::Object(request.context.clone())).as_bytes()),
                decision: answer.decided.decision,
                rules: answer.decided.rules.iter().map(|said| said.rule.as_str()).collect(),
                base: answer.base.as_deref(),
            })
        });
        record.record(&rows.collect::<Vec<_>>()).map_err(Failure::could_not)?;
    }
    answers.drain(..).for_each(|(_, answer)| output::print_json_line(&answer));
    Ok(())
}

fn decide(own: &Level, chain: &[Level], request: &Request) -> Answer {
    let (decided, level) = ceiling::decide(own, chain, request);
    let base = level.and_then(|at| chain.get(at)).map(|level| level.agent.file.clone());
    Answer { decided, base, error: None }
}

fn malformed(number: usize, why: &str) -> Answer {
    let decided = Decided { decision: "deny", rules: Vec::new(), reasons: Vec::new(), errors: Vec::new() };
    Answer { decided, base: None, error: Some(format!("line {number}: {why}")) }
}
