//! Containers: which files of this machine they get to see, by the options of `docker run` and its like.
//!
//! A folder of the project that is mounted is no use of it by itself: what runs inside is judged. Any other folder counts as
//! written whole, unless it is mounted to be read. An image's own program is a program like any other.

use writ_core::Span;

use crate::action::Access;
use crate::eval::Eval;
use crate::eval::files::dirs::below;
use crate::eval::files::mounts::{Mount, Mounts};
use crate::shape::{is_flag, text_word};
use crate::word::{Dir, Part, Word};

/// Files of this machine that containers get to see.
pub fn files(eval: &mut Eval<'_>, arguments: &[Word]) {
    let mut plain = arguments
        .iter()
        .filter(|word| !is_flag(word))
        .skip_while(|word| word.literal().as_deref() == Some("container"));
    let sub = plain.next().and_then(Word::literal);
    if sub.as_deref() == Some("cp") {
        for word in plain.filter(|word| word.literal().is_none_or(|text| !text.contains(':'))) {
            eval.file(word.clone(), Access::Write, true);
        }
    } else if sub.as_deref().is_some_and(|sub| sub != "logs") {
        for (flag, value) in arguments.iter().zip(arguments.iter().skip(1)) {
            if matches!(flag.literal().as_deref(), Some("-f" | "--file" | "--env-file")) {
                eval.file(value.clone(), Access::Read, false);
            }
        }
    }
}

/// The mounts among the options of `docker run` and its like. What is no folder of the project is put on record whole.
pub fn mounts(eval: &mut Eval<'_>, arguments: &[Word]) -> Mounts {
    let mut found = Mounts { folders: Vec::new(), workdir: "/".to_owned() };
    let mut before: Option<String> = None;
    for word in arguments {
        let text = word.literal().unwrap_or_else(|| first_text(word).to_owned());
        let (option, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
            Some((option, value)) => (Some(option.to_owned()), value),
            None => (before.take(), text.as_str()),
        };
        match option.as_deref() {
            Some("-v" | "--volume") if word.literal().is_none() => unknown(eval, word),
            Some("-v" | "--volume") if value.starts_with(['/', '.', '~']) => volume(&mut found, eval, value, word.span),
            Some("--mount") => bind(&mut found, eval, value, word.span),
            Some("-w" | "--workdir") if value.starts_with('/') => found.workdir = value.to_owned(),
            _ => {}
        }
        before = text.starts_with('-').then_some(text);
    }
    found
}

/// `path:where`, `path:where:ro`
fn volume(mounts: &mut Mounts, eval: &mut Eval<'_>, text: &str, span: Span) {
    let mut parts = text.split(':');
    let (host, inside) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let read_only = parts.next().is_some_and(|options| options.split(',').any(|option| option == "ro"));
    add(mounts, eval, host, inside, read_only, span);
}

/// `type=bind,src=path,dst=…`
fn bind(mounts: &mut Mounts, eval: &mut Eval<'_>, text: &str, span: Span) {
    let field = |names: &[&str]| {
        text.split(',')
            .find_map(|field| field.split_once('=').filter(|(name, _)| names.contains(name)).map(|(_, value)| value))
    };
    let inside = field(&["dst", "destination", "target"]).unwrap_or_default();
    let read_only = text.split(',').any(|field| matches!(field, "ro" | "readonly" | "ro=true" | "readonly=true"));
    if let Some(host) = field(&["src", "source"]).filter(|_| text.contains("type=bind")) {
        add(mounts, eval, host, inside, read_only, span);
    }
}

fn add(mounts: &mut Mounts, eval: &mut Eval<'_>, host: &str, inside: &str, read_only: bool, span: Span) {
    if !inside.starts_with('/') || !is_project(eval, host) {
        let access = if read_only { Access::Read } else { Access::Write };
        return eval.file(text_word(host, span), access, true);
    }
    let inside = below("/", inside);
    mounts.folders.push(Mount { host: host.to_owned(), dirs: eval.dirs.clone(), inside, read_only });
}

fn first_text(word: &Word) -> &str {
    match word.parts.first() {
        Some(Part::Text(text)) => text,
        Some(Part::Glob(_) | Part::Unknown(_)) | None => "",
    }
}

/// A folder that is not known, up to the `:` behind it.
fn unknown(eval: &mut Eval<'_>, word: &Word) {
    let mut parts = Vec::new();
    for part in &word.parts {
        let Part::Text(text) = part else {
            parts.push(part.clone());
            continue;
        };
        let text = if parts.is_empty() { text.split_once('=').map_or(text.as_str(), |(_, value)| value) } else { text };
        match text.split_once(':') {
            Some(("", _)) => break,
            Some((host, _)) => {
                parts.push(Part::Text(host.to_owned()));
                break;
            }
            None if text.is_empty() => {}
            None => parts.push(Part::Text(text.to_owned())),
        }
    }
    if parts.iter().any(|part| !matches!(part, Part::Text(_))) {
        eval.file(Word { parts, span: word.span }, Access::Write, true);
    }
}

/// Whether a folder is the one the line starts in, or lies below it.
fn is_project(eval: &Eval<'_>, host: &str) -> bool {
    let Some(start) = eval.start_dir() else { return false };
    let lies = |dir: &Dir| match dir {
        Dir::Start(dir) => {
            let whole = below(&below(&start, dir), host);
            whole.strip_prefix(start.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        Dir::Open(_) | Dir::Unknown => host.starts_with('/') && below("/", host).starts_with(&format!("{start}/")),
    };
    !host.starts_with('~') && eval.dirs.iter().all(lies)
}
