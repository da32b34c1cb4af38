//! Whose credentials a command might find: the homes of all that it may become.
//!
//! Owns no list of what lies there. Invariant: the home that the caller names is among them, first.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the keys of somebody else's Writ lie in their home.
pub const OTHER_KEYS: &str = ".local/state/writ/keys";

/// The home, and those that the system knows of the caller and of who owns the folder: root runs the command as that user.
pub fn homes(own: Option<&str>, root: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = own.map(PathBuf::from).into_iter().collect();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let owners = [Path::new("/proc/self"), root].into_iter().filter_map(|path| fs::metadata(path).ok());
    for owner in owners.map(|found| found.uid()) {
        let home = accounts.lines().find_map(|line| home(line, owner));
        out.extend(home.filter(|home| !out.contains(home)));
    }
    out
}

/// `name:x:uid:gid:what:home:shell`.
fn home(line: &str, owner: u32) -> Option<PathBuf> {
    let mut fields = line.split(':').skip(2);
    let uid: u32 = fields.next()?.parse().ok()?;
    fields.nth(2).filter(|home| uid == owner && home.starts_with('/') && home.len() > 1).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_accounts() {
        assert_eq!(home("me:x:1000:1000:Me,,,:/home/me:/bin/sh", 1000), Some("/home/me".into()));
        for (line, owner) in [("me:x:1000:1000:Me:/home/me:/bin/sh", 1), ("no:x:7:7::/:/bin/sh", 7), ("odd", 0)] {
            assert_eq!(home(line, owner), None, "{line}");
        }
        assert_eq!(homes(Some("/h"), Path::new("/")).first(), Some(&PathBuf::from("/h")));
    }
}
