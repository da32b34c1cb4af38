//! Paths of Vault that its own program is given, against `grants.secrets`.

use writ_core::Span;

use super::Survey;
use super::resources::Resource;
use crate::grants::{Kind, Pattern};

impl Survey<'_> {
    /// `vault kv get -mount=secret path`, `vault read path`
    pub(super) fn vault(&mut self, arguments: &[Option<String>], span: Option<Span>) {
        let mut operands: Vec<Option<&str>> = Vec::new();
        let (mut mount, mut rest) = (None, arguments.iter());
        while let Some(argument) = rest.next() {
            match argument.as_deref() {
                Some("-mount" | "--mount") => mount = rest.next().cloned().flatten(),
                Some(text) if text.starts_with('-') => {
                    let value = text.trim_start_matches('-').strip_prefix("mount=");
                    mount = value.map(str::to_owned).or(mount);
                }
                text => operands.push(text),
            }
        }
        let path = match operands.as_slice() {
            [Some("kv"), Some("metadata"), _, path, ..] | [Some("kv"), _, path, ..] => *path,
            [Some("read" | "write" | "list" | "delete" | "unwrap"), path, ..] => *path,
            _ => return,
        };
        let kv = operands.first() == Some(&Some("kv"));
        let folder = mount.as_ref().map(|mount| format!("{}/", mount.trim_matches('/'))).unwrap_or_default();
        let Some(path) = path.map(|path| format!("{folder}{}", path.trim_matches('/'))) else {
            return self.any_vault_path(span);
        };
        self.vault_path(&path, kv, span);
    }

    /// A path that is not known may be any that a pattern names.
    fn any_vault_path(&mut self, span: Option<Span>) {
        let about = |rule: &Pattern| rule.is_of("vault:");
        self.label_resource(Kind::Secrets, |rule| about(rule).then_some(false));
        let lists = self.policy.grants.of(Kind::Secrets);
        let hit = |rule: &Pattern| (rule.pointer.clone(), rule.covers_below("vault:"));
        let hits = lists.deny.iter().filter(|rule| about(rule)).map(hit).collect();
        let allow = lists.allow.as_deref();
        let refused = allow.is_some_and(|allow| !allow.iter().any(|rule| rule.covers_below("vault:")));
        let perhaps = allow.is_some_and(|allow| allow.iter().any(about));
        self.object(Kind::Secrets, "vault:…", span, hits, refused, perhaps);
    }

    /// A path that Vault is asked for.
    pub(super) fn vault_path(&mut self, path: &str, kv: bool, span: Option<Span>) {
        let mut spellings = vec![format!("vault:{path}")];
        if let Some((mount, rest)) = path.split_once('/').filter(|_| kv) {
            // Which version a mount has is not known: the second keeps values below `data`.
            spellings.extend(["data", "metadata"].map(|part| format!("vault:{mount}/{part}/{rest}")));
        }
        let shown = format!("vault:{path}");
        let resource =
            Resource { kind: Kind::Secrets, spellings: &spellings, wide: &[], open: false, any: true, shown: &shown };
        self.resource(&resource, span);
    }
}
