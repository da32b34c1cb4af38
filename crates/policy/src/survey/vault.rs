//! Paths of Vault that its own program is given, and those of its web addresses, against `grants.secrets`.

use writ_core::Span;

use super::Survey;
use super::resources::Resource;
use crate::grants::vault::{Asked, asked, asked_of_store};
use crate::grants::{Kind, Pattern};
use crate::web::{self, Web};

/// Options with a value behind them.
const VALUES: [&str; 23] = [
    "address",
    "agent-address",
    "ca-cert",
    "ca-path",
    "client-cert",
    "client-key",
    "header",
    "mfa",
    "namespace",
    "ns",
    "tls-server-name",
    "unlock-key",
    "wrap-ttl",
    "field",
    "format",
    "version",
    "versions",
    "cas",
    "options",
    "max-versions",
    "delete-version-after",
    "custom-metadata",
    "method",
];

impl Survey<'_> {
    /// `vault kv get -mount=secret path`, `vault read path`
    pub(super) fn vault(&mut self, arguments: &[Option<String>], span: Option<Span>) {
        let mut operands: Vec<Option<&str>> = Vec::new();
        let (mut mount, mut rest) = (None, arguments.iter().map(Option::as_deref));
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.and_then(|text| text.strip_prefix('-')) else {
                operands.push(argument);
                continue;
            };
            let flag = flag.trim_start_matches('-');
            match flag.split_once('=') {
                Some(("mount", value)) => mount = Some(Some(value)),
                Some(_) => {}
                None if flag == "mount" => mount = Some(rest.next().flatten()),
                None if VALUES.contains(&flag) => drop(rest.next()),
                None => {}
            }
        }
        let (path, part) = match operands.as_slice() {
            [Some("kv"), Some("metadata"), _, path, ..] | [Some("kv"), Some("list"), path, ..] => {
                (*path, Some("metadata"))
            }
            [Some("kv"), _, path, ..] => (*path, Some("data")),
            [Some("read" | "write" | "patch" | "list" | "delete" | "unwrap"), path, ..] => (*path, None),
            _ => return,
        };
        let (Some(path), Some(mount)) = (path, mount.map_or(Some(None), |mount| mount.map(Some))) else {
            return self.any_vault_path(true, span);
        };
        let path = path.trim_matches('/');
        let asked = part
            .map_or_else(|| asked(path), |part| asked_of_store(mount.map(|mount| mount.trim_matches('/')), path, part));
        self.vault_path(&asked, span);
    }

    /// `https://vault/v1/secret/data/x`: at a host that nothing shows to be a Vault, a denied path is asked about.
    pub(super) fn vault_address(&mut self, web: &Web, span: Option<Span>) {
        let Some(path) = web.vault_path() else { return };
        let asked = asked(&path);
        if web.is_vault() {
            return self.vault_path(&asked, span);
        }
        self.perhaps_denied(&path, &asked, span);
    }

    /// `$VAULT_ADDR/v1/secret/data/x`: U+0001 stands for what is not known.
    pub(super) fn vault_anywhere(&mut self, text: &str, span: Option<Span>) {
        let path = text.split_once("/v1/").map(|(_, path)| path.split(['?', '#']).next().unwrap_or_default());
        if let Some(path) = path.filter(|path| !path.contains('\u{1}')) {
            self.perhaps_denied(path, &asked(path), span);
        }
    }

    fn perhaps_denied(&mut self, path: &str, asked: &Asked, span: Option<Span>) {
        let lists = self.policy.grants.of(Kind::Secrets);
        let named = |rule: &&Pattern| asked.wide.iter().any(|path| rule.matches(path));
        let hits: Vec<_> = lists.deny.iter().filter(named).map(|rule| (rule.pointer.clone(), false)).collect();
        self.object(Kind::Secrets, &format!("vault:{path}"), span, hits, false, true);
    }

    /// What follows is not known: at a Vault it may be any path.
    pub(super) fn open_vault_address(&mut self, known: &str, span: Option<Span>) {
        let place = web::Place::of(known);
        if place.is_some_and(|place| place.is_vault && (place.is_whole_host || place.is_below_v1)) {
            self.any_vault_path(true, span);
        }
    }

    /// Servers read the path in different ways: it may be any.
    pub(super) fn odd_vault_address(&mut self, text: &str, span: Option<Span>) {
        if let Some(place) = web::Place::of(text).filter(|place| place.is_vault || place.is_below_v1) {
            self.any_vault_path(place.is_vault, span);
        }
    }

    /// A path that is not known may be any that a pattern names.
    fn any_vault_path(&mut self, vault: bool, span: Option<Span>) {
        let about = |rule: &Pattern| rule.is_of("vault:");
        self.label_resource(Kind::Secrets, |rule| about(rule).then_some(false));
        let lists = self.policy.grants.of(Kind::Secrets);
        let hit = |rule: &Pattern| (rule.pointer.clone(), vault && rule.covers_below("vault:"));
        let hits = lists.deny.iter().filter(|rule| about(rule)).map(hit).collect();
        let allow = lists.allow.as_deref().filter(|_| vault);
        let refused = allow.is_some_and(|allow| !allow.iter().any(|rule| rule.covers_below("vault:")));
        let perhaps = allow.is_some_and(|allow| allow.iter().any(about));
        self.object(Kind::Secrets, "vault:…", span, hits, refused, perhaps);
    }

    /// A path that Vault is asked for.
    fn vault_path(&mut self, asked: &Asked, span: Option<Span>) {
        let shown = asked.spellings.first().map_or("vault:", String::as_str);
        let resource = Resource {
            kind: Kind::Secrets,
            spellings: &asked.spellings,
            wide: &asked.wide,
            open: false,
            any: !asked.all,
            shown,
        };
        self.resource(&resource, span);
    }
}
