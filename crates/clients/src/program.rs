//! A client as a program that people start: by which name, and what of the user's disk it cannot work without.
//!
//! Owns the words for what `writ run` gives the client that it runs, and no other. Refuses to look at the disk: it names places, and
//! whoever reads them sees what is there. The invariant: what a session outside obeys later is never among what is written.

use std::path::{Path, PathBuf};

/// A client that can be run as a whole in a sandbox.
pub trait Program {
    /// Whether a program of this name, without its folder, is the client.
    fn is(&self, name: &str) -> bool;

    /// What it needs. `folder` is the user's own folder of this client, where a variable moves it.
    fn needs(&self, user: &Path, folder: Option<&Path>) -> Needs;
}

/// What a client needs of the user's disk and environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Its own folder. New files can be made in it; of what is there, only `data` is written.
    pub folder: PathBuf,
    /// Names in its folder that are its own data.
    pub data: &'static [&'static str],
    /// Names in its folder that a later session obeys, kept also where they are not there yet. A last `/` is a folder.
    pub kept: &'static [&'static str],
    /// What it writes and another session obeys or has secrets in: it gets one of its own, which is gone with the run.
    pub own: Vec<Own>,
    /// Its login, inside its folder.
    pub login: Vec<PathBuf>,
    /// Variables that hold its login.
    pub variables: &'static [&'static str],
    /// Variables that it runs with.
    pub set: &'static [(&'static str, &'static str)],
}

/// A place that a client gets a file or folder of its own at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Where.
    pub path: PathBuf,
    /// How it begins.
    pub begins: Begins,
}

/// How a file or folder of its own begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// As an empty folder.
    Empty,
    /// As a copy of the file that is there, or with this text.
    Copy(&'static str),
}
