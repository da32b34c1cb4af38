//! What a command copies, moves or links into a folder: written there under its own name.

use writ_shell::{Access, Arrival, Dir, FileUse, Part, Source, Word};

use super::Survey;
use super::open::Spelled;
use crate::facts::PathKind;
use crate::world::{Search, fold};

impl Survey<'_> {
    /// What lands in a folder is written there under its own name; where the target is no folder, it is what is written.
    pub(super) fn arrival(&mut self, arrival: &Arrival) {
        let target = &arrival.target;
        for dir in &target.dirs {
            match self.spell(dir, &target.path) {
                Spelled::Known(place, glob) => {
                    if !self.is_too_long(&place) && !is_harmless_device(&place) {
                        self.arrival_at(arrival, &place, glob);
                    }
                }
                Spelled::Listed(before, index, after) => {
                    self.listed_use(target, dir, (&before, index, &after), false);
                }
                Spelled::Open(parts) => {
                    if !arrival.in_folder {
                        self.open_use(target, &parts);
                    }
                    let name = match &arrival.source {
                        None => Part::Unknown(Source::Outside),
                        Some(source) => {
                            let name = source.literal().map(|text| last_name(&text));
                            name.map_or(Part::Unknown(Source::Name), Part::Text)
                        }
                    };
                    self.open_use(target, &[parts.as_slice(), &[Part::Text("/".to_owned()), name]].concat());
                }
            }
        }
    }

    fn arrival_at(&mut self, arrival: &Arrival, place: &str, glob: bool) {
        let in_folder = arrival.in_folder || self.resolve(&self.without_proc(place)).is_dir;
        // Whether the line's `mkdir` comes before is not asked.
        if !in_folder && self.is_made(place) {
            self.arrives(arrival, place, glob, true);
        }
        self.arrives(arrival, place, glob, in_folder);
    }

    /// Whether the line makes a folder of it, or of something below it.
    fn is_made(&self, place: &str) -> bool {
        if self.made.is_empty() {
            return false;
        }
        let place = fold(place);
        self.made
            .iter()
            .any(|made| made.strip_prefix(&place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    fn arrives(&mut self, arrival: &Arrival, place: &str, glob: bool, in_folder: bool) {
        let target = &arrival.target;
        let source = arrival.source.as_ref().filter(|_| in_folder);
        let below = Part::Text(format!("{}/", place.trim_end_matches('/')));
        let written = match (source, &arrival.source) {
            (None, None) => return self.unnamed_below(target, place),
            (None, Some(_)) => vec![place.to_owned()],
            (Some(source), _) => match source.parts.as_slice() {
                [Part::Unknown(Source::Listed(index))] => {
                    let start = Dir::Start(String::new());
                    return self.listed_use(target, &start, (&[below], *index, &[]), true);
                }
                parts if parts.iter().any(Part::is_unknown) => match self.known_name(parts) {
                    Some(name) => vec![format!("{place}/{name}")],
                    None => return self.open_use(target, &[below, Part::Unknown(Source::Name)]),
                },
                _ => match self.names(target, source) {
                    None => return self.unnamed_below(target, place),
                    Some(names) => names.iter().map(|name| format!("{place}/{name}")).collect(),
                },
            },
        };
        for path in &written {
            if let Some(fact) = self.template(arrival, path) {
                self.facts.paths.push(fact);
                continue;
            }
            self.touch(target, path, glob);
            if let Some(source) = arrival.source.as_ref().filter(|_| arrival.link) {
                self.link(target, path, source);
            }
        }
    }

    /// Files of unknown names are written into a folder.
    pub(super) fn unnamed_below(&mut self, target: &FileUse, place: &str) {
        let mut fact = self.path(place, Access::Write, Some(target.span));
        (fact.tree, fact.kind) = (true, PathKind::Into);
        self.facts.paths.push(fact);
    }

    /// The last name of a path whose front is not known.
    pub(super) fn known_name(&self, parts: &[Part]) -> Option<String> {
        let [.., Part::Text(tail)] = parts else { return None };
        tail.trim_end_matches('/').rsplit_once('/').map(|(_, name)| name.to_owned())
    }

    /// The names that a source's files have; `None` where nobody knows them yet.
    pub(super) fn names(&mut self, target: &FileUse, source: &Word) -> Option<Vec<String>> {
        let text = source.literal()?;
        if !source.is_glob() {
            return Some(vec![last_name(&text)]);
        }
        let mut names = Vec::new();
        for dir in &target.dirs {
            let Spelled::Known(place, _) = self.spell(dir, source) else { continue };
            if let Search::Done(found) = self.expand(&place) {
                names.extend(found.iter().map(|path| last_name(path)));
            }
        }
        (!names.is_empty()).then_some(names)
    }

    /// What a symbolic link leads to, seen from the folder it is in. Whoever has the link can write through it.
    pub(super) fn link(&mut self, target: &FileUse, link: &str, source: &Word) {
        let folder = link.trim_end_matches('/').rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned();
        for (access, tree) in [(Access::Read, true), (Access::Write, false)] {
            let dirs = vec![Dir::Start(folder.clone())];
            let through = FileUse { access, tree, path: source.clone(), dirs, unlikely: Vec::new(), ..target.clone() };
            self.file_use(&through);
        }
    }
}

/// What a copy of a path is called.
fn last_name(path: &str) -> String {
    path.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().to_owned()
}

pub(super) fn is_harmless_device(path: &str) -> bool {
    // The standard streams, and where shells put what a command in `<( … )` says: what either leads to is judged where it is opened.
    let stream = |number: u32| number <= 2 || (32..64).contains(&number);
    if let Some(number) = path.strip_prefix("/dev/fd/") {
        return number.parse().is_ok_and(stream);
    }
    matches!(
        path,
        "/dev/null"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/stdin"
            | "/dev/tty"
            | "/dev/zero"
            | "/dev/random"
            | "/dev/urandom"
    )
}
