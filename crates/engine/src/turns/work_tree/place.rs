//! Where a repository lies, and what is checked out in it.
//!
//! Owns the tests by which git tells a repository from a folder that looks like one. Refuses to take `.git` for more than it is: where it
//! is empty, or names nothing, what lies beside it is like any other file. Page: `spec/turns.md`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use writ_core::regular_file;
use writ_policy::Config;

use super::TreeError;
use super::hash::Function;

/// Largest list of references that is read.
const MAX_REFERENCES: u64 = 256 << 20;
/// Largest file that names a folder or a commit.
const MAX_NAME: u64 = 1 << 20;
/// Longest way from one reference to the next.
const MOST_STEPS: usize = 5;

/// A repository's folders.
pub struct Place {
    /// What is a work tree's own.
    pub git: PathBuf,
    /// What its work trees share.
    pub common: PathBuf,
}

/// What `.git` is.
pub enum Dot {
    /// A repository, or a file that names one.
    Repository(Place),
    /// Nothing that git knows.
    Nothing,
    /// A file that names no repository: git stops at it where it looks for its own, and passes over it elsewhere.
    Astray,
    /// A file that cannot be read, which git takes for a repository.
    Closed,
}

impl Dot {
    /// Looks at `.git` in a folder.
    pub fn of(folder: &Path) -> Self {
        let dot = folder.join(".git");
        let Ok(found) = dot.metadata() else { return Self::Nothing };
        if !found.is_file() {
            return if found.is_dir() { Place::at(dot).map_or(Self::Nothing, Self::Repository) } else { Self::Nothing };
        }
        if found.len() > MAX_NAME {
            return Self::Astray;
        }
        let Ok(bytes) = regular_file::read(&dot, MAX_NAME) else { return Self::Closed };
        let Some(named) = bytes.strip_prefix(b"gitdir: ") else { return Self::Astray };
        let named = trimmed(named);
        if named.is_empty() {
            return Self::Astray;
        }
        Place::at(folder.join(path(named))).map_or(Self::Astray, Self::Repository)
    }
}

impl Place {
    /// The repository that a folder is.
    pub fn at(git: PathBuf) -> Option<Self> {
        let head = git.join("HEAD");
        let about = head.symlink_metadata().ok()?;
        let says = if about.is_symlink() {
            head.read_link().ok()?.as_os_str().as_bytes().starts_with(b"refs/")
        } else {
            let text = text(&head)?;
            match text.strip_prefix("ref:") {
                Some(name) => name.trim_start().starts_with("refs/"),
                None => [64, 40].iter().any(|length| text.get(..*length).is_some_and(is_hex)),
            }
        };
        let common = match regular_file::read(&git.join("commondir"), MAX_NAME) {
            Ok(named) => git.join(path(trimmed(&named))),
            Err(_) => git.clone(),
        };
        (says && common.join("objects").is_dir() && common.join("refs").is_dir()).then_some(Self { git, common })
    }

    /// How its objects are named.
    pub fn function(&self) -> Function {
        let config = Config::parse(&text(&self.common.join("config")).unwrap_or_default());
        if config.is_sha256() { Function::Sha256 } else { Function::Sha1 }
    }

    /// The branch that is checked out.
    pub fn branch(&self) -> Option<String> {
        let (name, _) = self.followed();
        Some(name?.strip_prefix("refs/heads/")?.to_owned())
    }

    /// The commit that is checked out; `None` where there is none.
    pub fn head(&self, function: Function) -> Result<Option<Vec<u8>>, TreeError> {
        let (name, id) = self.followed();
        if name.as_deref() == Some("refs/heads/.invalid") {
            return Err(TreeError::Kind("a repository inside keeps its references in a way that is not read here"));
        }
        let packed = || {
            let name = name.as_deref()?;
            let bytes = regular_file::read(&self.common.join("packed-refs"), MAX_REFERENCES).ok()?;
            let line = |line: &[u8]| {
                let (id, own) = line.split_at_checked(line.iter().position(|byte| *byte == b' ')?)?;
                (own.get(1..)? == name.as_bytes()).then(|| String::from_utf8_lossy(id).into_owned())
            };
            bytes.split(|byte| *byte == b'\n').find_map(line)
        };
        Ok(id.or_else(packed).and_then(|hex| bytes_of(&hex, function.length())))
    }

    /// The last reference on the way from `HEAD`, and what its own file says.
    fn followed(&self) -> (Option<String>, Option<String>) {
        let (mut name, mut said) = (None, text(&self.git.join("HEAD")));
        for _ in 0..MOST_STEPS {
            let Some(next) = said.as_deref().and_then(|said| said.strip_prefix("ref:")) else { break };
            let next = next.trim().to_owned();
            let plain = Path::new(&next).components().all(|part| matches!(part, Component::Normal(_)));
            said = [&self.git, &self.common].into_iter().filter(|_| plain).find_map(|at| text(&at.join(&next)));
            name = Some(next);
        }
        (name, said.map(|said| said.trim().to_owned()))
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let Some(rest) = bytes.strip_suffix(b"\n").or_else(|| bytes.strip_suffix(b"\r")) {
        bytes = rest;
    }
    bytes
}

fn text(path: &Path) -> Option<String> {
    regular_file::read(path, MAX_NAME).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn bytes_of(hex: &str, length: usize) -> Option<Vec<u8>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let digits = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let id: Option<Vec<u8>> = pairs.iter().map(digits).collect();
    id.filter(|id| id.len() == length)
}
