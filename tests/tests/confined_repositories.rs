//! Repositories that calls make are theirs to change, move and remove; what git would obey in them is gone when a call has ended, however
//! it was written. Those that were there before stay as they are.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::Path;
use std::process::Command;

use lab::Lab;
use serde_json::{Value, json};

const WHO: [bool; 2] = [false, true];

fn policy() -> Value {
    json!({"version": "1.0", "name": "repositories", "enforce": "calls"})
}

/// Git as whoever works there; its words.
fn git(lab: &Lab, folder: &Path, arguments: &[&str]) -> String {
    let mut git = lab.place.program(Path::new("/usr/bin/git"));
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.invalid"]).args(arguments);
    let done = git.current_dir(folder).env("HOME", &lab.place.folder).output().unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

/// A repository with a commit, one beside it that holds the same, and one in it.
fn lab(name: &str, user: bool) -> Lab {
    Lab::of(name, &policy(), user, |lab| {
        let folder = lab.repository();
        fs::write(folder.join("file"), "text\n").unwrap();
        fs::write(folder.join(".gitignore"), "*/\n").unwrap();
        git(lab, &folder, &["add", "-A"]);
        git(lab, &folder, &["commit", "-q", "-m", "one"]);
        git(lab, &folder, &["clone", "-q", "--bare", ".", "up.git"]);
        git(lab, &folder, &["init", "-q", "nested"]);
        fs::write(lab.place.folder.join(".gitconfig"), "[user]\n\tname = a\n\temail = a@example.invalid\n").unwrap();
    })
}

/// A line by a script, which no reading tells anything of. `EVIL` prints settings by which git runs a program.
fn script(lab: &Lab, line: &str) -> (Option<i32>, String) {
    let ran = lab.place.folder.join("ran");
    let evil = format!(
        "EVIL() {{ printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {}; false\\n'; }}",
        ran.display()
    );
    fs::write(lab.repository().join("src/script"), format!("{evil}\n{line}\n")).unwrap();
    lab.run("bash src/script")
}

#[test]
fn what_calls_made_later_calls_may_change_move_and_remove() {
    for user in WHO {
        let lab = lab("repositories-everyday", user);
        for line in [
            "git clone -q up.git clone",
            "cd clone && git remote add other ../up.git && git switch -q -c new && git push -q -u origin new && git config branch.new.description x",
            "git -C clone branch -q -m new newer && git -C clone config user.name b",
            "mv clone moved && git -C moved status",
            "rm -rf moved && [ ! -e moved ]",
            "git worktree add -q tree -b tree 2>&1",
            "echo more > tree/file && git -C tree commit -q -a -m two",
            "git worktree remove tree && [ ! -e tree ] && [ ! -e .git/worktrees/tree ]",
            "git worktree add -q tree 2>&1",
            "git worktree remove --force tree",
            "git init -q --bare store.git",
            "rm -rf store.git && [ ! -e store.git ]",
            "mkdir -p node_modules/package/.vscode node_modules/package/.idea; echo 1 > node_modules/package/.vscode/settings.json",
            "rm -rf node_modules && [ ! -e node_modules ]",
        ] {
            let (code, said) = lab.run(line);
            assert!(code == Some(0) && !said.contains("writ:"), "{user} {line}: {said}");
        }
        // What was there before stays as it is.
        for line in [
            "echo evil >> nested/.git/config",
            "git -C nested config a.b c",
            "mv nested other",
            "rm -rf nested/.git/hooks up.git/hooks; ls nested/.git/hooks up.git/hooks && false",
            "git -C up.git config a.b c",
            "git config a.b c",
        ] {
            let (code, said) = script(&lab, line);
            assert_ne!(code, Some(0), "{user} {line}: {said}");
        }
        assert!(lab.repository().join("nested/.git/hooks").is_dir());
        // Where nothing says what was there, all was.
        assert_eq!(lab.run("git init -q made").0, Some(0));
        fs::remove_file(lab.place.session().join("repositories.json")).unwrap();
        let (code, said) = lab.run("rm -rf made");
        assert_ne!(code, Some(0), "{user}: {said}");
    }
}

/// Ways of writing to a repository that leave nothing in its name for who watches, or that git reads otherwise than others do. Each is
/// armed by one call or two, and is a plain one when the last has ended.
const WAYS: [(&str, &[&str]); 19] = [
    ("descriptor", &["exec 7<.; Q=/dev/fd/7; BARE $Q/r/.git; EVIL > $Q/r/.git/config"]),
    ("folder of a process", &["cd src; Q=/proc/self/cwd/..; BARE $Q/r/.git; EVIL > $Q/r/.git/config"]),
    ("root of a process", &["Q=/proc/$$/root$PWD; BARE $Q/r/.git; EVIL > $Q/r/.git/config"]),
    (
        "behind a link",
        &[
            "mkdir -p d decoy/.git decoy/r/.git r; ln -s ../d decoy/l; Q=decoy/l/../r; BARE $Q/.git; EVIL > $Q/.git/config",
        ],
    ),
    ("link in /tmp", &["ln -s $PWD /tmp/l; BARE /tmp/l/r/.git; EVIL > /tmp/l/r/.git/config"]),
    ("link to a file", &["git init -q r; ln -s r/.git/config y; EVIL > y"]),
    (
        "process that cannot be read",
        &["EVIL > evil; python3 -c 'import ctypes, os, shutil\nctypes.CDLL(None).prctl(4, 0)\n\
           for f in (\"objects\", \"refs\"): os.makedirs(\"r/.git/\" + f)\n\
           open(\"r/.git/HEAD\", \"w\").write(\"ref: refs/heads/main\\n\")\nshutil.copy(\"evil\", \"r/.git/config\")'"],
    ),
    ("hard link", &["git init -q r; ln r/.git/config x", "EVIL > x"]),
    ("hard link the other way", &["git init -q r; cp r/.git/config x; ln -f x r/.git/config", "EVIL > x"]),
    (
        "folder renamed",
        &[
            "git init -q t; mkdir -p prep/g prep/c r; mv t/.git/objects t/.git/refs prep/c/; cp t/.git/HEAD prep/g/; \
             echo ../c > prep/g/commondir; EVIL > prep/c/config; echo gitdir: ../evil/g > r/.git",
            "mv prep evil",
        ],
    ),
    (
        "settings made afterwards",
        &["git init -q r; echo ../../c > r/.git/commondir", "BARE c; rm c/HEAD; EVIL > c/config"],
    ),
    (
        "blanks in a name",
        &[
            "git init -q r; mkdir 'x '; mv r/.git/objects r/.git/refs 'x /'; rm r/.git/config; echo '../../x ' > r/.git/commondir; EVIL > 'x /config'",
        ],
    ),
    (
        "a name that is no text",
        &[
            "git init -q r; X=$(printf 'x\\377'); mkdir $X; mv r/.git/objects r/.git/refs $X/; rm r/.git/config; echo ../../$X > r/.git/commondir; EVIL > $X/config",
        ],
    ),
    (
        "a name that is too long",
        &["git init -q r; mkdir x; mv r/.git/objects r/.git/refs x/; rm r/.git/config; \
           (printf ../../x; head -c 1100000 /dev/zero | tr '\\0' '\\n') > r/.git/commondir; EVIL > x/config"],
    ),
    (
        "blanks in a name of a repository",
        &[
            "git init -q t; mkdir r c; mv t/.git/objects t/.git/refs c/; mv t/.git 'g '; rm 'g /config'; echo ../c > 'g /commondir'; \
           printf 'gitdir: ../g \\n' > r/.git; EVIL > c/config",
        ],
    ),
    ("a closed folder", &["mkdir a; git init -q a/r; EVIL > a/r/.git/config; mv a b; ln -s b/r r; chmod 311 b"]),
    ("a folder that is closed when it ends", &["git init -q r; EVIL > r/.git/config; chmod 0 r", "chmod 755 r"]),
    ("a repository that is closed then", &["git init -q r; EVIL > r/.git/config; chmod 0 r/.git", "chmod 755 r/.git"]),
    ("inside the folder of another", &["BARE .git/x; EVIL > .git/x/config; mkdir r; echo gitdir: ../.git/x > r/.git"]),
];

#[test]
fn what_calls_arm_is_a_plain_repository_when_they_have_ended() {
    for user in WHO {
        let lab = lab("repositories-armed", user);
        let ran = lab.place.folder.join("ran");
        let bare = "BARE() { mkdir ${1%/*} $1 $1/objects $1/refs; echo 'ref: refs/heads/main' > $1/HEAD; }";
        let clean = || {
            let folder = lab.repository();
            let clean = "chmod 755 b; rm -rf r t d decoy prep evil x* 'x ' 'g ' c a b y .git/x";
            Command::new("bash").args(["-c", clean]).current_dir(&folder).output().unwrap();
            fs::remove_file(&ran).is_ok()
        };
        for (way, lines) in WAYS {
            let said: Vec<String> = lines.iter().map(|line| script(&lab, &format!("{bare}; {line}")).1).collect();
            assert!(lab.repository().join("r").exists(), "{user} {way}: {said:?}");
            git(&lab, &lab.repository().join("r"), &["status"]);
            assert!(!ran.exists(), "{user} {way}: {said:?}");
            clean();
            // The control: outside it is obeyed.
            for line in lines {
                fs::write(lab.repository().join("src/control"), format!("{bare}; {line}")).unwrap();
                let evil = fs::read_to_string(lab.repository().join("src/script")).unwrap();
                let evil = evil.lines().next().unwrap();
                let mut bash = lab.place.program(Path::new("/bin/bash"));
                bash.args(["-c", &format!("{evil}\n. src/control")]).current_dir(lab.repository()).output().unwrap();
            }
            git(&lab, &lab.repository().join("r"), &["status"]);
            assert!(clean(), "{user} {way}: the settings would not have been obeyed");
            fs::remove_file("/tmp/l").ok();
        }
    }
}

#[test]
fn what_was_left_running_has_armed_is_a_plain_repository_when_the_session_has_ended() {
    for user in WHO {
        let lab = lab("repositories-end", user);
        let (_, said) =
            script(&lab, "git init -q r; exec 8>>r/.git/config; (sleep 0.5; EVIL >&8) >/dev/null 2>&1 & echo begun");
        assert!(said.contains("begun"), "{said}");
        let armed =
            || fs::read_to_string(lab.repository().join("r/.git/config")).is_ok_and(|text| text.contains("touch"));
        assert!((0..400).any(|_| armed() || sleep(10)), "{user}: nothing was armed");
        lab.place.answer(&lab.place.payload("SessionEnd", r#","reason":"other""#));
        assert!(!armed(), "{user}");
        let row = lab.rows("taken-back").pop().unwrap();
        assert!(row["takenBack"][0].as_str().unwrap().ends_with("/r/.git/config"), "{row}");
        // What calls wrote beside their work goes too, with the folders that the kernel closed.
        let names = fs::read_dir(lab.place.session()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        assert!(!left.iter().any(|name| name.starts_with("layer-") || name == "tmp"), "{user}: {left:?}");
    }
}

fn sleep(milliseconds: u64) -> bool {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    false
}

/// What the user's own templates have git put into each repository stays; what looks like it does not.
#[test]
fn hooks_of_the_users_own_templates_stay() {
    for user in WHO {
        let lab = lab("repositories-templates", user);
        let templates = lab.place.folder.join("templates/hooks");
        fs::create_dir_all(&templates).unwrap();
        fs::write(templates.join("pre-commit"), "#!/bin/sh\nexit 0\n").unwrap();
        let config = fs::read_to_string(lab.place.folder.join(".gitconfig")).unwrap();
        let config = format!("{config}[init]\n\ttemplateDir = ~/templates\n");
        fs::write(lab.place.folder.join(".gitconfig"), config).unwrap();
        let (code, said) = lab.run("git clone -q up.git clone && ls clone/.git/hooks");
        assert!(code == Some(0) && said == "pre-commit\n", "{user}: {said}");
        let (_, said) = script(
            &lab,
            "echo 'touch x' >> clone/.git/hooks/pre-commit; cp clone/.git/hooks/pre-commit clone/.git/hooks/post-merge",
        );
        assert_eq!(said.matches("writ: moved").count(), 2, "{user}: {said}");
    }
}

/// Where a submodule's work tree lies is data as long as it is in that of the repository which holds it.
#[test]
fn a_work_tree_lies_in_the_repository_that_holds_it() {
    for user in WHO {
        let lab = lab("repositories-tree", user);
        let made = "git init -q super && cd super && mkdir -p .git/modules/x/objects .git/modules/x/refs .git/hooks && echo x > .git/modules/x/HEAD";
        for (tree, stays) in
            [("../../../x", true), ("../../../../..", false), ("../../..", false), ("../../hooks", false), ("/", false)]
        {
            let (_, said) = script(
                &lab,
                &format!(
                    "{made} && printf '[core]\\n\\tworktree = {tree}\\n' > .git/modules/x/config; cd ..; ls super/.git/modules/x"
                ),
            );
            assert_eq!(!said.contains("writ: moved"), stays, "{user} {tree}: {said}");
            fs::remove_dir_all(lab.repository().join("super")).unwrap();
        }
        let (_, said) = script(
            &lab,
            "mkdir -p modules/x/objects modules/x/refs; echo x > modules/x/HEAD; printf '[core]\\n\\tworktree = ../../../..\\n' > modules/x/config",
        );
        assert!(said.contains("writ: moved"), "{user}: {said}");
    }
}
