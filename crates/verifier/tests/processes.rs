//! Many processes and threads on one folder. The children are this test binary itself.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use writ_core::Timestamp;
use writ_core::json;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, Registry};
use writ_verifier::{Advance, Cache, Event, Instance, Journal, Log, Mode, Nonces, Use, What};

const ROOT: &str = "WRIT_TEST_ROOT";
const SEED: &str = "WRIT_TEST_SEED";
const VERSIONS: u64 = 60;
const NONCES: u64 = 150;
const CHILDREN: u64 = 8;

fn instance() -> Instance {
    Instance::parse("https://writ.example").unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis as i64)
}

/// One registry's life: every version may follow each one before it.
fn history(folder: &Path) {
    let mut registry = Registry::empty("writ", at(0));
    for version in 1..=VERSIONS {
        let public = SigningKey::generate(Algorithm::Ed25519).unwrap().public().raw().try_into().unwrap();
        let oldest = || registry.next_in_line().unwrap().id.clone();
        let change = if version % 2 == 1 { Change::Publish { public } } else { Change::Activate { id: oldest() } };
        registry = registry.changed(&change, at(version)).unwrap();
        fs::write(folder.join(format!("{version}")), json::to_compact(&registry)).unwrap();
    }
}

/// Fetches versions in no order, as from servers that lag behind one another, and uses up nonces in an order of its own. Whatever it sees
/// of the cache never goes back.
fn live(root: &Path, seed: u64) -> Vec<String> {
    let (cache, nonces) = (Cache::at(root.join("registries")), Nonces::at(root.join("nonces")));
    let journal = Journal::at(root.join("events.jsonl"));
    let (mut dice, mut newest, mut said) = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, 0, Vec::new());
    let mut roll = |end: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice % end
    };
    let start = roll(NONCES);
    for round in 0..NONCES {
        let seen = cache.load(&instance()).unwrap();
        // The newest there is rises with time.
        let version = 1 + roll(1 + round * VERSIONS / NONCES);
        let fetched = fs::read(root.join("history").join(version.to_string())).unwrap();
        let fetched = Registry::parse(&fetched).unwrap();
        let before = cache.load(&instance()).unwrap().map_or(0, |entry| entry.registry().version());
        assert!(before >= newest, "{before} after {newest}");
        newest = before;
        match cache.advance(&instance(), fetched, at(round), seen.as_ref()).unwrap() {
            Advance::Taken(entry) => {
                assert!(entry.registry().version() == version && version >= newest);
                newest = version;
            }
            Advance::Refused(_) => assert!(version < before),
            Advance::Overtaken(_) => {
                newest = cache.load(&instance()).unwrap().unwrap().registry().version();
                assert!(version < newest);
            }
        }
        let number = (start + round) % NONCES;
        // Every other one ends soon: some are cleared away while others are used.
        let end = number.is_multiple_of(2).then(|| at(number + 20));
        if end.is_none_or(|end| at(round) < end) {
            let used = nonces.use_up(&instance(), &format!("{number:032x}"), end, at(round)).unwrap();
            assert!(used != Use::Unknown || end.is_some());
            if used == Use::First {
                said.push(format!("first {number}"));
            }
        }
        journal.record(&Event { at: at(round), what: What::Absent { mode: Mode::Verify } }).unwrap();
    }
    said.push(format!("newest {newest}"));
    said
}

#[test]
#[ignore = "a child process of the test below"]
fn lives_as_a_child() {
    let root = env::var_os(ROOT).unwrap();
    let seed = env::var(SEED).unwrap().parse().unwrap();
    println!("\n{}", live(Path::new(&root), seed).join("\n"));
}

fn child(root: &Path, seed: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "lives_as_a_child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROOT, root)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn judge(root: &Path, said: &[String], livers: u64) {
    let mut firsts: BTreeMap<&str, u64> = BTreeMap::new();
    for number in said.iter().filter_map(|line| line.strip_prefix("first ")) {
        *firsts.entry(number).or_default() += 1;
    }
    let endless = firsts.keys().filter(|number| number.ends_with(['1', '3', '5', '7', '9'])).count();
    assert_eq!(endless as u64, NONCES / 2);
    assert!(firsts.values().all(|count| *count == 1), "{firsts:?}");
    let newest = said.iter().filter_map(|line| line.strip_prefix("newest ")?.parse::<u64>().ok());
    let held = Cache::at(root.join("registries")).load(&instance()).unwrap().unwrap().registry().version();
    assert_eq!(newest.clone().count() as u64, livers);
    assert_eq!(newest.max(), Some(held));
    let journal = fs::read_to_string(root.join("events.jsonl")).unwrap();
    assert_eq!(journal.lines().count() as u64, livers * NONCES);
    assert!(journal.lines().all(|line| json::parse(line.as_bytes()).is_ok()));
}

#[test]
fn processes_share_one_folder() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("history")).unwrap();
    history(&root.path().join("history"));
    let children: Vec<Child> = (1..=CHILDREN).map(|seed| child(root.path(), seed)).collect();
    let mut said = Vec::new();
    for mut child in children {
        said.extend(BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok));
        assert!(child.wait().unwrap().success());
    }
    judge(root.path(), &said, CHILDREN);
}

#[test]
fn threads_share_one_folder() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("history")).unwrap();
    history(&root.path().join("history"));
    let path = root.path();
    let said = thread::scope(|scope| {
        let lives: Vec<_> = (1..=CHILDREN).map(|seed| scope.spawn(move || live(path, seed))).collect();
        lives.into_iter().flat_map(|life| life.join().unwrap()).collect::<Vec<_>>()
    });
    judge(path, &said, CHILDREN);
}

/// Processes killed at any moment leave a cache that reads and that never goes back.
#[test]
fn killed_processes_leave_whole_files() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("history")).unwrap();
    history(&root.path().join("history"));
    let (cache, mut newest) = (Cache::at(root.path().join("registries")), 0);
    for seed in 1..=40 {
        let mut pair = [child(root.path(), seed), child(root.path(), seed + 1000)];
        thread::sleep(std::time::Duration::from_millis(3 + seed * 7 % 40));
        for child in &mut pair {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let held = cache.load(&instance()).unwrap().map_or(0, |entry| entry.registry().version());
        assert!(held >= newest);
        newest = held;
    }
    assert!(newest > 0, "nothing was ever stored");
}
