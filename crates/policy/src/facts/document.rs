//! Facts as the ledger keeps them, where that is not member by member what a judge reads. Shape: `spec/policy.md`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use writ_core::{Digest, Span, Subject, Timestamp};
use writ_shell::Access;

use super::{Apply as ApplyFact, Host as HostName, HostFact, PathFact, PathKind, PlanVerdict};

/// A plan that is applied, its verdict's members beside its own.
#[derive(Serialize, Deserialize)]
pub(super) struct Apply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    span: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attestation: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registry: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tier: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

impl TryFrom<Apply> for ApplyFact {
    type Error = &'static str;

    fn try_from(written: Apply) -> Result<Self, &'static str> {
        let whole = "a verdict has `digest`, `attestation`, `registry`, `tier` and `until`";
        let verdict = match written.attestation {
            None => None,
            Some(attestation) => Some(PlanVerdict {
                plan: written.digest.ok_or(whole)?,
                attestation,
                registry: written.registry.ok_or(whole)?,
                tier: written.tier.ok_or(whole)?,
                until: written.until.ok_or(whole)?,
            }),
        };
        Ok(Self { plan: written.plan, span: written.span, company: written.company, verdict })
    }
}

impl Serialize for ApplyFact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verdict = self.verdict.as_ref();
        let written = Apply {
            plan: self.plan.clone(),
            span: self.span,
            company: self.company.clone(),
            digest: verdict.map(|verdict| verdict.plan),
            attestation: verdict.map(|verdict| verdict.attestation),
            registry: verdict.map(|verdict| verdict.registry),
            tier: verdict.map(|verdict| verdict.tier),
            until: verdict.map(|verdict| verdict.until),
        };
        written.serialize(serializer)
    }
}

/// A path, which is written out twice only where a symlink leads elsewhere.
#[derive(Serialize, Deserialize)]
pub(super) struct Path<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<Cow<'a, str>>,
    access: Access,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tree: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    subject: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    new: bool,
    #[serde(default, skip_serializing_if = "is_named")]
    kind: PathKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
fn is_named(kind: &PathKind) -> bool {
    *kind == PathKind::Named
}

impl From<Path<'_>> for PathFact {
    fn from(written: Path<'_>) -> Self {
        let Path { path, written, access, tree, subject, new, kind, span } = written;
        let resolved = path.into_owned();
        let written = written.map_or_else(|| resolved.clone(), Cow::into_owned);
        Self { written, resolved, access, tree, subject, new, kind, span }
    }
}

impl Serialize for PathFact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Path {
            path: Cow::Borrowed(&self.resolved),
            written: (self.written != self.resolved).then_some(Cow::Borrowed(&self.written)),
            access: self.access,
            tree: self.tree,
            subject: self.subject,
            new: self.new,
            kind: self.kind,
            span: self.span,
        };
        written.serialize(serializer)
    }
}

/// A host: its name, or why there is none.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Host<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ambiguous: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    mentioned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<Span>,
}

impl TryFrom<Host<'_>> for HostFact {
    type Error = &'static str;

    fn try_from(written: Host<'_>) -> Result<Self, &'static str> {
        let Host { host, ambiguous, unknown, mentioned, span } = written;
        let host = match host {
            Some(name) => HostName::Name(name.into_owned()),
            None if ambiguous => HostName::Ambiguous,
            None if unknown => HostName::Unknown,
            None => return Err("a host has `host`, `ambiguous` or `unknown`"),
        };
        Ok(Self { host, mentioned, span })
    }
}

impl Serialize for HostFact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Host {
            host: if let HostName::Name(name) = &self.host { Some(Cow::Borrowed(name)) } else { None },
            ambiguous: self.host == HostName::Ambiguous,
            unknown: self.host == HostName::Unknown,
            mentioned: self.mentioned,
            span: self.span,
        };
        written.serialize(serializer)
    }
}

/// What a text can be.
pub(super) fn text_subject<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Subject, D::Error> {
    match Subject::deserialize(deserializer)? {
        subject @ (Subject::Command | Subject::Host | Subject::Tool) => Ok(subject),
        Subject::Path | Subject::Unresolved | Subject::Policy => {
            Err(de::Error::custom("expected `command`, `host` or `tool`"))
        }
    }
}

/// Pointers of rules; `?` before one that only might match.
pub(super) mod hits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(hits: &[(String, bool)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(hits.iter().map(|(pointer, sure)| format!("{}{pointer}", if *sure { "" } else { "?" })))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, bool)>, D::Error> {
        let hit = |written: String| match written.strip_prefix('?') {
            Some(pointer) => (pointer.to_owned(), false),
            None => (written, true),
        };
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(hit).collect())
    }
}
