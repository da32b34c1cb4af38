//! Facts as the ledger keeps them. Shape: `spec/policy.md`.

use writ_core::json::{Object, Value};
use writ_core::{Digest, Span, Subject, Timestamp};

use super::{
    ACCESS, Apply, Facts, FactsError, Host, HostFact, Loss, PathFact, PathKind, PlanVerdict, TextFact, UnresolvedFact,
    access_word,
};

impl Facts {
    /// The facts as JSON. Shape: `spec/policy.md`.
    pub fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("tool", Value::from(self.tool.as_str()));
        flag(&mut out, "shell", self.shell);
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
        flag(&mut out, "token", self.token);
        Value::Object(out)
    }

    /// Reads what [`Facts::to_json`] wrote.
    pub fn from_json(value: &Value) -> Result<Self, FactsError> {
        let items = |name| value.get(name).and_then(Value::as_array).unwrap_or_default();
        Ok(Self {
            tool: text(value, "tool").ok_or(FactsError("tool"))?,
            shell: is(value, "shell"),
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
            token: is(value, "token"),
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
        flag(&mut out, "possible", self.possible);
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
            possible: is(value, "possible"),
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
        flag(&mut out, "new", self.new);
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
            new: is(value, "new"),
            kind: PathKind::parse(text(value, "kind").as_deref())?,
            span: span(value),
        })
    }
}

impl PathKind {
    const ALL: [Self; 16] = [
        Self::Named,
        Self::Glob,
        Self::ExpandedGlob,
        Self::Found,
        Self::Mentioned,
        Self::Argument,
        Self::Text,
        Self::Into,
        Self::Copied,
        Self::Unlikely,
        Self::Operand,
        Self::Maybe,
        Self::Open,
        Self::Any,
        Self::Perhaps,
        Self::Listing,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Glob => "glob",
            Self::ExpandedGlob => "expanded-glob",
            Self::Found => "found",
            Self::Mentioned => "mentioned",
            Self::Argument => "argument",
            Self::Text => "text",
            Self::Into => "into",
            Self::Copied => "copied",
            Self::Unlikely => "unlikely",
            Self::Operand => "operand",
            Self::Maybe => "maybe",
            Self::Open => "open",
            Self::Any => "any",
            Self::Perhaps => "perhaps",
            Self::Listing => "listing",
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
