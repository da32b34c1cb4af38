//! What a confined call writes into repositories makes nobody outside run a program: neither Writ, which asks git, nor the user's own git.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::process::Command;
use std::time::Duration;

use lab::Lab;
use serde_json::json;

fn git(lab: &Lab, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.invalid"]).args(arguments);
    let done = git.current_dir(lab.repository()).env("HOME", &lab.place.folder).output().unwrap();
    assert!(done.status.success(), "{arguments:?} {}", String::from_utf8_lossy(&done.stderr));
}

fn lab(name: &str) -> Lab {
    let policy = json!({"version": "1.0", "name": "git", "enforce": "calls", "claims": {"agents": ["main", "all"]}});
    let lab = Lab::new(name, &policy, &[]);
    if !lab.repository().join(".git").exists() {
        git(&lab, &["init", "-q"]);
    }
    fs::write(lab.repository().join("file"), "text\n").unwrap();
    git(&lab, &["add", "-A"]);
    git(&lab, &["commit", "-q", "-m", "one"]);
    lab
}

/// A line that lays out settings by which git runs a program, in `folder`.
fn settings(lab: &Lab, folder: &str) -> String {
    let ran = lab.place.folder.join("ran");
    format!(
        "mkdir -p {folder}; printf '[core]\\n\\trepositoryformatversion = 0\\n[filter \"x\"]\\n\\tclean = touch {0}; cat\\n' > {folder}/config; \
         echo '* filter=x' > .gitattributes; echo more >> file",
        ran.display()
    )
}

#[test]
fn git_obeys_no_folder_that_a_call_names() {
    let lab = lab("confined-common");
    let ran = lab.place.folder.join("ran");
    let line = |rest: &str| {
        let settings = settings(&lab, ".evil");
        format!("{settings}; cp -r .git/refs .git/objects .evil/; g=$(echo tig. | rev); {rest}")
    };
    let lines = [
        "echo ../.evil > $g/commondir",
        "rm -f $g/commondir; mv .evil/config $g/commondir",
        "ln -sf ../.evil $g/commondir",
    ];
    for rest in lines {
        let (code, said) = lab.run(&line(rest));
        assert_ne!(code, Some(0), "{rest}: {said}");
        // Its name is given back by the keeper, in its own time.
        let gone = || !lab.repository().join(".git/commondir").exists();
        assert!((0..400).any(|_| gone() || sleep(5)), "{rest}");
    }
    // Git works where the name is kept, inside and beside it.
    let (id, mut shell) = lab.shell("cat .git/commondir; git status --short && echo fine; sleep 2");
    let held = std::thread::scope(|scope| {
        let call = scope.spawn(|| shell.output().unwrap());
        std::thread::sleep(Duration::from_millis(900));
        git(&lab, &["status"]);
        git(&lab, &["log", "-1"]);
        call.join().unwrap()
    });
    let said = String::from_utf8_lossy(&held.stdout);
    assert!(said.starts_with(".\n") && said.contains("fine"), "{id}: {said}");
    git(&lab, &["status"]);
    assert!(!ran.exists(), "the user's git ran what the call named");
    // The control: with that file it does.
    let line = settings(&lab, ".evil");
    Command::new("bash").args(["-c", &line]).current_dir(lab.repository()).output().unwrap();
    fs::write(lab.repository().join(".git/commondir"), "../.evil\n").unwrap();
    let _either = Command::new("git").args(["add", "file"]).current_dir(lab.repository()).output().unwrap();
    assert!(ran.exists(), "the settings would have been obeyed");
}

fn sleep(milliseconds: u64) -> bool {
    std::thread::sleep(Duration::from_millis(milliseconds));
    false
}

/// A repository that a call makes itself is a plain one when the call has ended.
#[test]
fn a_repository_that_a_call_made_runs_nothing() {
    let lab = lab("confined-made");
    let ran = lab.place.folder.join("ran");
    let hook = format!("'#!/bin/sh\\ntouch {}\\n'", ran.display());
    let made = "mkdir -p n; cd n; git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one";
    let monitor = format!("git config core.fsmonitor 'touch {}; true'", ran.display());
    // Spelled so that reading the line tells nothing of git's folder.
    let git_folder = "g=$(echo tig. | rev)";
    let lines = [
        format!("{made}; {monitor}"),
        format!(
            "{made}; {git_folder}; printf '[core]\\n fsmonitor = touch {}; true\\n' > x; cat $g/config >> x; mv x $g/config",
            ran.display()
        ),
        format!(
            "{made}; {git_folder}; for h in post-index-change post-checkout pre-commit reference-transaction; do printf {hook} > $g/hooks/$h; chmod +x $g/hooks/$h; done"
        ),
        format!("{made}; {monitor}; cd ..; mv n m; mkdir n; cd n; git init -q .; cd ..; mv n k; mv m n"),
        format!("{made}; {monitor}; {git_folder}; mv $g ../elsewhere; echo gitdir: ../elsewhere > $g"),
        format!("{made}; {monitor}; {git_folder}; mv $g ../elsewhere; ln -s ../elsewhere $g"),
        format!(
            "{made}; {git_folder}; cp -r $g ../other; git config -f ../other/config core.fsmonitor 'touch {}; true'; echo ../../other > $g/commondir",
            ran.display()
        ),
        format!(
            "{made}; {git_folder}; mkdir ../other; cp -r $g/objects $g/refs ../other/; git config -f ../other/config core.fsmonitor 'touch {}; true'; echo ../../other > $g/commondir",
            ran.display()
        ),
        format!("{made}; {monitor}; {git_folder}; touch $g/config.set-aside $g/config.set-aside-1"),
    ];
    // What a script does no reading tells.
    let by_script = |line: &str| {
        fs::write(lab.repository().join("script"), line).unwrap();
        lab.run("bash script")
    };
    for line in &lines {
        let (_, said) = by_script(line);
        git(&lab, &["status"]);
        for arguments in [["status", "--short"], ["checkout", "-q"], ["diff", "--stat"]] {
            let git = Command::new("git").args(arguments).current_dir(lab.repository().join("n")).output().unwrap();
            assert!(!String::from_utf8_lossy(&git.stderr).contains("not a git repository"), "{line}: {said}");
        }
        assert!(!ran.exists(), "{line}: {said}");
        assert!(said.contains("writ: moved `") && said.contains(".set-aside"), "{line}: {said}");
        let row = lab.rows("confined").pop().unwrap();
        assert!(!row["takenBack"].as_array().unwrap().is_empty(), "{row}");
        for left in ["n", "k", "elsewhere", "other"] {
            let _gone = fs::remove_dir_all(lab.repository().join(left));
        }
    }
    // The control.
    let script = format!("{made}; {monitor}; git status");
    Command::new("bash").args(["-c", &script]).current_dir(lab.repository()).output().unwrap();
    assert!(ran.exists(), "the settings would have been obeyed");
    // What git makes by itself stays.
    let _gone = fs::remove_dir_all(lab.repository().join("n"));
    let line =
        format!("{made}; git config user.name b; git clone -q . ../copy; cd ..; git worktree add -q tree 2>&1; true");
    let (code, said) = by_script(&line);
    assert!(code == Some(0) && !said.contains("writ:"), "{said}");
}

/// What a call could not write is not touched, wherever it says that it lies; nor what a repository without a work tree had before.
#[test]
fn repositories_of_others_stay_as_they_are() {
    let lab = lab("confined-others");
    let outside = lab.place.folder.join("outside");
    fs::create_dir_all(&outside).unwrap();
    git(&lab, &["init", "-q", outside.to_str().unwrap()]);
    git(&lab, &["init", "-q", "--bare", "store.git"]);
    let hooks = [outside.join(".git/hooks/pre-commit"), lab.repository().join("store.git/hooks/post-receive")];
    let settings = [outside.join(".git/config"), lab.repository().join("store.git/config")];
    hooks.iter().for_each(|hook| fs::write(hook, "#!/bin/sh\n").unwrap());
    settings.iter().for_each(|file| fs::write(file, "[core]\n\tbare = false\n[alias]\n\tx = !true\n").unwrap());
    let script = format!(
        "g=$(echo tig. | rev); mkdir a b; echo gitdir: {0}/.git > a/$g; ln -s {0}/.git b/$g; git --git-dir=store.git config a.b c; \
         echo evil > store.git/hooks/update; git push -q store.git HEAD:refs/heads/one; true",
        outside.display()
    );
    fs::write(lab.repository().join("script"), script).unwrap();
    let (_, said) = lab.run("bash script");
    assert!(!said.contains("writ: moved"), "{said}");
    assert!(hooks.iter().chain(&settings).all(|path| path.exists()), "{said}");
    assert!(!lab.repository().join("store.git/hooks/update").exists(), "{said}");
    assert!(!fs::read_to_string(&settings[1]).unwrap().contains("[a]"), "{said}");
}

/// What git keeps of a denied file that it tracks is denied with it; one that it does not track costs git nothing.
#[test]
fn git_shows_nothing_of_a_denied_file() {
    let policy = json!({"version": "1.0", "name": "git", "enforce": "calls", "files": {"deny": ["secrets/**"]}});
    let lab = Lab::new("confined-tracked", &policy, &[]);
    git(&lab, &["init", "-q"]);
    fs::create_dir_all(lab.repository().join("secrets")).unwrap();
    fs::write(lab.repository().join("secrets/key"), "the-canary\n").unwrap();
    fs::write(lab.repository().join("file"), "text\n").unwrap();
    git(&lab, &["add", "file"]);
    git(&lab, &["commit", "-q", "-m", "one"]);
    fs::write(
        lab.repository().join("script"),
        "git show HEAD:secrets/key; git log -1 --format=as-%s; git cat-file --batch-all-objects --batch; \
         python3 -c 'import glob, zlib\nfor f in glob.glob(\".git/objects/??/*\"): print(zlib.decompress(open(f, \"rb\").read()))'; \
         git log -1 --format=",
    )
    .unwrap();
    let (_, said) = lab.run("bash script");
    assert!(said.contains("as-one") && !said.contains("the-canary"), "{said}");
    git(&lab, &["add", "-f", "secrets/key"]);
    git(&lab, &["commit", "-q", "-m", "two"]);
    for _ in 0..2 {
        let (_, said) = lab.run("bash script");
        assert!(!said.contains("the-canary") && !said.contains("as-two"), "{said}");
        assert!(said.contains("it tracks a file that is denied (`writ sandbox plan` names it)"), "{said}");
        git(&lab, &["gc", "-q"]);
    }
    let plan = lab.writ(&["sandbox", "plan"]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("hidden") && plan.contains("git tracks `secrets/key`"), "{plan}");
    // The control: the script finds it where nothing is denied.
    let found = Command::new("bash").arg("script").current_dir(lab.repository()).output().unwrap();
    assert!(String::from_utf8_lossy(&found.stdout).contains("the-canary"));
    git(&lab, &["rm", "-q", "--cached", "secrets/key"]);
    let (_, said) = lab.run("git log -1 --format=as-%s");
    assert!(said.contains("as-two"), "{said}");
}

#[test]
fn writ_asks_no_repository_that_a_call_made() {
    let lab = lab("confined-nested");
    let ran = lab.place.folder.join("ran");
    let line = format!(
        "git init -q nested && cd nested && echo a > file && git add file && {} && g=$(echo tig. | rev) && cat config > $g/config; true",
        settings(&lab, ".")
    );
    let (_, said) = lab.run(&line);
    // As a client says that it works there now.
    let nested = lab.repository().join("nested");
    fs::write(nested.join("file"), "other\n").unwrap();
    for (event, more) in [
        ("UserPromptSubmit", r#","prompt":"go on""#),
        ("Stop", r#","last_assistant_message":"Done: nested/file is written.","stop_hook_active":false"#),
    ] {
        let payload = lab.place.payload(event, more);
        let cwd = lab.repository().to_string_lossy().into_owned();
        lab.place.answer(&payload.replace(&format!("\"cwd\":\"{cwd}\""), &format!("\"cwd\":\"{}\"", nested.display())));
    }
    assert!(!ran.exists(), "{said}");
}

/// What a repository's settings name is kept as they are.
#[test]
fn what_settings_name_is_kept() {
    let lab = lab("confined-named");
    fs::create_dir_all(lab.repository().join(".husky")).unwrap();
    fs::write(lab.repository().join(".husky/pre-commit"), "#!/bin/sh\n").unwrap();
    fs::write(lab.repository().join("more.cfg"), "[user]\n").unwrap();
    git(&lab, &["config", "core.hooksPath", ".husky"]);
    git(&lab, &["config", "include.path", "../more.cfg"]);
    git(&lab, &["worktree", "add", "-q", "../linked"]);
    let (_, said) = lab.run(
        "g=$(echo tig. | rev); echo evil >> .husky/pre-commit; echo evil > .husky/post-merge; echo evil >> more.cfg; \
         for f in $g/worktrees/*/commondir; do echo evil > $f; done; echo fine > other; cat other",
    );
    assert!(said.contains("fine") && said.contains("Read-only file system"), "{said}");
    let evil = |path: &str| fs::read_to_string(lab.repository().join(path)).unwrap_or_default().contains("evil");
    for path in [".husky/pre-commit", ".husky/post-merge", "more.cfg", ".git/worktrees/linked/commondir"] {
        assert!(!evil(path), "{path}: {said}");
    }
}
