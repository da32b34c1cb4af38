//! What instances do with their keys, and what they and others serve in their name.

use writ_core::Timestamp;
use writ_core::json::{self, Value};
use writ_evidence::attestation::{Attestation, Draft};
use writ_evidence::registry::{Change, Registry};
use writ_verifier::MAX_REGISTRY;

use super::{INSTANCES, Made, SPELLINGS, World};
use crate::fakes::answers;
use crate::pool::{print, read_back};
use crate::reference::{Att, Deed, Disk, Doc, STATES, State, Web, done, legal};

impl World<'_> {
    pub fn new_key(&mut self) -> usize {
        self.next_key = (self.next_key + 1) % self.pool.keys.len();
        self.next_key
    }

    /// The name of some key, mostly one that there is.
    pub fn some_id(&mut self, at: usize) -> String {
        let issuer = &self.issuers[at];
        let active = issuer.doc.keys.iter().find(|key| key.state == State::Active);
        match (active, self.dice.below(10)) {
            (Some(active), 0..5) => active.id.clone(),
            (_, 5..9) => self.dice.pick(&issuer.doc.keys).id.clone(),
            _ => format!("{}-{}", issuer.name, self.dice.below(40)),
        }
    }

    pub fn some_deed(&mut self, at: usize) -> Deed {
        let (id, keys) = (self.some_id(at), self.issuers[at].doc.keys.len());
        match self.dice.below(8) {
            0 | 1 if keys < 30 => Deed::Publish(self.new_key()),
            2 => Deed::Plan(self.now + self.dice.below(100_000) as i64 - 10_000),
            3 | 4 => {
                let pending = self.issuers[at].doc.keys.iter().find(|key| key.state == State::Pending);
                Deed::Activate(
                    pending.filter(|_| id.ends_with(['1', '3', '5', '7', '9'])).map_or(id, |key| key.id.clone()),
                )
            }
            5 => Deed::Deprecate(id),
            6 => Deed::Retire(id),
            _ => Deed::Compromise(id),
        }
    }

    /// Does it to the crate's registry and to the model's, and publishes what came of it.
    pub fn deed(&mut self, at: usize, deed: &Deed) -> bool {
        let issuer = &mut self.issuers[at];
        let change = match deed.clone() {
            Deed::Publish(public) => Change::Publish { public: self.pool.public[public] },
            Deed::Plan(at) => Change::Plan { at: Timestamp::from_millis(at) },
            Deed::Activate(id) => Change::Activate { id },
            Deed::Deprecate(id) => Change::Deprecate { id },
            Deed::Retire(id) => Change::Retire { id },
            Deed::Compromise(id) => Change::Compromise { id },
        };
        let (old, registry) = (issuer.doc.clone(), issuer.registry.changed(&change, Timestamp::from_millis(self.now)));
        let Some(doc) = done(&old, deed, issuer.name, self.now) else {
            assert!(registry.is_err(), "{deed:?} on {old:?}");
            return false;
        };
        issuer.registry = registry.unwrap_or_else(|error| panic!("{deed:?} on {old:?}: {error}"));
        assert_eq!(read_back(self.pool, &issuer.registry), doc, "{deed:?}");
        assert!(doc.is_registry() && doc.version == old.version + 1);
        for key in &old.keys {
            let new = doc.key(&key.id).unwrap();
            assert_eq!(new.public, key.public);
            assert!(new.state == key.state || legal(key.state, new.state), "{deed:?} on {old:?}");
        }
        let printed = json::to_compact(&issuer.registry);
        assert_eq!(Registry::parse(printed.as_bytes()).as_ref(), Ok(&issuer.registry));
        issuer.doc = doc.clone();
        // §5.3: compromised keys may be left out.
        let hides = self.dice.chance(50);
        let keys = doc.keys.into_iter().filter(|key| !hides || key.state != State::Compromised).collect();
        issuer.published.push(Doc { version: doc.version, keys });
        true
    }

    /// One that was there before, or a new one.
    pub(super) fn attestation(&mut self) -> Made {
        let ending = self.attestations.iter().find(|made| made.att.expires_at == Some(self.now)).cloned();
        match ending.filter(|_| self.dice.chance(50)) {
            Some(made) => return made,
            None if self.attestations.len() > 3 && self.dice.chance(50) => {
                return self.dice.pick(&self.attestations).clone();
            }
            None => {}
        }
        let instance = self.dice.below(INSTANCES.len());
        let key_id = self.some_id(instance);
        let named = self.issuers[instance].doc.key(&key_id).map(|key| key.public);
        let signer =
            if self.dice.chance(85) { named } else { None }.unwrap_or_else(|| self.dice.below(self.pool.keys.len()));
        self.made += 1;
        let number = |value: u64| Value::Object([("n".to_owned(), Value::from(value))].into_iter().collect());
        let timestamp = format!("2026-05-01T14:30:00.{:09}Z", self.made);
        let mut draft = Draft::new(&number(self.made), &number(self.made % 5), "writ:test:1", timestamp);
        let expires_at = self.dice.chance(50).then(|| self.now + self.dice.below(30_000) as i64 - 2_000);
        draft.expires_at = expires_at.map(Timestamp::from_millis);
        let nonce = u128::from(self.dice.roll()) << 64 | u128::from(self.dice.roll());
        draft.nonce = self.dice.chance(60).then(|| if self.dice.chance(30) { nonce >> 4 } else { nonce });
        draft.chain_id = Some("chain-1".to_owned());
        let pending = draft.pend(&key_id, SPELLINGS[instance][self.dice.below(3)]);
        let signature = self.pool.keys[signer].sign(pending.payload().as_bytes()).unwrap();
        let text = pending.signed(&signature.try_into().unwrap());
        let bent = self.dice.chance(8);
        let text = if bent { text.replace("chain-1", "chain-2") } else { text };
        let real = Attestation::parse(text.as_bytes()).unwrap();
        let nonce = draft.nonce.map(|nonce| format!("{nonce:032x}"));
        let made = Made { att: Att { instance, key_id, signer: (!bent).then_some(signer), expires_at, nonce }, real };
        if self.attestations.len() < 60 {
            self.attestations.push(made.clone());
        } else {
            let place = self.dice.below(60);
            self.attestations[place] = made.clone();
        }
        made
    }

    pub fn webs(&mut self, att: &Att, real: &Attestation) -> (Web<Doc>, Web<bool>) {
        let web = self.registry_web(att.instance);
        self.serve_registry(att.instance, &web);
        let copy = match self.dice.below(12) {
            0 => Web::Status(*self.dice.pick(&[410, 410, 404, 302, 500, 503])),
            1 => Web::Garbage,
            2 => Web::Serves(false),
            3 | 4 => Web::Flaky(self.dice.below(4) as u8, true),
            _ => Web::Serves(true),
        };
        let other = || real.canonical().replace("chain-", "chains-");
        let body = |same: &bool| if *same { format!(" {}\n", real.canonical()) } else { other() }.into_bytes();
        let url = format!("{}/.well-known/attestations/{}.json", INSTANCES[att.instance], real.id());
        let answers = answers(&copy, body, b"{\"output\": [".to_vec());
        self.net.answers.borrow_mut().insert(url, answers);
        (web, copy)
    }

    pub fn serve_registry(&mut self, at: usize, web: &Web<Doc>) {
        let (name, pool) = (self.issuers[at].name, self.pool);
        // Something else, or what is right and too large by one byte.
        let mut garbage = b"<html>".to_vec();
        if self.dice.chance(3) {
            garbage = print(pool, name, self.issuers[at].published.last().unwrap());
            garbage.resize(MAX_REGISTRY + 1, b' ');
        }
        let answers = answers(web, |doc| print(pool, name, doc), garbage);
        let mut addresses = self.net.answers.borrow_mut();
        addresses.clear();
        addresses.insert(format!("{}/.well-known/recourse-keys.json", INSTANCES[at]), answers);
    }

    pub fn registry_web(&mut self, at: usize) -> Web<Doc> {
        let honest = self.issuers[at].published.last().unwrap().clone();
        match self.dice.below(20) {
            0 => Web::Status(*self.dice.pick(&[404, 301, 410, 500, 502, 204])),
            1 => Web::Garbage,
            2 | 3 => Web::Flaky(self.dice.below(4) as u8, honest),
            4..7 => Web::Serves(self.forged(at)),
            _ => Web::Serves(honest),
        }
    }

    /// What somebody serves who holds the instance's address and wants an old or another key believed.
    fn forged(&mut self, at: usize) -> Doc {
        let published = &self.issuers[at].published;
        let mut doc = match &self.reference.disk[at] {
            Disk::Holds(cached) if self.dice.chance(60) => cached.doc.clone(),
            _ => published.last().unwrap().clone(),
        };
        let old = self.dice.pick(published).clone();
        if self.dice.chance(20) {
            return old;
        }
        if self.dice.chance(70) {
            doc.version += 1 + if self.dice.chance(10) { 500 } else { 0 };
        }
        if self.dice.chance(15) {
            // Another history from some point on.
            doc.keys = old.keys.clone();
        }
        let place = self.dice.below(doc.keys.len().max(1));
        let (state, public) = (*self.dice.pick(&STATES), self.dice.below(self.pool.keys.len()));
        match (self.dice.below(6), doc.keys.get_mut(place)) {
            (0, Some(key)) => key.state = state,
            (1, Some(key)) => key.public = public,
            (2, Some(key)) => key.until = Some(self.now),
            (3, Some(_)) => {
                doc.keys.remove(place);
            }
            (4, _) => {
                // A key that was withdrawn, or one that is yet to come, or one twice.
                let known = self.issuers[at].doc.keys.clone();
                let mut key = self.dice.pick(&known).clone();
                if self.dice.chance(30) {
                    key.id = format!("{}-{}", self.issuers[at].name, known.len() + 1);
                }
                if self.dice.chance(50) {
                    key.public = public;
                }
                if self.dice.chance(70) {
                    key.state = state;
                }
                if self.dice.chance(90) {
                    doc.keys.retain(|other| other.id != key.id);
                }
                doc.keys.push(key);
            }
            _ => doc.keys.reverse(),
        }
        doc
    }
}
