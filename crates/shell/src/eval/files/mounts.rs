//! What containers get to see of this machine: folders of the host under names of their own.
//!
//! What runs inside is judged with the host's paths again (`docker run -v "$PWD":/w image sh -c 'rm /w/x'`).

use crate::action::Access;
use crate::eval::files::dirs::below;
use crate::word::{Dir, Part, Word};

/// What a container sees.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    pub(crate) folders: Vec<Mount>,
    /// Where its commands start, in the container's own names.
    pub(crate) workdir: String,
}

#[derive(Clone, Debug)]
pub struct Mount {
    /// The host's folder, as the line names it.
    pub(crate) host: String,
    /// Where those of the line's commands lie that the host's folder is relative to.
    pub(crate) dirs: Vec<Dir>,
    pub(crate) inside: String,
    pub(crate) read_only: bool,
}

impl Mounts {
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
