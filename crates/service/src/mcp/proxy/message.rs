//! What a line of the protocol says, read from a copy of it.
//!
//! Owns the reading of JSON-RPC's frame. Refuses what two readers could take for two things: members that are there twice or differ
//! in their case alone, several messages on a line, one that is request and answer at once. Invariant: no byte of a line that is
//! relayed comes from here; places point into the line itself.

use std::borrow::Cow;
use std::ops::Range;

use writ_core::json::{self, Integers, Limits, Object, Place, Value, locate};

use crate::mcp::MAX_MESSAGE;
use crate::mcp::json_values::asked_id;

const LIMITS: Limits = Limits { bytes: MAX_MESSAGE, depth: 120, integers: Integers::Any };
/// Most messages in a batch.
const MOST: usize = 1024;
/// The members of the frame, and of what is judged, in small letters.
const NAMES: [&str; 10] = ["jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "uri", "tools"];
/// What some readers of lines take for the end of one.
const LINE_ENDS: [char; 9] = ['\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// What a line is.
#[derive(Debug)]
pub enum Line {
    /// Nothing.
    Empty,
    /// One message, or a batch.
    Messages {
        /// In order.
        messages: Vec<Message>,
        /// Whether they came as an array.
        batch: bool,
    },
}

/// One message.
#[derive(Debug)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// All of it.
    pub body: Object,
    /// Its id as it is written, where it has one.
    pub id: Option<Id>,
    /// Where it stands in the line, as a JSON pointer.
    pub pointer: String,
    /// The numbers of a request's parameters that `body` does not keep.
    pub rounded: Vec<String>,
}

/// The id of a request.
#[derive(Clone, Debug)]
pub struct Id {
    /// Equal for all spellings of one id, and for a number and its digits as a text: some take them for the same.
    pub key: String,
    /// As it was written.
    pub written: String,
}

/// What a message is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It wants an answer.
    Request(String),
    /// It wants none.
    Notification(String),
    /// It is one.
    Answer,
}

/// Why a line is no message, and its id where one is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// JSON-RPC's code.
    pub code: i32,
    /// In words.
    pub why: String,
    /// The id to answer to, as it was written.
    pub id: Option<String>,
}

/// Reads a line, which may end in a line feed. `lenient` takes lone surrogates for unknown characters, as texts that were cut have them.
pub fn read(line: &[u8], lenient: bool) -> Result<Line, Wrong> {
    let text = std::str::from_utf8(line.trim_ascii()).map_err(|error| wrong(PARSE, error.to_string(), None))?;
    if text.is_empty() {
        return Ok(Line::Empty);
    }
    if hides_message(text) {
        return Err(wrong(INVALID, "some would read it as several lines".to_owned(), None));
    }
    let value = match json::parse_with(text.as_bytes(), LIMITS) {
        Err(_) if lenient => json::parse_with(without_surrogates(text).as_bytes(), LIMITS),
        value => value,
    };
    let asked = || asked_id(text.as_bytes()).map(|id| id.to_string());
    let value = value.map_err(|error| wrong(PARSE, error.to_string(), asked()))?;
    match value {
        Value::Object(body) => {
            Ok(Line::Messages { messages: vec![Message::read(body, text, String::new())?], batch: false })
        }
        Value::Array(items) if !items.is_empty() && items.len() <= MOST => {
            let read = |(at, item)| match item {
                Value::Object(body) => Message::read(body, text, format!("/{at}")),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    Err(wrong(INVALID, "a batch holds more than objects".to_owned(), None))
                }
            };
            let messages = items.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
            Ok(Line::Messages { messages, batch: true })
        }
        Value::Array(_) => Err(wrong(INVALID, format!("a batch of none, or of more than {MOST}"), None)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(wrong(INVALID, "no object".to_owned(), None))
        }
    }
}

/// JSON-RPC's code for what is no JSON.
pub const PARSE: i32 = -32700;
/// The one for what is no message.
pub const INVALID: i32 = -32600;

fn wrong(code: i32, why: String, id: Option<String>) -> Wrong {
    Wrong { code, why, id }
}

impl Message {
    fn read(body: Object, text: &str, pointer: String) -> Result<Self, Wrong> {
        let id = match body.get("id") {
            None => None,
            Some(value) => Id::read(value, text, &pointer).map(Some)?,
        };
        let refuse = |why: &str| wrong(INVALID, why.to_owned(), id.as_ref().map(|id| id.written.clone()));
        if let Some(name) = ambiguous(&body) {
            return Err(refuse(&format!("`{name}` could be taken for another member")));
        }
        if body.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(refuse("`jsonrpc` is not \"2.0\""));
        }
        let answers = [body.get("result"), body.get("error")].iter().flatten().count();
        let kind = match (body.get("method"), answers) {
            (Some(Value::String(method)), 0) if id.is_some() => Kind::Request(method.clone()),
            (Some(Value::String(method)), 0) => Kind::Notification(method.clone()),
            (Some(_), 0) => return Err(refuse("`method` is not a string")),
            (Some(_), _) => return Err(refuse("it is a request and an answer at once")),
            (None, 1) => Kind::Answer,
            (None, _) => return Err(refuse("it has neither a method nor one answer")),
        };
        let rounded = if matches!(kind, Kind::Request(_)) { rounded(text, &pointer) } else { Vec::new() };
        Ok(Self { kind, body, id, pointer, rounded })
    }

    /// A member of its parameters.
    pub fn param(&self, name: &str) -> Option<&Value> {
        self.body.get("params")?.get(name)
    }
}

impl Id {
    fn read(value: &Value, text: &str, pointer: &str) -> Result<Self, Wrong> {
        let key = match value {
            Value::String(text) => text.clone(),
            number @ Value::Number(_) => json::canonical(number),
            // An error that answers what could not be read.
            Value::Null => String::new(),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(wrong(INVALID, "`id` is neither a string nor a number".to_owned(), None));
            }
        };
        let place = locate(text, &format!("{pointer}/id"), Place::Value);
        let written = place.and_then(|span| text.get(span.start..span.end)).unwrap_or("null").to_owned();
        Ok(Self { key, written })
    }
}

/// The numbers of the parameters of the message at a pointer that are not kept.
fn rounded(text: &str, pointer: &str) -> Vec<String> {
    let found = json::rounded(text.as_bytes());
    if found.is_empty() {
        return found;
    }
    let place = locate(text, &format!("{pointer}/params"), Place::Value);
    let params = place.and_then(|span| text.get(span.start..span.end));
    params.map(|params| json::rounded(params.as_bytes())).unwrap_or_default()
}

/// A member that some readers take for one that is asked for: they do not look at case, nor at two letters beyond ASCII.
pub fn ambiguous(object: &Object) -> Option<&str> {
    object.iter().map(|(name, _)| name).find(|name| {
        let folded = folded(name);
        folded != *name && NAMES.contains(&folded.as_str())
    })
}

/// A name as such readers compare it.
pub fn folded(name: &str) -> String {
    let plain = name.trim().chars().map(|letter| match letter {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        letter => letter.to_ascii_lowercase(),
    });
    plain.collect()
}

/// Whether a part of the line, between what some take for ends of lines, is a message by itself.
fn hides_message(text: &str) -> bool {
    let parts = || text.split(LINE_ENDS);
    parts().nth(1).is_some()
        && parts().any(|part| {
            let part = part.trim();
            part.starts_with(['{', '[']) && json::parse_with(part.as_bytes(), Limits::FOREIGN).is_ok()
        })
}

/// The same text with `\ud800` and its like, where they stand alone, as an unknown character: of the same length.
fn without_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = text.get(at + 2..at + 6).filter(|_| bytes.get(at..at + 2) == Some(b"\\u"))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::new(), 0);
    let mut from = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        at += found;
        match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(text.get(from..at).unwrap_or_default());
                out.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            _ => at += 2,
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// The places of an array's elements in a line, given the array's pointer. The line has been read.
pub fn elements(line: &str, pointer: &str) -> Option<Vec<Range<usize>>> {
    let copy = without_surrogates(line);
    let span = locate(&copy, pointer, Place::Value)?;
    let inner = copy.as_bytes().get(span.start + 1..span.end.checked_sub(1)?)?;
    let (mut places, mut depth, mut quoted, mut escaped) = (Vec::new(), 0_usize, false, false);
    let (mut start, mut end) = (None, 0);
    for (at, &byte) in inner.iter().enumerate() {
        let separates = !quoted && depth == 0 && byte == b',';
        if separates {
            places.extend(start.take().map(|from| from..end));
            continue;
        }
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if !byte.is_ascii_whitespace() || quoted {
            start.get_or_insert(span.start + 1 + at);
            end = span.start + 1 + at + 1;
        }
    }
    places.extend(start.take().map(|from| from..end));
    Some(places)
}

/// The places that an array's elements take with what separates them, of those that are not to be shown.
pub fn cuts(line: &str, pointer: &str, shown: &[bool]) -> Option<Vec<Range<usize>>> {
    let places = elements(line, pointer).filter(|places| places.len() == shown.len())?;
    let first = shown.iter().position(|shown| *shown);
    let mut cuts = Vec::new();
    for (at, (place, _)) in places.iter().zip(shown).enumerate().filter(|(_, (_, shown))| !**shown) {
        // One before the first that is shown goes with the comma behind it, any other with the one before it.
        let before = at.checked_sub(1).and_then(|before| places.get(before)).map_or(place.start, |it| it.end);
        let behind = places.get(at + 1).map_or(place.end, |it| it.start);
        cuts.push(if first.is_none_or(|first| at < first) { place.start..behind } else { before..place.end });
    }
    Some(cuts)
}

/// The text without these places, which do not overlap but may touch.
pub fn without(text: &str, cuts: &[Range<usize>]) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for cut in cuts {
        out.push_str(text.get(from..cut.start).unwrap_or_default());
        from = from.max(cut.end);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        read(line.as_bytes(), false).unwrap_err().why
    }

    #[test]
    fn what_could_mean_two_things_is_no_message() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"param\u{17f}\":{}}",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\r{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\u{2028}{\\\"a\\\":1}\u{2028}{}\u{2028}\"}}",
            r#"{"id":1,"method":"ping"}"#,
            "[]",
            "1",
            "{",
            "\u{feff}{}",
        ] {
            assert!(!refused(line).is_empty(), "{line}");
        }
        let id = |line: &str| read(line.as_bytes(), false).unwrap_err().id;
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"\ud800"}}"#, Some("7")),
            (r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{"a":1,"a":2}}"#, Some("\"a\"")),
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","id":7}"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"result":"\ud800"}"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"method":"x""#, None),
        ] {
            assert_eq!(id(line).as_deref(), expected, "{line}");
        }
        let text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"one\u{2028}two\"}}";
        assert!(read(text.as_bytes(), false).is_ok());
    }

    #[test]
    fn ids_are_answered_as_they_were_written() {
        for (line, key, written) in [
            (r#"{"jsonrpc":"2.0", "id" : 1.0e0 ,"method":"ping"}"#, "1", "1.0e0"),
            (r#"{"jsonrpc":"2.0","id":"\u0031","method":"ping"}"#, "1", r#""\u0031""#),
            (r#"[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":"x","method":"ping"}]"#, "x", r#""x""#),
        ] {
            let Ok(Line::Messages { messages, .. }) = read(line.as_bytes(), false) else { panic!("{line}") };
            let id = messages.last().unwrap().id.as_ref().unwrap();
            assert_eq!((id.key.as_str(), id.written.as_str()), (key, written));
        }
    }

    #[test]
    fn texts_that_were_cut_are_read_and_keep_their_places() {
        let line = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":["\ud83d", "\ud83d\ude00" ,{"a":"\\ud83d"}]}}"#;
        assert!(read(line.as_bytes(), false).is_err() && read(line.as_bytes(), true).is_ok());
        let texts: Vec<&str> =
            elements(line, "/result/tools").unwrap().into_iter().map(|place| line.get(place).unwrap()).collect();
        assert_eq!(texts, [r#""\ud83d""#, r#""\ud83d\ude00""#, r#"{"a":"\\ud83d"}"#]);
        assert_eq!(elements("[ ]", "").unwrap().len(), 0);
        for (shown, left) in [
            ([true, false, true], r#"[1 ,{"a":[2,3]}]"#),
            ([false, true, false], r#"[ "]," ]"#),
            ([false, false, true], r#"[{"a":[2,3]}]"#),
            ([true, false, false], "[1]"),
            ([false, false, false], "[]"),
        ] {
            let line = r#"[1 , "]," ,{"a":[2,3]}]"#;
            let got = without(line, &cuts(line, "", &shown).unwrap());
            let bare = |text: &str| text.replace(' ', "");
            assert_eq!(bare(&got), bare(left), "{shown:?}");
        }
    }
}
