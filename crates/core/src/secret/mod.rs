//! Tokens in names and paths: masked before anything is judged or recorded (R8).
//!
//! Knows the shapes that providers gave their tokens so that they can be found. A secret without such a shape, used as a program's
//! or a file's name, is not found.

mod line;
mod names;
mod pairs;
mod places;
mod programs;
mod values;

use std::borrow::Cow;

use crate::{Digest, json};

pub use line::hide;
pub use values::Secrets;

/// How a token begins, and how many more characters it has at least.
const SHAPES: [(&str, usize); 58] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("npm_", 20),
    ("pypi-", 20),
    ("AIza", 30),
    ("ya29.", 20),
    ("eyJ", 30),
    ("dop_v1_", 20),
    ("hf_", 20),
    ("SG.", 20),
    ("shpat_", 20),
    ("dckr_pat_", 16),
    ("lin_api_", 16),
    ("sq0csp-", 16),
    ("AGE-SECRET-KEY-", 16),
    ("whsec_", 16),
    ("sk_", 24),
    ("rk_test_", 16),
    ("gsk_", 20),
    ("xai-", 20),
    ("r8_", 20),
    ("glptt-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("ATATT", 20),
    ("shpss_", 20),
    ("shpca_", 20),
    ("hvs.", 20),
    ("hvb.", 20),
    ("tskey-", 16),
    ("nvapi-", 20),
    ("dapi", 32),
    ("PMAK-", 20),
    ("key-", 32),
    ("xapp-", 16),
    ("xoxe-", 16),
    ("EAACEdEose0cBA", 10),
    ("fo1_", 20),
    ("pscale_", 16),
    ("sbp_", 20),
    ("tfp_", 20),
    ("ops_", 40),
];
/// No token has a run of letters and digits shorter than this.
const SHORTEST: usize = 14;
/// Longest id that is recorded as it is, in bytes as JSON writes them.
const MAX_ID: usize = 1024;
/// What stands in a token's place.
const MASK: &str = "[secret]";

/// The text with its tokens masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    if text.len() < SHORTEST {
        return Cow::Borrowed(text);
    }
    if text.as_bytes().contains(&b' ')
        && let Some((before, rest)) = text.split_once("-----BEGIN ")
        && let Some((kind, body)) = rest.split_once("-----")
        && kind.contains("PRIVATE KEY")
    {
        let after = body.split_once("-----END ").and_then(|(_, end)| end.split_once("-----"));
        let after = after.map_or("", |(_, after)| after);
        return Cow::Owned(format!("{}{MASK}{}", mask(before), mask(after)));
    }
    // Nearly every name is too short to be one.
    let other = |byte: &u8| !is_token(char::from(*byte));
    if !text.as_bytes().split(other).any(|run| run.len() >= SHORTEST) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.char_indices() {
        if at < done || text.get(..at).is_some_and(|before| before.ends_with(is_token)) {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let long = |(start, least): &&(&str, usize)| {
            rest.strip_prefix(start).is_some_and(|tail| tail.chars().take_while(|c| is_token(*c)).count() >= *least)
        };
        let of_a_bot = || text.get(..at).is_some_and(is_bot) && long(&&("AA", 33));
        if SHAPES.iter().any(|shape| long(&shape)) || of_a_bot() {
            let length = rest.find(|c| !is_token(c) && c != '.').unwrap_or(rest.len());
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str(MASK);
            done = at + length;
        }
    }
    if done == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a text ends in the number of a bot, as it stands before its token: `123456789:`.
fn is_bot(before: &str) -> bool {
    let digits = |before: &str| before.bytes().rev().take_while(u8::is_ascii_digit).count();
    before.strip_suffix(':').is_some_and(|before| digits(before) >= 8)
}

/// A host's name with the labels masked that are tokens. Names of hosts have no upper case left that a shape could be known by.
pub fn mask_host(name: &str) -> Cow<'_, str> {
    let is_secret = |label: &str| label.len() >= SHORTEST && is_mixed_as(label, |start| start.to_ascii_lowercase());
    if !name.split('.').any(is_secret) {
        return Cow::Borrowed(name);
    }
    let labels = name.split('.').map(|label| if is_secret(label) { MASK } else { label });
    Cow::Owned(labels.collect::<Vec<_>>().join("."))
}

/// A tool's name, an id or another word of a client's, fit for the record: one that holds a token or is too long for a row is told by its digest, so that two
/// stay apart.
pub fn mask_id(id: &str) -> Cow<'_, str> {
    if id.split("__").any(has_token) {
        return Cow::Owned(format!("{MASK} {}", Digest::of(id.as_bytes())));
    }
    // A row has room for so much; few are near it.
    if id.len() <= MAX_ID && (id.len() <= MAX_ID / 6 || json::to_compact(id).len() <= MAX_ID) {
        return Cow::Borrowed(id);
    }
    let start: String = id.chars().filter(|c| !c.is_control()).take(40).collect();
    Cow::Owned(format!("{start}… {}", Digest::of(id.as_bytes())))
}

/// Whether a text holds a token: something of a known shape, with letters and digits as chance mixes them. `npm_config_cache` and
/// `sk-learn-like-names` have the beginning alone.
pub fn has_token(text: &str) -> bool {
    text.split(|c| !is_token(c) && c != '.').any(|run| run.len() >= SHORTEST && is_mixed(run))
}

/// A run that begins as a token does, and goes on as one.
fn is_mixed(run: &str) -> bool {
    is_mixed_as(run, |start| start)
}

/// The same, where the shapes' beginnings are spelled otherwise.
fn is_mixed_as<S: AsRef<str>>(run: &str, spelled: impl Fn(&'static str) -> S) -> bool {
    let tails = SHAPES.iter().filter_map(|(start, least)| {
        let tail = run.strip_prefix(spelled(start).as_ref())?.split('.').next()?;
        (tail.len() >= *least).then_some(tail)
    });
    let mut tails = tails.chain(run.split('.').skip(1).filter(|tail| tail.len() >= SHORTEST && is_mixed(tail)));
    tails.any(|tail| {
        let digits = tail.bytes().filter(u8::is_ascii_digit).count();
        let longest = tail.split(['-', '_']).map(str::len).max().unwrap_or_default();
        digits >= 2 && longest >= 10 || tail.len() == 16 && tail.bytes().all(|byte| byte.is_ascii_uppercase())
    })
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests;
