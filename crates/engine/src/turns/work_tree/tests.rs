//! Against git itself: `git add -A && git write-tree` in a copy.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::*;

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always"]);
    let done = command.args(args).current_dir(folder).env("HOME", "/nonexistent").output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// What git makes of a copy of the repository.
fn oracle(work: &Path) -> String {
    let copy = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-a").arg(work).arg(copy.path().join("copy")).status().unwrap();
    assert!(copied.success());
    let at = copy.path().join("copy");
    git(&at, &["add", "-A"]);
    git(&at, &["write-tree"])
}

fn hash(work: &Path) -> WorkTree {
    of(work, None).unwrap()
}

fn repository(format: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main", &format!("--object-format={format}")]);
    folder
}

fn write(root: &Path, path: &str, text: &str) {
    fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
    fs::write(root.join(path), text).unwrap();
}

#[test]
fn the_hash_is_gits_own() {
    for format in ["sha1", "sha256"] {
        let folder = repository(format);
        let root = folder.path();
        let check = |what: &str| {
            let found = hash(root);
            assert_eq!((found.hash, found.algorithm, found.filtered), (oracle(root), format, false), "{what}");
        };
        check("an empty repository");
        for path in ["a", "a.b/c", "a-b", "sub/deep/er/file", "ä ö", "sub/.hidden"] {
            write(root, path, path);
        }
        fs::create_dir_all(root.join("empty/folder")).unwrap();
        check("files that nobody added");
        git(root, &["add", "-A"]);
        git(root, &["commit", "--quiet", "-m", "one"]);
        check("a clean work tree");
        write(root, "a", "longer than before");
        write(root, "sub/new", "new");
        fs::remove_file(root.join("sub/.hidden")).unwrap();
        fs::set_permissions(root.join("a-b"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("/nowhere", root.join("sub/dangling")).unwrap();
        check("changed, new, gone, executable, links");
        write(root, ".gitignore", "*.log\n/build/\n!keep.log\n# no\ntmp*\n");
        write(root, "sub/.gitignore", "!wanted.log\n/only\n");
        for path in
            ["x.log", "keep.log", "sub/wanted.log", "sub/only", "build/out", "sub/build/in", "tmp1", "deep/only"]
        {
            write(root, path, path);
        }
        check("what is ignored");
        write(root, "build/kept/tracked", "tracked");
        git(root, &["add", "-f", "build/kept/tracked"]);
        write(root, "build/kept/tracked", "tracked, and changed");
        check("tracked although ignored");
        write(root, ".git/info/exclude", "ä*\nkeep.log\n");
        check("the repository's own list");
        fs::remove_dir_all(root.join("a.b")).unwrap();
        write(root, "a.b", "a file where a folder was");
        check("a file in a folder's place");
    }
}

#[test]
fn repositories_inside_count_as_their_commits() {
    let (folder, other) = (repository("sha1"), repository("sha1"));
    let root = folder.path();
    write(other.path(), "inner", "inner");
    git(other.path(), &["add", "-A"]);
    git(other.path(), &["commit", "--quiet", "-m", "inner"]);
    write(root, "file", "file");
    git(root, &["submodule", "--quiet", "add", other.path().to_str().unwrap(), "module"]);
    git(root, &["commit", "--quiet", "-m", "one"]);
    assert_eq!(hash(root).hash, oracle(root));
    write(root, "module/inner", "changed, which no commit has");
    assert_eq!(hash(root).hash, oracle(root));
    git(&root.join("module"), &["commit", "--quiet", "-am", "two"]);
    assert_eq!(hash(root).hash, oracle(root), "a commit further on");
    git(root, &["clone", "--quiet", other.path().to_str().unwrap(), "nested"]);
    assert_eq!(hash(root).hash, oracle(root), "one that nobody added");
    git(root, &["submodule", "--quiet", "deinit", "-f", "module"]);
    assert_eq!(hash(root).hash, oracle(root), "one that is not checked out");
    let tree = folder.path().join("../").join(format!("{}-tree", folder.path().file_name().unwrap().to_str().unwrap()));
    git(root, &["worktree", "add", "--quiet", "-b", "other", tree.to_str().unwrap()]);
    write(&tree, "more", "more");
    let found = hash(&tree);
    git(&tree, &["add", "-A"]);
    assert_eq!(found.hash, git(&tree, &["write-tree"]), "a worktree of its own");
    fs::remove_dir_all(tree).unwrap();
}

#[test]
fn a_write_right_after_an_add_is_seen() {
    let folder = repository("sha1");
    let root = folder.path();
    for round in 0..20 {
        write(root, "racy", &format!("{round:04}"));
        git(root, &["add", "-A"]);
        write(root, "racy", &format!("{:04}", round + 1000));
        assert_eq!(hash(root).hash, oracle(root), "{round}");
    }
}

#[test]
fn where_filters_are_set_every_file_is_hashed_as_it_is() {
    for (name, text) in
        [(".gitattributes", "*.txt text eol=crlf\n"), ("sub/.gitattributes", "*.bin filter=lfs -text\n")]
    {
        let folder = repository("sha1");
        let root = folder.path();
        write(root, "a.txt", "one\r\ntwo\r\n");
        git(root, &["add", "-A"]);
        git(root, &["commit", "--quiet", "-m", "one"]);
        let before = hash(root);
        assert!(!before.filtered);
        write(root, name, text);
        let after = hash(root);
        assert!(after.filtered, "{name}");
        let plain = oracle(root);
        assert_eq!(after.hash == plain, name != ".gitattributes", "git turns line ends around, this does not");
    }
    let folder = repository("sha1");
    git(folder.path(), &["config", "core.autocrlf", "input"]);
    assert!(hash(folder.path()).filtered);
    assert_eq!(hash(folder.path()).branch.as_deref(), Some("main"));
}

#[test]
fn what_is_not_known_has_no_hash() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(of(folder.path(), None), Err(TreeError::NoRepository(_))));
    let folder = repository("sha1");
    write(folder.path(), "a", "a");
    git(folder.path(), &["add", "-A"]);
    git(folder.path(), &["config", "core.worktree", "/elsewhere"]);
    assert!(matches!(of(folder.path(), None), Err(TreeError::Kind(_))));
    git(folder.path(), &["config", "--unset", "core.worktree"]);
    fs::write(folder.path().join(".git/index"), "DIRC").unwrap();
    assert!(matches!(of(folder.path(), None), Err(TreeError::Kind(_))));
}
