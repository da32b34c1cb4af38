//! Calls that were to run in a sandbox: did each, and in the one that was granted?
//!
//! Owns the comparison of grants with the rows of runs and of results. Believes a run's row only with the order it names, from the
//! session's folder. Invariant: *enforced* is said only of calls whose row of the run is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::row::{Row, RowDecision};
use writ_evidence::tally::Tally;
use writ_policy::Grant;
use writ_sandbox::Level;

use super::report::{Outcome, Phase, Standing};
use crate::confine::keeper::TAKEN_BACK;
use crate::confine::order::{Order, granted};
use crate::confine::supervise::{CONFINED, began, refused_files, told};
use crate::confine::tested::{self, TESTED};
use crate::confine::traffic::CONNECTION;
use crate::confine::{copy, exec, limits, strength};
use crate::copy::{APPLIED, BEGUN, DISCARDED};
use crate::session::rows::{CALL, ENDED, LEARNT, RUN, event};

/// Largest order that was kept.
const MAX_ORDER: u64 = 64 << 20;

/// Most names of files that run later are kept, and told.
const MOST_LATER: usize = 1024;
const TOLD_LATER: usize = 8;

/// What a call was granted, and whether questions were left out because of it.
struct Granted {
    grant: Grant,
    unasked: bool,
    /// Whether its result comes while it runs.
    lasts: bool,
    result: Option<Answered>,
}

impl Granted {
    fn of(row: &Row) -> Option<Self> {
        let unasked = row.detail.get("facts").and_then(|facts| facts.get("held")).is_some();
        Some(Self { grant: granted(&row.detail)?, unasked, lasts: exec::lasts(&row.detail), result: None })
    }

    /// Whether a run that its row tells of began when the call was over.
    fn began_late(&self, run: &Row) -> Result<bool, &'static str> {
        let Some(result) = &self.result else { return Ok(false) };
        let (after, took) = began(&run.detail).ok_or("it does not say when it began")?;
        let began = run.timestamp.millis().saturating_sub(i64::try_from(took).unwrap_or(i64::MAX));
        Ok(after >= result.sequence && (!self.lasts || began > exec::begins_by(result.timestamp)))
    }
}

/// The result of a call that has no row of a run yet.
struct Answered {
    sequence: u64,
    timestamp: Timestamp,
    /// Whether it says that the line ran to its end.
    ran: bool,
}

/// Codes from here on may be Writ's own refusal, or of a shell that was killed.
const DOUBTFUL: u64 = 125;

impl Answered {
    fn of(row: &Row) -> Self {
        let exit = row.detail.get("exit").and_then(Value::as_u64);
        let ran = row.decision == RowDecision::Completed || exit.is_some_and(|exit| exit < DOUBTFUL);
        Self { sequence: row.sequence, timestamp: row.timestamp, ran }
    }
}

/// What an order held beside files and hosts.
struct Held {
    secrets: Vec<String>,
    limits: Vec<String>,
    copy: bool,
}

impl Held {
    fn of(order: &Order) -> Self {
        let secrets = order.sources.keys().cloned().collect();
        Self { secrets, limits: limits::words(&order.confinement.limits), copy: copy::is_one(&order.confinement) }
    }
}

/// The calls that were granted a sandbox.
pub struct Confined {
    folder: PathBuf,
    /// Those that have no row of a run yet; one in the background has its result first.
    waiting: HashMap<String, Granted>,
    /// What was run as a whole, and no row says yet that it ran in its sandbox.
    whole: HashMap<String, Granted>,
    /// Calls that a run was to hold, and whether questions were left out for some of them.
    within: (u64, bool),
    /// Runs that are over.
    runs: u64,
    /// Those that have.
    ran: u64,
    weakest: Option<Level>,
    /// The last self-test, and whether something ran before the first.
    test: Option<tested::Outcome>,
    untested: bool,
    connections: u64,
    refused: u64,
    files: u64,
    /// Orders by their names; none where what is kept is not what is named.
    orders: HashMap<Digest, Option<Held>>,
    /// How often each secret was put in, by its name.
    secrets: BTreeMap<String, u64>,
    limits: BTreeSet<String>,
    /// What was learnt of runs, in words.
    learnt: Vec<String>,
    /// The order that the last copy began in, whether one ran, and what became of it.
    copy: Option<Digest>,
    copied: bool,
    over: Option<&'static str>,
    /// How much was taken back that git would have obeyed.
    taken_back: usize,
    /// What was changed that runs outside later, and how much there was.
    later: (u64, BTreeSet<String>),
    /// How many protected files somebody outside replaced.
    replaced: usize,
    /// Of how many runs nobody knows that.
    unwatched: usize,
    /// Runs of which not all that they changed could be told.
    unseen: u64,
    findings: Tally,
}

impl Confined {
    /// Before the first row of the evidence in `folder`.
    pub fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            waiting: HashMap::new(),
            whole: HashMap::new(),
            within: (0, false),
            runs: 0,
            ran: 0,
            weakest: None,
            test: None,
            untested: false,
            connections: 0,
            refused: 0,
            files: 0,
            orders: HashMap::new(),
            secrets: BTreeMap::new(),
            limits: BTreeSet::new(),
            learnt: Vec::new(),
            copy: None,
            copied: false,
            over: None,
            taken_back: 0,
            later: (0, BTreeSet::new()),
            replaced: 0,
            unwatched: 0,
            unseen: 0,
            findings: Tally::default(),
        }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        if (row.decision, event(row)) == (RowDecision::Checkpoint, TESTED) {
            self.test = tested::Outcome::of(&row.detail);
        }
        if row.decision == RowDecision::Checkpoint {
            self.of_copy(row);
        }
        if matches!(event(row), CONFINED | TAKEN_BACK) {
            self.left(row);
        }
        let Some(id) = &row.call_id else {
            // What several calls share may have been reached by any of them.
            if event(row) == CONNECTION {
                self.connection(row);
            }
            return;
        };
        let held = row.detail.get("facts").and_then(|facts| facts.get("held"));
        match (row.decision, event(row)) {
            (RowDecision::Approved, RUN) => {
                self.whole.extend(Granted::of(row).map(|granted| (id.clone(), granted)));
            }
            (RowDecision::Approved | RowDecision::Asked, CALL) if row.detail.get("run").is_some() => {
                self.within = (self.within.0 + 1, self.within.1 || held.is_some());
            }
            (RowDecision::Approved | RowDecision::Asked, CALL) => {
                self.waiting.extend(Granted::of(row).map(|granted| (id.clone(), granted)));
            }
            (RowDecision::Completed | RowDecision::Failed, _) => {
                if let Some(granted) = self.waiting.get_mut(id) {
                    granted.result = Some(Answered::of(row));
                }
            }
            (RowDecision::Checkpoint, CONNECTION) => self.connection(row),
            (RowDecision::Checkpoint, LEARNT) => self.learnt.extend(learnt(&row.detail)),
            (RowDecision::Checkpoint, CONFINED) => {
                let whole = self.whole.remove(id);
                self.runs += u64::from(whole.is_some());
                let unasked = self.within.1;
                let grant = match whole {
                    Some(whole) => Some(Granted { unasked: whole.unasked || unasked, ..whole }),
                    None => self.waiting.remove(id),
                };
                if let Err(why) = self.ran(row, grant) {
                    self.findings.add(row.sequence, why);
                }
            }
            // It says why it did not run.
            (RowDecision::Checkpoint, ENDED) if row.detail.get("why").is_some() => drop(self.whole.remove(id)),
            _ => {}
        }
    }

    /// What a run left behind.
    fn left(&mut self, row: &Row) {
        let detail = &row.detail;
        if detail.get("left").and_then(Value::as_array).is_some_and(|left| !left.is_empty()) {
            self.findings.add(row.sequence, "it left what git would obey outside, and that could not be taken back");
        }
        if detail.get("lost").and_then(Value::as_array).is_some_and(|lost| !lost.is_empty()) {
            self.findings
                .add(row.sequence, "a protected file was replaced from outside, and could not be protected again");
        }
        self.unwatched += usize::from(detail.get("unwatched").is_some());
        let many = |name: &str| detail.get(name).and_then(Value::as_array).map_or(0, <[Value]>::len);
        self.taken_back += many("takenBack");
        self.replaced += many("replaced");
        let Some(later) = detail.get("later") else { return };
        self.unseen += u64::from(later.get("unseen").and_then(Value::as_bool) == Some(true));
        let first = later.get("first").and_then(Value::as_array).unwrap_or_default();
        let named = first.iter().filter_map(|one| match one.as_array() {
            Some([path, why]) => Some((path.as_str()?, why.as_str()?)),
            _ => None,
        });
        let mut fresh = 0;
        for (path, why) in named {
            if self.later.1.len() < MOST_LATER {
                fresh += u64::from(self.later.1.insert(format!("{path} ({why})")));
            }
        }
        let more = later.get("count").and_then(Value::as_u64).unwrap_or(0).saturating_sub(first.len() as u64);
        self.later.0 = self.later.0.saturating_add(fresh).saturating_add(more);
    }

    fn of_copy(&mut self, row: &Row) {
        match event(row) {
            BEGUN => {
                let order = row.detail.get("order").and_then(Value::as_str);
                self.copy = order.and_then(|order| Digest::parse(order).ok());
            }
            APPLIED | DISCARDED if self.copy.is_none() => {
                self.findings.add(row.sequence, "what was no copy was applied or thrown away");
            }
            APPLIED => self.over = Some("applied"),
            DISCARDED => self.over = Some("thrown away"),
            _ => {}
        }
    }

    fn connection(&mut self, row: &Row) {
        let connection = row.detail.get("connection");
        let refused = connection.is_some_and(|connection| connection.get("refusal").is_some());
        *(if refused { &mut self.refused } else { &mut self.connections }) += 1;
        let secrets = connection.and_then(|connection| connection.get("secrets")).and_then(Value::as_array);
        for name in secrets.unwrap_or_default().iter().filter_map(Value::as_str) {
            *self.secrets.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn ran(&mut self, row: &Row, granted: Option<Granted>) -> Result<(), &'static str> {
        let granted = granted.ok_or("it ran in a sandbox that no row grants")?;
        if granted.began_late(row)? {
            return Err("it ran in its sandbox when its result was there: what gave the result ran elsewhere");
        }
        let Granted { grant, unasked, .. } = granted;
        let (order, level) = told(&row.detail).ok_or("it does not say in what sandbox it ran")?;
        if order != grant.confinement() {
            return Err("it ran in another sandbox than it was granted");
        }
        if unasked && level < Level::Namespaces {
            return Err("questions were left out for a sandbox that is stronger than the one it ran in");
        }
        let folder = &self.folder;
        let found = self.orders.entry(order).or_insert_with(|| {
            let path = folder.join(Order::file_name(order));
            let bytes = writ_store::regular_file::read(&path, MAX_ORDER).ok()?;
            json::from_slice(&bytes).ok().filter(|_| Digest::of(&bytes) == order).as_ref().map(Held::of)
        });
        let held = found.as_ref().ok_or("the sandbox it names is not in the session's folder")?;
        if held.copy != (row.detail.get("copy") == Some(&Value::Bool(true))) {
            return Err("its row does not say as its sandbox does whether it was a copy");
        }
        if held.copy && self.copy != Some(order) {
            return Err("no row says what its copy began from");
        }
        self.copied |= held.copy;
        for name in &held.secrets {
            self.secrets.entry(name.clone()).or_default();
        }
        self.limits.extend(held.limits.iter().cloned());
        if self.test.as_ref().is_some_and(|test| !test.escaped.is_empty() || test.error.is_some()) {
            return Err("it ran in a sandbox that its self-test had refused");
        }
        self.untested |= self.test.is_none();
        self.ran += 1;
        self.files += refused_files(&row.detail);
        self.weakest = Some(self.weakest.map_or(level, |weakest| weakest.min(level)));
        Ok(())
    }

    /// Limits and secrets, for people.
    fn held(&self) -> String {
        let secret = |(name, uses): (&String, &u64)| match uses {
            0 => format!("{name} (unused)"),
            uses => format!("{name} (in {uses} connections)"),
        };
        let secrets: Vec<String> = self.secrets.iter().map(secret).collect();
        let limits: Vec<&str> = self.limits.iter().map(String::as_str).collect();
        let told = |what: &str, names: String| if names.is_empty() { names } else { format!("; {what} {names}") };
        told("limits", limits.join(", "))
            + &told("secrets", secrets.join(", "))
            + &told("a policy was learnt from it:", self.learnt.join(", "))
            + &self.left_behind()
    }

    fn left_behind(&self) -> String {
        let taken = match self.taken_back {
            0 => String::new(),
            number => format!("; {number} files taken back that git would have obeyed outside"),
        };
        let taken = match self.unseen {
            0 => taken,
            number => format!("{taken}; of {number} not all is known that they changed"),
        };
        let taken = match self.replaced {
            0 => taken,
            number => {
                format!("{taken}; {number} protected files were replaced from outside meanwhile, and protected again")
            }
        };
        let taken = match self.unwatched {
            0 => taken,
            number => {
                format!("{taken}; of {number} it is not known whether protected files were replaced from outside")
            }
        };
        let (count, paths) = &self.later;
        if paths.is_empty() {
            return taken;
        }
        let paths: Vec<&str> = paths.iter().take(TOLD_LATER).map(String::as_str).collect();
        let more = if *count > paths.len() as u64 { ", …" } else { "" };
        format!("{taken}; {count} files changed that run outside later: {}{more}", paths.join(", "))
    }

    /// What it comes to; nothing where no call was granted a sandbox.
    pub fn phase(mut self) -> Option<Phase> {
        let results = self.waiting.values().filter_map(|granted| granted.result.as_ref());
        let mut unseen: Vec<u64> = results.filter(|result| result.ran).map(|result| result.sequence).collect();
        unseen.sort_unstable();
        for sequence in unseen {
            self.findings.add(sequence, "it ran, and not in the sandbox it was granted");
        }
        for _ in self.whole.drain() {
            let what = "it was to run in a sandbox, and no row says that it did: Writ was killed, or it runs still";
            self.findings.apart(format!("the run: {what}"));
        }
        self.waiting.retain(|_, granted| !granted.result.as_ref().is_some_and(|result| result.ran));
        let any = self.ran > 0 || !self.waiting.is_empty() || self.findings.total() > 0;
        let level = self.weakest.map_or("none", strength::word);
        let test = self.test.as_ref().map_or_else(|| "not tested".to_owned(), tested::words);
        let network = match (self.connections, self.refused) {
            (0, 0) => String::new(),
            (all, refused) => format!(", {all} connections, {refused} refused"),
        };
        let files = if self.files == 0 { String::new() } else { format!(", {} files refused", self.files) };
        let copy = if self.copied {
            format!(
                "; the folder was left as it is, and what was written to a copy {}",
                self.over.map_or_else(|| "waits".to_owned(), |over| format!("was {over}"))
            )
        } else {
            String::new()
        };
        let network = network + &self.held();
        let files = files + &copy;
        // One without a result was declined, or is running, or its client was killed: there is nothing that could have run elsewhere.
        let untold = self.waiting.values().filter(|granted| granted.result.is_some()).count();
        let files = match self.waiting.len() - untold {
            0 => files,
            open => format!("{files}; {open} more have no result"),
        };
        let (outcome, summary) = match (self.findings.total(), untold) {
            (0, 0) if self.untested => {
                (Outcome::Absent, format!("{} calls ran in their sandboxes ({level}), which were not tested", self.ran))
            }
            (0, 0) if self.runs > 0 => {
                let calls = self.within.0;
                let what = format!("all of it ran in its sandbox ({level}; self-test {test}), {calls} calls of agents");
                (Outcome::Passed, format!("{what}{network}{files}"))
            }
            (0, 0) => (
                Outcome::Passed,
                format!("{} calls ran in their sandboxes ({level}; self-test {test}){network}{files}", self.ran),
            ),
            // It failed in a way that does not tell.
            (0, open) => {
                (Outcome::Absent, format!("{} calls ran in their sandboxes, of {open} nothing is known", self.ran))
            }
            (wrong, _) => (Outcome::Failed, format!("{wrong} calls were not held as granted")),
        };
        let findings = self.findings.texts();
        any.then_some(Phase { name: "sandbox", outcome, standing: Standing::Enforced, summary, findings })
    }
}

/// What a row says that was learnt.
fn learnt(detail: &Value) -> Option<String> {
    let policy = detail.get("policy").and_then(Value::as_str)?;
    let number = |name: &str| detail.get(name).and_then(Value::as_u64);
    let count =
        |name: &str| number(name).map_or_else(|| format!("{name} not observed"), |count| format!("{count} {name}"));
    Some(format!("{policy} ({}, {})", count("paths"), count("hosts")))
}
