//! A policy: parsed, checked and compiled in one step.

use std::sync::Arc;

use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Custody, Digest, OWN_TOOLS, Timestamp, Verdict};

use crate::also::Also;
use crate::domains::Domains;
use crate::enforce::{Confine, Enforce};
use crate::error::{Found, PolicyError, did_you_mean};
use crate::flow::DataFlow;
use crate::grants::{GrantRule, Grants, WebGrants};
use crate::host_rule::HostRule;
use crate::identity::Identity;
use crate::limits::Limit;
use crate::members::{Claims, Consequences};
use crate::rules::{OTHER_TOOLS, PATH_TOOLS, PathRule, Reading, TEXT_TOOLS, ToolPattern, ToolRule, no_place};
use crate::sandbox::{Sandbox, Secrets};
use crate::schema::{self, Kind, join};
use crate::scope::Scope;
use crate::semantics;
use crate::unenforced;

/// A checked policy. There is no other way to get one than [`Policy::parse`].
#[derive(Clone, Debug)]
pub struct Policy {
    digest: Digest,
    name: String,
    pub(crate) expires: Option<(Timestamp, String)>,
    pub(crate) tools: Tools,
    pub(crate) files: Files,
    pub(crate) domains: Domains,
    claims: Claims,
    consequences: Consequences,
    pub(crate) tokens: Option<Verdict>,
    limits: Vec<Limit>,
    identity: Identity,
    enforce: Enforce,
    custody: Custody,
    confine: Option<Confine>,
    sandbox: Sandbox,
    pub(crate) grants: Grants,
    pub(crate) flow: DataFlow,
    /// Rules in another language.
    pub(crate) also: Option<Arc<dyn Also>>,
    document: Value,
    warnings: Vec<String>,
    /// Rules that forbid and can match nothing.
    matchless: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    pub allow: Option<Vec<ToolRule>>,
    pub deny: Vec<ToolRule>,
    pub approval: Vec<ToolRule>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub allow: Option<Vec<PathRule>>,
    pub deny: Vec<PathRule>,
    pub read_only: Vec<PathRule>,
    /// What needs a human's yes: `tools.requireApproval` alone says so.
    pub approval: Vec<PathRule>,
    /// The folder that relative patterns hang off.
    pub root: String,
}

/// Signs of patterns, which stand for themselves in a path.
const GLOB_SIGNS: &str = "*?[]{},!\\";

impl Files {
    /// Takes over what `Read:path`, `Write:path` and `Edit:path` among `tools` say of other tools and of shell lines.
    fn with_tools(mut self, tools: &Tools) -> Self {
        let scoped = |rules: &[ToolRule]| -> Vec<PathRule> {
            let scoped = rules.iter().filter_map(|rule| match (&rule.subject, Scope::of_tool(&rule.tool)) {
                (Some(ToolPattern::Path(path)), Some(scope)) => Some(path.scoped(scope)),
                _ => None,
            });
            scoped.collect()
        };
        let (reads, writes): (Vec<_>, Vec<_>) =
            scoped(&tools.deny).into_iter().partition(|rule| rule.scope == Scope::Reads);
        self.deny.extend(reads);
        self.read_only.extend(writes);
        self.approval = scoped(&tools.approval);
        self
    }

    /// Denies the files that values of secrets come from: the client's own tools read them outside of any sandbox.
    fn without_sources(mut self, secrets: &Secrets, root: &str) -> Self {
        for (pointer, file) in secrets.files() {
            let path = if file.starts_with(['/', '~']) { file.to_owned() } else { format!("{root}/{file}") };
            let sign = |c: char| [GLOB_SIGNS.contains(c).then_some('\\'), Some(c)].into_iter().flatten();
            let path: String = path.chars().flat_map(sign).collect();
            self.deny.extend(PathRule::parse(pointer, &path, root, Reading::Wide));
        }
        self
    }

    pub const fn any(&self) -> bool {
        self.allow.is_some() || !self.deny.is_empty() || !self.read_only.is_empty()
    }
}

impl Policy {
    /// What data may not flow where.
    pub const fn flow(&self) -> &DataFlow {
        &self.flow
    }

    /// Which hosts may be reached.
    pub const fn domains(&self) -> &Domains {
        &self.domains
    }

    /// Parses and checks a policy document. Relative patterns hang off `root`, an absolute path.
    pub fn parse(bytes: &[u8], root: &str) -> Result<Self, PolicyError> {
        Self::parse_as(bytes, root, false)
    }

    /// Reads one that was made of something else, whose tools are called what they are called: a name like a client's tool is no slip.
    pub fn parse_made(bytes: &[u8], root: &str) -> Result<Self, PolicyError> {
        Self::parse_as(bytes, root, true)
    }

    fn parse_as(bytes: &[u8], root: &str, made: bool) -> Result<Self, PolicyError> {
        let text = String::from_utf8_lossy(bytes);
        let document = json::parse_with(bytes, Limits::OURS).map_err(|error| PolicyError::json(&text, &error))?;
        let mut found = Vec::new();
        schema::check(&document, Kind::Object(schema::ROOT), "", &mut found);
        semantics::check(&document, "", &mut found);
        let base = String::new();
        let mut reader = Reader { root, base, made, found, warnings: Vec::new(), matchless: Vec::new() };
        let (tools, files, domains) = reader.rules(&document);
        let consequences = Consequences::read(&document, &mut reader.found);
        let sandbox = Sandbox::read(&document, &domains, &mut reader.found);
        let grants = Grants::read(&document, root);
        let flow = DataFlow::read(&document, root, &mut reader.found);
        let mut files = files.without_sources(&sandbox.secrets, root);
        files.deny.extend(grants.denied_files().cloned());
        if !reader.found.is_empty() {
            return Err(PolicyError::from_found(&text, reader.found));
        }
        let member = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let enforce = Enforce::read(&document);
        let mut claims = Claims::read(&document);
        claims.enforce &= enforce == Enforce::Decide;
        let tokens = match document.get("tokens").and_then(Value::as_str) {
            Some("ask") => Some(Verdict::Ask),
            Some("deny") => Some(Verdict::Deny),
            _ => None,
        };
        let expires = member("expires").and_then(|text| Some((Timestamp::parse(&text).ok()?, text)));
        Ok(Self {
            digest: Digest::of(bytes),
            name: member("name").unwrap_or_default(),
            expires,
            tools,
            files,
            domains,
            claims,
            consequences,
            tokens,
            limits: Limit::read_all(&document),
            identity: Identity::read(&document),
            enforce,
            custody: member("custody").and_then(|word| Custody::parse(&word)).unwrap_or_default(),
            confine: Confine::read(&document),
            sandbox,
            grants,
            warnings: reader.warnings.into_iter().chain(flow.unlabelled()).collect(),
            flow,
            also: None,
            matchless: reader.matchless,
            document,
        })
    }

    /// A policy that was made from another document, whose digest it has, with the rules of that which its own language cannot say.
    #[must_use]
    pub fn made_from(mut self, source: &[u8], also: Arc<dyn Also>) -> Self {
        self.digest = Digest::of(source);
        self.also = Some(also);
        self
    }

    /// SHA-256 of the bytes it was parsed from (R10).
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which losses ask or deny.
    pub const fn consequences(&self) -> Consequences {
        self.consequences
    }

    /// What a session may use.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// Who an agent has to be.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The keys that a human's yes must be signed with one of; `None` where any known key will do.
    pub fn approval_keys(&self) -> Option<Vec<Digest>> {
        let keys = self.document.get("approvals")?.get("keys")?.as_array()?;
        let hex = |id: &Value| Some(id.as_str()?.trim_start_matches("sha256:").to_ascii_lowercase());
        Some(keys.iter().filter_map(|id| Digest::parse(&format!("sha256:{}", hex(id)?)).ok()).collect())
    }

    /// What an agent's DONE is worth.
    pub const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The document as it was read.
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// What becomes of its decisions.
    pub const fn enforce(&self) -> Enforce {
        self.enforce
    }

    /// What it wants of the kernel; `None` where reading command lines will do.
    pub const fn confine(&self) -> Option<Confine> {
        self.confine
    }

    /// Whether it gives labels to data.
    pub const fn has_flow(&self) -> bool {
        self.flow.any()
    }

    /// What it says of sandboxes beyond files and hosts.
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The text of the rule at a pointer: an entry of a list as it stands (`Bash:git push --force*`), a member with its name
    /// (`ask: 3`).
    pub fn rule_text(&self, pointer: &str) -> Option<String> {
        let (mut at, mut named) = (&self.document, None);
        for name in pointer.strip_prefix('/')?.split('/') {
            (at, named) = match at.as_array() {
                Some(items) => (items.get(name.parse::<usize>().ok()?)?, None),
                None => (at.get(&name.replace("~1", "/").replace("~0", "~"))?, Some(name)),
            };
        }
        let text = at.as_str().map(str::to_owned).or_else(|| Some(at.as_u64()?.to_string()))?;
        Some(named.map_or_else(|| text.clone(), |name| format!("{name}: {text}")))
    }

    /// What has to keep the key that signs the record, at least.
    pub const fn custody(&self) -> Custody {
        self.custody
    }

    /// What it grants of what has a URL, for what holds a program while it runs.
    pub fn web_grants(&self) -> WebGrants {
        self.grants.web()
    }

    /// Whether it labels what calls take in and let go.
    pub const fn labels_data(&self) -> bool {
        self.flow.any()
    }

    /// The variables that `grants.secrets` denies.
    pub fn refused_variables(&self) -> Vec<GrantRule> {
        self.grants.refused_variables()
    }

    /// When it expires, and the date as it was written.
    pub fn expires(&self) -> Option<(Timestamp, &str)> {
        self.expires.as_ref().map(|(moment, text)| (*moment, text.as_str()))
    }

    /// Whether the files that it names are there, and are what they have to be; `text` is the document it was parsed from,
    /// `read` gives a file's bytes.
    pub fn check_files(&self, text: &[u8], read: impl Fn(&str) -> Option<Vec<u8>>) -> Result<(), PolicyError> {
        self.check_files_by(text, read, Self::parse)
    }

    /// The same, where `parse` reads a policy of any language, with the folder that it hangs off.
    pub fn check_files_by(
        &self,
        text: &[u8],
        read: impl Fn(&str) -> Option<Vec<u8>>,
        parse: impl Fn(&[u8], &str) -> Result<Self, PolicyError>,
    ) -> Result<(), PolicyError> {
        let parse = |bytes: &[u8]| parse(bytes, &self.files.root).map(drop);
        let found = semantics::check_files(&self.document, text, read, parse);
        if found.is_empty() { Ok(()) } else { Err(PolicyError::from_found(&String::from_utf8_lossy(text), found)) }
    }

    /// Pointers of what stands in this document and nothing acts on: fields, and rules that can match nothing.
    pub fn not_enforced(&self) -> Vec<String> {
        let mut out = unenforced::members(&self.document);
        out.extend_from_slice(&self.matchless);
        out.extend_from_slice(&self.grants.matchless);
        out.extend(self.also.iter().flat_map(|also| also.not_enforced()));
        out
    }

    /// What is valid and still looks like a mistake.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names of tools that rules can be about.
    pub fn tools() -> impl Iterator<Item = &'static str> {
        PATH_TOOLS.iter().chain(&TEXT_TOOLS).chain(&OTHER_TOOLS).chain(&OWN_TOOLS).copied()
    }

    /// Whether a list may name a tool: what is nearly the name of a known one is taken for a slip.
    pub fn may_name(tool: &str) -> bool {
        tool.contains('*')
            || tool.starts_with("mcp__")
            || Self::tools().any(|known| known == tool)
            || did_you_mean(tool, Self::tools()).is_none()
    }

    /// The JSON Schema for editors, made from the table that parsing uses.
    pub fn schema() -> Value {
        schema::json_schema()
    }
}

struct Reader<'a> {
    root: &'a str,
    /// Pointer of the policy that is read: empty, or that of a sublayout's own.
    base: String,
    /// Whether it was made of something else, with names of its own.
    made: bool,
    found: Vec<Found>,
    warnings: Vec<String>,
    matchless: Vec<String>,
}

impl Reader<'_> {
    fn rules(&mut self, document: &Value) -> (Tools, Files, Domains) {
        let mut tools = self.tools(document);
        // Tools that must not be there are tools that are denied.
        for (pointer, text) in self.texts(document, "identity", "deniedTools").unwrap_or_default() {
            if !text.trim().is_empty() {
                tools.deny.extend(self.tool(pointer, &text, Reading::Wide));
            }
        }
        let files = self.files(document).with_tools(&tools);
        let rules = (tools, files, self.domains(document));
        for (pointer, text) in self.texts(document, "identity", "requiredTools").unwrap_or_default() {
            if !text.trim().is_empty() {
                self.tool(pointer, &text, Reading::Narrow);
            }
        }
        self.functionaries(document.get("functionaries"), "/functionaries");
        self.sublayouts(document);
        rules
    }

    /// The texts of a list with their pointers; `None` when there is no such list.
    fn texts(&self, document: &Value, object: &str, list: &str) -> Option<Vec<(String, String)>> {
        let items = document.get(object)?.get(list)?.as_array()?;
        let pointer = |at| format!("{}/{object}/{list}/{at}", self.base);
        Some(items.iter().enumerate().filter_map(|(at, item)| Some((pointer(at), item.as_str()?.to_owned()))).collect())
    }

    fn tools(&mut self, document: &Value) -> Tools {
        let mut list = |name, reading| {
            let texts = self.texts(document, "tools", name)?;
            Some(texts.into_iter().filter_map(|(pointer, text)| self.tool(pointer, &text, reading)).collect::<Vec<_>>())
        };
        Tools {
            allow: list("allow", Reading::Narrow),
            deny: list("deny", Reading::Wide).unwrap_or_default(),
            approval: list("requireApproval", Reading::Wide).unwrap_or_default(),
        }
    }

    fn tool(&mut self, pointer: String, text: &str, reading: Reading) -> Option<ToolRule> {
        let rule = match ToolRule::parse(pointer.clone(), text, self.root, reading) {
            Ok(rule) => rule,
            Err(error) => {
                let help = "write `Tool` or `Tool:pattern`: `Bash:rm *`, `Read:docs/**`";
                self.found.push(Found::value(&pointer, format!("bad entry `{text}`: {error}"), help).rule("bad-tool"));
                return None;
            }
        };
        let open = rule.tool.contains('*') || rule.tool.starts_with("mcp__");
        if !open && !Policy::tools().any(|known| known == rule.tool) {
            if let Some(near) = did_you_mean(&rule.tool, Policy::tools()).filter(|_| !self.made) {
                let help = format!("did you mean `{near}`?");
                self.found
                    .push(Found::value(&pointer, format!("unknown tool `{}`", rule.tool), help).rule("unknown-tool"));
                return None;
            }
            self.warnings.push(format!("{pointer}: `{}` is no tool known here", rule.tool));
        }
        if rule.has_no_text() {
            self.never(&pointer, &rule.tool, reading, "has nothing that a pattern could match");
        } else if rule.names_no_tool() {
            self.never(&pointer, &rule.tool, reading, "names no tool: write `mcp__server` or `mcp__server__tool`");
        } else if rule.is_of_no_program() {
            self.never(&pointer, &rule.tool, reading, "takes `:` for a letter: write `Bash:rm *`");
        } else if PATH_TOOLS.contains(&rule.tool.as_str())
            && let Some((_, pattern)) = text.split_once(':')
        {
            self.placeless(&pointer, pattern, reading);
        }
        Some(rule)
    }

    /// A rule that never applies. A list of what is allowed that holds one allows the less.
    fn never(&mut self, pointer: &str, what: &str, reading: Reading, why: &str) {
        self.matchless.extend((reading == Reading::Wide && self.base.is_empty()).then(|| pointer.to_owned()));
        self.warnings.push(format!("{pointer}: `{what}` {why}; the rule never applies"));
    }

    /// A pattern that no path has. One that takes back takes nothing back, so that the rule before it holds the more.
    fn placeless(&mut self, pointer: &str, text: &str, reading: Reading) {
        let reading = if text.starts_with('!') { Reading::Narrow } else { reading };
        if let Some(why) = no_place(text).filter(|_| !self.made) {
            self.never(pointer, text, reading, why);
        }
    }

    fn files(&mut self, document: &Value) -> Files {
        let mut list = |name, reading| {
            let texts = self.texts(document, "files", name)?;
            Some(texts.into_iter().filter_map(|(pointer, text)| self.path(pointer, &text, reading)).collect::<Vec<_>>())
        };
        Files {
            allow: list("allow", Reading::Narrow),
            deny: list("deny", Reading::Wide).unwrap_or_default(),
            read_only: list("readOnly", Reading::Wide).unwrap_or_default(),
            approval: Vec::new(),
            root: self.root.to_owned(),
        }
    }

    fn path(&mut self, pointer: String, text: &str, reading: Reading) -> Option<PathRule> {
        self.placeless(&pointer, text, reading);
        match PathRule::parse(pointer.clone(), text, self.root, reading) {
            Ok(rule) => Some(rule),
            Err(error) => {
                self.found.push(
                    Found::value(&pointer, format!("bad glob `{text}`: {error}"), semantics::GLOB_HELP)
                        .rule("bad-glob"),
                );
                None
            }
        }
    }

    fn domains(&mut self, document: &Value) -> Domains {
        let mut list = |name| {
            let texts = self.texts(document, "domains", name)?;
            let rules = texts.into_iter().filter_map(|(pointer, text)| {
                let rule = HostRule::parse(pointer.clone(), &text);
                if rule.is_none() {
                    let help = "a host name, `*.host`, `host.*` or `*`, without scheme, port or path";
                    self.found
                        .push(Found::value(&pointer, format!("bad domain pattern `{text}`"), help).rule("bad-domain"));
                }
                rule
            });
            Some(rules.collect::<Vec<_>>())
        };
        Domains { allow: list("allow"), deny: list("deny").unwrap_or_default() }
    }

    /// What each type of signer is known by (specification, "functionaries").
    fn functionaries(&mut self, list: Option<&Value>, place: &str) {
        for (at, one) in list.and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
            let needed: &[&str] = match one.get("type").and_then(Value::as_str) {
                Some("keyless" | "x509") => &["issuer", "subject"],
                Some("publickey") => &["publickeyid"],
                _ => &[],
            };
            for name in needed.iter().filter(|name| one.get(name).is_none()) {
                let pointer = format!("{}{place}/{at}", self.base);
                let help = "this type is known by it";
                self.found.push(Found::value(&pointer, format!("missing field `{name}`"), help).rule("missing-field"));
            }
        }
    }

    fn sublayouts(&mut self, document: &Value) {
        for (at, child) in document.get("sublayouts").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
            let place = format!("/sublayouts/{at}");
            self.functionaries(child.get("functionaries"), &format!("{place}/functionaries"));
            self.limits(document.get("limits"), child.get("limits"), &format!("{place}/limits"));
            if let Some(text) = child.get("policy").and_then(Value::as_str).and_then(semantics::inline) {
                self.written_out(document, text, &format!("{place}/policy"));
            }
            let Some(inline) = child.get("policy").filter(|policy| policy.as_object().is_some()) else { continue };
            self.limits(document.get("limits"), inline.get("limits"), &format!("{place}/policy/limits"));
            let base = format!("{}{place}/policy", self.base);
            let parent = std::mem::replace(&mut self.base, base);
            self.rules(inline);
            self.base = parent;
        }
    }

    /// A policy that stands in a text: its problems have one place, the text's.
    fn written_out(&mut self, parent: &Value, text: &str, place: &str) {
        let pointer = format!("{}{place}", self.base);
        match Self::parsed(text, self.root) {
            Ok(child) => {
                let before = self.found.len();
                self.limits(parent.get("limits"), child.get("limits"), place);
                self.found.iter_mut().skip(before).for_each(|found| found.pointer.clone_from(&pointer));
            }
            Err(error) => self.found.extend(error.problems().iter().map(|problem| {
                let message = format!("{}:{}: {}", problem.line, problem.column, problem.message);
                Found::value(&pointer, message, problem.help.clone()).rule(problem.rule)
            })),
        }
    }

    fn parsed(text: &str, root: &str) -> Result<Value, PolicyError> {
        Policy::parse(text.as_bytes(), root).map(|policy| policy.document)
    }

    /// R23: a sub-agent's limit may not be looser than its parent's; an absent one inherits.
    fn limits(&mut self, parent: Option<&Value>, child: Option<&Value>, place: &str) {
        for (name, limit) in child.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
            let parent = parent.and_then(|parent| parent.get(name)).and_then(schema::limit);
            let (Some(parent), Some(child)) = (parent, schema::limit(limit)) else { continue };
            if child > parent {
                let pointer = join(&format!("{}{place}", self.base), name);
                let message = format!("`{name}` is looser than the parent's: {child} against {parent}");
                self.found.push(Found::value(&pointer, message, format!("at most {parent}")).rule("looser-limit"));
            }
        }
    }
}
