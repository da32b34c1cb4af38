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

use super::phase::{Outcome, Phase, Standing};
use super::phase_names::REQUIRED;
use super::session_id;
use super::speaking::Functionaries;
use crate::governing::rule_name;
use crate::session::rows::event;
use crate::session::statements::{Attested, MAX_ENVELOPE, Word, is_name, place_of, subject_of, unnamed};
use crate::session::{MAX_RULE, Rules};
use crate::steps::imported::{Imported, is_of_another};
use crate::steps::{LINK, Link, told};
use crate::turns::predicate::PREDICATE_TYPE;
use crate::turns::{self, gathered};

/// Most statements that a report tells one by one.
const MOST: usize = 20;

/// One that counts.
struct Good {
    row: u64,
    attested: Attested,
    /// Of a turn's statement, whose turn it is, and what it is called among that agent's own.
    turn: Option<(String, String)>,
    /// Where it lies in the folder.
    file: String,
    /// Of what somebody else signed, their key.
    signer: Option<PublicKey>,
    /// Of that, the step that it names itself.
    step: Option<String>,
}

/// A statement that a policy wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Its name.
    pub name: String,
    /// Who else's counts beside the session's own.
    pub by: Functionaries,
}

/// Why evaluators are not shown the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotShown {
    /// They are not what was recorded.
    Wrong(String),
    /// Which of them count is not known: nobody whom the verifier trusts signed the policy that names functionaries.
    Doubted,
}

/// How what a wished statement says is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// As the session says.
    Told(Word),
    /// A functionary signed it.
    Signed,
    /// The same, where nobody whom the verifier trusts signed the policy that names the functionary.
    Doubted,
}

impl Good {
    /// Whether it counts: the session signed it, or a functionary did.
    fn counts_by(&self, by: &Functionaries) -> bool {
        self.signer.as_ref().is_none_or(|key| by.have(key))
    }

    /// Whether it is of the step that it is called.
    fn is_of_its_name(&self) -> bool {
        self.step.as_ref().is_none_or(|step| *step == self.attested.name)
    }

    /// How it is known.
    const fn known(&self) -> Known {
        if self.signer.is_some() { Known::Signed } else { Known::Told(self.attested.standing) }
    }
}

/// The statements on record, checked one by one.
pub struct Statements {
    folder: PathBuf,
    session: Option<String>,
    genesis: Digest,
    good: Vec<Good>,
    digests: HashSet<Digest>,
    /// What imported envelopes hold, and whose key signed it.
    payloads: HashSet<(Digest, String)>,
    told: Vec<String>,
    count: u64,
    wrong: Tally,
    /// The policy's rules in files of their own, as the newest row that names a policy has them.
    rules: Rules,
    /// How many rows checkpoints cover.
    covered: u64,
}

/// Why there is no text of a rule.
#[derive(Debug)]
pub enum NoRule {
    /// No row names it.
    NeverRead(String),
    /// A row names it, and the session does not keep what it names.
    Gone { digest: Digest, why: String },
}

impl Statements {
    /// Statements that lie in `folder`.
    pub fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            session: None,
            genesis: Digest::ZERO,
            good: Vec::new(),
            digests: HashSet::new(),
            payloads: HashSet::new(),
            told: Vec::new(),
            count: 0,
            wrong: Tally::new(),
            rules: Rules::new(),
            covered: 0,
        }
    }

    /// The record is read, and its checkpoints cover so many rows. A row behind them anybody can have written who writes to the folder: what
    /// it names does not count. Of a record that nobody signed all counts alike: that is said of it as a whole.
    pub const fn signed_for(&mut self, rows: u64) {
        self.covered = if rows == 0 { u64::MAX } else { rows };
    }

    /// Those that count.
    fn counting(&self) -> impl DoubleEndedIterator<Item = &Good> {
        self.good.iter().filter(|good| good.row < self.covered)
    }

    /// Takes the next row, and the key that signs there.
    pub fn row(&mut self, row: &Row, key: Option<&PublicKey>) {
        if row.sequence == 0 {
            self.session = session_id(row).map(|id| id.to_string());
            self.genesis = row.entry_hash;
        }
        if row.sequence == 0 || event(row) == "policy-accepted" {
            self.rules = row.detail.get("rules").and_then(|rules| json::from_value(rules).ok()).unwrap_or_default();
        }
        // Those of turns have a phase of their own, which checks them.
        if let Some(Ok(turn)) = turns::named::Named::of(row) {
            let file = format!("{}/{}", turns::FOLDER, turn.name);
            let name = turn.name.trim_end_matches(".json").to_owned();
            let whose = (gathered::agent(row).to_owned(), turns::name::stem(turn.turn, turn.part));
            let kind = PREDICATE_TYPE.to_owned();
            let attested =
                Attested { name, kind, digest: turn.attestation, standing: Word::Observed, uncopied: turn.unpublished };
            self.good.push(Good { row: row.sequence, attested, turn: Some(whose), file, signer: None, step: None });
        }
        let Some(attested) = Attested::of(row) else { return };
        self.count += 1;
        let imported = Imported::of(row);
        let checked = attested.and_then(|attested| match &imported {
            Some(imported) => self.check_imported(&attested, imported).map(|(payload, step)| {
                self.payloads.insert((payload, imported.key.clone()));
                (attested, step)
            }),
            None => self.check(&attested, row, key).map(|_statement| (attested, None)),
        });
        match checked {
            Ok((attested, step)) => {
                if self.told.len() < MOST {
                    let standing = match &imported {
                        Some(imported) => format!(", {}", imported.told()),
                        None => attested.standing.told().to_owned(),
                    };
                    self.told.push(format!("row {}: `{}` {}{standing}", row.sequence, attested.name, attested.kind));
                }
                self.digests.insert(attested.digest);
                let file = attested.file();
                let signer = imported.as_ref().and_then(Imported::key);
                self.good.push(Good { row: row.sequence, attested, turn: None, file, signer, step });
            }
            Err(why) => self.wrong.add(row.sequence, &why),
        }
    }

    /// Checks the statement that a row names.
    fn check(&self, attested: &Attested, row: &Row, key: Option<&PublicKey>) -> Result<Statement<Value>, String> {
        let name = &attested.name;
        if !is_name(name) {
            return Err("its statement has a name that none can have".to_owned());
        }
        let envelope = self.envelope(attested, &attested.file())?;
        let keys: Vec<PublicKey> = key.cloned().into_iter().collect();
        let statement: Statement<Value> = envelope
            .verify_statement_of(&attested.kind, &keys)
            .map_err(|error| format!("the statement `{name}`: {error}"))?
            .into_payload();
        let about = self.session.as_ref().map(|session| subject_of(session, self.genesis));
        if about.is_none_or(|about| !statement.subject().contains(&about)) {
            return Err(format!("the statement `{name}` is about another session"));
        }
        let predicate = statement.predicate();
        let byproduct = |name: &str| predicate.get("byproducts").and_then(|byproducts| byproducts.get(name));
        let own = match attested.kind.as_str() {
            // Older links do not say in which row.
            LINK => {
                let here = byproduct("row").is_none_or(|told| told.as_u64() == Some(row.sequence));
                here && predicate.get("name").and_then(Value::as_str) == Some(name)
            }
            _ => statement.subject().contains(&place_of(name, row.prev_hash)),
        };
        if !own {
            return Err(format!("the statement `{name}` is of another step, or was made elsewhere in the record"));
        }
        // A step says itself whose word it is; what is no step the agent alone says.
        let word = match (attested.kind.as_str(), byproduct("standing")) {
            (LINK, None) => Some(Word::Observed),
            (LINK, Some(told)) => json::from_value(told).ok(),
            _ => Some(Word::Reported),
        };
        if word != Some(attested.standing) {
            return Err(format!("the statement `{name}` is known in another way than its row says"));
        }
        self.once(attested)?;
        Ok(statement)
    }

    /// Checks a statement of somebody else's: it is about what they say, and signed by the key that its row names. Gives the digest of what
    /// was signed, and the step that it names.
    fn check_imported(&self, attested: &Attested, imported: &Imported) -> Result<(Digest, Option<String>), String> {
        let name = &attested.name;
        if !is_name(name) || attested.standing != Word::Reported {
            return Err("its statement is not as one of somebody else's is".to_owned());
        }
        let envelope = self.envelope(attested, &attested.file())?;
        let statement = imported.check(&envelope).map_err(|error| format!("the statement `{name}`: {error}"))?;
        if statement.predicate_type() != attested.kind {
            return Err(format!("the statement `{name}` is of another type than its row says"));
        }
        let session = self.session.as_deref().map(SessionId::new);
        if session.is_none_or(|session| is_of_another(&statement, &session, self.genesis)) {
            return Err(format!("the statement `{name}` is about another session"));
        }
        let payload = Digest::of(envelope.payload());
        if self.payloads.contains(&(payload, imported.key.clone())) {
            return Err(format!("the statement `{name}` is there in another envelope already"));
        }
        let step = told::step(&attested.kind, statement.predicate()).map(str::to_owned);
        self.once(attested).map(|()| (payload, step))
    }

    fn once(&self, attested: &Attested) -> Result<(), String> {
        if self.digests.contains(&attested.digest) {
            return Err(format!("the statement `{}` is named twice", attested.name));
        }
        Ok(())
    }

    fn envelope(&self, attested: &Attested, file: &str) -> Result<Envelope, String> {
        let path = self.folder.join(file);
        let bytes = regular_file::read(&path, MAX_ENVELOPE)
            .map_err(|error| format!("the statement `{}` is not there: {error}", attested.name))?;
        if Digest::of(&bytes) != attested.digest {
            return Err(format!("the statement `{}` was changed", attested.name));
        }
        Envelope::parse(&bytes).map_err(|error| format!("the statement `{}`: {error}", attested.name))
    }

    /// What it comes to; nothing where there are none.
    pub fn phase(&self) -> Option<Phase> {
        let strays = unnamed(&self.folder, &self.digests);
        if self.count == 0 && strays.is_empty() {
            return None;
        }
        let (outcome, summary, findings) = if self.wrong.total() > 0 {
            (Outcome::Failed, "a statement is not what was recorded".to_owned(), self.wrong.texts())
        } else if !strays.is_empty() {
            let summary = "files lie among the statements that no row names: they do not count".to_owned();
            let count = strays.len() as u64;
            (Outcome::Absent, summary, listed(strays.into_iter().take(MOST).collect(), count))
        } else {
            let summary = format!("{} statements, each signed and about this session", self.count);
            (Outcome::Passed, summary, listed(self.told.clone(), self.count))
        };
        Some(Phase { name: "attestations", outcome, standing: Standing::Observed, summary, findings })
    }

    /// Whether what policies want is there; nothing where they want nothing.
    pub fn required(&self, wanted: &[Wish]) -> Option<Phase> {
        if wanted.is_empty() {
            return None;
        }
        let (mut findings, mut missing, mut doubted, mut reported, mut ran, mut signed) = (Vec::new(), 0, 0, 0, 0, 0);
        for wish in wanted {
            match self.newest(wish) {
                Ok((known, how)) => {
                    reported += usize::from(known == Known::Told(Word::Reported));
                    ran += usize::from(known == Known::Told(Word::Runner));
                    signed += usize::from(known == Known::Signed);
                    doubted += usize::from(known == Known::Doubted);
                    findings.push(how);
                }
                Err(why) => {
                    missing += 1;
                    findings.push(why);
                }
            }
        }
        let mut words = Vec::new();
        if ran > 0 {
            words.push(format!("{ran} of them as the processes tell that ran them"));
        }
        if signed > 0 {
            words.push(format!("{signed} of them as functionaries say who signed them"));
        }
        if reported > 0 {
            words.push(format!("{reported} of them the agent's own word"));
        }
        let (outcome, summary) = if missing > 0 {
            (Outcome::Failed, format!("{missing} of {} are not there", wanted.len()))
        } else if doubted > 0 {
            let whose =
                "functionaries signed whom a policy names that nobody you trust signed: `writ keys trust` its signer";
            (Outcome::Absent, format!("{doubted} of {} {whose}", wanted.len()))
        } else {
            let told = words.iter().map(|words| format!(", {words}")).collect::<String>();
            (Outcome::Passed, format!("all {} are there{told}", wanted.len()))
        };
        let standing = if words.is_empty() { Standing::Observed } else { Standing::Reported };
        Some(Phase { name: REQUIRED, outcome, standing, summary, findings })
    }

    /// How the newest statement of a name is known, and what it says, where it speaks for the step. What Writ saw speaks before what others
    /// say, and the agent last: its word makes no step good that failed.
    fn newest(&self, Wish { name, by }: &Wish) -> Result<(Known, String), String> {
        let remedy = format!("`writ step run {name} -- COMMAND` makes it");
        let named = || self.counting().filter(|good| good.attested.name == *name);
        let of = |known: Known| named().rfind(|good| good.known() == known && good.counts_by(by));
        let order =
            [Known::Told(Word::Observed), Known::Told(Word::Runner), Known::Signed, Known::Told(Word::Reported)];
        let strange = || named().rfind(|good| !good.counts_by(by));
        let none = || match strange().and_then(|good| Some((good.row, good.signer.as_ref()?.key_id()))) {
            Some((row, key)) => {
                format!("`{name}`: row {row} has one that {key} signed, who is no functionary of the policy: {remedy}")
            }
            None => format!("`{name}`: no statement: {remedy}"),
        };
        let good = order.into_iter().find_map(of).ok_or_else(none)?;
        let (Good { row, attested, file, signer, step, .. }, known) = (good, good.known());
        let how = match signer {
            Some(key) => format!(", signed by the functionary {}", key.key_id()),
            None => attested.standing.told().to_owned(),
        };
        if signer.is_none() && attested.kind == LINK {
            let link = self.envelope(attested, file)?.unchecked_statement::<Link>();
            let link = link.map_err(|error| format!("`{name}`: {error}"))?.into_predicate();
            let code = link.byproducts.return_value;
            if code != 0 {
                return Err(format!("`{name}`: the step of row {row} ended with {code}: {remedy} again"));
            }
            return Ok((known, format!("`{name}`: row {row}, `{}` ended with 0{how}", link.shown())));
        }
        if let Some(other) = step.as_ref().filter(|_| signer.is_some() && !good.is_of_its_name()) {
            return Err(format!("`{name}`: the statement of row {row} is of `{other}`: {remedy}"));
        }
        let statement = self.envelope(attested, file)?.unchecked_statement::<Value>();
        let statement = statement.map_err(|error| format!("`{name}`: {error}"))?;
        if let Some(why) = told::failure(&attested.kind, statement.predicate()) {
            return Err(format!("`{name}`: the statement of row {row}: {why}: {remedy} again"));
        }
        let known = if signer.is_some() && by.doubted() { Known::Doubted } else { known };
        Ok((known, format!("`{name}`: row {row}, {}{how}", attested.kind)))
    }

    /// The text of a rule that the policy, or a layer of it, names as a file, as it was when the policy was accepted.
    pub fn rule(&self, layer: Option<&str>, file: &str) -> Result<String, NoRule> {
        let digest = *self.rules.get(&rule_name(layer, file)).ok_or_else(|| {
            NoRule::NeverRead(format!(
                "`{file}` could not be read when the policy was accepted, and the record does not hold it"
            ))
        })?;
        let gone = |why: String| NoRule::Gone { digest, why };
        let kept = self.folder.join("policies").join(digest.hex());
        let bytes = regular_file::read(&kept, MAX_RULE).map_err(|error| gone(format!("`{file}`: {error}")))?;
        if Digest::of(&bytes) != digest {
            return Err(gone(format!("`{file}` was changed where the session keeps it")));
        }
        String::from_utf8(bytes).map_err(|_no_text| gone(format!("`{file}` is no text")))
    }

    /// The statements by their names, as evaluators are shown them: the session's own, and those of functionaries.
    pub fn named(&self, by: &Functionaries) -> Result<Vec<Named>, NotShown> {
        self.shown(by, &|_good| Some(None))
    }

    /// Those of these agents' turns, and of steps whose names begin with `prefix`: each under its own name, and under the one that it has
    /// among them alone.
    pub fn of_agents(&self, agents: &[&str], prefix: Option<&str>, by: &Functionaries) -> Result<Vec<Named>, NotShown> {
        self.shown(by, &|good| match &good.turn {
            Some((agent, stem)) => agents.contains(&agent.as_str()).then(|| Some(stem.clone())),
            None => good.attested.name.strip_prefix(prefix?).map(|own| Some(own.to_owned())),
        })
    }

    /// How many of these agents' turns there are statements of.
    pub fn count_of(&self, agents: &[&str]) -> u64 {
        let of = |good: &&Good| good.turn.as_ref().is_some_and(|(agent, _)| agents.contains(&agent.as_str()));
        self.counting().filter(of).count() as u64
    }

    fn shown(
        &self,
        by: &Functionaries,
        also: &dyn Fn(&Good) -> Option<Option<String>>,
    ) -> Result<Vec<Named>, NotShown> {
        if self.wrong.total() > 0 {
            return Err(NotShown::Wrong("not every statement is what was recorded".to_owned()));
        }
        if by.doubted() && self.counting().any(|good| good.signer.is_some() && good.counts_by(by)) {
            return Err(NotShown::Doubted);
        }
        let counting = self.counting().filter(|good| good.counts_by(by) && good.is_of_its_name());
        let document = |(Good { attested, file, .. }, also): (&Good, Option<String>)| {
            let envelope = self.envelope(attested, file)?;
            let document =
                json::parse_with(envelope.payload(), json::Limits::FOREIGN).map_err(|error| error.to_string())?;
            Ok(Named { name: attested.name.clone(), also, document })
        };
        let all: Result<_, String> = counting.filter_map(|good| Some((good, also(good)?))).map(document).collect();
        all.map_err(NotShown::Wrong)
    }
}
