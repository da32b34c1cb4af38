//! Why a run did not take place.
//!
//! Owns the words and the exit codes. Invariant: what is said names the step that failed, and of what.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::features::Layer;
use crate::message::Step;
use crate::plan::PlanError;

/// Why a run did not take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The confinement cannot be carried out here.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The command would have been uid 0.
    #[error("the command would run as root, who owns `{}`", .0.display())]
    Root(PathBuf),
    /// The kernel counts no processes of root's.
    #[error("the number of processes cannot be limited where the command runs as root, whom the kernel exempts")]
    RootsProcesses,
    /// Only root can become somebody else.
    #[error("only root can run a command as another user")]
    OtherUser,
    /// This kernel or container does not allow a layer.
    #[error("{0} cannot be had here")]
    Layer(Layer),
    /// A step inside failed.
    #[error("could not {}: {}{}", .step.words(), .error, .about.as_ref().map(|about| format!(" (`{about}`)")).unwrap_or_default())]
    Inside {
        /// Which.
        step: Step,
        /// What the kernel said.
        error: io::Error,
        /// Of what.
        about: Option<String>,
    },
    /// The program could not be executed.
    #[error("could not execute `{}`: {error}", program.display())]
    Program {
        /// Which.
        program: OsString,
        /// What the kernel said.
        error: io::Error,
    },
    /// The memory of a tree of processes can only be held by a control group.
    #[error(
        "the memory of all processes together cannot be limited here: no control group can be made (`processMemoryMiB` limits each)"
    )]
    NoGroup,
    /// What should answer outside could not.
    #[error("the caller did not get ready: {0}")]
    Caller(io::Error),
    /// The supervisor could not do its part.
    #[error("could not {0}: {1}")]
    Outside(&'static str, io::Error),
    /// Namespaces that runs share were asked for in vain.
    #[error("what runs share was not lent: {0}")]
    NotLent(io::Error),
    /// What a command is handed leads past what is masked.
    #[error("its {0} is a folder, which would lead past what is masked: give it a file, a pipe or /dev/null")]
    Folder(&'static str),
    /// The first process inside ended without a word.
    #[error("the sandbox ended before the command began")]
    Silent,
}

impl RunError {
    /// Whether what it was to run in ended before the command began, as happens to namespaces that are shared: it may be tried again.
    pub fn is_before_command(&self) -> bool {
        match self {
            Self::Silent | Self::NotLent(_) => true,
            // A namespace whose first process is gone takes no other.
            Self::Inside { step, .. } => matches!(step, Step::Join | Step::Start),
            Self::Plan(_)
            | Self::Root(_)
            | Self::RootsProcesses
            | Self::OtherUser
            | Self::Layer(_)
            | Self::NoGroup
            | Self::Folder(_)
            | Self::Program { .. }
            | Self::Caller(_)
            | Self::Outside(..) => false,
        }
    }

    /// The code with which a shell would end: 127 for a program that is not there, 126 for one that cannot be executed, else 125.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Plan(_)
            | Self::Root(_)
            | Self::RootsProcesses
            | Self::OtherUser
            | Self::Layer(_)
            | Self::Inside { .. }
            | Self::NoGroup
            | Self::Folder(_)
            | Self::Caller(_)
            | Self::Outside(..)
            | Self::NotLent(_)
            | Self::Silent => 125,
        }
    }
}

/// For an error of a step of the supervisor's own.
pub fn outside(doing: &'static str) -> impl FnOnce(Errno) -> RunError {
    move |error| RunError::Outside(doing, error.into())
}
