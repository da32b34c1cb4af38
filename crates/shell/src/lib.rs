//! A command line, and everything the shell would run for it (R20).
//!
//! Owns the grammar of bash, the expansion of words, and the knowledge of what common programs do with their operands. Judges
//! nothing. Invariant: what is not understood is in [`Analysis::syntax_error`] or [`Analysis::unresolved`], never left out in
//! silence; time and stack are bounded for any input. Page: `spec/shell.md`.

mod action;
mod code;
mod eval;
mod explain;
mod listing;
mod normal;
mod options;
mod parser;
mod programs;
mod settings;
mod shape;
mod text;
mod word;
mod zsh;

pub use action::{
    Access, Analysis, Arrival, Command, Env, FileUse, NetTarget, NetUse, Normal, RepositoryAct, RepositoryUse,
    UnknownUse, UnknownUseKind, Unresolved, UnresolvedKind, VariableUse,
};
pub use eval::words::globs::bracket;
pub use explain::{Explained, explain};
pub use listing::{Ignores, Listing, Printed, Test};
pub use normal::normal;
pub use programs::entries::shown::{Described, page, program, programs};
pub use programs::operands::patch::patch_names;
pub use programs::searches::ripgrep;
pub use settings::settings_hosts;
pub use word::{Dir, FRESH, Part, Source, Word};
pub use zsh::differs_in_zsh;

/// Reads `line` as bash would and lists what it would run, touch and contact. Never fails: what cannot be read is
/// in [`Analysis::syntax_error`], what cannot be known in [`Analysis::unresolved`].
pub fn analyze(line: &str, env: &Env) -> Analysis {
    analyze_with(line, env, &eval::files::written::Nothing)
}

/// What the agent itself wrote into files before the line: such a file is followed when it runs. Two implementations: none,
/// and a policy's view of the disk.
pub trait Sources {
    /// The text of the file at an absolute path, if the agent wrote exactly it.
    fn authored(&self, path: &str) -> Option<String>;
    /// Absolute paths of files that the agent wrote; what one of them holds is asked with [`Sources::authored`].
    fn files(&self) -> &[String] {
        &[]
    }

    /// Whether the agent may have written anything at all.
    fn any(&self) -> bool {
        true
    }

    /// The text of the file at an absolute path, if each of its lines is the path of a file as seen from `folder`.
    fn names(&self, path: &str, folder: &str) -> Option<String> {
        let _: (&str, &str) = (path, folder);
        None
    }
}

/// [`analyze`] with what the agent wrote before.
pub fn analyze_with(line: &str, env: &Env, sources: &dyn Sources) -> Analysis {
    match parser::parse(line, None, 0) {
        Ok(node) => eval::run(&node, line, env, sources, &programs::command::PROGRAMS),
        Err(error) => Analysis { syntax_error: Some(error), ..Analysis::default() },
    }
}

/// Whether the tables of programs know what a program does with its operands.
pub fn is_known(program: &str) -> bool {
    programs::operands::table::lookup(program).is_some()
}
