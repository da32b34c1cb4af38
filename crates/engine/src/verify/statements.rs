//! The statements that a session signed: each one that a row names, and those that its policy wants.
//!
//! Owns which of them count. Believes no name that a row did not give. Invariant: a statement that is handed on was there, was what its
//! digest says, was signed by the key in force at its row, and is about this session. Page: `spec/statements.md`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use writ_core::json::{self, Value};
use writ_core::{Digest, SessionId, regular_file};
use writ_evaluators::input::Statement as Named;
use writ_evidence::dsse::Envelope;
use writ_evidence::intoto::Statement;
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_evidence::tally::{Tally, listed};

use super::report::{Outcome, Phase, REQUIRED, Standing};
use crate::session::statements::{Attested, MAX_ENVELOPE, Word, is_name, subject_of};
use crate::steps::{LINK, Link};

/// Most statements that a report tells one by one.
const MOST: usize = 20;

/// The statements on record, checked one by one.
pub struct Statements {
    folder: PathBuf,
    session: Option<SessionId>,
    good: Vec<(u64, Attested)>,
    names: HashSet<String>,
    told: Vec<String>,
    count: u64,
    wrong: Tally,
}

impl Statements {
    /// Statements that lie in `folder`, about the session of that id.
    pub fn of(folder: &Path, session: Option<SessionId>) -> Self {
        let (good, names, told) = (Vec::new(), HashSet::new(), Vec::new());
        Self { folder: folder.to_owned(), session, good, names, told, count: 0, wrong: Tally::new() }
    }

    /// Takes the next row, and the key that signs there.
    pub fn row(&mut self, row: &Row, key: Option<&PublicKey>) {
        let Some(attested) = Attested::of(row) else { return };
        self.count += 1;
        match attested.and_then(|attested| self.check(&attested, key).map(|_statement| attested)) {
            Ok(attested) => {
                if self.told.len() < MOST {
                    let standing = if attested.standing == Word::Reported { ", reported by the agent" } else { "" };
                    self.told.push(format!("row {}: `{}` {}{standing}", row.sequence, attested.name, attested.kind));
                }
                self.names.insert(attested.name.clone());
                self.good.push((row.sequence, attested));
            }
            Err(why) => self.wrong.add(row.sequence, &why),
        }
    }

    fn check(&self, attested: &Attested, key: Option<&PublicKey>) -> Result<Statement<Value>, String> {
        let name = &attested.name;
        if !is_name(name) {
            return Err("its statement has a name that none can have".to_owned());
        }
        let envelope = self.envelope(attested)?;
        let keys: Vec<PublicKey> = key.cloned().into_iter().collect();
        let statement: Statement<Value> = envelope
            .verify_statement_of(&attested.kind, &keys)
            .map_err(|error| format!("the statement `{name}`: {error}"))?
            .into_payload();
        let about = self.session.as_ref().map(subject_of);
        if about.is_none_or(|about| !statement.subject().contains(&about)) {
            return Err(format!("the statement `{name}` is about another session"));
        }
        Ok(statement)
    }

    fn envelope(&self, attested: &Attested) -> Result<Envelope, String> {
        let path = self.folder.join(attested.file());
        let bytes = regular_file::read(&path, MAX_ENVELOPE)
            .map_err(|error| format!("the statement `{}` is not there: {error}", attested.name))?;
        if Digest::of(&bytes) != attested.digest {
            return Err(format!("the statement `{}` was changed", attested.name));
        }
        Envelope::parse(&bytes).map_err(|error| format!("the statement `{}`: {error}", attested.name))
    }

    /// What it comes to; nothing where there are none.
    pub fn phase(&self) -> Option<Phase> {
        if self.count == 0 {
            return None;
        }
        let (outcome, summary, findings) = if self.wrong.total() > 0 {
            (Outcome::Failed, "a statement is not what was recorded".to_owned(), self.wrong.texts())
        } else {
            let summary = format!("{} statements, each signed and about this session", self.count);
            (Outcome::Passed, summary, listed(self.told.clone(), self.count))
        };
        Some(Phase { name: "attestations", outcome, standing: Standing::Observed, summary, findings })
    }

    /// Whether what a policy wants is there; nothing where it wants nothing.
    pub fn required(&self, policy: &Value) -> Option<Phase> {
        let wanted: Vec<&str> =
            policy.get("requiredAttestations")?.as_array()?.iter().filter_map(Value::as_str).collect();
        if wanted.is_empty() {
            return None;
        }
        let (mut findings, mut reported) = (Vec::new(), 0);
        for name in &wanted {
            match self.newest(name) {
                Ok(Word::Observed) => {}
                Ok(Word::Reported) => reported += 1,
                Err(why) => findings.push(why),
            }
        }
        let (outcome, summary) = match (findings.len(), reported) {
            (0, 0) => (Outcome::Passed, format!("all {} are there", wanted.len())),
            (0, some) => {
                (Outcome::Passed, format!("all {} are there, {some} of them the agent's own word", wanted.len()))
            }
            (missing, _) => (Outcome::Failed, format!("{missing} of {} are not there", wanted.len())),
        };
        let standing = if reported > 0 { Standing::Reported } else { Standing::Observed };
        Some(Phase { name: REQUIRED, outcome, standing, summary, findings })
    }

    /// How the newest statement of a name is known, where it speaks for the step.
    fn newest(&self, name: &str) -> Result<Word, String> {
        let remedy = format!("`writ step run {name} -- COMMAND` makes it");
        let (row, attested) = self
            .good
            .iter()
            .rfind(|(_, attested)| attested.name == name)
            .ok_or_else(|| format!("`{name}`: no statement: {remedy}"))?;
        if attested.kind == LINK {
            let link = self.envelope(attested)?.unchecked_statement::<Link>();
            let code = link.map_err(|error| format!("`{name}`: {error}"))?.into_predicate().byproducts.return_value;
            if code != 0 {
                return Err(format!("`{name}`: the step of row {row} ended with {code}: {remedy} again"));
            }
        }
        Ok(attested.standing)
    }

    /// The statements by their names, as evaluators are shown them.
    pub fn named(&self) -> Result<Vec<Named>, String> {
        if self.wrong.total() > 0 {
            return Err("not every statement is what was recorded".to_owned());
        }
        let document = |(_, attested): &(u64, Attested)| {
            let envelope = self.envelope(attested)?;
            let document =
                json::parse_with(envelope.payload(), json::Limits::FOREIGN).map_err(|error| error.to_string())?;
            Ok(Named { name: attested.name.clone(), document })
        };
        self.good.iter().map(document).collect()
    }
}
