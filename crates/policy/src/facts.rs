//! What a call would touch, in a form that outlives it: the ledger keeps facts, and verification judges them again.
//!
//! Facts hold tools, paths, hosts, program names and pointers of the rules that matched — never a command's text, a URL's
//! query or a file's content (R8). Invariant: `Facts::from_json(facts.to_json())` judges like `facts`. Page: `spec/policy.md`.

use std::borrow::Cow;

use writ_core::json::{Object, Value};
use writ_core::secret::mask;
use writ_core::{Digest, Span, Subject, Timestamp};
use writ_shell::{Access, UnresolvedKind};

/// What a call would touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub(crate) tool: String,
    pub(crate) texts: Vec<TextFact>,
    pub(crate) paths: Vec<PathFact>,
    pub(crate) hosts: Vec<HostFact>,
    pub(crate) unresolved: Vec<UnresolvedFact>,
    /// Why the input cannot be judged at all.
    pub(crate) malformed: Option<String>,
    /// The worst of what it would lose, where the policy asks for that.
    pub(crate) loss: Option<Loss>,
    /// The infrastructure plans it would apply, where the policy asks for that.
    pub(crate) applies: Vec<Apply>,
    /// Why its verdict could not be attested, where the policy asks for that.
    pub(crate) unattested: Option<String>,
}

/// An infrastructure plan that is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// The plan file, absolute; `None` where the command names none, or none that is known.
    pub plan: Option<String>,
    /// Where the command stands in the line.
    pub span: Span,
    /// What else the line does that may change the plan file first.
    pub company: Option<String>,
    /// The verdict that speaks for exactly this file.
    pub verdict: Option<PlanVerdict>,
}

/// An attested verdict on a plan file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanVerdict {
    /// The plan file's digest.
    pub plan: Digest,
    /// The attestation's.
    pub attestation: Digest,
    /// The registry's that it was verified with.
    pub registry: Digest,
    /// The worst finding's tier, 1 to 5.
    pub tier: u8,
    /// When it ends.
    pub until: Timestamp,
}

/// What an evaluation found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The worst finding's tier, 1 to 5.
    pub tier: u8,
    /// The rule or the action behind it.
    pub rule: String,
}

/// A command, a URL or a subagent's type: text that patterns match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextFact {
    pub subject: Subject,
    /// The program's base name, the host, the type.
    pub name: String,
    pub span: Option<Span>,
    /// Pointers of `deny` and `requireApproval` rules that match; `false` where they only might.
    pub hits: Vec<(String, bool)>,
    /// Pointer of the `allow` rule that names it; `writ:builtin` where none is needed.
    pub allowed: Option<String>,
    /// The command does what only a human may (R19).
    pub reserved: bool,
    /// The text itself; lives only until the answer is given.
    pub text: String,
}

/// A file or tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathFact {
    /// As written, absolute, folded as text.
    pub written: String,
    /// With symlinks followed.
    pub resolved: String,
    pub access: Access,
    /// Everything below it too.
    pub tree: bool,
    /// It is what the tool acts on, so that `Tool:pattern` rules see it.
    pub subject: bool,
    pub kind: PathKind,
    pub span: Option<Span>,
}

/// How a path became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathKind {
    /// It was named.
    Named,
    /// A shell glob that matches nothing now.
    Glob,
    /// A shell glob whose matches are facts of their own.
    ExpandedGlob,
    /// Found on disk, below a tree or by expanding a glob.
    Found,
    /// Named in inline code: counts against deny rules only.
    Mentioned,
    /// A text in the input of a tool whose doings are not known: it counts against self-protection alone.
    Argument,
    /// A folder that files with names nobody knows are written into.
    Into,
    /// Named, but touched only if a `cd` fails: `allow` lists need not name it.
    Unlikely,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostFact {
    pub host: Host,
    pub mentioned: bool,
    pub span: Option<Span>,
}

/// A host name, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Lower case, no final dot, Punycode.
    Name(String),
    /// Programs would read it differently, or it is no network URL.
    Ambiguous,
    /// It depends on something not known yet.
    Unknown,
}

/// Something that cannot be known before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnresolvedFact {
    pub kind: String,
    /// The construct; lives only until the answer is given.
    pub what: String,
    pub span: Option<Span>,
}

/// Facts that do not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` of the facts is not as it was written")]
pub struct FactsError(&'static str);

impl Facts {
    /// The tool the call was for.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Adds what an evaluation of the call found.
    #[must_use]
    pub fn with_loss(mut self, loss: Loss) -> Self {
        self.loss = Some(loss);
        self
    }

    /// Adds the plans that the call would apply.
    #[must_use]
    pub fn with_applies(mut self, applies: Vec<Apply>) -> Self {
        self.applies = applies;
        self
    }

    /// Adds that the verdict could not be attested.
    #[must_use]
    pub fn unattested(mut self, why: String) -> Self {
        self.unattested = Some(why);
        self
    }

    /// The worst of what it would lose, where the policy asked for that.
    pub const fn loss(&self) -> Option<&Loss> {
        self.loss.as_ref()
    }

    /// Whether its verdict could not be attested.
    pub const fn is_unattested(&self) -> bool {
        self.unattested.is_some()
    }

    /// Whether it is a call of the kind whose consequences are evaluated, and reads as one.
    pub fn is_evaluated(&self) -> bool {
        self.malformed.is_none() && (self.tool == "Bash" || self.tool.starts_with("mcp__"))
    }

    /// The plans it would apply.
    pub fn applies(&self) -> &[Apply] {
        &self.applies
    }

    /// Takes tokens out of names and paths (R8). What is judged is what is recorded.
    pub(crate) fn mask(&mut self) {
        let paths = self.paths.iter_mut().flat_map(|fact| [&mut fact.written, &mut fact.resolved]);
        for text in paths.chain(self.texts.iter_mut().flat_map(|fact| [&mut fact.name, &mut fact.text])) {
            if let Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
    }

    /// The facts as JSON. Shape: `spec/policy.md`.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("tool", Value::from(self.tool.as_str()));
        list(&mut out, "texts", &self.texts, TextFact::to_json);
        list(&mut out, "paths", &self.paths, PathFact::to_json);
        list(&mut out, "hosts", &self.hosts, HostFact::to_json);
        list(&mut out, "unresolved", &self.unresolved, |fact| {
            let mut out = Object::new();
            out.push("kind", Value::from(fact.kind.as_str()));
            push_span(&mut out, fact.span);
            out
        });
        if let Some(why) = &self.malformed {
            out.push("malformed", Value::from(why.as_str()));
        }
        if let Some(loss) = &self.loss {
            let mut found = Object::new();
            found.push("tier", Value::from(u64::from(loss.tier)));
            found.push("rule", Value::from(loss.rule.as_str()));
            out.push("loss", Value::Object(found));
        }
        list(&mut out, "applies", &self.applies, Apply::to_json);
        if let Some(why) = &self.unattested {
            out.push("unattested", Value::from(why.as_str()));
        }
        Value::Object(out)
    }

    /// Reads what [`Facts::to_json`] wrote.
    pub fn from_json(value: &Value) -> Result<Self, FactsError> {
        let items = |name| value.get(name).and_then(Value::as_array).unwrap_or_default();
        Ok(Self {
            tool: text(value, "tool").ok_or(FactsError("tool"))?,
            texts: items("texts").iter().map(TextFact::from_json).collect::<Option<_>>().ok_or(FactsError("texts"))?,
            paths: items("paths").iter().map(PathFact::from_json).collect::<Option<_>>().ok_or(FactsError("paths"))?,
            hosts: items("hosts").iter().map(HostFact::from_json).collect::<Option<_>>().ok_or(FactsError("hosts"))?,
            unresolved: items("unresolved")
                .iter()
                .map(|item| Some(UnresolvedFact { kind: text(item, "kind")?, what: String::new(), span: span(item) }))
                .collect::<Option<_>>()
                .ok_or(FactsError("unresolved"))?,
            malformed: text(value, "malformed"),
            loss: match value.get("loss") {
                None => None,
                Some(loss) => Some(Loss {
                    tier: loss
                        .get("tier")
                        .and_then(Value::as_u64)
                        .and_then(|tier| u8::try_from(tier).ok())
                        .ok_or(FactsError("loss"))?,
                    rule: text(loss, "rule").ok_or(FactsError("loss"))?,
                }),
            },
            applies: items("applies")
                .iter()
                .map(Apply::from_json)
                .collect::<Option<_>>()
                .ok_or(FactsError("applies"))?,
            unattested: text(value, "unattested"),
        })
    }
}

impl Apply {
    fn to_json(&self) -> Object {
        let mut out = Object::new();
        if let Some(plan) = &self.plan {
            out.push("plan", Value::from(plan.as_str()));
        }
        push_span(&mut out, Some(self.span));
        if let Some(company) = &self.company {
            out.push("company", Value::from(company.as_str()));
        }
        if let Some(verdict) = &self.verdict {
            out.push("digest", Value::from(verdict.plan.to_string()));
            out.push("attestation", Value::from(verdict.attestation.to_string()));
            out.push("registry", Value::from(verdict.registry.to_string()));
            out.push("tier", Value::from(u64::from(verdict.tier)));
            out.push("until", Value::from(verdict.until.to_string()));
        }
        out
    }

    fn from_json(value: &Value) -> Option<Self> {
        let digest = |name| Digest::parse(&text(value, name)?).ok();
        let verdict = match value.get("attestation") {
            None => None,
            Some(_) => Some(PlanVerdict {
                plan: digest("digest")?,
                attestation: digest("attestation")?,
                registry: digest("registry")?,
                tier: value.get("tier").and_then(Value::as_u64).and_then(|tier| u8::try_from(tier).ok())?,
                until: Timestamp::parse(&text(value, "until")?).ok()?,
            }),
        };
        Some(Self { plan: text(value, "plan"), span: span(value)?, company: text(value, "company"), verdict })
    }
}

impl TextFact {
    fn to_json(&self) -> Object {
        let mut out = Object::new();
        out.push("subject", Value::from(self.subject.as_str()));
        out.push("name", Value::from(self.name.as_str()));
        push_span(&mut out, self.span);
        let hit = |(pointer, sure): &(String, bool)| Value::from(format!("{}{pointer}", if *sure { "" } else { "?" }));
        if !self.hits.is_empty() {
            out.push("hits", Value::Array(self.hits.iter().map(hit).collect()));
        }
        if let Some(rule) = &self.allowed {
            out.push("allowed", Value::from(rule.as_str()));
        }
        flag(&mut out, "reserved", self.reserved);
        out
    }

    fn from_json(value: &Value) -> Option<Self> {
        let subject = match text(value, "subject")?.as_str() {
            "command" => Subject::Command,
            "host" => Subject::Host,
            "tool" => Subject::Tool,
            _ => return None,
        };
        let hit = |item: &Value| {
            let pointer = item.as_str()?;
            Some(
                pointer
                    .strip_prefix('?')
                    .map_or_else(|| (pointer.to_owned(), true), |pointer| (pointer.to_owned(), false)),
            )
        };
        let hits = value.get("hits").and_then(Value::as_array).unwrap_or_default();
        Some(Self {
            subject,
            name: text(value, "name")?,
            span: span(value),
            hits: hits.iter().map(hit).collect::<Option<_>>()?,
            allowed: text(value, "allowed"),
            reserved: is(value, "reserved"),
            text: String::new(),
        })
    }
}

impl PathFact {
    fn to_json(&self) -> Object {
        let mut out = Object::new();
        out.push("path", Value::from(self.resolved.as_str()));
        if self.written != self.resolved {
            out.push("written", Value::from(self.written.as_str()));
        }
        out.push("access", Value::from(access_word(self.access)));
        flag(&mut out, "tree", self.tree);
        flag(&mut out, "subject", self.subject);
        if self.kind != PathKind::Named {
            out.push("kind", Value::from(self.kind.as_str()));
        }
        push_span(&mut out, self.span);
        out
    }

    fn from_json(value: &Value) -> Option<Self> {
        let resolved = text(value, "path")?;
        Some(Self {
            written: text(value, "written").unwrap_or_else(|| resolved.clone()),
            resolved,
            access: ACCESS.iter().find(|(_, word)| text(value, "access").as_deref() == Some(*word))?.0,
            tree: is(value, "tree"),
            subject: is(value, "subject"),
            kind: PathKind::parse(text(value, "kind").as_deref())?,
            span: span(value),
        })
    }
}

impl PathKind {
    const ALL: [Self; 8] = [
        Self::Named,
        Self::Glob,
        Self::ExpandedGlob,
        Self::Found,
        Self::Mentioned,
        Self::Argument,
        Self::Into,
        Self::Unlikely,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Glob => "glob",
            Self::ExpandedGlob => "expanded-glob",
            Self::Found => "found",
            Self::Mentioned => "mentioned",
            Self::Argument => "argument",
            Self::Into => "into",
            Self::Unlikely => "unlikely",
        }
    }

    fn parse(word: Option<&str>) -> Option<Self> {
        let word = word.unwrap_or("named");
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl HostFact {
    fn to_json(&self) -> Object {
        let mut out = Object::new();
        match &self.host {
            Host::Name(name) => out.push("host", Value::from(name.as_str())),
            Host::Ambiguous => out.push("ambiguous", Value::from(true)),
            Host::Unknown => out.push("unknown", Value::from(true)),
        }
        flag(&mut out, "mentioned", self.mentioned);
        push_span(&mut out, self.span);
        out
    }

    fn from_json(value: &Value) -> Option<Self> {
        let host = match text(value, "host") {
            Some(name) => Host::Name(name),
            None if is(value, "ambiguous") => Host::Ambiguous,
            None if is(value, "unknown") => Host::Unknown,
            None => return None,
        };
        Some(Self { host, mentioned: is(value, "mentioned"), span: span(value) })
    }
}

const ACCESS: [(Access, &str); 4] =
    [(Access::List, "list"), (Access::Exec, "exec"), (Access::Read, "read"), (Access::Write, "write")];

/// `list`, `exec`, `read` or `write`.
pub(crate) fn access_word(access: Access) -> &'static str {
    ACCESS.iter().find(|(known, _)| *known == access).map_or("write", |(_, word)| word)
}

/// The kind of a line too large to be followed.
pub(crate) const LIMIT: &str = "limit";

/// A tree or glob too large to look for denied files in.
pub(crate) const SEARCH: &str = "search";
/// A line that is no shell program.
pub(crate) const SYNTAX: &str = "syntax";

/// A word for why something is unresolved.
pub(crate) const fn kind_word(kind: UnresolvedKind) -> &'static str {
    match kind {
        UnresolvedKind::Program => "program",
        UnresolvedKind::Code => "code",
        UnresolvedKind::Script => "script",
        UnresolvedKind::Environment => "environment",
        UnresolvedKind::Directory => "directory",
        UnresolvedKind::Limit => LIMIT,
    }
}

fn list<T>(out: &mut Object, name: &str, items: &[T], to_json: impl Fn(&T) -> Object) {
    if !items.is_empty() {
        out.push(name, Value::Array(items.iter().map(|item| Value::Object(to_json(item))).collect()));
    }
}

fn flag(out: &mut Object, name: &str, on: bool) {
    if on {
        out.push(name, Value::from(true));
    }
}

fn push_span(out: &mut Object, span: Option<Span>) {
    if let Some(span) = span {
        out.push("span", Value::Array(vec![Value::from(span.start), Value::from(span.end)]));
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn is(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn span(value: &Value) -> Option<Span> {
    let at = |index: usize| value.get("span")?.as_array()?.get(index)?.as_u64().and_then(|at| usize::try_from(at).ok());
    Some(Span { start: at(0)?, end: at(1)? })
}
