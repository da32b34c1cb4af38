//! `writ schema`: the schemas of what commands print as JSON.

use serde::Serialize;
use writ_core::json;
use writ_policy::did_you_mean;

use crate::args::SchemaArgs;
use crate::exit::Failure;
use crate::output;
use crate::schemas::{ALL, Schema};

/// A schema in the list.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    commands: &'static [&'static str],
    lines: bool,
    about: String,
}

/// Prints one, or lists all.
pub fn run(args: &SchemaArgs) -> Result<(), Failure> {
    if !args.name.is_empty() {
        output::document(find(&args.name)?.text.trim_end());
        return Ok(());
    }
    if args.format.is_json() {
        output::print_json(&ALL.iter().map(listed).collect::<Vec<_>>());
        return Ok(());
    }
    for schema in &ALL {
        let each = if schema.lines { output::dim("  one a line") } else { String::new() };
        output::line(format!("{:<19} {}{each}", schema.name, schema.commands.join(", ")));
    }
    output::line(output::dim(
        "\n`writ schema NAME` prints one. Of what is read: `writ policy schema`, `writ agentfile schema`.",
    ));
    Ok(())
}

/// The schema of this name, or of this command's output.
fn find(words: &[String]) -> Result<&'static Schema, Failure> {
    let command = words.join(" ");
    let found = ALL.iter().find(|schema| schema.name == command || schema.commands.contains(&command.as_str()));
    found.ok_or_else(|| {
        let known = ALL.iter().flat_map(|schema| schema.commands.iter().chain([&schema.name])).copied();
        let near = did_you_mean(&command, known).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| "`writ schema` lists them".to_owned());
        Failure::Usage(format!("no schema `{command}`; {help}"))
    })
}

fn listed(schema: &Schema) -> Listed {
    let document = json::parse(schema.text.as_bytes()).ok();
    let about = document.as_ref().and_then(|document| document.get("description")?.as_str()).unwrap_or_default();
    Listed { name: schema.name, commands: schema.commands, lines: schema.lines, about: about.to_owned() }
}
