//! `writ agentfile decide`: requests in, decisions out, each with the line that decided it.

use std::io::{BufRead, Read};

use serde::Serialize;
use writ_agentfile::cedar::{Decided, Request};
use writ_agentfile::ceiling::{self, Level};
use writ_core::json::{Limits, Object};

use super::{levels, usable};
use crate::args::AgentDecideArgs;
use crate::exit::Failure;
use crate::input;
use crate::output;

/// Longest line of standard input.
const MAX_LINE: u64 = 1 << 20;

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

/// Decides one request, or one a line.
pub fn run(args: &AgentDecideArgs) -> Result<(), Failure> {
    let linted = usable(&args.file)?;
    let own = Level { agent: linted.agent, rules: linted.rules };
    let chain = levels(&args.base)?;
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
        let answer = decide(&own, &chain, &request);
        output::print_json_line(&answer);
        return if answer.decided.is_allowed() { Ok(()) } else { Err(Failure::No) };
    }
    let mut stdin = std::io::stdin().lock();
    let (mut denied, mut wrong) = (false, 0);
    for number in 1.. {
        let mut line = Vec::new();
        if stdin.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let whole = line.last() == Some(&b'\n') || stdin.fill_buf()?.is_empty();
        if !whole {
            stdin.skip_until(b'\n')?;
        }
        if whole && line.trim_ascii().is_empty() {
            continue;
        }
        let request = if whole {
            Request::parse(&line).map_err(|error| error.to_string())
        } else {
            Err(format!("longer than {MAX_LINE} bytes"))
        };
        let answer = request.map_or_else(
            |why| {
                wrong += 1;
                malformed(number, &why)
            },
            |request| decide(&own, &chain, &request),
        );
        denied |= !answer.decided.is_allowed();
        output::print_json_line(&answer);
    }
    match (wrong, denied) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::No),
        _ => Err(Failure::malformed(format!("{wrong} lines are no requests; each was denied in its place"))),
    }
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
