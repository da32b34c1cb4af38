//! What a `domains` entry names (R14).

use serde::{Deserialize, Serialize};

use crate::url;

/// What a `domains` entry names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct HostRule {
    /// JSON pointer of the rule.
    pub pointer: String,
    /// Lower case, without a final dot.
    pub pattern: String,
}

/// A rule as it is written down; only one that reads as a pattern is taken back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    pointer: String,
    pattern: String,
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host name, `*.host`, `host.*` or `*`")]
pub struct BadPattern(pub String);

impl TryFrom<Written> for HostRule {
    type Error = BadPattern;

    fn try_from(written: Written) -> Result<Self, BadPattern> {
        Self::parse(written.pointer, &written.pattern).ok_or(BadPattern(written.pattern))
    }
}

impl HostRule {
    /// Reads `host`, `*.host`, `host.*` or `*`. Names become what URLs make of them: lower case, Punycode, one spelling of
    /// an address.
    pub fn parse(pointer: String, text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self { pointer, pattern: text.to_owned() });
        }
        let (front, middle) = text.strip_prefix("*.").map_or(("", text), |rest| ("*.", rest));
        let (middle, back) = middle.strip_suffix(".*").map_or((middle, ""), |rest| (rest, ".*"));
        let letters = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '[' | ']');
        if !middle.chars().all(letters) {
            return None;
        }
        // `10.*` is the beginning of an address, and no address by itself.
        let plain = middle.is_ascii() && !(front.is_empty() && back.is_empty());
        let bare = !plain && middle.parse::<std::net::Ipv6Addr>().is_ok();
        let bracketed = bare.then(|| format!("[{middle}]"));
        let middle = bracketed.as_deref().unwrap_or(middle);
        let name = if plain { middle.trim_end_matches('.').to_lowercase() } else { url::name(middle)? };
        let labels =
            name.starts_with('[') || (!name.contains(':') && name.len() <= 253 && name.split('.').all(is_label));
        labels.then(|| Self { pointer, pattern: format!("{front}{name}{back}") })
    }

    /// Whether this is the bare `*`.
    pub fn is_everything(&self) -> bool {
        self.pattern == "*"
    }

    /// Whether it names every host that `other` names, as far as their texts show.
    pub fn covers(&self, other: &Self) -> bool {
        if self.is_everything() || self.pattern == other.pattern {
            return true;
        }
        match (self.pattern.strip_prefix("*."), other.pattern.strip_prefix("*.")) {
            (Some(tail), Some(inner)) => inner.strip_suffix(tail).is_some_and(|head| head.ends_with('.')),
            (None, Some(_)) => false,
            (_, None) => !other.is_everything() && !other.pattern.ends_with(".*") && self.matches(&other.pattern),
        }
    }

    /// Whether it names `host` (lower case, no final dot).
    pub fn matches(&self, host: &str) -> bool {
        if let Some(tail) = self.pattern.strip_prefix("*.") {
            return host.strip_suffix(tail).is_some_and(|head| head.len() > 1 && head.ends_with('.'));
        }
        if let Some(head) = self.pattern.strip_suffix(".*") {
            return host.strip_prefix(head).is_some_and(|tail| tail.len() > 1 && tail.starts_with('.'));
        }
        self.is_everything() || self.pattern == host
    }
}

/// Whether one part of a host's name can be one.
fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let rule = |text: &str| HostRule::parse(String::new(), text).unwrap();
        assert!(
            rule("*.x.com").matches("a.b.x.com")
                && !rule("*.x.com").matches("x.com")
                && !rule("*.x.com").matches("evilx.com")
        );
        assert!(rule("docs.*").matches("docs.python.org") && !rule("docs.*").matches("docs"));
        assert!(rule("GitHub.com.").matches("github.com"));
        assert!(rule("bücher.de").matches("xn--bcher-kva.de") && rule("*.bücher.de").matches("a.xn--bcher-kva.de"));
        let covers = |wide: &str, narrow: &str| rule(wide).covers(&rule(narrow));
        assert!(covers("*", "*.x.com") && covers("*.x.com", "a.x.com") && covers("*.x.com", "*.a.x.com"));
        assert!(covers("a.*", "a.b") && covers("a.*", "a.*") && covers("x.com", "X.com"));
        assert!(!covers("*.x.com", "x.com") && !covers("a.x.com", "*.x.com") && !covers("*.x.com", "*.bx.com"));
        assert!(!covers("*.x.com", "*") && !covers("*.x.com", "a.*") && !covers("*.a.x.com", "*.x.com"));
        assert!(rule("[0:0::1]").matches("[::1]") && rule("10.*").matches("10.0.0.1"));
        for bad in ["https://x.com", "x.com/a", "a b", "", "x.com:80", "*.*.", "@x", "a..b", ".a", "*a.b", "*.*", "**"]
        {
            assert_eq!(HostRule::parse(String::new(), bad), None, "{bad}");
        }
    }
}
