//! Files that a line opens by a redirection, and the paths that open them once more: `/dev/stdin`, `/dev/fd/7`,
//! `/proc/self/fd/7`. Such a path gives either way of access, whichever way the file was opened.

use crate::action::Access;
use crate::eval::Eval;
use crate::eval::files::dirs::below;
use crate::shape::literal_prefix;
use crate::word::{Dir, Word};

/// Most files and paths that are kept.
const MOST: usize = 256;

/// What redirections opened, and what is opened by the descriptor.
#[derive(Default)]
pub struct Descriptors {
    opened: Vec<(Option<u32>, Word, Vec<Dir>)>,
    again: Vec<(Option<u32>, Access)>,
}

impl Eval<'_> {
    /// A redirection opens a file; `None` where the descriptor is not known.
    pub(crate) fn opened(&mut self, descriptor: Option<u32>, file: &Word) {
        let new = (descriptor, file.clone(), self.dirs.clone());
        if self.descriptors.opened.len() < MOST && !self.descriptors.opened.contains(&new) {
            self.descriptors.opened.push(new);
        }
    }

    /// The file that the last redirection opened as standard input.
    pub(crate) fn standard_input(&self) -> Option<Word> {
        let input = |(own, ..): &&(Option<u32>, Word, Vec<Dir>)| *own == Some(0);
        self.descriptors.opened.iter().rev().find(input).map(|(_, file, _)| file.clone())
    }

    /// `7<&0`: what is open on the one is open on the other.
    pub(crate) fn duplicated(&mut self, descriptor: Option<u32>, from: &str) {
        let from: Option<u32> = from.trim_end_matches('-').parse().ok();
        let same = |(own, ..): &&(Option<u32>, Word, Vec<Dir>)| own.is_none() || *own == from;
        let files: Vec<_> = self.descriptors.opened.iter().filter(same).cloned().collect();
        for (_, file, dirs) in files {
            let new = (descriptor, file, dirs);
            if self.descriptors.opened.len() < MOST && !self.descriptors.opened.contains(&new) {
                self.descriptors.opened.push(new);
            }
        }
    }

    /// Notes a use of a path that leads to a descriptor.
    pub(crate) fn reopened(&mut self, path: &Word, access: Access) {
        if !matches!(access, Access::Read | Access::Write) {
            return;
        }
        let whole = path.text();
        let text = whole.clone().unwrap_or_else(|| literal_prefix(path).into());
        let text = if path.is_glob() { text.split(['*', '?', '[']).next().unwrap_or_default() } else { &text };
        let places = self.dirs.iter().filter_map(|dir| match dir {
            _ if text.starts_with('/') => Some(text.to_owned()),
            Dir::Start(base) if base.starts_with('/') => Some(below(base, text)),
            Dir::Start(_) | Dir::Open(_) | Dir::Unknown => None,
        });
        let exact = whole.is_some() && !path.is_glob();
        let found: Vec<Option<u32>> = places.filter_map(|place| descriptor(&place, exact)).collect();
        for one in found {
            if self.descriptors.again.len() < MOST && !self.descriptors.again.contains(&(one, access)) {
                self.descriptors.again.push((one, access));
            }
        }
    }

    /// Puts on record what is done to files by their descriptors, wherever in the line they are opened.
    pub(crate) fn reopen(&mut self) {
        let descriptors = std::mem::take(&mut self.descriptors);
        for (descriptor, access) in descriptors.again {
            for (own, file, dirs) in &descriptors.opened {
                if own.is_none() || descriptor.is_none() || *own == descriptor {
                    self.file_in(file.clone(), access, false, dirs.clone());
                }
            }
        }
    }
}

/// The descriptor that a path leads to: `Some(None)` for one that is not known.
fn descriptor(path: &str, exact: bool) -> Option<Option<u32>> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let number = |text: &str| if exact { text.parse().ok() } else { None };
    match parts.as_slice() {
        ["dev", "stdin"] => Some(Some(0)),
        ["dev", "stdout"] => Some(Some(1)),
        ["dev", "stderr"] => Some(Some(2)),
        ["dev", "fd", name] | ["proc", _, "fd", name] | ["proc", _, "task", _, "fd", name] => Some(number(name)),
        ["dev", "fd"] | ["proc"] | ["proc", ..] if !exact => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_to_descriptors() {
        for (path, expected) in [
            ("/dev/stdin", Some(Some(0))),
            ("//dev/./stderr", Some(Some(2))),
            ("/dev/fd/7", Some(Some(7))),
            ("/proc/self/fd/7", Some(Some(7))),
            ("/proc/12/task/13/fd/0", Some(Some(0))),
            ("/proc/self/fd/../fd/1", Some(Some(1))),
            ("/dev/null", None),
            ("/proc/self/maps", None),
            ("/work/dev/stdin", None),
        ] {
            assert_eq!(descriptor(path, true), expected, "{path}");
        }
        assert_eq!(descriptor("/proc/", false), Some(None));
    }
}
