//! Words on the terminal: colours that vanish when piped, marks, and the JSON printer.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use writ_core::json::{self, Value};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Green and bold.
pub fn good(text: impl Display) -> String {
    paint(GOOD, text)
}

/// Red and bold.
pub fn bad(text: impl Display) -> String {
    paint(BAD, text)
}

/// Yellow and bold.
pub fn warn(text: impl Display) -> String {
    paint(WARN, text)
}

/// Faint.
pub fn dim(text: impl Display) -> String {
    paint(DIM, text)
}

/// Bold.
pub fn bold(text: impl Display) -> String {
    paint(BOLD, text)
}

/// Something could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether standard output lost something, as on a full disk. A reader that has gone away is no failure.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

fn took(written: std::io::Result<()>) {
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// One line on stdout.
pub fn line(text: impl Display) {
    let mut out = anstream::stdout();
    took(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Bytes on stdout as they are.
pub fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    took(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Foreign text on one line: a name must not paint a line of its own.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// One line on stderr.
pub fn note(text: impl Display) {
    drop(writeln!(anstream::stderr(), "{text}"));
}

/// One JSON value, indented, on stdout.
pub fn print_json(value: &Value) {
    line(json::pretty(value));
}

/// One JSON value a line, on stdout.
pub fn print_json_line(value: &Value) {
    line(json::compact(value));
}
