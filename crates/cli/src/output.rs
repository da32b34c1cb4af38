//! Words on the terminal: colours that vanish when piped, marks, and the JSON printer.

use std::fmt::Display;
use std::io::Write;

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

/// One line on stdout. A reader that has gone away is no failure.
pub fn line(text: impl Display) {
    drop(writeln!(anstream::stdout(), "{text}"));
}

/// Bytes on stdout as they are.
pub fn bytes(bytes: &[u8]) {
    drop(std::io::stdout().write_all(bytes));
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
