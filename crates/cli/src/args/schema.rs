//! `writ schema`

use clap::Args as ClapArgs;

use super::{FormatArgs, complete};

#[derive(ClapArgs, Debug)]
pub struct SchemaArgs {
    /// The schema, or the command whose output it describes; all are listed when left out.
    #[arg(value_name = "NAME|COMMAND", add = complete::schemas())]
    pub name: Vec<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}
