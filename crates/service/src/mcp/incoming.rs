//! What a line or a request body is, before the protocol's library sees it.
//!
//! The library drops what is no JSON, and takes the last of two members of one name. Here the strict parser goes first, and
//! everything that JSON-RPC 2.0 wants answered is answered.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode};
use serde_json::json;
use writ_core::json::{self, Integers, Limits, Value};
use writ_core::secret::hide;

use super::MAX_MESSAGE;
use super::json_values::{asked_id, to_serde};

/// The library reads 128 levels.
const LIMITS: Limits = Limits { bytes: MAX_MESSAGE, depth: 120, integers: Integers::Any };

/// What has come in.
#[derive(Debug)]
pub enum Incoming {
    /// A message of the protocol.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer.
    Nothing,
    /// No message: the answer.
    Wrong(String),
}

/// Reads one message.
pub fn parse(bytes: &[u8]) -> Incoming {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Incoming::Nothing;
    }
    let value = match json::parse_with(bytes, LIMITS) {
        Ok(value) => value,
        Err(error) => {
            let id = asked_id(bytes).unwrap_or_default();
            return Incoming::Wrong(answer(ErrorCode::PARSE_ERROR, &format!("parse error: {error}"), id));
        }
    };
    let Some(object) = value.as_object() else {
        let what = if value.as_array().is_some() { "a batch" } else { "no object" };
        return wrong(ErrorCode::INVALID_REQUEST, &format!("invalid request: {what}"), None);
    };
    match serde_json::from_slice(bytes) {
        Ok(message) => Incoming::Message(Box::new(message)),
        Err(_) if object.get("id").is_none() && object.get("method").and_then(Value::as_str).is_some() => {
            Incoming::Nothing
        }
        // An answer to nothing: an answer to it could go on for ever.
        Err(_) if object.get("method").is_none() && (object.get("result").or(object.get("error"))).is_some() => {
            Incoming::Nothing
        }
        Err(_) => wrong(ErrorCode::INVALID_REQUEST, "invalid request: not of JSON-RPC 2.0's form", object.get("id")),
    }
}

/// The answer to a message that is too long to be read.
pub fn too_long() -> String {
    let message = format!("invalid request: longer than {MAX_MESSAGE} bytes");
    answer(ErrorCode::INVALID_REQUEST, &message, serde_json::Value::Null)
}

fn wrong(code: ErrorCode, message: &str, id: Option<&Value>) -> Incoming {
    let id = match id {
        Some(Value::String(id)) => json!(id),
        Some(Value::Number(id)) if id.fract() == 0.0 => to_serde(&Value::Number(*id)),
        _ => serde_json::Value::Null,
    };
    Incoming::Wrong(answer(code, message, id))
}

fn answer(code: ErrorCode, message: &str, id: serde_json::Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": hide(message) } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(incoming: Incoming) -> i64 {
        let Incoming::Wrong(answer) = incoming else { return 0 };
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["jsonrpc"], "2.0");
        answer["error"]["code"].as_i64().unwrap()
    }

    #[test]
    fn what_is_no_message_is_answered() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        for (line, expected) in [
            ("{", -32700),
            ("nonsense", -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#, -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, -32700),
            (&deep, -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            ("5", -32600),
            ("{}", -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        ] {
            assert_eq!(code(parse(line.as_bytes())), expected, "{}", line.get(..80).unwrap_or(line));
        }
        assert_eq!(code(parse(b"\xff\xfe")), -32700);
        for (line, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, json!(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#, json!(null)),
        ] {
            let Incoming::Wrong(answer) = parse(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(serde_json::from_str::<serde_json::Value>(&answer).unwrap()["id"], id, "{line}");
        }
    }

    #[test]
    fn what_wants_no_answer_gets_none() {
        for line in ["", " \r", r#"{"method":"x"}"#, r#"{"jsonrpc":"1.0","result":1}"#, r#"{"error":{}}"#] {
            assert!(matches!(parse(line.as_bytes()), Incoming::Nothing), "{line}");
        }
    }

    #[test]
    fn an_answer_names_the_request_where_it_can() {
        let Incoming::Wrong(answer) = parse(br#"{"jsonrpc":"2.0","id":"a","method":7}"#) else { unreachable!() };
        assert_eq!(serde_json::from_str::<serde_json::Value>(&answer).unwrap()["id"], "a");
        let Incoming::Message(_) = parse(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#) else { unreachable!() };
    }
}
