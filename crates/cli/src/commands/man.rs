//! `writ man`: manual pages, made from what `--help` says.

use std::fs;
use std::path::Path;

use crate::args;
use crate::exit::Failure;
use crate::output;

/// Writes a page for each command into a folder, which is made.
pub fn run(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::could_not(format!("{}: {error}", folder.display())))?;
    let failed = |error: std::io::Error| Failure::could_not(format!("{}: {error}", folder.display()));
    clap_mangen::generate_to(args::command(), folder).map_err(failed)?;
    let pages = fs::read_dir(folder).map_err(failed)?.flatten();
    let pages = pages.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "1")).count();
    output::line(format!("{} {pages} pages in {}", output::good("✓"), output::path(folder)));
    Ok(())
}
