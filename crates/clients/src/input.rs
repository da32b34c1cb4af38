//! The input of a tool, as the tables of names read it.
//!
//! Owns what is the same for every client: a member that is missing or of another kind is told in words, and makes the call malformed.
//! The invariant: what is read here is what the member says, never a guess.

use writ_core::json::Value;
use writ_core::{Search, ToolKind};

/// The input of a call of a tool.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    tool: &'a str,
    value: &'a Value,
}

impl<'a> Input<'a> {
    /// Of a call of `tool`.
    pub const fn of(tool: &'a str, value: &'a Value) -> Self {
        Self { tool, value }
    }

    /// The whole of it.
    pub const fn value(self) -> &'a Value {
        self.value
    }

    /// A text that need not be there.
    pub fn optional(self, name: &str) -> Result<Option<String>, String> {
        match self.value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().map(|text| Some(text.to_owned())).ok_or(format!("`{name}` is not a text")),
        }
    }

    /// A text that has to be there.
    pub fn text(self, name: &str) -> Result<String, String> {
        self.optional(name)?.ok_or_else(|| format!("`{}` without a text `{name}`", self.tool))
    }

    /// The one file that the call is about.
    pub fn file(self, name: &str) -> Result<Vec<String>, String> {
        self.text(name).map(|path| vec![path])
    }

    /// The same where it has one name or another.
    pub fn file_of(self, names: [&str; 2]) -> Result<Vec<String>, String> {
        let [first, other] = names;
        self.file(if self.value.get(first).is_some() { first } else { other })
    }

    /// A look into files below a folder.
    pub fn contents(self, folder: &str, glob: &str) -> Result<ToolKind, String> {
        let (path, glob) = (self.optional(folder)?, self.optional(glob)?);
        Ok(ToolKind::Search(Search::Contents { path, others: Vec::new(), glob, file_type: None }))
    }

    /// A look for names below a folder.
    pub fn names(self, folder: &str, pattern: &str) -> Result<ToolKind, String> {
        let (path, pattern) = (self.optional(folder)?, self.text(pattern)?);
        Ok(ToolKind::Search(Search::Names { path, others: Vec::new(), pattern }))
    }

    /// A look at what is in a folder.
    pub fn listing(self, folder: &str) -> Result<ToolKind, String> {
        Ok(ToolKind::Search(Search::Folder { path: self.optional(folder)?, others: Vec::new() }))
    }

    /// Another agent, of the kind that a member names.
    pub fn delegate(self, kind: &str) -> Result<ToolKind, String> {
        Ok(ToolKind::Delegate { subagent: self.optional(kind)?.unwrap_or_default() })
    }
}

/// Where a call runs: a shell's may name a folder of its own.
pub(crate) fn folder_of(kind: &ToolKind, named: Option<&Value>, cwd: &str) -> String {
    let named = named.and_then(Value::as_str);
    match named.filter(|folder| !folder.is_empty() && matches!(kind, ToolKind::Shell { .. })) {
        Some(folder) if folder.starts_with('/') => folder.to_owned(),
        Some(folder) => format!("{cwd}/{folder}"),
        None => cwd.to_owned(),
    }
}
