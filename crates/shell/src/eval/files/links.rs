//! Links and copies that this line itself makes, and what they stand for later in it.

use crate::eval::Eval;
use crate::eval::files::dirs::below;
use crate::shape::text_word;
use crate::word::{Dir, Word};

/// Most links and copies that are kept.
const MOST: usize = 64;

/// What stands for what, as paths from the folder the line starts in.
#[derive(Default)]
pub struct Links {
    /// What a path below the second means: the same below the first.
    paths: Vec<(String, String)>,
    /// What program the second is.
    programs: Vec<(String, String)>,
    /// The program that is looked at takes links for what they are.
    pub(crate) ignored: bool,
}

impl Eval<'_> {
    /// What lies at `to` is from now on a copy of what lies at `from`, or a link to it.
    pub(crate) fn note_link(&mut self, from: String, to: String, link: bool) {
        if from == to || to.is_empty() || self.links.programs.len() >= MOST {
            return;
        }
        if link {
            self.links.paths.push((from.clone(), to.clone()));
        }
        self.note_copy(&from, &to);
        self.links.programs.push((from, to));
    }

    /// `hash -p path name`
    pub(crate) fn note_program(&mut self, path: &str, name: &str) {
        self.links.programs.push((path.to_owned(), name.to_owned()));
    }

    /// What a path is a copy or link of, by what was made before.
    pub(crate) fn origins<'s>(&'s self, place: &'s str) -> impl Iterator<Item = &'s str> {
        self.links.programs.iter().filter(move |(_, to)| to == place).map(|(from, _)| from.as_str())
    }

    /// What a path means by a link made before, beside itself.
    pub(crate) fn linked_from(&self, path: &Word) -> Vec<String> {
        if self.links.paths.is_empty() || self.links.ignored {
            return Vec::new();
        }
        let Some(text) = path.place() else { return Vec::new() };
        let mut open = self.places(&text);
        let mut out: Vec<String> = Vec::new();
        while let Some(place) = open.pop() {
            for (from, to) in &self.links.paths {
                let Some(rest) =
                    place.strip_prefix(to.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'))
                else {
                    continue;
                };
                let real = below("", &format!("{from}{rest}"));
                if out.len() < 16 && !out.contains(&real) {
                    out.push(real.clone());
                    open.push(real);
                }
            }
        }
        out
    }

    /// The program that a name or path stands for by a copy or link made before.
    pub(crate) fn linked_program(&self, program: &Word) -> Option<Word> {
        if self.links.programs.is_empty() {
            return None;
        }
        let name = program.literal()?;
        let places = if name.contains('/') { self.places(&name) } else { vec![name] };
        let (from, _) = self.links.programs.iter().rfind(|(_, to)| places.contains(to))?;
        Some(text_word(from, program.span))
    }

    /// Where a path may lie, seen from the folder the line starts in.
    pub(crate) fn places(&self, path: &str) -> Vec<String> {
        let cwd = self.start_dir().unwrap_or_default();
        let short = |path: String| match path.strip_prefix(&cwd).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) if !cwd.is_empty() => rest.to_owned(),
            _ => path,
        };
        if path.starts_with('/') {
            return vec![short(below("", path))];
        }
        let place = |dir: &Dir| if let Dir::Start(dir) = dir { Some(short(below(dir, path))) } else { None };
        self.dirs.iter().filter_map(place).collect()
    }
}
