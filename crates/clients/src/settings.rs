//! A client's settings files, in words that fit every client: what of Writ is in them, and what keeps it from working.
//!
//! Owns what a client that is told of Writ by its settings can be asked; whoever asks reads and writes the files. Refuses to
//! soften: whatever makes a client leave out a hook of Writ's is a finding.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use writ_core::json::JsonError;

/// Seconds a client is told to wait for the hook. A hook that takes longer is killed, and without `onFailure` the tool then runs:
/// the hook has to answer, whatever happens, well before.
pub const TIMEOUT_SECONDS: u64 = 30;

/// A client that has hooks installed by its settings.
pub trait Settings {
    /// The variable that moves the user's own folder of this client, where there is one.
    fn folder_variable(&self) -> Option<&'static str>;

    /// Where its settings are. `folder` is what [`Settings::folder_variable`] says, if it is set.
    fn places(&self, project: &Path, user: &Path, folder: Option<&Path>) -> Places;

    /// Looks at a settings file; `None` is a file that does not exist.
    fn inspect(&self, text: Option<&str>) -> Result<Installed, SettingsError>;

    /// Puts Writ's hooks in; `None` is a file that does not exist. A second run changes nothing.
    fn install(&self, text: Option<&str>, spec: &HookSpec) -> Result<Edited, SettingsError>;

    /// Takes Writ's hooks out.
    fn remove(&self, text: &str) -> Result<Edited, SettingsError>;

    /// What a settings file sets a variable to for the hooks.
    fn variable(&self, _text: &str, _name: &str) -> Option<String> {
        None
    }

    /// Whether hooks belong into the user's own place where nobody says which: the client takes those of a project only in a folder that
    /// it was told to trust, or takes more from it then.
    fn is_personal(&self) -> bool {
        false
    }

    /// Another file that has to agree before the client runs the hooks of a settings file.
    fn companion(&self) -> Option<&dyn Companion> {
        None
    }

    /// Members of one of the client's files, settings or what stands beside them, that switch hooks off.
    fn switches(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    /// How an administrator keeps those switches from working.
    fn pin(&self) -> Option<Pin> {
        None
    }
}

/// What keeps a client's switches from taking the hooks' effect away.
#[derive(Clone, Copy, Debug)]
pub struct Pin {
    /// The administrator's file.
    pub file: &'static str,
    /// Whether its text holds them.
    pub is_in: fn(&str) -> bool,
    /// What to do, in words.
    pub how: &'static str,
    /// Switches that work as long as nothing holds them.
    pub held: &'static [&'static str],
    /// What of [`Settings::switches`] it holds.
    pub holds: &'static [&'static str],
    /// Switches that nothing holds.
    pub open: &'static [&'static str],
    /// A variable by which the client looks for that file elsewhere.
    pub moved_by: Option<&'static str>,
}

/// A file that has to agree before a client runs the hooks of a settings file.
pub trait Companion {
    /// Where it is.
    fn path(&self, user: &Path, folder: Option<&Path>) -> PathBuf;

    /// Has it agree to Writ's hooks in the settings file, whose text is `installed`. A second run changes nothing.
    fn install(&self, text: Option<&str>, settings: &Path, installed: &str) -> Result<Edited, SettingsError>;

    /// Takes that out again.
    fn remove(&self, text: &str, settings: &Path) -> Result<Edited, SettingsError>;

    /// The hooks that it does not agree to.
    fn missing(&self, text: Option<&str>, settings: &Path, installed: &str) -> Vec<String>;
}

/// Where a client keeps its settings for a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The user's own, for every project.
    pub user: PathBuf,
    /// The project's, shared with others.
    pub project: PathBuf,
    /// The administrator's, for every user of the machine.
    pub managed: Option<PathBuf>,
    /// Every file that may install hooks or switch them off, those two among them, from the weakest to the strongest. An agent
    /// must not write to, create or remove them (R19).
    pub settings: Vec<PathBuf>,
    /// What else it must not: what the client reads again or runs by itself, with what each is.
    pub others: Vec<(PathBuf, &'static str)>,
}

/// What a hook entry is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSpec {
    /// The program, absolute or looked up in `PATH`; started without a shell.
    pub command: String,
    /// Say `"onFailure": "block"`, for clients that know it.
    pub on_failure_block: bool,
    /// A name that nobody could know before, for clients that switch hooks off by their names.
    pub name: Option<String>,
}

/// An edited settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The new text.
    pub text: String,
    /// The events whose entries changed; empty when the text is as it was.
    pub changed: Vec<&'static str>,
}

/// Why a settings file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not strict JSON, which the client would ignore as a whole.
    #[error("the settings are not valid JSON, so the client ignores them")]
    Json(#[from] JsonError),
    /// Something other than the client expects.
    #[error("`{pointer}` in the settings is not {expected}")]
    Shape {
        /// JSON pointer.
        pointer: String,
        /// What it should be.
        expected: &'static str,
    },
    /// More entries of ours than anybody means.
    #[error("the settings hold more than {most} hook entries of Writ's")]
    TooMany {
        /// The most that are taken out of one file.
        most: usize,
    },
}

/// What one settings file says about hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The events that no entry of Writ's listens to.
    pub missing: Vec<&'static str>,
    /// The programs that entries of Writ's start, each once. More than one means that an old one is still there.
    pub commands: Vec<String>,
    /// Events with more than one entry of Writ's: each call would be recorded twice.
    pub twice: Vec<&'static str>,
    /// Events whose entry does not say `"onFailure": "block"`: a crash lets the tool run.
    pub fails_open: Vec<&'static str>,
    /// How its entries start the program, each once.
    pub starts: Vec<Start>,
    /// Events whose entry gives the hook less time than Writ takes at most.
    pub hurried: Vec<&'static str>,
    /// The shell that `env` names for the client.
    pub shell: Option<String>,
    /// Variables in `env` that would have the hook look for Writ's state elsewhere.
    pub moves: Vec<&'static str>,
    /// Entries of Writ's that do not see everything or whose answer is not waited for, as JSON pointers: a matcher, `if`,
    /// `async`, `asyncRewake`, `once`.
    pub narrowed: Vec<String>,
    /// Entries that are not what the client accepts, as JSON pointers: because of one, it ignores every hook of the event.
    pub rejected: Vec<String>,
    /// Entries that post calls to a notary of Writ's and do not say `"onFailure": "block"`, as JSON pointers.
    pub posted_open: Vec<String>,
    /// `disableAllHooks` is on.
    pub disabled: bool,
    /// `allowManagedHooksOnly` is on; only the administrator's file can say so.
    pub managed_only: bool,
    /// How many entries belong to others.
    pub others: usize,
}

/// A command line of a hook entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The program; a whole shell line where there are no arguments.
    pub command: String,
    /// Its arguments: then the client starts it without a shell.
    pub args: Option<Vec<String>>,
}

impl Installed {
    /// Whether a session under `before` would be held less by what is there now.
    pub fn weaker_than(&self, before: &Self) -> Option<String> {
        let gone: Vec<&str> = self.missing.iter().filter(|event| !before.missing.contains(event)).copied().collect();
        let more = |now: &[String], then: &[String]| now.iter().any(|pointer| !then.contains(pointer));
        let open = |now: &[&'static str], then: &[&'static str]| now.iter().any(|event| !then.contains(event));
        match () {
            () if self.disabled && !before.disabled => Some("switches all hooks off".to_owned()),
            () if !gone.is_empty() => Some(format!("takes Writ's hooks for {} away", gone.join(", "))),
            () if self.starts.iter().any(|start| !before.starts.contains(start)) => {
                Some("starts another program as Writ's hook".to_owned())
            }
            () if more(&self.narrowed, &before.narrowed) => Some("keeps calls from Writ's hooks".to_owned()),
            () if more(&self.rejected, &before.rejected) => {
                Some("holds an entry for which the client ignores every hook".to_owned())
            }
            () if open(&self.fails_open, &before.fails_open) => Some("lets tools run when a hook fails".to_owned()),
            () if open(&self.hurried, &before.hurried) => Some("gives the hook too little time".to_owned()),
            () if self.moves.iter().any(|name| !before.moves.contains(name)) => {
                Some("has the hook look for its state elsewhere".to_owned())
            }
            () if before.shell.as_deref().is_some_and(is_bash) && !self.shell.as_deref().is_some_and(is_bash) => {
                Some("has the client run another shell than bash".to_owned())
            }
            () => None,
        }
    }

    /// Whether every event reaches one hook of Writ's that sees everything. Says nothing about `onFailure`, which old
    /// clients do not know, nor about other settings files.
    pub fn complete(&self) -> bool {
        let broken = [&self.narrowed, &self.rejected].iter().any(|pointers| !pointers.is_empty());
        self.missing.is_empty() && self.twice.is_empty() && self.commands.len() == 1 && !broken && !self.disabled
    }
}

/// Whether a shell's name or path is that of bash.
pub fn is_bash(value: &str) -> bool {
    value.rsplit('/').next().unwrap_or_default().contains("bash")
}

/// The program for [`HookSpec::command`]: its bare name where it can be looked up in `PATH`, because a project's settings
/// are shared between machines, else its whole path.
pub fn command_for(program: &Path, found_in_path: bool) -> String {
    let name = program.file_name().filter(|_| found_in_path).map(Path::new);
    name.unwrap_or(program).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_the_path_is_named_without_its_folder() {
        assert_eq!(command_for(Path::new("/usr/bin/writ"), true), "writ");
        assert_eq!(command_for(Path::new("/usr/bin/writ"), false), "/usr/bin/writ");
    }
}
