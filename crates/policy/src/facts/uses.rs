//! What of a call an `allow` list has to name, for whoever writes one from calls.
//!
//! Owns the choice: what counts against `deny` rules alone, and what is only perhaps touched, is left out. Keeps nothing; a command's text
//! is there only as long as the facts were not written and read (R8). Page: `spec/replay.md`.

use writ_core::Subject;
use writ_shell::Access;

use super::{Facts, Host, PathKind};

/// What a call uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses<'a> {
    /// The commands of a shell line.
    pub commands: Vec<UsedCommand<'a>>,
    /// What a tool is asked for by name: hosts of URLs, types of sub-agents.
    pub names: Vec<&'a str>,
    /// Files and folders.
    pub files: Vec<UsedFile<'a>>,
    /// Host names.
    pub hosts: Vec<&'a str>,
    /// What cannot be known before it runs, by kind.
    pub unresolved: Vec<&'a str>,
}

/// A command as the shell would run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedCommand<'a> {
    /// Its words with single blanks between them, `…` for what is not known.
    pub text: &'a str,
    /// The program's base name.
    pub program: &'a str,
}

/// A path that a list of files has to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedFile<'a> {
    /// With symlinks followed.
    pub path: &'a str,
    /// What happens to it.
    pub access: Access,
    /// Everything below it too.
    pub tree: bool,
    /// Files with names that are not known are written into it.
    pub into: bool,
}

impl Facts {
    /// What an `allow` list has to name to let it through.
    pub fn uses(&self) -> Uses<'_> {
        let mut out = Uses::default();
        for text in self.texts.iter().filter(|text| !text.possible && !text.reserved) {
            match text.subject {
                Subject::Command if text.allowed.is_none() => {
                    out.commands.push(UsedCommand { text: &text.text, program: &text.name });
                }
                Subject::Host | Subject::Tool => out.names.push(&text.name),
                Subject::Command | Subject::Path | Subject::Unresolved | Subject::Policy => {}
            }
        }
        let named = |kind: PathKind| {
            matches!(kind, PathKind::Named | PathKind::Glob | PathKind::Found | PathKind::Stored | PathKind::Into)
                || matches!(kind, PathKind::ExpandedGlob | PathKind::Copied | PathKind::Listing)
        };
        let files = self.paths.iter().filter(|fact| named(fact.kind) && fact.access != Access::Exec);
        out.files.extend(files.map(|fact| UsedFile {
            path: &fact.resolved,
            access: fact.access,
            tree: fact.tree,
            into: fact.kind == PathKind::Into,
        }));
        out.hosts.extend(self.hosts.iter().filter(|fact| !fact.mentioned).filter_map(|fact| match &fact.host {
            Host::Name(name) => Some(name.as_str()),
            Host::Ambiguous | Host::Unknown => None,
        }));
        out.unresolved.extend(self.unresolved.iter().map(|open| open.kind.as_str()));
        out
    }
}
