//! The exit-code table (R7): every failure has exactly one code, and this match is where it gets it.

use std::fmt::Display;
use std::process::ExitCode;

use crate::output;

/// Why a command did not end well.
#[derive(Debug)]
pub enum Failure {
    /// 1: could not do it (I/O, a lock, a missing file).
    CouldNot(anyhow::Error),
    /// 2: wrong usage that the argument parser cannot see.
    Usage(String),
    /// 3: the answer is no. The command has already said why.
    No,
    /// This code; the command has already said why.
    Said(u8),
    /// 4: the input is malformed.
    Malformed(anyhow::Error),
    /// 4, with a rendered report that shows the place.
    MalformedReport(miette::Report),
}

impl Failure {
    /// An I/O failure or the like, from anything that explains itself.
    pub fn could_not(why: impl Display) -> Self {
        Self::CouldNot(anyhow::anyhow!("{why}"))
    }

    /// Malformed input, from anything that explains itself.
    pub fn malformed(why: impl Display) -> Self {
        Self::Malformed(anyhow::anyhow!("{why}"))
    }

    /// Prints what there is to say and gives the code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::CouldNot(error) => say(&error, 1),
            Self::Usage(text) => say(&anyhow::anyhow!(text), 2),
            Self::No => ExitCode::from(3),
            Self::Said(code) => ExitCode::from(code),
            Self::Malformed(error) => say(&error, 4),
            Self::MalformedReport(report) => {
                output::report(&format!("{report:?}"));
                ExitCode::from(4)
            }
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::CouldNot(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::CouldNot(error.into())
    }
}

fn say(error: &anyhow::Error, code: u8) -> ExitCode {
    // A cause that its error tells already is not told again.
    let text = error
        .chain()
        .map(ToString::to_string)
        .reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") });
    output::note(format!("{} {}", output::bad("error:"), output::plain(&text.unwrap_or_default())));
    ExitCode::from(code)
}

/// Help on standard output, or what is wrong with the command line on standard error.
pub fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    if error.use_stderr() {
        let text = text.to_string();
        let words = text.strip_prefix("error: ").unwrap_or(&text);
        output::note(format!("{} {}", output::bad("error:"), words.trim_end()));
    } else {
        output::help(&text.ansi().to_string());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
