//! A scripted Messages API on 127.0.0.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

/// Longest request that the mock reads.
const MAX_BODY: u64 = 64 << 20;

/// A content block that calls a tool.
pub fn tool(name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "name": name, "input": input })
}

/// A content block of text.
pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// What the model says, turn by turn, in a conversation whose first message holds a word.
pub struct Script {
    /// The word.
    pub word: &'static str,
    /// Content blocks, one list a turn.
    pub turns: Vec<Vec<Value>>,
}

/// Starts the mock on a free port; its threads end with the test.
pub fn serve(scripts: Vec<Script>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let scripts = Arc::new(scripts);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let scripts = Arc::clone(&scripts);
            thread::spawn(move || drop(answer(stream, &scripts)));
        }
    });
    port
}

fn answer(stream: TcpStream, scripts: &[Script]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let (status, kind, text) = if path.ends_with("/count_tokens") {
        ("200 OK", "application/json", json!({ "input_tokens": 100 }).to_string())
    } else if path.ends_with("/v1/messages") {
        let message = message(&body, scripts);
        if body["stream"] == true {
            ("200 OK", "text/event-stream", events(&message))
        } else {
            ("200 OK", "application/json", message.to_string())
        }
    } else {
        ("404 Not Found", "application/json", "{}".to_owned())
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The script's turn is the number of assistant messages so far: a retry gets the same answer.
fn message(body: &Value, scripts: &[Script]) -> Value {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let first = messages
        .iter()
        .find(|message| message["role"] == "user")
        .map(|message| message["content"].to_string())
        .unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let script = scripts.iter().find(|script| tools && first.contains(script.word));
    let name = script.map_or("none", |script| script.word.trim_end_matches(':'));
    let content = script.and_then(|script| script.turns.get(turn)).cloned();
    let mut content = content.unwrap_or_else(|| vec![json!({ "type": "text", "text": "ok" })]);
    for (index, block) in content.iter_mut().enumerate() {
        if block["type"] == "tool_use" {
            block["id"] = json!(format!("toolu_{name}_{turn}_{index}"));
        }
    }
    let stop = if content.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" };
    json!({ "id": format!("msg_{name}_{turn}"), "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 20,
        "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 } })
}

/// A message as the server-sent events it streams as.
fn events(message: &Value) -> String {
    let mut out = String::new();
    let mut send = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    send("message_start", json!({ "message": start }));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (mut head, delta) = if block["type"] == "tool_use" {
            (block.clone(), json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
        } else {
            (block.clone(), json!({ "type": "text_delta", "text": block["text"] }))
        };
        head[if block["type"] == "tool_use" { "input" } else { "text" }] =
            if block["type"] == "tool_use" { json!({}) } else { json!("") };
        send("content_block_start", json!({ "index": index, "content_block": head }));
        send("content_block_delta", json!({ "index": index, "delta": delta }));
        send("content_block_stop", json!({ "index": index }));
    }
    send(
        "message_delta",
        json!({ "delta": { "stop_reason": message["stop_reason"], "stop_sequence": null }, "usage": message["usage"] }),
    );
    send("message_stop", json!({}));
    out
}
