//! What can still be told from a payload that the strict reader refused.
//!
//! Owns the search for members in bytes that are no JSON: cut off, with bytes before or behind, doubled members, NUL bytes, text that
//! is no UTF-8. Refuses to choose between values that contradict each other where one is needed. Good for finding out whose call
//! is being denied, never for allowing one: the text may be an agent's.

use writ_core::SessionId;
use writ_core::json::{self, Object, Value};

/// What a payload that cannot be read seems to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Every session it names, in order.
    pub sessions: Vec<SessionId>,
    /// Every working directory it names, in order.
    pub cwds: Vec<String>,
    /// The event, where it names one and no other.
    pub event: Option<String>,
    /// The call's id, where it names one and no other.
    pub call_id: Option<String>,
    /// The tool, where it names one and no other.
    pub tool: Option<String>,
}

/// Most values of one member that are looked at.
const MOST: usize = 32;
/// Most names spelled with escapes that are looked at.
const MOST_SPELLED: usize = 10_000;
/// Longest value.
const LONGEST: usize = 4096;

/// Looks for the members of these names: session, working directory, event, id and tool of the call.
pub fn find(bytes: &[u8], names: [&str; 5]) -> Hints {
    let mut found: [(&str, Vec<String>); 5] = names.map(|name| (name, Vec::new()));
    // UTF-16 in place of UTF-8 is ASCII with NUL bytes in between.
    let text: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != 0).collect();
    let (mut rest, mut spellings) = (text.as_slice(), MOST_SPELLED);
    while let Some(at) = rest.iter().position(|&byte| byte == b'"') {
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some((name, after)) = name(rest, &mut spellings) else { continue };
        let Some((_, values)) = found.iter_mut().find(|(wanted, _)| *wanted == name) else { continue };
        let value = after.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let value = value.and_then(|after| string(after.strip_prefix(b"\"")?, LONGEST));
        if let Some((value, _)) = value.filter(|(value, _)| !value.is_empty() && values.len() < MOST)
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    let [sessions, cwds, events, calls, tools] = found.map(|(_, values)| values);
    let only = |values: Vec<String>| <[String; 1]>::try_from(values).ok().map(|[value]| value);
    Hints {
        sessions: sessions.into_iter().map(SessionId::new).collect(),
        cwds,
        event: only(events).filter(|event| event.len() <= 64 && event.bytes().all(is_letter)),
        call_id: only(calls).filter(|id| id.len() <= 256),
        tool: only(tools).filter(|tool| tool.len() <= 256),
    }
}

/// A payload of a harmless read, in the format that most clients have.
pub fn sample(cwd: &str) -> String {
    let payload = Object::from([
        ("session_id", Value::from("writ-doctor")),
        ("hook_event_name", Value::from("PreToolUse")),
        ("tool_name", Value::from("Read")),
        ("tool_use_id", Value::from("writ-doctor")),
        ("tool_call_id", Value::from("writ-doctor")),
        ("permission_mode", Value::from("default")),
        ("cwd", Value::from(cwd)),
        ("tool_input", Value::Object([("file_path", Value::from(format!("{cwd}/README.md").as_str()))].into())),
    ]);
    json::compact(&Value::Object(payload))
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'-'
}

/// A short string that may be a member's name. Looks at few bytes: a hook that takes too long lets the tool run, and a payload may be
/// nothing but quotes.
fn name<'a>(bytes: &'a [u8], spellings: &mut usize) -> Option<(String, &'a [u8])> {
    let end = bytes.iter().take(64).position(|&byte| byte == b'"')?;
    let word = bytes.get(..end)?;
    let plain = word.first().is_some_and(u8::is_ascii_alphabetic) && !word.contains(&b'\\');
    if !plain {
        let spelled = *spellings > 0 && word.windows(2).any(|pair| pair == b"\\u");
        *spellings -= usize::from(spelled);
        return spelled.then(|| string(bytes, 64)).flatten();
    }
    Some((std::str::from_utf8(word).ok()?.to_owned(), bytes.get(end + 1..)?))
}

/// A string from behind its opening quote to its closing one, and what comes after. What is no text in it is replaced.
fn string(bytes: &[u8], longest: usize) -> Option<(String, &[u8])> {
    let mut out = Vec::new();
    let mut rest = bytes;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((String::from_utf8_lossy(&out).into_owned(), rest)),
            b'\\' => {
                let (&letter, after) = rest.split_first()?;
                rest = after;
                match letter {
                    b'n' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    b'r' => out.push(b'\r'),
                    b'u' => {
                        let unit = rest.get(..4).and_then(|hex| std::str::from_utf8(hex).ok());
                        let unit = unit.and_then(|hex| u32::from_str_radix(hex, 16).ok())?;
                        let c = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                        rest = rest.get(4..)?;
                    }
                    other => out.push(other),
                }
            }
            other => out.push(other),
        }
        if out.len() > longest {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::claude_code::hints;

    fn session(bytes: &[u8]) -> Vec<String> {
        hints(bytes).sessions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_session_is_found_in_what_is_no_json() {
        let whole =
            r#"{"session_id":"S","cwd":"/w","hook_event_name":"PreToolUse","tool_use_id":"t","tool_name":"Bash"}"#;
        let told = hints(whole.as_bytes());
        assert_eq!((told.event.as_deref(), told.call_id.as_deref()), (Some("PreToolUse"), Some("t")));
        assert_eq!((told.cwds, told.tool.as_deref()), (vec!["/w".to_owned()], Some("Bash")));
        let utf16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [
            whole.as_bytes().to_vec(),
            format!("\u{feff}{whole}").into_bytes(),
            format!("{whole} and more").into_bytes(),
            format!("a stray \" {whole}").into_bytes(),
            format!("[{whole}]").into_bytes(),
            whole.as_bytes()[..whole.len() - 30].to_vec(),
            [b"\xff\xfe".as_slice(), &utf16].concat(),
            [whole.as_bytes(), b"\xff\x80\0"].concat(),
            br#"{"session_id":"S","session_id":"S","x":"\ud800"#.to_vec(),
            br#"{"session\u005fid" : "S""#.to_vec(),
            [b"{\"x\":".as_slice(), &b"[".repeat(100_000), b",\"session_id\":\"S\""].concat(),
        ] {
            assert_eq!(session(&bytes), ["S"], "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn a_payload_of_quotes_is_looked_through_in_no_time() {
        for unit in ["\"", "\\\"", "\\\"s", "\\\"\\u0001", "\"s\":"] {
            let bytes = unit.repeat((32 << 20) / unit.len());
            let start = std::time::Instant::now();
            assert!(hints(bytes.as_bytes()).sessions.is_empty());
            assert!(start.elapsed().as_secs() < 10, "{unit}: {:?}", start.elapsed());
        }
    }

    #[test]
    fn what_is_cut_off_quoted_or_contradicted_is_not_taken() {
        for bytes in [r#"{"session_id":"S"#, r#"{"x":"\"session_id\":\"S\""}"#, r#"{"session_id":7}"#, "session_id", ""]
        {
            assert_eq!(session(bytes.as_bytes()), Vec::<String>::new(), "{bytes}");
        }
        let two = br#"{"session_id":"S","hook_event_name":"PreToolUse","tool_input":{"session_id":"T","hook_event_name":"Stop"}"#;
        assert_eq!((session(two), hints(two).event), (vec!["S".to_owned(), "T".to_owned()], None));
    }
}
