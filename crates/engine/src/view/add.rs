//! One row more of a session that is looked at.

use writ_core::json::Value;
use writ_core::{SessionId, visible};
use writ_evidence::row::{Row, RowDecision};
use writ_store::Store;

use super::{Became, Claim, Entry, Kind, MOST, View};
use crate::confine::traffic::CONNECTION;
use crate::past::denied;
use crate::session::kept_policy;
use crate::session::rows::{CALL, ENDED, PROMPT, RUN, SESSION_END, event};
use crate::session::shown::{Shown, cite};
use crate::session::state::State;
use crate::verify::claims;

/// Events that are about single calls and have no line of their own.
const QUIET: [&str; 2] = ["tool-result", "permission-request"];

impl View {
    pub(super) fn add(&mut self, row: &Row, store: &Store, id: &SessionId) {
        self.reading.rows = row.sequence + 1;
        self.counts.rows += 1;
        if self.began.is_none() {
            self.began = Some(row.timestamp);
            self.reading.genesis = row.detail.clone();
            let text = |name: &str| text(&row.detail, name).unwrap_or_default().to_owned();
            (self.client, self.cwd) = (text("client"), text("cwd"));
        }
        self.last = Some(row.timestamp);
        let named = event(row);
        self.ended = matches!(named, SESSION_END | ENDED);
        self.take_policy(row, store, id);
        match (row.decision, named) {
            (RowDecision::Completed | RowDecision::Failed, _) => self.result(row),
            (RowDecision::Hallucinated, _) | (_, CALL | RUN) => self.call(row),
            (_, CONNECTION) => self.connection(row),
            (_, "claim") => {
                let (text, is_false) = (claims::tell(row), claims::is_false(row));
                self.entries.push(Entry { what: text.clone(), ..entry(row, Kind::Claim) });
                self.claims.push(Claim { text, is_false });
            }
            (_, PROMPT) => {
                self.counts.prompts += 1;
                self.entries.push(entry(row, Kind::Prompt));
            }
            (_, quiet) if QUIET.contains(&quiet) => {}
            // A payload that could not be read was denied, and is a call for all that is known.
            (RowDecision::Denied, _) => self.call(row),
            _ => self.entries.push(entry(row, Kind::Event)),
        }
    }

    /// The policy's rules have texts where it is kept.
    fn take_policy(&mut self, row: &Row, store: &Store, id: &SessionId) {
        let file = State::from_detail(&row.detail).and_then(|state| state.policy).map(|policy| policy.file);
        if file.is_some() && file != self.reading.file {
            self.reading.file = file;
            self.reading.policy = kept_policy(store, id, row);
            self.policy = self.reading.policy.as_ref().map(|policy| policy.policy.name().to_owned());
        }
    }

    fn call(&mut self, row: &Row) {
        let mut shown = Shown::of(row);
        shown.paths.iter_mut().for_each(|path| self.shorten(path));
        let became = match row.decision {
            RowDecision::Approved => Became::Allowed,
            RowDecision::Asked => Became::Asked,
            RowDecision::Denied => Became::Denied,
            RowDecision::Hallucinated => Became::NoTool,
            RowDecision::Completed | RowDecision::Failed | RowDecision::Checkpoint => Became::Nothing,
        };
        match became {
            Became::Allowed => self.counts.allowed += 1,
            Became::Asked => self.counts.asked += 1,
            Became::Denied | Became::NoTool => self.counts.denied += 1,
            Became::Nothing => {}
        }
        let stopped = matches!(became, Became::Asked | Became::Denied);
        self.take_facts(row, stopped);
        let policy = self.reading.policy.as_ref();
        let reasons = if stopped { denied::told(policy, &self.reading.genesis, row) } else { Vec::new() };
        let rule = shown.rules.iter().find_map(|rule| rule.strip_prefix("allow "));
        let rules = policy.map(|policy| policy as &dyn crate::session::shown::Rules);
        let allowed_by = rule.map(|rule| cite(rules, rule));
        let tool = shown.tool.clone();
        let summary = shown.summary();
        let what = summary.strip_prefix(&tool).unwrap_or(&summary).trim().to_owned();
        if let Some(call) = &row.call_id {
            self.reading.open.insert(call.clone(), self.entries.len());
        }
        let name = if tool.is_empty() { event(row).to_owned() } else { tool };
        let sandboxed = row.detail.get("sandbox").is_some();
        self.entries.push(Entry { became, name, what, reasons, allowed_by, sandboxed, ..entry(row, Kind::Call) });
    }

    /// A path below the session's folder is shown from there, so that what tells it from others is not cut off.
    fn shorten(&self, shown: &mut String) {
        let below = |path: &str| Some(path.strip_prefix(&self.cwd)?.strip_prefix('/')?.to_owned());
        if let Some((access, path)) = shown.split_once(' ').filter(|_| !self.cwd.is_empty())
            && let Some(path) = below(path)
        {
            *shown = format!("{access} {path}");
        }
    }

    fn result(&mut self, row: &Row) {
        let failed = row.decision == RowDecision::Failed;
        self.counts.failed += u64::from(failed);
        let open = row.call_id.as_ref().and_then(|call| self.reading.open.remove(call));
        if let Some(entry) = open.and_then(|at| self.entries.get_mut(at)) {
            entry.failed = Some(failed);
            entry.took = Some(row.timestamp.millis().saturating_sub(entry.at.millis()).max(0));
        }
    }

    fn connection(&mut self, row: &Row) {
        let Some(connection) = row.detail.get("connection") else { return };
        let refused = connection.get("refusal").is_some();
        self.counts.refused += u64::from(refused);
        let host = text(connection, "host").or_else(|| text(connection, "address")).unwrap_or("unknown host");
        if self.hosts.len() < MOST || self.hosts.contains_key(host) {
            let seen = self.hosts.entry(host.to_owned()).or_default();
            if refused { seen.stopped += 1 } else { seen.connections += 1 }
        }
        let became = if refused { Became::Denied } else { Became::Allowed };
        self.entries.push(Entry { became, what: host.to_owned(), ..entry(row, Kind::Connection) });
    }

    /// The files and hosts of a call, as its facts name them.
    fn take_facts(&mut self, row: &Row, stopped: bool) {
        let facts = row.detail.get("facts");
        let items = |name: &str| facts.and_then(|facts| facts.get(name)).and_then(Value::as_array).unwrap_or_default();
        for fact in items("paths") {
            let (Some(path), Some(access)) = (text(fact, "path"), text(fact, "access")) else { continue };
            if !matches!(access, "read" | "write") || self.files.len() >= MOST && !self.files.contains_key(path) {
                continue;
            }
            let seen = self.files.entry(path.to_owned()).or_default();
            match (stopped, access) {
                (true, _) => seen.stopped += 1,
                (false, "write") => seen.writes += 1,
                (false, _) => seen.reads += 1,
            }
        }
        for fact in items("hosts") {
            let host = text(fact, "host").unwrap_or("unknown host");
            if self.hosts.len() >= MOST && !self.hosts.contains_key(host) {
                continue;
            }
            let seen = self.hosts.entry(host.to_owned()).or_default();
            seen.calls += 1;
            seen.stopped += u64::from(stopped);
        }
    }
}

fn entry(row: &Row, kind: Kind) -> Entry {
    let agent = row.detail.get("agent");
    let agent = agent.and_then(|agent| text(agent, "type").or_else(|| text(agent, "id")));
    Entry {
        row: row.sequence,
        at: row.timestamp,
        kind,
        became: Became::Nothing,
        name: visible::line(event(row)).into_owned(),
        what: String::new(),
        agent: agent.map(str::to_owned),
        reasons: Vec::new(),
        allowed_by: None,
        failed: None,
        took: None,
        sandboxed: false,
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}
