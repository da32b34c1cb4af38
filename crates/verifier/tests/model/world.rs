//! One life: two instances, one verifier, and everything that can happen to them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, mem};

use tempfile::TempDir;
use writ_core::Timestamp;
use writ_core::json::{self, Limits, Object, Value};
use writ_evidence::attestation::{Attestation, Draft};
use writ_evidence::b64url;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, KeyState, Registry};
use writ_verifier::{
    Cache, Config, Copy, Discarded, Event, Fetch, Fetched, Instance, Log, MAX_REGISTRY, Mode, NetworkError, Nonces,
    Refusal, StateError, Verified, Verifier, What,
};

use crate::reference::{
    Answer, Att, Cached, Deed, Disk, Doc, Key, Reference, STATES, Settings, State, Web, done, legal, reachable,
};

const INSTANCES: [&str; 2] = ["https://a.example", "https://b.example:8443"];
const SPELLINGS: [[&str; 3]; 2] = [
    ["https://a.example", "https://A.Example", "https://a.example:443"],
    ["https://b.example:8443", "https://B.example:8443", "https://b.EXAMPLE:8443"],
];
/// Moments beyond the model's interest: when a key began, when it was deprecated.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";

/// Keys to choose from, made once: a key is its number.
pub struct Pool {
    keys: Vec<SigningKey>,
    public: Vec<[u8; 32]>,
    numbers: HashMap<[u8; 32], usize>,
}

impl Pool {
    pub fn new() -> Self {
        let keys: Vec<SigningKey> = (0..256).map(|_| SigningKey::generate(Algorithm::Ed25519).unwrap()).collect();
        let public: Vec<[u8; 32]> = keys.iter().map(|key| key.public().raw().try_into().unwrap()).collect();
        let numbers = public.iter().enumerate().map(|(number, key)| (*key, number)).collect();
        Self { keys, public, numbers }
    }
}

/// How often each answer was given.
#[derive(Default, Debug)]
pub struct Tally(pub BTreeMap<&'static str, u64>);

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The network. Every address answers from a list, then not at all.
#[derive(Default)]
struct Net {
    answers: RefCell<HashMap<String, Vec<Result<Fetched, NetworkError>>>>,
    requests: Cell<usize>,
}

impl Fetch for &Net {
    fn get(&self, url: &str, _limit: usize) -> Result<Fetched, NetworkError> {
        self.requests.set(self.requests.get() + 1);
        let mut answers = self.answers.borrow_mut();
        let answers = answers.get_mut(url).unwrap_or_else(|| panic!("nobody may ask for {url}"));
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

/// The log. Told to, it fails; at a forced refresh it looks whether the cache is still as it was.
#[derive(Default)]
struct Notes {
    events: RefCell<Vec<Event>>,
    fails: Cell<bool>,
    unchanged: RefCell<Option<(PathBuf, Option<Vec<u8>>)>>,
}

impl Log for &Notes {
    fn record(&self, event: &Event) -> Result<(), StateError> {
        if let (What::ForceRefresh { .. }, Some((path, bytes))) = (&event.what, &*self.unchanged.borrow()) {
            assert_eq!(fs::read(path).ok(), *bytes, "the refresh took effect before it was recorded");
        }
        if self.fails.get() {
            return Err(StateError::Log("the disk is full".to_owned()));
        }
        self.events.borrow_mut().push(event.clone());
        Ok(())
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

    fn new_key(&mut self) -> usize {
        self.next_key = (self.next_key + 1) % self.pool.keys.len();
        self.next_key
    }

    /// The name of some key, mostly one that there is.
    fn some_id(&mut self, at: usize) -> String {
        let issuer = &self.issuers[at];
        let active = issuer.doc.keys.iter().find(|key| key.state == State::Active);
        match (active, self.dice.below(10)) {
            (Some(active), 0..5) => active.id.clone(),
            (_, 5..9) => self.dice.pick(&issuer.doc.keys).id.clone(),
            _ => format!("{}-{}", issuer.name, self.dice.below(40)),
        }
    }

    fn some_deed(&mut self, at: usize) -> Deed {
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
    fn deed(&mut self, at: usize, deed: &Deed) -> bool {
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

    fn jump(&mut self) {
        let ttl = self.settings.ttl.max(10_000);
        let ends: Vec<i64> = self.attestations.iter().filter_map(|made| made.att.expires_at).collect();
        if self.dice.chance(20) && !ends.is_empty() {
            // To the millisecond.
            self.now = *self.dice.pick(&ends) - self.dice.below(2) as i64;
            return;
        }
        self.now += match self.dice.below(8) {
            0..3 => self.dice.below(1_500) as i64,
            3 => ttl / 2,
            4 => ttl,
            5 => ttl * 3,
            6 => -(self.dice.below(2_000) as i64),
            _ => -ttl * 2,
        };
    }

    /// What happens to a cache file between two runs.
    fn meddle(&mut self, at: usize) {
        let path = self.path(at);
        let bytes = fs::read(&path).ok();
        let disk = self.reference.disk[at].clone();
        match (self.dice.below(8), bytes) {
            (0, Some(_)) => {
                fs::remove_file(&path).unwrap();
                self.reset(at, Disk::Missing);
            }
            // Damaged once more, it might be whole again.
            (1, Some(mut bytes)) if disk != Disk::Damaged => {
                let place = self.dice.below(bytes.len());
                match self.dice.below(3) {
                    0 => bytes.truncate(place),
                    1 => bytes[place] ^= 1 << self.dice.below(8),
                    _ => bytes.push(b'\n'),
                }
                fs::write(&path, bytes).unwrap();
                self.reset(at, Disk::Damaged);
            }
            (2..5, Some(bytes)) => self.backups.push((at, bytes, disk)),
            (5, _) if !self.backups.is_empty() => {
                let (at, bytes, disk) = self.dice.pick(&self.backups).clone();
                fs::create_dir_all(self.path(at).parent().unwrap()).unwrap();
                fs::write(self.path(at), bytes).unwrap();
                self.reset(at, disk);
            }
            _ => {}
        }
    }

    fn reset(&mut self, at: usize, disk: Disk) {
        self.reference.disk[at] = disk;
        self.forget(at);
    }

    fn forget(&mut self, at: usize) {
        self.watches[at] = Watch::default();
        self.inspected[at] = None;
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

    fn admit(&mut self, tally: &mut Tally) {
        let Made { att, real } = self.attestation();
        let mut response = Object::new();
        let honest = self.dice.chance(70);
        for (name, value) in real.output().as_object().unwrap().iter().filter(|_| honest) {
            response.push(name, value.clone());
        }
        let bent = match self.dice.below(30) {
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
        };
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

    /// One that was there before, or a new one.
    fn attestation(&mut self) -> Made {
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

    fn webs(&mut self, att: &Att, real: &Attestation) -> (Web<Doc>, Web<bool>) {
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

    fn serve_registry(&mut self, at: usize, web: &Web<Doc>) {
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

    fn registry_web(&mut self, at: usize) -> Web<Doc> {
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

fn answers<T>(web: &Web<T>, body: impl Fn(&T) -> Vec<u8>, garbage: Vec<u8>) -> Vec<Result<Fetched, NetworkError>> {
    let serves = |body: Vec<u8>| Ok(Fetched { status: 200, body });
    match web {
        Web::Status(status) => vec![Ok(Fetched { status: *status, body: b"{}".to_vec() })],
        Web::Garbage => vec![serves(garbage)],
        Web::Serves(it) => vec![serves(body(it))],
        Web::Flaky(fails, it) => {
            let down = |number: u8| match number % 2 {
                0 => Err(NetworkError("timed out".to_owned())),
                _ => Ok(Fetched { status: 503, body: Vec::new() }),
            };
            (0..*fails).map(down).chain([serves(body(it))]).collect()
        }
    }
}

/// A registry's document, written without the crate's own writer.
fn print(pool: &Pool, name: &str, doc: &Doc) -> Vec<u8> {
    let key = |key: &Key| {
        let (public, state) = (b64url::encode(&pool.public[key.public]), word(key.state));
        let until = match key.until {
            Some(until) => format!(",\"valid_until\":\"{}\"", Timestamp::from_millis(until)),
            None if key.state == State::Active => ",\"valid_until\":null".to_owned(),
            None => String::new(),
        };
        format!(
            "{{\"key_id\":\"{}\",\"algorithm\":\"Ed25519\",\"public_key\":\"{public}\",\"state\":\"{state}\",\
             \"valid_from\":\"{LONG_AGO}\",\"deprecated_at\":\"{LONG_AGO}\"{until}}}",
            key.id
        )
    };
    let keys: Vec<String> = doc.keys.iter().map(key).collect();
    let (keys, version) = (keys.join(", "), doc.version);
    format!("{{\"instance_id\": \"{name}\", \"registry_version\": {version}, \"updated_at\": \"{LONG_AGO}\", \"keys\": [{keys}]}}")
        .into_bytes()
}

fn read_back(pool: &Pool, registry: &Registry) -> Doc {
    let keys = registry.keys().iter().map(|key| Key {
        id: key.id.clone(),
        public: pool.numbers[&key.public],
        state: state(key.state),
        until: key.valid_until.map(Timestamp::millis),
    });
    Doc { version: registry.version(), keys: keys.collect() }
}

fn word(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Active => "active",
        State::Deprecated => "deprecated",
        State::Retired => "retired",
        State::Compromised => "compromised",
    }
}

fn state(state: KeyState) -> State {
    *STATES.iter().find(|known| word(**known) == state.as_str()).unwrap()
}

fn code(refusal: &Refusal) -> &'static str {
    refusal.code().map_or("state", |code| code.as_str())
}
