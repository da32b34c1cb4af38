//! Words on the terminal: colours that vanish when piped, marks, and the JSON printer.
//!
//! The edge of the command line: nothing that somebody else wrote gets to a terminal but through here, where it is made visible.

use std::fmt::Display;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;
use writ_core::{json, visible};

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal only.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARN: Style = AnsiColor::Yellow.on_default().bold();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// What begins a change of style in a text on its way here. Foreign text cannot hold it: it is made up anew for each process.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\u{fdd0}{:016x}", RandomState::new().build_hasher().finish()))
}

/// The styles, and the letter that names each behind a mark.
const STYLES: [(char, Style); 5] = [('g', GOOD), ('b', BAD), ('w', WARN), ('d', DIM), ('s', BOLD)];

fn paint(letter: char, text: impl Display) -> String {
    let mark = mark();
    format!("{mark}{letter}{text}{mark}.")
}

/// A text as a terminal gets it: the styles are ours, and everything else that would not be seen is spelled out. Every word that a
/// command says goes through here, so that no name, path, transcript or file's content paints anything (see [`visible`]).
fn for_terminal(text: &str) -> String {
    let mut parts = text.split(mark());
    let mut out = visible::lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let mut letters = part.chars();
        match letters.next().and_then(|letter| STYLES.iter().find(|(known, _)| *known == letter)) {
            Some((_, style)) => out.push_str(&style.render().to_string()),
            None => out.push_str(&anstyle::Reset.render().to_string()),
        }
        out.push_str(&visible::lines(letters.as_str()));
    }
    out
}

/// Green and bold.
pub fn good(text: impl Display) -> String {
    paint('g', text)
}

/// Red and bold.
pub fn bad(text: impl Display) -> String {
    paint('b', text)
}

/// Yellow and bold.
pub fn warn(text: impl Display) -> String {
    paint('w', text)
}

/// Faint.
pub fn dim(text: impl Display) -> String {
    paint('d', text)
}

/// Bold.
pub fn bold(text: impl Display) -> String {
    paint('s', text)
}

/// Something could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether standard output lost something, as on a full disk. A reader that has gone away is no failure.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Whoever read standard output has gone away.
static GONE: AtomicBool = AtomicBool::new(false);

/// Whether nobody reads standard output any more, as far as the last write told.
pub fn gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

fn took(written: std::io::Result<()>) {
    match written.map_err(|error| error.kind()) {
        Ok(()) => {}
        Err(ErrorKind::BrokenPipe) => GONE.store(true, Ordering::Relaxed),
        Err(_) => LOST.store(true, Ordering::Relaxed),
    }
}

/// The beginning of a line on stderr, where an answer is typed behind it.
pub fn note_start(text: &str) {
    let mut err = anstream::stderr();
    drop(write!(err, "{text}").and_then(|()| err.flush()));
}

/// One line on stdout.
pub fn line(text: impl Display) {
    let mut out = anstream::stdout();
    took(writeln!(out, "{}", for_terminal(&text.to_string())).and_then(|()| out.flush()));
}

/// Bytes on stdout as they are; on a terminal, as text that can be seen.
pub fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let shown = out.is_terminal().then(|| visible::lines(&String::from_utf8_lossy(bytes)).into_owned());
    let bytes = shown.as_deref().map_or(bytes, str::as_bytes);
    took(out.write_all(bytes).and_then(|()| out.flush()));
}

/// A JSON text on stdout, with its line end: byte for byte, but on a terminal nothing in it is unseen.
pub fn document(text: &str) {
    let mut out = std::io::stdout();
    let shown = if out.is_terminal() { visible::json(text) } else { text.into() };
    took(writeln!(out, "{shown}").and_then(|()| out.flush()));
}

/// A text as one word of a shell line.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Foreign text on one line: a name must not paint a line of its own.
pub fn plain(text: &str) -> String {
    visible::line(text).into_owned()
}

/// A path on one line.
pub fn path(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

/// One line on stderr.
pub fn note(text: impl Display) {
    drop(writeln!(anstream::stderr(), "{}", for_terminal(&text.to_string())));
}

/// Our own help on stdout.
pub fn help(text: &str) {
    let mut out = anstream::stdout();
    took(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Says once when to use colours.
pub fn color(choice: Color) {
    match choice {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    // Digests and paths are words that a narrow terminal must not break; and the report's colours are the same as everything's.
    let handler = |_: &dyn miette::Diagnostic| -> Box<dyn miette::ReportHandler> {
        let handler = miette::MietteHandlerOpts::new().break_words(false).color(colored());
        Box::new(handler.build())
    };
    drop(miette::set_hook(Box::new(move |diagnostic| handler(diagnostic))));
}

fn colored() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// A report with its places, on stderr. Its texts were made visible when it was put together; its colours are its own.
pub fn report(text: &str) {
    drop(writeln!(anstream::stderr(), "{text}"));
}

/// How far something has got, on one line of a terminal that the next one takes; nothing elsewhere. A crate for this brings a thread
/// and a terminal library for one line that is written ten times a second.
pub fn progress(done: u64, all: u64) {
    static SINCE: Mutex<Option<(Instant, bool)>> = Mutex::new(None);
    let mut err = std::io::stderr();
    if !err.is_terminal() {
        return;
    }
    let Ok(mut since) = SINCE.lock() else { return };
    let (first, shown) = since.get_or_insert_with(|| (Instant::now(), false));
    if done >= all {
        // What was done at once was never shown.
        if std::mem::take(shown) {
            drop(write!(err, "\r\u{1b}[K").and_then(|()| err.flush()));
        }
    } else if first.elapsed() > PAUSE {
        *shown = true;
        let width = usize::try_from(done.saturating_mul(WIDTH) / all.max(1)).unwrap_or_default();
        let percent = done.saturating_mul(100) / all.max(1);
        drop(
            write!(err, "\r[{:<30}] {percent:>3} % of {} MB", "#".repeat(width), all >> 20).and_then(|()| err.flush()),
        );
    }
}

/// Letters in a progress bar.
const WIDTH: u64 = 30;
/// How long something takes before its progress is shown.
const PAUSE: Duration = Duration::from_millis(300);

/// How many of a number of things are done, on the same line of a terminal; nothing elsewhere, and nothing of what is done at once.
pub struct Steps {
    what: &'static str,
    all: usize,
    began: Instant,
    shown: AtomicBool,
}

impl Steps {
    /// None of them yet.
    pub fn new(what: &'static str, all: usize) -> Self {
        Self { what, all, began: Instant::now(), shown: AtomicBool::new(false) }
    }

    /// So many of them.
    pub fn reach(&self, done: usize) {
        let mut err = std::io::stderr();
        if !err.is_terminal() {
            return;
        }
        if done >= self.all {
            if self.shown.swap(false, Ordering::Relaxed) {
                drop(write!(err, "\r\u{1b}[K").and_then(|()| err.flush()));
            }
        } else if self.began.elapsed() > PAUSE {
            self.shown.store(true, Ordering::Relaxed);
            let (all, what) = (self.all.max(1), self.what);
            let bar = "#".repeat(done * usize::try_from(WIDTH).unwrap_or_default() / all);
            drop(write!(err, "\r[{bar:<30}] {done} of {all} {what}").and_then(|()| err.flush()));
        }
    }
}

/// One JSON document, indented, on stdout.
pub fn print_json<T: Serialize + ?Sized>(value: &T) {
    document(&json::pretty(&json::to_value(value)));
}

/// One JSON document a line, on stdout.
pub fn print_json_line<T: Serialize + ?Sized>(value: &T) {
    document(&json::to_compact(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_styles_reach_a_terminal() {
        let foreign = format!("a\u{1b}[32mb\u{9b}2Jc\u{fdd0}g{}", 'd');
        let shown = for_terminal(&format!("{} {foreign}\n{}", good(&foreign), dim("x")));
        let ours = format!("{}", GOOD.render());
        assert!(shown.starts_with(&ours) && shown.matches('\u{1b}').count() >= 4, "{shown:?}");
        let without = shown.replace(&ours, "").replace(&format!("{}", DIM.render()), "").replace("\u{1b}[0m", "");
        assert!(!without.contains('\u{1b}') && !without.contains('\u{9b}'), "{without:?}");
        assert_eq!(plain("a\nb"), "a\\u{a}b");
    }
}
