//! `writ report`: a session as one page that needs nothing else.
//!
//! Owns the page: no script, no font, no picture and no address of anybody's, so that it can be kept, printed and sent. Invariant: every text
//! from the record is escaped and made visible ([`html::text`]), and a policy in the page's head lets nothing be loaded.

mod chart;
mod html;
mod page;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use writ_engine::verify::{self, Options, Report};
use writ_engine::view::View;

use crate::args::{Format, ReportArgs};
use crate::commands::session_lookup::{failure, outside_state, session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Writes it.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let home = environment::home();
    let store = store(&home)?;
    let id = session(&store, args.session.as_deref())?;
    let view = View::of(&store, &id).map_err(Failure::could_not)?;
    if args.format.format == Format::Json {
        output::print_json(&view);
        return Ok(());
    }
    let report = if args.unverified { None } else { Some(verified(&store, &id, &home)?) };
    let page = page::page(&view, report.as_ref());
    let file = args.output.clone().unwrap_or_else(|| format!("{}.html", name(id.as_str())).into());
    if file == Path::new("-") {
        output::bytes(page.as_bytes());
        return Ok(());
    }
    outside_state(&file, &home)?;
    let mut options = OpenOptions::new();
    options.write(true).create(args.force).truncate(args.force).create_new(!args.force);
    let written = options.open(&file).and_then(|mut file| file.write_all(page.as_bytes()));
    written.map_err(|error| {
        let force = if error.kind() == ErrorKind::AlreadyExists { "; `--force` writes over it" } else { "" };
        Failure::could_not(format!("{}: {error}{force}", file.display()))
    })?;
    output::line(format!("{} {} ({} KB)", output::good("✓"), output::path(&file), page.len() >> 10));
    Ok(())
}

fn verified(store: &writ_store::Store, id: &writ_core::SessionId, home: &writ_engine::Home) -> Result<Report, Failure> {
    let options = Options { progress: Some(output::progress), ..Options::default() };
    verify::session(store, id, home, &options).map_err(failure)
}

/// A session's id as a file's name.
fn name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' }).collect()
}
