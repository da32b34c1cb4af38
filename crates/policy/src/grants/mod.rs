//! What `grants` names: secrets, APIs and storage that an agent may or must not use.
//!
//! Owns the patterns and what each matches; finds nothing in a call itself. Refuses to guess: a pattern of no known shape matches
//! nothing and is told as not enforced. Invariant: a last `*` takes everything behind it, any other stays between slashes.
//! Page: `spec/grants.md`.

mod address;
mod kept;
mod known;
pub(crate) mod vault;

use serde::{Deserialize, Serialize};
use writ_core::json::Value;

use crate::glob::{Glob, unfold};
use crate::rules::{PathRule, Reading};

pub use kept::{GrantRule, WebGrants};
pub use known::{is_secret_file, is_secret_variable, keeps_secrets};

/// A kind of resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `env:NAME`, `file:PATH`, `vault:PATH`.
    Secrets,
    /// `https://host/path`.
    Apis,
    /// `s3://bucket/key`.
    Storage,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Secrets, Self::Apis, Self::Storage];

    /// The member's name.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Apis => "apis",
            Self::Storage => "storage",
        }
    }
}

/// What a policy grants.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    secrets: Lists,
    apis: Lists,
    storage: Lists,
    /// Entries of `deny` that can match nothing.
    pub matchless: Vec<String>,
}

/// One member's lists.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Nothing else may be used; `None` where nothing is said.
    pub allow: Option<Vec<Pattern>>,
    /// What must not be used.
    pub deny: Vec<Pattern>,
}

impl Lists {
    /// Whether anything is ruled.
    pub const fn any(&self) -> bool {
        self.allow.is_some() || !self.deny.is_empty()
    }
}

/// An entry.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Its JSON pointer.
    pub pointer: String,
    text: String,
    reading: Reading,
    matches: Matches,
}

#[derive(Clone, Debug)]
enum Matches {
    /// A text in segments, one for each way to read it.
    Text(Vec<TextPattern>),
    /// A path: files are the world's, not a text.
    File(PathRule),
}

/// One way to read a text.
#[derive(Clone, Debug)]
struct TextPattern {
    text: String,
    glob: Glob,
    /// What stands in front of everything that a last `*` takes: the folder, or the name's beginning.
    stem: Option<Glob>,
}

impl TextPattern {
    fn parse(text: &str) -> Option<Self> {
        // A host alone means all of it.
        let whole = text.split_once("://").is_some_and(|(_, rest)| !rest.trim_end_matches('/').contains('/'));
        let text = if whole { format!("{}/*", text.trim_end_matches('/')) } else { text.to_owned() };
        let stem = text.strip_suffix("/**").or_else(|| text.strip_suffix("/*"));
        let stem = stem.or_else(|| Some(text.as_str()).filter(|text| text.ends_with('*') && !text.ends_with("\\*")));
        let glob = Glob::parse(&stem.map_or_else(|| text.clone(), |stem| format!("{stem}/**"))).ok()?;
        let stem = stem.map(Glob::parse).transpose().ok()?;
        Some(Self { text, glob, stem })
    }

    fn matches(&self, text: &str) -> bool {
        self.glob.matches(text) || self.stem.as_ref().is_some_and(|stem| stem.matches(text))
    }
}

impl Pattern {
    /// Compiles one entry; `None` where nothing could ever match it.
    pub fn parse(kind: Kind, pointer: String, text: &str, root: &str, reading: Reading) -> Option<Self> {
        let written = text.to_owned();
        if let Some(path) = text.strip_prefix("file:").filter(|_| kind == Kind::Secrets) {
            let rule = PathRule::parse(pointer.clone(), path, root, reading).ok();
            let rule = rule.filter(|rule| !rule.negated && !names_variable(path))?;
            return Some(Self { pointer, text: written, reading, matches: Matches::File(rule) });
        }
        let texts = unfold(text).ok()?;
        let texts = texts.iter().flat_map(|text| address::patterns(kind, text, reading));
        let patterns: Vec<TextPattern> = texts.filter_map(|text| TextPattern::parse(&text)).collect();
        let text = if kind == Kind::Apis && !text.contains("://") { format!("https://{text}") } else { written };
        (!patterns.is_empty()).then_some(Self { pointer, text, reading, matches: Matches::Text(patterns) })
    }

    /// Whether it is about secrets of a source: `env:`, `vault:`.
    pub fn is_of(&self, source: &str) -> bool {
        self.any(|pattern| pattern.text.starts_with(source))
    }

    /// Whether it names exactly this.
    pub fn matches(&self, text: &str) -> bool {
        self.any(|pattern| pattern.matches(text))
    }

    /// Whether something that begins with these segments may be named.
    pub fn may_match_below(&self, start: &str) -> bool {
        self.any(|pattern| pattern.matches(start) || pattern.glob.leads_through(start))
    }

    /// Whether everything is named that begins with these segments.
    pub fn covers_below(&self, start: &str) -> bool {
        self.any(|pattern| pattern.glob.covers_below(start))
    }

    fn any(&self, test: impl Fn(&TextPattern) -> bool) -> bool {
        matches!(&self.matches, Matches::Text(patterns) if patterns.iter().any(test))
    }

    /// The path that it is, where it names files.
    pub const fn file(&self) -> Option<&PathRule> {
        match &self.matches {
            Matches::File(rule) => Some(rule),
            Matches::Text(_) => None,
        }
    }
}

/// Whether a path is written with a variable, which nothing puts in here.
fn names_variable(path: &str) -> bool {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{'));
    path.split('$').skip(1).any(begins)
}

impl Grants {
    /// Reads the member. What is no glob is said by `semantics`.
    pub(crate) fn read(document: &Value, root: &str) -> Self {
        let mut out = Self::default();
        for kind in Kind::ALL {
            let member = document.get("grants").and_then(|grants| grants.get(kind.member()));
            let mut list = |name: &str, reading| {
                let items = member?.get(name)?.as_array()?;
                let mut patterns = Vec::new();
                for (at, item) in items.iter().enumerate() {
                    let pointer = format!("/grants/{}/{name}/{at}", kind.member());
                    match Pattern::parse(kind, pointer.clone(), item.as_str()?, root, reading) {
                        Some(pattern) => patterns.push(pattern),
                        None if name == "deny" => out.matchless.push(pointer),
                        None => {}
                    }
                }
                Some(patterns)
            };
            let allow = list("allow", Reading::Narrow);
            let lists = Lists { allow, deny: list("deny", Reading::Wide).unwrap_or_default() };
            match kind {
                Kind::Secrets => out.secrets = lists,
                Kind::Apis => out.apis = lists,
                Kind::Storage => out.storage = lists,
            }
        }
        out
    }

    /// What is said of a kind.
    pub const fn of(&self, kind: Kind) -> &Lists {
        match kind {
            Kind::Secrets => &self.secrets,
            Kind::Apis => &self.apis,
            Kind::Storage => &self.storage,
        }
    }

    /// Whether anything is ruled.
    pub const fn any(&self) -> bool {
        self.secrets.any() || self.apis.any() || self.storage.any()
    }

    /// The files that must not be used.
    pub(crate) fn denied_files(&self) -> impl Iterator<Item = &PathRule> {
        self.secrets.deny.iter().filter_map(Pattern::file)
    }
}
