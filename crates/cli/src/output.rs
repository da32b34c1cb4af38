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
    text.chars().map(|c| if unseen(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Controls, and letters that are not seen but change how others are: direction, joins, line ends, tags.
fn unseen(c: char) -> bool {
    let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
    c.is_control()
        || formats
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        assert_eq!(plain("a\u{1b}[2Kb\nc"), "a\\u{1b}[2Kb\\u{a}c");
        assert_eq!(plain("x\u{202e}y\u{2066}z\u{200b}\u{e0041}"), "x\\u{202e}y\\u{2066}z\\u{200b}\\u{e0041}");
        assert_eq!(plain("Grüße, 日本 🦀"), "Grüße, 日本 🦀");
    }
}
