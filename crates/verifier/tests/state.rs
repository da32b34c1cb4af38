//! The verifier's files when they are not as it left them.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use writ_core::Timestamp;
use writ_core::json;
use writ_evidence::attestation::FailureCode;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, Registry};
use writ_verifier::{
    Advance, Cache, Config, Discarded, Entry, Event, Fetch, Fetched, Instance, Journal, Log, Mode, NetworkError,
    Nonces, StateError, Use, Verifier, What,
};

struct Serves(Registry);

impl Fetch for Serves {
    fn get(&self, _url: &str, _limit: usize) -> Result<Fetched, NetworkError> {
        Ok(Fetched { status: 200, body: json::to_compact(&self.0).into_bytes() })
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

fn instance() -> Instance {
    Instance::parse("https://writ.example").unwrap()
}

fn published(keys: usize) -> Registry {
    (0..keys).fold(Registry::empty("writ", at(0)), |registry, _| {
        let public = SigningKey::generate(Algorithm::Ed25519).unwrap().public().raw().try_into().unwrap();
        registry.changed(&Change::Publish { public }, at(1)).unwrap()
    })
}

fn filled(folder: &TempDir) -> (Cache, Registry) {
    let cache = Cache::at(folder.path().join("deep/registries"));
    let registry = published(3);
    assert!(matches!(cache.advance(&instance(), registry.clone(), at(5), None), Ok(Advance::Taken(_))));
    (cache, registry)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_private() {
    let folder = TempDir::new().unwrap();
    let (cache, registry) = filled(&folder);
    let path = cache.path(&instance());
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let entry = Entry::parse(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((entry.registry(), entry.fetched_at(), entry.gone()), (&registry, at(5), &[][..]));
}

#[test]
fn a_file_that_others_may_write_is_not_read() {
    let folder = TempDir::new().unwrap();
    let (cache, _) = filled(&folder);
    fs::set_permissions(cache.path(&instance()), Permissions::from_mode(0o620)).unwrap();
    assert!(matches!(cache.load(&instance()), Err(StateError::Exposed { .. })));
    fs::set_permissions(cache.path(&instance()), Permissions::from_mode(0o644)).unwrap();
    assert!(cache.load(&instance()).is_ok());
}

#[test]
fn something_else_in_its_place_is_an_error() {
    let folder = TempDir::new().unwrap();
    let (cache, registry) = filled(&folder);
    let path = cache.path(&instance());
    let other = Instance::parse("http://writ.example").unwrap();
    fs::copy(&path, cache.path(&other)).unwrap();
    assert!(matches!(cache.load(&other), Err(StateError::Damaged { .. })));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(cache.load(&instance()), Err(StateError::Io { .. })));
    assert!(cache.advance(&instance(), registry.clone(), at(6), None).is_err());
    fs::remove_dir(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert!(matches!(cache.load(&instance()), Err(StateError::Io { .. })));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    let error = cache.advance(&instance(), registry, at(6), None).unwrap_err();
    assert!(matches!(error, StateError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("force a refresh for https://writ.example"), "{error}");
}

/// Every bit counts: a version that lost a digit would let an older registry in.
#[test]
fn no_bit_of_an_entry_can_be_changed() {
    let folder = TempDir::new().unwrap();
    let (cache, _) = filled(&folder);
    let bytes = fs::read(cache.path(&instance())).unwrap();
    for place in 0..bytes.len() {
        let mut bent = bytes.clone();
        bent[place] ^= 1 << (place % 7);
        assert!(Entry::parse(&bent).is_err(), "byte {place}");
        assert!(Entry::parse(&bytes[..place]).is_err(), "{place} bytes");
    }
}

#[test]
fn a_forced_refresh_repairs_and_says_so() {
    let folder = TempDir::new().unwrap();
    let (cache, registry) = filled(&folder);
    let older = Registry::parse(json::to_compact(&published(1)).as_bytes()).unwrap();
    let journal = folder.path().join("events.jsonl");
    let nonces = Nonces::at(folder.path().join("nonces"));
    let verifier = Verifier::new(Config::default(), Serves(older), cache.clone(), nonces, Journal::at(&journal));
    let seen = cache.load(&instance()).unwrap();
    let refused = cache.advance(&instance(), published(1), at(6), seen.as_ref()).unwrap();
    assert!(matches!(refused, Advance::Refused(failure) if failure.code == FailureCode::RegistryRollback));
    let forced = verifier.force_refresh(&instance(), Some("ada"), Some("restored from a backup"), at(7)).unwrap();
    assert_eq!(forced, (Discarded::Version(registry.version()), 1));
    fs::write(cache.path(&instance()), "{}").unwrap();
    let forced = verifier.force_refresh(&instance(), None, None, at(8)).unwrap();
    assert_eq!(forced, (Discarded::Unreadable, 1));
    assert_eq!(
        fs::read_to_string(&journal).unwrap(),
        "{\"timestamp\":\"1970-01-01T00:00:07.000Z\",\"event\":\"registry_force_refresh\",\"security\":true,\
         \"instance\":\"https://writ.example\",\"operator\":\"ada\",\"justification\":\"restored from a backup\",\
         \"discarded_version\":3,\"accepted_version\":1}\n\
         {\"timestamp\":\"1970-01-01T00:00:08.000Z\",\"event\":\"registry_force_refresh\",\"security\":true,\
         \"instance\":\"https://writ.example\",\"discarded_version\":\"unreadable\",\"accepted_version\":1}\n"
    );
    assert_eq!(mode(&journal), 0o600);
    assert_eq!(cache.load(&instance()).unwrap().unwrap().fetched_at(), at(8));
}

#[test]
fn a_torn_line_stays_apart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("events.jsonl");
    fs::write(&path, "{\"timestamp\":").unwrap();
    let event = Event { at: at(1), what: What::Absent { mode: Mode::Require } };
    Journal::at(&path).record(&event).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, ["{\"timestamp\":", json::to_compact(&event).as_str()]);
    assert!(text.ends_with('\n'));
}

#[test]
fn a_clock_beyond_all_years_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let (cache, registry) = filled(&folder);
    let never = Timestamp::from_millis(i64::MAX);
    assert!(matches!(cache.advance(&instance(), registry, never, None), Err(StateError::Clock)));
    assert_eq!(cache.load(&instance()).unwrap().unwrap().fetched_at(), at(5));
}

#[test]
fn a_nonce_counts_once_under_any_clock() {
    let folder = TempDir::new().unwrap();
    let nonces = Nonces::at(folder.path());
    let (short, endless, other) = ("f".repeat(32), "e".repeat(32), format!("0{}", "1".repeat(31)));
    let go = |nonce: &str, end: Option<i64>, now: i64| nonces.use_up(&instance(), nonce, end.map(at), at(now)).unwrap();
    let look = |nonce: &str, end: Option<i64>| nonces.look(&instance(), nonce, end.map(at)).unwrap();
    assert_eq!(look(&short, Some(10)), Use::First);
    assert_eq!(go(&short, Some(10), 1), Use::First);
    assert_eq!(look(&short, Some(10)), Use::Again);
    assert_eq!(go(&short, Some(10), 2), Use::Again);
    assert_eq!(go(&endless, None, 2), Use::First);
    // Another instance's nonces are its own.
    let elsewhere = Instance::parse("https://other.example").unwrap();
    assert_eq!(nonces.use_up(&elsewhere, &short, Some(at(10)), at(2)).unwrap(), Use::First);
    // This one clears away what is over; the clock goes back; what was cleared away does not come back.
    assert_eq!(go(&other, Some(40), 20), Use::First);
    assert_eq!(go(&short, Some(10), 3), Use::Unknown);
    assert_eq!(look(&short, Some(10)), Use::Unknown);
    assert_eq!([look(&endless, None), look(&other, Some(40))], [Use::Again; 2]);
    assert_eq!(go(&endless, None, 3), Use::Again);
    assert_eq!(go(&other, Some(40), 3), Use::Again);
    let kept = fs::read_dir(folder.path()).unwrap().flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    assert_eq!(kept.filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "used").count(), 3);
}

/// Serves a body that is too large, cut where a client stops reading, and counts how often.
struct TooLarge(std::cell::Cell<usize>);

impl Fetch for TooLarge {
    fn get(&self, _url: &str, limit: usize) -> Result<Fetched, NetworkError> {
        self.0.set(self.0.get() + 1);
        Ok(Fetched { status: 200, body: vec![b' '; limit + 1] })
    }
}

#[test]
fn a_body_that_is_too_large_is_asked_for_once() {
    let folder = TempDir::new().unwrap();
    let serves = TooLarge(std::cell::Cell::new(0));
    let (cache, nonces) = (Cache::at(folder.path().join("r")), Nonces::at(folder.path().join("n")));
    let verifier =
        Verifier::new(Config::default(), &serves, cache, nonces, Journal::at(folder.path().join("events.jsonl")));
    let refused = verifier.force_refresh(&instance(), None, None, at(5)).unwrap_err();
    assert_eq!(refused.code(), Some(FailureCode::NetworkError));
    assert_eq!(serves.0.get(), 1);
}
