//! The hosts that a command's options and operands name.
//!
//! Pure, so that commands which only a wrapper follows (`ssh`, `docker`) are looked at too: [`of`] needs nothing but words.

use writ_core::Span;

use super::is_url;
use super::table::{self, Split};
use crate::action::{NetTarget, NetUse, Part, Word};
use crate::eval::command::{host as named, text_word};

/// Most URLs that one of curl's patterns stands for.
const MAX_PATTERN: usize = 64;

/// The hosts of a recorded command.
pub fn of(base: &str, arguments: &[Word]) -> Vec<NetUse> {
    table::lookup(base).map(|program| nets(base, program, &table::split(program, arguments))).unwrap_or_default()
}

/// The hosts of a command that has been told apart.
pub fn nets(base: &str, program: table::Program<'static>, split: &Split<'_>) -> Vec<NetUse> {
    let mut out = Nets::default();
    for (role, value) in &split.values {
        out.value(role, value);
    }
    for shape in program.shapes() {
        out.operands(base, shape, split);
    }
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

    pub fn host(&mut self, text: &str, span: Span) {
        if !text.is_empty() {
            self.add(named(text, span), span);
        }
    }

    /// `user@host:port`, `[::1]:port`, or a URL.
    fn host_port(&mut self, word: &Word) {
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
    fn urls_in(&mut self, word: &Word) {
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

    fn value(&mut self, role: &str, word: &Word) {
        if matches!(role, "-" | "c" | "C" | "l" | "@" | "cookie" | "vim" | "sql") {
            return;
        }
        let text = word.text();
        let known = text.as_deref().unwrap_or_default();
        match role {
            "u" => urls(word).iter().for_each(|url| self.url(url)),
            "h" => self.host_port(word),
            "x" if known.contains(['.', ':', '@']) || known == "localhost" || text.is_none() => {
                match known.split_once("host=") {
                    Some((_, rest)) => self.host(rest.split_whitespace().next().unwrap_or_default(), word.span),
                    None if known.starts_with(['.', '/', '~']) => {}
                    None => self.host_port(word),
                }
            }
            "H" if known.contains(',') || !known.starts_with(['.', '/', '~']) => {
                let dotted = |one: &&str| one.contains(['.', ':', '@']) || known.contains(',') || !known.contains('/');
                known.split(',').filter(dotted).for_each(|one| self.host(machine(one), word.span));
            }
            "inv" if known.contains(',') => {
                known.split(',').filter(|one| !one.is_empty()).for_each(|one| self.host(machine(one), word.span));
            }
            "U" => self.add(NetTarget::Unknown, word.span),
            "i" => self.reference(word),
            "y" => self.share(word),
            "T" => self.redirected(known, word),
            "f" => {
                // `[bind:]port:host:port`
                let host = known.rsplit(':').nth(1).filter(|host| !host.chars().all(|c| c.is_ascii_digit()));
                self.host(host.unwrap_or_default(), word.span);
            }
            "e" => match known.split_once('=') {
                Some((name, value)) if name.to_lowercase().contains("proxy") && !name.starts_with("use_") => {
                    self.host_port(&text_word(value.trim(), word.span));
                }
                _ => self.urls_in(word),
            },
            "s" => {
                let mut sides = known.splitn(2, ['=', ' ']);
                let (name, value) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default().trim());
                match name.trim().to_lowercase().as_str() {
                    "hostname" => self.host(value, word.span),
                    "proxyjump" if value != "none" => {
                        value.split(',').for_each(|one| self.host(machine(one), word.span))
                    }
                    "localforward" | "remoteforward" => self.value("f", &text_word(value, word.span)),
                    _ => {}
                }
            }
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
    fn share(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return };
        if let Some(rest) = text.strip_prefix("//").or_else(|| text.strip_prefix("\\\\")) {
            return self.host(rest.split(['/', '\\']).next().unwrap_or_default(), word.span);
        }
        let text = text.trim_start_matches(':');
        let text = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
        if let Some((machine, _)) = text.split_once(':').filter(|(machine, _)| !machine.contains(['/', '='])) {
            self.host(machine, word.span);
        }
    }

    /// A word that may begin with a machine's name, of which something is not known.
    fn unknown_machine(&mut self, word: &Word, bare: bool) {
        let lead = crate::options::lead(word);
        let text = crate::programs::foreign::marked(word);
        let local = lead.starts_with(['.', '/', '~']) || lead.contains('/');
        let far = text.split('/').next().is_some_and(|front| front.contains(':'));
        if !local && (far || bare) {
            self.add(NetTarget::Unknown, word.span);
        }
    }

    /// A remote that is spelled out: a URL, or `user@host:path`. A name like `origin` is the repository's affair.
    fn git_remote(&mut self, word: &Word) {
        if is_url(word) {
            return self.url(word);
        }
        let Some(text) = word.literal() else { return self.unknown_machine(word, true) };
        let machine = super::copy::machine(&text).filter(|machine| text.contains('@') || machine.contains('.'));
        self.host(machine.unwrap_or_default(), word.span);
    }

    fn operands(&mut self, base: &str, shape: &str, split: &Split<'_>) {
        let words = &split.operands;
        match shape {
            "u" if base == "curl" => words.iter().flat_map(|word| urls(word)).for_each(|url| self.url(&url)),
            "u" => words.iter().for_each(|word| self.url(word)),
            "http" => self.http(words),
            "h" | "h1" => self.hosts(words, shape == "h1"),
            "dns" => words.iter().for_each(|word| self.name(word)),
            "at" => words.iter().for_each(|word| match word.literal() {
                Some(text) => self.host(text.rsplit_once('@').map_or("", |(_, host)| host), word.span),
                None => self.add(NetTarget::Unknown, word.span),
            }),
            "ssl" => {
                let to = words.first().and_then(|word| word.literal());
                if matches!(to.as_deref(), Some("s_client" | "s_time")) {
                    words.iter().skip(1).for_each(|word| self.host_port(word));
                }
            }
            "far" | "far1" => {
                let count = if shape == "far" { words.len() } else { 1 };
                words.iter().take(count).for_each(|word| self.git_remote(word));
            }
            "share" => words.iter().for_each(|word| self.share(word)),
            "remote" | "sync" => self.remote(base, words),
            "db" => words.iter().for_each(|word| self.database(base, word)),
            "image" => self.image(words),
            "go" | "text" | "aws" | "n" => {
                if shape == "go" {
                    self.modules(words);
                }
                self.settings(words);
                self.package(words);
                words.iter().for_each(|word| self.urls_in(word));
            }
            "ref" => words.iter().for_each(|word| self.reference(word)),
            "r" | "w" | "r1" => words.iter().filter(|word| is_url(word)).for_each(|word| self.url(word)),
            "socat" => words.iter().for_each(|word| self.socat(word)),
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

    fn remote(&mut self, base: &str, words: &[&Word]) {
        for (at, word) in words.iter().enumerate() {
            let text = word.literal().unwrap_or_default();
            if base == "rclone" {
                self.urls_in(word);
            } else if is_url(word) {
                self.url(word);
            } else if word.literal().is_none() {
                // `scp` and `sftp` always go somewhere else.
                let elsewhere = base != "rsync" && (base == "sftp" || at + 1 == words.len());
                self.unknown_machine(word, elsewhere);
            } else if let Some(machine) = super::copy::machine(&text) {
                self.host(machine, word.span);
            } else if base == "sftp" && at == 0 {
                self.host_port(word);
            }
        }
    }

    /// A URL, `host=x dbname=y`, or `host/name`.
    fn database(&mut self, base: &str, word: &Word) {
        let Some(text) = word.literal() else {
            return if is_url(word) { self.url(word) } else { self.unknown_machine(word, true) };
        };
        if is_url(word) {
            self.url(word);
        } else if text.contains('=') {
            let keys = text.split_whitespace().filter_map(|pair| pair.split_once('='));
            let hosts = keys.filter(|(key, host)| key.starts_with("host") && !host.starts_with('/'));
            hosts
                .flat_map(|(_, hosts)| hosts.split(','))
                .for_each(|host| self.host(host.trim_matches('\''), word.span));
        } else if base.starts_with("mongo") {
            let first = text.split('/').next().unwrap_or_default();
            if first.contains(['.', ':']) && !text.ends_with(".js") {
                self.host(machine(first), word.span);
            }
        }
    }

    /// `TCP:host:port`, `PROXY:proxy:host:port`.
    fn socat(&mut self, word: &Word) {
        let Some(text) = word.literal() else { return };
        let mut parts = text.split([':', ',']);
        let kind = parts.next().unwrap_or_default().to_uppercase();
        let count = match kind.as_str() {
            kind if kind.contains("LISTEN") => 0,
            kind if kind.starts_with("PROXY") || kind.starts_with("SOCKS") => 2,
            kind if ["TCP", "UDP", "OPENSSL", "SSL", "SCTP"].iter().any(|known| kind.starts_with(known)) => 1,
            _ => 0,
        };
        parts.take(count).for_each(|host| self.host(host, word.span));
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
