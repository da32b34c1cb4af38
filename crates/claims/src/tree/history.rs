//! What git still knows of work that the work tree no longer shows: commits, reflogs, stashes, loose commits that nothing
//! points at any more.
//!
//! Asked only for a file that would otherwise stand against a claim. It reads; a limit on commits and time bounds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{GitError, Limits, Repository, ask};

/// Most commits that are looked into, the newest first.
const MAX_COMMITS: &str = "--max-count=1024";
/// Most loose objects that are asked after.
const MAX_LOOSE: usize = 20_000;
/// Most versions of a file that are read.
const MAX_VERSIONS: usize = 64;

/// The commits made since then that are not behind `start`, and the paths that each changed, from the top.
pub fn changed_since(
    repository: &Repository,
    start: Option<&str>,
    since: Option<SystemTime>,
    limits: &Limits,
) -> Result<BTreeMap<String, BTreeSet<String>>, GitError> {
    let root = &repository.root;
    let mut commits = referenced(root, start, since, limits)?;
    commits.extend(loose(repository, since, limits)?);
    if let Some(start) = start {
        commits.remove(start);
    }
    if commits.is_empty() {
        return Ok(BTreeMap::new());
    }
    let arguments = ["diff-tree", "-r", "-m", "--root", "-z", "--no-renames", "--name-only", "--stdin"];
    let bytes = ask::run_with_input(root, &arguments, &lines(&commits), limits)?;
    let (mut out, mut current) = (BTreeMap::<String, BTreeSet<String>>::new(), String::new());
    for word in bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty()) {
        let word = String::from_utf8_lossy(word);
        // A merge is named once for each parent, with the parent behind it.
        let id = word.split(' ').next().unwrap_or_default();
        if commits.contains(id) {
            current = id.to_owned();
        } else {
            out.entry(current.clone()).or_default().insert(word.into_owned());
        }
    }
    Ok(out)
}

/// What a path held in these commits, each once.
pub fn versions(root: &Path, commits: &[&str], path: &str, limits: &Limits) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let names: BTreeSet<String> = commits.iter().take(MAX_VERSIONS).map(|commit| format!("{commit}:{path}")).collect();
    if path.contains('\n') || names.is_empty() {
        return Ok(BTreeSet::new());
    }
    let bytes = ask::run_with_input(root, &["cat-file", "--batch"], &lines(&names), limits)?;
    let (mut out, mut rest) = (BTreeSet::new(), bytes.as_slice());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, tail) = rest.split_at_checked(end + 1).unwrap_or_default();
        let head = String::from_utf8_lossy(head);
        let mut words = head.split_whitespace().rev();
        let size = words.next().and_then(|size| size.parse::<usize>().ok()).filter(|_| words.next() == Some("blob"));
        let Some(size) = size else {
            rest = tail;
            continue;
        };
        let Some((content, behind)) = tail.split_at_checked(size) else { break };
        out.insert(content.to_vec());
        rest = behind.get(1..).unwrap_or_default();
    }
    Ok(out)
}

/// Commits that a branch, a log or the stash leads to.
fn referenced(
    root: &Path,
    start: Option<&str>,
    since: Option<SystemTime>,
    limits: &Limits,
) -> Result<BTreeSet<String>, GitError> {
    let since = since.and_then(|since| since.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs());
    let (since, start) = (format!("--since={since}"), start.map(|start| format!("^{start}")));
    let mut arguments = vec!["rev-list", "--all", "--reflog", MAX_COMMITS, &since];
    arguments.extend(start.as_deref());
    let bytes = ask::run(root, &arguments, limits)?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// Commits among the loose objects written since then: those of a branch or a work tree that was removed again, too.
fn loose(repository: &Repository, since: Option<SystemTime>, limits: &Limits) -> Result<BTreeSet<String>, GitError> {
    let objects = repository.common.join("objects");
    let recent = |path: &Path| {
        let written = path.metadata().and_then(|found| found.modified());
        written.is_ok_and(|written| since.is_none_or(|since| written >= since))
    };
    let mut ids = BTreeSet::new();
    for folder in fs::read_dir(&objects).into_iter().flatten().flatten() {
        let name = folder.file_name();
        let Some(front) = name.to_str().filter(|name| name.len() == 2 && recent(&folder.path())) else { continue };
        for object in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            if let Some(rest) = object.file_name().to_str().filter(|_| recent(&object.path())) {
                ids.insert(format!("{front}{rest}"));
            }
        }
        if ids.len() > MAX_LOOSE {
            break;
        }
    }
    ids.retain(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if ids.is_empty() {
        return Ok(ids);
    }
    let check = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
    let bytes = ask::run_with_input(&repository.root, &check, &lines(&ids), limits)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| line.strip_suffix(" commit")).map(str::to_owned).collect())
}

fn lines(items: &BTreeSet<String>) -> Vec<u8> {
    items.iter().fold(Vec::new(), |mut out, item| {
        out.extend_from_slice(item.as_bytes());
        out.push(b'\n');
        out
    })
}
