//! What a conversation used up, as its client's transcripts tell, in words that fit every client.
//!
//! Owns the kinds of tokens and what is known of an agent. Knows no price. Invariant: kinds are kept apart as the model's provider
//! tells them, because they cost differently; sums are made by whoever needs one. Page: `spec/limits.md`.

use serde::{Deserialize, Serialize};
use writ_core::Timestamp;

/// Tokens, and what else a provider counts, of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tokens {
    /// Read by the model, and not from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub input: u64,
    /// Written by the model, its thinking included.
    #[serde(skip_serializing_if = "is_zero")]
    pub output: u64,
    /// Read from a cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Written to a cache that lasts five minutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// Written to a cache that lasts an hour.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_hour: u64,
    /// Searches of the web that the provider ran.
    #[serde(skip_serializing_if = "is_zero")]
    pub searches: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Tokens {
    /// All that the model read: from a cache, into one, and past it.
    pub const fn all_input(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_write_hour)
    }

    /// Both, kind by kind.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// What it has more than another, kind by kind.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// The greater of both, kind by kind.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        self.with(other, u64::max)
    }

    /// The lesser of both, kind by kind.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        self.with(other, u64::min)
    }

    fn with(self, other: Self, each: fn(u64, u64) -> u64) -> Self {
        Self {
            input: each(self.input, other.input),
            output: each(self.output, other.output),
            cache_read: each(self.cache_read, other.cache_read),
            cache_write: each(self.cache_write, other.cache_write),
            cache_write_hour: each(self.cache_write_hour, other.cache_write_hour),
            searches: each(self.searches, other.searches),
        }
    }

    /// Whether nothing was used.
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// At which rate a message is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rate {
    /// The model, as the provider names it.
    pub model: String,
    /// It was one of a batch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
    /// It was answered at a speed that has its own price.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
    /// It was answered within a region that its user chose.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub regional: bool,
    /// How many whole hundreds of thousands of tokens the model read more than none for it: some models cost more above some length.
    #[serde(skip_serializing_if = "is_zero")]
    pub length: u64,
}

impl Rate {
    /// The class of a length, of all that was read: 0 up to 100,000 tokens, 1 up to 200,000.
    pub const fn length_of(read: u64) -> u64 {
        read.saturating_sub(1) / 100_000
    }
}

/// A model's name without what tells only how it was asked for: `[1m]`, a date.
pub fn plain_model(model: &str) -> &str {
    let model = model.split('[').next().unwrap_or(model);
    match model.rsplit_once('-') {
        Some((stem, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => model,
    }
}

/// What a transcript tells of usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// A message of the model's. The same one may be told several times, with usage that grows.
    Message {
        /// The provider's id of it.
        id: String,
        /// At which rate.
        rate: Rate,
        /// What it used.
        tokens: Tokens,
        /// When, where the client's own sums leave out what comes later.
        at: Option<Timestamp>,
    },
    /// What the client itself says that the whole conversation used so far, subagents included, by model.
    Total(Vec<(String, Tokens)>),
    /// A line about usage that cannot be read.
    Unreadable,
}

/// What a client notes of a subagent beside its transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentNote {
    /// `general-purpose` and the like.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How many agents there are from the main one down to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
}
