//! Folders of the user's that programs write to beside their work: caches, settings, histories.
//!
//! Owns which of them are layered: what calls of a session write there is there for the next call, and nowhere else. Refuses nothing: where
//! layers cannot be had the folders are read-only. Invariant: nothing outside the policy's folder is changed by a call.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use writ_core::SessionId;
use writ_sandbox::{Bind, CHANGES, Confinement, Features, HostPath, Layered, Reading};
use writ_store::Store;

use super::folders;
use super::places::CACHES;

/// What the folder of a layer is called in the session's folder.
pub const LAYER: &str = "layer-";
/// What is in the place of a home that is hidden.
const HOME: &str = "home";
/// The folder that is `/tmp` to a session's calls.
pub const TEMPORARY: &str = "tmp";

/// Most names that are looked at for what was written.
const MOST_LOOKED_AT: usize = 512;

/// Adds the layers for a session to what a call runs in.
pub fn add(confinement: &mut Confinement, features: &Features, home: Option<&str>, session: &Path) {
    let Some(home) = home.map(Path::new).filter(|home| home.is_absolute() && home.parent().is_some()) else { return };
    if confinement.reading == Reading::Closed && home.is_dir() && !is_ruled(confinement, home) {
        let source = HostPath::new(session.join(format!("{LAYER}{HOME}")));
        let target = HostPath::new(home);
        confinement.home = source.ok().zip(target.ok()).map(|(source, target)| Bind { source, target, writable: true });
    }
    if !features.overlay {
        return;
    }
    let names: &[&str] = if confinement.reading == Reading::Open { &[""] } else { &CACHES };
    let mounts = mount_points();
    for name in names {
        let folder = if name.is_empty() { home.to_owned() } else { home.join(name) };
        if !is_ruled(confinement, &folder) && can_be_layered(&folder, &mounts, confinement) {
            let layer = session.join(format!("{LAYER}{}", name.replace('/', "_")));
            if let (Ok(path), Ok(layer)) = (HostPath::new(folder), HostPath::new(layer)) {
                confinement.layered.push(Layered { path, layer, lasting: false });
            }
        }
    }
}

/// What is deeper wins: a layer would show what a rule hides around it, or let be written what one keeps.
fn is_ruled(confinement: &Confinement, folder: &Path) -> bool {
    let ruled = confinement.writable.iter().chain(&confinement.masked).chain(&confinement.read_only);
    ruled.into_iter().any(|path| folder.starts_with(path.as_path()))
}

/// It is a folder that the command can look into, and nothing is mounted in it.
fn can_be_layered(folder: &Path, mounts: &[PathBuf], confinement: &Confinement) -> bool {
    let Ok(found) = fs::symlink_metadata(folder) else { return false };
    let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    // Root's commands are the owner of the folder they start in; for root's own folder they stand in for root.
    let other = root && fs::metadata(confinement.folder.as_path()).is_ok_and(|found| found.uid() != 0);
    let open = |folder: &Path| fs::metadata(folder).is_ok_and(|found| found.mode() & 0o001 != 0);
    found.is_dir()
        && (!other || folder.ancestors().all(open))
        && !mounts.iter().any(|mount| mount != folder && mount.starts_with(folder))
}

pub(super) fn mount_points() -> Vec<PathBuf> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped).collect()
}

/// A path as the kernel writes it: what would part a line in octal.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Files and folders that were written since then beside the work, and go with the session: those that people would look for. What has a
/// hidden name, and caches, programs keep for themselves.
pub fn written(confinement: &Confinement, since: SystemTime) -> Vec<PathBuf> {
    let mut written = Vec::new();
    let mut left = MOST_LOOKED_AT;
    for Layered { path, layer, .. } in confinement.layered.iter().filter(|layered| !layered.lasting) {
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(layer.as_path().join(CHANGES).join(&folder)).into_iter().flatten().flatten();
            for entry in entries {
                let (name, at) = (entry.file_name(), folder.join(entry.file_name()));
                let is_own = name.as_bytes().starts_with(b".") || CACHES.iter().any(|cache| at == Path::new(cache));
                left -= 1;
                if left == 0 {
                    return written;
                }
                let Some(found) = entry.metadata().ok().filter(|_| !is_own) else { continue };
                let outside = path.as_path().join(&at);
                if found.is_dir() && outside.is_dir() {
                    folders.push(at);
                } else if changed(&found) >= since {
                    written.push(outside);
                }
            }
        }
    }
    written.sort();
    written
}

/// When a file was changed last, in any way.
fn changed(found: &Metadata) -> SystemTime {
    let seconds = u64::try_from(found.ctime()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::new(seconds, u32::try_from(found.ctime_nsec()).unwrap_or(0))
}

/// In words, for the agent.
pub fn words(written: &[PathBuf], root: &Path) -> Option<String> {
    let (first, more) = (written.first()?.display(), written.len() - 1);
    let others = if more == 0 { String::new() } else { format!(" and {more} more") };
    let root = root.display();
    Some(format!(
        "`{first}`{others} was written beside the work: it is there for this session alone and removed at its end. What is to stay \
         belongs below `{root}`"
    ))
}

/// Removes what a session's calls wrote beside their work. Other sessions go on.
pub fn remove(store: &Store, session: &SessionId) {
    let folder = store.folder(session);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name == OsStr::new(TEMPORARY) || name.as_bytes().starts_with(LAYER.as_bytes()) {
            // A call that goes on keeps what it holds open.
            drop(folders::remove(&entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_would_look_for_is_told() {
        let top = tempfile::tempdir().unwrap();
        let (home, layer) = (top.path().join("home"), top.path().join("layer"));
        fs::create_dir_all(home.join("projects/work")).unwrap();
        let path = |path: &Path| HostPath::new(path).unwrap();
        let mut confinement = Confinement::reading(path(&home.join("projects/work")));
        confinement.layered.push(Layered { path: path(&home), layer: path(&layer), lasting: false });
        let begun = SystemTime::now() - Duration::from_millis(10);
        assert_eq!(written(&confinement, begun), Vec::<PathBuf>::new());
        let folders = ["projects/other/src", ".cache/x", "go/pkg"];
        folders.iter().for_each(|folder| fs::create_dir_all(layer.join(CHANGES).join(folder)).unwrap());
        for file in ["projects/other/src/a.rs", ".cache/x/y", "go/pkg/z", "note.txt"] {
            fs::write(layer.join(CHANGES).join(file), "x").unwrap();
        }
        let told = written(&confinement, begun);
        assert_eq!(told, ["note.txt", "projects/other"].map(|name| home.join(name)));
        let words = words(&told, &home.join("projects/work")).unwrap();
        assert!(words.contains("note.txt` and 1 more was written") && words.contains("projects/work`"), "{words}");
        assert_eq!(written(&confinement, SystemTime::now() + Duration::from_secs(1)), Vec::<PathBuf>::new());
    }

    /// What is deeper wins, so a layer below something hidden would show it.
    #[test]
    fn nothing_that_is_ruled_is_layered() {
        let features = Features { overlay: true, ..Features::probe().unwrap() };
        let path = |text: &str| HostPath::new(text).unwrap();
        let layered = |change: &dyn Fn(&mut Confinement)| {
            let mut confinement = Confinement::reading(path("/usr"));
            change(&mut confinement);
            add(&mut confinement, &features, Some("/usr/share/doc"), Path::new("/s"));
            confinement.layered.len()
        };
        assert_eq!(layered(&|_| ()), 1);
        assert_eq!(layered(&|confinement| confinement.masked.push(path("/usr/share"))), 0);
        assert_eq!(layered(&|confinement| confinement.read_only.push(path("/usr/share/"))), 0);
        assert_eq!(layered(&|confinement| confinement.writable.push(path("/usr/share/doc"))), 0);
        assert_eq!(layered(&|confinement| confinement.masked.push(path("/usr/share/doc/x"))), 1);
    }

    #[test]
    fn paths_of_mounts_are_read_back() {
        assert_eq!(unescaped(br"/a\040b\134c\011"), Path::new("/a b\\c\t"));
        assert_eq!(unescaped(br"/a\04"), Path::new(r"/a\04"));
        assert!(mount_points().contains(&PathBuf::from("/proc")));
    }
}
