//! Random work trees against git: whatever the lists, settings and folders are, the hash is git's, or it is said why there is none.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

const CASES: u64 = 250;
const ATOMS: &[&str] = &[
    "a",
    "b",
    "foo",
    "bar",
    "x",
    "1",
    ".js",
    "*",
    "*",
    "**",
    "?",
    "/",
    "/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[[:alpha:]]",
    "[[:digit:]]*",
    "[[:upper:]]",
    "[[:nope:]]",
    "[[:a]",
    "[a-f]",
    "[f-a]",
    "[A-Z]",
    "[]q]",
    "[\\]]",
    "[a\\-z]",
    "[--1]",
    "[",
    "]",
    "{a,b}",
    "*.{js,ts}",
    "\\",
    "\\*",
    "\\a",
    "\\A",
    "B",
    " ",
    "\\ ",
    "!",
    "#",
    "[/]",
    "**/",
    "/**",
    "\t",
    "\r",
    "\0",
    "é",
];
const NAMES: &[&str] = &[
    "a",
    "b",
    "ab",
    "foo",
    "foo1",
    "foobar",
    "bar",
    "B",
    "x[",
    "x",
    "{a,b}",
    "a b",
    "a ",
    "\\q",
    "]q",
    "-",
    "1z",
    "é",
    "#h",
    "!n",
    "m.js",
    "m.ts",
    "m.{js,ts}",
    "a*b",
    "\t",
    "[",
    "f-a",
    "a\r",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % count
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn path(&mut self) -> String {
        let names: Vec<_> = (0..=self.below(3)).map(|_| self.one(NAMES)).collect();
        names.join("/")
    }

    fn list(&mut self) -> String {
        let mut out = String::from(if self.below(8) == 0 { "\u{feff}" } else { "" });
        for _ in 0..=self.below(4) {
            // One in three is a path that may be there, more or less.
            if self.below(3) == 0 {
                out += ["", "/", "!", "**/"][self.below(4)];
                out += &self.path();
                out += ["", "/", "/*", "/**", "*", " "][self.below(6)];
            } else {
                (0..=self.below(5)).for_each(|_| out += self.one(ATOMS));
            }
            out += ["\n", "\n", "\r\n"][self.below(3)];
        }
        if self.below(4) == 0 { out.trim_end_matches('\n').to_owned() } else { out }
    }
}

struct Case {
    _folder: tempfile::TempDir,
    home: PathBuf,
    work: PathBuf,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (folder.path().join("home"), folder.path().join("work"));
        fs::create_dir_all(work.join(".git/refs/heads")).unwrap();
        fs::create_dir_all(work.join(".git/objects")).unwrap();
        fs::create_dir_all(work.join(".git/info")).unwrap();
        fs::create_dir_all(home.join(".config/git")).unwrap();
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(work.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
        Self { _folder: folder, home, work }
    }

    /// Writes a file where nothing is in its way.
    fn write(&self, path: &str, text: &str) -> bool {
        let at = self.work.join(path);
        fs::create_dir_all(at.parent().unwrap()).is_ok()
            && !at.is_dir()
            && !at.is_symlink()
            && fs::write(at, text).is_ok()
    }

    fn settings(&self, text: &str) {
        let at = self.work.join(".git/config");
        fs::write(&at, fs::read_to_string(&at).unwrap() + text).unwrap();
    }

    fn git(&self, args: &[&str], index: &str) -> Result<String, String> {
        let mut command = Command::new("git");
        command
            .args(["-c", "core.quotePath=false", "-c", "core.fsync=none"])
            .args(args)
            .current_dir(&self.work)
            .env("HOME", &self.home);
        let done = command
            .env("GIT_INDEX_FILE", self.work.join(".git").join(index))
            .env("XDG_CONFIG_HOME", self.home.join(".config"));
        let done = done.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// What git makes of it, with an index of its own.
    fn oracle(&self) -> Result<String, String> {
        if self.work.join(".git/index").exists() {
            fs::copy(self.work.join(".git/index"), self.work.join(".git/oracle")).unwrap();
        }
        self.git(&["add", "-A"], "oracle")?;
        self.git(&["write-tree"], "oracle")
    }

    fn hash(&self) -> Result<WorkTree, TreeError> {
        of(&self.work, Some(&self.home))
    }

    fn agrees(&self, what: &str) {
        let found = self.hash().map(|found| (found.hash, found.filtered)).map_err(|error| error.to_string());
        let oracle = self.oracle();
        assert_eq!(found, oracle.map(|hash| (hash, false)), "{what}\n{:?}", self.git(&["ls-files"], "oracle"));
    }
}

/// A folder that git may take for a repository.
fn odd(dice: &mut Dice, case: &Case) {
    let at = dice.path() + "/odd";
    if !case.write(&(at.clone() + "/in"), "in") {
        return;
    }
    let dot = case.work.join(&at).join(".git");
    match dice.below(6) {
        0 => fs::write(dot, "").unwrap(),
        1 => fs::create_dir(dot).unwrap(),
        2 => fs::write(dot, "gitdir: nowhere\n").unwrap(),
        3 => symlink("in", dot).unwrap(),
        4 => {
            fs::create_dir(&dot).unwrap();
            fs::write(dot.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        _ => {
            for folder in ["objects", "refs/heads"] {
                fs::create_dir_all(dot.join(folder)).unwrap();
            }
            fs::write(dot.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::write(dot.join("config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
            if dice.below(4) > 0 {
                fs::write(dot.join("refs/heads/main"), "1234567890123456789012345678901234567890\n").unwrap();
            }
        }
    }
}

/// A list that binds everywhere, by one of the ways that settings have.
fn outer(dice: &mut Dice, case: &Case) {
    let list = dice.list();
    let named = case.home.join("list");
    fs::write(&named, &list).unwrap();
    let setting = "[core]\n\texcludesFile = \"~/list\" ; mine\n";
    match dice.below(9) {
        0 => fs::write(case.work.join(".git/info/exclude"), list).unwrap(),
        1 => fs::write(case.home.join(".config/git/ignore"), list).unwrap(),
        2 => fs::write(case.home.join(".gitconfig"), setting).unwrap(),
        3 => case.settings(setting),
        kind => {
            fs::write(case.home.join("more"), setting).unwrap();
            let real = case.work.canonicalize().unwrap();
            let work = real.to_str().unwrap();
            let include = match kind {
                4 => "[include]\n\tpath = more\n".to_owned(),
                5 => format!("[includeIf \"gitdir:{work}/\"]\n\tpath = ~/more\n"),
                6 => "[includeIf \"gitdir:elsewhere/\"]\n\tpath = ~/more\n".to_owned(),
                7 => "[includeIf \"onbranch:m[a-b]*\"]\n\tpath = more\n".to_owned(),
                _ => "[includeIf \"hasconfig:remote.*.url:https://**/x\"]\n\tpath = more\n[remote \"r\"]\n\turl = https://h/y/x\n".to_owned(),
            };
            fs::write(case.home.join(".gitconfig"), include).unwrap();
        }
    }
}

fn random(seed: u64) -> (Case, String) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        dice.below(2);
    }
    let case = Case::new();
    for _ in 0..10 + dice.below(15) {
        case.write(&dice.path(), "one");
    }
    if dice.below(2) == 0 {
        for _ in 0..3 {
            let path = dice.path();
            if case.work.join(&path).exists() {
                case.git(&["add", "-f", "--", &path], "index").unwrap();
            }
        }
        case.write(&dice.path(), "another");
    }
    for folder in ["", "a/", "foo/", "x/"] {
        let list = dice.list();
        if folder.is_empty() || dice.below(3) == 0 {
            if dice.below(8) == 0 && case.write(&format!("{folder}list"), &list) {
                symlink("list", case.work.join(folder).join(".gitignore")).unwrap();
            } else {
                case.write(&format!("{folder}.gitignore"), &list);
            }
        }
    }
    if dice.below(3) == 0 {
        odd(&mut dice, &case);
    }
    if dice.below(3) == 0 {
        outer(&mut dice, &case);
    }
    let fold = dice.below(6) == 0;
    if fold {
        case.settings("[core]\n\tignoreCase = yes\n");
    }
    let list = fs::read(case.work.join(".gitignore")).unwrap_or_default();
    (case, format!("seed {seed}, {:?}", String::from_utf8_lossy(&list)))
}

#[test]
fn random_trees_hash_as_git_has_them() {
    let (mut same, mut both_refuse, mut unknown) = (0, 0, 0);
    let seeds = std::env::var("WRIT_TREE_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(CASES);
    for seed in 1..=seeds {
        let (case, about) = random(seed);
        match (case.hash(), case.oracle()) {
            (Ok(found), Ok(oracle)) => {
                let all = || case.git(&["ls-files"], "oracle");
                assert_eq!((found.hash, found.filtered), (oracle, false), "{about}\n{}", all().unwrap());
                same += 1;
            }
            (Err(_), Err(_)) => both_refuse += 1,
            // What the page names as not known.
            (Err(TreeError::Refused { why, .. }), Ok(_)) if why.contains("core.ignoreCase") => unknown += 1,
            (found, oracle) => panic!("{about}: {found:?}, git {oracle:?}"),
        }
    }
    assert!(same * 10 > seeds * 8, "{same} compared, {both_refuse} refused by both, {unknown} not known");
}

#[test]
fn what_stands_beside_a_dot_git_that_is_nothing_counts() {
    for fake in ["", "gitdir: nowhere\n", "gitdir: \n", "nothing"] {
        let case = Case::new();
        case.write("ev/.git", fake);
        case.write("ev/evil", "x");
        case.agrees(fake);
    }
    let case = Case::new();
    fs::create_dir_all(case.work.join("ev/.git")).unwrap();
    case.write("ev/evil", "x");
    case.agrees("an empty folder");
    case.write("src/kept", "x");
    case.git(&["add", "-A"], "index").unwrap();
    fs::create_dir_all(case.work.join("src/.git/objects")).unwrap();
    fs::create_dir_all(case.work.join("src/.git/refs/heads")).unwrap();
    fs::write(case.work.join("src/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(case.work.join("src/.git/refs/heads/main"), "1".repeat(40)).unwrap();
    case.write("src/kept", "changed");
    case.write("src/new", "new");
    case.agrees("a repository around tracked files");
}

#[test]
fn settings_that_are_included_are_seen() {
    for (name, text) in [
        (".gitconfig", "[include]\npath=more"),
        (".config/git/config", "[include]\npath=~/more"),
        (".gitconfig", "[includeIf \"gitdir:**/work/.git\"]\npath=more"),
    ] {
        let case = Case::new();
        fs::write(case.home.join(name), text).unwrap();
        fs::write(case.home.join("more"), "[core]\nautocrlf=input").unwrap();
        assert!(case.hash().unwrap().filtered, "{text}");
        fs::write(case.home.join("more"), "[core]\nautocrlf=false").unwrap();
        assert!(!case.hash().unwrap().filtered, "{text}");
    }
    let case = Case::new();
    fs::write(case.home.join(".gitconfig"), "[include]\npath=.gitconfig").unwrap();
    assert!(matches!(case.hash(), Err(TreeError::Kind(_))));
    assert!(case.oracle().is_err());
    fs::write(case.home.join(".gitconfig"), "[core]\nx = \"open\n").unwrap();
    assert!(matches!(case.hash(), Err(TreeError::Settings(_))));
    assert!(case.oracle().is_err());
}

#[test]
fn what_git_would_overlook_or_refuse_has_no_hash() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let case = Case::new();
        case.write("a", "a");
        case.git(&["add", "-A"], "index").unwrap();
        case.git(&["update-index", flag, "a"], "index").unwrap();
        case.agrees(flag);
        case.write("a", "changed");
        assert!(matches!(case.hash(), Err(TreeError::Refused { .. })), "{flag}");
        fs::remove_file(case.work.join("a")).unwrap();
        case.agrees(flag);
    }
    for name in [".GIT/x", "git~1", "d/.git /x", ".Git.:x"] {
        let case = Case::new();
        case.write(name, "x");
        assert!(matches!(case.hash(), Err(TreeError::Refused { .. })), "{name}");
        assert!(case.oracle().is_err(), "{name}");
    }
}

#[test]
fn a_hostile_list_ends_in_time() {
    let case = Case::new();
    let deep = "a/".repeat(100) + "a";
    case.write(&deep, "x");
    for pattern in ["**/a/".repeat(90) + "b", "*a".repeat(200) + "b", "a**/".repeat(300), "[".repeat(1 << 20)] {
        case.write(".gitignore", &format!("{pattern}\n"));
        let begun = Instant::now();
        assert!(case.hash().is_ok());
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    }
    fs::remove_file(case.work.join(".gitignore")).unwrap();
    let fifo = Path::new(".gitignore");
    let made = Command::new("mkfifo").arg(case.work.join(fifo)).status().unwrap();
    assert!(made.success() && fifo.as_os_str().as_bytes().starts_with(b"."));
    assert!(matches!(case.hash(), Err(TreeError::Io { .. })));
}
