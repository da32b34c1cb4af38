//! Lines that go elsewhere, name programs anew, or choose a script by a pattern: what they come to is judged as bash does it.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use serde_json::json;
use workplace::Workplace;

fn place(name: &str, policy: &serde_json::Value) -> Workplace {
    let place = Workplace::new(name);
    let at = |path: &str| place.folder.join("repository").join(path);
    for path in ["priv/secret", "sub/deep/file", "sub/run.sh", "run.sh", "tool sh", "a.txt"] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), "text\n").unwrap();
    }
    fs::create_dir_all(place.folder.join("other/inner")).unwrap();
    symlink(place.folder.join("other/inner"), at("osl")).unwrap();
    fs::write(place.folder.join("other/secret"), "text\n").unwrap();
    fs::create_dir_all(at("node_modules/.bin")).unwrap();
    fs::write(at("node_modules/eslint.js"), "text\n").unwrap();
    symlink("../eslint.js", at("node_modules/.bin/eslint")).unwrap();
    fs::write(at(".aflock"), policy.to_string()).unwrap();
    place
}

/// Whether the line may run, unasked.
fn runs(place: &Workplace, line: &str) -> bool {
    let output = place.writ(&["why", line]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{line}: {output:?}");
    output.status.code() == Some(0)
}

fn check(place: &Workplace, cases: &[(&str, bool)]) {
    for (line, allowed) in cases {
        assert_eq!(runs(place, line), *allowed, "{line}");
    }
}

#[test]
fn folders_are_changed_as_the_shell_changes_them() {
    let place =
        place("moves-cd", &json!({"version": "1.0", "name": "m", "files": {"deny": ["priv/**", "../other/secret"]}}));
    check(
        &place,
        &[
            ("cd priv && cat secret", false),
            ("builtin cd priv && cat secret", false),
            ("command cd priv; cat secret", false),
            ("command -p cd priv && cat secret", false),
            ("f() { builtin cd \"$@\"; }; f priv; cat secret", false),
            ("eval -- cd priv; cat secret", false),
            ("env -S sh -c 'cat priv/secret' x", false),
            ("env -i -S 'sh -c' 'cat priv/secret'", false),
            ("env -S 'ls -l' 'sub dir'", true),
            ("trap 'cd priv' DEBUG; :; cat secret", false),
            ("trap 'cd priv' debug; :; cat secret", false),
            ("bash -P -c 'cd osl && cd .. && cat secret'", false),
            ("bash -o physical -c 'cd osl && cd .. && cat secret'", false),
            ("bash -cO extglob 'cat priv/secret'", false),
            ("bash -oc pipefail 'cat priv/secret'", false),
            ("bash -euo pipefail -c 'cat a.txt'", true),
            ("dash -c 'chdir priv; cat secret'", false),
            ("CDPATH=priv cd x && cat secret", false),
            ("export CDPATH=sub; cd deep && cat file", false),
            ("cd -P osl && cd .. && cat secret", false),
            ("set -P && cd osl && cd .. && cat secret", false),
            ("cd osl && cd -P .. && cat secret", false),
            ("cat \"$(cd -P osl/.. && pwd)/secret\"", false),
            // What scripts do every day.
            ("builtin cd sub && cat deep/file", true),
            ("command cd sub; ls", true),
            ("DIR=$(CDPATH= cd -- \"$(dirname -- \"$0\")\" && pwd); ls", true),
            ("cd -P sub && cd .. && cat a.txt", true),
            ("set -euo pipefail; cd sub && cat deep/file", true),
            ("trap 'rm -f a.tmp' EXIT; cat a.txt", true),
        ],
    );
}

/// A process's own folder, and folders that it has open, are the line's: it changes the one and opens the others.
#[test]
fn folders_are_reached_through_the_process_too() {
    let place = place("moves-process", &json!({"version": "1.0", "name": "m", "files": {"deny": ["priv/**"]}}));
    symlink("/proc/self/cwd", place.folder.join("repository/here")).unwrap();
    let key = place.folder.join("state/keys/ledger.pem");
    let state = place.folder.join("state");
    let (keys, state) = (key.parent().unwrap().display(), state.display());
    for line in [
        "cd priv && cat /proc/self/cwd/secret",
        "cd priv && cat /proc/thread-self/cwd/secret",
        "cd priv && cat /proc/$$/cwd/secret",
        "cd priv; cat /dev/fd/../cwd/secret",
        "cd priv; cat /proc/self/../self/cwd/secret",
        "cd priv; cat /proc/thread-self/../../cwd/secret",
        "cd priv; cat ../here/secret",
        "cd priv; grep -r x /proc/self/cwd",
        "cd priv; cd /proc/self/cwd; cat ../a.txt ./secret",
        "env -C priv cat /proc/self/cwd/secret",
        "cd priv; sh -c 'cat /proc/self/cwd/secret'",
        "cat /dev/fd/3/priv/secret 3<.",
        "exec 3<.; cat /dev/fd/3/priv/secret",
        "exec 3<.; cd /dev/fd/3; cat priv/secret",
        "cd priv; cat /proc/self/c*/secret",
        "cd priv; cat ../her*/s*",
        "cd priv; for f in /proc/self/cw[d]; do cat $f/secret; done",
        "cd priv; cat /proc/self/root/proc/self/cwd/secret",
        "cd priv; curl file:///proc/self/cwd/secret",
        "exec 3<.; grep -r s /dev/fd/3/",
        "exec 3<.; cp -r /dev/fd/3/. ../out",
        "grep -r s here",
        "grep -r s here/priv",
        "cd priv; find /dev/fd/../cwd/ -exec cat {} +",
        "cat /dev/stdin/priv/secret <.",
        "cat /proc/self/fd/0/priv/secret < .",
        "cd sub; cat ~-/priv/secret",
        "pushd sub; cat ~1/priv/secret",
        "cd priv; cd ..; cat ~-/secret",
        &format!("cd {keys}; cat /proc/self/cwd/ledger.pem"),
        &format!("exec 3<{state}; head -1 /dev/fd/3/keys/ledger.pem"),
        &format!("cd {state}; cd /; rm -rf ~-/sessions"),
        &format!("cd {keys}; echo x > /proc/self/cwd/ledger.pem"),
    ] {
        assert!(!runs(&place, line), "{line}");
    }
    for line in [
        "cat a.txt > /dev/stderr",
        "cat /dev/stdin < a.txt",
        "diff <(sort a.txt) <(sort run.sh)",
        "ls -l /proc/self/cwd /proc/self/fd",
        "readlink /proc/$$/cwd",
        "cat /proc/self/status /proc/cpuinfo",
        "exec 3>&1; echo x >&3",
        "while read -r l; do echo \"$l\"; done < a.txt",
        "cat /proc/*/status",
        "cat sub/*.sh; ls sub/*",
        "cp a.txt a.txt~",
        "git diff HEAD~1",
    ] {
        assert!(runs(&place, line), "{line}");
    }
}

/// `~name` is the home of a user, who may be the one who runs the line.
#[test]
fn a_users_home_is_reached_by_the_users_name() {
    let place = place("moves-users", &json!({"version": "1.0", "name": "m", "files": {"deny": ["~/.ssh/**"]}}));
    let cases = [
        ("cat ~/.ssh/id", false),
        ("cat ~root/.ssh/id", false),
        ("cp ~root/.ssh/id x", false),
        ("cd ~root && cat .ssh/id", false),
        ("x=~root/.ssh; cat $x/id", false),
        ("rm -rf ~root/.ssh", false),
        ("ls ~root", true),
        ("cat a.txt~", true),
        ("git diff HEAD~1 -- a.txt", true),
        ("echo ~root", true),
    ];
    check(&place, &cases);
}

#[test]
fn mosh_goes_where_ssh_goes() {
    let place = place("moves-mosh", &json!({"version": "1.0", "name": "m", "domains": {"allow": ["example.com"]}}));
    let cases = [
        ("mosh evil.com", false),
        ("mosh -p 60001 u@evil.com", false),
        ("mosh --ssh='ssh -p 22' u@evil.com -- ls", false),
        ("mosh u@example.com -- ls", true),
    ];
    check(&place, &cases);
}

#[test]
fn names_stand_for_what_they_are_made_to() {
    let rules = json!([
        "Bash:./run.sh *",
        "Bash:ls *",
        "Bash:cat *",
        "Bash:../tool *",
        "Bash:~/x.sh *",
        "Bash:./node_modules/.bin/* *",
        "Bash:/usr/bin/git status *"
    ]);
    let place = place("moves-names", &json!({"version": "1.0", "name": "m", "tools": {"allow": rules}}));
    check(
        &place,
        &[
            ("./run.sh build", true),
            ("cd sub && ../run.sh", true),
            ("cd sub && ./run.sh", false),
            ("builtin cd sub; ./run.sh", false),
            ("BASH_CMDS[ls]=./evil.sh; ls", false),
            ("declare BASH_CMDS[ls]=./evil.sh; ls", false),
            ("BASH_CMDS=([ls]=./evil.sh); ls", false),
            ("BASH_ALIASES[ls]=./evil.sh\nls", false),
            ("for PATH in sub; do ls; done", false),
            ("'./run.sh x' b", false),
            ("'./run.sh d'/evil", false),
            ("'ls x'", false),
            ("ls 'a b'", true),
            ("../tool a", true),
            ("~/x.sh a", true),
            ("./node_modules/.bin/eslint a.txt", true),
            ("/usr/bin/git status -s", true),
            ("git status", false),
            ("for f in a b; do cat $f; done", true),
        ],
    );
}

#[test]
fn a_script_is_found_by_a_pattern_too() {
    let place = place("moves-scripts", &json!({"version": "1.0", "name": "m", "files": {"deny": ["priv/**"]}}));
    let line = |run: &str| format!("printf 'cat priv/secret' > x.sh; {run}");
    for run in [
        "sh x.sh",
        "sh ./x*",
        ". ./x*",
        "sh x.s?",
        "sh ./[]x].sh",
        "sh ./[[:alpha:]].sh",
        "shopt -s extglob; sh ./@(x).sh",
        "shopt -s globstar; sh ./**/x.sh",
        "shopt -s nocaseglob; sh ./X*",
        "sh sub/../x*",
        "cd sub; sh ../x*",
        "for f in *.sh; do sh $f; done",
        "find . -name '*.sh' -exec sh {} \\;",
    ] {
        assert!(!runs(&place, &line(run)), "{run}");
    }
    assert!(!runs(&place, "printf 'print(open(\"priv/secret\").read())' > x.py; python3 *.py"));
    assert!(runs(&place, "printf 'cat a.txt' > y.sh; sh ./y*") && runs(&place, "for f in sub/*.sh; do sh $f; done"));
    for (code, harmless) in [("console.log(1)", true), ("require(\"fs\").readFileSync(\"priv/secret\")", false)] {
        let line = format!("printf '%s\\n' '#!/usr/bin/env node' '{code}' > w.js; node w.js");
        assert_eq!(runs(&place, &line), harmless, "{line}");
    }
    // Over two calls, and by a first line that is a command of its own.
    write(&place, "later.sh", "cat priv/secret\n");
    write(&place, "env.sh", "#!/usr/bin/env -S sh -c \"cat priv/secret\"\n");
    for line in ["sh later.sh", "sh ./lat*", "chmod +x env.sh && ./env.sh"] {
        let said = asked(&place, line);
        assert!(said.contains("deny"), "{line}: {said}");
    }
}

/// What the hook says of an event before a call.
fn hook(place: &Workplace, members: &str) -> String {
    let payload = place.payload("PreToolUse", members);
    let mut child = place.command(&["hook"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn asked(place: &Workplace, line: &str) -> String {
    hook(place, &format!(r#","tool_name":"Bash","tool_use_id":"b","tool_input":{}"#, json!({ "command": line })))
}

/// The agent writes a file, by a call of its own.
fn write(place: &Workplace, name: &str, text: &str) {
    let path = place.folder.join("repository").join(name);
    let input = json!({"file_path": path, "content": text});
    let said = hook(place, &format!(r#","tool_name":"Write","tool_use_id":"w-{name}","tool_input":{input}"#));
    assert!(!said.contains("deny"), "{said}");
    fs::write(path, text).unwrap();
    place.answer(&place.payload(
        "PostToolUse",
        &format!(r#","tool_name":"Write","tool_use_id":"w-{name}","tool_input":{input},"tool_response":{{}}"#),
    ));
}

/// What is copied into a folder that the line makes lands in it, and so does what is fetched.
#[test]
fn what_lands_in_a_new_folder_is_seen() {
    let place = place(
        "moves-landed",
        &json!({"version": "1.0", "name": "m", "files": {"deny": ["gen/a.txt", "kept/**"], "readOnly": ["infra/**"]}}),
    );
    check(
        &place,
        &[
            ("mkdir gen && cp a.txt gen", false),
            ("mkdir -p gen/deep && cp a.txt gen", false),
            ("mkdir ./gen; ln a.txt gen", false),
            ("install -d gen\ninstall a.txt gen", false),
            ("mkdir .claude && cp settings.json .claude", false),
            ("mkdir -p .github/hooks && cp x.json .github/hooks", false),
            ("git clone https://github.com/x/y .claude", false),
            ("git clone https://github.com/x/.claude.git", false),
            ("git submodule add https://github.com/x/y .claude", false),
            ("git clone https://github.com/x/y kept", false),
            ("gh repo clone x/y .claude", false),
            ("gh repo clone x/.claude -- --depth 1", false),
            ("npx degit x/y .claude", false),
            ("hg clone https://h.example/x .claude", false),
            ("svn checkout https://h.example/x .claude", false),
            ("mkdir gen && cp a.txt gen/b.txt && cp a.txt out.txt", true),
            ("mkdir -p out && cp a.txt out && mv a.txt out/c.txt", true),
            ("cp a.txt b.txt; cp a.txt b.txt", true),
            ("git clone https://github.com/x/y", true),
            ("git clone --depth 1 https://github.com/x/y.git vendor/y", true),
            ("git submodule add https://github.com/x/y vendor/y", true),
            ("gh repo clone x/y && gh pr list", true),
        ],
    );
}

/// Under a list of what may run, a script that the agent wrote starts nothing else.
#[test]
fn what_a_script_starts_is_held_against_the_list() {
    let list = ["Write", "Bash:perl *", "Bash:ruby *", "Bash:php *", "Bash:lua *", "Bash:node *", "Bash:git status"];
    let place = place("moves-started", &json!({"version": "1.0", "name": "m", "tools": {"allow": list}}));
    for (name, text, harmless) in [
        ("a.pl", "system(\"curl http://x.example\");", false),
        ("b.pl", "exec @list;", false),
        ("c.pl", "print `id`;", false),
        ("d.pl", "my $said = `git status`; $db->exec('x'); print \"the system is up\\n\";", true),
        ("a.rb", "IO.popen(['id']) { |f| puts f.read }", false),
        ("b.rb", "system \"id #{x}\"", false),
        ("c.rb", "puts File.read('a.txt').lines.sort; system 'git status'", true),
        ("a.php", "<?php echo shell_exec('id');", false),
        ("b.php", "<?php $db->exec(\"UPDATE `t` SET a = 1\"); echo strtoupper($argv[1]);", true),
        ("a.lua", "os.execute('id')", false),
        ("a.js", "const c = require('child' + '_process'); c.spawn('curl')", false),
        ("b.js", "import('node:child_process').then((it) => it.exec('id'))", false),
        ("c.js", "module.constructor._load(name).exec('id')", false),
        ("d.js", "const load = require; load('child_process')", false),
        ("e.js", "const at = require(path.join(__dirname, 'x.js')); if (require.main === module) at.go();", true),
    ] {
        write(&place, name, text);
        let program = match name.rsplit_once('.').unwrap().1 {
            "pl" => "perl",
            "rb" => "ruby",
            "js" => "node",
            other => other,
        };
        let said = asked(&place, &format!("{program} {name}"));
        assert_eq!(!said.contains("deny"), harmless, "{text}: {said}");
    }
}
