//! Any bytes are a line of the protocol or an error; what is left of a list is the list without what was cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{self, Limits, Value};

/// The file itself: the crate around it brings a runtime and a web server.
#[allow(dead_code, reason = "the proxy uses more of it")]
#[path = "../../crates/service/src/mcp/proxy/message.rs"]
mod message;

/// What the file takes from that crate.
mod mcp {
    pub const MAX_MESSAGE: usize = 32 << 20;
}

use message::{Line, cuts, read, without};

fuzz_target!(|bytes: &[u8]| {
    let (strict, lenient) = (read(bytes, false), read(bytes, true));
    let count = |line: &Line| if let Line::Messages { messages, .. } = line { messages.len() } else { 0 };
    if let Ok(line) = &strict {
        // Whoever is lenient reads at least as much, and the same.
        assert_eq!(lenient.as_ref().map(count).ok(), Some(count(line)));
    }
    let Ok(Line::Messages { messages, .. }) = lenient else { return };
    let text = String::from_utf8(bytes.trim_ascii().to_vec()).unwrap();
    for message in &messages {
        if let Some(id) = &message.id {
            assert!(json::parse_with(id.written.as_bytes(), Limits::FOREIGN).is_ok() || strict.is_err());
        }
        let tools = message.body.get("result").and_then(|result| result.get("tools")).and_then(Value::as_array);
        let Some(tools) = tools.filter(|_| strict.is_ok()) else { continue };
        let shown: Vec<bool> = (0..tools.len()).map(|at| bytes.len().wrapping_shr(at as u32 % 16) & 1 == 1).collect();
        let pointer = format!("{}/result/tools", message.pointer);
        let left = without(&text, &cuts(&text, &pointer, &shown).unwrap());
        let left = json::parse_with(left.as_bytes(), Limits::FOREIGN).unwrap();
        let all = if message.pointer.is_empty() { &left } else {
            let at: usize = message.pointer[1..].parse().unwrap();
            &left.as_array().unwrap()[at]
        };
        let kept: Vec<&Value> = tools.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(tool, _)| tool).collect();
        let got = all.get("result").unwrap().get("tools").and_then(Value::as_array).unwrap();
        assert_eq!(got.iter().collect::<Vec<_>>(), kept);
    }
});
