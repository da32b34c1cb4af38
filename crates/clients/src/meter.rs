//! What a session used so far, agent by agent, and how far its transcripts were read for it.
//!
//! Owns the counting: each message of the model's once, by its id, whatever file tells of it and however often (R18). What is kept
//! between two readings is a convenience: without it everything is read again and comes out the same. Invariants: a reading never
//! lowers what was counted, and no message counts twice, also where a transcript was rewritten or its end came late.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};

use crate::transcript::{Listing, MAIN, TranscriptError, Transcripts, digest};
use crate::usage::{AgentNote, Rate, Spoken, Tokens, plain_model};

use conversation::{Conversation, Models, News, Position, Said};

mod conversation;

/// Bytes before a position that are looked at again.
const TAIL: u64 = 1 << 10;
/// How many messages of an agent, its last ones, may still be told with greater usage: a client notes a message while it is being written.
const GROWING: usize = 64;
/// How many of all agents together.
const ALL_GROWING: usize = 256;
/// Bytes that stand for the id of a message in what is kept.
const NAME: usize = 8;

/// The count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meter {
    /// Conversations by the files of their main transcripts.
    mains: BTreeMap<String, Conversation>,
    /// What each agent used: [`MAIN`], or a subagent by its id.
    agents: BTreeMap<String, AgentUse>,
    #[serde(flatten)]
    messages: Messages,
    /// Lines about usage that cannot be read, and subagents that are not.
    unread: u64,
    /// Transcripts whose last line was cut off when they were last read: it is being written, or never was whole.
    #[serde(skip)]
    torn: Torn,
}

/// The messages that were counted, each once by its id (R18).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Messages {
    /// The last messages, newest last.
    growing: Vec<Growing>,
    /// Every message that was counted.
    #[serde(skip)]
    counted: Vec<[u8; NAME]>,
    /// For looking one up, while a reading lasts.
    #[serde(skip)]
    known: Known,
}

/// What one agent used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentUse {
    /// What its client notes of it.
    #[serde(flatten)]
    pub note: AgentNote,
    /// By rate.
    pub used: Vec<(Rate, Tokens)>,
}

impl AgentUse {
    /// All of it.
    pub fn tokens(&self) -> Tokens {
        self.used.iter().fold(Tokens::default(), |sum, (_, tokens)| sum.plus(*tokens))
    }

    /// Adds more.
    pub fn add(&mut self, rate: &Rate, tokens: Tokens) {
        match self.used.iter_mut().find(|(known, _)| known == rate) {
            Some((_, sum)) => *sum = sum.plus(tokens),
            None => self.used.push((rate.clone(), tokens)),
        }
    }
}

/// A message whose usage may still be told as greater.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Growing {
    id: String,
    agent: String,
    rate: Rate,
    tokens: Tokens,
}

/// Looks names up in a reading: few of them by going through the list, many in a set that is made for it.
#[derive(Clone, Debug, Default)]
struct Known {
    looked: usize,
    set: Option<HashSet<[u8; NAME]>>,
}

impl PartialEq for Known {
    /// It is no part of the count.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// Some transcripts.
#[derive(Clone, Debug, Default)]
struct Torn(BTreeSet<PathBuf>);

impl PartialEq for Torn {
    /// It is no part of the count.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Known {
    /// From how many on a set is worth making.
    const MANY: usize = 32;

    fn holds(&mut self, counted: &[[u8; NAME]], name: [u8; NAME]) -> bool {
        self.looked += 1;
        if self.looked < Self::MANY {
            return counted.contains(&name);
        }
        self.set.get_or_insert_with(|| counted.iter().copied().collect()).contains(&name)
    }

    fn add(&mut self, name: [u8; NAME]) {
        if let Some(set) = &mut self.set {
            set.insert(name);
        }
    }
}

/// A message's name.
fn name(id: &str) -> [u8; NAME] {
    Digest::of(id.as_bytes()).as_bytes().first_chunk().copied().unwrap_or_default()
}

impl Messages {
    /// Counts a message. Returns what it used that was not counted yet: whose it is, at which rate, how much.
    pub fn count(&mut self, agent: &str, id: &str, rate: &Rate, tokens: Tokens) -> Option<(String, Rate, Tokens)> {
        if let Some(told) = self.growing.iter_mut().rev().find(|told| told.id == id) {
            let more = tokens.beyond(told.tokens);
            if more.is_nothing() {
                return None;
            }
            told.tokens = told.tokens.most(tokens);
            return Some((told.agent.clone(), told.rate.clone(), more));
        }
        let name = name(id);
        if self.known.holds(&self.counted, name) {
            return None;
        }
        self.known.add(name);
        self.counted.push(name);
        // What others say pushes no message out that an agent is in the middle of.
        if self.growing.len() >= GROWING {
            self.make_room(agent);
        }
        self.growing.push(Growing { id: id.to_owned(), agent: agent.to_owned(), rate: rate.clone(), tokens });
        Some((agent.to_owned(), rate.clone(), tokens))
    }

    /// Forgets the oldest message of an agent that has as many as it may; or, of too many agents, of the one that has most.
    fn make_room(&mut self, agent: &str) {
        let own = self.growing.iter().filter(|told| told.agent == agent).count();
        let oldest = if own >= GROWING {
            self.growing.iter().position(|told| told.agent == agent)
        } else if self.growing.len() >= ALL_GROWING {
            self.oldest_of_most()
        } else {
            None
        };
        if let Some(oldest) = oldest {
            self.growing.remove(oldest);
        }
    }

    /// Where the oldest message is of the agent that has most.
    fn oldest_of_most(&self) -> Option<usize> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.growing.iter().for_each(|told| *counts.entry(&told.agent).or_default() += 1);
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        self.growing.iter().position(|told| told.agent == most)
    }

    /// What stands for every message that was counted; kept beside the rest.
    pub fn counted_names(&self) -> &[u8] {
        self.counted.as_flattened()
    }

    /// Takes [`Messages::counted_names`] back. Returns whether it could be that.
    pub fn name_counted(&mut self, bytes: &[u8]) -> bool {
        let (names, rest) = bytes.as_chunks::<NAME>();
        self.counted = names.to_vec();
        rest.is_empty()
    }
}

impl Meter {
    /// Reads what was kept; what does not read is as if nothing was.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        let mut meter: Self = json::from_slice(bytes.get(..end)?).ok()?;
        meter.messages.name_counted(bytes.get(end + 1..)?).then_some(meter)
    }

    /// As it is kept: a line of JSON, then a name for each message that was counted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = json::to_compact(self).into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.messages.counted_names());
        bytes
    }

    /// Reads what is new in the transcripts of a conversation. Returns whether something was.
    pub fn read(&mut self, transcripts: &dyn Transcripts, main: &Path) -> Result<bool, TranscriptError> {
        let Listing { files, unread } = transcripts.files(main)?;
        let key = main.to_string_lossy().into_owned();
        let mut talk = self.mains.remove(&key).unwrap_or_default();
        let mut news = News::default();
        self.messages.known = Known::default();
        let mut result = Ok(unread > 0 && self.unread < unread);
        self.unread = self.unread.max(unread);
        for (agent, path) in files {
            match self.read_one(transcripts, &path, &agent, &mut talk.files, &mut news) {
                Ok(new) => result = result.map(|before| before || new),
                // What can be read of the others is; that this one cannot is told.
                Err(error) => result = Err(error),
            }
        }
        talk.take(&news);
        self.mains.insert(key, talk);
        result
    }

    fn read_one(
        &mut self,
        transcripts: &dyn Transcripts,
        path: &Path,
        agent: &str,
        files: &mut BTreeMap<String, Position>,
        news: &mut News,
    ) -> Result<bool, TranscriptError> {
        let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
        let before = files.get(agent);
        let from = match before {
            None => 0,
            Some(Position { end, .. }) if path.metadata().map_err(failed)?.len() == *end => return Ok(false),
            Some(Position { end, tail }) => {
                let same = digest(path, end.saturating_sub(TAIL), *end).map_err(failed)? == Some(*tail);
                // Messages that were counted are known, so reading a rewritten file again counts none of them twice.
                if same { *end } else { 0 }
            }
        };
        let reach = transcripts.usage(path, from, &mut |spoken| match spoken {
            Spoken::Message { id, rate, tokens, at } => {
                let more = self.message(agent, &id, &rate, tokens);
                if !more.is_nothing() {
                    let said = if agent == MAIN { &mut news.main } else { &mut news.others };
                    said.push(Said { model: plain_model(&rate.model).to_owned(), tokens: more, at });
                }
            }
            Spoken::Total(models) => {
                let mut stated = Models::default();
                models.into_iter().for_each(|(model, tokens)| stated.add(&model, tokens));
                news.totals.push((stated, news.main.len()));
            }
            Spoken::Unreadable => self.unread += 1,
        })?;
        if reach.torn {
            self.torn.0.insert(path.to_owned());
        } else {
            self.torn.0.remove(path);
        }
        if agent != MAIN {
            let entry = self.agents.entry(agent.to_owned()).or_default();
            if entry.note == AgentNote::default() {
                entry.note = transcripts.note(path);
            }
        }
        let tail = digest(path, reach.end.saturating_sub(TAIL), reach.end).map_err(failed)?.unwrap_or(Digest::ZERO);
        let position = Position { end: reach.end, tail };
        let new = files.get(agent) != Some(&position);
        files.insert(agent.to_owned(), position);
        Ok(new)
    }

    /// Counts a message. Returns what it used that was not counted yet.
    fn message(&mut self, agent: &str, id: &str, rate: &Rate, tokens: Tokens) -> Tokens {
        let Some((agent, rate, more)) = self.messages.count(agent, id, rate, tokens) else { return Tokens::default() };
        self.agents.entry(agent).or_default().add(&rate, more);
        more
    }

    /// What each agent used; what the client says beyond all messages is the main agent's, for no message tells of it: summaries,
    /// titles and the like, which the client asks the model for by itself.
    pub fn agents(&self) -> BTreeMap<String, AgentUse> {
        let mut agents = self.agents.clone();
        let main = agents.entry(MAIN.to_owned()).or_default();
        let unspoken = self.mains.values().fold(Models::default(), |sum, talk| sum.plus(&talk.beyond_messages()));
        for (model, tokens) in unspoken.0 {
            if !tokens.is_nothing() {
                main.add(&Rate { model, ..Rate::default() }, tokens);
            }
        }
        agents
    }

    /// The last messages, newest first: at which rate, and how much.
    pub fn last_messages(&self) -> impl Iterator<Item = (&Rate, Tokens)> {
        self.messages.growing.iter().rev().map(|told| (&told.rate, told.tokens))
    }

    /// How many transcripts end in a line that is cut off.
    pub fn torn(&self) -> usize {
        self.torn.0.len()
    }

    /// How many lines about usage, or transcripts of subagents, could not be read.
    pub const fn unread(&self) -> u64 {
        self.unread
    }
}

#[cfg(test)]
mod tests;
