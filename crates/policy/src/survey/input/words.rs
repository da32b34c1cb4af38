//! Words inside longer texts: what they name may be prose, so they ask at most.

use std::collections::HashSet;

use writ_shell::Access;

use super::file_url;
use super::members::{Member, NETWORK};
use crate::facts::{Host, PathKind, TEXT_HOST, UnresolvedFact};
use crate::survey::Survey;
use crate::url::{self, Target};

/// What ends a word, beside white space.
pub(super) const SEPARATORS: [char; 17] =
    ['"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|', '&', '=', '\\'];
/// Longest word that is looked at.
const MAX_WORD: usize = 4096;

impl Survey<'_> {
    /// Looks at each word of a text once. In arguments and code a word that a rule denies asks; in prose only one that leads to
    /// a place: an absolute path, or a relative one that is there.
    pub(super) fn words(&mut self, member: Member, text: &str) {
        let strict = matches!(member, Member::Code | Member::Path | Member::Place);
        let mut seen = HashSet::new();
        let ends = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
        for word in text.split(ends).map(|word| word.trim_end_matches(['.', ':', '!', '?'])) {
            if word.is_empty() || word.len() > MAX_WORD || !word.contains(['/', '.', '~']) || !seen.insert(word) {
                continue;
            }
            if let Some((scheme, _)) = word.split_once("://")
                && NETWORK.contains(&scheme.to_ascii_lowercase().as_str())
            {
                self.host_word(word, strict);
                continue;
            }
            if strict && word.split_once("://").is_some_and(|(scheme, _)| self.is_store(scheme)) {
                self.url_text(word, None);
                continue;
            }
            let path = file_url(word);
            // `name:/path`, `--option:path`.
            let pieces = word.split(':').filter(|piece| piece.contains(['/', '.', '~']));
            for piece in path.as_deref().into_iter().chain(pieces) {
                self.path_word(piece, strict);
            }
        }
    }

    fn host_word(&mut self, word: &str, strict: bool) {
        let Target::Host(Host::Name(name)) = url::read(word) else { return };
        let domains = &self.policy.domains;
        let refused = if strict { domains.refusal(&name, true).is_some() } else { domains.is_named(&name) };
        if refused {
            let what = word.chars().take(80).collect();
            self.facts.unresolved.push(UnresolvedFact { kind: TEXT_HOST.to_owned(), what, span: None });
        }
    }

    fn path_word(&mut self, word: &str, strict: bool) {
        let rooted = word.starts_with('/') || word.starts_with("~/");
        let leads = rooted || (word.contains('/') && self.there(word));
        if !strict && !leads {
            return;
        }
        let mut fact = self.argument_fact(word, Access::Write);
        fact.kind = PathKind::Text;
        if self.is_denied(&fact) || self.setting.violated(&fact).is_some() {
            self.facts.paths.push(fact);
        }
    }
}
