//! What becomes of each line between a client and a server.
//!
//! Owns the requests that are open and what their answers are for. Refuses what the gate refuses, what could mean two things, and
//! answers that nobody asked for. Invariant: what is relayed is the line as it came, but for the tools that are left out of a list.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use writ_core::Verdict;
use writ_core::json::{self, Object, Value, canonical, write_string};
use writ_engine::mcp::{Gate, Offered, Passed, Ruling, Wanted};

use super::message::{self, Id, Kind, Line, Message, Wrong, ambiguous, cuts, folded, without};

/// Most requests that may be open at once.
const MOST_OPEN: usize = 1024;
/// JSON-RPC's code for what a policy does not let through.
const REFUSED: i32 = -32050;
/// The one for a server that gives no answer that can be used.
const NO_ANSWER: i32 = -32051;
/// What Claude Code says of a call: the id under which its hooks know it.
const TOOL_USE: &str = "claudecode/toolUseId";
/// Methods of the protocol that hand a server nothing that a policy speaks of. Every other one is decided.
const PLAIN: [&str; 15] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
    "logging/setLevel",
    "completion/complete",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
];

/// Between a client and a server.
pub struct Relay {
    gate: Gate,
    open: Mutex<HashMap<String, Open>>,
}

/// What is to happen.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Goes on, in the direction it came.
    pub on: Option<Vec<u8>>,
    /// Goes back, a line each.
    pub back: Vec<String>,
    /// For the human who looks.
    pub note: Option<String>,
}

/// A request that has no answer yet.
struct Open {
    id: Id,
    what: What,
    /// The client has taken it back: there need be no answer.
    taken_back: bool,
}

enum What {
    /// One that was decided. `None` once the client has taken it back.
    Call(Option<Box<Passed>>),
    /// One for a list of tools.
    Tools,
    /// Another.
    Plain,
}

/// What a message of the client comes to.
enum Fate {
    On(Option<Open>),
    Refused(String),
    Dropped(String),
}

impl Relay {
    /// Through that gate.
    pub fn new(gate: Gate) -> Self {
        Self { gate, open: Mutex::default() }
    }

    /// The gate.
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// A line of the client's.
    pub fn from_client(&self, line: &[u8]) -> Step {
        let (messages, batch) = match message::read(line, false) {
            Ok(Line::Empty) => return Step::default(),
            Ok(Line::Messages { messages, batch }) => (messages, batch),
            Err(Wrong { code, why, id }) => {
                let told =
                    error(id.as_deref().unwrap_or("null"), code, &format!("writ does not relay it: {why}"), None);
                return Step { back: vec![told], ..Step::default() };
            }
        };
        let (mut entered, mut back, mut note, mut stopped) = (Vec::new(), Vec::new(), None, false);
        let answerable: Vec<Option<Id>> = messages.iter().map(Message::answerable).collect();
        let mut keys = HashSet::new();
        let twice = answerable.iter().flatten().any(|id| !keys.insert(id.key.as_str()));
        for (message, id) in messages.into_iter().zip(&answerable) {
            // What stands behind a refused message of a batch is not asked about: none of it goes on.
            let fate = match stopped {
                true => Fate::Refused(BESIDE.to_owned()),
                false if twice => Fate::Refused(told(Verdict::Deny, TWICE)),
                false => self.client_message(message, entered.len()),
            };
            match fate {
                Fate::On(open) => entered.extend(open),
                Fate::Refused(told) => {
                    stopped = true;
                    back.extend(id.as_ref().map(|id| error_data(&id.written, &told)));
                }
                Fate::Dropped(why) => (stopped, note) = (true, Some(why)),
            }
        }
        if !stopped {
            let mut open = self.lock();
            open.extend(entered.into_iter().map(|entry| (entry.id.key.clone(), entry)));
            return Step { on: Some(line.to_vec()), back, note };
        }
        for Open { id, what, .. } in entered {
            if let What::Call(Some(passed)) = what {
                self.gate.after(&passed, Err(BESIDE.to_owned()));
            }
            back.push(error_data(&id.written, &told(Verdict::Deny, BESIDE)));
        }
        let back = if batch && !back.is_empty() { vec![format!("[{}]", back.join(","))] } else { back };
        Step { on: None, back, note }
    }

    /// `entered` are the requests of the same batch before it.
    fn client_message(&self, message: Message, entered: usize) -> Fate {
        let refused = |why: &str| Fate::Refused(told(Verdict::Deny, why));
        let method = match &message.kind {
            Kind::Answer => return Fate::On(None),
            Kind::Notification(method) => {
                if method == "notifications/cancelled" {
                    self.take_back(&message);
                }
                let harmless = method.starts_with("notifications/") || method == "initialized";
                let why = || format!("`{method}` without an id is not relayed");
                return if harmless { Fate::On(None) } else { Fate::Dropped(why()) };
            }
            Kind::Request(method) => method.clone(),
        };
        let Some(id) = message.id.clone() else { return refused("it has no id") };
        if id.key.is_empty() {
            return refused("its id is empty");
        }
        {
            let mut open = self.lock();
            if open.contains_key(&id.key) {
                return refused(TWICE);
            }
            if open.len() + entered >= MOST_OPEN {
                // An answer to one of these that comes all the same is one that nobody asked for.
                open.retain(|_, open| !open.taken_back);
            }
            if open.len() + entered >= MOST_OPEN {
                return refused("too many requests are open: wait for the server's answers, or take requests back");
            }
        }
        if PLAIN.contains(&method.as_str()) {
            let what = if method == "tools/list" { What::Tools } else { What::Plain };
            return Fate::On(Some(Open { id, what, taken_back: false }));
        }
        let params = message.body.get("params").and_then(Value::as_object);
        if let Some(name) = params.and_then(ambiguous) {
            return refused(&format!("`{name}` could be taken for another member"));
        }
        if !is_plain_name(&method) {
            return refused("its method holds what no method's name does");
        }
        let known = folded(&method);
        if known != method && (PLAIN.contains(&known.as_str()) || known == "tools/call") {
            return refused(&format!("`{method}` could be taken for another method"));
        }
        let Some((tool, input)) = judged(&method, params) else { return refused("its parameters are not a call's") };
        let tool_use = message.param("_meta").and_then(|meta| meta.get(TOOL_USE)).and_then(Value::as_str);
        let wanted = Wanted { tool: &tool, input, rounded: message.rounded.clone(), is_tool: method == "tools/call" };
        match self.gate.before(wanted, tool_use) {
            Ruling::Pass(passed) => Fate::On(Some(Open { id, what: What::Call(Some(passed)), taken_back: false })),
            Ruling::Refused { verdict, reason } => Fate::Refused(told(verdict, &reason)),
        }
    }

    /// A request that the client has taken back: there may be no answer.
    fn take_back(&self, message: &Message) {
        let key = match message.param("requestId") {
            Some(Value::String(text)) => text.clone(),
            Some(number @ Value::Number(_)) => canonical(number),
            _ => return,
        };
        let passed = self.lock().get_mut(&key).and_then(|open| {
            open.taken_back = true;
            if let What::Call(passed) = &mut open.what { passed.take() } else { None }
        });
        if let Some(passed) = passed {
            self.gate.after(&passed, Err("the client took it back".to_owned()));
        }
    }

    /// A line of the server's.
    pub fn from_server(&self, line: &[u8]) -> Step {
        let dropped = |why: String| Step { note: Some(why), ..Step::default() };
        let messages = match message::read(line, true) {
            Ok(Line::Empty) => return Step::default(),
            Ok(Line::Messages { messages, .. }) => messages,
            Err(Wrong { why, .. }) => return dropped(format!("a line of the server's is no message: {why}")),
        };
        let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
        let (mut places, mut notes) = (Vec::new(), Vec::new());
        for message in &messages {
            if message.kind != Kind::Answer {
                continue;
            }
            let entry = message.id.as_ref().and_then(|id| self.lock().remove(&id.key));
            match entry {
                // An error about a request that the server could not read has no id.
                None if message.id.as_ref().is_none_or(|id| id.key.is_empty())
                    && message.body.get("error").is_some() => {}
                None => return dropped("the server answers what nobody asked".to_owned()),
                Some(Open { what: What::Plain | What::Call(None), .. }) => {}
                Some(Open { what: What::Call(Some(passed)), .. }) => {
                    notes.extend(self.gate.after(&passed, outcome(&message.body)));
                }
                Some(Open { id, what: What::Tools, .. }) => match self.tools(message, &text) {
                    Ok((cut, note)) => {
                        places.extend(cut);
                        notes.extend(note);
                    }
                    Err(why) => {
                        let told = error(&id.written, NO_ANSWER, &format!("writ does not relay it: {why}"), None);
                        return Step { on: Some(format!("{told}\n").into_bytes()), back: Vec::new(), note: Some(why) };
                    }
                },
            }
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        if places.is_empty() {
            return Step { on: Some(line.to_vec()), back: Vec::new(), note };
        }
        Step { on: Some((without(&text, &places) + "\n").into_bytes()), back: Vec::new(), note }
    }

    /// The places of the tools that a list is relayed without, each with what separates it from the next.
    fn tools(&self, message: &Message, text: &str) -> Result<Found, String> {
        let Some(result) = message.body.get("result") else { return Ok((Vec::new(), None)) };
        let result = result.as_object().ok_or("its list of tools is no object")?;
        if let Some(name) = ambiguous(result) {
            return Err(format!("`{name}` could be taken for another member"));
        }
        let tools = result.get("tools").and_then(Value::as_array).ok_or("its list has no tools")?;
        let named = |tool: &Value| {
            tool.as_object().filter(|tool| ambiguous(tool).is_none())?.get("name")?.as_str().map(str::to_owned)
        };
        let names: Option<Vec<String>> = tools.iter().map(named).collect();
        let names = names.ok_or("a tool in its list has no name")?;
        let offered: Vec<Offered<'_>> =
            tools.iter().zip(&names).map(|(definition, name)| Offered { name, definition }).collect();
        let last = result.get("nextCursor").is_none_or(|cursor| *cursor == Value::Null);
        let (mut shown, note) = self.gate.shown(&offered, last);
        for (at, name) in names.iter().enumerate() {
            // Of two tools of one name nobody can tell which is called.
            if names.iter().filter(|other| *other == name).count() > 1
                && let Some(shown) = shown.get_mut(at)
            {
                *shown = false;
            }
        }
        if shown.iter().all(|shown| *shown) {
            return Ok((Vec::new(), note));
        }
        let pointer = format!("{}/result/tools", message.pointer);
        Ok((cuts(text, &pointer, &shown).ok_or("its list cannot be read")?, note))
    }

    /// What the client is told of every open request when the server is gone, or of those of one line that it never got.
    pub fn gone(&self, why: &str) -> Vec<String> {
        let open: Vec<Open> = self.lock().drain().map(|(_, open)| open).collect();
        open.into_iter().map(|open| self.lost(open, why)).collect()
    }

    /// The same of the requests in one line of the client's.
    pub fn failed(&self, line: &[u8], why: &str) -> Vec<String> {
        let Ok(Line::Messages { messages, .. }) = message::read(line, false) else { return Vec::new() };
        let keys = messages.iter().filter_map(Message::answerable).map(|id| id.key);
        let open: Vec<Open> = keys.filter_map(|key| self.lock().remove(&key)).collect();
        open.into_iter().map(|open| self.lost(open, why)).collect()
    }

    fn lost(&self, Open { id, what, .. }: Open, why: &str) -> String {
        if let What::Call(Some(passed)) = what {
            self.gate.after(&passed, Err(why.to_owned()));
        }
        error(&id.written, NO_ANSWER, &format!("writ: {why}"), None)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places to be cut out, and what the human is told.
type Found = (Vec<std::ops::Range<usize>>, Option<String>);

/// Why a second request of an id is not relayed.
const TWICE: &str = "another request with this id is open";
/// Why a message of a batch is not relayed that is not refused itself.
const BESIDE: &str = "another message of the same batch was refused, so none of it went on";

impl Message {
    fn answerable(&self) -> Option<Id> {
        if matches!(self.kind, Kind::Request(_)) { self.id.clone() } else { None }
    }
}

/// Whether a name is one to every reader: not empty, and without what is cut, or ends a name, elsewhere.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name == name.trim() && !name.chars().any(char::is_control)
}

/// The tool and the input that a request is decided as.
fn judged(method: &str, params: Option<&Object>) -> Option<(String, Value)> {
    let member = |name: &str| params.and_then(|params| params.get(name));
    let object = |name: &str| match member(name) {
        None => Some(Value::Object(Object::new())),
        Some(input @ Value::Object(_)) => Some(input.clone()),
        Some(_) => None,
    };
    let all = || {
        let members = params.into_iter().flat_map(Object::iter).filter(|(name, _)| *name != "_meta");
        Value::Object(members.map(|(name, value)| (name.to_owned(), value.clone())).collect())
    };
    match method {
        "tools/call" => {
            // Some servers cut a name, or end it at a zero byte.
            let name = member("name")?.as_str().filter(|name| is_plain_name(name))?;
            Some((name.to_owned(), object("arguments")?))
        }
        // Looking on is reading again and again.
        "resources/read" | "resources/subscribe" => {
            member("uri")?.as_str()?;
            Some(("read_resource".to_owned(), all()))
        }
        "prompts/get" => {
            member("name")?.as_str()?;
            Some(("get_prompt".to_owned(), all()))
        }
        other => Some((other.to_owned(), all())),
    }
}

/// What came of a call, for its record.
fn outcome(answer: &Object) -> Result<Value, String> {
    match (answer.get("result"), answer.get("error")) {
        (Some(result), _) if result.get("isError").and_then(Value::as_bool) == Some(true) => Err(canonical(result)),
        (Some(result), _) => Ok(result.clone()),
        (None, error) => Err(canonical(error.unwrap_or(&Value::Null))),
    }
}

/// What is told of a refusal: its words, and beside them whether a human could let it run.
fn told(verdict: Verdict, reason: &str) -> String {
    let mut out = "{\"code\":".to_owned();
    out.push_str(&format!("{REFUSED},\"message\":"));
    let reason = if reason.starts_with("writ") { reason.to_owned() } else { format!("writ denies it: {reason}") };
    write_string(&reason, &mut out);
    out.push_str(&format!(",\"data\":{{\"verdict\":\"{verdict}\"}}}}"));
    out
}

fn error_data(id: &str, error: &str) -> String {
    let error = if error.starts_with('{') { error.to_owned() } else { told(Verdict::Deny, error) };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")
}

/// A JSON-RPC error, on one line.
pub fn error(id: &str, code: i32, message: &str, data: Option<&Value>) -> String {
    let mut out = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":");
    write_string(message, &mut out);
    if let Some(data) = data {
        out.push_str(&format!(",\"data\":{}", json::compact(data)));
    }
    out.push_str("}}");
    out
}
