//! A command line, and everything the shell would run for it (R20).
//!
//! Owns the grammar of bash, the expansion of words, and the knowledge of what common programs do with their operands. Judges
//! nothing. Invariant: what is not understood is in [`Analysis::syntax_error`] or [`Analysis::unresolved`], never left out in
//! silence; time and stack are bounded for any input. Page: `spec/shell.md`.

mod action;
mod again;
mod braces;
mod budget;
mod builtins;
mod command;
mod dirs;
mod eval;
mod expand;
mod explain;
mod git;
mod git_code;
mod interpreters;
mod linked;
mod loops;
mod normal;
mod operands;
mod output;
mod parameter;
mod params;
mod parser;
mod pattern;
mod record;
mod syntax;
mod tar;
mod tree;
mod vars;
mod words;
mod wrappers;

pub use action::{
    Access, Analysis, Command, Dir, Env, FileUse, NetTarget, NetUse, Normal, Part, Unresolved, UnresolvedKind, Word,
};
pub use explain::{Explained, explain};
pub use normal::normal;

/// Reads `line` as bash would and lists what it would run, touch and contact. Never fails: what cannot be read is
/// in [`Analysis::syntax_error`], what cannot be known in [`Analysis::unresolved`].
pub fn analyze(line: &str, env: &Env) -> Analysis {
    match parser::parse(line, None, 0) {
        Ok(node) => eval::run(&node, env),
        Err(error) => Analysis { syntax_error: Some(error), ..Analysis::default() },
    }
}
