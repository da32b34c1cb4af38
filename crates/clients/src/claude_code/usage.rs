//! What the model used, as transcripts tell.
//!
//! Owns the reading of `usage` on the model's lines, of the client's own totals (`cost-state`), and of what it notes beside a
//! subagent's transcript. A line that does not speak of usage is not parsed, so that reading is as fast as looking for a word.
//! Invariant: a line that speaks of it and cannot be read is told as such, so that nobody takes unknown for nothing. Format page:
//! `spec/clients/claude-code.md`.

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem::{self, Finder};
use serde::Deserialize;
use writ_core::json::{self, Limits, Loose, Value};
use writ_core::{Timestamp, regular_file};

use super::transcript::{LINE_LIMIT, open, skip_line};
use crate::transcript::{Reach, TranscriptError, parse_line};
use crate::usage::{AgentNote, Rate, Spoken, Tokens};

/// Largest note beside a transcript.
const NOTE_LIMIT: u64 = 1 << 20;
/// How much of a transcript's end is looked at for a call.
const END: u64 = 1 << 20;
/// The model of lines that the client wrote in the model's place.
const NO_MODEL: &str = "<synthetic>";

/// Tells what one transcript says of usage from byte `from` on.
pub fn read(path: &Path, from: u64, take: &mut dyn FnMut(Spoken)) -> Result<Reach, TranscriptError> {
    let failed = |source| TranscriptError::Io { path: path.to_owned(), source };
    let (read, torn) = walk(open(path, from)?, take).map_err(failed)?;
    Ok(Reach { end: from + read, torn })
}

/// Reads line by line. Returns how many bytes there are up to the end of the last line that has one, and whether one follows that is
/// cut off. What one without an end tells is told again once it has one.
fn walk(mut reader: impl BufRead, take: &mut dyn FnMut(Spoken)) -> io::Result<(u64, bool)> {
    // Inside a text a quotation mark has a backslash before it, so this finds members and values alone.
    let words = [Finder::new(br#""usage""#), Finder::new(br#""cost-state""#)];
    let (mut whole, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let length = (&mut reader).take(LINE_LIMIT).read_until(b'\n', &mut line)? as u64;
        if line.last() != Some(&b'\n') {
            if length < LINE_LIMIT {
                let torn = length > 0 && parse_line(&line).is_err();
                if !torn && words.iter().any(|word| word.find(&line).is_some()) {
                    told_by(&line).into_iter().filter(|spoken| *spoken != Spoken::Unreadable).for_each(take);
                }
                return Ok((whole, torn));
            }
            take(Spoken::Unreadable);
            let (skipped, ended) = skip_line(&mut reader)?;
            if !ended {
                return Ok((whole, true));
            }
            whole += skipped;
        } else if words.iter().any(|word| word.find(&line).is_some()) {
            told_by(&line).into_iter().for_each(&mut *take);
        }
        whole += length;
    }
}

/// A line as far as it may speak of usage; what else it holds is only gone past.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    usage: Option<Value>,
}

/// What a line tells of usage.
pub(super) fn told_by(line: &[u8]) -> Option<Spoken> {
    // Nearly all lines have this form.
    match json::from_slice_with(line, Limits::FOREIGN) {
        Ok(Entry { kind, message: Some(message), timestamp }) if kind == "assistant" => {
            of_model(&message, timestamp.as_deref())
        }
        Ok(_) | Err(_) => match parse_line(line) {
            // Messages whose names are not known would count as one.
            Ok(entry) => told(&entry).map(|spoken| match spoken {
                Spoken::Message { id, .. } if id.contains('\u{fffd}') => Spoken::Unreadable,
                other => other,
            }),
            Err(_) => Some(Spoken::Unreadable),
        },
    }
}

/// What a line tells of usage.
pub(super) fn told(entry: &Value) -> Option<Spoken> {
    match entry.get("type").and_then(Value::as_str) {
        Some("assistant") => {
            let message = entry.get("message")?;
            let text = |name: &str| message.get(name).and_then(Value::as_str).map(Cow::Borrowed);
            let timestamp = entry.get("timestamp").and_then(Value::as_str);
            of_model(&Message { id: text("id"), model: text("model"), usage: message.get("usage").cloned() }, timestamp)
        }
        Some("cost-state") => Some(totals(entry.get("modelUsage")?).map_or(Spoken::Unreadable, Spoken::Total)),
        _ => None,
    }
}

/// A count that may be missing; `None` where it is there and is none.
fn count(value: &Value, name: &str) -> Option<u64> {
    match value.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(count) => count.as_u64(),
    }
}

fn of_model(message: &Message<'_>, timestamp: Option<&str>) -> Option<Spoken> {
    let usage = message.usage.as_ref().filter(|usage| **usage != Value::Null)?;
    Some(spoken(message, usage, timestamp).unwrap_or(Spoken::Unreadable))
}

fn spoken(message: &Message<'_>, usage: &Value, timestamp: Option<&str>) -> Option<Spoken> {
    usage.as_object()?;
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let caches = usage.get("cache_creation").filter(|caches| caches.as_object().is_some());
    let written = count(usage, "cache_creation_input_tokens")?;
    let hour = caches.map_or(Some(0), |caches| count(caches, "ephemeral_1h_input_tokens"))?;
    let short = caches.map_or(Some(0), |caches| count(caches, "ephemeral_5m_input_tokens"))?;
    let served = usage.get("server_tool_use").filter(|served| served.as_object().is_some());
    let tokens = Tokens {
        input: count(usage, "input_tokens")?,
        output: count(usage, "output_tokens")?,
        cache_read: count(usage, "cache_read_input_tokens")?,
        // What neither cache is said to hold counts as the shorter one's.
        cache_write: short.max(written.saturating_sub(hour)),
        cache_write_hour: hour,
        searches: served.map_or(Some(0), |served| count(served, "web_search_requests"))?,
    };
    let region = text(usage, "inference_geo").unwrap_or_default();
    let rate = Rate {
        model: message.model.as_deref().filter(|model| *model != NO_MODEL).unwrap_or_default().to_owned(),
        batch: text(usage, "service_tier").as_deref() == Some("batch"),
        fast: text(usage, "speed").as_deref() == Some("fast"),
        regional: !matches!(region.as_str(), "" | "global" | "not_available"),
        length: Rate::length_of(tokens.all_input()),
    };
    let at = timestamp.and_then(|moment| Timestamp::parse(moment).ok());
    // Messages without a name would count as one.
    Some(Spoken::Message { id: message.id.as_deref().filter(|id| !id.is_empty())?.to_owned(), rate, tokens, at })
}

fn totals(models: &Value) -> Option<Vec<(String, Tokens)>> {
    let total = |(model, used): (&str, &Value)| {
        let written = count(used, "cacheCreationInputTokens")?;
        let hour = count(used, "cacheCreationEphemeral1hInputTokens")?;
        let tokens = Tokens {
            input: count(used, "inputTokens")?,
            output: count(used, "outputTokens")?,
            cache_read: count(used, "cacheReadInputTokens")?,
            cache_write: written.saturating_sub(hour),
            cache_write_hour: hour,
            searches: count(used, "webSearchRequests")?,
        };
        Some((model.to_owned(), tokens))
    };
    models.as_object()?.iter().map(total).collect()
}

/// Whether the end of a transcript tells of a call, in a line that has its end.
pub fn tells_of(path: &Path, call: &str) -> bool {
    let bytes = end(path).unwrap_or_default();
    memmem::find(whole(&bytes), json::to_compact(call).as_bytes()).is_some()
}

fn end(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines that have their end.
fn whole(bytes: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', bytes).and_then(|end| bytes.get(..end)).unwrap_or_default()
}

/// The model of the message that made a call, or of the last message, as the end of a transcript tells.
pub fn model(path: &Path, call: Option<&str>) -> Option<String> {
    let bytes = end(path).ok()?;
    let call = call.map(json::to_compact);
    whole(&bytes).rsplit(|&byte| byte == b'\n').find_map(|line| {
        let about = call.as_ref().is_none_or(|call| memmem::find(line, call.as_bytes()).is_some());
        let entry = parse_line(line).ok().filter(|_| about)?;
        let speaks = entry.get("type").and_then(Value::as_str) == Some("assistant");
        let model = entry.get("message").filter(|_| speaks)?.get("model")?.as_str()?;
        Some(model.to_owned()).filter(|model| model != NO_MODEL)
    })
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    agent_type: Loose<String>,
    tool_use_id: Loose<String>,
    spawn_depth: Loose<u64>,
}

/// Where the client's note of a subagent lies.
pub fn note_file(path: &Path) -> PathBuf {
    path.with_extension("meta.json")
}

/// What lies beside a subagent's transcript.
pub fn note(path: &Path) -> AgentNote {
    let bytes = regular_file::read(&note_file(path), NOTE_LIMIT).unwrap_or_default();
    let meta: Meta = json::from_slice_with(&bytes, Limits::FOREIGN).unwrap_or_default();
    AgentNote { kind: meta.agent_type.0, call: meta.tool_use_id.0, depth: meta.spawn_depth.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<Spoken>, (u64, bool)) {
        let mut out = Vec::new();
        let reach = walk(text.as_bytes(), &mut |spoken| out.push(spoken)).unwrap();
        (out, reach)
    }

    const LINE: &str = r#"{"type":"assistant","message":{"id":"m","model":"x","content":[],"usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":11,"cache_creation":{"ephemeral_1h_input_tokens":1,"ephemeral_5m_input_tokens":10},"server_tool_use":{"web_search_requests":2},"speed":"fast","service_tier":"batch","inference_geo":"us"}}}"#;

    #[test]
    fn each_kind_is_told_apart() {
        let (told, reach) = all(&format!("{LINE}\n"));
        let tokens = Tokens { input: 3, output: 5, cache_read: 7, cache_write: 10, cache_write_hour: 1, searches: 2 };
        let rate = Rate { model: "x".to_owned(), batch: true, fast: true, regional: true, length: 0 };
        assert_eq!(told, [Spoken::Message { id: "m".to_owned(), rate, tokens, at: None }]);
        assert_eq!((tokens.all_input(), reach), (21, (LINE.len() as u64 + 1, false)));
        assert_eq!((Rate::length_of(0), Rate::length_of(100_000), Rate::length_of(100_001)), (0, 0, 1));
    }

    #[test]
    fn a_text_that_was_cut_in_a_letter_hides_no_usage() {
        let cut = LINE.replace(r#""content":[]"#, r#""content":[{"text":"\ud83d"}]"#);
        assert_eq!(all(&format!("{cut}\n")).0, all(&format!("{LINE}\n")).0);
    }

    #[test]
    fn a_line_that_is_being_written_waits_and_one_that_cannot_be_read_is_told() {
        for (cut, told, torn) in [(0, 1, false), (1, 0, true), (LINE.len(), 0, false)] {
            let (spoken, reach) = all(LINE.split_at(LINE.len() - cut).0);
            assert_eq!((spoken.len(), reach), (told, (0, torn)), "{cut}");
        }
        for bad in [
            r#"{"type":"assistant","message":{"usage":{"input_tokens":1}}}"#,
            r#"{"type":"assistant","message":{"id":"m","usage":{"input_tokens":-1}}}"#,
            r#"{"type":"assistant","message":{"id":"m","usage":{"output_tokens":"many"}}}"#,
            r#"{"type":"assistant","message":{"id":"m","usage":[]}}"#,
            r#"{"type":"assistant","message":{"id":"m","usage":{"#,
            r#"{"type":"cost-state","modelUsage":{"x":{"inputTokens":1.5}}}"#,
            r#"{"type":"assistant","message":{"id":"\ud83d","usage":{"input_tokens":1}}}"#,
        ] {
            assert_eq!(all(&format!("{bad}\n")).0, [Spoken::Unreadable], "{bad}");
            assert_eq!(all(bad).0, [], "{bad}");
        }
        for other in [
            r#"{"type":"user","toolUseResult":{"usage":{"input_tokens":1}}}"#,
            r#"{"type":"user","message":{"content":"\"usage\": is a word"}}"#,
            r#"{"type":"assistant","message":{"id":"m","content":[]}}"#,
            r#"{"type":"user","toolUseResult":{"content":"cut in \ud83d","usage":{"input_tokens":1}}}"#,
            "{not json",
        ] {
            assert_eq!(all(&format!("{other}\n")).0, [], "{other}");
        }
    }
}
