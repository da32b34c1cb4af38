//! What sends something to a host that no word of the line is: a package that is published, a manifest that a cluster gets.
//!
//! Owns when an entry's `sends` holds; which programs have one stands in `data/programs`. Invariant: where the host is not the
//! program's own, it is not known, unless the line names it. Page: `spec/programs.md`.

use writ_core::Span;

use crate::action::{NetTarget, NetUse};
use crate::programs::entries::{Sends, entry};
use crate::programs::operands::table::{self, Split};
use crate::shape::{host, is_flag, is_url};
use crate::word::Word;

/// Where a command sends by itself.
pub fn sent(base: &str, arguments: &[Word], split: &Split<'_>, span: Span) -> Option<NetUse> {
    let all = entry(base)?.sends;
    let sends = all.iter().find(|sends| sends.words.iter().any(|words| begins(words, arguments, split)))?;
    // What keeps it from sending may be taken back.
    let again = arguments.iter().any(|word| lists("--no-dry-run --dry-run=none --dry-run=false", word));
    let kept = !again && arguments.iter().any(|word| lists(sends.unless, word));
    let wanting = !sends.given.is_empty() && !gives(sends.given, split);
    if is_named(sends, split) || kept || wanting || !takes_input(sends, split) {
        return None;
    }
    let target = if sends.to.is_empty() { NetTarget::Unknown } else { host(sends.to, span) };
    Some(NetUse { target, span })
}

/// The same of a command that the line gives something on standard input, where a terminal alone would send nothing.
pub fn fed(base: &str, arguments: &[Word]) -> bool {
    let (Some(entry), Some(program)) = (entry(base), table::lookup(base)) else { return false };
    let split = table::split(program, arguments);
    entry.sends.iter().filter(|sends| !sends.input.is_empty()).any(|sends| {
        let fits = sends.words.iter().any(|words| begins(words, arguments, &split));
        fits && !is_named(sends, &split) && reads(sends, &split)
    })
}

/// Whether what is sent is more than standard input, or this is no terminal.
fn takes_input(sends: &Sends, split: &Split<'_>) -> bool {
    sends.input.is_empty() || reads(sends, split) && !split.has(&['t'], "--tty")
}

fn reads(sends: &Sends, split: &Split<'_>) -> bool {
    sends.input.split_whitespace().any(|option| match option.strip_prefix("--") {
        Some(_) => split.has(&[], option),
        None => option.chars().nth(1).is_some_and(|letter| split.has(&[letter], option)),
    })
}

/// Whether the operands begin with words. What stands behind an option that is not listed may be its value, and cargo's `+nightly` is none.
fn begins(words: &str, arguments: &[Word], split: &Split<'_>) -> bool {
    let operands = split.operands.as_slice();
    let skippable = |word: &Word| {
        let at = arguments.iter().position(|own| std::ptr::eq(own, word));
        let before = at.and_then(|at| arguments.get(at.checked_sub(1)?));
        before.is_some_and(is_flag) || word.literal().is_some_and(|text| text.starts_with('+'))
    };
    let front = operands.iter().take_while(|word| skippable(word)).count();
    (0..=front).filter_map(|skip| operands.get(skip..)).any(|rest| {
        let mut rest = rest.iter();
        words.split_whitespace().all(|pattern| rest.next().is_some_and(|word| is(pattern, word)))
    })
}

/// Whether an operand is one that a word of an entry means: `*` any, `*end` one that ends so, `begin*` one that begins so.
fn is(pattern: &str, word: &Word) -> bool {
    let Some(text) = word.literal() else { return pattern == "*" };
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => text.ends_with(end),
        (None, Some(begin)) => text.starts_with(begin),
        (None, None) => text == pattern,
    }
}

/// Whether the line says where: what it names counts by itself.
fn is_named(sends: &Sends, split: &Split<'_>) -> bool {
    sends.named_by.split_whitespace().any(|name| match name {
        "URL" => split.operands.iter().any(|word| is_url(word)),
        option => gives(option, split),
    })
}

/// Whether the line has one of these options, which may be cut short.
fn gives(options: &str, split: &Split<'_>) -> bool {
    options.split_whitespace().any(|option| {
        let long = |flag: &String| flag.len() > 3 && option.starts_with("--") && option.starts_with(flag.as_str());
        split.flags.iter().any(|flag| flag == option || long(flag))
    })
}

fn lists(words: &str, word: &Word) -> bool {
    let text = word.literal();
    words.split_whitespace().any(|own| text.as_deref() == Some(own))
}
