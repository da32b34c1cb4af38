//! Rego: a module of the policy, run over what a session attests. Its `deny` has to stay empty.
//!
//! Owns the running, which a process of its own does ([`child`]), and the words for what is wrong with a module. Refuses what asks the
//! world or the clock: a verification has to come out the same whenever it is made. Invariant: an error, a module without `deny`, and a
//! pattern that matches nothing are no pass.

pub mod child;
mod glob;
mod read;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use regorus::{Engine, Extension, Value};
use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};

use crate::input::Input;
use crate::{Judgement, Status};
use read::{Read, Seen, seen};

/// Most reasons of one rule that are told.
const MOST: usize = 50;
/// The one function of the library that does not come out the same each time.
const RANDOM: &str = "rand.intn";
/// Most places of the document that a module may read by name.
const MOST_READS: usize = 1000;
/// Longest reason that is told, in characters.
const LONGEST: usize = 500;
/// What the rules of one session may take together.
const TOGETHER: Duration = Duration::from_secs(30);

/// The time that the rules of one session have together: a policy may name as many as it likes, each without an end.
#[derive(Debug)]
pub struct Budget(Cell<Duration>);

impl Default for Budget {
    fn default() -> Self {
        Self::of(TOGETHER)
    }
}

impl Budget {
    /// So much time.
    pub const fn of(time: Duration) -> Self {
        Self(Cell::new(time))
    }

    /// What the next rule may take: what one may, or else what is left.
    fn next(&self) -> Duration {
        self.0.get().min(child::TIME)
    }

    fn spend(&self, taken: Duration) {
        self.0.set(self.0.get().saturating_sub(taken));
    }
}

/// What is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What errors name it: a file, or the policy and the pointer of the module in it.
    pub place: String,
    /// The module.
    pub module: String,
    /// The document that rules read as `input`.
    pub input: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What the rule denies; empty of one that holds.
    pub denied: Vec<String>,
    /// Why it could not be run.
    pub error: Option<String>,
    /// What it reads of the document.
    pub reads: BTreeSet<Read>,
}

/// Has a module judge what a session attests; `writ` at `program` is the process that runs it. `place` is what errors name it. One that the
/// others left too little time has judged nothing, and the error says so.
pub fn judge(program: &Path, place: &str, module: &str, input: &Input, budget: &Budget) -> Result<Judgement, String> {
    let (rule, shown) = (Digest::of(module.as_bytes()), Digest::of(input.text.as_bytes()));
    let all = format!("the rules of a session have {} s together", TOGETHER.as_secs());
    let within = budget.next();
    if within.is_zero() {
        return Err(format!("could not be run: {all}, and those before it took them"));
    }
    let job = Job { place: place.to_owned(), module: module.to_owned(), input: input.text.clone() };
    let began = Instant::now();
    let said = child::ask(program, &job, within);
    budget.spend(began.elapsed());
    let Said { denied, error, reads } = said.map_err(|cut| format!("could not be run to its end: {all}; {cut}"))?;
    let mut reasons: Vec<String> = error.into_iter().collect();
    for read in &reads {
        let Some(pattern) = read.pattern() else { continue };
        let why = if !input.patterns.iter().any(|listed| listed == pattern) {
            "it is not among the policy's `attestationsFrom`: add it there"
        } else if input.empty.iter().any(|empty| empty == pattern) {
            "no attestation of the session matches it, and a rule that saw nothing passes nothing"
        } else {
            continue;
        };
        let reason = format!("{place}:{}: `{pattern}`: {why}", read.line);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.extend(denied);
    reasons.truncate(MOST);
    let status = if reasons.is_empty() { Status::Pass } else { Status::Fail };
    let document = json::parse_with(input.text.as_bytes(), json::Limits::FOREIGN).unwrap_or_default();
    let mut notes: Vec<String> = Vec::new();
    for read in &reads {
        let Some(missing) = read.missing(&document) else { continue };
        let note = format!("{place}:{}: `{missing}` is not there, and what rests on it says nothing", read.line);
        if notes.len() < MOST && !notes.contains(&note) {
            notes.push(note);
        }
    }
    Ok(Judgement { status, reasons, notes, rule, shown })
}

/// Runs a module here, in this process: whoever calls it bounds its time and memory.
pub fn run(job: &Job) -> Said {
    let mut reads = BTreeSet::new();
    match denied(job, &mut reads) {
        Ok(denied) => Said { denied, error: None, reads },
        Err(error) => Said { denied: Vec::new(), error: Some(error), reads },
    }
}

fn denied(job: &Job, reads: &mut BTreeSet<Read>) -> Result<Vec<String>, String> {
    let mut engine = Engine::new();
    // A builtin that fails would else be undefined, and the rule it stands in would say nothing.
    engine.set_strict_builtin_errors(true);
    let globs = Box::new(|words: Vec<Value>| Ok(glob_match(&words)?));
    engine.add_extension("glob.match".to_owned(), 3, globs).map_err(|error| error.to_string())?;
    for (name, count) in SILENT {
        let asked = Box::new(spoken(name, count)?);
        engine.add_extension(name.to_owned(), count, asked).map_err(|error| error.to_string())?;
    }
    let told = |error: &dyn std::fmt::Display| explained(&job.place, &error.to_string());
    let package = engine.add_policy(job.place.clone(), job.module.clone()).or_else(|error| {
        // Modules of before Rego 1.0 leave `if` and `contains` out.
        let older = error.to_string().contains("keyword is required") && !job.module.contains("rego.v1");
        if !older {
            return Err(told(&error));
        }
        engine.set_rego_v0(true);
        engine.add_policy(job.place.clone(), job.module.clone()).map_err(|error| told(&error))
    })?;
    let Some(module) = engine.get_modules().first() else { return Err(format!("{}: it holds no module", job.place)) };
    let Seen { reads: read, calls, walks, denies } = seen(module);
    if read.len() > MOST_READS {
        return Err(format!("{}: it reads more than {MOST_READS} places of its input", job.place));
    }
    *reads = read;
    if let Some(line) = calls.get(RANDOM) {
        let remedy = remedy(&format!("could not find function {RANDOM}")).unwrap_or_default();
        return Err(format!("{}:{line}: {remedy}", job.place));
    }
    if let Some(line) = walks {
        // The library knows the pairs as one list, which matches nothing that a rule has for a pair.
        let remedy = "`walk` is read in one form here: write `walk(value, [path, inner])`";
        return Err(format!("{}:{line}: {remedy}", job.place));
    }
    if !denies {
        return Err(no_deny(&job.place));
    }
    engine.set_input(Value::from_json_str(&job.input).map_err(|error| format!("its input cannot be read: {error}"))?);
    let denied = engine.eval_rule(format!("{package}.deny")).map_err(|error| told(&error))?;
    Ok(messages(&denied))
}

/// What a `deny` holds, each as a text.
fn messages(denied: &Value) -> Vec<String> {
    let one = |value: &Value| {
        let text = match value {
            Value::String(text) => text.to_string(),
            Value::Object(members) => match members.get(&Value::from("msg")) {
                Some(Value::String(text)) => text.to_string(),
                _ => value.to_string(),
            },
            other => other.to_string(),
        };
        text.chars().take(LONGEST).collect()
    };
    match denied {
        Value::Undefined | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec!["`deny` is true".to_owned()],
        Value::Set(all) => all.iter().take(MOST).map(one).collect(),
        Value::Array(all) => all.iter().take(MOST).map(one).collect(),
        Value::Object(all) => {
            all.iter().take(MOST).map(|(name, value)| format!("{}: {}", one(name), one(value))).collect()
        }
        other => vec![one(other)],
    }
}

/// Builtins of the library, with how many operands they take, that are undefined where they can make nothing of an operand, in strict mode
/// too: a pattern that is none, a unit that is not known, a number that is no integer or too large.
const SILENT: [(&str, u8); 6] = [
    ("array.slice", 3),
    ("bits.lsh", 2),
    ("bits.rsh", 2),
    ("regex.replace", 3),
    ("units.parse", 1),
    ("units.parse_bytes", 1),
];

/// The library's own builtin, which fails where it would be undefined.
fn spoken(name: &'static str, count: u8) -> Result<impl Extension, String> {
    let operands: Vec<String> = (0..count).map(|at| format!("input[{at}]")).collect();
    let module = format!("package asked\nimport rego.v1\nanswer := {name}({})", operands.join(", "));
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    engine.add_policy("asked.rego".to_owned(), module).map_err(|error| error.to_string())?;
    Ok(move |words: Vec<Value>| {
        engine.set_input(Value::from(words));
        let answer = engine.eval_rule("data.asked.answer".to_owned()).unwrap_or(Value::Undefined);
        if answer == Value::Undefined {
            Err(Silent { name })?;
        }
        Ok(answer)
    })
}

/// A builtin of the library's can make nothing of what it is given.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` can make nothing of what it is given")]
struct Silent {
    name: &'static str,
}

/// Why a builtin of ours cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("`glob.match`: {0}")]
struct BadGlob(String);

fn glob_match(words: &[Value]) -> Result<Value, BadGlob> {
    let bad = |why: &str| BadGlob(why.to_owned());
    let [Value::String(pattern), delimiters, Value::String(text)] = words else {
        return Err(bad("it takes a pattern, delimiters and a text"));
    };
    let single = |value: &Value| match value {
        Value::String(text) if text.chars().count() == 1 => text.chars().next(),
        _ => None,
    };
    let delimiters = match delimiters {
        Value::Null => None,
        Value::Array(list) => {
            let list: Option<Vec<char>> = list.iter().map(single).collect();
            Some(list.ok_or_else(|| bad("its delimiters are single characters"))?)
        }
        _ => return Err(bad("its delimiters are a list, or null")),
    };
    glob::matches(pattern, delimiters.as_deref(), text).map(Value::from).map_err(BadGlob)
}

/// An error of the library in a line: the place, what is wrong, and for what people often write, what to write instead.
fn explained(place: &str, error: &str) -> String {
    let at = error.lines().find_map(|line| line.strip_prefix("--> "));
    let position = at.and_then(|at| {
        let mut parts = at.rsplitn(3, ':');
        let (column, line) = (parts.next()?, parts.next()?);
        Some(format!("{place}:{line}:{column}"))
    });
    let what = error.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or(error.trim());
    if what.contains("not a valid rule path") {
        return no_deny(place);
    }
    let remedy = remedy(what).map(|remedy| format!(": {remedy}")).unwrap_or_default();
    format!("{}: {what}{remedy}", position.as_deref().unwrap_or(place))
}

fn no_deny(place: &str) -> String {
    format!("{place}: it has no rule `deny`: write `deny contains msg if {{ … }}`")
}

fn remedy(what: &str) -> Option<String> {
    if let Some(name) = what.split("could not find function ").nth(1).map(str::trim) {
        return Some(match name {
            "range" => "Rego has no `range`: write `numbers.range(from, to)`, and `to` is among them".to_owned(),
            "time.now_ns" | "rand.intn" | "http.send" | "opa.runtime" | "uuid.rfc4122" | "net.lookup_ip_addr" => {
                format!(
                    "`{name}` asks the world or the clock, and a verification comes out the same whenever it is made"
                )
            }
            _ if name.starts_with("time.") => {
                "functions of time are not there: compare texts of RFC 3339, or pass the clock in `input`".to_owned()
            }
            _ => "it is no function that is known here".to_owned(),
        });
    }
    if what.contains("`difference` expects set argument") {
        return Some("`-` wants a set on both sides: make one of a list with `{x | some x in list}`".to_owned());
    }
    if what.contains("format verb") {
        return Some("write `%v` for any value, or `%.2f` without a width for a number".to_owned());
    }
    if what.contains("keyword is required") {
        return Some("write `deny contains msg if { … }`".to_owned());
    }
    None
}
