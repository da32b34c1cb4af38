//! What containers get to see of this machine: folders of the host under names of their own.
//!
//! A folder of the project that is mounted is no use of it by itself: what runs inside is judged, its paths being those of the
//! host again (`docker run -v "$PWD":/w image sh -c 'rm /w/x'`). An image's own program is a program like any other. Any
//! other folder counts as written whole, unless it is mounted to be read.

use writ_core::Span;

use crate::action::{Access, Dir, Part, Word};
use crate::eval::Eval;
use crate::eval::command::text_word;
use crate::eval::dirs::below;

/// What a container sees.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    folders: Vec<Mount>,
    /// Where its commands start, in the container's own names.
    workdir: String,
}

#[derive(Clone, Debug)]
struct Mount {
    /// The host's folder, as the line names it.
    host: String,
    /// Where those of the line's commands lie that the host's folder is relative to.
    dirs: Vec<Dir>,
    inside: String,
    read_only: bool,
}

impl Mounts {
    /// The mounts among the options of `docker run` and its like. What is no folder of the project is put on record whole.
    pub fn of(eval: &mut Eval<'_>, arguments: &[Word]) -> Self {
        let mut found = Self { folders: Vec::new(), workdir: "/".to_owned() };
        let mut before: Option<String> = None;
        for word in arguments {
            let text = word.literal().unwrap_or_else(|| first_text(word).to_owned());
            let (option, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
                Some((option, value)) => (Some(option.to_owned()), value),
                None => (before.take(), text.as_str()),
            };
            match option.as_deref() {
                Some("-v" | "--volume") if word.literal().is_none() => unknown(eval, word),
                Some("-v" | "--volume") if value.starts_with(['/', '.', '~']) => found.volume(eval, value, word.span),
                Some("--mount") => found.bind(eval, value, word.span),
                Some("-w" | "--workdir") if value.starts_with('/') => found.workdir = value.to_owned(),
                _ => {}
            }
            before = text.starts_with('-').then_some(text);
        }
        found
    }

    /// `path:where`, `path:where:ro`
    fn volume(&mut self, eval: &mut Eval<'_>, text: &str, span: Span) {
        let mut parts = text.split(':');
        let (host, inside) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let read_only = parts.next().is_some_and(|options| options.split(',').any(|option| option == "ro"));
        self.add(eval, host, inside, read_only, span);
    }

    /// `type=bind,src=path,dst=…`
    fn bind(&mut self, eval: &mut Eval<'_>, text: &str, span: Span) {
        let field = |names: &[&str]| {
            text.split(',').find_map(|field| {
                field.split_once('=').filter(|(name, _)| names.contains(name)).map(|(_, value)| value)
            })
        };
        let inside = field(&["dst", "destination", "target"]).unwrap_or_default();
        let read_only = text.split(',').any(|field| matches!(field, "ro" | "readonly" | "ro=true" | "readonly=true"));
        if let Some(host) = field(&["src", "source"]).filter(|_| text.contains("type=bind")) {
            self.add(eval, host, inside, read_only, span);
        }
    }

    fn add(&mut self, eval: &mut Eval<'_>, host: &str, inside: &str, read_only: bool, span: Span) {
        if !inside.starts_with('/') || !is_project(eval, host) {
            let access = if read_only { Access::Read } else { Access::Write };
            return eval.file(text_word(host, span), access, true);
        }
        let inside = below("/", inside);
        self.folders.push(Mount { host: host.to_owned(), dirs: eval.dirs.clone(), inside, read_only });
    }

    /// Where commands start inside; `None` where nothing of this machine is seen.
    pub fn start(&self) -> Option<Vec<Dir>> {
        (!self.folders.is_empty()).then(|| vec![Dir::Start(self.workdir.clone())])
    }

    /// The host's paths that a path inside may be, each with the folders it is relative to and what then happens to it.
    pub fn outside(&self, path: &Word, dirs: &[Dir], access: Access, tree: bool) -> Vec<(Word, Vec<Dir>, Access)> {
        let mut out = Vec::new();
        for mount in &self.folders {
            let access = if mount.read_only && access == Access::Write { Access::Read } else { access };
            let found = dirs.iter().filter_map(|dir| mount.host_path(path, dir, tree));
            out.extend(found.map(|found| (found, mount.dirs.clone(), access)));
        }
        out
    }
}

impl Mount {
    fn host_path(&self, path: &Word, dir: &Dir, tree: bool) -> Option<Word> {
        let (known, rest) = match path.parts.split_first() {
            Some((Part::Text(text), rest)) => (text.as_str(), rest),
            _ => ("", path.parts.as_slice()),
        };
        let whole = match dir {
            Dir::Start(dir) => below(&below("/", dir), known),
            // Nobody knows where: it may be any folder that is mounted.
            Dir::Open(_) | Dir::Unknown if !known.starts_with('/') => below(&self.inside, known),
            Dir::Open(_) | Dir::Unknown => below("/", known),
        };
        let slash = if known.ends_with('/') && !rest.is_empty() { "/" } else { "" };
        let behind = match whole.strip_prefix(self.inside.trim_end_matches('/')) {
            Some("/") => "",
            Some(behind) if behind.is_empty() || behind.starts_with('/') => behind,
            _ if tree && (whole == "/" || self.inside.starts_with(&format!("{whole}/"))) => "",
            _ => return None,
        };
        let gap = if known.is_empty() && !rest.is_empty() { "/" } else { slash };
        let mut parts = vec![Part::Text(format!("{}{behind}{gap}", self.host))];
        parts.extend(rest.iter().cloned());
        Some(Word { parts, span: path.span })
    }
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
