//! What a call would touch, in a form that outlives it: the ledger keeps facts, and verification judges them again.
//!
//! Facts hold tools, paths, hosts, program names and pointers of the rules that matched — never a command's text, a URL's
//! query or a file's content (R8). Invariant: facts that were written and read judge like
//! those that were written. Page: `spec/policy.md`.

mod document;
mod put_in;
mod resource;
mod uses;

pub(crate) use put_in::SecretFact;
pub(crate) use resource::ResourceFact;
pub use uses::{UsedCommand, UsedFile, Uses};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use writ_core::secret::{self, mask};
use writ_core::{Digest, Span, Subject, Timestamp, json};
use writ_shell::{Access, UnresolvedKind};

use crate::flow::Flow;
use crate::glob::split;
use crate::identity::Known;

/// What a call would touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    pub(crate) tool: String,
    /// The canonical name that rules may call it by, where that is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) known_as: Option<String>,
    /// Its input holds a shell line, so that rules about Bash are asked too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shell: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) texts: Vec<TextFact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<PathFact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<HostFact>,
    /// What its repository's remotes lead to, by name: for whoever approves the call now, not for the record (R8).
    #[serde(skip)]
    pub(crate) remotes: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unresolved: Vec<UnresolvedFact>,
    /// What `grants` objects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<ResourceFact>,
    /// The labels of what it takes in and lets go.
    #[serde(default, skip_serializing_if = "Flow::is_nothing")]
    pub(crate) flow: Flow,
    /// The type of the sub-agent that it gives a task, empty where it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starts: Option<String>,
    /// Why the input cannot be judged at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) malformed: Option<String>,
    /// The worst of what it would lose, where the policy asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loss: Option<Loss>,
    /// The infrastructure plans it would apply, where the policy asks for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) applies: Vec<Apply>,
    /// Why its verdict could not be attested, where the policy asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unattested: Option<String>,
    /// It holds a token of a known shape, where the policy asks for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) token: bool,
    /// What the kernel holds while it runs, so that doubt about it needs no question.
    #[serde(default, skip_serializing_if = "Held::is_nothing")]
    pub(crate) held: Held,
    /// Why it cannot be confined, where the policy asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unconfined: Option<String>,
    /// Who the agent is, where the policy asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<Known>,
    /// Its server defines it in another way than a human last accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) redefined: bool,
    /// Tools, as rules call them, that were called as often as they may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) exceeded: Vec<String>,
    /// Secrets that Writ puts into its request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) secrets: Vec<SecretFact>,
}

/// What the kernel holds around a call (R70, R80).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Files: what the lists refuse, and what protects the record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files: bool,
    /// Hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hosts: bool,
}

impl Held {
    /// Whether it is nothing at all.
    pub const fn is_nothing(&self) -> bool {
        !self.files && !self.hosts
    }
}

/// An infrastructure plan that is applied.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "document::Apply")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The worst finding's tier, 1 to 5.
    pub tier: u8,
    /// The rule or the action behind it.
    pub rule: String,
}

/// A command, a URL or a subagent's type: text that patterns match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TextFact {
    #[serde(deserialize_with = "document::text_subject")]
    pub subject: Subject,
    /// The program's base name, the host, the type.
    pub name: String,
    /// Where a program lies that is named by its path, as an `allow` rule names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Pointers of `deny` and `requireApproval` rules that match; `false` where they only might.
    #[serde(default, with = "document::hits", skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<(String, bool)>,
    /// Pointer of the `allow` rule that names it; `writ:builtin` where none is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// The command does what only a human may (R19).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
    /// It is only possible that it is run: it stands among what a program gets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub possible: bool,
    /// The text itself; lives only until the answer is given.
    #[serde(skip)]
    pub text: String,
}

/// A file or tree.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "document::Path<'static>")]
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
    /// There is no such file yet; said only where a rule is about changes of what is there.
    pub new: bool,
    pub kind: PathKind,
    pub span: Option<Span>,
}

impl PathFact {
    /// What rules are held against, in segments: the path as written, where that differs, and as resolved.
    pub fn spellings(&self) -> Vec<Vec<&str>> {
        let written = (self.written != self.resolved).then(|| split(&self.written));
        written.into_iter().chain([split(&self.resolved)]).collect()
    }
}

/// How a path became known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PathKind {
    /// It was named.
    #[default]
    Named,
    /// A shell glob that matches nothing now.
    Glob,
    /// A shell glob whose matches are facts of their own.
    ExpandedGlob,
    /// Found on disk, below a tree or by expanding a glob.
    Found,
    /// Of a tracked file, out of what git keeps of it: a kernel that holds the file does not hold that.
    Stored,
    /// The same, perhaps.
    PerhapsStored,
    /// Named in inline code: counts against deny rules only.
    Mentioned,
    /// A value in the input of a tool whose doings are not known: it counts against what forbids.
    Argument,
    /// A word inside a longer text of such an input, which may be prose: what forbids it asks.
    Text,
    /// A folder that files with names nobody knows are written into.
    Into,
    /// A file that is not there yet, made as a copy of one that the list of denied files takes back.
    Copied,
    /// Named, but touched only if a `cd` fails: `allow` lists need not name it.
    Unlikely,
    /// Given to a program that may do anything with it: certainly read where that is denied, perhaps written.
    Operand,
    /// Perhaps touched: a piece of a text, or what a commit that cannot be told may change.
    Maybe,
    /// Not fully known, and not made by the line: a pattern of what it may be.
    Open,
    /// What the line makes itself: a pattern of what it may be.
    Any,
    /// Found on disk, and perhaps meant.
    Perhaps,
    /// Where a listing begins of which no entry is ruled.
    Listing,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "document::Host<'static>")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnresolvedFact {
    pub kind: String,
    /// The construct; lives only until the answer is given.
    #[serde(skip)]
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

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

    /// Says what the kernel holds while the call runs.
    #[must_use]
    pub const fn held(mut self, held: Held) -> Self {
        self.held = held;
        self
    }

    /// Says that a human starts it: what only humans may run is theirs.
    #[must_use]
    pub fn by_a_human(mut self) -> Self {
        self.texts.iter_mut().for_each(|text| text.reserved = false);
        // What runs as a whole asks for its own calls.
        self.flow = Flow::default();
        self
    }

    /// What the tool is called: its own name, and the canonical one.
    pub fn called(&self) -> [&str; 2] {
        self.names()
    }

    /// Where symlinks lead, as the survey saw it: paths as written and with symlinks followed, where the two differ.
    pub fn leads(&self) -> impl Iterator<Item = (&str, &str)> {
        let paths = self.paths.iter().map(|path| (path.written.as_str(), path.resolved.as_str()));
        paths.filter(|(written, resolved)| written != resolved)
    }

    /// The remotes that it contacts by name, and all that each leads to. What was read from a record has none.
    pub fn remotes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.remotes.iter().map(|(name, urls)| (name.as_str(), urls.as_str()))
    }

    /// The tools that were called as often as they may be, as rules call them.
    pub fn exceeded(&self) -> &[String] {
        &self.exceeded
    }

    /// Says which tools were called as often as they may be, as rules call them.
    #[must_use]
    pub fn exceeding(mut self, tools: Vec<String>) -> Self {
        self.exceeded = tools;
        self
    }

    /// Says who the agent is.
    #[must_use]
    pub fn of_agent(mut self, known: Known) -> Self {
        self.identity = Some(known);
        self
    }

    /// Who the agent is, where the policy asks for that.
    pub const fn agent(&self) -> Option<&Known> {
        self.identity.as_ref()
    }

    /// Says why the call cannot be confined.
    #[must_use]
    pub fn unconfined(mut self, why: String) -> Self {
        self.unconfined = Some(why);
        self
    }

    /// Says whether its server defines it in another way than a human last accepted.
    #[must_use]
    pub const fn redefined(mut self, redefined: bool) -> Self {
        self.redefined = redefined;
        self
    }

    /// Whether it is a call of the client's shell, by whatever name.
    pub fn is_shell_call(&self) -> bool {
        self.names().contains(&"Bash")
    }

    /// What the kernel was to hold while the call ran.
    pub const fn is_held(&self) -> Held {
        self.held
    }

    /// The labels of what it takes in and lets go.
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Adds labels that policies give to it which have no other say in it.
    #[must_use]
    pub fn labelled(mut self, flow: &Flow) -> Self {
        self.flow = Flow::all([&self.flow, flow]);
        self
    }

    /// The type of the sub-agent that it gives a task, empty where it names none.
    pub fn starts(&self) -> Option<&str> {
        self.starts.as_deref()
    }

    /// Whether the tool's server defines it in another way than was accepted.
    pub const fn is_redefined(&self) -> bool {
        self.redefined
    }

    /// Whether it was said why it cannot be confined.
    pub const fn is_unconfined(&self) -> bool {
        self.unconfined.is_some()
    }

    /// Adds the plans that the call would apply.
    #[must_use]
    pub fn with_applies(mut self, applies: Vec<Apply>) -> Self {
        self.applies = applies;
        for plan in self.applies.iter_mut().filter_map(|apply| apply.plan.as_mut()) {
            replace(plan, mask);
        }
        self
    }

    /// Adds that the verdict could not be attested.
    #[must_use]
    pub fn unattested(mut self, why: String) -> Self {
        self.unattested = Some(why);
        self
    }

    /// Adds what another shell than bash, which would run the line, reads in its own way.
    #[must_use]
    pub fn with_other_shell(mut self, what: &str, span: Span) -> Self {
        let (kind, what) = (OTHER_SHELL.to_owned(), what.to_owned());
        self.unresolved.push(UnresolvedFact { kind, what, span: Some(span) });
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

    /// The names that rules may call its tool by.
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.tool, self.known_as.as_deref().unwrap_or(&self.tool)]
    }

    /// Whether it is a call of the kind whose consequences are evaluated, and reads as one.
    pub fn is_evaluated(&self) -> bool {
        let [_, name] = self.names();
        self.malformed.is_none() && (name == "Bash" || name.starts_with("mcp__"))
    }

    /// The plans it would apply.
    pub fn applies(&self) -> &[Apply] {
        &self.applies
    }

    /// Takes tokens out of names, hosts and paths (R8). What is judged is what is recorded.
    pub(crate) fn mask(&mut self) {
        let paths = self.paths.iter_mut().flat_map(|fact| [&mut fact.written, &mut fact.resolved]);
        let texts = self
            .texts
            .iter_mut()
            .flat_map(|fact| [Some(&mut fact.name), Some(&mut fact.text), fact.place.as_mut()])
            .flatten();
        for text in paths.chain(texts).chain(&mut self.malformed).chain(&mut self.starts) {
            replace(text, mask);
        }
        for name in [&mut self.tool].into_iter().chain(&mut self.known_as) {
            // No rule could tell any more what it is.
            if replace(name, secret::mask_id) {
                self.malformed = Some("the name of its tool holds a token, or is longer than any".to_owned());
            }
        }
        let hosts = self.hosts.iter_mut().filter_map(|fact| match &mut fact.host {
            Host::Name(name) => Some(name),
            Host::Ambiguous | Host::Unknown => None,
        });
        let named = self.texts.iter_mut().filter(|fact| fact.subject == Subject::Host).map(|fact| &mut fact.name);
        for name in hosts.chain(named) {
            replace(name, secret::mask_host);
        }
    }
}

/// Whether there was something to mask.
fn replace(text: &mut String, mask: impl Fn(&str) -> Cow<'_, str>) -> bool {
    match mask(text) {
        Cow::Owned(masked) => *text = masked,
        Cow::Borrowed(_) => return false,
    }
    true
}

/// `list`, `exec`, `read` or `write`.
pub(crate) fn access_word(access: Access) -> &'static str {
    json::word(&access)
}

/// The kind of a line too large to be followed.
pub(crate) const LIMIT: &str = "limit";

/// A tree or glob too large to look for denied files in.
pub(crate) const SEARCH: &str = "search";
/// A host that is refused, in a text that may be prose.
pub(crate) const TEXT_HOST: &str = "text-host";
/// A line that another shell than bash would read.
pub(crate) const OTHER_SHELL: &str = "other-shell";
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
