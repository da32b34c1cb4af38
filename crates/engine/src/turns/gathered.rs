//! What rows tell of one agent's turn.
//!
//! Owns the way from rows to the members of a statement; the one who signs and the one who verifies take it. Refuses what is only
//! perhaps touched: facts that are not certain are not told as files or hosts. Page: `spec/turns.md`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::row::{Row, RowDecision};

use super::predicate::{Approval, Domains, Files, Tool};
use crate::session::rows::{IdentityRef, PROMPT, event};

/// Kinds of paths that a call touches for certain, beside those that it names.
const CERTAIN: [&str; 2] = ["copied", "operand"];

/// What rows told so far.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The first row of it.
    pub first: u64,
    calls: Vec<Call>,
    by_id: HashMap<String, usize>,
    approvals: Vec<Approval>,
    /// Who the agent was, newest.
    pub identity: Option<IdentityRef>,
    /// When its prompt, or else its first row, was written.
    began: Option<Timestamp>,
    /// A prompt was taken in it.
    pub prompted: bool,
    /// Its agent stopped in it.
    pub stopped: bool,
    ended: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
struct Call {
    tool: Tool,
    asked: bool,
    /// It came to its end, and did not fail.
    completed: bool,
    files: Files,
    hosts: Vec<String>,
}

/// The members of a statement that follow from rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The calls.
    pub tools: Vec<Tool>,
    /// Files of those that were allowed.
    pub files: Files,
    /// Their hosts.
    pub domains: Domains,
    /// Humans' words.
    pub approvals: Vec<Approval>,
    /// From the prompt's row to the last.
    pub duration_ms: u64,
    /// How many calls were allowed.
    pub allowed: u64,
}

/// Whose row it is: `main`, or a sub-agent's id.
pub fn agent(row: &Row) -> &str {
    let agent = row.detail.get("agent").and_then(|agent| agent.get("id")).and_then(Value::as_str);
    agent.unwrap_or(writ_clients::transcript::MAIN)
}

/// Takes a row of an agent's to the turn that it belongs to: each prompt begins one. `root` is the policy's folder.
pub fn take(turns: &mut Vec<Gathered>, row: &Row, root: &Path) {
    let begins = event(row) == PROMPT;
    if begins && turns.last().is_some_and(|turn| turn.prompted) || turns.is_empty() {
        turns.push(Gathered { first: row.sequence, ..Gathered::default() });
    }
    if let Some(turn) = turns.last_mut() {
        turn.row(row, root);
    }
}

impl Gathered {
    fn row(&mut self, row: &Row, root: &Path) {
        self.identity = IdentityRef::of(&row.detail).or(self.identity);
        match event(row) {
            PROMPT => {
                (self.prompted, self.stopped) = (true, false);
                self.began = Some(row.timestamp);
            }
            "stop" | "subagent-stop" => self.stopped = true,
            "grant" | "refusal" => self.approvals.extend(approval(row)),
            _ => {}
        }
        self.began = self.began.or(Some(row.timestamp));
        self.ended = Some(row.timestamp);
        match (row.decision, &row.tool_name) {
            (
                RowDecision::Approved | RowDecision::Asked | RowDecision::Denied | RowDecision::Hallucinated,
                Some(name),
            ) => {
                let call = called(row, name, root);
                if let Some(id) = &row.call_id {
                    self.by_id.insert(id.clone(), self.calls.len());
                }
                self.calls.push(call);
            }
            (RowDecision::Completed | RowDecision::Failed, _) => {
                let at = row.call_id.as_ref().and_then(|id| self.by_id.get(id));
                if let Some(call) = at.and_then(|at| self.calls.get_mut(*at)) {
                    call.tool.allowed |= call.asked;
                    call.completed = row.decision == RowDecision::Completed;
                }
            }
            _ => {}
        }
    }

    /// Adds what came after it.
    #[must_use]
    pub fn then(mut self, later: Self) -> Self {
        self.calls.extend(later.calls);
        self.approvals.extend(later.approvals);
        self.identity = later.identity.or(self.identity);
        self.began = if self.prompted { self.began } else { later.began.filter(|_| later.prompted).or(self.began) };
        self.prompted |= later.prompted;
        self.ended = later.ended.or(self.ended);
        self
    }

    /// The types of sub-agents that its allowed calls name, each with whether the call came to its end.
    pub fn started(&self) -> impl Iterator<Item = (&str, bool)> {
        let allowed = self.calls.iter().filter(|call| call.tool.allowed);
        allowed.filter_map(|call| Some((call.tool.agent.as_deref()?, call.completed)))
    }

    /// Whether it tells of a call.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// What a statement says of it.
    pub fn told(&self) -> Told {
        let mut sets: [BTreeSet<&String>; 4] = Default::default();
        for call in self.calls.iter().filter(|call| call.tool.allowed) {
            let lists = [&call.files.read, &call.files.written, &call.files.created, &call.hosts];
            sets.iter_mut().zip(lists).for_each(|(set, list)| set.extend(list));
        }
        let [read, written, created, fetched] = sets.map(|set| set.into_iter().cloned().collect::<Vec<String>>());
        let span = self.began.zip(self.ended).map_or(0, |(from, to)| crate::session::millis_between(from, to));
        Told {
            tools: self.calls.iter().map(|call| call.tool.clone()).collect(),
            files: Files { read, written, created },
            domains: Domains { fetched },
            approvals: self.approvals.clone(),
            duration_ms: span,
            allowed: self.calls.iter().filter(|call| call.tool.allowed).count() as u64,
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn approval(row: &Row) -> Option<Approval> {
    let grant = row.detail.get("grant")?;
    let action: Digest = json::from_value(grant.get("action")?).ok()?;
    Some(Approval { row: row.sequence, granted: event(row) == "grant", tool: text(grant, "tool")?.to_owned(), action })
}

fn called(row: &Row, name: &str, root: &Path) -> Call {
    let (allowed, asked) = (row.decision == RowDecision::Approved, row.decision == RowDecision::Asked);
    let mut call = Call { tool: Tool { name: name.to_owned(), allowed, ..Tool::default() }, asked, ..Call::default() };
    let Some(facts) = row.detail.get("facts") else { return call };
    let list = |name: &str| facts.get(name).and_then(Value::as_array).unwrap_or_default();
    for fact in list("texts") {
        let Some(name) = text(fact, "name").map(str::to_owned) else { continue };
        match text(fact, "subject") {
            Some("command") if !flag(fact, "possible") => call.tool.programs.push(name),
            Some("tool") => call.tool.agent = Some(name),
            _ => {}
        }
    }
    for fact in list("paths") {
        let certain = text(fact, "kind").is_none_or(|kind| CERTAIN.contains(&kind));
        let Some(path) = text(fact, "path").filter(|_| certain).map(|path| relative(path, root)) else { continue };
        if flag(fact, "subject") && call.tool.path.is_none() {
            call.tool.path = Some(path.clone());
        }
        match text(fact, "access") {
            Some("read") => call.files.read.push(path),
            Some("write") => {
                if flag(fact, "new") {
                    call.files.created.push(path.clone());
                }
                call.files.written.push(path);
            }
            _ => {}
        }
    }
    let hosts = list("hosts").iter().filter(|fact| !flag(fact, "mentioned"));
    call.hosts.extend(hosts.filter_map(|fact| text(fact, "host")).map(str::to_owned));
    call
}

fn relative(path: &str, root: &Path) -> String {
    let below = Path::new(path).strip_prefix(root).ok().and_then(Path::to_str).filter(|path| !path.is_empty());
    below.unwrap_or(path).to_owned()
}
