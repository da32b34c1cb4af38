//! What a call would use of secrets, APIs and storage, against `grants`.
//!
//! Owns where such resources show: variables that a line reads, commands that print them all, `vault`'s paths, URLs of any tool. Keeps
//! only what a rule objects to (R8): never a variable's value, a URL's path or query. Invariant: what is not fully known is
//! held against every rule that it may break. Page: `spec/grants.md`.

use writ_core::{Span, secret};
use writ_shell::{Access, Analysis, Command, NetTarget, NetUse, Part, Word};

use super::Survey;
use super::plain_text::only_text;
use super::programs::{
    goes_below, prints_its_data, program_of, runs_a_command, shows_environments, speaks_no_http, splits,
};
use crate::facts::{Host, PathFact, PathKind, ResourceFact};
use crate::grants::{Kind, Pattern, is_secret_file, is_secret_variable, keeps_secrets};
use crate::url;
use crate::web::{self, Web};

/// A resource that a call would use.
pub(super) struct Resource<'a> {
    pub kind: Kind,
    /// The ways to write it, each in segments.
    pub spellings: &'a [String],
    /// More ways, which count for what forbids alone.
    pub wide: &'a [String],
    /// More follows that is not known.
    pub open: bool,
    /// Whether one spelling in `allow` is enough.
    pub any: bool,
    /// What facts and answers call it.
    pub shown: &'a str,
}

impl Survey<'_> {
    /// Holds a resource against its lists, and keeps what they object to.
    pub(super) fn resource(&mut self, resource: &Resource<'_>, span: Option<Span>) {
        let Resource { kind, spellings, wide, open, any, shown } = *resource;
        self.label_resource(kind, |pattern| {
            let mut all = spellings.iter().chain(wide);
            if open {
                return all.any(|text| pattern.may_match_below(text)).then_some(false);
            }
            all.any(|text| pattern.matches(text)).then_some(true)
        });
        let lists = self.policy.grants.of(kind);
        let named = |pattern: &Pattern| {
            let mut all = spellings.iter().chain(wide);
            if !open {
                return all.any(|text| pattern.matches(text)).then(|| (pattern.pointer.clone(), true));
            }
            let sure = all.clone().any(|text| pattern.covers_below(text));
            (sure || all.any(|text| pattern.may_match_below(text))).then(|| (pattern.pointer.clone(), sure))
        };
        let hits: Vec<(String, bool)> = lists.deny.iter().filter_map(named).collect();
        let covers = |pattern: &Pattern| {
            let one = |text: &String| if open { pattern.covers_below(text) } else { pattern.matches(text) };
            if any { spellings.iter().any(one) } else { spellings.iter().all(one) }
        };
        let allow = lists.allow.as_deref();
        let refused = allow.is_some_and(|allow| !allow.iter().any(covers));
        let perhaps = open
            && allow
                .is_some_and(|allow| allow.iter().any(|rule| spellings.iter().any(|text| rule.may_match_below(text))));
        self.object(kind, shown, span, hits, refused, perhaps);
    }

    pub(super) fn object(
        &mut self,
        kind: Kind,
        shown: &str,
        span: Option<Span>,
        hits: Vec<(String, bool)>,
        refused: bool,
        perhaps: bool,
    ) {
        if hits.is_empty() && !refused {
            return;
        }
        let name = secret::mask(shown).into_owned();
        let fact = ResourceFact { grant: kind, name, span, hits, refused, perhaps };
        if !self.facts.resources.contains(&fact) {
            self.facts.resources.push(fact);
        }
    }

    fn looks_for_resources(&self) -> bool {
        self.policy.grants.any() || self.policy.flow.any()
    }

    /// Everything that a shell line would use.
    pub(super) fn line_resources(&mut self, analysis: &Analysis) {
        if !self.looks_for_resources() {
            return;
        }
        for variable in &analysis.variables {
            self.variable(&variable.name, Some(variable.span), true);
        }
        self.code_of_documents(analysis);
        let plain = only_text(&analysis.commands);
        self.documents(analysis, &plain);
        for (command, text) in analysis.commands.iter().zip(plain) {
            self.command_resources(command, text);
            self.request_targets(command, &analysis.nets);
        }
        for net in analysis.nets.iter().filter(|net| !speaks_no_http(&analysis.commands, net)) {
            match &net.target {
                NetTarget::Url(word) => self.url_word(word, net.span),
                NetTarget::Host(word) => self.host_alone(word.literal().as_deref(), Some(net.span)),
                NetTarget::Unknown => self.host_alone(None, Some(net.span)),
            }
        }
    }

    /// A variable that is read; the empty name is one that is not known, `*` all of them.
    pub(super) fn variable(&mut self, name: &str, span: Option<Span>, sure: bool) {
        let lists = self.policy.grants.of(Kind::Secrets);
        if !lists.any() && !self.policy.flow.any() {
            return;
        }
        let bound = self.policy.sandbox().secrets.bind.iter().any(|secret| secret.name == name);
        if bound && self.policy.confine().is_some() {
            // It holds a placeholder.
            return;
        }
        let unknown = name.is_empty();
        let text = format!("env:{name}");
        let about = |pattern: &&Pattern| match name {
            "*" | "" => pattern.is_of("env:"),
            _ => pattern.matches(&text),
        };
        self.label_resource(Kind::Secrets, |pattern| about(&pattern).then_some(sure && !unknown));
        let hits: Vec<_> =
            lists.deny.iter().filter(about).map(|rule| (rule.pointer.clone(), sure && !unknown)).collect();
        let whole =
            |pattern: &Pattern| if name == "*" || unknown { pattern.matches("env:*") } else { pattern.matches(&text) };
        let secret = name == "*" || unknown || is_secret_variable(name);
        let refused = secret && lists.allow.as_deref().is_some_and(|allow| !allow.iter().any(whole));
        let shown = if unknown { "env:…" } else { text.as_str() };
        self.object(Kind::Secrets, shown, span, hits, refused, unknown || !sure);
    }

    /// With `text`, a name in an argument is only a word.
    fn command_resources(&mut self, command: &Command, text: bool) {
        let texts: Vec<Option<String>> = command.words.iter().map(Word::literal).collect();
        let program = program_of(&texts);
        let span = Some(command.span);
        let arguments = texts.get(1..).unwrap_or_default();
        let given = |flags: &[&str]| arguments.iter().flatten().any(|text| flags.contains(&text.as_str()));
        let operands: Vec<&str> =
            arguments.iter().flatten().map(String::as_str).filter(|text| !text.starts_with('-')).collect();
        match program {
            "printenv" if !operands.is_empty() => operands.iter().for_each(|name| self.variable(name, span, true)),
            // What it runs is a command of its own; that it sets something prints nothing.
            "env" if runs_a_command(arguments) => {}
            "env" if splits(arguments) && operands.iter().any(|text| text.contains(char::is_whitespace)) => {}
            "env" | "printenv" => self.variable("*", span, true),
            "set" if arguments.is_empty() => self.variable("*", span, true),
            // What sets something, or tells of functions alone, prints no values.
            "export" | "declare" | "typeset" | "readonly"
                if (command.assigns || given(&["-f", "-F"])) && !given(&["-p"]) => {}
            "export" | "declare" | "typeset" | "readonly" if operands.is_empty() => self.variable("*", span, true),
            "declare" | "typeset" | "export" if given(&["-p"]) => {
                operands.iter().for_each(|name| self.variable(name, span, true));
            }
            "envsubst" => self.variable("*", span, false),
            "make" | "gmake" if given(&["--print-data-base"]) || prints_its_data(arguments) => {
                self.variable("*", span, true);
            }
            "systemctl" if operands.contains(&"show-environment") => self.variable("*", span, true),
            // A command of `tmux` may be cut short; behind it stands a name, or all are shown.
            "tmux" => {
                let shows =
                    |text: &&str| text.len() > 4 && ("show-environment".starts_with(*text) || *text == "showenv");
                if let Some(at) = operands.iter().position(shows) {
                    // The value of `-t` stands there, too.
                    let name = operands.get(at + 1).filter(|_| !given(&["-t"])).copied();
                    self.variable(name.unwrap_or("*"), span, true);
                }
            }
            "launchctl" if operands.first() == Some(&"export") => self.variable("*", span, true),
            "launchctl" if operands.first() == Some(&"getenv") => {
                operands.iter().skip(1).for_each(|name| self.variable(name, span, true));
            }
            // Letters without a dash are options of BSD's: `ps auxe`.
            "ps" if shows_environments(arguments) => self.variable("*", span, true),
            "vault" => self.vault(arguments, span),
            "gh" => self.github(arguments, span),
            "aws" if given(&["s3api"]) => self.bucket(&texts, span),
            _ => {}
        }
        self.asked_by_code(program, arguments, command.span);
        self.unknown_store(program, command, span);
        let deep = goes_below(program, arguments);
        for word in command.words.get(1..).unwrap_or_default() {
            self.word_stores(word, deep, command.span);
            if !text {
                self.word_names(word, command.span);
            }
        }
        if matches!(program, "docker" | "podman" | "nerdctl") {
            // `-eNAME`, `-iteNAME`
            let short = arguments.iter().flatten().filter(|text| text.starts_with('-') && !text.starts_with("--"));
            let glued: Vec<String> = short.filter_map(|text| Some(text.split_once('e')?.1.to_owned())).collect();
            glued.iter().for_each(|name| self.names_in(name, command.span));
        }
    }

    /// `curl --request-target PATH URL`: that path is asked for instead of the URL's own.
    fn request_targets(&mut self, command: &Command, nets: &[NetUse]) {
        let mut words = command.words.iter();
        if words.next().and_then(Word::literal).is_none_or(|name| name.rsplit('/').next() != Some("curl")) {
            return;
        }
        let flag = |word: &Word| word.literal().is_some_and(|text| is_request_target(&text));
        let Some(target) = words.find(|word| flag(word)).and_then(|_| words.next()).map(shown) else { return };
        let inside = |span: Span| command.span.start <= span.start && span.end <= command.span.end;
        for net in nets.iter().filter(|net| inside(net.span)) {
            let (NetTarget::Url(word) | NetTarget::Host(word)) = &net.target else { continue };
            let text = shown(word);
            let (scheme, rest) = text.split_once("://").unwrap_or(("http", &text));
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let whole = match target.contains("://") {
                true => target.clone(),
                false => format!("{scheme}://{host}/{}", target.trim_start_matches('/')),
            };
            self.url_text(&whole, Some(net.span));
        }
    }

    fn url_word(&mut self, word: &Word, span: Span) {
        self.url_text(&shown(word), Some(span));
    }

    /// A URL; U+0001 stands for what is not known of it.
    pub(super) fn url_text(&mut self, text: &str, span: Option<Span>) {
        if !self.looks_for_resources() {
            return;
        }
        let text =
            if text.contains("://") { text.to_owned() } else { format!("https://{}", text.trim_start_matches('/')) };
        // What is known of it ends at the last whole segment before what is not; programs make several URLs of `[a-z]`. Only an address
        // stands in brackets.
        let host = text.find("://").map_or(0, |at| at + 3);
        let path = text.get(host..).and_then(|rest| rest.find('/')).map(|at| host + at);
        let range = path.and_then(|path| Some(path + text.get(path..)?.find('[')?));
        let query = text.find(['?', '#']).unwrap_or(text.len());
        let text = match range.filter(|at| *at < query) {
            Some(at) => format!("{}\u{1}", text.get(..at).unwrap_or_default()),
            None => text,
        };
        let (known, open) = match text.split_once('\u{1}') {
            None => (text.as_str(), false),
            Some((known, _)) => (known.rsplit_once('/').map_or("", |(folder, _)| folder), true),
        };
        let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        // Of `git+https://` what follows is asked for over the web.
        if let Some((_, web)) = scheme.split_once('+').filter(|(_, web)| ["http", "https"].contains(web)) {
            let rest = text.split_once("://").map_or("", |(_, rest)| rest);
            return self.url_text(&format!("{web}://{rest}"), span);
        }
        let Some((_, rest)) = known.split_once("://").filter(|(_, rest)| !rest.is_empty()) else {
            if !self.is_store(&scheme) {
                self.vault_anywhere(&text, span);
                return self.host_alone(None, span);
            }
            let (spellings, shown) = ([format!("{scheme}:")], format!("{scheme}://…"));
            let resource = Resource {
                kind: Kind::Storage,
                spellings: &spellings,
                wide: &[],
                open: true,
                any: false,
                shown: &shown,
            };
            return self.resource(&resource, span);
        };
        if self.is_store(&scheme) {
            let shown = format!("{scheme}://{}", rest.split('/').next().unwrap_or_default());
            // Some programs read what stands behind `?` and `#`, and `%xx`; others take them for letters of a name.
            let plain = rest.split(['?', '#']).next().unwrap_or_default();
            let spellings = [store_address(&scheme, plain)];
            let wide =
                [rest, &url::decoded(plain, |letter, out| out.push(letter))].map(|rest| store_address(&scheme, rest));
            let resource =
                Resource { kind: Kind::Storage, spellings: &spellings, wide: &wide, open, any: false, shown: &shown };
            return self.resource(&resource, span);
        }
        if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
            return;
        }
        let Some(web) = Web::read(known) else {
            // Read in different ways: it may be any.
            self.odd_vault_address(known, span);
            if let Some(start) = web::start_of_store(known) {
                self.store(&[start], true, span);
            }
            return self.host_alone(None, span);
        };
        let stored = self.stored(&web, open, span);
        if !stored {
            let (spellings, wide, shown) = ([web.spelling()], web.wide(), web.shown());
            let resource =
                Resource { kind: Kind::Apis, spellings: &spellings, wide: &wide, open, any: false, shown: &shown };
            self.resource(&resource, span);
        }
        if open {
            self.open_vault_address(known, span);
        } else {
            self.vault_address(&web, span);
        }
    }

    /// A host that is contacted without a URL: what of it is used is not known. Only hosts that a pattern names count; where the host is not known
    /// either, all do.
    fn host_alone(&mut self, host: Option<&str>, span: Option<Span>) {
        let lists = self.policy.grants.of(Kind::Apis);
        let mut rules = lists.deny.iter().chain(lists.allow.iter().flatten());
        let Some(host) = host else {
            let hits: Vec<_> = lists.deny.iter().map(|rule| (rule.pointer.clone(), false)).collect();
            let refused = lists.allow.is_some();
            return self.object(Kind::Apis, "…", span, hits, refused, true);
        };
        let Host::Name(name) = url::read_host(host) else { return };
        let text = format!("https://{name}");
        let hosts = [Some(name.clone()), url::inner_v4(&name)];
        let wide: Vec<String> =
            hosts.iter().flatten().flat_map(|name| [format!("http://{name}"), format!("https://{name}")]).collect();
        if rules.any(|rule| wide.iter().any(|text| rule.may_match_below(text))) {
            let resource =
                Resource { kind: Kind::Apis, spellings: &[text], wide: &wide, open: true, any: true, shown: &name };
            self.resource(&resource, span);
        }
    }

    /// Files that are known to hold secrets, where only some may be used; and the variables of a process, which lie in a file too.
    /// Whether a path is that of a file which is known to hold secrets and is not granted.
    pub(super) fn is_ungranted(&self, path: &str) -> bool {
        let Some(allow) = &self.policy.grants.of(Kind::Secrets).allow else { return false };
        let home = self.setting.home.as_deref();
        let named = |pattern: &Pattern| pattern.file().is_some_and(|rule| rule.matches(path, home));
        is_secret_file(path, home) && !allow.iter().any(named)
    }

    /// Whether what is read there counts as a secret.
    pub(super) fn is_secret(&self, fact: &PathFact) -> bool {
        let paths = [&fact.written, &fact.resolved];
        let variables = self.policy.grants.of(Kind::Secrets).any() || self.policy.flow.any();
        paths.iter().any(|path| self.is_ungranted(path) || variables && shows_variables(path))
    }

    pub(super) fn file_resources(&mut self) {
        let lists = self.policy.grants.of(Kind::Secrets);
        if !lists.any() && !self.policy.flow.any() {
            return;
        }
        let home = self.setting.home.as_deref();
        let facts: Vec<PathFact> =
            self.facts.paths.iter().filter(|fact| fact.access >= Access::Read).cloned().collect();
        for fact in facts {
            if shows_variables(&fact.written) || shows_variables(&fact.resolved) {
                self.variable("*", fact.span, true);
            }
            if lists.allow.is_none() || matches!(fact.kind, PathKind::Mentioned | PathKind::Text) {
                continue;
            }
            let sure = matches!(
                fact.kind,
                PathKind::Named
                    | PathKind::Found
                    | PathKind::Stored
                    | PathKind::Copied
                    | PathKind::Glob
                    | PathKind::Argument
            );
            // A listing goes through all that lies below.
            let tree = fact.tree || fact.kind == PathKind::Listing;
            let known = is_secret_file(&fact.resolved, home) || is_secret_file(&fact.written, home);
            let below = tree && keeps_secrets(&fact.resolved, home);
            let free = matches!(fact.kind, PathKind::Open | PathKind::Any) && fact.written.starts_with("/**");
            let named = |pattern: &Pattern| pattern.file().is_some_and(|rule| rule.matches(&fact.resolved, home));
            if (known || below || free) && !lists.allow.iter().flatten().any(named) {
                let shown = if free { "file:…".to_owned() } else { format!("file:{}", fact.resolved) };
                self.object(Kind::Secrets, &shown, fact.span, Vec::new(), true, !(sure && known));
            }
        }
    }
}

/// A word with U+0001 for what is not known of it.
pub(super) fn shown(word: &Word) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => "\u{1}".to_owned(),
    };
    word.parts.iter().map(text).collect()
}

/// `--request-target`, also cut short as curl takes it.
fn is_request_target(text: &str) -> bool {
    text.len() > "--request-".len() && "--request-target".starts_with(text)
}

/// The environment of a process, as a file.
fn shows_variables(path: &str) -> bool {
    path.starts_with("/proc/") && path.ends_with("/environ")
}

/// A store's address with its bucket as patterns have it.
fn store_address(scheme: &str, rest: &str) -> String {
    let (bucket, key) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    format!("{scheme}://{}{key}", bucket.to_ascii_lowercase())
}
