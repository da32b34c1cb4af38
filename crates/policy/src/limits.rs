//! Limits of what a session may use: what each counts, and how much was used.
//!
//! Owns the six limits, their two modes (R17, R73) and how amounts are read and shown. Counts nothing itself: the caller brings a
//! [`Tally`]. Invariant: what is not known is never taken for nothing; a count that is not known is an error. Page: `spec/limits.md`.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use writ_core::Money;
use writ_core::json::{self, Value};

use crate::flow::Taint;

/// What a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Measure {
    /// Money, in micro-dollars.
    #[serde(rename = "maxSpendUSD")]
    Spend,
    /// Tokens that the model read.
    #[serde(rename = "maxTokensIn")]
    TokensIn,
    /// Tokens that the model wrote.
    #[serde(rename = "maxTokensOut")]
    TokensOut,
    /// Prompts.
    #[serde(rename = "maxTurns")]
    Turns,
    /// Seconds since the session began.
    #[serde(rename = "maxWallTimeSeconds")]
    WallTime,
    /// Tool calls that were allowed or left to a human's word.
    #[serde(rename = "maxToolCalls")]
    ToolCalls,
}

impl Measure {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 6] =
        [Self::Spend, Self::TokensIn, Self::TokensOut, Self::Turns, Self::WallTime, Self::ToolCalls];

    /// The member's name in a policy.
    pub fn name(self) -> &'static str {
        json::word(&self)
    }

    /// The rule's pointer.
    pub fn pointer(self) -> String {
        format!("/limits/{}", self.name())
    }

    /// Whether it is counted from the client's transcripts.
    pub const fn is_told_by_client(self) -> bool {
        matches!(self, Self::Spend | Self::TokensIn | Self::TokensOut)
    }

    /// The mode of a limit that is a bare number (R73).
    const fn waits_by_default(self) -> bool {
        matches!(self, Self::TokensOut | Self::Turns | Self::ToolCalls)
    }

    /// An amount of it, for people: `$5.00`, `1 tool call`.
    pub fn shown(self, amount: u64) -> String {
        let plural = if amount == 1 { "" } else { "s" };
        match self.unit() {
            Some(unit) => format!("{} {unit}{plural}", self.number(amount)),
            None => self.number(amount),
        }
    }

    /// An amount and the most it may be: `$1.00 of $5.00`, `3 of 20 tool calls`.
    pub fn shown_of(self, amount: u64, most: u64) -> String {
        format!("{} of {}", self.number(amount), self.shown(most))
    }

    /// What is counted, where its number alone does not say so.
    const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Spend | Self::WallTime => None,
            Self::TokensIn | Self::TokensOut => Some("token"),
            Self::Turns => Some("turn"),
            Self::ToolCalls => Some("tool call"),
        }
    }

    pub(crate) fn number(self, amount: u64) -> String {
        match self {
            Self::Spend => Money::from_micros(amount).to_string(),
            Self::WallTime => duration(amount),
            Self::TokensIn | Self::TokensOut | Self::Turns | Self::ToolCalls => thousands(amount),
        }
    }

    /// An amount as people write it for this limit: dollars, or a whole number.
    pub fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Spend => Money::parse(text.trim_start_matches('$')).map(Money::micros),
            Self::TokensIn | Self::TokensOut | Self::Turns | Self::WallTime | Self::ToolCalls => text.parse().ok(),
        }
    }

    /// The same as a word for a command line.
    pub(crate) fn written(self, amount: u64) -> String {
        match self {
            Self::Spend => Money::from_micros(amount).to_string().trim_start_matches('$').to_owned(),
            Self::TokensIn | Self::TokensOut | Self::Turns | Self::WallTime | Self::ToolCalls => amount.to_string(),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, 0) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// One limit of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What it counts.
    pub measure: Measure,
    /// How much: micro-dollars, tokens, turns, seconds or calls.
    pub value: u64,
    /// Whether it is only held against the session's end.
    pub post_hoc: bool,
}

impl Limit {
    pub(crate) fn read_all(document: &Value) -> Vec<Self> {
        let limits = document.get("limits");
        let read = |measure: Measure| {
            let limit = limits?.get(measure.name())?;
            let number = limit.as_object().map_or(Some(limit), |limit| limit.get("value"))?;
            let post_hoc = match limit.get("enforcement").and_then(Value::as_str) {
                Some(word) => word == "post-hoc",
                None => limit.as_object().is_none() && measure.waits_by_default(),
            };
            let value = if measure == Measure::Spend { micros(number.as_f64()?) } else { number.as_u64()? };
            Some(Self { measure, value, post_hoc })
        };
        Measure::ALL.into_iter().filter_map(read).collect()
    }
}

/// What a session is held to where several policies limit it: of each count the least that refuses, then the least that is held
/// against the end.
pub fn strictest<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Vec<Limit> {
    let mut out: Vec<Limit> = limits.into_iter().copied().collect();
    out.sort_by_key(|limit| (limit.measure, limit.post_hoc, limit.value));
    out.dedup_by_key(|limit| (limit.measure, limit.post_hoc));
    out
}

/// Dollars as micro-dollars. Amounts that are finer, or too large for this, are errors of the policy.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 9e15, as the policy was checked"
)]
fn micros(dollars: f64) -> u64 {
    (dollars * 1e6).round().clamp(0.0, 9e15) as u64
}

/// What a session used by its client's own word.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens that the model read, from caches too.
    pub tokens_in: u64,
    /// Tokens that the model wrote.
    pub tokens_out: u64,
    /// What that cost, as far as it is known.
    pub spend: Money,
    /// Why the tokens are not known, or not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// A model that was used and that has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
}

/// Limits that a human raised for a session, by what they count.
pub type Raised = BTreeMap<Measure, u64>;

/// What was refused last because a limit was reached, since a prompt was last taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refused {
    /// A tool call.
    Call,
    /// A prompt.
    Prompt,
}

/// What a session has used so far, before what is judged. It stands in the state that each row keeps (R43).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// Tool calls that were allowed or left to a human's word. Denied ones do not count (R17).
    pub calls: u64,
    /// Prompts that were taken.
    pub turns: u64,
    /// Milliseconds since the session began.
    pub millis: u64,
    /// What was refused last.
    pub refused: Option<Refused>,
    /// What the transcripts tell; `None` where nothing was read of them yet.
    pub usage: Option<&'a Usage>,
    /// What a human raised.
    pub raised: Option<&'a Raised>,
    /// The labels of what the session has taken in.
    pub taint: Option<&'a Taint>,
    /// There is something before that no label was given to: it is on no record, or another policy governed.
    pub unread: bool,
}

impl Tally<'_> {
    /// How much of it was used; `Err` says why that is not known.
    pub fn used(self, measure: Measure) -> Result<u64, String> {
        let told = |amount: fn(&Usage) -> u64| match self.usage {
            None => Ok(0),
            Some(Usage { unknown: Some(why), .. }) => Err(why.clone()),
            Some(Usage { unpriced: Some(model), .. }) if measure == Measure::Spend => {
                Err(format!("there is no price for the model `{model}`"))
            }
            Some(usage) => Ok(amount(usage)),
        };
        match measure {
            Measure::Spend => told(|usage| usage.spend.micros()),
            Measure::TokensIn => told(|usage| usage.tokens_in),
            Measure::TokensOut => told(|usage| usage.tokens_out),
            Measure::Turns => Ok(self.turns),
            Measure::WallTime => Ok(self.millis / 1000),
            Measure::ToolCalls => Ok(self.calls),
        }
    }

    /// What the session is held to.
    pub fn limit(self, limit: &Limit) -> u64 {
        let raised = self.raised.and_then(|raised| raised.get(&limit.measure)).copied();
        raised.map_or(limit.value, |raised| raised.max(limit.value))
    }
}

/// What agents of one type used, and the limits that are theirs.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// The type.
    pub agent: &'a str,
    /// The limits.
    pub limits: &'a [Limit],
    /// The count.
    pub tally: Tally<'a>,
}

/// What is about to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A tool call.
    Call,
    /// A turn: a human's prompt.
    Prompt,
    /// A turn of a sub-agent: the task that it is given.
    Start,
    /// The next request to the model, behind a turn's calls.
    Request,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_as_people_write_them() {
        for (measure, amount, shown, text) in [
            (Measure::Spend, 1_250_000, "$1.25", "1.25"),
            (Measure::TokensIn, 1_234_567, "1,234,567 tokens", "1234567"),
            (Measure::WallTime, 59, "59 s", "59"),
            (Measure::WallTime, 3_660, "1 h 1 min", "3660"),
            (Measure::WallTime, 600, "10 min", "600"),
            (Measure::ToolCalls, 20, "20 tool calls", "20"),
        ] {
            assert_eq!((measure.shown(amount), measure.read(text)), (shown.to_owned(), Some(amount)));
            assert_eq!(measure.read(&measure.written(amount)), Some(amount));
        }
        assert_eq!((Measure::Spend.read("$2"), Measure::Turns.read("1.5")), (Some(2_000_000), None));
    }
}
