//! Transcripts that are files of JSON lines: the walk through their bytes, the same for every such client.
//!
//! Owns lines and their limits; what a line says its client's folder tells ([`Lines`]). Refuses to skip what it cannot read: such lines
//! are told as unreadable, so that nobody takes a gap for completeness. The invariant: memory is that of the longest line. Format pages:
//! `spec/clients/`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use writ_core::json::{self, Value};
use writ_core::{Outcome, Timestamp, ToolCall, regular_file};

use crate::past::{PastAgent, PastCall, Unseen};
use crate::transcript::{Line, Listing, Reach, Told, TranscriptError, Transcripts, parse_line};
use crate::usage::{AgentNote, Spoken};
use crate::work::{Action, Work};

/// The longest line that is read; longer ones count as unreadable.
const LINE_LIMIT: u64 = 64 << 20;
/// The longest transcript file.
const FILE_LIMIT: u64 = 4 << 30;
/// The longest one that is read for an agent's work.
const WORK_LIMIT: u64 = 256 << 20;
/// How much of a transcript's end is looked at for a call.
const END: u64 = 4 << 20;
/// The longest first line that is read by itself.
const HEAD: u64 = 1 << 20;

/// What one client's lines say.
pub(crate) trait Lines {
    /// Calls and results.
    fn tell(&self, entry: &Value, take: &mut dyn FnMut(Told<'_>));
    /// Usage.
    fn spoken(&self, entry: &Value) -> Option<Spoken>;
    /// A prompt's moment, where the line is one.
    fn prompt(&self, entry: &Value) -> Option<Option<Timestamp>>;
    /// The model that speaks in the line.
    fn model<'a>(&self, entry: &'a Value) -> Option<&'a str>;
    /// What the agent says to people in the line.
    fn words(&self, entry: &Value) -> Option<String>;
    /// A call that may have changed a file.
    fn acts(&self, entry: &Value) -> Vec<Action>;
    /// The calls that the line tells of, with their whole input, as hooks are asked about them. `cwd` is the conversation's folder.
    fn made(&self, entry: &Value, cwd: &str) -> Vec<Made>;
    /// The folder that the line says the conversation is in.
    fn folder<'a>(&self, entry: &'a Value) -> Option<&'a str>;
}

/// A client whose transcripts are such files, of whose lines each speaks for itself.
pub(crate) trait LineFiles {
    /// What its lines say.
    fn each_line(&self) -> &'static dyn Lines;
    /// The files of a session.
    fn all(&self, main: &Path) -> Result<Listing, TranscriptError>;
    /// What the client notes of the subagent whose file this is.
    fn noted(&self, _path: &Path) -> AgentNote {
        AgentNote::default()
    }
    /// What stands in none of its files.
    fn untold(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether it is written while a stop's hook runs.
    fn late(&self) -> bool {
        false
    }
    /// What the client keeps now, of one whose files are drawn from that.
    fn kept_now(&self, _main: &Path, _take: &mut dyn FnMut(Told<'_>)) -> Result<(), TranscriptError> {
        Ok(())
    }
}

impl<T: LineFiles + Sync> Transcripts for T {
    fn files(&self, main: &Path) -> Result<Listing, TranscriptError> {
        self.all(main)
    }

    fn read(&self, path: &Path, from: u64, take: &mut dyn FnMut(Told<'_>)) -> Result<Reach, TranscriptError> {
        read(self.each_line(), path, from, take)
    }

    fn work(&self, path: &Path) -> Option<Work> {
        work(self.each_line(), path)
    }

    fn usage(&self, path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError> {
        usage(self.each_line(), path, from, take)
    }

    fn lines(&self, path: &Path, from: u64, take: &mut dyn FnMut(Line<'_>)) -> Result<Reach, TranscriptError> {
        each(self.each_line(), path, from, take)
    }

    fn tells_of(&self, path: &Path, call: &str) -> bool {
        tells_of(path, call)
    }

    fn model(&self, path: &Path, call: Option<&str>) -> Option<String> {
        model(self.each_line(), path, call)
    }

    fn note(&self, path: &Path) -> AgentNote {
        self.noted(path)
    }

    fn unseen(&self) -> &'static [&'static str] {
        self.untold()
    }

    fn written_late(&self) -> bool {
        self.late()
    }

    fn beside(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    fn now(&self, main: &Path, take: &mut dyn FnMut(Told<'_>)) -> Result<(), TranscriptError> {
        self.kept_now(main, take)
    }
}

/// A call on a line.
pub(crate) struct Made {
    pub id: String,
    pub call: ToolCall,
    /// The sub-agent that made it, where the line says so.
    pub agent: Option<String>,
    /// Run by the model's provider.
    pub server_side: bool,
}

/// A member that is a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A line's moment.
pub(crate) fn moment(entry: &Value) -> Option<Timestamp> {
    text(entry, "timestamp").and_then(|moment| Timestamp::parse(moment).ok())
}

/// A line, or a part of one that is longer than is held.
struct Piece<'a> {
    bytes: &'a [u8],
    /// Whether the line ends here.
    ends: bool,
    /// Whether all of it is in `bytes`.
    whole: bool,
    /// Behind its line feed, in bytes.
    end: u64,
}

fn open(path: &Path, from: u64, most: u64) -> Result<BufReader<io::Take<File>>, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let mut file = regular_file::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > most {
        return Err(TranscriptError::TooLarge { path: path.to_owned(), most });
    }
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    Ok(BufReader::new(file.take(most)))
}

/// Goes through a file from byte `from` on. `torn` is a last line without an end; where it is whole JSON it is told, and read again once
/// it has one.
fn walk(path: &Path, from: u64, most: u64, take: &mut dyn FnMut(Piece<'_>)) -> Result<Reach, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let mut reader = open(path, from, most)?;
    pieces(&mut reader, from, LINE_LIMIT, take).map_err(failed)
}

fn pieces(reader: &mut impl BufRead, from: u64, longest: u64, take: &mut dyn FnMut(Piece<'_>)) -> io::Result<Reach> {
    let (mut whole, mut at, mut line) = (from, from, Vec::new());
    loop {
        line.clear();
        let length = reader.take(longest).read_until(b'\n', &mut line)? as u64;
        let begun = at > whole;
        at += length;
        match line.split_last() {
            Some((b'\n', bytes)) => {
                whole = at;
                take(Piece { bytes, ends: true, whole: !begun, end: at });
            }
            Some(_) if length == longest => take(Piece { bytes: &line, ends: false, whole: false, end: at }),
            Some(_) if !begun => {
                take(Piece { bytes: &line, ends: false, whole: true, end: at });
                return Ok(Reach { end: whole, torn: parse_line(&line).is_err() });
            }
            _ => return Ok(Reach { end: whole, torn: at > whole }),
        }
    }
}

/// An entry of a piece that is one: the value, or that it cannot be read. Nothing of an empty line, or of a part.
fn entry(piece: &Piece<'_>) -> Option<Result<Value, ()>> {
    match (piece.whole, piece.ends) {
        (true, _) if piece.bytes.trim_ascii().is_empty() => None,
        (true, ends) => match parse_line(piece.bytes) {
            Ok(value) if value.as_object().is_some() => Some(Ok(value)),
            _ => ends.then_some(Err(())),
        },
        (false, true) => Some(Err(())),
        (false, false) => None,
    }
}

/// Tells of calls and results.
pub(crate) fn read(
    lines: &dyn Lines,
    path: &Path,
    from: u64,
    take: &mut dyn FnMut(Told<'_>),
) -> Result<Reach, TranscriptError> {
    walk(path, from, FILE_LIMIT, &mut |piece| match entry(&piece) {
        Some(Ok(value)) => lines.tell(&value, take),
        Some(Err(())) => take(Told::Unreadable),
        None => {}
    })
}

/// Tells of usage. What a line without an end tells is told again once it has one.
pub(crate) fn usage(
    lines: &dyn Lines,
    path: &Path,
    from: u64,
    take: &mut dyn FnMut(Spoken),
) -> Result<Reach, TranscriptError> {
    walk(path, from, FILE_LIMIT, &mut |piece| {
        let spoken = match entry(&piece) {
            Some(Ok(value)) => lines.spoken(&value),
            Some(Err(())) => Some(Spoken::Unreadable),
            None => None,
        };
        spoken.into_iter().filter(|spoken| piece.ends || *spoken != Spoken::Unreadable).for_each(&mut *take);
    })
}

/// Tells line by line.
pub(crate) fn each(
    lines: &dyn Lines,
    path: &Path,
    from: u64,
    take: &mut dyn FnMut(Line<'_>),
) -> Result<Reach, TranscriptError> {
    walk(path, from, FILE_LIMIT, &mut |piece| {
        let Piece { bytes, ends, whole, end } = piece;
        if whole && !ends {
            return;
        }
        let mut line = Line { bytes, ends, end, prompt: None, spoken: None };
        match entry(&piece) {
            Some(Ok(value)) => (line.prompt, line.spoken) = (lines.prompt(&value), lines.spoken(&value)),
            Some(Err(())) => line.spoken = Some(Spoken::Unreadable),
            None => {}
        }
        take(line);
    })
}

/// What an agent did and said; `None` where there is no transcript that can be read.
pub(crate) fn work(lines: &dyn Lines, path: &Path) -> Option<Work> {
    let mut work = Work { whole: true, ..Work::default() };
    let mut open: HashMap<String, usize> = HashMap::new();
    walk(path, 0, WORK_LIMIT, &mut |piece| match entry(&piece) {
        Some(Ok(value)) => {
            for action in lines.acts(&value) {
                if !open.contains_key(&action.call_id) {
                    open.insert(action.call_id.clone(), work.actions.len());
                    work.actions.push(action);
                }
            }
            lines.tell(&value, &mut |told| {
                let Told::Result { call_id, outcome } = told else { return };
                if let Some(action) = open.get(call_id).and_then(|at| work.actions.get_mut(*at)) {
                    action.succeeded = Some(outcome(&action.tool) == Outcome::Completed);
                    action.ended = moment(&value);
                }
            });
            work.last_message = lines.words(&value).or(work.last_message.take());
        }
        Some(Err(())) => work.whole = false,
        None => {}
    })
    .ok()?;
    Some(work)
}

/// Tells the past calls of a session's transcripts, each with who wrote it; one call is told once, however often its line comes again.
/// `cwd` is where the conversation is until a line says it.
pub(crate) fn calls(
    lines: &dyn Lines,
    (listing, cwd): (Listing, &str),
    agent: impl Fn(&str, &Path) -> Option<PastAgent>,
    take: &mut dyn FnMut(PastCall),
) -> Result<Unseen, TranscriptError> {
    let mut calls = Calls { cwd: cwd.to_owned(), ..Calls::default() };
    calls.unseen.agents = listing.unread;
    for (name, path) in listing.files {
        let by = agent(&name, &path);
        let reach = walk(&path, 0, FILE_LIMIT, &mut |piece| {
            if let Some(entry) = entry(&piece) {
                calls.entry(lines, entry.ok().as_ref(), by.as_ref());
            }
        })?;
        calls.unseen.unreadable += u64::from(reach.torn);
    }
    Ok(calls.tell(take))
}

/// The past calls that entries tell of, in their order.
#[derive(Default)]
pub(crate) struct Calls {
    /// Where the conversation is.
    pub cwd: String,
    /// The place of each call, by its id.
    open: HashMap<String, usize>,
    told: Vec<PastCall>,
    unseen: Unseen,
}

impl Calls {
    /// Takes the next entry, and who wrote it; `None` for one that cannot be read.
    pub fn entry(&mut self, lines: &dyn Lines, entry: Option<&Value>, by: Option<&PastAgent>) {
        let Some(value) = entry else {
            self.unseen.unreadable += 1;
            return;
        };
        if let Some(folder) = lines.folder(value).filter(|folder| folder.starts_with('/')) {
            folder.clone_into(&mut self.cwd);
        }
        for Made { id, call, agent, server_side } in lines.made(value, &self.cwd) {
            if self.open.contains_key(&id) {
                continue;
            }
            if server_side {
                self.unseen.server_side += 1;
                continue;
            }
            self.open.insert(id.clone(), self.told.len());
            let agent = agent.map(|id| PastAgent { id, kind: None }).or_else(|| by.cloned());
            self.told.push(PastCall { id, call, agent, at: moment(value), outcome: None });
        }
        let Self { open, told, unseen, .. } = self;
        lines.tell(value, &mut |one| match one {
            Told::Result { call_id, outcome } => {
                if let Some(call) = open.get(call_id).and_then(|at| told.get_mut(*at)) {
                    call.outcome = Some(outcome(&call.call.tool));
                }
            }
            Told::Unreadable => unseen.unreadable += 1,
            Told::Call(_) => {}
        });
    }

    /// Tells them, and gives what was not told.
    pub fn tell(self, take: &mut dyn FnMut(PastCall)) -> Unseen {
        self.told.into_iter().for_each(take);
        self.unseen
    }
}

/// The files in these folders whose first line is as wanted, the oldest first.
pub(crate) fn beginning(
    folders: impl Iterator<Item = PathBuf>,
    wanted: impl Fn(&Path, &Value) -> bool,
) -> Vec<PathBuf> {
    let all = folders
        .flat_map(|folder| inside(&folder))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let mut found: Vec<PathBuf> = all.filter(|path| wanted(path, &first_entry(path))).collect();
    let written = |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    found.sort_by_cached_key(|path| (written(path), path.clone()));
    found
}

/// What is in a folder.
pub(crate) fn inside(of: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(of).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The lines that have their end among the last bytes before a place.
fn last_bytes(path: &Path, before: Option<u64>) -> io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    let length = before.unwrap_or(u64::MAX).min(file.metadata()?.len());
    let from = length.saturating_sub(END);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(length - from).read_to_end(&mut bytes)?;
    let end = memchr::memrchr(b'\n', &bytes).unwrap_or_default();
    bytes.truncate(end);
    Ok(bytes)
}

/// Whether the end of a transcript tells of a call, in a line that has its end.
pub(crate) fn tells_of(path: &Path, call: &str) -> bool {
    let bytes = last_bytes(path, None).unwrap_or_default();
    memmem::find(&bytes, json::to_compact(call).as_bytes()).is_some()
}

/// The model of the line that made a call, or of the last line that names one, as the end of a transcript tells. Where a line of its own
/// names the model, it is the last such one before the call.
pub(crate) fn model(lines: &dyn Lines, path: &Path, call: Option<&str>) -> Option<String> {
    models(lines, &last_bytes(path, None).ok()?, call)
}

/// The same, before a byte.
pub(crate) fn model_before(lines: &dyn Lines, path: &Path, before: u64) -> Option<String> {
    models(lines, &last_bytes(path, Some(before)).ok()?, None)
}

fn models(lines: &dyn Lines, bytes: &[u8], call: Option<&str>) -> Option<String> {
    let call = call.map(json::to_compact);
    let mut made = call.is_none();
    bytes.rsplit(|&byte| byte == b'\n').find_map(|line| {
        made |= call.as_ref().is_some_and(|call| memmem::find(line, call.as_bytes()).is_some());
        let entry = parse_line(line).ok().filter(|_| made)?;
        lines.model(&entry).map(str::to_owned)
    })
}

/// A file's first line; null where there is none that can be read.
pub(crate) fn first_entry(path: &Path) -> Value {
    let read = || {
        let mut line = Vec::new();
        BufReader::new(regular_file::open(path)?.take(HEAD)).read_until(b'\n', &mut line)?;
        io::Result::Ok(line)
    };
    read().ok().and_then(|line| parse_line(&line).ok()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, longest: u64) -> (String, Reach) {
        let mut kinds = String::new();
        let reach = pieces(&mut text.as_bytes(), 0, longest, &mut |piece| {
            kinds.push(match entry(&piece) {
                Some(Ok(_)) => 'v',
                Some(Err(())) => '!',
                None if piece.ends => '.',
                None => '-',
            });
        });
        (kinds, reach.unwrap())
    }

    #[test]
    fn lines_that_cannot_be_read_are_told_and_one_without_an_end_is_read_again() {
        for (text, told, end, torn) in [
            ("{}\n{}\n", "vv", 6, false),
            ("{}\n{}", "vv", 3, false),
            ("{}\n{\"a", "v-", 3, true),
            ("{}\n\n[]\nx\n", "v.!!", 9, false),
            ("0123456789\n{}\n", "--!v", 14, false),
            ("{}\n0123456789", "v--", 3, true),
            ("", "", 0, false),
        ] {
            assert_eq!(kinds(text, 4), (told.to_owned(), Reach { end, torn }), "{text:?}");
        }
    }
}
