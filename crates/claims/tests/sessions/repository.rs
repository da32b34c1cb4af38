//! Repositories that sessions start from.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

pub fn git(root: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"]);
    command.args(arguments).current_dir(root).output().unwrap().status.success()
}

pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A repository to be copied.
pub fn template(submodule: bool) -> TempDir {
    let (folder, origin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = [
        ("a.py", "a\nline\n"),
        ("b.py", "b\nline\n"),
        ("README.md", "# r\n"),
        ("Makefile", "all:\n"),
        ("src/c.py", "c\nline\n"),
        ("src/deep/d.rs", "d\n"),
        ("my notes/n.txt", "n\n"),
        (".gitignore", "build/\n*.o\n"),
    ];
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(origin.path().join("s.py"), "s\n").unwrap();
    for line in ["init -q -b main", "add .", "commit -qm first"] {
        assert!(git(origin.path(), &line.split(' ').collect::<Vec<_>>()));
    }
    assert!(git(folder.path(), &["init", "-q", "-b", "main"]));
    if submodule {
        assert!(git(folder.path(), &["submodule", "--quiet", "add", origin.path().to_str().unwrap(), "sub"]));
    } else {
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/s.py"), "s\n").unwrap();
    }
    for line in ["add .", "commit -qm first"] {
        assert!(git(folder.path(), &line.split(' ').collect::<Vec<_>>()));
    }
    folder
}
