//! The tools that search, by contents and by names.

use std::collections::BTreeSet;

use writ_core::Search as Wanted;
use writ_shell::{Access, Ignores, Listing, Printed, Test, Word};

use super::Survey;
use super::paths::TOO_LONG;
use super::walk::{ListedEntry, Walk};
use crate::facts::{PathFact, PathKind};
use crate::flow::Flow;
use crate::glob::{split, unfold};
use crate::rules::{last_word, last_word_of};
use crate::world::Search;

impl Survey<'_> {
    pub(super) fn search(&mut self, search: &Wanted) -> Result<(), String> {
        let named = search.paths();
        let here = ["."];
        named.iter().chain(here.iter().filter(|_| named.is_empty())).try_for_each(|path| self.search_in(search, path))
    }

    fn search_in(&mut self, search: &Wanted, path: &str) -> Result<(), String> {
        if self.is_too_long(path) {
            return Err(TOO_LONG.to_owned());
        }
        let absolute = self.absolute(&self.call.cwd, path);
        let access = if matches!(search, Wanted::Contents { .. }) { Access::Read } else { Access::List };
        let mut fact = self.path(&absolute, access, None);
        fact.subject = true;
        fact.tree = access == Access::Read;
        match search {
            Wanted::Names { pattern, .. } => self.glob_pattern(&absolute, pattern)?,
            Wanted::Contents { glob, file_type, .. } => {
                if self.grep(&fact, glob.as_deref(), file_type.as_deref())? {
                    // What it would read is on record; the folder itself is not the question any more.
                    (fact.tree, fact.kind) = (false, PathKind::Listing);
                }
            }
            Wanted::Folder { .. } => {}
        }
        self.facts.paths.push(fact);
        Ok(())
    }

    /// The first file that the client's search would read and that is ruled: it is ripgrep, which leaves out hidden and ignored
    /// files unless a glob asks for them. False where nothing can be looked at.
    fn grep(&mut self, fact: &PathFact, glob: Option<&str>, kind: Option<&str>) -> Result<bool, String> {
        let mut words: Vec<String> = vec!["x".to_owned()];
        for one in glob.iter().flat_map(|glob| {
            glob.split([' ', ',']).filter(|_| !glob.contains('{')).chain(glob.contains('{').then_some(*glob))
        }) {
            for one in unfold(one).map_err(|error| format!("`glob` is no glob: {error}"))? {
                words.push(format!("--glob={one}"));
            }
        }
        words.extend(kind.map(|kind| format!("--type={kind}")));
        // It looks into hidden files, too.
        let (test, _, ignores) = writ_shell::ripgrep(&words);
        let span = writ_core::Span { start: 0, end: 0 };
        let folder = Word { parts: Vec::new(), span };
        let ignores = if ignores { Ignores::Search } else { Ignores::Nothing };
        let test = Test::All(vec![Test::Not(Box::new(Test::Folder)), test]);
        let listing =
            Listing { folder, dirs: Vec::new(), test, tree: true, hidden: true, ignores, printed: Printed::Relative };
        let ruled = self.has_path_rules();
        let (files, home) = (&self.policy.files, self.setting.home.as_deref());
        let (mut found, mut labels) = (None, BTreeSet::new());
        let policy = self.policy;
        let mut stop = |met: &ListedEntry<'_>| {
            let outside = files.allow.as_ref().is_some_and(|rules| last_word(rules, met.path, home).is_none());
            let parts = split(met.path);
            let named = |rules| last_word_of(rules, &parts, home, |scope| scope.covers(Access::Read)).is_some();
            let hit = outside || named(&files.deny) || named(&files.approval) || (ruled && self.is_ruled(met.path));
            let hit = hit || self.is_ungranted(met.path);
            labels.extend(
                policy
                    .flow
                    .labels
                    .iter()
                    .filter(|label| label.is_on([met.path, met.path], home))
                    .map(|label| &label.name),
            );
            if hit {
                found = Some(met.path.to_owned());
            }
            hit
        };
        let mut walk = Walk::of(self.world, &listing, false, &fact.resolved);
        let end = walk.run(&fact.resolved, "", &mut stop);
        let stopped = walk.stopped;
        labels.into_iter().for_each(|label| Flow::note(&mut self.facts.flow.takes, label, true));
        if stopped {
            // What lies behind that is not looked at.
            self.label_local();
        }
        match end {
            None => return Ok(false),
            Some(Search::TooLarge) => self.too_large(fact),
            Some(Search::Done(())) => {}
        }
        if let Some(path) = found.filter(|_| stopped) {
            let mut found = self.path(&path, fact.access, None);
            (found.kind, found.subject) = (PathKind::Found, true);
            self.facts.paths.push(found);
        }
        Ok(true)
    }
}
