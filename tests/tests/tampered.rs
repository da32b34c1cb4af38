//! A session of 200 turns with three sub-agents: whatever is changed in it, both verifiers refuse.
//!
//! Every day some bytes of each kind of file are changed, and some statements are removed, added, swapped and replayed. With
//! `WRIT_EXHAUSTIVE=1` every byte of every file of a smaller session is, and every statement of the long one; with `WRIT_EXHAUSTIVE=7` every
//! seventh, of each file and statement.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
mod parcel;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod talk;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use parcel::{export, files, key, packed, python, writ};
use serde_json::json;
use talk::Talk;
use writ_engine::Home;
use writ_engine::verify::{self, Options};
use writ_evidence::keys::PublicKey;

/// Turns of the long session.
const TURNS: u64 = 200;

/// What is done to the files of a bundle.
type Change<'a> = &'a dyn Fn(&mut BTreeMap<String, Vec<u8>>);

/// Of how many bytes and statements one is changed, where somebody said so.
fn exhaustive() -> Option<usize> {
    let every = env::var("WRIT_EXHAUSTIVE").ok()?;
    Some(every.parse().unwrap()).filter(|every| *every > 0)
}

/// A session of so many turns; the second starts so many sub-agents.
fn session(name: &str, turns: u64, agents: &[&str]) -> Talk {
    let worker = json!({"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}});
    let more = json!({"sublayouts": [{"name": "research", "policy": worker, "attestationPrefix": "research-"}],
        "materialsFrom": {"session": {"constraints": {"requireContiguousTurns": true}}}});
    let talk = Talk::new(name, &more);
    for number in 1..=turns {
        if number == 2 {
            talk.asks("prompt 2");
            talk.spawns("spawn", agents);
            talk.stops();
        } else {
            talk.turn(number);
        }
    }
    talk
}

/// Both verifiers in processes of their own that stay, so that a change costs no start: Writ in this one, the other as a child.
struct Both {
    key: PublicKey,
    home: Home,
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    room: PathBuf,
}

/// Asks `bundle.py` about each path that it is told.
const MANY: &str = "import sys
sys.path.insert(0, sys.argv[1])
import bundle
key = bundle.Key.pem(open(sys.argv[2], 'rb').read())
for line in sys.stdin:
    try: bundle.verify(line.rstrip('\\n'), key); print(0, flush=True)
    except (bundle.Malformed, bundle.Broken, KeyError, TypeError, ValueError, AttributeError): print(3, flush=True)
";

impl Both {
    fn of(talk: &Talk, key: &Path) -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verifiers/python");
        let mut child = Command::new("/usr/bin/python3");
        child.args(["-B", "-c", MANY]).arg(scripts).arg(key).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let key = PublicKey::from_pem(&fs::read_to_string(key).unwrap()).unwrap();
        Self { key, home: Home::default(), child, answers, room: talk.place.folder.join("room") }
    }

    /// Whether Writ and the other say that it holds.
    fn say(&mut self, bundle: &Path) -> (bool, bool) {
        drop(fs::remove_dir_all(&self.room));
        fs::create_dir_all(&self.room).unwrap();
        let options = Options { key: Some(self.key.clone()), ..Options::default() };
        let report = verify::bundle(bundle, &self.room, &self.home, &options);
        writeln!(self.child.stdin.as_ref().unwrap(), "{}", bundle.display()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        (report.is_ok_and(|report| report.holds()), answer.trim() == "0")
    }

    fn refuse(&mut self, bundle: &Path, what: &str) {
        assert_eq!(self.say(bundle), (false, false), "{what}");
    }
}

impl Drop for Both {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// The kind of a file: its folder, or its name where it has none.
fn kind(path: &str) -> String {
    path.rsplit_once('/').map_or_else(
        || path.to_owned(),
        |(folder, name)| {
            let turns = folder == "attestations" && name.contains("turn-");
            format!("{folder}/{}", if turns && name.starts_with("research") { "research" } else { "" })
        },
    )
}

/// A changed byte in a file of the record, which is listed and signed for as if it were so; and the same in the archive itself.
#[test]
fn a_changed_byte_is_refused_by_both() {
    let talk = session("tampered-bytes", 3, &["a1"]);
    talk.passes();
    let key = key(&talk.place);
    let good = export(&talk.place, "good.tar", &["--transcripts"]);
    let whole = files(&good);
    let mut both = Both::of(&talk, &key);
    assert_eq!(both.say(&good), (true, true), "{:?} {:?}", writ(&talk.place, &good, &key), python(&good, &key));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let (mut changed, mut unbound) = (0_u64, Vec::new());
    for (path, bytes) in whole.iter().filter(|(path, bytes)| !path.starts_with("bundle.") && !bytes.is_empty()) {
        let known = seen.entry(kind(path)).or_default();
        *known += 1;
        let step = exhaustive().unwrap_or(bytes.len() / 3 + 1);
        if exhaustive().is_none() && *known > 2 {
            continue;
        }
        for at in (0..bytes.len()).step_by(step) {
            let mut files = whole.clone();
            files.get_mut(path).unwrap()[at] ^= 1;
            let bad = packed(&talk.place, "bad.tar", files);
            let said = both.say(&bad);
            changed += 1;
            // The machine that keeps a record speaks for transcripts; whoever has its key says what they are.
            if said != (false, false) {
                unbound.push((path.clone(), at, said));
            }
        }
    }
    assert!(unbound.is_empty(), "{} of {changed}: {:?}", unbound.len(), &unbound[..unbound.len().min(20)]);
    assert!(seen.len() >= 9 && changed > 30, "{seen:?} {changed}");
    println!(
        "{changed} bytes of files, and one in {:?} of the archive's {}",
        exhaustive(),
        fs::metadata(&good).unwrap().len()
    );
    let archive = fs::read(&good).unwrap();
    let step = exhaustive().unwrap_or(archive.len() / 50);
    for at in (0..archive.len()).step_by(step) {
        let mut other = archive.clone();
        other[at] ^= 1;
        let bad = talk.place.folder.join("bad.tar");
        fs::write(&bad, other).unwrap();
        both.refuse(&bad, &format!("byte {at} of the archive"));
    }
}

/// The long session, and one of the same machine whose statements are replayed in it.
#[test]
fn a_statement_that_is_removed_added_moved_or_replayed_is_refused_by_both() {
    let talk = session("tampered-long", TURNS, &["a1", "b2", "c3"]);
    talk.passes();
    let key = key(&talk.place);
    let good = export(&talk.place, "good.tar", &[]);
    let whole = files(&good);
    let mut both = Both::of(&talk, &key);
    assert_eq!(both.say(&good), (true, true), "{:?} {:?}", writ(&talk.place, &good, &key), python(&good, &key));
    let names: Vec<String> =
        whole.keys().filter(|path| path.starts_with("attestations/") && path.contains("turn-")).cloned().collect();
    assert_eq!(names.len() as u64, TURNS + 3);
    let other = session("tampered-other", 2, &["a1"]);
    let replayed = fs::read(other.kept().join("turn-1.json")).unwrap();
    let step = exhaustive().unwrap_or(40);
    for (at, name) in names.iter().enumerate().step_by(step) {
        let next = &names[(at + 1) % names.len()];
        let changes: [(&str, Change<'_>); 5] = [
            ("removed", &|files| drop(files.remove(name))),
            ("another turn's", &|files| drop(files.insert(name.clone(), whole[next].clone()))),
            ("another session's", &|files| drop(files.insert(name.clone(), replayed.clone()))),
            ("swapped with the next", &|files| {
                files.insert(name.clone(), whole[next].clone());
                files.insert(next.clone(), whole[name].clone());
            }),
            ("added once more", &|files| drop(files.insert(name.replace(".json", "-9.json"), whole[name].clone()))),
        ];
        for (what, change) in changes {
            let mut files = whole.clone();
            change(&mut files);
            let bad = packed(&talk.place, "bad.tar", files);
            both.refuse(&bad, &format!("{name} {what}"));
        }
        let mut files = whole.clone();
        let bytes = files.get_mut(name).unwrap();
        let place = (at * 37) % bytes.len();
        bytes[place] ^= 4;
        let bad = packed(&talk.place, "bad.tar", files);
        both.refuse(&bad, &format!("byte {place} of {name}"));
    }
    // A row less, and rows in another order.
    let rows: Vec<&[u8]> = whole["ledger.jsonl"].split_inclusive(|&byte| byte == b'\n').collect();
    let named: Vec<usize> =
        (0..rows.len()).filter(|at| String::from_utf8_lossy(rows[*at]).contains("turn-attested")).collect();
    for at in named.iter().step_by(step) {
        let mut less = rows.clone();
        less.remove(*at);
        let mut moved = rows.clone();
        moved.swap(*at, at - 1);
        for (what, rows) in [("gone", less), ("moved", moved)] {
            let mut files = whole.clone();
            files.insert("ledger.jsonl".to_owned(), rows.concat());
            let bad = packed(&talk.place, "bad.tar", files);
            both.refuse(&bad, &format!("row {at} {what}"));
        }
    }
}
