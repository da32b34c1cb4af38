//! Which key signs for which rows, who introduced it, and what keeps it.
//!
//! Owns the keys that checkpoints and statements are checked with. Believes no key that the machine's own, as it is pinned, did not introduce
//! at this very row, unless the verifier brought that key. Invariant: a record whose key was lost on the way is never plainly verified.
//! Page: `spec/notary.md`.

use writ_core::json;
use writ_core::{Custody, Digest};
use writ_evidence::custody::{Introduction, Kept, Keyring};
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_evidence::tally::Tally;

use super::report::{CUSTODY, Outcome, Phase, Standing};
use crate::session::custody::Named;
use crate::session::rows::{BESIDE, CUSTODY as CHANGED, event};
use crate::session::state::{Held, State};

/// The keys of a record, as its rows introduce them.
pub struct Keys {
    origin: String,
    /// The key that the verifier pinned, or the folder brings.
    root: Option<PublicKey>,
    ring: Keyring,
    /// From which row on, what keeps the key, and which it is.
    stretches: Vec<(u64, Custody, Option<Digest>)>,
    /// How many rows another process wrote than the one whose key signs.
    beside: u64,
    wrong: Tally,
}

impl Keys {
    /// Those of a session, under the key that it is checked with.
    pub fn of(origin: Option<String>, root: Option<&PublicKey>) -> Self {
        let origin = origin.unwrap_or_default();
        Self {
            origin,
            root: root.cloned(),
            ring: Keyring::default(),
            stretches: Vec::new(),
            beside: 0,
            wrong: Tally::default(),
        }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: &Row) {
        if event(row) == BESIDE {
            let rows: Option<[u64; 2]> = row.detail.get("rows").and_then(|rows| json::from_value(rows).ok());
            self.beside += rows.map_or(0, |[from, to]| to.saturating_sub(from) + 1);
        }
        let changes = event(row) == CHANGED;
        let named = match row.detail.get("custody").map(json::from_value::<Named>) {
            Some(Ok(named)) if changes || row.sequence == 0 => named,
            None if row.sequence == 0 => Named { kept: Custody::File, key: None, before: None, signature: None },
            None if !changes => return,
            Some(_) | None => {
                self.wrong.add(row.sequence, "what it says of the key that signs cannot be read");
                return;
            }
        };
        if let Err(why) = self.introduce(row, &named) {
            self.wrong.add(row.sequence, why);
        }
    }

    fn introduce(&mut self, row: &Row, named: &Named) -> Result<(), &'static str> {
        let before = self.stretches.last().and_then(|(_, _, key)| *key);
        if named.before != before {
            return Err("it names another key than the one that signed before");
        }
        let key = match &named.key {
            None if named.kept == Custody::File || named.kept == Custody::OtherUser => None,
            None => return Err("it names no key"),
            Some(bytes) => Some(PublicKey::from_der(&bytes.0).map_err(|_bad| "it names no key that can be read")?),
        };
        let root = self.root.as_ref();
        let id = key.as_ref().map(PublicKey::key_id);
        let held = match (id, root) {
            // The machine's own key, in its file, is what a state says nothing of.
            (None, _) if named.kept == Custody::File => None,
            (None, root) => root.map(|root| Held { kept: named.kept, key: root.key_id() }),
            (Some(key), _) => Some(Held { kept: named.kept, key }),
        };
        let state = State::from_detail(&row.detail).and_then(|state| state.custody);
        if root.is_some() && state != held {
            return Err("its state names another key than it introduces");
        }
        self.stretches.push((row.sequence, named.kept, held.map(|held| held.key)));
        let Some(root) = root else { return Ok(()) };
        let Some(key) = key else {
            self.ring.introduce(row.sequence, root.clone(), Kept { custody: named.kept, successor: None });
            return Ok(());
        };
        let introduction = Introduction {
            origin: &self.origin,
            row: row.sequence,
            after: row.prev_hash,
            custody: named.kept,
            key: key.key_id(),
            before: named.before,
        };
        // The verifier may have pinned the key itself: who introduces it is then no matter.
        let pinned = *root == key;
        let signature = named.signature.as_ref().map(|bytes| bytes.0.as_slice()).unwrap_or_default();
        if !pinned && introduction.verify(root, signature).is_err() {
            return Err("the key that it introduces is not signed for by the one that the record is checked with");
        }
        let named_root = row.detail.get("key").and_then(json::Value::as_str).and_then(|id| Digest::parse(id).ok());
        let successor = if pinned { named_root } else { Some(root.key_id()) };
        self.ring.introduce(row.sequence, key, Kept { custody: named.kept, successor });
        Ok(())
    }

    /// The key that signs for what was read so far.
    pub fn now(&self) -> Option<&PublicKey> {
        self.ring.at(u64::MAX).map(|(key, _)| key)
    }

    /// All of them.
    pub const fn ring(&self) -> &Keyring {
        &self.ring
    }

    /// Whether the machine's own key signed all the time, in its file.
    pub fn of_file(&self) -> bool {
        self.stretches.iter().all(|(_, kept, _)| *kept == Custody::File)
    }

    /// Whether another key than the one that is trusted signed at some time.
    pub fn others(&self) -> bool {
        let root = self.root.as_ref().map(PublicKey::key_id);
        self.stretches.iter().any(|(_, _, key)| key.is_some() && *key != root)
    }

    /// What keeps the keys; nothing where it was the machine's file all the time.
    pub fn phase(&self) -> Option<Phase> {
        let phase = |outcome, summary, findings| {
            Some(Phase { name: CUSTODY, outcome, standing: Standing::Observed, summary, findings })
        };
        if self.wrong.total() > 0 {
            return phase(Outcome::Failed, "a key signs that nobody introduced".to_owned(), self.wrong.texts());
        }
        let strongest = self.stretches.iter().map(|(_, kept, _)| *kept).max()?;
        if strongest == Custody::File {
            return None;
        }
        let (_, last, key) = self.stretches.last()?;
        let mut findings = Tally::default();
        for (row, kept, key) in self.stretches.iter().skip(1) {
            let key = key.map(|key| format!(", key {key}")).unwrap_or_default();
            findings.apart(format!("row {row}: from here on `{kept}`{key}"));
        }
        if self.beside > 0 {
            findings.apart(format!("{} rows were written by other processes than the notary", self.beside));
        }
        // Only from the machine's file to something better is no loss.
        let breaks = self.stretches.windows(2).filter(|pair| !matches!(pair, [(_, Custody::File, _), _])).count();
        let key = key.map(|key| format!(" (key {key})")).unwrap_or_default();
        let worth = last.worth();
        if breaks > 0 {
            let summary = format!("custody broke {breaks} times; now `{last}`{key}: {worth}");
            return phase(Outcome::Absent, summary, findings.texts());
        }
        phase(Outcome::Passed, format!("`{last}`{key}: {worth}"), findings.texts())
    }
}
