//! The files that a patch names, in the envelope that several clients' tools take.
//!
//! Owns the reading of the envelope of `apply_patch`. Refuses a text that is no such envelope, or names no file: the client might
//! read more out of it than this does. The invariant: every file that is added, changed, deleted or moved to is among the paths.

use writ_core::ToolKind;

/// Most lines that are looked at.
const MOST: usize = 1_000_000;
/// Most files of one patch.
const MOST_FILES: usize = 10_000;

/// What a patch does: it edits where it changes files that are there and nothing else, and writes where it adds, deletes or moves any.
pub fn kind(text: &str) -> Result<ToolKind, String> {
    let (mut paths, mut writes) = (Vec::new(), false);
    let mut begun = false;
    for (number, line) in text.lines().enumerate() {
        if number >= MOST || paths.len() > MOST_FILES {
            return Err(format!("a patch of more than {MOST} lines or {MOST_FILES} files"));
        }
        let line = line.trim();
        begun |= line == "*** Begin Patch";
        let named = |sign: &str| line.strip_prefix(sign).map(|path| path.trim().to_owned());
        let written = ["*** Add File:", "*** Delete File:", "*** Move to:"].into_iter().find_map(named);
        writes |= written.is_some();
        let Some(path) = written.or_else(|| named("*** Update File:")) else { continue };
        if path.is_empty() {
            return Err("a patch that names a file without a name".to_owned());
        }
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    match (begun, paths.is_empty()) {
        (false, _) => Err("a patch that does not begin with `*** Begin Patch`".to_owned()),
        (true, true) => Err("a patch that names no file".to_owned()),
        (true, false) if writes => Ok(ToolKind::Write { paths }),
        (true, false) => Ok(ToolKind::edit(paths)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_named() {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b/c.txt\n@@\n-x\n+y\n*** Delete File: d\n\
                     *** Add File: /abs/e f\n+*** not a sign\n*** End Patch\n";
        let paths = ["a.txt", "b/c.txt", "d", "/abs/e f"].map(str::to_owned).to_vec();
        assert_eq!(kind(patch), Ok(ToolKind::Write { paths }));
        let edit = "*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n+y\r\n*** End Patch";
        assert_eq!(kind(edit), Ok(ToolKind::edit(vec!["a".to_owned()])));
    }

    #[test]
    fn what_is_no_patch_is_malformed() {
        for text in [
            "",
            "--- a\n+++ b\n",
            "*** Update File: a\n",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Add File: \n",
        ] {
            assert!(kind(text).is_err(), "{text:?}");
        }
    }
}
