//! What a policy lets programs do with files, as a sandbox has to know it: of a path as it stands, and of all below a folder.
//!
//! Owns no rule: the lists are those that calls are judged by. A sandbox cannot ask, so what needs a human's yes is treated as
//! refused here. Invariant: what this says of a path is never wider than what [`crate::judge`] says of a program's use of it.

use std::path::Path;

use crate::glob::split;
use crate::policy::Policy;
use crate::rules::{PathRule, Reading, last_word_of};
use crate::scope::Scope;

/// What may be done with a path. Ordered so that the narrower is the smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reach {
    /// Denied: neither read nor written.
    Denied,
    /// `files.allow` does not name it.
    Unnamed,
    /// Read.
    Read,
    /// Read and written.
    Write,
}

impl Policy {
    /// What programs may do with an absolute path, links aside. What needs a human's yes is refused unless it was `approved`.
    pub fn reach(&self, path: &str, home: Option<&str>, approved: bool) -> Reach {
        let path = split(path);
        let files = &self.files;
        let named = |rules: &[PathRule], scopes: &[Scope]| {
            last_word_of(rules, &path, home, |scope| scopes.contains(&scope)).is_some()
        };
        let reads = [Scope::Any, Scope::Reads];
        let writes = [Scope::Any, Scope::Writes, Scope::Changes];
        if named(&files.deny, &reads) || !approved && named(&files.approval, &reads) {
            return Reach::Denied;
        }
        if files.allow.as_deref().is_some_and(|allow| !named(allow, &Scope::ALL)) {
            return Reach::Unnamed;
        }
        if named(&files.read_only, &writes) || !approved && named(&files.approval, &writes) {
            return Reach::Read;
        }
        Reach::Write
    }

    /// JSON pointer of the rule that keeps programs from opening a path, or from changing it, if one does.
    pub fn keeps(&self, path: &str, home: Option<&str>, change: bool) -> Option<&str> {
        let path = split(path);
        let files = &self.files;
        let reads = [Scope::Any, Scope::Reads];
        let writes = [Scope::Any, Scope::Writes, Scope::Changes];
        let lists: [(&[PathRule], &[Scope], bool); 4] = [
            (&files.deny, &reads, true),
            (&files.approval, &reads, true),
            (&files.read_only, &writes, change),
            (&files.approval, &writes, change),
        ];
        let asked = lists.into_iter().filter(|(.., asked)| *asked);
        let named = asked
            .filter_map(|(rules, scopes, _)| last_word_of(rules, &path, home, |scope| scopes.contains(&scope)))
            .next();
        let unnamed = || {
            let allow = files.allow.as_deref()?;
            last_word_of(allow, &path, home, |_| true).is_none().then_some("/files/allow")
        };
        named.map(|rule| rule.pointer.as_str()).or_else(unnamed)
    }

    /// Whether programs may use files that no list names.
    pub const fn names_all_files(&self) -> bool {
        self.files.allow.is_some()
    }

    /// Whether there may be files that programs may not read although they lie among others.
    pub const fn hides_files(&self) -> bool {
        !self.files.deny.is_empty() || !self.files.approval.is_empty()
    }

    /// The plain folders or files in front of the wildcards of its rules.
    pub fn places(&self, home: Option<&str>) -> Vec<String> {
        let files = &self.files;
        let allow = files.allow.as_deref().unwrap_or_default();
        let rules = files.deny.iter().chain(&files.read_only).chain(&files.approval).chain(allow);
        rules.filter_map(|rule| rule.anchor(home)).collect()
    }

    /// Whether a rule may name something below a folder that lies beside `root`, though what is plain of it lies above both.
    pub fn reaches_beside(&self, root: &str, folder: &str, home: Option<&str>) -> bool {
        self.above(root, home).any(|rule| rule.may_name_below(folder, home))
    }

    /// Whether such a rule may name something however deep it lies, below any names at all: then nobody can look everywhere for it.
    pub fn reaches_anywhere(&self, root: &str, home: Option<&str>) -> bool {
        self.above(root, home).any(|rule| {
            let any = "/writ-any-name".repeat(16);
            let place = rule.anchor(home).unwrap_or_default();
            rule.may_name_below(&format!("{}{any}", place.trim_end_matches('/')), home)
        })
    }

    /// Rules whose plain beginning lies above a folder.
    fn above<'a>(&'a self, root: &'a str, home: Option<&'a str>) -> impl Iterator<Item = &'a PathRule> {
        let files = &self.files;
        let lists = files.deny.iter().chain(&files.read_only).chain(&files.approval);
        lists.filter(move |rule| {
            rule.anchor(home).is_some_and(|place| place != root && Path::new(root).starts_with(&place))
        })
    }

    /// The rules that say more than a kernel can hold, each with what of it is left to reading command lines.
    pub fn advised(&self, home: Option<&str>) -> Vec<String> {
        let files = &self.files;
        let lists = files.deny.iter().chain(&files.read_only).chain(&files.approval);
        let patterns = lists.filter(|rule| !rule.is_a_place(home)).map(|rule| {
            format!("{}: of names that do not exist yet, and of places outside the policy's folder", rule.pointer)
        });
        let tools = self.tools.deny.iter().chain(&self.tools.approval).chain(self.tools.allow.iter().flatten());
        let programs = tools
            .filter(|rule| rule.is_about("Bash", Reading::Wide) && rule.path().is_none())
            .map(|rule| format!("{}: which program runs", rule.pointer));
        patterns.chain(programs).collect()
    }

    /// Whether every path below a folder is treated as every other is there, for certain.
    pub fn is_alike_below(&self, folder: &str, home: Option<&str>) -> bool {
        let files = &self.files;
        let allow = files.allow.as_deref().unwrap_or_default();
        let mut rules = files.deny.iter().chain(&files.read_only).chain(&files.approval).chain(allow);
        rules.all(|rule| rule.covers_below(folder, home) || !rule.may_name_below(folder, home))
    }
}
