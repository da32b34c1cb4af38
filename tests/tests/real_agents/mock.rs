//! A scripted model on 127.0.0.1 that speaks the three dialects which agents' clients ask in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

/// Longest request that the mock reads.
const MAX_BODY: u64 = 64 << 20;

/// A call of a tool.
pub fn tool(name: &str, input: Value) -> Value {
    json!({ "type": "tool", "name": name, "input": input })
}

/// A call of a tool in a namespace.
pub fn tool_in(namespace: &str, name: &str, input: Value) -> Value {
    json!({ "type": "tool", "namespace": namespace, "name": name, "input": input })
}

/// A call of a tool whose input is a text.
pub fn custom(name: &str, input: &str) -> Value {
    json!({ "type": "custom", "name": name, "input": input })
}

/// Words.
pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// What the model says, turn by turn, in a conversation that a human or another agent began with a word.
pub struct Script {
    pub word: &'static str,
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

struct Request {
    path: String,
    body: Value,
}

fn read(stream: &TcpStream) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim().split(';').next().unwrap_or_default(), 16).unwrap_or(0);
        (&mut reader).take(size.min(MAX_BODY)).read_to_end(&mut body)?;
        reader.read_line(&mut String::new())?;
        chunked = size > 0;
    }
    reader.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Request { path, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

fn answer(mut stream: TcpStream, scripts: &[Script]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let Request { path, body } = read(&stream)?;
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let dialect: Option<&dyn Dialect> = match () {
        () if path.ends_with("/chat/completions") => Some(&Chat),
        () if path.ends_with("/responses") => Some(&Responses),
        () if path.ends_with("enerateContent") => Some(&Gemini),
        () => None,
    };
    let (status, kind, text) = match dialect {
        Some(dialect) => {
            let (name, turn, blocks) = pick(dialect, &body, scripts);
            let events = dialect.reply(&name, turn, &blocks, &body);
            let streams = body["stream"] == true || path.ends_with("streamGenerateContent");
            if streams {
                ("200 OK", "text/event-stream", stream_of(&events))
            } else {
                ("200 OK", "application/json", dialect.whole(&events))
            }
        }
        None if path.ends_with(":countTokens") => {
            ("200 OK", "application/json", json!({ "totalTokens": 100 }).to_string())
        }
        None => {
            ("404 Not Found", "application/json", json!({ "error": { "message": "mock", "code": 404 } }).to_string())
        }
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The script of the last message that names one, and its turn: what the conversation already holds says which.
fn pick(dialect: &dyn Dialect, body: &Value, scripts: &[Script]) -> (String, usize, Vec<Value>) {
    let found =
        dialect.said(body).iter().rev().find_map(|said| scripts.iter().find(|script| said.contains(script.word)));
    let Some(script) = found.filter(|_| dialect.has_tools(body)) else {
        return ("none".to_owned(), 0, vec![text("ok")]);
    };
    let name = script.word.trim_end_matches(':').to_lowercase();
    let turn = dialect.turn(body, &name);
    let blocks = script.turns.get(turn).cloned().unwrap_or_else(|| vec![text("ok")]);
    let agent = agent_in(body);
    let blocks = blocks.into_iter().map(|block| with(&block, &agent)).collect();
    (name, turn, blocks)
}

/// The last agent that an output of the conversation names.
fn agent_in(body: &Value) -> String {
    let text = body.to_string();
    let at = text.rfind(r#"agent_id\":\""#).map(|at| at + r#"agent_id\":\""#.len());
    at.and_then(|at| text.get(at..at + 36)).unwrap_or_default().to_owned()
}

/// A block with the agent's id in the place of `AGENT`.
fn with(block: &Value, agent: &str) -> Value {
    serde_json::from_str(&block.to_string().replace("AGENT", agent)).unwrap()
}

fn stream_of(events: &[(&str, Value)]) -> String {
    let mut out = String::new();
    for (name, data) in events {
        let mut data = data.clone();
        if !name.is_empty() {
            out.push_str(&format!("event: {name}\n"));
            data["type"] = json!(name);
        }
        let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        out.push_str(&format!("data: {data}\n\n"));
    }
    out
}

fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list<'a>(body: &'a Value, name: &str) -> &'a [Value] {
    body[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn arguments(block: &Value) -> String {
    block["input"].as_str().map_or_else(|| block["input"].to_string(), str::to_owned)
}

trait Dialect {
    /// What humans and other agents said, in order.
    fn said(&self, body: &Value) -> Vec<String>;
    /// How often the model has spoken.
    fn turn(&self, body: &Value, name: &str) -> usize;
    fn has_tools(&self, body: &Value) -> bool;
    /// Its events.
    fn reply<'a>(&self, name: &str, turn: usize, blocks: &[Value], body: &Value) -> Vec<(&'a str, Value)>;
    /// The answer that is not streamed.
    fn whole(&self, events: &[(&str, Value)]) -> String {
        events.last().map(|(_, data)| data.to_string()).unwrap_or_default()
    }
}

/// `POST …/chat/completions`
struct Chat;

impl Dialect for Chat {
    fn said(&self, body: &Value) -> Vec<String> {
        let messages = list(body, "messages").iter().filter(|message| message["role"] == "user");
        messages.map(|message| words(&message["content"])).collect()
    }

    fn turn(&self, body: &Value, _name: &str) -> usize {
        list(body, "messages").iter().filter(|message| message["role"] == "assistant").count()
    }

    fn has_tools(&self, body: &Value) -> bool {
        !list(body, "tools").is_empty()
    }

    fn reply<'a>(&self, name: &str, turn: usize, blocks: &[Value], body: &Value) -> Vec<(&'a str, Value)> {
        let said: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let calls = blocks.iter().filter(|block| block["type"] != "text").enumerate().map(|(at, block)| {
            json!({ "index": at, "id": format!("call_{name}_{turn}_{at}"), "type": "function",
                "function": { "name": block["name"], "arguments": arguments(block) } })
        });
        let calls: Vec<Value> = calls.collect();
        let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "prompt_tokens_details": { "cached_tokens": 0 } });
        let chunk = |choices: Value, usage: Value| {
            let mut chunk = json!({ "id": format!("chatcmpl_{name}_{turn}"), "created": 1_700_000_000, "model": body["model"],
                "object": "chat.completion.chunk", "choices": choices });
            if !usage.is_null() {
                chunk["usage"] = usage;
            }
            chunk
        };
        if body["stream"] != true {
            let message = json!({ "role": "assistant", "content": said.concat(), "tool_calls": calls });
            let mut whole = chunk(json!([{ "index": 0, "message": message, "finish_reason": finish }]), usage);
            whole["object"] = json!("chat.completion");
            return vec![("", whole)];
        }
        let delta = |delta: Value, finish: Value| json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        let mut out = vec![(
            "",
            chunk(delta(json!({ "role": "assistant", "content": said.concat() }), Value::Null), Value::Null),
        )];
        out.extend(
            calls.iter().map(|call| ("", chunk(delta(json!({ "tool_calls": [call] }), Value::Null), Value::Null))),
        );
        out.push(("", chunk(delta(json!({}), json!(finish)), Value::Null)));
        out.push(("", chunk(json!([]), usage)));
        out.push(("", json!("[DONE]")));
        out
    }
}

/// `POST …/responses`
struct Responses;

impl Dialect for Responses {
    fn said(&self, body: &Value) -> Vec<String> {
        let from = |item: &&Value| item["role"] == "user" || item["type"] == "agent_message";
        list(body, "input").iter().filter(from).map(|item| item["content"].to_string()).collect()
    }

    /// One behind the highest turn among the calls, and each answer of words alone.
    fn turn(&self, body: &Value, name: &str) -> usize {
        list(body, "input").iter().fold(0, |turn, item| {
            let id = item["call_id"].as_str().unwrap_or_default();
            let called = id
                .strip_prefix(&format!("call_{name}_"))
                .and_then(|rest| rest.split('_').next()?.parse::<usize>().ok());
            let calls = item["type"].as_str().is_some_and(|kind| kind.ends_with("call"));
            match called.filter(|_| calls) {
                Some(called) => turn.max(called + 1),
                None if item["role"] == "assistant" && item["type"] == "message" => turn + 1,
                None => turn,
            }
        })
    }

    fn has_tools(&self, body: &Value) -> bool {
        !list(body, "tools").is_empty() || list(body, "input").iter().any(|item| !item["tools"].is_null())
    }

    fn reply<'a>(&self, name: &str, turn: usize, blocks: &[Value], body: &Value) -> Vec<(&'a str, Value)> {
        let item = |(at, block): (usize, &Value)| {
            let id = format!("{name}_{turn}_{at}");
            match block["type"].as_str() {
                Some("text") => {
                    json!({ "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                    "content": [{ "type": "output_text", "text": block["text"], "annotations": [] }] })
                }
                Some("custom") => {
                    json!({ "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"),
                    "name": block["name"], "input": block["input"], "status": "completed" })
                }
                _ => {
                    let mut call = json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                        "name": block["name"], "arguments": arguments(block), "status": "completed" });
                    if !block["namespace"].is_null() {
                        call["namespace"] = block["namespace"].clone();
                    }
                    call
                }
            }
        };
        let items: Vec<Value> = blocks.iter().enumerate().map(item).collect();
        let usage = json!({ "input_tokens": 100, "input_tokens_details": { "cached_tokens": 0 }, "output_tokens": 20,
            "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 120 });
        let base = json!({ "id": format!("resp_{name}_{turn}"), "object": "response", "created_at": 1_700_000_000, "model": body["model"], "output": [] });
        let response = |status: &str, output: &[Value], usage: Value| {
            let mut response = base.clone();
            response["status"] = json!(status);
            response["output"] = json!(output);
            response["usage"] = usage;
            json!({ "response": response })
        };
        let mut out = vec![("response.created", response("in_progress", &[], Value::Null))];
        for (at, item) in items.iter().enumerate() {
            let mut begun = item.clone();
            begun["status"] = json!("in_progress");
            out.push(("response.output_item.added", json!({ "output_index": at, "item": begun })));
            if item["type"] == "message" {
                let delta = item["content"][0]["text"].clone();
                out.push((
                    "response.output_text.delta",
                    json!({ "output_index": at, "item_id": item["id"], "content_index": 0, "delta": delta }),
                ));
            }
            out.push(("response.output_item.done", json!({ "output_index": at, "item": item })));
        }
        out.push(("response.completed", response("completed", &items, usage)));
        out
    }
}

/// `POST …/models/MODEL:generateContent`, `:streamGenerateContent`
struct Gemini;

impl Dialect for Gemini {
    fn said(&self, body: &Value) -> Vec<String> {
        let contents =
            list(body, "contents").iter().filter(|content| content["role"].as_str().unwrap_or("user") == "user");
        contents.map(|content| list(content, "parts").iter().map(|part| words(&part["text"])).collect()).collect()
    }

    fn turn(&self, body: &Value, _name: &str) -> usize {
        list(body, "contents").iter().filter(|content| content["role"] == "model").count()
    }

    fn has_tools(&self, body: &Value) -> bool {
        !list(body, "tools").is_empty()
    }

    fn reply<'a>(&self, name: &str, turn: usize, blocks: &[Value], _body: &Value) -> Vec<(&'a str, Value)> {
        let part = |(at, block): (usize, &Value)| match block["type"].as_str() {
            Some("text") => json!({ "text": block["text"] }),
            _ => {
                json!({ "functionCall": { "id": format!("call_{name}_{turn}_{at}"), "name": block["name"], "args": block["input"] } })
            }
        };
        let parts: Vec<Value> = blocks.iter().enumerate().map(part).collect();
        let usage = json!({ "promptTokenCount": 100, "candidatesTokenCount": 20, "cachedContentTokenCount": 0, "totalTokenCount": 120 });
        vec![(
            "",
            json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": "STOP", "index": 0 }],
            "usageMetadata": usage, "modelVersion": "mock", "responseId": format!("resp_{name}_{turn}") }),
        )]
    }
}
