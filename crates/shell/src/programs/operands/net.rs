//! The hosts that a command's options and operands name.
//!
//! Pure, so that commands which only a wrapper follows (`ssh`, `docker`) are looked at too: [`of`] needs nothing but words.

use writ_core::Span;

use crate::action::{NetTarget, NetUse};
use crate::programs::entries::Uses;
use crate::programs::entries::words::{Operands, Role};
use crate::programs::operands::sends;
use crate::programs::operands::table::{self, Split};
use crate::shape::{host as named, is_url, text_word};
use crate::word::{Part, Word};

/// Most URLs that one of curl's patterns stands for.
const MAX_PATTERN: usize = 64;

/// The hosts of a recorded command.
pub fn of(base: &str, arguments: &[Word], span: Span) -> Vec<NetUse> {
    let Some(program) = table::lookup(base) else { return Vec::new() };
    nets(base, program, arguments, &table::split(program, arguments), span)
}

/// The hosts of a command that has been told apart.
pub fn nets(base: &str, program: &Uses, arguments: &[Word], split: &Split<'_>, span: Span) -> Vec<NetUse> {
    let mut out = Nets::default();
    for (role, value) in &split.values {
        out.value(*role, value);
    }
    for kind in program.operands {
        out.operands(base, *kind, split);
    }
    out.0.extend(sends::sent(base, arguments, split, span));
    out.0
}

/// The host of `host:path`, where it has one.
pub fn shared(word: &Word) -> Vec<NetUse> {
    let mut out = Nets::default();
    match word.literal() {
        // A display of this machine's.
        Some(text) if text.starts_with("unix:") => {}
        Some(_) => out.share(word),
        None => out.unknown_machine(word, true),
    }
    out.0
}

/// The machine that an archive lies on, where it is another one.
pub fn archived(word: &Word) -> Vec<NetUse> {
    let mut out = Nets::default();
    out.archive(word);
    out.0
}

/// The URLs that curl makes of one operand: it reads braces itself.
pub fn urls(word: &Word) -> Vec<Word> {
    let Some(text) = word.literal() else { return vec![word.clone()] };
    let mut done = Vec::new();
    let mut todo = vec![text];
    while let Some(text) = todo.pop() {
        let inside = text.split_once('{').and_then(|(front, rest)| Some((front, rest.split_once('}')?)));
        match inside.filter(|_| todo.len() + done.len() < MAX_PATTERN) {
            Some((front, (list, back))) => todo.extend(list.split(',').map(|one| format!("{front}{one}{back}"))),
            None => done.push(text_word(&text, word.span)),
        }
    }
    done
}

#[derive(Default)]
pub struct Nets(Vec<NetUse>);

impl Nets {
    fn add(&mut self, target: NetTarget, span: Span) {
        self.0.push(NetUse { target, span });
    }

    /// A host that is not known before it runs.
    pub fn unknown(&mut self, span: Span) {
        self.add(NetTarget::Unknown, span);
    }

    pub fn host(&mut self, text: &str, span: Span) {
        if !text.is_empty() {
            self.add(named(text, span), span);
        }
    }

    /// `user@host:port`, `[::1]:port`, or a URL.
    pub fn host_port(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return self.add(NetTarget::Unknown, word.span) };
        if text.contains("://") {
            return self.url(word);
        }
        self.host(machine(&text), word.span);
    }

    /// A URL operand; what has neither scheme nor dot is still a host for a fetching program.
    pub fn url(&mut self, word: &Word) {
        if word.literal().is_some_and(|text| text == "-" || text.is_empty()) {
            return;
        }
        let unknown = word.parts.iter().all(|part| part.is_unknown());
        self.add(if unknown { NetTarget::Unknown } else { NetTarget::Url(word.clone()) }, word.span);
    }

    /// Every URL that stands somewhere in a word.
    pub fn urls_in(&mut self, word: &Word) {
        if let [Part::Text(text)] = word.parts.as_slice()
            && !text.contains("://")
        {
            return;
        }
        let Some(text) = word.literal() else {
            return if is_url(word) {
                self.url(word)
            };
        };
        let stop = |c: char| c.is_whitespace() || matches!(c, ',' | '=' | '\'' | '"' | '(' | ')' | '<' | '>');
        for piece in text.split(stop).filter(|piece| piece.contains("://")) {
            // What stands in front of the scheme: `git::https://`, `https:http://`.
            let (front, rest) = piece.split_once("://").unwrap_or_default();
            let scheme = front.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).next();
            self.url(&text_word(&format!("{}://{rest}", scheme.unwrap_or_default()), word.span));
        }
    }

    fn value(&mut self, role: Role, word: &Word) {
        let text = word.text();
        let known = text.as_deref().unwrap_or_default();
        match role {
            Role::Url => urls(word).iter().for_each(|url| self.url(url)),
            Role::Host => self.host_port(word),
            Role::UrlOrHost if known.contains(['.', ':', '@']) || known == "localhost" || text.is_none() => {
                match known.split_once("host=") {
                    Some((_, rest)) => self.host(rest.split_whitespace().next().unwrap_or_default(), word.span),
                    None if known.starts_with(['.', '/', '~']) => {}
                    None => self.host_port(word),
                }
            }
            Role::Hosts if known.contains(',') || !known.starts_with(['.', '/', '~']) => {
                let dotted = |one: &&str| one.contains(['.', ':', '@']) || known.contains(',') || !known.contains('/');
                known.split(',').filter(dotted).for_each(|one| self.host(machine(one), word.span));
            }
            Role::Inventory if known.contains(',') => {
                known.split(',').filter(|one| !one.is_empty()).for_each(|one| self.host(machine(one), word.span));
            }
            Role::ReadsHosts => self.add(NetTarget::Unknown, word.span),
            Role::Share if is_url(word) => self.url(word),
            Role::Share => self.share(word),
            Role::EditorRemote => self.editor_remote(word),
            Role::Lists if known.contains("://") => self.urls_in(word),
            Role::ConnectTo => self.redirected(known, word),
            Role::Forward => {
                // `[bind:]port:host:port`
                let host = known.rsplit(':').nth(1).filter(|host| !host.chars().all(|c| c.is_ascii_digit()));
                self.host(host.unwrap_or_default(), word.span);
            }
            Role::Setting => match known.split_once('=') {
                Some((name, value)) if name.to_lowercase().contains("proxy") && !name.starts_with("use_") => {
                    self.host_port(&text_word(value.trim(), word.span));
                }
                _ => self.urls_in(word),
            },
            Role::SshOption => {
                let mut sides = known.splitn(2, ['=', ' ']);
                let (name, value) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default().trim());
                match name.trim().to_lowercase().as_str() {
                    "hostname" => self.host(value, word.span),
                    "proxyjump" if value != "none" => {
                        value.split(',').for_each(|one| self.host(machine(one), word.span))
                    }
                    "localforward" | "remoteforward" => self.value(Role::Forward, &text_word(value, word.span)),
                    _ => {}
                }
            }
            Role::Text
            | Role::Command
            | Role::RunsIn
            | Role::Lists
            | Role::AtFile
            | Role::Image
            | Role::Cookie
            | Role::EditorCommand
            | Role::ClientCommand => {}
            _ => self.urls_in(word),
        }
    }

    /// curl's `name:port:host:port`, where host may be empty or one of several addresses.
    fn redirected(&mut self, text: &str, word: &Word) {
        let mut rest = text.trim_start_matches(['+', '-']);
        for _ in 0..2 {
            let end = if rest.starts_with('[') { rest.find(']').unwrap_or(0) } else { 0 };
            rest = rest.get(end..).and_then(|tail| tail.split_once(':')).map_or("", |(_, tail)| tail);
        }
        for one in rest.split(',') {
            self.host(machine(one), word.span);
        }
    }

    /// `[user@]host:path`, `//host/path`, `:method:user@host:path`
    pub fn share(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return };
        if let Some(rest) = text.strip_prefix("//").or_else(|| text.strip_prefix("\\\\")) {
            return self.host(rest.split(['/', '\\']).next().unwrap_or_default(), word.span);
        }
        if let Some((method, rest)) = text.strip_prefix(':').and_then(|text| text.split_once(':')) {
            if !matches!(method, "local" | "fork") {
                self.host(machine(rest), word.span);
            }
            return;
        }
        let text = text.rsplit_once('@').map_or(text.as_str(), |(_, rest)| rest);
        if let Some((machine, _)) = text.split_once(':').filter(|(machine, _)| !machine.contains(['/', '='])) {
            self.host(machine, word.span);
        }
    }

    /// A word that may begin with a machine's name, of which something is not known.
    pub fn unknown_machine(&mut self, word: &Word, bare: bool) {
        let lead = crate::shape::literal_prefix(word);
        let text = crate::programs::foreign::marked(word);
        let local = lead.starts_with(['.', '/', '~']) || lead.contains('/');
        let far = text.split('/').next().is_some_and(|front| front.contains(':'));
        if !local && (far || bare) {
            self.add(NetTarget::Unknown, word.span);
        }
    }

    /// A remote that is spelled out: a URL, or `user@host:path`. A name like `origin` is the repository's affair.
    /// Where it may be another word, only a machine with a dot or a user counts.
    fn git_remote(&mut self, word: &Word, sure: bool) {
        if is_url(word) {
            return self.url(word);
        }
        let Some(text) = word.literal() else { return self.unknown_machine(word, true) };
        // `helper::address` is whatever the helper makes of it.
        if sure && text.split('/').next().is_some_and(|front| front.contains("::")) {
            return self.unknown(word.span);
        }
        let machine = super::copy::machine(&text).filter(|name| sure || text.contains('@') || name.contains('.'));
        self.host(machine.unwrap_or_default(), word.span);
    }

    fn operands(&mut self, base: &str, kind: Operands, split: &Split<'_>) {
        let words = &split.operands;
        match kind {
            Operands::Urls if base == "curl" => words.iter().flat_map(|word| urls(word)).for_each(|url| self.url(&url)),
            Operands::Urls => words.iter().for_each(|word| self.url(word)),
            Operands::Httpie => self.http(words),
            Operands::Hosts | Operands::FirstHost => self.hosts(words, kind == Operands::FirstHost),
            Operands::DnsNames => words.iter().for_each(|word| self.name(word)),
            Operands::Addresses => words.iter().for_each(|word| match word.literal() {
                Some(text) => {
                    let hosts = text.split(',').filter_map(|one| one.rsplit_once('@'));
                    hosts.for_each(|(_, name)| self.host(name.trim_end_matches('>'), word.span));
                }
                None => self.add(NetTarget::Unknown, word.span),
            }),
            Operands::Openssl => {
                let to = words.first().and_then(|word| word.literal());
                if matches!(to.as_deref(), Some("s_client" | "s_time")) {
                    words.iter().skip(1).for_each(|word| self.host_port(word));
                }
            }
            Operands::GitRemotes | Operands::GitRemoteFirst => {
                let count = if kind == Operands::GitRemotes { words.len() } else { 1 };
                let verb = words.first().and_then(|word| word.literal()).unwrap_or_default();
                // Behind which words an address stands, and how many.
                let (from, to) = match (base, verb.as_str()) {
                    ("git remote", "add") => (2, 3),
                    ("git remote", "set-url") => (2, 4),
                    ("git submodule", "add") => (1, 2),
                    ("git submodule", "set-url") => (2, 3),
                    _ => (0, 0),
                };
                let all = words.iter().take(count).enumerate();
                all.for_each(|(at, word)| self.git_remote(word, (from..to).contains(&at)));
            }
            Operands::Shares => words.iter().for_each(|word| self.share(word)),
            Operands::RemoteCopy | Operands::Sync => self.remote(base, words),
            Operands::Database => words.iter().for_each(|word| self.database(base, word)),
            Operands::Docker => self.image(base, split),
            Operands::GoPackages | Operands::HasUrls | Operands::CloudStore | Operands::MostlyNotFiles => {
                if kind == Operands::GoPackages {
                    self.modules(words);
                }
                self.settings(words);
                self.package(words);
                words.iter().for_each(|word| self.urls_in(word));
            }
            Operands::ImageReferences => {
                for word in words {
                    self.reference(word);
                }
            }
            Operands::Read | Operands::Written | Operands::Edited | Operands::FirstRead => {
                words.iter().filter(|word| is_url(word)).for_each(|word| self.url(word));
                if base.starts_with("emacs") {
                    words.iter().for_each(|word| self.emacs_file(word));
                }
            }
            Operands::Cpio if !split.has(&[], "--force-local") => {
                let archives = split.values.iter().filter(|(role, _)| matches!(role, Role::Reads | Role::Writes));
                archives.for_each(|(_, archive)| self.archive(archive));
            }
            Operands::Socat => words.iter().for_each(|word| self.socat(word)),
            _ => {}
        }
    }

    /// `[METHOD] URL [name=value…]`
    fn http(&mut self, words: &[&Word]) {
        let method = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase());
        let skip = usize::from(words.first().and_then(|word| word.literal()).is_some_and(|text| method(&text)));
        for word in words.iter().skip(skip).take(1) {
            // `:3000/path` and `:/path` are this machine's.
            let text = word.literal().unwrap_or_default();
            let port = text.strip_prefix(':').and_then(|rest| rest.split('/').next());
            match port.filter(|port| port.chars().all(|c| c.is_ascii_digit())) {
                Some(_) => self.host("localhost", word.span),
                None => self.url(word),
            }
        }
    }

    fn hosts(&mut self, words: &[&Word], only: bool) {
        let count = if only { 1 } else { words.len() };
        for (at, word) in words.iter().take(count).enumerate() {
            match word.literal() {
                None if at == 0 => self.add(NetTarget::Unknown, word.span),
                None => {}
                Some(text) if text.parse::<u16>().is_ok() || text == "-" => {}
                Some(_) if is_url(word) => self.url(word),
                Some(text) if at == 0 || text.contains(['.', ':']) || text == "localhost" => {
                    self.host(text.rsplit('@').next().unwrap_or_default(), word.span);
                }
                Some(_) => {}
            }
        }
    }

    fn name(&mut self, word: &Word) {
        match word.literal() {
            Some(text) if text.contains('.') || text.starts_with('@') => {
                self.host(text.rsplit('@').next().unwrap_or_default(), word.span);
            }
            Some(_) => {}
            None => self.add(NetTarget::Unknown, word.span),
        }
    }
}

/// The host of `user@host:port`.
pub fn machine(text: &str) -> &str {
    let text = text.trim().rsplit('@').next().unwrap_or_default();
    let text = text.split('/').next().unwrap_or_default();
    match text.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None if text.matches(':').count() > 1 => text,
        None => text.split(':').next().unwrap_or_default(),
    }
}
