//! What stops read of the transcripts, held against the transcripts as they are now.
//!
//! A client rewrites and tidies away its transcripts at times, so nothing here accuses. But what a stop read and nobody can read any
//! more is not spoken for, and neither is what lies between two stretches that do not join. Page: `spec/verify.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use writ_clients::cursor::{Reading, Stretch};
use writ_clients::transcript::{MAIN, Transcripts, digest};
use writ_core::Digest;
use writ_evidence::tally::Tally;

use super::report::{Outcome, Phase, Standing};
use super::sources::Sources;

/// Most stretches of transcripts that are read again.
const MOST_STRETCHES: usize = 1 << 16;

/// A transcript: the main conversation's file, where it is not the session's, and the name among its files.
type Name = (Option<String>, String);

/// The stretches that rows tell of.
#[derive(Default)]
pub struct Stretches {
    read: Vec<(u64, Option<String>, Stretch)>,
    /// Where the last stretch of each transcript ended, and its row.
    ends: HashMap<Name, (u64, u64)>,
    /// The digest of each transcript that the last stretch read from its beginning.
    whole: HashMap<Name, Digest>,
    /// The first stretch of each rewritten transcript that still counts. Those before are not looked for: that would take time for
    /// each of them.
    again: HashMap<Name, usize>,
    /// Where stretches of one transcript do not join.
    apart: Tally,
    /// Subagents' transcripts that a stop did not look at, by their rows.
    unread: Tally,
    /// There were more stretches than are kept.
    more: bool,
    /// The first row of a stop.
    stopped: Option<u64>,
}

impl Stretches {
    /// Takes what a row says was read.
    pub fn add(&mut self, row: u64, Reading { main, read, unread }: Reading) {
        if unread > 0 {
            self.unread.apart(format!("row {row}: {unread} transcripts of subagents were not looked at"));
        }
        self.more |= self.read.len() >= MOST_STRETCHES;
        for stretch in read.into_iter().filter(|_| !self.more) {
            let name = (main.clone(), stretch.file.clone());
            let (end, before) = self.ends.get(&name).copied().unwrap_or_default();
            if stretch.rewritten {
                // Of what was read before nothing is known any more.
                self.again.insert(name.clone(), self.read.len());
            } else if stretch.from != 0 && stretch.from != end {
                // A stop that lost its place reads from the beginning.
                let what = if stretch.from > end { "were read by no stop" } else { "were read twice" };
                let (from, to) = (end.min(stretch.from), end.max(stretch.from));
                let file = &stretch.file;
                let last = if end > 0 { format!("row {before} ended at {end}") } else { "no row began it".to_owned() };
                let begins = stretch.from;
                self.apart.apart(format!("{file}: bytes {from} to {to} {what}: {last}, row {row} begins at {begins}"));
            }
            if stretch.from == 0 {
                self.whole.insert(name.clone(), stretch.digest);
            } else {
                self.whole.remove(&name);
            }
            self.ends.insert(name, (stretch.to, row));
            self.read.push((row, main.clone(), stretch));
        }
    }

    /// Takes the row of a stop, or of the end, whether it read anything or not.
    pub fn stop(&mut self, row: u64) {
        self.stopped.get_or_insert(row);
    }

    /// Why what was read is not what the transcripts hold now, with findings, and how many stretches hold other bytes of the same length;
    /// nothing where it is. One that is gone is [told elsewhere](Self::lost).
    pub fn differs(
        &self,
        transcripts: &dyn Transcripts,
        main: &Path,
        sources: &Sources,
    ) -> Option<(&'static str, Vec<String>, u64)> {
        let mut altered = 0;
        let mut files = Files::new(transcripts, main, sources);
        let mut findings = Tally::new();
        for (index, (row, other, stretch)) in self.read.iter().enumerate() {
            let Stretch { file, from, to, digest: read, rewritten } = stretch;
            if self.again.get(&(other.clone(), file.clone())).is_some_and(|first| index < *first) {
                continue;
            }
            let there = |path: &PathBuf| path.exists() && !sources.is_masked(path);
            let Some(path) = files.path(other.as_deref(), file).filter(there) else { continue };
            if *rewritten {
                findings.apart(format!("row {row}: {file} no longer held what was read of it before"));
            }
            let now = digest(&path, *from, *to);
            if matches!(now, Ok(Some(found)) if found != *read) {
                altered += 1;
            }
            if !matches!(now, Ok(Some(found)) if found == *read) {
                findings.apart(format!("{file}: bytes {from} to {to} are not those that row {row} read"));
            }
        }
        let why = match (findings.total() == 0, self.apart.total() == 0) {
            (false, _) => "the transcript was rewritten after it was read",
            (true, false) => "what stops read of the transcript does not join",
            (true, true) if self.more => "more of the transcript was read than is checked again",
            (true, true) if self.unread.total() > 0 => "stops did not look at every transcript",
            (true, true) => return None,
        };
        self.apart.texts().into_iter().chain(self.unread.texts()).for_each(|finding| findings.apart(finding));
        if self.more {
            findings.apart(format!("more than {MOST_STRETCHES} stretches were read, and the others are not checked"));
        }
        Some((why, findings.texts(), altered))
    }

    /// The transcripts that a stop read and that are gone now, or shorter than what it read: the record does not speak for them. Of a bundle
    /// its manifest says what was there when it was made; `recorded` is the main conversation's file as the rows name it.
    pub fn lost(
        &self,
        transcripts: &dyn Transcripts,
        main: &Path,
        recorded: &Path,
        sources: &Sources,
    ) -> Option<Phase> {
        let mut files = Files::new(transcripts, main, sources);
        let mut lost: Vec<(u64, String)> = Vec::new();
        for (name, (end, row)) in &self.ends {
            let (other, file) = name;
            let (now, digest) = match sources.made_of() {
                Some(made_of) => {
                    let main = other.as_ref().map_or_else(|| recorded.to_owned(), PathBuf::from);
                    let told = made_of.get(&(main, file.clone()));
                    (told.map(|(size, _)| *size), told.map(|(_, digest)| *digest))
                }
                None => {
                    let found = files.path(other.as_deref(), file).and_then(|path| path.metadata().ok());
                    (found.map(|found| found.len()), None)
                }
            };
            let read = format!("{file}: row {row} read {end} bytes of it");
            match now {
                None => lost.push((*row, format!("{read}, and it is gone"))),
                Some(now) if now < *end => lost.push((*row, format!("{read}, and it has {now} now"))),
                // All of it was read at once: then its digest says whether it is what was read.
                Some(now)
                    if now == *end
                        && digest.is_some_and(|now| self.whole.get(name).is_some_and(|read| *read != now)) =>
                {
                    lost.push((*row, format!("{read}, all that it has, and other bytes than those")));
                }
                Some(_) => {}
            }
        }
        if lost.is_empty() {
            return self.unbound(main, recorded, sources);
        }
        lost.sort();
        let (count, all) = (lost.len(), self.ends.len());
        let mut findings = Tally::new();
        lost.into_iter().for_each(|(_, text)| findings.apart(text));
        let findings = findings.texts();
        let since = match sources.made_of() {
            Some(_) => "were gone, shorter or other than what was read when the bundle was made",
            None => "are gone or shorter now",
        };
        let summary = format!("{count} of {all} transcripts that stops read {since}");
        Some(absent(summary, findings))
    }

    /// The main transcript, where it is there and no stop read any of it: nothing on record says what it held.
    fn unbound(&self, main: &Path, recorded: &Path, sources: &Sources) -> Option<Phase> {
        let row = self.stopped.filter(|_| !self.ends.keys().any(|(_, file)| file == MAIN))?;
        let size = match sources.made_of() {
            Some(made_of) => made_of.get(&(recorded.to_owned(), MAIN.to_owned())).map(|(size, _)| *size),
            None => main.metadata().ok().map(|found| found.len()),
        };
        let size = size.filter(|size| *size > 0)?;
        let found = format!("{MAIN}: {size} bytes, and neither row {row} nor a later stop read any of them");
        Some(absent("no stop read the transcript: nothing on record says what it held".to_owned(), vec![found]))
    }
}

const fn absent(summary: String, findings: Vec<String>) -> Phase {
    Phase { name: "transcripts", outcome: Outcome::Absent, standing: Standing::Observed, summary, findings }
}

/// The files of conversations, each looked for once.
struct Files<'a> {
    transcripts: &'a dyn Transcripts,
    main: &'a Path,
    sources: &'a Sources,
    known: HashMap<Option<String>, HashMap<String, PathBuf>>,
}

impl<'a> Files<'a> {
    fn new(transcripts: &'a dyn Transcripts, main: &'a Path, sources: &'a Sources) -> Self {
        Self { transcripts, main, sources, known: HashMap::new() }
    }

    /// Where a transcript is, of the session's main conversation or of another one.
    fn path(&mut self, other: Option<&str>, file: &str) -> Option<PathBuf> {
        let main = other.map_or_else(|| self.main.to_owned(), |other| self.sources.main(Path::new(other)));
        if file == MAIN {
            return Some(main);
        }
        let listed = || self.transcripts.files(&main).map(|listed| listed.files).unwrap_or_default();
        let files = self.known.entry(other.map(str::to_owned)).or_insert_with(|| listed().into_iter().collect());
        files.get(file).cloned()
    }
}
