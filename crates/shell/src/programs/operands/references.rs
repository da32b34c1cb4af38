//! Hosts in operands: copies, databases, `socat`, and references to images, modules and packages (R77).

use writ_core::Span;

use crate::programs::entries::words::Role;
use crate::programs::operands::net::{Nets, machine};
use crate::programs::operands::table::Split;
use crate::shape::{is_url, text_word};
use crate::word::Word;

impl Nets {
    /// `docker login registry.example`, and the registries of images (R77).
    pub fn image(&mut self, base: &str, split: &Split<'_>) {
        let words = split.operands.as_slice();
        // `docker build --push -t registry.example/image .`
        if split.flags.iter().any(|flag| flag == "--push") {
            let tags = split.values.iter().filter(|(role, _)| *role == Role::Image);
            tags.for_each(|(_, tag)| self.pushed(base, tag));
        }
        let text = |at: usize| words.get(at).and_then(|word| word.literal()).unwrap_or_default();
        let grouped = matches!(
            text(0).as_str(),
            "image" | "images" | "container" | "manifest" | "buildx" | "imagetools" | "artifact"
        );
        let verb = text(usize::from(grouped));
        let named = match verb.as_str() {
            "pull" | "push" | "inspect" | "annotate" | "delete" | "copy" | "fetch" | "cp" | "sign" | "verify" => {
                words.len()
            }
            // A value of an option that is not listed may stand in front.
            "run" | "create" | "from" => 2,
            _ => 0,
        };
        for (at, word) in words.iter().skip(1 + usize::from(grouped)).enumerate() {
            let text = word.literal().unwrap_or_default();
            if is_url(word) {
                self.url(word);
            } else if matches!(verb.as_str(), "login" | "logout") && text.contains(['.', ':']) {
                self.host(machine(&text), word.span);
            } else if at < named && verb == "push" {
                self.pushed(base, word);
            } else if at < named {
                self.reference(word);
            }
        }
    }

    /// An image's registry, where it names one: `registry.example/team/image:tag`. Says whether it does.
    pub fn reference(&mut self, word: &Word) -> bool {
        let text = word.literal().unwrap_or_else(|| crate::shape::literal_prefix(word));
        let Some((registry, rest)) = text.split_once('/') else { return false };
        // `container:/path` is no registry.
        let path = text.starts_with(['.', '/', '~', '-', '@']) || rest.starts_with('/') || registry.ends_with(':');
        let named = !path && (registry.contains(['.', ':']) || registry == "localhost");
        if named {
            self.host(machine(registry), word.span);
        }
        named
    }

    /// Where an image goes: to Docker's own registry by its name alone, for other programs where their settings say.
    fn pushed(&mut self, base: &str, word: &Word) {
        if self.reference(word) {
            return;
        }
        if base == "docker" && word.literal().is_some() {
            self.host("docker.io", word.span);
        } else {
            self.unknown(word.span);
        }
    }

    /// Emacs goes to another machine for `/method:user@host#port:/path`, over several for `/ssh:a|sudo:b:/path`.
    pub fn emacs_file(&mut self, word: &Word) {
        const METHODS: &str = "- ssh sshx scp scpx sftp rsync rsh rcp remsh nc telnet plink plinkx pscp psftp fcp krlogin \
            ksu smb ftp davs dav rclone sshfs sudo su doas sudoedit sg";
        let text = word.literal().unwrap_or_else(|| crate::shape::literal_prefix(word));
        let Some(rest) = text.strip_prefix('/').filter(|rest| rest.contains(':')) else { return };
        if rest.split([':', '/']).next().is_some_and(|first| first.contains('@')) {
            return self.host(machine(rest.split('/').next().unwrap_or_default()), word.span);
        }
        for hop in rest.split('|') {
            let Some((method, place)) = hop.split_once(':') else { return };
            if !METHODS.split_whitespace().any(|known| known == method) {
                return;
            }
            if word.literal().is_none() && !place.contains(':') {
                return self.unknown(word.span);
            }
            let name = place.split(['#', '/']).next().unwrap_or_default();
            self.host(machine(name), word.span);
        }
    }

    /// Where an editor's window is: `ssh-remote+host`, also in `vscode-remote://ssh-remote+host/path`.
    pub fn editor_remote(&mut self, word: &Word) {
        let text = word.literal().unwrap_or_else(|| crate::shape::literal_prefix(word));
        let place = text.strip_prefix("vscode-remote://");
        if place.is_none() && text.contains("://") {
            return self.url(word);
        }
        let place = place.unwrap_or(&text).split('/').next().unwrap_or_default().replace("%2B", "+");
        match place.split_once('+') {
            Some(("wsl" | "dev-container" | "attached-container", _)) => {}
            // What begins with `7b22` is JSON in hexadecimal digits.
            Some(("ssh-remote", name)) if !name.is_empty() && !name.starts_with("7b22") => {
                self.host(machine(name), word.span);
            }
            _ => self.unknown(word.span),
        }
    }

    /// An archive on another machine: `host:path`, unless a slash stands in front of the colon.
    pub fn archive(&mut self, word: &Word) {
        match word.literal() {
            Some(text) => self.host(super::copy::machine(&text).unwrap_or_default(), word.span),
            None => self.unknown_machine(word, false),
        }
    }

    /// rclone's `remote:path`, where its settings say what the remote is, and `:sftp,host=name:path`.
    fn cloud(&mut self, word: &Word) {
        let text = word.literal().unwrap_or_else(|| crate::shape::literal_prefix(word));
        if let Some(backend) = text.strip_prefix(':') {
            let setting = |name: &str| {
                backend
                    .split_once(name)
                    .map(|(_, rest)| rest.trim_start_matches(['\'', '"']).split([',', '\'', '"']).next())
            };
            let url = setting("url=").or_else(|| setting("endpoint=")).flatten();
            match (setting("host=").flatten(), url) {
                (Some(name), _) if word.literal().is_some() => self.host(machine(name), word.span),
                (None, Some(url)) if url.contains("://") => self.url(&text_word(url, word.span)),
                _ => self.unknown(word.span),
            }
        } else if super::copy::machine(&text).is_some() {
            self.unknown(word.span);
        } else if word.literal().is_none() {
            self.unknown_machine(word, true);
        }
    }

    /// `go get module.example/path@version`: what is fetched from somewhere else.
    pub fn modules(&mut self, words: &[&Word]) {
        let verb = words.first().and_then(|word| word.literal()).unwrap_or_default();
        for word in words.iter().skip(1) {
            let text = word.literal().unwrap_or_default();
            let fetched = match verb.as_str() {
                "get" => true,
                "install" | "run" | "mod" | "list" => text.contains('@'),
                _ => false,
            };
            let (module, _) = text.split_once('@').unwrap_or((&text, ""));
            let first = module.split('/').next().unwrap_or_default();
            let odd = text.starts_with(['.', '/', '-'])
                || text.contains("://")
                || text.contains('=')
                || first.ends_with(".go");
            if fetched && !odd && first.contains('.') {
                self.host(first, word.span);
            }
        }
    }

    /// `npm install github:user/project`, `pip install x@git@host:path`, `nix run github:user/project`
    pub fn package(&mut self, words: &[&Word]) {
        const FORGES: [(&str, &str); 4] = [
            ("github", "github.com"),
            ("gitlab", "gitlab.com"),
            ("bitbucket", "bitbucket.org"),
            ("gist", "gist.github.com"),
        ];
        for word in words.iter().filter(|word| !is_url(word)) {
            let text = word.literal().unwrap_or_default();
            let own = text.rsplit_once("@git@").map(|(_, rest)| rest).or_else(|| text.strip_prefix("git@"));
            if let Some((machine, _)) = own.and_then(|rest| rest.split_once(':')) {
                self.host(machine, word.span);
                continue;
            }
            let tail = text.rsplit('@').next().unwrap_or_default();
            let (kind, _) = tail.split_once(':').unwrap_or_default();
            if let Some((_, forge)) = FORGES.iter().find(|(name, _)| *name == kind) {
                self.host(forge, word.span);
            }
        }
    }

    /// `npm config set proxy host:port`, `go env -w GOPROXY=host`, `pip config set global.index-url …`
    pub fn settings(&mut self, words: &[&Word]) {
        let text = |word: &Word| word.literal().unwrap_or_default();
        let set = words.iter().take(3).any(|word| matches!(text(word).as_str(), "config" | "env" | "c" | "set"));
        if !set {
            return;
        }
        let about_hosts = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["proxy", "registry", "index", "mirror", "channel", "endpoint", "source", "url", "host"]
                .iter()
                .any(|it| name.contains(it))
        };
        let pairs = words.iter().zip(words.iter().skip(1)).map(|(name, value)| (text(name), text(value), value.span));
        let joined = words.iter().filter_map(|word| {
            let whole = text(word);
            whole.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned(), word.span))
        });
        let found: Vec<(String, String, Span)> = pairs.chain(joined).filter(|(name, ..)| about_hosts(name)).collect();
        for (_, value, span) in found {
            for one in value.split([',', '|']).filter(|one| !one.contains("://")) {
                if one.contains(['.', ':']) && !one.contains('=') && !one.starts_with(['.', '/', '~']) {
                    self.host(machine(one), span);
                }
            }
        }
    }

    pub fn remote(&mut self, base: &str, words: &[&Word]) {
        for (at, word) in words.iter().enumerate() {
            let text = word.literal().unwrap_or_default();
            if is_url(word) {
                self.url(word);
            } else if base == "rclone" {
                self.cloud(word);
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
    pub fn database(&mut self, base: &str, word: &Word) {
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
    pub fn socat(&mut self, word: &Word) {
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
