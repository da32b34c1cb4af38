//! Inputs of tools whose doings are not known here: what in them is a command, a path or a host (R78).
//!
//! Owns the reading of foreign inputs, member names included. A value that *is* a path or a URL is judged as one; a value that
//! merely holds one may be prose, so it asks at most. Invariant: only what a rule names is kept (R8). Page: `spec/policy.md`.

mod commands;
mod members;
mod variables;
mod words;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use writ_core::ToolKind;
use writ_core::json::{self, Limits, Value};
use writ_shell::Access;

use self::members::{CHANGES, LOOKS, Member, NETWORK, WHOLE, plain_name};
use super::Survey;
use crate::facts::{Host, HostFact, PathFact, PathKind, SEARCH, SecretFact, UnresolvedFact};
use crate::glob::{GlobError, unfold};
use crate::rules::last_word_split;
use crate::url::{self, Target, percent_decoded};
use crate::world::{Resolved, Search, fold};

/// Deepest JSON text inside a text that is read as JSON again.
const MAX_DEPTH: usize = 8;
/// The member that holds what a tool is called with beside its line.
const ARGUMENTS: &str = "arguments";
/// The member that names the secrets of a request.
const CREDENTIALS: &str = "credentials";
/// Longest path that the file system is asked about; longer ones are folded as text.
const PATH_MAX: usize = 4096;

impl Survey<'_> {
    /// Everything in the input of a tool that is not known here.
    pub(super) fn foreign_input(&mut self) {
        let call = self.call;
        self.value("", &call.input, 0);
    }

    /// What a program of its own name is given on its standard input: nothing in its line says it.
    pub(super) fn own_arguments(&mut self) {
        let call = self.call;
        if let Some(arguments) = call.input.get(ARGUMENTS).filter(|_| !call.is_canonical()) {
            self.value("", arguments, 0);
        }
    }

    /// The secrets that Writ puts into a request of its own.
    pub(super) fn put_in(&mut self) {
        let named = self.call.input.get(CREDENTIALS).filter(|_| !self.call.is_canonical()).and_then(Value::as_array);
        for one in named.unwrap_or_default() {
            let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            self.facts.secrets.push(SecretFact { name: text("name"), host: text("host"), inject: text("inject") });
        }
    }

    fn value(&mut self, name: &str, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.argument(name, text, depth),
            Value::Array(items) => items.iter().for_each(|item| self.value(name, item, depth)),
            Value::Object(members) => {
                let read = self.commands(members);
                for (key, member) in members.iter() {
                    if key.contains(['/', '\\', '%', '~']) || key.starts_with('.') {
                        self.argument("path", key, depth);
                    }
                    if !read.iter().any(|known| known == key) {
                        self.value(key, member, depth);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn argument(&mut self, name: &str, text: &str, depth: usize) {
        let member = Member::of(name);
        let shape = text.trim_start();
        if depth < MAX_DEPTH
            && shape.starts_with(['{', '['])
            && let Ok(inner) = json::parse_with(shape.trim_end().as_bytes(), Limits::FOREIGN)
        {
            return self.value(name, &inner, depth + 1);
        }
        let plain = plain_name(name);
        let leaves_out = ["exclude", "ignore"].iter().any(|word| plain.contains(word));
        let mut all = spellings(text);
        let expanded: Vec<String> = all.iter().filter_map(|spelling| self.with_known_variables(spelling)).collect();
        let access = if self.says().0 { Access::Read } else { Access::Write };
        if expanded.iter().all(|known| known.starts_with(['$', '`'])) {
            all.iter().for_each(|spelling| self.open_path(member, spelling, access));
        }
        all.extend(expanded);
        for spelling in all {
            if !leaves_out && !spelling.contains(char::is_whitespace) && spelling.contains(['*', '?', '[', '{']) {
                self.pattern_argument(member, &spelling);
            }
            self.whole(member, &spelling);
        }
        if let Some(text) = base64(text.trim()) {
            self.whole(Member::Other, &text);
        }
        if ["connection", "dsn", "address", "uri"].iter().any(|word| plain.contains(word)) {
            self.addressed(text);
        }
        // `HEAD:path`, `host:path`
        if let Some((_, path)) = text.rsplit_once(':').filter(|_| !text.contains("://") && !text.contains(' ')) {
            self.path_argument(Member::Other, path);
        }
        if text.contains(|c: char| c.is_whitespace() || words::SEPARATORS.contains(&c)) {
            self.words(member, text);
        }
    }

    /// Hosts without a scheme: `Server=host;Database=x`, `host/x`.
    fn addressed(&mut self, text: &str) {
        const KEYS: [&str; 7] = ["server", "host", "hostname", "addr", "address", "datasource", "endpoint"];
        let hosts = text.split([';', ' ', '&']).filter_map(|pair| pair.split_once('='));
        let hosts = hosts.filter(|(key, _)| KEYS.contains(&plain_name(key).as_str())).map(|(_, host)| host);
        let front = text.split(['/', ':', '?']).next().filter(|_| !text.contains("://") && !self.there(text));
        let named: Vec<Host> = hosts
            .map(|host| host.trim_start_matches("tcp:").split([',', ':']).next().unwrap_or_default())
            .chain(front.filter(|front| super::unknown_use::is_host(front)))
            .map(url::read_host)
            .collect();
        for host in named.into_iter().filter(|_| self.policy.domains.any() || self.policy.flow.any()) {
            self.facts.hosts.push(HostFact { host, mentioned: false, span: None });
        }
    }

    /// A value that may itself be a URL or a path.
    fn whole(&mut self, member: Member, text: &str) {
        if let Some(url) = url::as_browsers_read(text) {
            return self.whole(member, &url);
        }
        let spaced = text.contains(char::is_whitespace);
        if let Some(path) = file_url(text) {
            return self.path_argument(Member::Path, &path);
        }
        if !spaced && let Some(host) = self.host_of(member, text) {
            if self.policy.domains.any() || self.policy.flow.any() {
                self.facts.hosts.push(HostFact { host, mentioned: false, span: None });
            }
            self.url_text(text, None);
            return;
        }
        // A key may have blanks in it.
        if text.split_once("://").is_some_and(|(scheme, _)| self.is_store(scheme)) {
            return self.url_text(text, None);
        }
        let rooted = text.starts_with(['/', '~']) || text.starts_with("./") || text.starts_with("../");
        let single = !spaced && (text.contains(['/', '.']) || text.starts_with('~') || self.is_place(text));
        if matches!(member, Member::Path | Member::Place)
            || single
            || (rooted && spaced && member != Member::Code && self.there(text))
        {
            self.path_argument(member, text);
        }
    }

    /// The host that a value without spaces names.
    fn host_of(&self, member: Member, text: &str) -> Option<Host> {
        let read = |text: &str| match url::read(text) {
            Target::Host(host) => Some(host),
            Target::File(_) => None,
        };
        if let Some((scheme, _)) = text.split_once(':') {
            let scheme = scheme.to_ascii_lowercase();
            if NETWORK.contains(&scheme.as_str()) && text.contains("//") {
                return read(text);
            }
            if member == Member::Host && matches!(scheme.as_str(), "data" | "javascript" | "blob" | "jar") {
                return Some(Host::Ambiguous);
            }
            // `user@host:path`, as git and scp take it.
            if let Some((user, host)) = scheme.split_once('@')
                && !user.is_empty()
                && host.contains('.')
                && !text.contains("//")
            {
                return Some(url::read_host(host));
            }
        }
        let bare = member == Member::Host && !text.starts_with(['/', '.', '~']) && !self.there(text);
        let known = |host: &Host| matches!(host, Host::Name(name) if name.contains(['.', ':']) || name == "localhost");
        match () {
            () if member == Member::Host && text.starts_with("//") => read(text),
            () if bare => read(text).filter(known),
            () => None,
        }
    }

    fn there(&self, text: &str) -> bool {
        let absolute = self.absolute(&self.call.cwd, text);
        absolute.len() <= PATH_MAX && !absolute.contains('\0') && self.exists(absolute.trim_end_matches('/'))
    }

    /// Whether a bare word is the name of a folder, or of a symlink that leads elsewhere.
    fn is_place(&self, text: &str) -> bool {
        let cwd = &self.call.cwd;
        let absolute = self.absolute(cwd, text);
        if text.is_empty() || absolute.len() > PATH_MAX || absolute.contains('\0') {
            return false;
        }
        let Resolved { path, is_dir } = self.resolve(&absolute);
        is_dir || path.strip_prefix(&self.resolve(cwd).path).and_then(|rest| rest.strip_prefix('/')) != Some(text)
    }

    /// A value that is a path: held against the rules that forbid, and against `allow` where the member says that it is a path
    /// and it surely means this machine's.
    fn path_argument(&mut self, member: Member, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some((front, _)) = text.split_once('\0') {
            // Where C reads it, it ends there.
            return self.path_argument(member, front);
        }
        let (looks, changes) = self.says();
        // What it makes or changes there is named by other members.
        let place = member == Member::Place && !self.takes_whole();
        let changes = changes && !(place && self.resolve(&self.absolute(&self.call.cwd, text)).is_dir);
        let access = if looks { Access::Read } else { Access::Write };
        let mut fact = self.argument_fact(text, access);
        let sure = matches!(member, Member::Path | Member::Place) && (text.starts_with(['/', '~']) || self.there(text));
        if sure && (self.policy.files.allow.is_some() || changes) {
            let mut named = fact.clone();
            named.kind = PathKind::Named;
            named.access = if changes { Access::Write } else { Access::Read };
            // A folder is looked into, and what is read below it is not known.
            if !changes && self.resolve(&fact.written).is_dir {
                named.access = Access::List;
            }
            named.tree = changes && named.access == Access::Write;
            self.facts.paths.push(named);
        }
        fact.kind = PathKind::Argument;
        let home = self.setting.home.as_deref();
        let asked = |path: &Vec<&str>| last_word_split(&self.policy.files.approval, path, home).is_some();
        if self.is_named(&fact) || self.is_secret(&fact) || fact.spellings().iter().any(asked) {
            self.facts.paths.push(fact);
        }
    }

    /// A value that some tools take for a pattern: each of its alternatives is a path, and what a wildcard stands for on disk asks where
    /// it is denied.
    fn pattern_argument(&mut self, member: Member, text: &str) {
        let path = matches!(member, Member::Path | Member::Place);
        let all = match unfold(text) {
            Ok(all) => all,
            // What it stands for is not known.
            Err(GlobError::TooLarge) if path || text.len() <= PATH_MAX => {
                let what = text.chars().take(80).collect();
                return self.facts.unresolved.push(UnresolvedFact { kind: SEARCH.to_owned(), what, span: None });
            }
            Err(_) => return,
        };
        for one in all.into_iter().filter(|one| one.len() <= PATH_MAX && !one.contains('\0')) {
            if !one.contains(['*', '?', '[']) {
                self.path_argument(member, &one);
                continue;
            }
            // A search of everything below that is not surely of paths is not looked through.
            if one.contains("**") && !path {
                continue;
            }
            let absolute = self.absolute(&self.call.cwd, &one);
            let found = match self.expand(&absolute) {
                Search::Done(found) if found.len() <= self.left => found,
                Search::Done(_) | Search::TooLarge => {
                    let fact = self.argument_fact(&one, Access::Read);
                    return self.too_large(&fact);
                }
            };
            self.left = self.left.saturating_sub(found.len().max(1));
            for path in found {
                let mut fact = self.path(&path, Access::Read, None);
                fact.kind = PathKind::Text;
                if self.is_denied(&fact) || self.setting.violated(&fact).is_some() {
                    self.facts.paths.push(fact);
                }
            }
        }
    }

    /// The fact for a path in an input. What is too long for the file system is folded as text first.
    fn argument_fact(&self, text: &str, access: Access) -> PathFact {
        let absolute = self.absolute(&self.call.cwd, text);
        if absolute.len() <= PATH_MAX {
            return self.path(&absolute, access, None);
        }
        let written = fold(&absolute);
        if written.len() <= PATH_MAX {
            return self.path(&written, access, None);
        }
        let resolved = written.clone();
        PathFact {
            written,
            resolved,
            access,
            tree: false,
            subject: false,
            new: false,
            kind: PathKind::Argument,
            span: None,
        }
    }

    /// What the tool's own name says: that it only looks, that it changes files.
    fn says(&self) -> (bool, bool) {
        let words = self.own_words();
        let changes = words.iter().any(|word| CHANGES.contains(&word.as_str()));
        let looks = !changes && words.first().is_some_and(|word| LOOKS.contains(&word.as_str()));
        (looks, changes)
    }

    /// Whether the tool's own name may mean everything at a place.
    fn takes_whole(&self) -> bool {
        self.own_words().iter().any(|word| WHOLE.contains(&word.as_str()))
    }

    /// The tool's name without its server's: as its server knows it, where it has one.
    pub(super) fn own_name(&self) -> &str {
        let name = match &self.call.kind {
            ToolKind::Mcp { tool, .. } if !tool.is_empty() => tool,
            _ => &self.call.tool,
        };
        name.rsplit("__").next().unwrap_or_default()
    }

    /// The words of the tool's own name.
    fn own_words(&self) -> Vec<String> {
        let own = self.own_name();
        let mut words = Vec::new();
        for part in own.split(|c: char| !c.is_alphanumeric()) {
            let mut word = String::new();
            for c in part.chars() {
                if c.is_uppercase() && !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                word.extend(c.to_lowercase());
            }
            words.push(word);
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// Whether a deny rule names a path, however deep it lies.
    fn is_denied(&self, fact: &PathFact) -> bool {
        let home = self.setting.home.as_deref();
        fact.spellings().iter().any(|path| last_word_split(&self.policy.files.deny, path, home).is_some())
    }
}

/// The spellings of one value that programs take for the same: as it is, without quotes and space around it, with `%xx` read,
/// with `/` for `\`.
fn spellings(text: &str) -> Vec<String> {
    let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
    let mut out = vec![text.to_owned()];
    let mut add = |text: String| {
        if !text.is_empty() && !out.contains(&text) {
            out.push(text);
        }
    };
    let bare = text.trim_matches(quotes);
    add(bare.to_owned());
    let mut decoded = bare.to_owned();
    for _ in 0..2 {
        match percent_decoded(&decoded).filter(|next| *next != decoded && decoded.contains('%')) {
            Some(next) => decoded = next,
            None => break,
        }
    }
    add(decoded.clone());
    // Readers of URLs leave these out.
    if bare.contains(['\t', '\n', '\r']) {
        add(bare.replace(['\t', '\n', '\r'], ""));
    }
    if decoded.contains('\\') {
        add(decoded.replace('\\', "/"));
    }
    out
}

/// What a value is that reads as base64 of a text, in either alphabet.
fn base64(text: &str) -> Option<String> {
    let bare = text.trim_end_matches('=');
    if !(12..=4096).contains(&bare.len()) {
        return None;
    }
    let out = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare)).ok()?;
    let plain = |c: char| !c.is_control();
    String::from_utf8(out).ok().filter(|text| text.chars().all(plain))
}

/// The path of a `file:` URL, however it is written: `file:/x`, `FILE://localhost/x`, `file:///x`.
fn file_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("/", |at| rest.get(at..).unwrap_or_default()),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    percent_decoded(path).or_else(|| Some(path.to_owned()))
}
