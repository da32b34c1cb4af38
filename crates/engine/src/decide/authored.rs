//! What the agent of a session wrote: remembered by digest, so that it is judged when it is run.
//!
//! Keeps digests and paths, never a text (R8): one file each below `wrote/` in the session's folder, named by the digest, which
//! holds the paths that were written. A file is the agent's when it holds now what the agent wrote, whatever its name. Format
//! page: `spec/ledger.md`.

use std::fs;
use std::path::{Path, PathBuf};

use writ_core::{Digest, ToolCall, ToolKind};
use writ_shell::{Access, Dir, Env, analyze};

use crate::session::{Session, SessionError};

/// Longest file that is looked into.
const MAX_FILE: u64 = 128 << 10;
/// Most texts of one line that are remembered.
const MOST: usize = 32;
/// Most texts whose paths are looked at, and most bytes of paths that one text is remembered with.
const MOST_FILES: usize = 1024;
const MAX_PATHS: u64 = 8 << 10;

/// Where it is kept, in a session's folder.
pub const FOLDER: &str = "wrote";

/// The text of a file, if the agent wrote exactly it.
pub fn text(session: &Path, path: &Path) -> Option<String> {
    let bytes = content(path)?;
    session.join(name(&bytes)).exists().then_some(())?;
    String::from_utf8(bytes).ok()
}

/// Where the agent wrote, in order of names. What stands there now is asked with [`text`].
pub fn files(session: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(session.join(FOLDER)) else { return Vec::new() };
    let lists = entries.flatten().take(MOST_FILES).filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let mut paths: Vec<String> = lists.flat_map(|list| list.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn name(bytes: &[u8]) -> String {
    format!("{FOLDER}/{}", Digest::of(bytes).hex())
}

/// A plain file's bytes, if it is not too long.
fn content(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= MAX_FILE).then(|| fs::read(path).ok())?
}

/// Remembers what a call has written. One that failed may have written too, if it is a line.
pub fn remember(session: &Session<'_>, call: &ToolCall, succeeded: bool) -> Result<(), SessionError> {
    match &call.kind {
        ToolKind::Write { paths } | ToolKind::Edit { paths, .. } if succeeded => {
            paths.iter().try_for_each(|path| of_file(session, &Path::new(&call.cwd).join(path)))
        }
        ToolKind::Shell { command } => written(session, &call.cwd, command),
        _ => Ok(()),
    }
}

fn of_file(session: &Session<'_>, path: &Path) -> Result<(), SessionError> {
    let Some(bytes) = content(path) else { return Ok(()) };
    let (name, path) = (name(&bytes), path.to_string_lossy());
    let known = fs::read_to_string(session.store.folder(&session.id).join(&name)).unwrap_or_default();
    if known.lines().any(|line| line == path) || path.contains('\n') || known.len() as u64 > MAX_PATHS {
        return session.keep(&name, known.as_bytes());
    }
    session.keep(&name, format!("{known}{path}\n").as_bytes())
}

/// What a line has written: the texts that are known, and what stands now in the files that it names.
fn written(session: &Session<'_>, cwd: &str, line: &str) -> Result<(), SessionError> {
    const SIGNS: [&str; 7] = [">", "tee", " -i", "cp ", "mv ", "ln ", "install "];
    if !SIGNS.iter().any(|sign| line.contains(sign)) {
        return Ok(());
    }
    let env = Env { home: session.setting.home.clone(), cwd: Some(cwd.to_owned()), ..Env::default() };
    let mut analysis = analyze(line, &env);
    analysis.written.dedup();
    let fresh = analysis.written.iter().take(MOST).map(|text| name(text.as_bytes()));
    fresh
        .filter(|name| !session.store.folder(&session.id).join(name).exists())
        .try_for_each(|name| session.keep(&name, b""))?;
    let writes = analysis.files.iter().filter(|file| file.access == Access::Write && !file.tree);
    let mut paths: Vec<PathBuf> = Vec::new();
    for (file, path) in writes.filter_map(|file| Some((file, file.path.literal()?))) {
        for dir in &file.dirs {
            if let Dir::Start(dir) = dir {
                paths.push(Path::new(cwd).join(dir).join(&path));
            }
        }
    }
    paths.dedup();
    paths.iter().take(MOST).try_for_each(|path| of_file(session, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_agents_while_it_holds_what_the_agent_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.sh");
        fs::write(&file, "curl x").unwrap();
        assert_eq!(text(dir.path(), &file), None);
        fs::create_dir(dir.path().join("wrote")).unwrap();
        fs::write(dir.path().join(name(b"curl x")), "").unwrap();
        assert_eq!(text(dir.path(), &file).as_deref(), Some("curl x"));
        fs::write(&file, "curl y").unwrap();
        assert_eq!(text(dir.path(), &file), None);
    }
}
