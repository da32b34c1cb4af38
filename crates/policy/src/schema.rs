//! The shape of a policy document as one table: it drives parsing, "did you mean", "not enforced yet" and the JSON Schema.
//!
//! Everything the aflock specification names is here; a member that is not is an error. What a member *means* is elsewhere.
//! Page: `spec/policy.md`.

use writ_core::Timestamp;
use writ_core::json::{Object, Value};

use crate::error::{Found, did_you_mean};

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// The only schema version there is.
    Version,
    /// RFC 3339.
    Date,
    /// `true` or `false`.
    Truth,
    /// A whole number from 0.
    Count,
    /// Any number from 0.
    Amount,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of the same kind.
    List(&'static Kind),
    /// These members and no others.
    Object(&'static [Field]),
    /// Any members, all of this kind.
    Map(&'static Kind),
    /// A money limit: a number from 0, or `{value, enforcement}`.
    Money,
    /// A whole-number limit, likewise.
    Limit,
    /// Text, or an object that is itself a policy.
    PolicyOrPath,
}

/// One member of an object.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// Whether something acts on it today.
    pub enforced: bool,
    /// What it is for.
    pub doc: &'static str,
}

const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, enforced: false, doc }
}

const fn enforced(field: Field) -> Field {
    Field { enforced: true, ..field }
}

const fn required(field: Field) -> Field {
    Field { required: true, ..field }
}

const TEXTS: Kind = Kind::List(&Kind::Text);

const ALLOW_DENY: &[Field] =
    &[field("allow", TEXTS, "Patterns that may be used."), field("deny", TEXTS, "Patterns that must not be used.")];

const LIMITS: &[Field] = &[
    field("maxSpendUSD", Kind::Money, "Most money, in US dollars."),
    field("maxTokensIn", Kind::Limit, "Most input tokens."),
    field("maxTokensOut", Kind::Limit, "Most output tokens."),
    field("maxTurns", Kind::Limit, "Most conversation turns."),
    field("maxWallTimeSeconds", Kind::Limit, "Longest wall time, in seconds."),
    field("maxToolCalls", Kind::Limit, "Most tool calls."),
];

const FUNCTIONARY: &[Field] = &[
    required(field("type", Kind::Word(&["keyless", "publickey", "x509"]), "How the signer is known.")),
    field("issuer", Kind::Text, "OIDC issuer, or certificate issuer."),
    field("subject", Kind::Text, "OIDC subject, or certificate subject."),
    field("publickeyid", Kind::Text, "Id of a public key."),
];

const SUBLAYOUT: &[Field] = &[
    required(field("name", Kind::Text, "The sub-agent's name.")),
    required(field("policy", Kind::PolicyOrPath, "Path of its policy, or the policy itself.")),
    field("policyDigest", Kind::Map(&Kind::Text), "Expected digest of its policy."),
    field("functionaries", Kind::List(&Kind::Object(FUNCTIONARY)), "Who may sign for it; replaces the parent's."),
    field("limits", Kind::Object(LIMITS), "Its limits; never looser than the parent's (R23)."),
    field(
        "inherit",
        Kind::List(&Kind::Word(&["limits", "tools", "files", "domains", "functionaries"])),
        "What it takes from the parent.",
    ),
    field("attestationPrefix", Kind::Text, "Prefix of its attestations."),
];

const SESSION_SOURCE: &[Field] = &[
    field("path", Kind::Text, "Path of the session's transcript."),
    field("merkleRoot", Kind::Text, "Expected Merkle root of the session."),
    field("algorithm", Kind::Word(&["sha256", "sha512"]), "Hash of the tree; sha256 when left out."),
    field(
        "constraints",
        Kind::Object(&[
            field("maxTurnDistance", Kind::Count, "Largest gap between attested turns."),
            field("requireContiguousTurns", Kind::Truth, "No gaps at all."),
        ]),
        "What the order of turns must satisfy.",
    ),
];

const MATERIALS: &[Field] = &[
    field("session", Kind::Object(SESSION_SOURCE), "Binding to the session's transcript."),
    field(
        "git",
        Kind::Object(&[
            field("treeHash", Kind::Text, "Git tree that attestations are bound to."),
            field("branch", Kind::Text, "Expected branch."),
        ]),
        "Binding to a state of the code.",
    ),
    field(
        "artifacts",
        Kind::List(&Kind::Object(&[
            field("name", Kind::Text, "Its name."),
            field("digest", Kind::Map(&Kind::Text), "Its digest by algorithm."),
            field("uri", Kind::Text, "Where it is."),
        ])),
        "Bindings to other things.",
    ),
    field(
        "sublayoutSessions",
        Kind::Map(&Kind::Object(&[
            field("merkleRoot", Kind::Text, "Root of the sub-agent's session."),
            field("spawnedAtTurn", Kind::Count, "The parent's turn that started it."),
        ])),
        "Bindings to sub-agents' sessions, by name.",
    ),
];

const EVALUATORS: &[Field] = &[
    field(
        "rego",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Text, "Its name.")),
            required(field("policy", Kind::Text, "Inline Rego, or the path of a .rego file.")),
        ])),
        "Rego rules; `deny` must stay empty.",
    ),
    field(
        "ai",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Text, "Its name.")),
            required(field("prompt", Kind::Text, "What PASS and FAIL mean.")),
            field("model", Kind::Text, "The model that judges."),
        ])),
        "Judgements by a model.",
    ),
    field(
        "grpc",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Text, "Its name.")),
            required(field("endpoint", Kind::Text, "host:port of the service.")),
        ])),
        "Judgements by a service.",
    ),
];

const MEASURED: &[Field] = &[required(field("value", Kind::Amount, "The limit.")), WHEN];
const COUNTED: &[Field] = &[required(field("value", Kind::Count, "The limit.")), WHEN];
const WHEN: Field = field(
    "enforcement",
    Kind::Word(&["fail-fast", "post-hoc"]),
    "`fail-fast` stops at once, `post-hoc` is checked at the end.",
);

/// The whole document.
pub const ROOT: &[Field] = &[
    enforced(field("$schema", Kind::Text, "The JSON Schema, for editors.")),
    enforced(required(field("version", Kind::Version, "Schema version: \"1.0\"."))),
    enforced(required(field("name", Kind::Text, "What people call this policy."))),
    enforced(field("expires", Kind::Date, "After this moment every call is denied. RFC 3339.")),
    field("extends", Kind::Text, "A policy that this one tightens: path, https URL or OCI reference."),
    field(
        "identity",
        Kind::Object(&[
            field("allowedModels", TEXTS, "Models that may run under this policy."),
            field("allowedEnvironments", TEXTS, "Environments that may run it, as patterns."),
            field("requiredTools", TEXTS, "Tools that must be there."),
            field("deniedTools", TEXTS, "Tools that must not be there."),
        ]),
        "Who the agent must be.",
    ),
    field(
        "grants",
        Kind::Object(&[
            field("secrets", Kind::Object(ALLOW_DENY), "Secrets it may use."),
            field("apis", Kind::Object(ALLOW_DENY), "APIs it may call."),
            field("storage", Kind::Object(ALLOW_DENY), "Storage it may use."),
        ]),
        "Resources the agent's identity may use.",
    ),
    field("limits", Kind::Object(LIMITS), "How much it may consume."),
    enforced(field(
        "tools",
        Kind::Object(&[
            field("allow", TEXTS, "Tools it may use: `Tool` or `Tool:pattern`. Absent: all that are not denied."),
            field("deny", TEXTS, "Tools it must not use."),
            field("requireApproval", TEXTS, "Tools that need a human's yes."),
        ]),
        "Tool access.",
    )),
    enforced(field(
        "files",
        Kind::Object(&[
            field("allow", TEXTS, "Files it may touch. Absent: all that are not denied."),
            field("deny", TEXTS, "Files it must not touch."),
            field("readOnly", TEXTS, "Files it may read and must not change."),
        ]),
        "File access, as globs relative to the policy's folder.",
    )),
    enforced(field("domains", Kind::Object(ALLOW_DENY), "Network access, by host name.")),
    field("requiredAttestations", TEXTS, "Steps that must leave an attestation."),
    field("attestationDir", Kind::Text, "Where attestations go."),
    field("attestationsFrom", TEXTS, "Which attestations rules may see."),
    field("materialsFrom", Kind::Object(MATERIALS), "What attestations are bound to."),
    field("evaluators", Kind::Object(EVALUATORS), "Checks at or after the end."),
    field("functionaries", Kind::List(&Kind::Object(FUNCTIONARY)), "Who may sign this policy."),
    field("sublayouts", Kind::List(&Kind::Object(SUBLAYOUT)), "Policies of sub-agents."),
];

/// Checks a value against its kind; problems go to `out`.
pub fn check(value: &Value, kind: Kind, pointer: &str, out: &mut Vec<Found>) {
    let mut wrong =
        |expected: &str| out.push(Found::value(pointer, format!("expected {expected}, found {}", value.kind()), ""));
    match kind {
        Kind::Text if value.as_str().is_none() => wrong("a string"),
        Kind::Truth if value.as_bool().is_none() => wrong("true or false"),
        Kind::Count if value.as_u64().is_none() => wrong("a whole number from 0"),
        Kind::Amount if value.as_f64().is_none_or(|number| number < 0.0) => wrong("a number from 0"),
        Kind::Text | Kind::Truth | Kind::Count | Kind::Amount => {}
        Kind::Version if value.as_str() == Some("1.0") => {}
        Kind::Version => out.push(Found::value(pointer, "unknown version", "write \"1.0\"")),
        Kind::Date => match value.as_str().map(Timestamp::parse) {
            Some(Ok(_)) => {}
            Some(Err(error)) => out.push(Found::value(pointer, error.to_string(), "")),
            None => wrong("an RFC 3339 date and time"),
        },
        Kind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => {}
            Some(word) => {
                let help = did_you_mean(word, words.iter().copied())
                    .map_or_else(|| format!("one of {}", words.join(", ")), |near| format!("did you mean `{near}`?"));
                out.push(Found::value(pointer, format!("unknown word `{word}`"), help));
            }
            None => wrong("a string"),
        },
        Kind::List(item) => match value.as_array() {
            Some(items) => {
                items.iter().enumerate().for_each(|(at, each)| check(each, *item, &format!("{pointer}/{at}"), out))
            }
            None => wrong("an array"),
        },
        Kind::Map(item) => match value.as_object() {
            Some(members) => members.iter().for_each(|(name, each)| check(each, *item, &join(pointer, name), out)),
            None => wrong("an object"),
        },
        Kind::Object(fields) => match value.as_object() {
            Some(members) => check_members(members, fields, pointer, out),
            None => wrong("an object"),
        },
        Kind::Money | Kind::Limit => check_limit(value, kind, pointer, out),
        Kind::PolicyOrPath => match value {
            Value::String(_) => {}
            Value::Object(members) => check_members(members, ROOT, pointer, out),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => wrong("a path or a policy"),
        },
    }
}

fn check_members(members: &Object, fields: &'static [Field], pointer: &str, out: &mut Vec<Found>) {
    for (name, value) in members.iter() {
        let at = join(pointer, name);
        if let Some(field) = fields.iter().find(|field| field.name == name) {
            check(value, field.kind, &at, out);
            continue;
        }
        let near = did_you_mean(name, fields.iter().map(|field| field.name));
        let help = near.map_or_else(
            || format!("known here: {}", fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        out.push(Found::name(&at, format!("unknown field `{name}`"), help));
    }
    for field in fields.iter().filter(|field| field.required && members.get(field.name).is_none()) {
        out.push(Found::value(pointer, format!("missing field `{}`", field.name), field.doc));
    }
}

fn check_limit(value: &Value, kind: Kind, pointer: &str, out: &mut Vec<Found>) {
    let counted = matches!(kind, Kind::Limit);
    let Some(members) = value.as_object() else {
        return check(value, if counted { Kind::Count } else { Kind::Amount }, pointer, out);
    };
    check_members(members, if counted { COUNTED } else { MEASURED }, pointer, out);
}

/// A limit's number.
pub fn limit(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.get("value").and_then(Value::as_f64))
}

/// Pointers of the members that are there and that nothing acts on yet.
pub fn not_enforced(document: &Value) -> Vec<String> {
    let members = document.as_object().into_iter().flat_map(Object::iter);
    let pending = |name: &str| ROOT.iter().any(|field| field.name == name && !field.enforced);
    members.filter(|(name, _)| pending(name)).map(|(name, _)| format!("/{name}")).collect()
}

/// `pointer/name`, escaped (RFC 6901).
pub fn join(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The JSON Schema (draft 2020-12) of the whole document.
pub fn json_schema() -> Value {
    let mut out = Object::new();
    out.push("$schema", Value::from("https://json-schema.org/draft/2020-12/schema"));
    out.push("title", Value::from("Writ policy (.aflock)"));
    let mut defs = Object::new();
    defs.push("policy", object_schema(ROOT));
    out.push("$ref", Value::from("#/$defs/policy"));
    out.push("$defs", Value::Object(defs));
    Value::Object(out)
}

fn object_schema(fields: &[Field]) -> Value {
    let mut properties = Object::new();
    for field in fields {
        let mut schema = Object::new();
        schema.push("description", Value::from(field.doc));
        let Value::Object(kind) = kind_schema(field.kind) else { continue };
        kind.iter().for_each(|(name, value)| schema.push(name, value.clone()));
        properties.push(field.name, Value::Object(schema));
    }
    let needed: Vec<Value> =
        fields.iter().filter(|field| field.required).map(|field| Value::from(field.name)).collect();
    let mut out = typed("object");
    out.push("properties", Value::Object(properties));
    if !needed.is_empty() {
        out.push("required", Value::Array(needed));
    }
    out.push("additionalProperties", Value::from(false));
    Value::Object(out)
}

fn kind_schema(kind: Kind) -> Value {
    let words = |words: &[&str]| Value::Array(words.iter().map(|&word| Value::from(word)).collect());
    let mut out;
    match kind {
        Kind::Text => out = typed("string"),
        Kind::Version => {
            out = Object::new();
            out.push("const", Value::from("1.0"));
        }
        Kind::Date => {
            out = typed("string");
            out.push("format", Value::from("date-time"));
        }
        Kind::Truth => out = typed("boolean"),
        Kind::Count => out = number("integer"),
        Kind::Amount => out = number("number"),
        Kind::Word(list) => {
            out = Object::new();
            out.push("enum", words(list));
        }
        Kind::List(item) => {
            out = typed("array");
            out.push("items", kind_schema(*item));
        }
        Kind::Object(fields) => return object_schema(fields),
        Kind::Map(item) => {
            out = typed("object");
            out.push("additionalProperties", kind_schema(*item));
        }
        Kind::Money | Kind::Limit => {
            let (plain, fields) =
                if matches!(kind, Kind::Limit) { (Kind::Count, COUNTED) } else { (Kind::Amount, MEASURED) };
            out = Object::new();
            out.push("oneOf", Value::Array(vec![kind_schema(plain), object_schema(fields)]));
        }
        Kind::PolicyOrPath => {
            let mut reference = Object::new();
            reference.push("$ref", Value::from("#/$defs/policy"));
            out = Object::new();
            out.push("oneOf", Value::Array(vec![Value::Object(typed("string")), Value::Object(reference)]));
        }
    }
    Value::Object(out)
}

fn typed(name: &str) -> Object {
    let mut out = Object::new();
    out.push("type", Value::from(name));
    out
}

fn number(name: &str) -> Object {
    let mut out = typed(name);
    out.push("minimum", Value::Number(0.0));
    out
}
