//! Addresses of stores: in arguments, as `aws s3api` takes them apart, and behind addresses of the web. Page: `spec/grants.md`.

use writ_core::Span;
use writ_shell::{Command, Word};

use super::Survey;
use super::resources::{Resource, shown};
use crate::grants::{Kind, Pattern};
use crate::web::Web;

/// Schemes of stores, beside those that patterns name.
const STORES: [&str; 14] =
    ["s3", "s3a", "s3n", "gs", "gcs", "az", "abfs", "abfss", "wasb", "wasbs", "r2", "b2", "oss", "hdfs"];

impl Survey<'_> {
    /// URLs of stores inside an argument.
    pub(super) fn word_stores(&mut self, word: &Word, deep: bool, span: Span) {
        self.text_stores(&shown(word), deep, span);
    }

    /// URLs of stores inside a text.
    pub(super) fn text_stores(&mut self, text: &str, deep: bool, span: Span) {
        for piece in text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | '(' | ')' | ';')) {
            if piece.split_once("://").is_some_and(|(scheme, _)| self.is_store(scheme)) {
                // What a pattern stands for, and what lies below, is not known.
                let text = match piece.find(['*', '?']) {
                    Some(at) => format!("{}\u{1}", piece.get(..at).unwrap_or_default()),
                    None if deep => format!("{}/\u{1}", piece.trim_end_matches('/')),
                    None => piece.to_owned(),
                };
                self.url_text(&text, Some(span));
            }
        }
    }

    /// `aws s3 rm "$X"`: an operand that is not known is an address where no other one is.
    pub(super) fn unknown_store(&mut self, program: &str, command: &Command, span: Option<Span>) {
        let mut texts = command.words.iter().skip(1).map(shown).filter(|text| !text.starts_with('-'));
        let scheme = match program {
            "aws" if texts.next().as_deref() == Some("s3") => "s3",
            "gsutil" => "gs",
            _ => return,
        };
        let _subcommand = texts.next();
        let operands: Vec<String> = texts.collect();
        let handed = operands.is_empty() && command.via.iter().any(|via| via == "xargs");
        let open =
            operands.iter().any(|text| text.starts_with('\u{1}')) && !operands.iter().any(|text| text.contains("://"));
        if handed || open {
            self.url_text(&format!("{scheme}://\u{1}"), span);
        }
    }

    /// Whether addresses of that scheme are those of a store.
    pub(super) fn is_store(&self, scheme: &str) -> bool {
        let scheme = scheme.to_ascii_lowercase();
        let lists = self.policy.grants.of(Kind::Storage);
        let named = |pattern: &Pattern| pattern.may_match_below(&format!("{scheme}:"));
        let labelled = || self.policy.flow.stores().any(named);
        let plain = !matches!(scheme.as_str(), "http" | "https" | "file" | "ssh" | "git");
        (lists.any() || self.policy.flow.any())
            && plain
            && (STORES.contains(&scheme.as_str())
                || lists.deny.iter().chain(lists.allow.iter().flatten()).any(named)
                || labelled())
    }

    /// `aws s3api --bucket B --key K`
    pub(super) fn bucket(&mut self, texts: &[Option<String>], span: Option<Span>) {
        let value = |flag: &str| {
            let joined =
                texts.iter().flatten().find_map(|text| text.strip_prefix(flag)?.strip_prefix('=').map(str::to_owned));
            let next = || {
                let at = texts.iter().position(|text| text.as_deref() == Some(flag))?;
                texts.get(at + 1).cloned().flatten()
            };
            joined.or_else(next)
        };
        let text = match (value("--bucket"), value("--key")) {
            (Some(bucket), Some(key)) => format!("s3://{bucket}/{key}"),
            (Some(bucket), None) => format!("s3://{bucket}/\u{1}"),
            (None, _) => "s3://\u{1}".to_owned(),
        };
        self.url_text(&text, span);
        if let Some(source) = value("--copy-source") {
            self.url_text(&format!("s3://{}", source.trim_start_matches('/')), span);
        }
    }

    /// Holds an address of the web to what is granted of storage, where a store is spoken to by it. Says whether what is granted of storage names all of it.
    pub(super) fn stored(&mut self, web: &Web, open: bool, span: Option<Span>) -> bool {
        let lists = self.policy.grants.of(Kind::Storage);
        if !lists.any() && !self.policy.flow.any() {
            return false;
        }
        let mut granted = !web.stores().is_empty();
        for store in web.stores() {
            let open = open || store.open;
            let spellings = [store.address.clone(), web.spelling()];
            let covers = |pattern: &Pattern| {
                spellings.iter().any(|text| if open { pattern.covers_below(text) } else { pattern.matches(text) })
            };
            granted &= lists.allow.as_deref().is_some_and(|allow| allow.iter().any(covers));
            self.store(&spellings, open, span);
        }
        granted
    }

    /// Something in a store; the first spelling is its own.
    pub(super) fn store(&mut self, spellings: &[String], open: bool, span: Option<Span>) {
        let own = spellings.first().map_or("", String::as_str);
        let shown = own.split('/').take(3).collect::<Vec<_>>().join("/");
        let resource = Resource { kind: Kind::Storage, spellings, wide: &[], open, any: true, shown: &shown };
        self.resource(&resource, span);
    }
}
