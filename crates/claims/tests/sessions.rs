//! Sessions at random on real repositories: an honest one is never called a false DONE, a lie always is.
//!
//! `WRIT_SESSIONS=1000` runs so many of each, `WRIT_SESSIONS_FROM` says from which seed on. A failure prints the seed and
//! what was done.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[path = "sessions/repository.rs"]
mod repository;
#[path = "sessions/spell.rs"]
mod spell;
#[path = "sessions/steps.rs"]
mod steps;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use std::{env, fs, thread};

use repository::{copy, git, template};
use tempfile::TempDir;
use writ_claims::{Act, Claim, Delta, Edit, Facts, Limits, Snapshot, Verdict, judge};

/// xorshift64*.
pub struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap() % limit.max(1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items.get(self.below(items.len())).copied().unwrap_or_default()
    }
}

/// Something an agent can name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Written, made or removed.
    File(String),
    /// From, to.
    Renamed(String, String),
    /// Not done at all.
    Never(String),
}

struct Session {
    /// Removed with the session.
    _folder: TempDir,
    root: PathBuf,
    outside: TempDir,
    rng: Rng,
    /// What happened, for whoever has to understand a failure.
    script: Vec<String>,
    acts: Vec<Act>,
    /// What was done, and whether `git reset --hard` leaves it.
    deeds: Vec<(Deed, bool)>,
    /// What was there before.
    origin: Vec<String>,
    /// What was made, or is somebody's.
    names: Vec<String>,
    stashed: bool,
    serial: usize,
    since: SystemTime,
}

impl Session {
    fn new(template: &Path, seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(template, folder.path());
        let root = folder.path().canonicalize().unwrap();
        let names =
            ["a.py", "b.py", "README.md", "Makefile", "src/c.py", "src/deep/d.rs", "my notes/n.txt", "sub/s.py"];
        let origin: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (script, acts, deeds) = Default::default();
        let (outside, rng) = (tempfile::tempdir().unwrap(), Rng::new(seed));
        let mut session = Self {
            _folder: folder,
            root,
            outside,
            rng,
            script,
            acts,
            deeds,
            names: origin.clone(),
            origin,
            stashed: false,
            serial: 0,
            since: SystemTime::now(),
        };
        if session.rng.chance(35) {
            session.dirty();
        }
        session
    }

    /// What somebody left behind before the start.
    fn dirty(&mut self) {
        for _ in 0..=self.rng.below(2) {
            match self.rng.below(4) {
                0 => self.put("a.py", "dirty\n"),
                1 => self.put("src/c.py", "dirty c\n"),
                2 => {
                    self.put("theirs/left.py", "left\n");
                    self.origin.push("theirs/left.py".to_owned());
                    self.names.push("theirs/left.py".to_owned());
                }
                _ => {
                    self.put("b.py", "staged\n");
                    self.git("add b.py");
                }
            }
        }
        self.script.push("-- start --".to_owned());
    }

    fn git(&mut self, line: &str) -> bool {
        let arguments: Vec<&str> = line.split(' ').collect();
        let ran = git(&self.root, &arguments);
        self.script.push(format!("git {line}{}", if ran { "" } else { "  # failed" }));
        ran
    }

    fn put(&mut self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.script.push(format!("put {name} {text:?}"));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file that is there.
    fn existing(&mut self) -> Option<String> {
        let there: Vec<String> = self.names.iter().filter(|name| self.at(name).is_file()).cloned().collect();
        there.get(self.rng.below(there.len())).cloned()
    }

    fn fresh(&mut self) -> String {
        self.serial += 1;
        let folder = self.rng.pick(&[
            "",
            "",
            "src/",
            "src/deep/",
            "new/er/",
            "my notes/",
            "build/",
            "sub/",
            ".github/",
            "tésts/",
        ]);
        let name = self.rng.pick(&["service", "Handler", "test_x", "io", "data set", "config.prod", "_init_", "and"]);
        let kind = self.rng.pick(&[".py", ".rs", ".TS", ".tar.gz", ".md", ".json", "", ".h"]);
        let kind = if name == "and" && kind.is_empty() { ".py" } else { kind };
        format!("{folder}{name}{}{kind}", self.serial)
    }

    /// Text nobody wrote before.
    fn text(&mut self) -> String {
        self.serial += 1;
        format!("text {}\nline\n", self.serial)
    }

    fn did(&mut self, deed: Deed) {
        if !self.deeds.iter().any(|(own, _)| *own == deed) {
            self.deeds.push((deed, false));
        }
    }

    fn touched(&mut self, names: &[&str]) {
        let paths = names.iter().map(|name| self.at(name)).collect();
        self.acts.push(Act::Touched { paths });
    }

    /// By a tool, or by a command.
    fn wrote(&mut self, name: &str, text: &str) {
        let path = self.at(name);
        let old = fs::read_to_string(&path).ok();
        self.put(name, text);
        match (self.rng.below(5), old) {
            (0, _) => self.acts.push(Act::Unknown),
            (1, _) => self.touched(&[name]),
            (2, Some(old)) if !old.is_empty() => {
                let edits = vec![Edit { old, new: text.to_owned(), all: false }];
                self.acts.push(Act::Edited { path, edits });
            }
            _ => self.acts.push(Act::Wrote { path, content: text.to_owned() }),
        }
        self.did(Deed::File(name.to_owned()));
    }

    fn gone(&mut self, name: &str) {
        if !self.origin.iter().any(|own| own == name) {
            self.deeds.retain(|(deed, _)| *deed != Deed::File(name.to_owned()));
            self.deeds.retain(|(deed, _)| !matches!(deed, Deed::Renamed(_, new) if new == name));
        }
    }

    fn keep(&mut self) {
        self.deeds.iter_mut().for_each(|(_, safe)| *safe = true);
    }

    fn begin(&mut self) -> Snapshot {
        self.since = SystemTime::now();
        Snapshot::take(&self.root, &Limits::default()).unwrap().0
    }

    fn judge(&self, before: &Snapshot, text: &str, acts: &[Act]) -> Verdict {
        let limits = Limits::default();
        let (after, repository) = Snapshot::take(&self.root, &limits).unwrap();
        let delta = Delta::between(before, &after, &repository.root, &limits).unwrap();
        let claim = Claim::parse(text);
        let (repository, others) = (&repository, &BTreeSet::new());
        let (folders, home): (&[PathBuf], _) = (&[], None);
        let facts = Facts {
            before,
            since: Some(self.since),
            after: &after,
            delta: &delta,
            repository,
            folders,
            home,
            acts,
            others,
            limits: &limits,
        };
        judge(&claim, &facts)
    }

    fn story(&self, seed: u64, text: &str, verdict: &Verdict) -> String {
        let script = self.script.join("\n  ");
        format!("seed {seed} in {}\n  {script}\nacts {:#?}\n{text}\n{verdict:#?}", self.root.display(), self.acts)
    }

    /// Some of what was done.
    fn named(&mut self) -> Vec<Deed> {
        let all = self.rng.chance(60);
        let deeds = self.deeds.clone();
        deeds.into_iter().map(|(deed, _)| deed).filter(|_| all || self.rng.chance(60)).collect()
    }
}

/// An honest session; why it was called a lie.
fn honest(template: &Path, seed: u64) -> Option<String> {
    let mut session = Session::new(template, seed);
    let before = session.begin();
    for _ in 0..=session.rng.below(7) {
        session.step();
    }
    let named = session.named();
    let root = session.root.to_str().unwrap().to_owned();
    let text = spell::claim(&mut session.rng, &named, &root);
    if !session.rng.chance(60) {
        session.acts.clear();
    }
    let verdict = session.judge(&before, &text, &session.acts);
    verdict.false_done.then(|| session.story(seed, &text, &verdict))
}

/// A session with a lie in it; why it was not found.
fn lying(template: &Path, seed: u64) -> Option<String> {
    let mut session = Session::new(template, seed | 1 << 40);
    let before = session.begin();
    for _ in 0..session.rng.below(5) {
        session.step();
    }
    let untouched = session.untouched(&before);
    let (name, silent) = match session.rng.below(6) {
        0 => (format!("{}/ghost{seed}.py", session.rng.pick(&["src", "sub", "src/deep", "theirs"])), false),
        1 => (format!("not/there/phantom{seed}.rs"), false),
        2 => (format!("REDAME{seed}.md"), false),
        3 if !untouched.is_empty() => (untouched.get(session.rng.below(untouched.len())).unwrap().clone(), true),
        _ => (format!("src/lost{seed}.py"), true),
    };
    if silent {
        let content = format!("lost {seed}\n");
        session.acts.push(Act::Wrote { path: session.at(&name), content });
        session.script.push(format!("lost: {name}"));
    } else if session.rng.chance(40) {
        session.acts.clear();
    }
    if session.rng.chance(30) {
        session.commit();
    }
    let mut named = session.named();
    // Who names the same file by another deed is not lying about it.
    named.retain(|deed| *deed != Deed::File(name.clone()));
    named.insert(session.rng.below(named.len() + 1), Deed::Never(name));
    let root = session.root.to_str().unwrap().to_owned();
    let text = spell::claim(&mut session.rng, &named, &root);
    let verdict = session.judge(&before, &text, &session.acts);
    (!verdict.false_done || (silent && !verdict.proven)).then(|| session.story(seed, &text, &verdict))
}

impl Session {
    /// What was there before, and is so still.
    fn untouched(&self, before: &Snapshot) -> Vec<String> {
        let limits = Limits::default();
        let (after, repository) = Snapshot::take(&self.root, &limits).unwrap();
        let delta = Delta::between(before, &after, &repository.root, &limits).unwrap();
        let untouched = |name: &&String| !delta.changed.contains(*name) && self.at(name).is_file();
        self.origin.iter().filter(untouched).cloned().collect()
    }
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(session: fn(&Path, u64) -> Option<String>) -> (u64, Vec<String>) {
    let (count, from) = (number("WRIT_SESSIONS", 150), number("WRIT_SESSIONS_FROM", 1));
    let (templates, next) = ([template(true), template(false)], AtomicU64::new(from));
    let worker = || {
        let seeds =
            std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < from + count));
        let template = |seed| templates.get(usize::from(seed % 5 > 0)).unwrap();
        seeds.filter_map(|seed| session(template(seed).path(), seed)).collect::<Vec<_>>()
    };
    let failed = thread::scope(|scope| {
        let both = [scope.spawn(worker), scope.spawn(worker)];
        both.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    (count, failed)
}

#[test]
fn an_honest_session_is_never_called_a_lie() {
    let (count, blocked) = run(honest);
    assert!(blocked.is_empty(), "{} of {count}\n{}", blocked.len(), blocked.join("\n\n"));
}

#[test]
fn a_lie_is_found() {
    let (count, missed) = run(lying);
    assert!(missed.len() as u64 * 100 <= count, "{} of {count}\n{}", missed.len(), missed.join("\n\n"));
}
