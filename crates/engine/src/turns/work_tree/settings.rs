//! git's settings as they hold in a repository: the machine's, the user's, its own, and what they include.
//!
//! Owns their order and git-config(1), "Includes". Refuses what git refuses, and what it cannot know, as another user's home: then there
//! is no hash. Invariant: a setting that git would find in a file is found. `gix-config` was looked at: it puts what is included elsewhere
//! than git does, reads without a limit, and brings thirty crates. Page: `spec/turns.md`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use writ_core::regular_file;
use writ_policy::Config;

use super::TreeError;
use super::place::Place;
use super::wildmatch::{Scratch, Wild};

/// Most bytes of all files.
const MAX_SIZE: u64 = 16 << 20;
/// Most files.
const MOST_FILES: usize = 256;
/// Longest way of inclusion, as git has it.
const DEEPEST: usize = 10;

/// Settings in the order in which they hold, the last over the first.
#[derive(Default)]
pub struct Settings(Vec<(String, String)>);

/// Reads them.
struct Reader<'r> {
    place: &'r Place,
    home: Option<&'r Path>,
    found: Settings,
    size: u64,
    files: usize,
    /// Addresses of remotes, where they are known already; before, what depends on them is left out.
    remotes: Option<Vec<String>>,
    asked_for_remotes: bool,
}

impl Settings {
    /// What holds in a repository.
    pub fn of(place: &Place, home: Option<&Path>) -> Result<Self, TreeError> {
        let first = Reader::all(place, home, None)?;
        if !first.asked_for_remotes {
            return Ok(first.found);
        }
        let is_address = |(name, _): &&(String, String)| name.starts_with("remote.") && name.ends_with(".url");
        let remotes = first.found.0.iter().filter(is_address).map(|(_, value)| value.clone()).collect();
        Ok(Reader::all(place, home, Some(remotes))?.found)
    }

    /// The value that holds.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A setting that is on or off.
    pub fn is(&self, name: &str, otherwise: bool) -> bool {
        self.last(name).map_or(otherwise, is_true)
    }

    /// The file that a setting names, from the work tree's root.
    pub fn path(&self, name: &str, work: &Path, home: Option<&Path>) -> Result<Option<PathBuf>, TreeError> {
        let named = self.last(name).map(|text| interpolated(text, home)).transpose()?;
        Ok(named.map(|text| work.join(text)))
    }
}

impl<'r> Reader<'r> {
    fn all(place: &'r Place, home: Option<&'r Path>, remotes: Option<Vec<String>>) -> Result<Self, TreeError> {
        let found = Settings::default();
        let mut reader = Self { place, home, found, size: 0, files: 0, remotes, asked_for_remotes: false };
        reader.file(Path::new("/etc/gitconfig"), 0)?;
        if let Some(home) = home {
            reader.file(&home.join(".config/git/config"), 0)?;
            reader.file(&home.join(".gitconfig"), 0)?;
        }
        let own = reader.found.0.len();
        reader.file(&place.common.join("config"), 0)?;
        let asks = |(name, value): &(String, String)| name == "extensions.worktreeconfig" && is_true(value);
        if reader.found.0.iter().skip(own).any(asks) {
            reader.file(&place.git.join("config.worktree"), 0)?;
        }
        Ok(reader)
    }

    fn file(&mut self, path: &Path, depth: usize) -> Result<(), TreeError> {
        let bytes = match regular_file::read(path, MAX_SIZE.saturating_sub(self.size)) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied && depth == 0 => return Ok(()),
            Err(source) => return Err(TreeError::Io { path: path.to_owned(), source }),
        };
        self.size += bytes.len() as u64;
        self.files += 1;
        if self.files > MOST_FILES || depth > DEEPEST {
            return Err(TreeError::Kind("git's settings include each other too often"));
        }
        let config = Config::parse(&String::from_utf8_lossy(&bytes));
        if config.is_damaged() {
            return Err(TreeError::Settings(path.to_owned()));
        }
        for (name, value) in config.each() {
            self.found.0.push((name.to_owned(), value.to_owned()));
            let condition = name.strip_prefix("includeif.").and_then(|rest| rest.strip_suffix(".path"));
            let holds = match condition {
                Some(condition) => self.holds(condition, path)?,
                None => name == "include.path",
            };
            if holds {
                let folder = path.parent().unwrap_or(Path::new("/"));
                self.file(&folder.join(interpolated(value, self.home)?), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Whether a condition holds, which stands in that file.
    fn holds(&mut self, condition: &str, file: &Path) -> Result<bool, TreeError> {
        let whole = |mut pattern: String| {
            if pattern.ends_with('/') {
                pattern.push_str("**");
            }
            pattern
        };
        let matches = |pattern: &str, fold: bool, text: &[u8]| {
            Wild::new(pattern.as_bytes(), true, fold).matches(text, &mut Scratch::default()).0
        };
        if let Some(branch) = condition.strip_prefix("onbranch:") {
            let pattern = whole(branch.to_owned());
            return Ok(self.place.branch().is_some_and(|own| matches(&pattern, false, own.as_bytes())));
        }
        if let Some(pattern) = condition.strip_prefix("hasconfig:remote.*.url:") {
            self.asked_for_remotes = true;
            let mut remotes = self.remotes.iter().flatten();
            return Ok(remotes.any(|own| matches(pattern, false, own.as_bytes())));
        }
        let (pattern, fold) = match (condition.strip_prefix("gitdir:"), condition.strip_prefix("gitdir/i:")) {
            (Some(pattern), _) => (pattern, false),
            (_, Some(pattern)) => (pattern, true),
            // git takes a condition that it does not know for one that does not hold.
            _ => return Ok(false),
        };
        let real = |path: &Path| path.canonicalize().map_err(|source| TreeError::Io { path: path.to_owned(), source });
        let home = self.home.map(real).transpose()?;
        let pattern = interpolated(pattern, home.as_deref())?;
        let mut literal = Vec::new();
        let mut pattern = pattern;
        if let Some(rest) = pattern.strip_prefix("./") {
            let folder = real(file)?.parent().unwrap_or(Path::new("/")).to_owned();
            literal = [bytes(&folder), b"/"].concat();
            pattern = rest.to_owned();
        } else if !pattern.starts_with('/') {
            pattern.insert_str(0, "**/");
        }
        let pattern = whole(pattern);
        let git = std::path::absolute(&self.place.git)
            .map_err(|source| TreeError::Io { path: self.place.git.clone(), source })?;
        let below = |git: &Path| {
            let (begin, rest) = bytes(git).split_at_checked(literal.len())?;
            let same = if fold { begin.eq_ignore_ascii_case(&literal) } else { begin == literal };
            same.then(|| matches(&pattern, fold, rest))
        };
        Ok([real(&git)?, git].iter().any(|git| below(git) == Some(true)))
    }
}

fn bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// A path with the user's home in it.
fn interpolated(text: &str, home: Option<&Path>) -> Result<String, TreeError> {
    let unknown = TreeError::Kind("a setting of git names a path in a way that is not read here");
    if text.contains('\u{fffd}') || text.starts_with("%(") || text.starts_with(":(") {
        return Err(unknown);
    }
    let Some(rest) = text.strip_prefix('~') else { return Ok(text.to_owned()) };
    match (rest, home.and_then(Path::to_str)) {
        ("", Some(home)) => Ok(home.to_owned()),
        (rest, Some(home)) if rest.starts_with('/') => Ok(format!("{home}{rest}")),
        _ => Err(unknown),
    }
}

/// As git reads what is on or off.
fn is_true(value: &str) -> bool {
    let number = value.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']).parse::<i64>();
    ["true", "yes", "on"].iter().any(|word| value.eq_ignore_ascii_case(word)) || number.is_ok_and(|number| number != 0)
}
