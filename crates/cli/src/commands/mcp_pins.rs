//! `writ mcp pins`: what servers' tools were when they were first seen, and a human's yes to what they are now.

use writ_engine::governing::in_force;
use writ_engine::mcp::pins::{Pin, Pins};
use writ_engine::session::state::short;

use super::session_lookup::{every_start, store};
use crate::args::{Format, FormatArgs, McpPinsArgs, McpPinsCommand};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Lists them, or accepts what has changed.
pub fn run(args: &McpPinsArgs) -> Result<(), Failure> {
    match &args.command {
        None => list(&args.format),
        Some(McpPinsCommand::List(format)) => list(format),
        Some(McpPinsCommand::Accept { server, tool }) => accept(server, tool.as_deref()),
    }
}

fn list(args: &FormatArgs) -> Result<(), Failure> {
    let (store, repository) = (store(&environment::home())?, in_force::repository(&environment::cwd()?));
    let all = Pins::all(&store, repository).map_err(Failure::could_not)?;
    if args.format == Format::Json {
        output::print_json(&all);
        return Ok(());
    }
    for pins in &all {
        let changed = pins.tools.values().filter(|pin| pin.found.is_some()).count();
        let tools = pins.tools.len();
        output::line(format!("{}  {tools} tools, {changed} changed", output::bold(output::plain(&pins.server))));
        for (name, pin) in &pins.tools {
            show(name, pin);
        }
    }
    Ok(())
}

/// Most members of a tool that are shown.
const MOST: usize = 50;

/// One tool; of a changed one each member that is another, before and now: the model reads all of them.
fn show(name: &str, pin: &Pin) {
    let digest = |pin: &Pin| pin.accepted.as_ref().map_or_else(String::new, |seen| short(seen.digest));
    let mark = match (&pin.accepted, &pin.found) {
        (_, None) => output::good("✓"),
        (Some(_), Some(_)) => output::bad("changed"),
        (None, Some(_)) => output::bad("new"),
    };
    output::line(format!("  {mark}  {}  {}", output::plain(name), output::dim(digest(pin))));
    if pin.found.is_none() {
        return;
    }
    let changes = pin.changes();
    for (pointer, values) in changes.iter().take(MOST) {
        output::line(format!("    {}", output::plain(pointer)));
        for (word, value) in ["was", "now"].into_iter().zip(values) {
            if let Some(value) = value {
                output::line(format!("      {}  {}", output::dim(word), output::plain(value)));
            }
        }
    }
    if changes.len() > MOST {
        let more = changes.len() - MOST;
        output::line(format!("    and {more} more: `writ mcp pins --format json` has all"));
    }
}

fn accept(server: &str, tool: Option<&str>) -> Result<(), Failure> {
    let home = environment::home();
    let (store, repository) = (store(&home)?, in_force::repository(&environment::cwd()?));
    let about = every_start(&store)?;
    human_check::human("accept a server's tools", &about, &home)?;
    let accepted = Pins::accept(&store, repository, server, tool).map_err(Failure::could_not)?;
    for name in &accepted {
        output::line(format!("{} `{}` is let in as it is now", output::good("✓"), output::plain(name)));
    }
    if accepted.is_empty() {
        output::line("nothing has changed");
    }
    Ok(())
}
