//! The delta and the verdict on real repositories: every way in which work can land, and the ways in which it cannot.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use writ_claims::{Act, Claim, Delta, Facts, Landing, Limits, Only, Snapshot, Verdict, judge};
use writ_core::json::{from_value, to_value};

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        for (name, text) in [("a.py", "a"), ("b.py", "b"), ("src/c.py", "c"), (".gitignore", "build/\n")] {
            place.write(name, text);
        }
        place.git(&["add", "."]);
        place.commit("first");
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"]);
        let out = command.args(arguments).current_dir(self.folder.path()).output().unwrap();
        assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    fn commit(&self, message: &str) {
        self.git(&["commit", "--quiet", "--allow-empty", "-a", "-m", message]);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::take(self.folder.path(), &Limits::default()).unwrap().0
    }

    fn judge(&self, before: &Snapshot, files: &str, acts: &[Act]) -> Verdict {
        let limits = Limits::default();
        let (after, repository) = Snapshot::take(self.folder.path(), &limits).unwrap();
        let delta = Delta::between(before, &after, &repository.root, &limits).unwrap();
        let claim = Claim::parse(&format!("Status: DONE\nFiles changed: {files}"));
        let others = BTreeSet::new();
        let facts = Facts {
            before,
            since: None,
            after: &after,
            delta: &delta,
            repository: &repository,
            folders: &[],
            home: None,
            acts,
            others: &others,
            limits: &limits,
        };
        judge(&claim, &facts)
    }
}

fn landings(verdict: &Verdict) -> Vec<Landing> {
    verdict.files.iter().map(|file| file.landing).collect()
}

type Work = fn(&Place);

/// What an agent did, what it claims, and what became of it. None of these is a false DONE.
const HONEST: &[(&str, Work, &str, Landing)] = &[
    ("edited", |p| p.write("a.py", "x"), "a.py", Landing::Landed),
    ("created", |p| p.write("new/n.py", "x"), "new/n.py", Landing::Landed),
    ("created, claimed as a folder", |p| p.write("new/n.py", "x"), "new/", Landing::Landed),
    ("claimed absolutely", |p| p.write("a.py", "x"), "ROOT/a.py", Landing::Landed),
    ("deleted", |p| fs::remove_file(p.root().join("a.py")).unwrap(), "a.py", Landing::Landed),
    (
        "staged",
        |p| {
            p.write("a.py", "x");
            p.git(&["add", "."]);
        },
        "a.py",
        Landing::Landed,
    ),
    (
        "committed",
        |p| {
            p.write("a.py", "x");
            p.commit("second");
        },
        "a.py",
        Landing::Landed,
    ),
    ("removed from the index", |p| p.git(&["rm", "--quiet", "--cached", "a.py"]), "a.py", Landing::Landed),
    ("renamed", |p| p.git(&["mv", "a.py", "z.py"]), "a.py -> z.py", Landing::Landed),
    (
        "renamed and committed",
        |p| {
            p.git(&["mv", "a.py", "z.py"]);
            p.commit("mv");
        },
        "a.py, z.py",
        Landing::Landed,
    ),
    ("made executable", |p| executable(&p.root().join("a.py")), "a.py", Landing::Landed),
    ("made a link", |p| std::os::unix::fs::symlink("a.py", p.root().join("l.py")).unwrap(), "l.py", Landing::Landed),
    (
        "stashed",
        |p| {
            p.write("a.py", "x");
            p.git(&["stash", "--quiet"]);
        },
        "a.py",
        Landing::Elsewhere,
    ),
    (
        "stashed as new",
        |p| {
            p.write("n.py", "x");
            p.git(&["stash", "-u", "--quiet"]);
        },
        "n.py",
        Landing::Elsewhere,
    ),
    ("on a branch that was left", on_a_branch, "feature.py", Landing::Elsewhere),
    ("in another work tree", in_a_worktree, "wt.py", Landing::Elsewhere),
    ("under another folder", |p| p.write("deep/er/m.py", "x"), "m.py", Landing::Elsewhere),
    ("ignored, and there", |p| p.write("build/o.bin", "x"), "build/o.bin", Landing::Unchanged),
    ("ignored, and gone", |_| {}, "build/o.bin", Landing::CannotVerify),
    ("outside, and gone", |_| {}, "/nowhere/at/all.py", Landing::CannotVerify),
    ("there, and as it was", |_| {}, "a.py", Landing::Unchanged),
    ("in a repository inside", nested, "inner/i.py", Landing::Landed),
    ("in a submodule", |p| p.write("sub/s.py", "x"), "sub/s.py", Landing::Landed),
    (
        "committed in a submodule",
        |p| {
            p.write("sub/s.py", "x");
            in_sub(p, &["commit", "-aqm", "x"]);
        },
        "sub/s.py",
        Landing::Landed,
    ),
];

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn on_a_branch(place: &Place) {
    place.git(&["checkout", "--quiet", "-b", "feature"]);
    place.write("feature.py", "x");
    place.git(&["add", "."]);
    place.commit("feature");
    place.git(&["checkout", "--quiet", "main"]);
}

fn in_a_worktree(place: &Place) {
    let other = place.root().join("build/other");
    place.git(&["worktree", "add", "--quiet", other.to_str().unwrap()]);
    fs::write(other.join("wt.py"), "x").unwrap();
}

fn nested(place: &Place) {
    place.write("inner/i.py", "x");
    place.git(&["init", "--quiet", "inner"]);
}

fn in_sub(place: &Place, arguments: &[&str]) {
    let mut all = vec!["-C", "sub", "-c", "user.name=t", "-c", "user.email=t@t"];
    all.extend(arguments);
    place.git(&all);
}

fn with_submodule(place: &Place) {
    let origin = place.root().join("build/origin");
    place.git(&["init", "--quiet", origin.to_str().unwrap()]);
    fs::write(origin.join("s.py"), "s").unwrap();
    let at = origin.to_str().unwrap();
    place.git(&["-C", at, "add", "."]);
    place.git(&["-C", at, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "s"]);
    place.git(&["submodule", "--quiet", "add", at, "sub"]);
    place.commit("sub");
}

#[test]
fn honest_work_is_found_wherever_it_landed() {
    for (name, work, claimed, expected) in HONEST {
        let place = Place::new();
        if claimed.starts_with("sub/") {
            with_submodule(&place);
        }
        let before = place.snapshot();
        work(&place);
        let claimed = claimed.replace("ROOT", place.root().to_str().unwrap());
        let verdict = place.judge(&before, &claimed, &[]);
        assert!(landings(&verdict).iter().all(|landing| landing == expected), "{name}: {verdict:?}");
        assert!(!verdict.false_done && !verdict.files.is_empty(), "{name}: {verdict:?}");
    }
}

#[test]
fn what_is_nowhere_is_a_false_done() {
    let place = Place::new();
    let before = place.snapshot();
    place.write("a.py", "x");
    for claimed in ["missing.py", "a.py, src/missing.py", "`missing.py`", "ROOT/missing.py"] {
        let verdict = place.judge(&before, &claimed.replace("ROOT", place.root().to_str().unwrap()), &[]);
        assert!(verdict.false_done && !verdict.ambiguous, "{claimed}: {verdict:?}");
        assert!(landings(&verdict).contains(&Landing::Missing));
    }
    assert_eq!(place.judge(&before, "missing.py", &[]).unclaimed, ["a.py"]);
}

#[test]
fn what_was_dirty_before_is_nobodys_doubt_but_makes_it_ambiguous() {
    let place = Place::new();
    place.write("b.py", "theirs");
    let before = place.snapshot();
    let verdict = place.judge(&before, "b.py", &[]);
    assert_eq!(landings(&verdict), [Landing::Unchanged]);
    assert!(verdict.ambiguous && verdict.observed.is_empty());
    place.write("b.py", "mine");
    assert_eq!(landings(&place.judge(&before, "b.py", &[])), [Landing::Landed]);
}

#[test]
fn a_write_that_never_landed_is_proven_by_the_transcript() {
    let place = Place::new();
    place.write("b.py", "dirty");
    let before = place.snapshot();
    let wrote = |name: &str| Act::Wrote { path: place.root().join(name), content: "new".to_owned() };
    let verdict = place.judge(&before, "a.py", &[wrote("a.py")]);
    assert_eq!(landings(&verdict), [Landing::Unchanged]);
    assert!(verdict.false_done && verdict.proven);
    let verdict = place.judge(&before, "a.py", &[wrote("a.py"), Act::Unknown]);
    assert_eq!(landings(&verdict), [Landing::RevertedLater]);
    assert!(!verdict.false_done);
    let verdict = place.judge(&before, "gone.py", &[wrote("gone.py"), Act::Unknown]);
    assert_eq!((landings(&verdict), verdict.false_done), (vec![Landing::RevertedLater], false));
    assert!(place.judge(&before, "gone.py", &[wrote("gone.py")]).proven);
}

#[test]
fn a_pipe_or_a_device_proves_nothing_and_holds_nobody_up() {
    let place = Place::new();
    let before = place.snapshot();
    assert!(Command::new("mkfifo").arg(place.root().join("pipe")).status().unwrap().success());
    let wrote = |path: &str| Act::Wrote { path: place.root().join(path), content: "new".to_owned() };
    for claimed in ["pipe", "/dev/zero"] {
        assert!(!place.judge(&before, claimed, &[wrote(claimed)]).false_done, "{claimed}");
    }
}

#[test]
fn no_commit_yet_and_no_repository() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Snapshot::take(folder.path(), &Limits::default()).is_err());
    let place = Place { folder };
    place.git(&["init", "--quiet", "--initial-branch=main"]);
    let before = place.snapshot();
    assert_eq!(before.head(), None);
    place.write("a.py", "x");
    place.git(&["add", "."]);
    place.commit("first");
    assert_eq!(landings(&place.judge(&before, "a.py", &[])), [Landing::Landed]);
    assert_eq!(from_value(&to_value(&before)), Ok(before));
}

#[test]
fn the_repository_is_left_as_it_was() {
    let place = Place::new();
    place.write("a.py", "x");
    let index = fs::metadata(place.root().join(".git/index")).unwrap().modified().unwrap();
    place.snapshot();
    assert_eq!(fs::metadata(place.root().join(".git/index")).unwrap().modified().unwrap(), index);
    assert!(!place.root().join(".git/index.lock").exists());
}

/// A situation, and what makes it: the work tree to look at comes back.
type Kind = (&'static str, fn(&Place) -> PathBuf);

#[test]
fn the_settings_of_a_repository_run_nothing_and_the_state_is_the_same() {
    let kinds: [Kind; 5] = [
        ("plain", |place| place.root()),
        ("linked", |place| {
            place.git(&["worktree", "add", "--quiet", "-b", "other", "linked"]);
            place.root().join("linked")
        }),
        ("split index", |place| {
            place.git(&["update-index", "--split-index"]);
            place.root()
        }),
        ("line ends", |place| {
            place.git(&["config", "core.autocrlf", "true"]);
            fs::write(place.root().join("a.py"), "a\r\n").unwrap();
            place.git(&["commit", "--quiet", "-a", "-m", "ends"]);
            place.root()
        }),
        ("own settings", |place| {
            place.git(&["config", "extensions.worktreeConfig", "true"]);
            place.root()
        }),
    ];
    for (name, make) in kinds {
        let place = Place::new();
        let root = make(&place);
        place.write("fresh", "new");
        fs::write(root.join("b.py"), "changed").unwrap();
        let of_one = Limits { only: Some(Only::at(&root)), ..Limits::default() };
        let take = |limits: &Limits| to_value(&Snapshot::take(&root, limits).unwrap().0);
        assert_eq!(take(&of_one), take(&Limits::default()), "{name}");
        // What git would run: for the file whose time has changed, and to fetch what is not there.
        let ran = place.root().join("ran");
        let touch = format!("touch {}; cat", ran.display());
        fs::write(root.join(".gitattributes"), "* filter=evil\n").unwrap();
        place.git(&["config", "filter.evil.clean", &touch]);
        let worktree_config = place.root().join(".git/config.worktree");
        fs::write(worktree_config, format!("[filter \"evil\"]\n\tclean = {touch:?}\n")).unwrap();
        place.git(&["config", "core.fsmonitor", &touch]);
        fs::write(root.join("src/c.py"), "c").unwrap();
        take(&of_one);
        assert!(!ran.exists(), "{name}");
        take(&Limits::default());
        assert!(ran.exists(), "{name}: the trap is one");
    }
}
