//! Every state of a repository × what was really done in it × how it is stated: the right answer is known by construction.
//!
//! An honest statement is never a false DONE; the same with one file that nobody touched is one, in a tree that was clean.
//! `WRIT_SITUATIONS=all` runs all of them, else every third.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use writ_claims::{Claim, Delta, Facts, Limits, Snapshot, Verdict, judge};

/// What stands in a repository at first.
const SEED: &str = "mkdir -p src/deep docs scripts; echo a >a.py; echo b >b.py; echo c >src/c.py; echo d >src/deep/d.rs;
    echo r >README.md; echo g >'docs/my guide.md'; echo s >scripts/run; printf 'build/\\n*.log\\n/out\\nvendor/\\n' >.gitignore;
    git add .; git commit -qm first";

/// Repositories: a name and how it comes to be. It ends up at `$BASE/ws/repo`, where the agent then works in `$CWD`.
const STATES: &[(&str, &str)] = &[
    ("plain", "git init -q; eval \"$SEED\""),
    ("unborn", "git init -q; printf 'build/\\n*.log\\n/out\\n' >.git/info/exclude"),
    ("detached", "git init -q; eval \"$SEED\"; git checkout -q --detach"),
    (
        "shallow",
        "mkdir $BASE/o; cd $BASE/o; git init -q; eval \"$SEED\"; git commit -q --allow-empty -m 2;
        cd $BASE; rm -r ws/repo; git clone -q --depth=1 file://$BASE/o ws/repo",
    ),
    (
        "work tree",
        "mkdir $BASE/o; cd $BASE/o; git init -q; eval \"$SEED\"; rm -r $BASE/ws/repo;
        git worktree add -q -b wt $BASE/ws/repo",
    ),
    (
        "work tree of a bare one",
        "mkdir $BASE/o; cd $BASE/o; git init -q; eval \"$SEED\"; git clone -q --bare . $BASE/r.git;
        rm -r $BASE/ws/repo; cd $BASE/r.git; git worktree add -q $BASE/ws/repo",
    ),
    (
        "submodule",
        "git init -q; eval \"$SEED\"; mkdir $BASE/lib; cd $BASE/lib; git init -q; echo s >s.py; git add .;
        git commit -qm s; cd $BASE/ws/repo; git submodule --quiet add $BASE/lib sub; git commit -qm sub",
    ),
    ("sparse", "git init -q; eval \"$SEED\"; git sparse-checkout set src scripts"),
    ("separate", "git init -q --separate-git-dir $BASE/gd; eval \"$SEED\""),
    ("linked folder", "git init -q; eval \"$SEED\"; ln -s $BASE/ws/repo $BASE/link; echo $BASE/link >$BASE/cwd"),
    ("subfolder", "git init -q; eval \"$SEED\"; echo $BASE/ws/repo/src >$BASE/cwd"),
    ("empty .git", "git init -q; eval \"$SEED\"; mkdir src/.git; echo $BASE/ws/repo/src >$BASE/cwd"),
    (
        "merge",
        "git init -q; eval \"$SEED\"; git checkout -q -b o; echo o >b.py; git commit -qam o; git checkout -q main;
        echo m >b.py; git commit -qam m; git merge -q o || touch $BASE/dirty",
    ),
    (
        "rebase",
        "git init -q; eval \"$SEED\"; git checkout -q -b o; echo o >b.py; git commit -qam o; git checkout -q main;
        echo m >b.py; git commit -qam m; git rebase -q o || touch $BASE/dirty",
    ),
    ("dirty", "git init -q; eval \"$SEED\"; echo theirs >b.py; touch $BASE/dirty"),
    ("sha256", "git init -q --object-format=sha256; eval \"$SEED\""),
    ("no reflogs", "git init -q; git config core.logAllRefUpdates false; eval \"$SEED\""),
    ("packed", "git init -q; eval \"$SEED\"; git gc -q; git pack-refs --all"),
    (
        "nested and ignored",
        "git init -q; eval \"$SEED\"; mkdir -p vendor/lib; cd vendor/lib; git init -q; echo v >v.py;
        echo w >w.py; git add .; git commit -qm v",
    ),
    (
        "one beside",
        "git init -q; eval \"$SEED\"; mkdir $BASE/ws/other; cd $BASE/ws/other; git init -q; mkdir pkg; echo v >v.py;
        echo w >pkg/w.py; git add .; git commit -qm v",
    ),
];

/// What is done, and what is claimed: `-` before a path says that it is gone, `a>b` is a rename.
const WORKS: &[(&str, &str, &[&str])] = &[
    ("edited", "mkdir -p src; echo x >src/c.py", &["src/c.py"]),
    ("created", "mkdir -p new; echo x >new/n.py", &["new/n.py"]),
    ("created as a folder", "mkdir -p new; echo x >new/n.py", &["new/"]),
    ("deleted", "rm -f src/c.py", &["-src/c.py"]),
    ("made and deleted", "echo x >probe.py; rm probe.py", &["-probe.py"]),
    ("renamed", "mkdir -p src; echo x >old.py; git add old.py; git mv old.py src/e.py", &["old.py>src/e.py"]),
    ("staged", "mkdir -p src; echo x >src/n.py; git add src/n.py", &["src/n.py"]),
    ("committed", "mkdir -p src; echo x >src/n.py; git add --sparse src/n.py; git commit -qm n", &["src/n.py"]),
    ("stashed", "git commit -q --allow-empty -m e; mkdir -p src; echo x >src/n.py; git stash -q -u", &["src/n.py"]),
    (
        "stashed twice",
        "git commit -q --allow-empty -m e; mkdir -p src; echo x >src/n.py; git stash -q -u; echo y >y.py;
        git stash -q -u",
        &["src/n.py", "y.py"],
    ),
    (
        "on a branch",
        "git commit -q --allow-empty -m e; H=$(git symbolic-ref --short -q HEAD || git rev-parse HEAD);
        git checkout -q -b topic; mkdir -p src; echo x >src/n.py; git add --sparse src/n.py; git commit -qm n;
        git checkout -q $H",
        &["src/n.py"],
    ),
    (
        "on a branch that is gone",
        "git commit -q --allow-empty -m e; H=$(git symbolic-ref --short -q HEAD || git rev-parse HEAD);
        git checkout -q -b topic; mkdir -p src; echo x >src/n.py; git add --sparse src/n.py; git commit -qm n;
        git checkout -q $H; git branch -q -D topic",
        &["src/n.py"],
    ),
    (
        "reset away",
        "git commit -q --allow-empty -m e; mkdir -p src; echo x >src/n.py; git add --sparse src/n.py;
        git commit -qm n; git reset -q --hard HEAD~1",
        &["src/n.py"],
    ),
    (
        "in a work tree that is gone",
        "git commit -q --allow-empty -m e; git worktree add -q -b wx $BASE/wx; cd $BASE/wx; echo x >t.py;
        git add t.py; git commit -qm t; git worktree remove --force $BASE/wx; cd $BASE/ws/repo; git branch -q -D wx",
        &["t.py"],
    ),
    (
        "in another work tree",
        "git commit -q --allow-empty -m e; git worktree add -q -b wy $BASE/wy; echo x >$BASE/wy/t.py",
        &["t.py"],
    ),
    ("linked", "ln -s nowhere l.py", &["l.py"]),
    ("with a blank", "mkdir -p docs; echo x >'docs/my notes.md'", &["docs/my notes.md"]),
    ("with a comma", "mkdir -p src; echo x >src/a,b.py", &["src/a,b.py"]),
    ("with a quote", "echo x >it\\'s.py", &["it's.py"]),
    ("decomposed", "printf x >$'nai\\u0308ve.md'", &["naïve.md"]),
    ("as it was", "mkdir -p src; touch src/c.py", &["src/c.py"]),
    ("ignored and gone", "mkdir -p build; echo x >build/o; rm -r build", &["build/", "logs/run.log", "out"]),
    ("a repository inside", "mkdir inner; echo x >inner/i.py; git init -q inner", &["inner/i.py"]),
    ("outside", "mkdir -p $BASE/e; echo x >$BASE/e/x.py", &["BASE/e/x.py", "-BASE/e/gone.py"]),
];

/// What can only be done in one of the states.
const SPECIAL: &[(&str, &str, &[&str])] = &[
    ("submodule", "echo x >sub/s.py", &["sub/s.py"]),
    ("submodule", "cd sub; echo x >n.py; git add .; git commit -qm n", &["sub/n.py"]),
    ("submodule", "cd sub; echo x >n.py; git add .; git commit -qm n; cd ..; git add sub", &["sub/n.py", "sub"]),
    (
        "submodule",
        "cd sub; git checkout -q -b t; echo x >n.py; git add .; git commit -qm n; git checkout -q main",
        &["sub/n.py"],
    ),
    ("submodule", "git submodule --quiet add $BASE/lib two", &["two", ".gitmodules", "two/s.py"]),
    ("submodule", "git rm -q sub", &["-sub", "-sub/s.py"]),
    (
        "sparse",
        "mkdir docs; echo n >docs/n.md; git add --sparse docs/n.md; git commit -qm n; git sparse-checkout reapply",
        &["docs/n.md"],
    ),
    ("merge", "echo d >b.py; git add b.py; git commit -qm m", &["b.py"]),
    ("rebase", "echo d >b.py; git add b.py; GIT_EDITOR=true git rebase --continue", &["b.py"]),
    ("nested and ignored", "rm vendor/lib/w.py", &["vendor/lib/w.py"]),
    ("nested and ignored", "cd vendor/lib; git rm -q w.py; git commit -qm d", &["vendor/lib/w.py"]),
    ("one beside", "echo x >../other/pkg/n.py", &["pkg/n.py"]),
    ("one beside", "echo x >../other/n.py", &["../other/n.py", "other/n.py"]),
    ("one beside", "git -C ../other rm -q pkg/w.py", &["pkg/w.py"]),
    (
        "one beside",
        "cd ../other; git checkout -q -b t; echo x >q.py; git add .; git commit -qm q; git checkout -q main",
        &["q.py"],
    ),
];

/// Words that stand in such lists and are no paths.
const WORDS: &[&str] = &[
    "documentation",
    "JIRA-123",
    "requests==2.32.0",
    "pkg.mod",
    "v1.2.3",
    "https://example.org/x.py",
    "feature/login",
    "test_login",
    "MyClass.run",
    "origin/main",
    "@types/node",
    "com.example.App",
    "Next.js",
    "console.log",
    "a1b2c3d",
];

/// Files that nobody made.
const LIES: &[&str] =
    &["ghost.py", "src/phantom.rs", "docs/never written.md", "no/such/dir.json", "Dockerfile", "absent_dir/"];

/// One path as people write it.
fn spelled(path: &str, turn: usize) -> String {
    let pick = |ways: &[String]| ways.get(turn % ways.len()).cloned().unwrap();
    if let Some((old, new)) = path.split_once('>') {
        return pick(&[format!("{old} -> {new}"), format!("`{old}` → `{new}`"), format!("{old} renamed to {new}")]);
    }
    if let Some(gone) = path.strip_prefix('-') {
        return pick(&[
            format!("`{gone}` (deleted)"),
            format!("{gone} (removed)"),
            format!("deleted: {gone}"),
            format!("`{gone}` — removed"),
            format!("D {gone}"),
        ]);
    }
    if path.contains([' ', ',', '/']) && !path.is_ascii() || path.contains([' ', ',']) {
        return pick(&[format!("`{path}`"), format!("\"{path}\"")]);
    }
    pick(&[
        format!("`{path}`"),
        path.to_owned(),
        format!("{path} (new)"),
        format!("`{path}:3-9`"),
        format!("**{path}**"),
    ])
}

fn statement(entries: &[String], turn: usize) -> String {
    let list = entries.iter().map(|entry| format!("\n- {entry}")).collect::<String>();
    match turn % 4 {
        0 => format!("## Handoff\nstatus: DONE\nfiles_changed:{list}\nblockers: none"),
        1 => format!("Status: done\nFiles changed:{list}"),
        2 => format!("Status: DONE\n\nIt is all in place.\n\n## Handoff\nfiles_changed:{list}"),
        _ => format!("**Status:** ✅ Done\n**Modified files:**{list}"),
    }
}

fn bash(script: &str, at: &Path, base: &Path) {
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("set -e; {script}")])
        .current_dir(at)
        .env("SEED", SEED)
        .env("BASE", base)
        .env("HOME", base);
    command.env("LC_ALL", "C.UTF-8").envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
    let config = [
        ("user.name", "t"),
        ("user.email", "t@t"),
        ("protocol.file.allow", "always"),
        ("init.defaultBranch", "main"),
        ("core.fsync", "none"),
    ];
    for (at, (key, value)) in config.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    let out = command.env("GIT_CONFIG_COUNT", config.len().to_string()).output().unwrap();
    assert!(out.status.success(), "{script}\n{}", String::from_utf8_lossy(&out.stderr));
}

struct Case {
    state: &'static (&'static str, &'static str),
    script: &'static str,
    claimed: &'static [&'static str],
    turn: usize,
}

/// Runs a case; why an answer is wrong.
fn run(case: &Case) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let repo = base.join("ws/repo");
    fs::create_dir_all(&repo).unwrap();
    bash(case.state.1, &repo, &base);
    let cwd = fs::read_to_string(base.join("cwd")).map_or(repo.clone(), |text| PathBuf::from(text.trim()));
    let (limits, since) = (Limits::default(), SystemTime::now());
    let (before, _) = Snapshot::take(&cwd, &limits).unwrap();
    bash(case.script, &repo, &base);
    let own = |path: &&str| path.replace("BASE", base.to_str().unwrap());
    let entries: Vec<String> = case.claimed.iter().map(own).map(|path| spelled(&path, case.turn)).collect();
    let word = WORDS.get(case.turn % WORDS.len()).copied().unwrap().to_owned();
    let lie = LIES.get(case.turn % LIES.len()).map(|lie| spelled(lie, case.turn)).unwrap();
    let verdict = |more: String| {
        let text = statement(&[entries.as_slice(), &[more]].concat(), case.turn);
        (judged(&text, &before, since, &cwd, &limits), text)
    };
    let clean = !base.join("dirty").exists();
    let ((honest, said), (lying, lied)) = (verdict(word), verdict(lie));
    let story =
        |text: &str, verdict: &Verdict| format!("{}: {}\n{text}\n{:#?}", case.state.0, case.script, verdict.files);
    let mut wrong = Vec::new();
    if honest.false_done {
        wrong.push(format!("honest, {}", story(&said, &honest)));
    }
    if !lying.false_done || lying.ambiguous == clean {
        wrong.push(format!("a lie, {}", story(&lied, &lying)));
    }
    wrong
}

fn judged(text: &str, before: &Snapshot, since: SystemTime, cwd: &Path, limits: &Limits) -> Verdict {
    let (after, repository) = Snapshot::take(cwd, limits).unwrap();
    let delta = Delta::between(before, &after, &repository.root, limits).unwrap();
    let facts = Facts {
        before,
        since: Some(since),
        after: &after,
        delta: &delta,
        repository: &repository,
        folders: &[cwd.to_owned()],
        home: None,
        acts: &[],
        others: &BTreeSet::new(),
        limits,
    };
    judge(&Claim::parse(text), &facts)
}

#[test]
fn every_situation_has_its_answer() {
    let mut cases = Vec::new();
    let all = std::env::var_os("WRIT_SITUATIONS").is_some_and(|which| which == "all");
    for (number, state) in STATES.iter().enumerate() {
        let special =
            SPECIAL.iter().filter(|(own, ..)| *own == state.0).map(|(_, script, claimed)| (*script, *claimed, true));
        let works = WORKS.iter().map(|(_, script, claimed)| (*script, *claimed, false));
        for (at, (script, claimed, special)) in works.chain(special).enumerate() {
            // What commits needs a tree without conflicts and strangers' work.
            let conflicts =
                ["merge", "rebase", "dirty"].contains(&state.0) && script.contains("git commit") && !special;
            if !conflicts && (all || special || (at + number) % 3 == 0) {
                cases.push(Case { state, script, claimed, turn: at + 3 * number });
            }
        }
    }
    assert!(cases.len() > if all { 400 } else { 150 }, "{} cases", cases.len());
    let next = AtomicUsize::new(0);
    let worker = || {
        let own = std::iter::from_fn(|| cases.get(next.fetch_add(1, Ordering::Relaxed)));
        own.flat_map(run).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} wrong of {}\n{}", wrong.len(), 2 * cases.len(), wrong.join("\n\n"));
}
