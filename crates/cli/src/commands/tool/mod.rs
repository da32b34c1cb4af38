//! `writ tool`: an Agentfile's tools, called, listed and described (§17).

mod call;
mod composed;
pub mod found;
mod show;

use crate::args::ToolCommand;
use crate::exit::Failure;

pub use composed::offline;
pub use found::brought;
pub use show::{help, schema};

/// Runs one of the commands.
pub fn run(command: &ToolCommand) -> Result<(), Failure> {
    match command {
        ToolCommand::Call(args) => call::run(args),
        ToolCommand::List(args) => show::list(args),
        ToolCommand::Describe(args) => show::describe(args),
        ToolCommand::Events(args) => show::events(args),
    }
}
