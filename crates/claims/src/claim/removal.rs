//! What says that a file is no longer there: `(deleted)`, `removed: a.py`, `created, then deleted`.
//!
//! Refuses what was removed from a file: `removed the imports`.

use super::words::among;

/// What says of a file that it is no longer there.
const GONE: &[&str] = &[
    "deleted", "removed", "delete", "remove", "dropped", "gone", "erased", "unlinked", "rm", "del", "moved", "renamed",
];

/// Words before and behind such a word that leave it what it says; another word behind it is what was removed from the file.
const BEFORE_GONE: &[&str] = &[
    "was",
    "is",
    "has",
    "been",
    "were",
    "file",
    "now",
    "the",
    "fully",
    "git",
    "completely",
    "entirely",
    "also",
    "this",
];
const BEHIND_GONE: &[&str] = &[
    "file",
    "files",
    "entirely",
    "completely",
    "fully",
    "in",
    "into",
    "as",
    "since",
    "because",
    "by",
    "per",
    "with",
    "via",
    "and",
    "now",
    "permanently",
    "after",
    "due",
    "for",
    "to",
    "from",
    "too",
    "again",
    "altogether",
    "outright",
];

/// Whether a word before a path says that it was removed: `Deleted`, `D`.
pub(super) fn is_removal(word: &str) -> bool {
    word == "D" || GONE.iter().take(7).any(|gone| gone.eq_ignore_ascii_case(word))
}

/// Whether a remark says that the file is no longer there: `(deleted)`, `removed in favour of b.py`, `created, then deleted`;
/// `removed the imports` says no such thing.
pub(super) fn says_gone(remark: &str) -> bool {
    let words = || remark.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let undone = ["then", "later", "afterwards", "subsequently", "temporary", "temporarily", "temp"];
    if words().any(|word| among(&undone, word)) && words().any(is_removal) {
        return true;
    }
    if remark.trim_matches(|c: char| !c.is_alphanumeric()) == "D" {
        return true;
    }
    let mut rest = remark;
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let Some((word, behind)) = rest.split_at_checked(end) else { return false };
        if among(GONE, word) {
            let behind = behind.trim_start();
            let next = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let from = next.eq_ignore_ascii_case("from") && (word.starts_with(['m', 'M']) || word.starts_with("ren"));
            return !from && !behind.starts_with('`') && (next.is_empty() || among(BEHIND_GONE, next));
        }
        if !among(BEFORE_GONE, word) {
            return false;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_told_from_what_was_removed_from_it() {
        for gone in [
            "(deleted)",
            "— removed",
            "[D]",
            "(was deleted)",
            "removed in favour of b.py",
            "deleted, unused",
            "(moved to b.py)",
            "created, then removed",
            "git rm",
            "(file removed)",
        ] {
            assert!(says_gone(gone), "{gone}");
        }
        for there in [
            "",
            "(new)",
            "removed the imports",
            "— removed unused code",
            "deleted `run()`",
            "(renamed from a.py)",
            "(moved from src/)",
            "not deleted",
            "added tests",
            "dropped support for x",
        ] {
            assert!(!says_gone(there), "{there}");
        }
    }
}
