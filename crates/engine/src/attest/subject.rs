//! What is evaluated, and what an attestation says of it.
//!
//! Each input has the SHA-256 of the exact bytes (`hash`), so that whoever holds the action can tell whether this is the one; beside
//! it stands what a reader may see, its secrets hidden (R8). Page: `spec/attestation.md`.

use serde::Serialize;
use writ_consequence::{Probe, Report, mcp};
use writ_core::json::{self, Value};
use writ_core::secret::{Secrets, hide};
use writ_core::{Digest, ToolCall, ToolKind};
use writ_shell::Env;

/// What is to be evaluated.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// A shell line, and the absolute folder it would run in.
    Shell {
        /// The line.
        line: &'a str,
        /// The folder.
        cwd: Option<&'a str>,
    },
    /// A Terraform plan.
    Terraform {
        /// The parsed document.
        plan: &'a Value,
        /// The state before, where the plan has none.
        state: Option<&'a Value>,
        /// The hash of the document: [`document_hash`] of its bytes, or of its canonical form when there were no bytes of its own.
        hash: Digest,
        /// The plan file's, where Writ took the document from it.
        plan_file: Option<Digest>,
    },
    /// A call to a server.
    Mcp {
        /// The call.
        call: mcp::Call<'a>,
        /// The absolute folder that relative paths among its arguments hang off.
        cwd: Option<&'a str>,
    },
}

/// How much of its input an attestation shows: it may be fetched by anybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// The input with its secrets hidden.
    #[default]
    Hidden,
    /// Digests alone; of the report what names nothing of the input.
    HashOnly,
}

impl Detail {
    /// Digests alone where that is asked for.
    pub const fn hash_only(only: bool) -> Self {
        if only { Self::HashOnly } else { Self::Hidden }
    }
}

/// Why a request holds nothing that can be evaluated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoSubject(pub String);

impl<'a> Subject<'a> {
    /// What a tool call asks to be evaluated: a shell line, or a call to a server.
    pub fn of(call: &'a ToolCall) -> Option<Self> {
        let cwd = Some(call.cwd.as_str());
        match &call.kind {
            ToolKind::Shell { command } => Some(Self::Shell { line: command, cwd }),
            ToolKind::Mcp { server, tool } => {
                // The canonical name says the server itself.
                let canonical = call.is_canonical();
                let (tool, server) = if canonical { (&call.tool, None) } else { (tool, Some(server.as_str())) };
                Some(Self::Mcp { call: mcp::Call { tool, server, arguments: &call.input, annotations: None }, cwd })
            }
            _ => None,
        }
    }

    /// Reads `{source, input, options}` as clients send it. `input` of `shell` is the line, or `{command, cwd?}`; of `terraform` the
    /// plan, or `{plan, state?}`; of `mcp` `{tool, server?, arguments?, annotations?}`. `options` may hold `cwd` and `state` too.
    pub fn read(source: &str, input: &'a Value, options: Option<&'a Value>) -> Result<Self, NoSubject> {
        let missing = |what: &str| NoSubject(what.to_owned());
        let option = |name: &str| input.get(name).or_else(|| options?.get(name));
        match source {
            "shell" => {
                let line = input.as_str().or_else(|| input.get("command").and_then(Value::as_str));
                let line =
                    line.ok_or_else(|| missing("`input` is no shell line: give a text, or `{\"command\": …}`"))?;
                Ok(Self::Shell { line, cwd: option("cwd").and_then(Value::as_str).filter(|cwd| cwd.starts_with('/')) })
            }
            "terraform" => {
                let plan = input.get("plan").unwrap_or(input);
                let hash = document_hash(json::canonical(plan).as_bytes());
                Ok(Self::Terraform { plan, state: option("state"), hash, plan_file: None })
            }
            "mcp" => {
                let tool = input.get("tool").or_else(|| input.get("name")).and_then(Value::as_str);
                let call = mcp::Call {
                    tool: tool.ok_or_else(|| missing("no member `tool` with a tool's name"))?,
                    server: input.get("server").and_then(Value::as_str),
                    arguments: input.get("arguments").or_else(|| input.get("input")).unwrap_or(&Value::Null),
                    annotations: input.get("annotations"),
                };
                Ok(Self::Mcp { call, cwd: option("cwd").and_then(Value::as_str).filter(|cwd| cwd.starts_with('/')) })
            }
            other => Err(missing(&format!("`source` is `{other}`: give `shell`, `terraform` or `mcp`"))),
        }
    }

    /// What it would do. `home` is the user's home directory; `probe` looks at the disk, where it is the one the action would change.
    pub fn evaluate(&self, home: Option<&str>, probe: &dyn Probe) -> Result<Report, NoSubject> {
        let env =
            |cwd: Option<&str>| Env { home: home.map(str::to_owned), cwd: cwd.map(str::to_owned), ..Env::default() };
        match self {
            Self::Shell { line, cwd } => Ok(writ_consequence::shell::evaluate(line, &env(*cwd), probe)),
            Self::Terraform { plan, state, .. } => {
                writ_consequence::terraform::evaluate(plan, *state).map_err(|error| NoSubject(error.to_string()))
            }
            Self::Mcp { call, cwd } => Ok(mcp::evaluate(call, &env(*cwd), probe)),
        }
    }

    /// The report as it is attested and shown beside its attestation: no secret in any of its texts, also none of the input.
    pub fn output(&self, report: &Report, detail: Detail) -> Value {
        let hidden = hidden(&self.secrets(), json::to_value(report));
        match detail {
            Detail::Hidden => hidden,
            Detail::HashOnly => nameless(None, hidden),
        }
    }

    /// The secrets of the input.
    fn secrets(&self) -> Secrets {
        match self {
            Self::Shell { line, .. } => Secrets::of(line),
            // What a plan calls sensitive is in no report.
            Self::Terraform { .. } => Secrets::default(),
            Self::Mcp { call, .. } => {
                let mut out = Secrets::of(&json::compact(call.arguments));
                texts(call.arguments, 0, &mut |text| out.add(text));
                out
            }
        }
    }

    /// The `input` of its attestation.
    pub fn attested(&self, detail: Detail) -> Value {
        let whole = detail == Detail::Hidden;
        let shown = |text: &str| whole.then(|| hide(text));
        json::to_value(&match self {
            Self::Shell { line, cwd } => Attested::Shell {
                input: shown(line),
                hash: line_hash(line),
                cwd: cwd.and_then(shown),
                cwd_hash: cwd.filter(|_| !whole).map(folder_hash),
            },
            Self::Terraform { hash, plan_file, .. } => Attested::Terraform { hash: *hash, plan_file: *plan_file },
            Self::Mcp { call, .. } => {
                Attested::Mcp { tool: shown(call.tool), server: call.server.and_then(shown), hash: call_hash(call) }
            }
        })
    }
}

/// The `input` of an attestation.
#[derive(Serialize)]
#[serde(tag = "source", rename_all = "lowercase")]
enum Attested {
    Shell {
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        hash: Digest,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd_hash: Option<Digest>,
    },
    Terraform {
        hash: Digest,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_file: Option<Digest>,
    },
    Mcp {
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        hash: Digest,
    },
}

/// A call as it is hashed.
#[derive(Serialize)]
struct Hashed<'a> {
    arguments: &'a Value,
    server: Option<&'a str>,
    tool: &'a str,
}

/// The hash of a shell line: of its bytes as they are.
pub fn line_hash(line: &str) -> Digest {
    Digest::of(line.as_bytes())
}

/// The hash of a folder: of its name as it is shown.
pub fn folder_hash(cwd: &str) -> Digest {
    Digest::of(hide(cwd).as_bytes())
}

/// The hash of a plan's document.
pub fn document_hash(document: &[u8]) -> Digest {
    Digest::of(document)
}

/// The hash of a call: of the canonical JSON of `{arguments, server, tool}`, the server null when it is not named.
pub fn call_hash(call: &mcp::Call<'_>) -> Digest {
    let hashed = Hashed { arguments: call.arguments, server: call.server, tool: call.tool };
    Digest::of(json::to_canonical(&hashed).as_bytes())
}

/// Without what is taken from the input: names, texts, values, and what a sentence puts in backticks.
fn nameless(name: Option<&str>, value: Value) -> Value {
    const OWN: [&str; 10] =
        ["id", "name", "raw", "before", "after", "value", "targetId", "addresses", "previousAddress", "replacedFor"];
    match value {
        Value::String(text) if name == Some("what") || text.contains('`') => Value::String(without_quotes(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| nameless(name, item)).collect()),
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), nameless(Some(&name), value))).collect())
        }
        plain => plain,
    }
}

/// `… `x` …` as `… `[hidden]` …`; a text without backticks is all of the input.
fn without_quotes(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    if !text.contains('`') {
        return "[hidden]".to_owned();
    }
    let shown = pieces.map(|(at, piece)| if at % 2 == 1 { "[hidden]" } else { piece });
    shown.collect::<Vec<_>>().join("`")
}

/// Every text of a value, down to a depth that no call of a tool has.
fn texts(value: &Value, depth: usize, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) if depth < 32 => items.iter().for_each(|item| texts(item, depth + 1, each)),
        Value::Object(members) if depth < 32 => members.iter().for_each(|(_, value)| texts(value, depth + 1, each)),
        Value::Array(_) | Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hidden(secrets: &Secrets, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(secrets.hide(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| hidden(secrets, item)).collect()),
        Value::Object(object) => {
            Value::Object(object.into_iter().map(|(name, value)| (name, hidden(secrets, value))).collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// The report with its attestation beside it (§7.1).
pub fn response(output: Value, attestation: Value) -> Value {
    let Value::Object(mut response) = output else { return output };
    response.push("attestation", attestation);
    Value::Object(response)
}
