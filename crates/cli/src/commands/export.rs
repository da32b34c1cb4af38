//! `writ export`: a session's record as one file.

use std::fs;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;
use writ_core::SessionId;
use writ_engine::bundle::{self, ExportOptions, Exported};
use writ_store::Store;

use crate::args::{ExportArgs, Format};
use crate::commands::rooms;
use crate::commands::session_lookup::{outside_state, session, store};
use crate::environment;
use crate::exit::Failure;
use crate::output;

pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let id = session(&store, args.session.as_deref())?;
    match &args.output {
        Some(to) if to == Path::new("-") => to_stdout(&store, &id, args),
        Some(to) => to_file(&store, &id, args, to),
        None => to_file(&store, &id, args, Path::new(&format!("{}.tar", id.file_name()))),
    }
}

fn to_stdout(store: &Store, id: &SessionId, args: &ExportArgs) -> Result<(), Failure> {
    let out = std::io::stdout().lock();
    if out.is_terminal() {
        return Err(Failure::could_not(
            "a bundle is no text for a terminal: give `-o FILE`, or lead it into a program",
        ));
    }
    let scratch = rooms::folder().map_err(Failure::could_not)?;
    let mut out = BufWriter::new(out);
    let made = bundle::export(store, id, options(args), scratch.path(), &mut out).map_err(Failure::could_not)?;
    out.flush().map_err(Failure::could_not)?;
    output::note(format!("{} files, {} bytes, {}", made.files, made.bytes, made.digest));
    tell_left_out(&made);
    Ok(())
}

const fn options(args: &ExportArgs) -> ExportOptions {
    ExportOptions { transcripts: args.transcripts, progress: Some(output::progress) }
}

/// Writes the bundle beside its place first, so that what stands there is whole.
fn to_file(store: &Store, id: &SessionId, args: &ExportArgs, to: &Path) -> Result<(), Failure> {
    outside_state(to, &environment::home())?;
    if to.exists() && !args.force {
        let why = format!("{} is there already: give another `-o`, or `--force` to replace it", to.display());
        return Err(Failure::could_not(why));
    }
    if fs::metadata(to).is_ok_and(|found| !found.is_file()) {
        let why = format!("{} is no plain file: give another `-o`, or `-o -` for standard output", to.display());
        return Err(Failure::could_not(why));
    }
    let folder = to.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let at = |error: std::io::Error| Failure::could_not(format!("{}: {error}", folder.display()));
    let mut file = rooms::file_in(folder).map_err(at)?;
    let scratch = rooms::folder_in(folder).map_err(at)?;
    let mut out = BufWriter::new(&mut file);
    let made = bundle::export(store, id, options(args), scratch.path(), &mut out).map_err(Failure::could_not)?;
    out.flush().map_err(at)?;
    drop(out);
    file.as_file().sync_all().map_err(at)?;
    match if args.force { file.persist(to) } else { file.persist_noclobber(to) } {
        Ok(_file) => {}
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::could_not(format!("{} is there already", to.display())));
        }
        Err(error) => return Err(at(error.error)),
    }
    let bytes = fs::metadata(to).map_err(at)?.len();
    show(to, bytes, &made, args.format.format);
    Ok(())
}

/// Whoever verifies the bundle reads that they are not there: better known here than there.
fn tell_left_out(made: &Exported) {
    if made.left_out > 0 {
        output::note(format!(
            "left out: {} of its transcripts, so that it is verified by its rows alone; `--transcripts` takes them along, and \
             `writ verify` asks here whether they agree with the rows",
            made.left_out
        ));
    }
}

/// What was made.
#[derive(Serialize)]
struct Made<'a> {
    file: &'a Path,
    digest: String,
    bytes: u64,
    files: usize,
    masked: u64,
}

fn show(to: &Path, bytes: u64, made: &Exported, format: Format) {
    let Exported { digest, files, masked, .. } = made;
    tell_left_out(made);
    match format {
        Format::Json => {
            output::print_json(&Made { file: to, digest: digest.to_string(), bytes, files: *files, masked: *masked });
        }
        Format::Human => {
            if *masked > 0 {
                output::note(format!("{masked} lines of transcripts had a secret, which is masked"));
            }
            output::note(format!(
                "{}: {files} files, {bytes} bytes; `writ verify {0} --trust KEY.pem` checks it",
                to.display()
            ));
            output::line(digest);
        }
    }
}
