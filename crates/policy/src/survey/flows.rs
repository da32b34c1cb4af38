//! What a call takes in and where it lets something go, by the labels of `dataFlow`.
//!
//! Owns the labels of one policy on one call; what they come to together with the session's past is [`crate::flow`]'s. Invariant: what
//! is not known of a call may take in every label and go to every one.

use writ_core::ToolKind;
use writ_shell::Access;

use super::{MOST_TREES, Survey};
use crate::facts::{Host, PathFact, PathKind, SEARCH, TEXT_HOST};
use crate::flow::{Entry, Flow, Label};
use crate::glob::Glob;
use crate::grants::{Kind, Pattern};
use crate::rules::{PathRule, Reading, ToolPattern};
use crate::world::{Resolved, Search, World, find_below, find_below_all, links_out};

/// Which way something goes.
#[derive(Clone, Copy)]
struct Ways {
    takes: bool,
    gives: bool,
}

const IN: Ways = Ways { takes: true, gives: false };
const OUT: Ways = Ways { takes: false, gives: true };
const BOTH: Ways = Ways { takes: true, gives: true };

impl Survey<'_> {
    /// Labels what an entry is about.
    fn label(&mut self, ways: Ways, sure: bool, about: impl Fn(&Entry) -> bool) {
        self.label_each(ways, |entry| about(entry).then_some(sure));
    }

    fn label_each(&mut self, ways: Ways, about: impl Fn(&Entry) -> Option<bool>) {
        let policy = self.policy;
        for label in &policy.flow.labels {
            let Some(sure) = label.entries.iter().filter_map(&about).max() else { continue };
            self.note(ways, &label.name, sure);
        }
    }

    fn label_files(&mut self, ways: Ways, sure: bool, about: impl Fn(&Label) -> bool) {
        let policy = self.policy;
        for label in policy.flow.labels.iter().filter(|label| about(label)) {
            self.note(ways, &label.name, sure);
        }
    }

    fn note(&mut self, ways: Ways, label: &str, sure: bool) {
        let flow = &mut self.facts.flow;
        if ways.takes {
            Flow::note(&mut flow.takes, label, sure);
        }
        if ways.gives {
            Flow::note(&mut flow.gives, label, sure);
        }
    }

    /// The ways of the tool itself.
    fn ways(&self) -> Ways {
        match &self.call.kind {
            ToolKind::Read { .. } | ToolKind::Search(_) => IN,
            ToolKind::Write { .. } => OUT,
            ToolKind::Shell { .. }
            | ToolKind::Edit { .. }
            | ToolKind::Fetch { .. }
            | ToolKind::WebSearch
            | ToolKind::Delegate { .. }
            | ToolKind::Mcp { .. }
            | ToolKind::Own
            | ToolKind::Other
            | ToolKind::Malformed { .. } => BOTH,
        }
    }

    /// A command, a URL or a kind of agent that rules about the tool may name by a pattern.
    pub(super) fn label_text(&mut self, matches: impl Fn(&str) -> Option<bool>) {
        if !self.policy.flow.any() {
            return;
        }
        let (names, shell) = (self.facts.names().map(str::to_owned), self.facts.shell);
        self.label_each(self.ways(), |entry| {
            let Entry::Tool(rule) = entry else { return None };
            let about = rule.is_about_any([&names[0], &names[1]], Reading::Wide)
                || shell && rule.is_about("Bash", Reading::Wide);
            match &rule.subject {
                Some(ToolPattern::Text(pattern)) => matches(pattern).filter(|_| about),
                Some(ToolPattern::Path(_)) | None => None,
            }
        });
    }

    /// A secret, an API or a store that is used.
    pub(super) fn label_resource(&mut self, kind: Kind, matches: impl Fn(&Pattern) -> Option<bool>) {
        let ways = if kind == Kind::Secrets { IN } else { BOTH };
        self.label_each(ways, |entry| match entry {
            Entry::Resource(own, pattern) => matches(pattern).filter(|_| *own == kind),
            Entry::Tool(_) | Entry::File(_) | Entry::Host(_) => None,
        });
    }

    /// A program that runs, or a tool of a server, may read what lies here and let it go anywhere.
    pub(super) fn may_do_anything(&mut self) {
        let labels = self.policy.flow.labels.iter().map(|label| label.name.clone());
        self.facts.flow.may.extend(labels);
    }

    /// What is not known may be anything: it reads what lies here, and lets it go anywhere.
    fn anything(&mut self) {
        self.label_files(BOTH, false, |_| true);
    }

    /// It may read whatever lies here.
    pub(super) fn label_local(&mut self) {
        self.label_files(IN, false, Label::is_local);
    }

    /// Labels what the facts hold.
    pub(super) fn flows(&mut self) {
        if !self.policy.flow.any() {
            return;
        }
        self.tool_flows();
        for fact in self.facts.paths.clone() {
            self.path_flow(&fact);
        }
        for fact in self.facts.hosts.clone() {
            match &fact.host {
                Host::Name(name) => {
                    self.label(BOTH, !fact.mentioned, |entry| matches!(entry, Entry::Host(rule) if rule.matches(name)));
                }
                Host::Ambiguous | Host::Unknown => {
                    let far = |entry: &Entry| {
                        matches!(entry, Entry::Host(_) | Entry::Resource(Kind::Apis | Kind::Storage, _))
                    };
                    self.label(BOTH, false, far);
                }
            }
        }
        let unknown = |kind: &str| kind != SEARCH && kind != TEXT_HOST;
        if self.facts.unresolved.iter().any(|open| unknown(&open.kind)) || self.facts.malformed.is_some() {
            self.anything();
        }
        if self.facts.unresolved.iter().any(|open| open.kind == SEARCH) {
            self.label_local();
        }
    }

    /// Entries that name the tool as a whole or by a path; a tool of a server, or one that is not known, that none names.
    fn tool_flows(&mut self) {
        let (names, shell) = (self.facts.names().map(str::to_owned), self.facts.shell);
        let ways = self.ways();
        let home = self.setting.home.clone();
        let subjects: Vec<PathFact> = self.facts.paths.iter().filter(|fact| fact.subject).cloned().collect();
        let about = |entry: &Entry| {
            let Entry::Tool(rule) = entry else { return false };
            let named = rule.is_about_any([&names[0], &names[1]], Reading::Wide)
                || shell && rule.is_about("Bash", Reading::Wide);
            named
                && match &rule.subject {
                    None => true,
                    Some(ToolPattern::Path(path)) => subjects.iter().any(|fact| {
                        path.matches(&fact.resolved, home.as_deref()) || path.matches(&fact.written, home.as_deref())
                    }),
                    Some(ToolPattern::Text(_)) => false,
                }
        };
        self.label(ways, true, about);
        let classified = self.policy.flow.labels.iter().flat_map(|label| &label.entries).any(about);
        if !classified && matches!(self.call.kind, ToolKind::Mcp { .. } | ToolKind::Other) {
            self.may_do_anything();
        }
    }

    fn path_flow(&mut self, fact: &PathFact) {
        let edits = matches!(self.call.kind, ToolKind::Edit { .. });
        let ways = match fact.access {
            Access::Read => IN,
            Access::Write if edits => BOTH,
            Access::Write => OUT,
            Access::List | Access::Exec => return,
        };
        let home = self.setting.home.clone();
        let home = home.as_deref();
        let sure = match fact.kind {
            PathKind::Named
            | PathKind::Found
            | PathKind::Stored
            | PathKind::Copied
            | PathKind::Glob
            | PathKind::ExpandedGlob => true,
            PathKind::Operand | PathKind::Argument => fact.access == Access::Read,
            // The client's own search says itself what it reads.
            PathKind::Listing if matches!(self.call.kind, ToolKind::Search(_)) => return,
            PathKind::Listing => return self.tree_flow(fact, ways, false),
            PathKind::Mentioned
            | PathKind::PerhapsStored
            | PathKind::Text
            | PathKind::Into
            | PathKind::Unlikely
            | PathKind::Maybe
            | PathKind::Open
            | PathKind::Any
            | PathKind::Perhaps => false,
        };
        // Whether a program writes what it is given is not known; it reads it.
        if fact.access == Access::Write && matches!(fact.kind, PathKind::Operand | PathKind::Argument) {
            self.label_files(IN, true, |label| label.is_on([&fact.resolved, &fact.written], home));
        }
        if matches!(fact.kind, PathKind::Open | PathKind::Any) {
            let patterns = [Glob::parse(&fact.written).ok(), Glob::parse(&fact.resolved).ok()];
            let narrow = fact.kind == PathKind::Open;
            let may = |rule: &PathRule| {
                patterns.iter().any(|glob| glob.as_ref().is_none_or(|glob| rule.may_name(glob, narrow, home)))
            };
            return self.label_files(ways, false, |label| label.files.iter().any(may));
        }
        self.label_files(ways, sure, |label| label.is_on([&fact.resolved, &fact.written], home));
        if fact.tree || fact.kind == PathKind::Into {
            self.tree_flow(fact, ways, sure);
        }
    }

    /// What of a whole tree has a label, as the disk is.
    fn tree_flow(&mut self, fact: &PathFact, ways: Ways, sure: bool) {
        let home = self.setting.home.clone();
        let (home, world, policy) = (home.as_deref(), self.world, self.policy);
        let behind = self.behind(fact);
        for label in &policy.flow.labels {
            if label.files.is_empty() {
                continue;
            }
            let anchored = label.files.iter().any(|rule| rule.is_anchored_below(&fact.resolved, home));
            self.trees += 1;
            let hit = |path: &str| label.is_on([path, path], home);
            let found =
                if self.trees > MOST_TREES { Search::TooLarge } else { find_below(world, &fact.resolved, &hit) };
            let found = match found {
                Search::Done(Some(_)) => Some(sure && fact.kind != PathKind::Into),
                Search::TooLarge => Some(false),
                Search::Done(None) if anchored => Some(false),
                // A program that goes through a tree may follow the symlinks in it.
                Search::Done(None) => {
                    behind.as_ref().is_none_or(|places| is_behind(label, places, home, world)).then_some(false)
                }
            };
            if let Some(sure) = found {
                self.note(ways, &label.name, sure);
            }
        }
    }

    /// Where symlinks in a tree lead out of it that is read; `None` where there are too many.
    fn behind(&mut self, fact: &PathFact) -> Option<Vec<Resolved>> {
        if !fact.tree || fact.access != Access::Read || fact.kind == PathKind::Listing {
            return Some(Vec::new());
        }
        match links_out(self.world, &fact.resolved, &mut self.links) {
            Search::Done(places) => Some(places),
            Search::TooLarge => None,
        }
    }

    /// Whether a file at one of these paths has a label.
    pub(super) fn is_labelled(&self, fact: &PathFact) -> bool {
        let home = self.setting.home.as_deref();
        self.policy.flow.labels.iter().any(|label| label.is_on([&fact.resolved, &fact.written], home))
    }

    /// Whether a variable has a label.
    pub(super) fn is_labelled_variable(&self, text: &str) -> bool {
        let entries = self.policy.flow.labels.iter().flat_map(|label| &label.entries);
        entries.clone().any(|entry| matches!(entry, Entry::Resource(Kind::Secrets, rule) if rule.matches(text)))
    }
}

/// Whether something of one of these places has a label, or may have.
fn is_behind(label: &Label, places: &[Resolved], home: Option<&str>, world: &dyn World) -> bool {
    let hit = |path: &str| label.is_on([path, path], home);
    let anchored = |place: &Resolved| label.files.iter().any(|rule| rule.is_anchored_below(&place.path, home));
    let folders: Vec<&str> = places.iter().filter(|place| place.is_dir).map(|place| &*place.path).collect();
    places.iter().any(|place| hit(&place.path) || place.is_dir && anchored(place))
        || find_below_all(world, &folders, &hit) != Search::Done(None)
}
