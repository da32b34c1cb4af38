//! An Agentfile as it was read: its directives in order, each with its place.
//!
//! Owns the answers to "what does this file declare". Judges nothing. Invariant: the order of the file is kept, and every directive
//! that was read is there.

use writ_core::Digest;

use crate::diagnostic::Place;
use crate::directive::{Address, Audit, Base, Block, Cred, Directive, Function, Mcp, Mode, Sop};
use crate::lines::{Token, lines};
use crate::reference::ToolRef;

/// One directive with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it says.
    pub directive: Directive,
    /// The directive's name as a word of the file.
    pub keyword: Token,
    /// The words behind it.
    pub words: Vec<Token>,
}

impl Entry {
    /// The line it stands on.
    pub const fn line(&self) -> usize {
        self.keyword.place.line
    }

    /// Whether a block follows its line.
    pub const fn opens_block(&self) -> bool {
        matches!(self.directive, Directive::Policy(_) | Directive::Sop(Sop::Inline { .. }))
    }

    /// The place of its first word behind the name; of the name where there is none.
    pub fn argument(&self, at: usize) -> Place {
        self.words.get(at).map_or(self.keyword.place, |word| word.place)
    }

    /// The line as people know it, without comment.
    pub fn quoted(&self) -> String {
        let words = self.words.iter().map(|word| word.text.as_str());
        std::iter::once(self.keyword.text.as_str()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// What an Agentfile declares.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// What the file is called in messages.
    pub file: String,
    /// Its text as it was read.
    pub text: String,
    /// Its directives in their order. Lines with errors are not among them.
    pub entries: Vec<Entry>,
    /// The version in a `# syntax=` comment.
    pub syntax: Option<String>,
}

impl Agent {
    /// SHA-256 of the file's bytes.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }

    /// The place of what stands on a line: its directive's name, or in a block all of it.
    pub fn line_place(&self, number: usize) -> Place {
        let named = self.entries.iter().find(|entry| entry.line() == number);
        let whole = || lines(&self.text).find(|line| line.number == number).map(|line| line.whole());
        named.map(|entry| entry.keyword.place).or_else(whole).unwrap_or(Place::START)
    }

    /// The entries that `pick` wants something of, with what it wants.
    pub fn each<'a, T>(&'a self, pick: impl Fn(&'a Directive) -> Option<T>) -> impl Iterator<Item = (&'a Entry, T)> {
        self.entries.iter().filter_map(move |entry| Some((entry, pick(&entry.directive)?)))
    }

    fn first<'a, T>(&'a self, pick: impl Fn(&'a Directive) -> Option<T>) -> Option<T> {
        self.each(pick).next().map(|(_, found)| found)
    }

    /// The name that `AGENT` gives it.
    pub fn name(&self) -> Option<&str> {
        self.first(|directive| if let Directive::Agent(name) = directive { Some(name.as_str()) } else { None })
    }

    /// What it is called: its name, or `agent` where it has none.
    pub fn name_or_default(&self) -> &str {
        self.name().unwrap_or("agent")
    }

    /// What it is built on.
    pub fn base(&self) -> Option<&Base> {
        self.first(|directive| if let Directive::From(base) = directive { Some(base) } else { None })
    }

    /// The command that starts it.
    pub fn command(&self) -> Option<&[String]> {
        self.first(|directive| if let Directive::Cmd(command) = directive { Some(command.as_slice()) } else { None })
    }

    /// What it says has to be recorded.
    pub fn audit(&self) -> Option<Audit> {
        self.first(|directive| if let Directive::Audit(audit) = directive { Some(*audit) } else { None })
    }

    /// Longest run, in seconds.
    pub fn timeout(&self) -> Option<u64> {
        self.first(|directive| if let Directive::Timeout(seconds) = directive { Some(*seconds) } else { None })
    }

    /// Its tools.
    pub fn tools(&self) -> impl Iterator<Item = (&Entry, &ToolRef)> {
        self.each(|directive| if let Directive::Tool(tool) = directive { Some(tool) } else { None })
    }

    /// Its functions.
    pub fn functions(&self) -> impl Iterator<Item = (&Entry, &Function)> {
        self.each(|directive| if let Directive::Function(function) = directive { Some(function) } else { None })
    }

    /// Its skills.
    pub fn skills(&self) -> impl Iterator<Item = (&Entry, &crate::directive::Bundle)> {
        self.each(|directive| if let Directive::Skill(skill) = directive { Some(skill) } else { None })
    }

    /// Its procedures.
    pub fn sops(&self) -> impl Iterator<Item = (&Entry, &Sop)> {
        self.each(|directive| if let Directive::Sop(sop) = directive { Some(sop) } else { None })
    }

    /// Its MCP servers.
    pub fn mcp(&self) -> impl Iterator<Item = (&Entry, &Mcp)> {
        self.each(|directive| if let Directive::Mcp(mcp) = directive { Some(mcp) } else { None })
    }

    /// Its servers: name and address.
    pub fn servers(&self) -> impl Iterator<Item = (&Entry, (&str, &Address))> {
        self.each(|directive| match directive {
            Directive::Server { name, address } => Some((name.as_str(), address)),
            _ => None,
        })
    }

    /// The destinations that `URL` names.
    pub fn urls(&self) -> impl Iterator<Item = (&Entry, &Address)> {
        self.each(|directive| if let Directive::Url(address) = directive { Some(address) } else { None })
    }

    /// The destinations that `URL` and `SERVER` name.
    pub fn destinations(&self) -> impl Iterator<Item = (&Entry, &Address)> {
        self.each(|directive| match directive {
            Directive::Url(address) | Directive::Server { address, .. } => Some(address),
            _ => None,
        })
    }

    /// Its secrets.
    pub fn creds(&self) -> impl Iterator<Item = (&Entry, &Cred)> {
        self.each(|directive| if let Directive::Cred(cred) = directive { Some(cred) } else { None })
    }

    /// The paths it sees.
    pub fn mounts(&self) -> impl Iterator<Item = (&Entry, (&str, Mode))> {
        self.each(|directive| match directive {
            Directive::Mount { path, mode } => Some((path.as_str(), *mode)),
            _ => None,
        })
    }

    /// Its Cedar blocks.
    pub fn policies(&self) -> impl Iterator<Item = (&Entry, &Block)> {
        self.each(|directive| if let Directive::Policy(block) = directive { Some(block) } else { None })
    }
}
