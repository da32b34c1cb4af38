//! Rules of `grants` as values that outlive their policy: for what holds a program while it runs.
//!
//! Owns their written form, and what they say of a request and of a variable. Refuses to guess: a URL that servers read in different ways
//! may be any on its host. Invariant: what is held says of a whole URL what the judge of calls says of it. Page: `spec/grants.md`.

use serde::{Deserialize, Serialize};

use super::{Grants, Kind, Lists, Pattern, vault};
use crate::rules::Reading;
use crate::url;
use crate::web::{self, Stored, Web};

/// What refuses a secret that nothing grants.
const SECRETS: &str = "/grants/secrets/allow";

/// A rule about a variable, or about something that has a URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct GrantRule(Pattern);

/// Its form in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    pointer: String,
    text: String,
    /// It stands in a list of what is allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    narrow: bool,
}

impl TryFrom<Written> for GrantRule {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { pointer, text, narrow } = written;
        let reading = if narrow { Reading::Narrow } else { Reading::Wide };
        let kind = match text.split_once(':') {
            Some(("env" | "vault", _)) => Kind::Secrets,
            Some((scheme, _)) if scheme.to_ascii_lowercase().starts_with("http") => Kind::Apis,
            Some(("ws" | "wss", _)) => Kind::Apis,
            _ => Kind::Storage,
        };
        let pattern = Pattern::parse(kind, pointer, &text, "/", reading);
        pattern.map(Self).ok_or_else(|| format!("`{text}` is no pattern of a variable or a URL"))
    }
}

impl From<GrantRule> for Written {
    fn from(rule: GrantRule) -> Self {
        let Pattern { pointer, text, reading, .. } = rule.0;
        Self { pointer, text, narrow: reading == Reading::Narrow }
    }
}

impl PartialEq for GrantRule {
    fn eq(&self, other: &Self) -> bool {
        let parts = |rule: &Self| (rule.0.pointer.clone(), rule.0.text.clone(), rule.0.reading);
        parts(self) == parts(other)
    }
}

impl Eq for GrantRule {}

impl GrantRule {
    /// The pattern as it is written, with its scheme.
    pub fn pattern(&self) -> &str {
        &self.0.text
    }

    /// Whether it is about a variable of this name.
    pub fn names_variable(&self, name: &str) -> bool {
        // A slash ends no segment of a name.
        self.0.matches(&format!("env:{}", name.replace('/', "_")))
    }
}

/// What one policy grants of what has a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebGrants {
    #[serde(default, skip_serializing_if = "WebLists::is_empty")]
    apis: WebLists,
    #[serde(default, skip_serializing_if = "WebLists::is_empty")]
    storage: WebLists,
    /// Of the secrets, paths of Vault.
    #[serde(default, skip_serializing_if = "WebLists::is_empty")]
    vault: WebLists,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WebLists {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<GrantRule>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<GrantRule>,
}

impl WebLists {
    fn of(lists: &Lists, about: impl Fn(&Pattern) -> bool) -> Self {
        let rules = |patterns: &Vec<Pattern>| -> Vec<GrantRule> {
            patterns.iter().filter(|pattern| about(pattern)).cloned().map(GrantRule).collect()
        };
        Self { allow: lists.allow.as_ref().map(rules), deny: rules(&lists.deny) }
    }

    const fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    fn denying(&self, test: impl Fn(&Pattern) -> bool) -> Option<&str> {
        self.deny.iter().find(|rule| test(&rule.0)).map(|rule| rule.0.pointer.as_str())
    }

    /// Whether its list has what passes; `None` where there is no list.
    fn allows(&self, test: impl Fn(&Pattern) -> bool) -> Option<bool> {
        self.allow.as_ref().map(|allow| allow.iter().any(|rule| test(&rule.0)))
    }
}

impl WebGrants {
    /// Whether nothing is ruled.
    pub const fn is_empty(&self) -> bool {
        self.apis.is_empty() && self.storage.is_empty() && self.vault.is_empty()
    }

    /// The pointer of what refuses a request for a path of a host; the path begins with `/` and may have a query.
    pub fn refusal(&self, (scheme, host, port): (&str, &str, Option<u16>), path: &str) -> Option<&str> {
        let authority = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let web = path.starts_with('/').then(|| Web::read(&format!("{scheme}://{authority}{path}"))).flatten();
        let Some(web) = web else { return self.unclear(host, port, path) };
        let spelling = web.spelling();
        if let Some(refused) = self.vault_refusal(&web) {
            return Some(refused);
        }
        let mut granted = !web.stores().is_empty();
        for store in web.stores() {
            match self.store_refusal(store, &spelling) {
                Ok(allowed) => granted &= allowed,
                Err(refused) => return Some(refused),
            }
        }
        if granted {
            return None;
        }
        let wide = web.wide();
        let absent = self.apis.allows(|rule| rule.matches(&spelling)) == Some(false);
        self.apis.denying(|rule| wide.iter().any(|text| rule.matches(text))).or(absent.then_some("/grants/apis/allow"))
    }

    /// What refuses something in a store; else whether it is granted, and needs no grant as an API.
    fn store_refusal(&self, store: &Stored, spelling: &str) -> Result<bool, &str> {
        let texts = [store.address.as_str(), spelling];
        let any = |test: &dyn Fn(&str) -> bool| texts.iter().any(|text| test(text));
        let denied = |rule: &Pattern| any(&|text| rule.matches(text) || store.open && rule.may_match_below(text));
        let allowed =
            |rule: &Pattern| any(&|text| if store.open { rule.covers_below(text) } else { rule.matches(text) });
        if let Some(refused) = self.storage.denying(denied) {
            return Err(refused);
        }
        match self.storage.allows(allowed) {
            Some(false) => Err("/grants/storage/allow"),
            allowed => Ok(allowed == Some(true)),
        }
    }

    /// What refuses a path of Vault: a denied one at any host, others where a Vault most likely answers.
    fn vault_refusal(&self, web: &Web) -> Option<&str> {
        let asked = vault::asked(&web.vault_path()?);
        let denied = self.vault.denying(|rule| asked.wide.iter().any(|path| rule.matches(path)));
        let allowed = |rule: &Pattern| asked.spellings.iter().all(|path| rule.matches(path));
        let absent = || web.is_vault() && self.vault.allows(allowed) == Some(false);
        denied.or_else(|| absent().then_some(SECRETS))
    }

    /// What refuses a request whose path can be read in different ways: it may be any.
    fn unclear(&self, host: &str, port: Option<u16>, path: &str) -> Option<&str> {
        // Many a registry has such paths; not all of them are denied for a Vault that may be anywhere.
        if web::is_vault(host, port) || web::is_below_v1(path) {
            let refused = self.vault.denying(|_| true);
            if refused.is_some() {
                return refused;
            }
        }
        if web::is_vault(host, port) && self.vault.allow.is_some() {
            return Some(SECRETS);
        }
        if let Some(start) = web::start_of_store(&format!("https://{host}/")) {
            let refused = self.store_refusal(&Stored { address: start, open: true }, "https:").err();
            if refused.is_some() {
                return refused;
            }
        }
        let wide = wide_starts(host, port);
        let starts = starts(host, port);
        let denied = |rule: &Pattern| wide.iter().any(|start| rule.may_match_below(start));
        let covered = |rule: &Pattern| starts.iter().all(|start| rule.covers_below(start));
        let absent = self.apis.allows(covered) == Some(false);
        self.apis.denying(denied).or(absent.then_some("/grants/apis/allow"))
    }

    /// The pointer of a rule that denies everything of a host, whatever is asked for there: of a connection that is not read, no other can
    /// be held.
    pub fn denies_host(&self, host: &str, port: Option<u16>) -> Option<&str> {
        let starts = wide_starts(host, port);
        self.apis.denying(|rule| starts.iter().any(|start| rule.covers_below(start)))
    }
}

/// The same, and at the address that its own stands for.
fn wide_starts(host: &str, port: Option<u16>) -> Vec<String> {
    let inner = url::inner_v4(host).map(|inner| starts(&inner, port));
    starts(host, port).into_iter().chain(inner.unwrap_or_default()).collect()
}

/// A host in any of the web's schemes, with its port and without.
fn starts(host: &str, port: Option<u16>) -> Vec<String> {
    let ports = [None, port];
    let each = |scheme: &'static str| {
        ports.iter().map(move |port| match port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        })
    };
    ["http", "https"].into_iter().flat_map(each).collect()
}

impl Grants {
    /// What is said of requests.
    pub fn web(&self) -> WebGrants {
        let (all, vault) = (|_: &Pattern| true, |rule: &Pattern| rule.is_of("vault:"));
        WebGrants {
            apis: WebLists::of(&self.apis, all),
            storage: WebLists::of(&self.storage, all),
            vault: WebLists::of(&self.secrets, vault),
        }
    }

    /// The variables that must not be used.
    pub fn refused_variables(&self) -> Vec<GrantRule> {
        let about = |rule: &&Pattern| rule.is_of("env:");
        self.secrets.deny.iter().filter(about).cloned().map(GrantRule).collect()
    }
}

#[cfg(test)]
mod tests {
    use writ_core::json;

    use super::*;
    use crate::Policy;

    fn grants(grants: &str) -> Policy {
        Policy::parse(format!(r#"{{"version":"1.0","name":"n","grants":{grants}}}"#).as_bytes(), "/w").unwrap()
    }

    /// As it comes back from a file.
    fn kept(policy: &Policy) -> WebGrants {
        let web = policy.web_grants();
        let back: WebGrants = json::from_slice(json::to_canonical(&web).as_bytes()).unwrap();
        assert_eq!(back, web);
        back
    }

    #[test]
    fn requests_are_judged_as_urls_of_calls_are() {
        let web = kept(&grants(
            r#"{"apis":{"allow":["https://api.example/v1/*","http://plain.example"],
                        "deny":["https://api.example/v1/admin/*","https://evil.example/*"]},
                "storage":{"deny":["s3://bucket/secret/*"]}}"#,
        ));
        let ask = |scheme, host, port, path| web.refusal((scheme, host, port), path);
        assert_eq!(ask("https", "api.example", None, "/v1/messages?key=1"), None);
        assert_eq!(ask("https", "api.example", None, "/v1/admin/users"), Some("/grants/apis/deny/0"));
        // Another spelling, scheme or port of what is denied.
        for (scheme, port, path) in [
            ("https", None, "/v1/x/../admin/users"),
            ("https", None, "/v1/%61dmin/users"),
            ("http", None, "/v1/admin/users"),
            ("https", Some(8443), "/v1/admin/users"),
        ] {
            assert_eq!(ask(scheme, "api.example", port, path), Some("/grants/apis/deny/0"), "{scheme} {port:?} {path}");
        }
        // A path that servers read in different ways may be any.
        for path in ["/v1//admin/users", "/v1%2fadmin", "*", ""] {
            assert_eq!(ask("https", "api.example", None, path), Some("/grants/apis/deny/0"), "{path}");
        }
        assert_eq!(ask("https", "api.example", None, "/v2/x"), Some("/grants/apis/allow"));
        assert_eq!(ask("https", "api.example", Some(8443), "/v1/x"), Some("/grants/apis/allow"));
        assert_eq!(ask("http", "api.example", None, "/v1/x"), Some("/grants/apis/allow"));
        assert_eq!(ask("http", "plain.example", None, "/any/where"), None);
        assert_eq!(ask("https", "evil.example", None, "/"), Some("/grants/apis/deny/1"));
        assert_eq!(ask("https", "bucket.s3.amazonaws.com", None, "/secret/x"), Some("/grants/storage/deny/0"));
        assert_eq!(web.denies_host("evil.example", None), Some("/grants/apis/deny/1"));
        assert_eq!(web.denies_host("evil.example", Some(8443)), Some("/grants/apis/deny/1"));
        assert_eq!((web.denies_host("api.example", None), web.denies_host("other.example", None)), (None, None));
        assert_eq!(WebGrants::default().refusal(("https", "x.example", None), "/"), None);
    }

    #[test]
    fn what_is_granted_of_storage_needs_no_grant_as_an_api() {
        let web = kept(&grants(r#"{"apis":{"allow":[]},"storage":{"allow":["s3://bucket/public/*"]}}"#));
        assert_eq!(web.refusal(("https", "bucket.s3.amazonaws.com", None), "/public/x"), None);
        let refused = web.refusal(("https", "bucket.s3.amazonaws.com", None), "/other");
        assert_eq!(refused, Some("/grants/storage/allow"));
        assert_eq!(web.refusal(("https", "x.example", None), "/"), Some("/grants/apis/allow"));
    }

    #[test]
    fn stores_are_known_however_they_are_asked() {
        let web = kept(&grants(r#"{"apis":{"allow":[]},"storage":{"allow":["gs://b/*"],"deny":["gs://b/keys/*"]}}"#));
        let ask = |path| web.refusal(("https", "storage.googleapis.com", None), path);
        let deny = Some("/grants/storage/deny/0");
        assert_eq!(ask("/storage/v1/b/b/o/open%2Fx?alt=media"), None);
        assert_eq!(ask("/storage/v1/b/b/o/keys%2Fx"), deny);
        assert_eq!(ask("/%62/%6beys/x"), deny);
        // What an upload's body names, and a path that is read in different ways, may be what is denied.
        assert_eq!(ask("/upload/storage/v1/b/b/o"), deny);
        assert_eq!(ask("//b/open/x"), deny);
        assert_eq!(ask("/storage/v1/b/other/o/x"), Some("/grants/storage/allow"));
    }

    #[test]
    fn paths_of_vault_are_judged_as_in_a_line() {
        let web = kept(&grants(
            r#"{"secrets":{"allow":["env:X","vault:secret/data/open/*"],"deny":["vault:secret/data/prod/*"]}}"#,
        ));
        let ask = |host, port, path| web.refusal(("http", host, port), path);
        let (deny, allow) = (Some("/grants/secrets/deny/0"), Some("/grants/secrets/allow"));
        for (host, port, path, refused) in [
            ("vault.corp", None, "/v1/secret/data/open/x?version=2", None),
            ("vault.corp", None, "/v1/secret/data/prod/x", deny),
            ("10.0.0.1", Some(8200), "/v1/secret/data/prod/x", deny),
            // A Vault that nothing shows to be one, and other spellings.
            ("keys.corp", None, "/v1/secret/data/prod/x", deny),
            ("keys.corp", None, "/v1/secret/data/%70rod/x", deny),
            ("keys.corp", None, "/v1/secret/data/x/../prod/x", deny),
            ("keys.corp", None, "/v1//secret/data/prod/x", deny),
            ("keys.corp", None, "//%761/secret%2fdata/prod/x", deny),
            ("vault.corp", None, "/v1/other/x", allow),
            ("vault.corp", None, "/ui/", None),
            ("api.corp", None, "/v1/messages", None),
            ("registry.corp", None, "/@types%2fnode", None),
        ] {
            assert_eq!(ask(host, port, path), refused, "{host} {port:?} {path}");
        }
        let none = kept(&grants(r#"{"apis":{"deny":["https://evil.example"]}}"#));
        assert_eq!(none.refusal(("http", "vault.corp", None), "/v1/secret/data/prod/x"), None);
    }

    #[test]
    fn variables_are_named_by_patterns() {
        let policy = grants(r#"{"secrets":{"deny":["env:DATABASE_*","env:CI_[A-F]","vault:x/*","file:x"]}}"#);
        let rules = policy.refused_variables();
        let back: Vec<GrantRule> = json::from_slice(json::to_canonical(&rules).as_bytes()).unwrap();
        let named = |name: &str| back.iter().any(|rule| rule.names_variable(name));
        assert_eq!((rules.len(), &back), (2, &rules));
        assert!(named("DATABASE_URL") && named("CI_B") && named("DATABASE_a/b"));
        assert!(!named("DATABASE") && !named("CI_Z") && !named("PATH") && !named("x/y"));
    }
}
