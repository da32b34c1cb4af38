//! One life: two instances, one verifier, and everything that can happen to them.

mod between;
mod issuers;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, mem};

use tempfile::TempDir;
use writ_core::Timestamp;
use writ_core::json::{self, Limits, Object, Value};
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::Registry;
use writ_verifier::{
    Cache, Config, Copy, Discarded, Event, Instance, Mode, Nonces, Refusal, StateError, Verified, Verifier, What,
};

use crate::dice::Dice;
use crate::fakes::{Net, Notes};
use crate::pool::{Pool, read_back, state};
use crate::reference::{Answer, Att, Cached, Deed, Disk, Doc, Reference, Settings, State, reachable};

const INSTANCES: [&str; 2] = ["https://a.example", "https://b.example:8443"];
const SPELLINGS: [[&str; 3]; 2] = [
    ["https://a.example", "https://A.Example", "https://a.example:443"],
    ["https://b.example:8443", "https://B.example:8443", "https://b.EXAMPLE:8443"],
];

/// How often each answer was given.
#[derive(Default, Debug)]
pub struct Tally(pub BTreeMap<&'static str, u64>);

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// An instance: the registry of the crate beside the model's, and everything it ever published.
struct Issuer {
    name: &'static str,
    registry: Registry,
    doc: Doc,
    published: Vec<Doc>,
}

/// What an attestation is, and what it says.
#[derive(Clone)]
struct Made {
    att: Att,
    real: Attestation,
}

/// The furthest that an instance's keys were seen in a verifier's cache since it was last reset.
#[derive(Default)]
struct Watch {
    version: u64,
    keys: BTreeMap<String, (usize, State)>,
}

pub struct World<'a> {
    pool: &'a Pool,
    dice: Dice,
    now: i64,
    made: u64,
    issuers: Vec<Issuer>,
    attestations: Vec<Made>,
    net: &'static Net,
    notes: &'static Notes,
    cache: Cache,
    verifier: Verifier<&'static Net, &'static Notes>,
    mode: Mode,
    settings: Settings,
    reference: Reference,
    backups: Vec<(usize, Vec<u8>, Disk)>,
    watches: Vec<Watch>,
    /// What `inspect` saw last.
    inspected: Vec<Option<(Option<Vec<u8>>, Disk)>>,
    used: HashSet<(usize, String)>,
    next_key: usize,
    _folder: TempDir,
}

impl<'a> World<'a> {
    pub fn new(pool: &'a Pool, seed: u64) -> Self {
        let mut dice = Dice(seed);
        // What is flushed to memory is flushed fast.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
        let folder = TempDir::new_in(place).unwrap();
        let settings = Settings {
            trusted: dice.pick(&[vec![], vec![], vec![0], vec![0, 1]]).clone(),
            ttl: *dice.pick(&[0, 1_000, 60_000, 86_400_000]),
            cross_check: dice.chance(40),
            retries: dice.below(3) as u8,
        };
        let mode = *dice.pick(&[Mode::Ignore, Mode::Log, Mode::Verify, Mode::Require, Mode::Verify, Mode::Require]);
        let trusted =
            settings.trusted.iter().map(|at| Instance::parse(SPELLINGS[*at][dice.below(3)]).unwrap()).collect();
        let config = Config {
            mode,
            trusted_instances: trusted,
            key_cache_ttl: Duration::from_millis(settings.ttl.unsigned_abs()),
            cross_check: settings.cross_check,
            retries: settings.retries,
        };
        let (net, notes): (&Net, &Notes) = (Box::leak(Box::default()), Box::leak(Box::default()));
        let cache = Cache::at(folder.path().join("registries"));
        let nonces = Nonces::at(folder.path().join("nonces"));
        let verifier = Verifier::new(config, net, cache.clone(), nonces, notes);
        let now = 1_800_000_000_000;
        let issuers = ["a", "b"].map(|name| Issuer {
            name,
            registry: Registry::empty(name, Timestamp::from_millis(now)),
            doc: Doc { version: 0, keys: Vec::new() },
            published: Vec::new(),
        });
        let next_key = dice.below(pool.keys.len());
        let mut world = Self {
            pool,
            dice,
            now,
            made: 0,
            issuers: issuers.into(),
            attestations: Vec::new(),
            net,
            notes,
            cache,
            verifier,
            mode,
            settings,
            reference: Reference::new(INSTANCES.len()),
            backups: Vec::new(),
            watches: INSTANCES.iter().map(|_| Watch::default()).collect(),
            inspected: vec![None; INSTANCES.len()],
            used: HashSet::new(),
            next_key,
            _folder: folder,
        };
        for at in 0..INSTANCES.len() {
            let public = world.new_key();
            assert!(world.deed(at, &Deed::Publish(public)));
            assert!(world.deed(at, &Deed::Activate(format!("{}-1", world.issuers[at].name))));
        }
        world
    }

    pub fn step(&mut self, tally: &mut Tally) {
        let at = self.dice.below(INSTANCES.len());
        match self.dice.below(100) {
            0..15 => {
                let deed = self.some_deed(at);
                tally.count(if self.deed(at, &deed) { "deed" } else { "illegal deed" });
            }
            15..25 => self.jump(),
            25..29 => self.meddle(at),
            29..33 => self.force(at, tally),
            33..60 => self.verify(tally),
            _ => self.admit(tally),
        }
        for at in 0..INSTANCES.len() {
            self.inspect(at);
        }
    }

    fn force(&mut self, at: usize, tally: &mut Tally) {
        let web = self.registry_web(at);
        self.serve_registry(at, &web);
        let path = self.path(at);
        let before = fs::read(&path).ok();
        *self.notes.unchanged.borrow_mut() = Some((path.clone(), before.clone()));
        let instance = Instance::parse(INSTANCES[at]).unwrap();
        let operator = self.dice.chance(50).then_some("op");
        let now = Timestamp::from_millis(self.now);
        let (disk, events) = (self.reference.disk[at].clone(), self.notes.events.take().len());
        assert_eq!(events, 0);
        self.notes.fails.set(self.dice.chance(20));
        let real = self.verifier.force_refresh(&instance, operator, Some("restored"), now);
        let expected = self.reference.force(at, &self.settings, &web, self.now);
        *self.notes.unchanged.borrow_mut() = None;
        let events = self.notes.events.take();
        let recorded = !self.notes.fails.take();
        if let Some((discarded, accepted)) = expected.filter(|_| recorded) {
            let discarded = match discarded {
                None => Discarded::None,
                Some(None) => Discarded::Unreadable,
                Some(Some(version)) => Discarded::Version(version),
            };
            assert_eq!(real.unwrap(), (discarded, accepted));
            let what = What::ForceRefresh {
                instance,
                operator: operator.map(str::to_owned),
                discarded,
                accepted,
                justification: Some("restored".to_owned()),
            };
            assert_eq!(events, [Event { at: now, what }]);
            assert!(events[0].is_security());
            self.forget(at);
            tally.count("forced");
        } else {
            self.reference.disk[at] = disk;
            assert!(real.is_err() && events.is_empty());
            assert_eq!(fs::read(&path).ok(), before);
        }
        assert_eq!(self.net.requests.take(), mem::take(&mut self.reference.requests));
    }

    fn verify(&mut self, tally: &mut Tally) {
        let Made { att, real } = self.attestation();
        let (web, copy) = self.webs(&att, &real);
        let (once, now) = (self.dice.chance(50), Timestamp::from_millis(self.now));
        let answer = if once { self.verifier.verify_once(&real, now) } else { self.verifier.verify(&real, now) };
        let set = &self.settings;
        let expected = if once {
            self.reference.verify_once(&att, set, &web, &copy, self.now)
        } else {
            self.reference.verify(&att, set, &web, &copy, self.now)
        };
        self.compare(&att, answer.as_ref(), expected, tally);
        if once && expected.is_ok() {
            self.is_first(&att);
        }
        assert!(self.notes.events.take().is_empty(), "only `admit` and a forced refresh record");
    }

    /// What stands in a response as its attestation, which may be bent.
    fn attached(&mut self, real: &Attestation) -> Option<Value> {
        match self.dice.below(30) {
            0..3 => None,
            3 => Some(Value::Null),
            4 => Some(Value::Array(vec![])),
            5 => Some(
                real.members()
                    .iter()
                    .filter(|(name, _)| *name != "output")
                    .map(|(n, v)| (n.to_owned(), v.clone()))
                    .collect::<Object>()
                    .into(),
            ),
            6 => {
                let text = real.canonical().replace("\"n\":", "\"m\":");
                Some(json::parse_with(text.as_bytes(), Limits::SIGNED).unwrap())
            }
            _ => Some(Value::Object(real.members().clone())),
        }
    }

    fn admit(&mut self, tally: &mut Tally) {
        let Made { att, real } = self.attestation();
        let mut response = Object::new();
        let honest = self.dice.chance(70);
        for (name, value) in real.output().as_object().unwrap().iter().filter(|_| honest) {
            response.push(name, value.clone());
        }
        let bent = self.attached(&real);
        let whole = bent.as_ref().is_some_and(|value| json::canonical(value) == real.canonical());
        if let Some(value) = bent.clone() {
            response.push("attestation", value);
        }
        let response = Value::Object(response);
        let (web, copy) = self.webs(&att, &real);
        self.notes.fails.set(self.dice.chance(3));
        let (now, set) = (Timestamp::from_millis(self.now), &self.settings);
        let outcome = self.verifier.admit(&response, now);
        let events = self.notes.events.take();
        let verifies = matches!(self.mode, Mode::Verify | Mode::Require);
        let expected = match &bent {
            None if self.mode == Mode::Require => Err("attestation_absent"),
            Some(_) if verifies && !whole => Err("invalid_attestation"),
            Some(_) if verifies => self.reference.verify_once(&att, set, &web, &copy, self.now),
            _ => {
                // Nothing is looked at, so nothing can be wrong with it.
                assert!(outcome.verified.is_none());
                Ok((State::Active, 0))
            }
        };
        assert_eq!(self.net.requests.take(), mem::take(&mut self.reference.requests));
        if verifies && whole && expected.is_ok() {
            self.is_first(&att);
        }
        if self.mode == Mode::Ignore {
            assert!(outcome.proceeds() && events.is_empty() && outcome.event.is_none() && outcome.warnings.is_empty());
            self.notes.fails.set(false);
            return;
        }
        let code = outcome.refusal.as_ref().map(code);
        if self.notes.fails.take() {
            assert!(!outcome.proceeds() && events.is_empty() && outcome.verified.is_none());
            assert_eq!(code, Some(expected.err().unwrap_or("state")));
            return;
        }
        assert_eq!(code, expected.err(), "{} on {att:?}", self.mode);
        tally.count(code.unwrap_or("ok"));
        assert_eq!(events, outcome.event.clone().into_iter().collect::<Vec<_>>());
        let digest = bent.as_ref().map(|value| writ_core::Digest::of(json::canonical(value).as_bytes()));
        match &events[0].what {
            What::Absent { mode } => assert!(bent.is_none() && *mode == self.mode),
            What::Seen { digest: seen, uri } => {
                assert!(self.mode == Mode::Log && Some(*seen) == digest);
                assert!(!whole || uri.as_deref() == Some(real.uri()));
            }
            What::Verified { digest: seen, uri, .. } => {
                assert!(verifies && expected.is_ok() && Some(*seen) == digest && uri == real.uri());
                let differs = outcome.warnings.contains(&writ_verifier::Warning::ReportDiffers);
                assert_eq!(differs, !honest);
            }
            What::Failed { digest: seen, .. } => assert!(expected.is_err() && Some(*seen) == digest),
            What::ForceRefresh { .. } => panic!("a verification forced a refresh"),
        }
        assert_eq!(events[0].is_security(), expected.is_err());
        assert_eq!(outcome.verified.is_some(), verifies && whole && expected.is_ok());
    }

    fn compare(&mut self, att: &Att, real: Result<&Verified, &Refusal>, expected: Answer, tally: &mut Tally) {
        let answer = match real {
            Ok(verified) => {
                assert_eq!(verified.instance().as_str(), INSTANCES[att.instance]);
                assert_eq!(verified.at().millis(), self.now);
                assert_eq!(verified.copy() == Copy::Unasked, !self.settings.cross_check);
                Ok((state(verified.key_state()), verified.registry_version()))
            }
            Err(refusal) => Err(code(refusal)),
        };
        assert_eq!(answer, expected, "{att:?} at {}, known {:?}", self.now, self.reference.disk[att.instance]);
        assert_eq!(self.net.requests.take(), mem::take(&mut self.reference.requests));
        tally.count(answer.map_or_else(|code| code, |_| "ok"));
    }

    fn is_first(&mut self, att: &Att) {
        if let Some(nonce) = &att.nonce {
            assert!(self.used.insert((att.instance, nonce.clone())), "{nonce} counted twice");
        }
    }

    /// What the verifier holds is what the reference holds, and is nothing that §5 forbids.
    fn inspect(&mut self, at: usize) {
        let bytes = fs::read(self.path(at)).ok();
        let same =
            self.inspected[at].as_ref().is_some_and(|(seen, disk)| *seen == bytes && *disk == self.reference.disk[at]);
        if same {
            return;
        }
        self.inspected[at] = Some((bytes, self.reference.disk[at].clone()));
        let instance = Instance::parse(INSTANCES[at]).unwrap();
        let entry = match (self.cache.load(&instance), &self.reference.disk[at]) {
            (Ok(None), Disk::Missing) | (Err(StateError::Damaged { .. }), Disk::Damaged) => return,
            (Ok(Some(entry)), Disk::Holds(cached)) => {
                let gone = entry.gone().iter().map(|gone| (gone.id.clone(), self.pool.numbers[&gone.public])).collect();
                let doc = read_back(self.pool, entry.registry());
                let held = Cached { doc, gone, fetched_at: entry.fetched_at().millis() };
                assert_eq!(held, *cached);
                held
            }
            (held, expected) => panic!("{held:?} instead of {expected:?}"),
        };
        let watch = &mut self.watches[at];
        assert!(entry.doc.is_registry() && entry.doc.version >= watch.version, "a rollback was accepted");
        for (id, (public, state)) in &mut watch.keys {
            match entry.doc.key(id) {
                Some(key) => assert!(key.public == *public && reachable(*state, key.state), "{id} of {entry:?}"),
                None => *state = State::Compromised,
            }
        }
        watch.version = entry.doc.version;
        watch.keys.extend(entry.doc.keys.iter().map(|key| (key.id.clone(), (key.public, key.state))));
    }

    fn path(&self, at: usize) -> PathBuf {
        self.cache.path(&Instance::parse(INSTANCES[at]).unwrap())
    }
}

fn code(refusal: &Refusal) -> &'static str {
    refusal.code().map_or("state", |code| code.as_str())
}
