//! What lands somewhere: copies, links, downloads, archives. A target may be a folder; what is written is then in it.

use writ_core::Span;

use crate::action::{Access, Arrival, UnresolvedKind};
use crate::eval::Eval;
use crate::programs::entries::words::{Operands, Role};
use crate::programs::operands::all;
use crate::programs::operands::table::Split;
use crate::shape::{is_url, text_word};
use crate::word::{Dir, Part, Source, Word};

/// Puts on record that something lands at `target`.
pub fn land(eval: &mut Eval<'_>, target: &Word, source: Option<Word>, in_folder: bool, tree: bool, link: bool) {
    let named = source.as_ref().and_then(Word::literal);
    let name = named.as_deref().and_then(|text| text.trim_end_matches('/').rsplit('/').next()).unwrap_or_default();
    for path in [target.literal(), target.literal().map(|folder| format!("{folder}/{name}"))].into_iter().flatten() {
        if crate::settings::is_settings(&path) {
            eval.settings_file(&text_word(&path, target.span), None);
            break;
        }
    }
    let Some(target) = eval.place(target.clone(), Access::Write, tree) else { return };
    if target.dirs.contains(&Dir::Unknown) && target.path.literal().is_some_and(|text| !text.starts_with('/')) {
        eval.unresolved(UnresolvedKind::Directory, "a folder that is not known", target.span);
    }
    let arrival = Arrival { target, source, in_folder, link };
    if !eval.out.arrivals.contains(&arrival) {
        eval.out.arrivals.push(arrival);
    }
}

/// Files with names nobody knows are written into a folder.
pub fn unpack(eval: &mut Eval<'_>, folder: &Word) {
    land(eval, folder, None, true, true, false);
}

/// `cp`, `mv`, `ln`, `install`, `rsync`, `scp`: sources, then a target.
pub fn copy(eval: &mut Eval<'_>, base: &str, kind: Operands, split: &Split<'_>, span: Span) {
    if base == "install" && split.has(&['d'], "--directory") {
        return all(eval, &split.operands, Access::Write, false);
    }
    let here = text_word(".", span);
    let (sources, target, given) = match (split.value(Role::TargetFolder), split.operands.split_last()) {
        (Some(folder), _) => (split.operands.as_slice(), folder, true),
        (None, Some((last, sources))) if !sources.is_empty() => (sources, *last, sources.len() > 1),
        (None, _) if kind == Operands::Link => (split.operands.as_slice(), &here, true),
        (None, _) => return all(eval, &split.operands, Access::Read, split.tree),
    };
    let soft =
        matches!(kind, Operands::Link | Operands::Copy) && base != "install" && split.has(&['s'], "--symbolic-link");
    let hard = (kind == Operands::Link && !soft) || (base == "cp" && split.has(&['l'], "--link"));
    let tree = split.tree || matches!(kind, Operands::Move | Operands::Sync);
    let spread = split.has(&['R'], "--parents") && (base == "rsync" || split.has(&[], "--parents"));
    let far = matches!(kind, Operands::RemoteCopy | Operands::Sync);
    let in_folder = given || is_folder(target);
    for source in sources {
        let remote = far && is_remote(source);
        match (soft, remote) {
            // `ln -sr`: the source hangs off the folder that the line is in.
            (true, false) if split.has(&['r'], "--relative") => {
                eval.file((*source).clone(), Access::Read, true);
                eval.file((*source).clone(), Access::Write, false);
            }
            (true, _) | (_, true) => {}
            _ if kind == Operands::Move || hard => {
                // Moving reads too: the content ends up elsewhere. A second name of a file is a way to write it.
                eval.file((*source).clone(), Access::Write, kind == Operands::Move);
                eval.file((*source).clone(), Access::Read, kind == Operands::Move);
            }
            _ => eval.file((*source).clone(), Access::Read, tree),
        }
        if !(far && is_remote(target)) {
            // `-T`: what the target is is replaced by what the source holds.
            let merges = matches!(base, "cp" | "mv") && split.has(&['T'], "--no-target-directory") && tree;
            let contents = spread
                || merges
                || (kind == Operands::Sync && source.literal().is_some_and(|text| text.ends_with('/')));
            let name = if contents { None } else { name(source) };
            if soft {
                land(eval, target, Some((*source).clone()), in_folder, false, true);
            } else {
                land(eval, target, name, in_folder, tree, false);
            }
        }
    }
}

/// `aws s3 cp`, `gsutil rsync`: from here to a store, or back.
pub fn store(eval: &mut Eval<'_>, operands: &[&Word]) {
    let verb = |word: &&Word| matches!(word.literal().as_deref(), Some("cp" | "mv" | "sync" | "rsync"));
    let Some(at) = operands.iter().position(verb) else { return };
    let Some((target, sources)) = operands.get(at + 1..).and_then(<[_]>::split_last) else { return };
    for source in sources.iter().filter(|source| !is_url(source)) {
        eval.file((*source).clone(), Access::Read, true);
    }
    if !is_url(target) {
        sources.iter().for_each(|source| land(eval, target, name(source), is_folder(target), true, false));
    }
}

/// Downloads that are saved under the name at the end of the URL.
pub fn download(eval: &mut Eval<'_>, base: &str, split: &Split<'_>, span: Span) {
    let here = text_word(".", span);
    let named = split.values.iter().any(|(role, _)| *role == Role::Writes);
    let (saves, folder, open) = match base {
        "curl" => {
            let saves = split.has(&['O'], "--remote-name") || split.has(&[], "--remote-name-all");
            (saves, split.value(Role::OutputFolder), split.has(&['J'], "--remote-header-name"))
        }
        "wget" => {
            let document = split.flags.iter().any(|flag| flag.starts_with("--output-d"));
            let clustered = split.has(&['O'], "--output-document");
            let deep = split.tree
                || split.has(&['r', 'm', 'p'], "--recursive")
                || split.has(&[], "--mirror")
                || split.has(&[], "--content-disposition")
                || split.has(&[], "--trust-server-names");
            (!(document || clustered || split.has(&[], "--spider")), split.value(Role::TargetFolder), deep)
        }
        "aria2c" | "axel" | "youtube-dl" | "yt-dlp" => (!named, split.value(Role::TargetFolder), base != "axel"),
        _ => return,
    };
    let folder = folder.unwrap_or(&here);
    if !saves {
        return;
    }
    let given = split.values.iter().filter(|(role, _)| *role == Role::Url).map(|(_, value)| value);
    for url in split.operands.iter().copied().chain(given) {
        if open {
            unpack(eval, folder);
        }
        land(eval, folder, Some(url_name(url)), true, false, false);
    }
}

/// The file name that a URL ends with, escapes read.
fn url_name(url: &Word) -> Word {
    let Some(text) = url.literal() else { return Word { parts: vec![Part::Unknown(Source::Any)], span: url.span } };
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    let mut out = String::new();
    let mut pieces = name.split('%');
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let code = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(u8::is_ascii_graphic);
        match code {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(piece.get(2..).unwrap_or_default());
            }
            None => {
                out.push('%');
                out.push_str(piece);
            }
        }
    }
    text_word(if out.is_empty() { "index.html" } else { &out }, url.span)
}

/// The machine of `machine:path`.
pub fn machine(text: &str) -> Option<&str> {
    let (machine, _) = text.split_once(':')?;
    let plain = !machine.is_empty() && !machine.contains('/');
    plain.then(|| machine.rsplit('@').next().unwrap_or_default())
}

fn is_remote(word: &Word) -> bool {
    is_url(word) || word.literal().is_some_and(|text| machine(&text).is_some())
}

/// Whether a path can only be a folder's.
pub fn is_folder(word: &Word) -> bool {
    let last = match word.parts.last() {
        Some(Part::Text(text) | Part::Glob(text)) => text.rsplit('/').next(),
        Some(Part::Unknown(_)) | None => None,
    };
    let whole = word.literal();
    matches!(last, Some("" | "." | ".."))
        && (whole.is_none()
            || whole.is_some_and(|text| text.ends_with('/') || matches!(text.rsplit('/').next(), Some("." | ".."))))
}

/// The word that gives a copy its name; `None` for a folder's contents.
fn name(source: &Word) -> Option<Word> {
    let text = source.literal();
    let trimmed = text.as_deref().map(|text| text.trim_end_matches('/'));
    let tail = trimmed.map(|text| text.rsplit(['/', ':']).next().unwrap_or_default());
    (!matches!(tail, Some("" | "." | ".."))).then(|| source.clone())
}
