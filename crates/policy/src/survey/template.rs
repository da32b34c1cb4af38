//! `cp .env.example .env`: a file that is not there yet, made from one that the rules say is no secret.

use writ_shell::{Access, Arrival, Part, Word};

use super::Survey;
use crate::facts::{PathFact, PathKind};
use crate::rules::takes_back;

impl Survey<'_> {
    /// The fact about a copy that shows and replaces nothing: its source is a file that the list of denied ones takes back
    /// (`!**/.env.example`), and surely nothing is at its place yet.
    pub(super) fn template(&self, arrival: &Arrival, place: &str) -> Option<PathFact> {
        let source = arrival.source.as_ref().filter(|source| !arrival.link && is_plain(source))?;
        let target = &arrival.target;
        if !is_plain(&target.path) || self.policy.files.deny.is_empty() {
            return None;
        }
        let text = source.literal()?;
        let mut sources = target.dirs.iter().map(|dir| Some(self.absolute(&self.start(dir)?, &text))).peekable();
        sources.peek()?;
        sources.all(|source| source.is_some_and(|source| self.is_template(&source))).then_some(())?;
        let mut fact = self.path(place, Access::Write, Some(target.span));
        fact.kind = PathKind::Copied;
        self.is_new(&fact.resolved).then_some(fact)
    }

    fn is_template(&self, source: &str) -> bool {
        if !self.policy.files.deny.iter().any(|rule| rule.negated) {
            return false;
        }
        let home = self.setting.home.as_deref();
        let found = self.path(source, Access::Read, None);
        !self.resolve(source).is_dir
            && [&found.written, &found.resolved].iter().all(|path| takes_back(&self.policy.files.deny, path, home))
    }
}

fn is_plain(word: &Word) -> bool {
    word.parts.iter().all(|part| matches!(part, Part::Text(_)))
}
