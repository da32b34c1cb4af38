//! What the file system adds to a decision: symlinks, trees, shell globs; and what no policy can permit (R19).

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;

use writ_core::json::{self, Limits, Object, Value};
use writ_core::{Decision, Timestamp, ToolCall};
use writ_policy::{Entry, Layer, Policy, Protected, Resolved, Setting, Tally, World, decide, enforce, judge, survey};

const ROOT: &str = "/w";

/// A small disk: files by path, links by path and target.
struct Made {
    files: Vec<&'static str>,
    links: BTreeMap<&'static str, &'static str>,
}

impl Made {
    fn is_dir(&self, path: &str) -> bool {
        self.files
            .iter()
            .chain(self.links.keys())
            .any(|file| file.strip_prefix(path).is_some_and(|r| r.starts_with('/')))
    }
}

impl World for Made {
    fn resolve(&self, path: &str) -> Resolved {
        let mut todo: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        while let Some(name) = todo.pop() {
            match name.as_str() {
                "" | "." => {}
                ".." => drop(done.pop()),
                _ => {
                    done.push(name);
                    let here = format!("/{}", done.join("/"));
                    if let Some(target) = self.links.get(here.as_str()) {
                        done.pop();
                        if target.starts_with('/') {
                            done.clear();
                        }
                        todo.extend(target.split('/').rev().map(str::to_owned));
                    }
                }
            }
        }
        let path = format!("/{}", done.join("/"));
        Resolved { is_dir: self.is_dir(&path), path }
    }

    fn list(&self, dir: &str) -> Option<Vec<Entry>> {
        let base = format!("{}/", self.resolve(dir).path.trim_end_matches('/'));
        let mut names: Vec<String> = self
            .files
            .iter()
            .chain(self.links.keys())
            .filter_map(|file| file.strip_prefix(base.as_str())?.split('/').next().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        let entry = |name: String| {
            let path = format!("{base}{name}");
            Entry { is_dir: self.is_dir(&path), is_link: self.links.contains_key(path.as_str()), name }
        };
        Some(names.into_iter().map(entry).collect())
    }
}

fn disk() -> Made {
    Made {
        files: vec![
            "/w/src/a.rs",
            "/w/src/b.txt",
            "/w/src/deep/x/.env",
            "/w/docs/guide.md",
            "/w/docs/.hidden",
            "/w/lib/one.c",
            "/w/lib/two.c",
            "/w/notes.md",
            "/w/prod.pem",
            "/etc/passwd",
            "/outside/plain",
            "/w/vendor/lock.json",
        ],
        links: BTreeMap::from([
            ("/w/src/out", "/outside"),
            ("/w/src/pw", "/etc/passwd"),
            ("/w/docs/key", "../prod.pem"),
            ("/w/linked", "src/deep"),
        ]),
    }
}

fn call(tool: &str, input: &str) -> ToolCall {
    let input = json::parse_with(input.as_bytes(), Limits::FOREIGN).unwrap();
    ToolCall::new(tool, input, ROOT)
}

fn bash(line: &str) -> ToolCall {
    let mut input = Object::new();
    input.push("command", Value::from(line));
    ToolCall::new("Bash", Value::from(input), ROOT)
}

fn setting() -> Setting {
    let protected = |path: &str, what: &str, secret| Protected { path: path.to_owned(), what: what.to_owned(), secret };
    Setting {
        now: Timestamp::from_millis(0),
        home: Some("/h".to_owned()),
        protected: vec![
            protected("/w/.aflock", "the policy", false),
            protected("/h/.writ/keys", "Writ's keys", true),
            protected("/h/.writ", "Writ's state", false),
            protected("/w/.claude/settings.json", "the client's settings", false),
        ],
    }
}

/// Decides live, and again from the record, which must agree.
fn decided(policy: &str, call: &ToolCall) -> Decision {
    let policy = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    let (setting, world) = (setting(), disk());
    let facts = survey(&policy, call, &setting, &world);
    let live = judge(&[Layer::own(&policy, &facts)], &setting, Tally::default());
    let recorded = json::to_canonical(&facts);
    let again =
        judge(&[Layer::own(&policy, &json::from_slice(recorded.as_bytes()).unwrap())], &setting, Tally::default());
    assert_eq!(live.verdict, again.verdict, "{call:?}");
    assert_eq!(live, decide(&policy, call, &setting, &world));
    live
}

fn check(policy: &str, cases: &[(ToolCall, &str)]) {
    for (call, expected) in cases {
        let decision = decided(policy, call);
        assert_eq!(decision.verdict.as_str(), *expected, "{}: {:#?}", json::compact(&call.input), decision.reasons);
    }
}

const FILES: &str = r#"{"version":"1.0","name":"x","files":{"allow":["src/**","docs/**"],"deny":["**/.env","*.pem"],"readOnly":["docs/guide.md"]}}"#;

#[test]
fn symlinks_count_where_they_lead() {
    let read = |path: &str| call("Read", &format!("{{\"file_path\":\"{path}\"}}"));
    let write = |path: &str| call("Write", &format!("{{\"file_path\":\"{path}\"}}"));
    check(
        FILES,
        &[
            (read("src/a.rs"), "allow"),
            (read("src/pw"), "deny"),
            (read("src/out/plain"), "deny"),
            (write("src/out/new"), "deny"),
            (write("src/new"), "allow"),
            (read("docs/key"), "deny"),
            (read("src/out/../passwd"), "deny"),
            (read("linked/../a.rs"), "allow"),
            (read("linked/x/.env"), "deny"),
            (bash("cat src/pw"), "deny"),
            (bash("cat src/a.rs"), "allow"),
            (bash("cd linked && cat ../a.rs"), "allow"),
            (bash("echo x > docs/key"), "deny"),
        ],
    );
}

#[test]
fn a_bare_word_that_is_a_link_is_a_path() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["src/deep/**","*.pem"]}}"#;
    let tool = |input: &str| call("mcp__f__get", input);
    check(
        policy,
        &[
            (tool(r#"{"name":"linked"}"#), "deny"),
            (tool(r#"{"x":["linked"]}"#), "deny"),
            (tool(r#"{"name":"absent"}"#), "allow"),
            (tool(r#"{"name":"docs"}"#), "allow"),
        ],
    );
}

#[test]
fn credentials_below_a_tree_are_held_where_they_are_not_granted() {
    let policy = r#"{"version":"1.0","name":"x","grants":{"secrets":{"allow":["env:CI"]}}}"#;
    check(
        policy,
        &[
            (bash("cp -r src copy"), "deny"),
            (bash("tar cf - src"), "deny"),
            (bash("grep -r x src"), "deny"),
            (bash("grep -r x lib"), "allow"),
            (bash("cp -r lib copy"), "allow"),
            (bash("ls -R src"), "allow"),
            (call("Grep", r#"{"pattern":"x","path":"src"}"#), "deny"),
            (call("Grep", r#"{"pattern":"x","path":"lib"}"#), "allow"),
        ],
    );
}

#[test]
fn trees_are_searched() {
    let grep = |input: &str| call("Grep", input);
    check(
        FILES,
        &[
            (grep(r#"{"pattern":"x","path":"src"}"#), "deny"),
            (grep(r#"{"pattern":"x","path":"src","glob":"*.rs"}"#), "allow"),
            (grep(r#"{"pattern":"x","path":"src","glob":"!.env"}"#), "allow"),
            (grep(r#"{"pattern":"x","path":"src","glob":".e*"}"#), "deny"),
            (grep(r#"{"pattern":"x","path":"docs"}"#), "allow"),
            (bash("grep -r x src"), "deny"),
            (bash("grep x src/a.rs"), "allow"),
            (bash("rm -r docs"), "deny"),
            (bash("ls -R src"), "allow"),
        ],
    );
}

/// A program that goes through a tree may follow the symlinks in it.
#[test]
fn symlinks_in_a_tree_ask() {
    let policy = |deny: &str| format!(r#"{{"version":"1.0","name":"x","files":{{"deny":["{deny}"]}}}}"#);
    for (deny, expected) in
        [("*.pem", "ask"), ("/w/prod.pem", "ask"), ("/etc/**", "allow"), ("**/.env", "allow"), ("/w/src/**", "allow")]
    {
        for line in ["cp -rL docs copy", "tar chf x.tar docs", "zip -r x.zip docs", "rsync -aL docs/ host:x"] {
            check(&policy(deny), &[(bash(line), expected)]);
        }
    }
    for deny in ["/outside/pl*", "/outside/**", "plain", "/outside"] {
        check(&policy(deny), &[(bash("cp -rL src copy"), "ask")]);
    }
    check(&policy("*.pem"), &[(bash("rm -r docs"), "allow"), (bash("ls -R docs"), "allow")]);
    // Of some it is known whether they do.
    for line in ["grep -rn x docs", "rg x docs", "ag x docs", "find docs -type f -exec cat {} +"] {
        check(&policy("*.pem"), &[(bash(line), "allow")]);
    }
    for line in [
        "grep -R x docs",
        "grep --deref x docs",
        "grep $o -r x docs",
        "rg -L x docs",
        "rg --follow x docs",
        "ag -f x docs",
        "find -L docs -type f -exec cat {} +",
        "find docs -follow -type f -exec cat {} +",
        "find docs -exec cat {} +",
        "find docs -type l -exec cat {} +",
    ] {
        check(&policy("*.pem"), &[(bash(line), "deny")]);
    }
}

#[test]
fn shell_globs_are_what_they_expand_to() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["*.pem","**/.env","docs/.hidden","two.c"]}}"#;
    check(
        policy,
        &[
            (bash("cat *.md"), "allow"),
            (bash("cat *"), "deny"),
            (bash("cat lib/*.c"), "deny"),
            (bash("cat lib/o*.c"), "allow"),
            (bash("cat docs/*"), "deny"),
            (bash("cat docs/g*"), "allow"),
            (bash("cat docs/.h*"), "deny"),
            (bash("cat pr?d.pem"), "deny"),
            (bash("cat src/*/x/.e*"), "deny"),
            (bash("cat src/*.rs"), "allow"),
            (bash("ls *.pem"), "deny"),
        ],
    );
}

#[test]
fn what_lands_in_a_folder_is_written_there() {
    let policy = r#"{"version":"1.0","name":"x","files":{"readOnly":["*.md"],"deny":["docs/.hidden"]}}"#;
    check(
        policy,
        &[
            (bash("cp /tmp/guide.md docs"), "deny"),
            (bash("cp /tmp/guide.txt docs"), "allow"),
            (bash("cp /tmp/.hidden docs"), "deny"),
            (bash("cp src/a.rs newdocs"), "allow"),
            (bash("cp docs/* /tmp/out/"), "deny"),
            (bash("mv lib/* src"), "allow"),
            (bash("cp notes.m* lib"), "deny"),
            (bash("cp lib/o* docs"), "allow"),
            (bash("git checkout notes.md"), "deny"),
            (bash("git checkout main"), "allow"),
            (bash("git diff lib"), "allow"),
            (bash("tar xf a.tar -C lib"), "allow"),
            (bash("tar xf a.tar -C docs"), "ask"),
        ],
    );
}

#[test]
fn what_protects_itself_is_not_overwritten() {
    let policy = r#"{"version":"1.0","name":"x"}"#;
    let write = |path: &str| call("Write", &format!("{{\"file_path\":\"{path}\"}}"));
    check(
        policy,
        &[
            (write("src/.aflock"), "deny"),
            (write("src/.aflock.txt"), "allow"),
            (write("/elsewhere/.aflock"), "allow"),
            (bash("cp /tmp/.aflock ."), "deny"),
            (bash("cp /tmp/x ."), "allow"),
            (bash("cp /tmp/settings.json .claude/"), "deny"),
            (bash("cp -r /tmp/.claude ."), "deny"),
            (bash("curl -O http://h/.aflock"), "deny"),
            (bash("curl -O http://h/x"), "allow"),
            (bash("ln -s /tmp/.aflock ."), "deny"),
            (bash("git checkout main .aflock"), "deny"),
            (bash("git log --output=.aflock"), "deny"),
            (bash("tar xf a.tar"), "ask"),
            (bash("tar xf a.tar -C src"), "allow"),
            (bash("tar xf a.tar -C /h/.writ"), "deny"),
        ],
    );
}

/// What a tool's input holds is guarded too, by whatever name and in whatever spelling; what only mentions it asks.
#[test]
fn inputs_of_unknown_tools_do_not_reach_what_protects_itself() {
    let policy = r#"{"version":"1.0","name":"x"}"#;
    let mcp = |input: &str| call("mcp__fs__x", input);
    check(
        policy,
        &[
            (mcp(r#"{"path":"/w/.claude/settings.json"}"#), "deny"),
            (mcp(r#"{"path":"/w/a\nb/../.claude/settings.json"}"#), "deny"),
            (mcp(r#"{"files":{"/w/.claude/settings.json":"{}"}}"#), "deny"),
            (mcp(r#"{"command":"cat /h/.writ/keys/ledger.pem"}"#), "deny"),
            (mcp(r#"{"uri":"FILE:///w/.aflock"}"#), "deny"),
            (mcp(r#"{"args":["--to=/w/.aflock"]}"#), "deny"),
            (mcp(r#"{"args":["--from /w/.claude/settings.json --force"]}"#), "ask"),
            (mcp(r#"{"body":"the policy is in /w/.aflock"}"#), "ask"),
            (mcp(r#"{"body":"the policy is in .aflock"}"#), "allow"),
            (mcp(r#"{"path":"/w/.claude/other.json"}"#), "allow"),
            (call("mcp__fs__read_file", r#"{"path":"/w/.aflock"}"#), "allow"),
            (call("Monitor", r#"{"command":"rm .aflock"}"#), "deny"),
            (call("Monitor", r#"{"command":"rm notes.md"}"#), "allow"),
        ],
    );
}

/// Below the root is everything.
#[test]
fn what_lies_below_the_root_is_found() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["lib/**"]}}"#;
    check(
        policy,
        &[
            (bash("cat /**/lib/one.c"), "deny"),
            (bash("grep -r x /"), "deny"),
            (call("mcp__fs__x", r#"{"path":"/**/one.c"}"#), "ask"),
            (bash("cat /**/a.rs"), "allow"),
        ],
    );
}

/// However many patterns there are, and however they are made, looking at them comes to an end; what was not looked at is not let through.
#[test]
fn patterns_have_limits() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["lib/**"]}}"#;
    let deep = "{a}".repeat(100_000);
    let wide = format!("{{{}}}", (0..500).map(|at| format!("x{at}")).collect::<Vec<_>>().join(","));
    check(
        policy,
        &[
            (call("mcp__fs__x", &format!(r#"{{"path":"{deep}"}}"#)), "ask"),
            (call("mcp__fs__x", &format!(r#"{{"path":"{wide}"}}"#)), "ask"),
            (call("mcp__fs__x", &format!(r#"{{"content":"{deep}"}}"#)), "allow"),
            (call("Grep", &format!(r#"{{"pattern":"x","glob":"{deep}"}}"#)), "deny"),
            (call("Glob", &format!(r#"{{"pattern":"{deep}"}}"#)), "deny"),
        ],
    );
}

/// What a pattern stands for on disk asks where it is denied; each of its alternatives is a path; C ends one at a NUL.
#[test]
fn patterns_in_inputs_ask_for_what_they_stand_for() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["lib/**","prod.pem"]}}"#;
    let mcp = |input: &str| call("mcp__fs__x", input);
    check(
        policy,
        &[
            (mcp(r#"{"path":"l?b/one.c"}"#), "ask"),
            (mcp(r#"{"files":["/w/[l]ib/*.c"]}"#), "ask"),
            (mcp(r#"{"path":"**/one.c"}"#), "ask"),
            (mcp(r#"{"glob":"*.pem"}"#), "ask"),
            (mcp(r#"{"path":"/w/{lib/one.c,x}"}"#), "deny"),
            (mcp(r#"{"path":"lib/one.c\u0000.md"}"#), "deny"),
            (mcp(r#"{"path":"lib"}"#), "deny"),
            (mcp(r#"{"q":"lib"}"#), "deny"),
            (mcp(r#"{"q":"src"}"#), "allow"),
            (mcp(r#"{"path":"l?b/none.c"}"#), "allow"),
            (mcp(r#"{"pattern":"**/*.c"}"#), "allow"),
            (mcp(r#"{"excludePatterns":["*.pem"]}"#), "allow"),
            (mcp(r#"{"path":"src/*.rs"}"#), "allow"),
            (mcp(r#"{"path":"$PWD/lib/one.c"}"#), "deny"),
            (mcp(r#"{"path":"${PWD}/lib/one.c"}"#), "deny"),
            (mcp(r#"{"path":"$HOME/../w/lib/one.c"}"#), "deny"),
            (mcp(r#"{"path":"$PWDX/lib/one.c"}"#), "ask"),
            (mcp(r#"{"path":"$PWD/src/a.rs"}"#), "allow"),
            (mcp(r#"{"pattern":"^prod.*$"}"#), "allow"),
            (mcp(r#"{"path":"{src,docs}/a.rs"}"#), "allow"),
        ],
    );
}

/// A path that exists is this machine's: `allow` is asked about it.
#[test]
fn paths_in_inputs_are_held_against_allow_where_they_are_there() {
    let policy = r#"{"version":"1.0","name":"x","files":{"allow":["src/**"]}}"#;
    let mcp = |path: &str| call("mcp__fs__read_file", &format!("{{\"path\":\"{path}\"}}"));
    check(
        policy,
        &[
            (mcp("src/a.rs"), "allow"),
            (mcp("notes.md"), "deny"),
            (mcp("docs/none.md"), "allow"),
            (mcp("/w"), "allow"),
            (mcp("/etc/passwd"), "deny"),
        ],
    );
}

#[test]
fn a_wide_glob_leaves_a_small_record() {
    let policy = Policy::parse(FILES.as_bytes(), ROOT).unwrap();
    struct Wide;
    impl World for Wide {
        fn resolve(&self, path: &str) -> Resolved {
            Resolved { path: path.to_owned(), is_dir: false }
        }
        fn list(&self, _dir: &str) -> Option<Vec<Entry>> {
            let entry = |n| Entry { name: format!("file{n}.rs"), is_dir: false, is_link: false };
            Some((0..5000).map(entry).collect())
        }
    }
    let many: String = (0..3000).map(|n| format!(" src/f{n}")).collect();
    for (line, verdict) in [
        ("cat src/*", "allow"),
        ("rm lib/*", "deny"),
        ("cat src/*/*", "ask"),
        (&format!("cat{many}"), "allow"),
        (&format!("cat{many} src/.env"), "deny"),
    ] {
        let facts = survey(&policy, &bash(line), &setting(), &Wide);
        assert!(json::to_compact(&facts).len() < 16_000, "{line}");
        assert_eq!(judge(&[Layer::own(&policy, &facts)], &setting(), Tally::default()).verdict.as_str(), verdict);
    }
}

#[test]
fn nothing_permits_what_binds_the_agent() {
    let open = r#"{"version":"1.0","name":"x","tools":{"allow":["*"]}}"#;
    let write = |path: &str| call("Write", &format!("{{\"file_path\":\"{path}\"}}"));
    let read = |path: &str| call("Read", &format!("{{\"file_path\":\"{path}\"}}"));
    check(
        open,
        &[
            (write(".aflock"), "deny"),
            (write("./src/../.aflock"), "deny"),
            (write("/h/.writ/sessions/x"), "deny"),
            (write("~/.writ/keys/k"), "deny"),
            (write(".claude/settings.json"), "deny"),
            (read(".aflock"), "allow"),
            (read("/h/.writ/sessions/x"), "allow"),
            (read("/h/.writ/keys/k"), "deny"),
            (write("src/a.rs"), "allow"),
            (write(".aflock2"), "allow"),
            (bash("rm -rf ."), "deny"),
            (bash("rm -rf .claude"), "deny"),
            (bash("mv .claude x"), "deny"),
            (bash("sed -i s/a/b/ .aflock"), "deny"),
            (bash("echo {} > .aflock"), "deny"),
            (bash("cp /tmp/x .aflock"), "deny"),
            (bash("cat ~/.writ/keys/k"), "deny"),
            (bash("tar czf /tmp/x ~/.writ"), "deny"),
            (bash("rm .afl*"), "deny"),
            (bash("cat .aflock"), "allow"),
            (bash("rm -rf src"), "allow"),
            (bash("writ approve x"), "deny"),
            (bash("echo '{}' | writ hook"), "deny"),
            (bash("writ status"), "allow"),
            (bash("pkill writ"), "deny"),
        ],
    );
}

/// Processes are ended by what finds them, too.
#[test]
fn what_finds_writs_processes_ends_none() {
    let open = r#"{"version":"1.0","name":"x","tools":{"allow":["*"]}}"#;
    let cases = |lines: &[&str], verdict| lines.iter().for_each(|line| check(open, &[(bash(line), verdict)]));
    cases(
        &[
            "kill $(pgrep writ)",
            "kill -9 `pidof writ`",
            "kill $(pgrep -f 'writ notary')",
            "kill $(ps aux | grep '[w]rit' | awk '{print $2}')",
            "pgrep writ | xargs kill",
            "ps aux | grep notary | awk '{print $2}' | xargs kill -9",
            "P=$(pgrep writ); kill $P",
            "for p in $(pgrep wri.); do kill $p; done",
            "kill $(cat ~/.writ/notary.pid)",
            "kill $(systemctl show -p MainPID --value writ-notary)",
            "pkill wri",
            "pkill -9 'wr.t'",
            "pkill -f 'notary r'",
            "pkill -x writ",
            "killall -r '^wri'",
            "fuser -k ~/.writ/notary.sock",
            "pkill -f writ",
            "killall -9 writ",
            "pkill -f 'notary run'",
            "pkill -f '/usr/local/bin/writ'",
            "pkill 'writ?x?'",
            "pkill '(w|x)rit'",
            "pkill -i WRIT",
            "pkill --ignore-case WRIT",
            "killall -I WRIT",
            "skill writ",
            "pkill -f 'hook --client'",
            "kill $(pgrep -f hook)",
            "kill $(ps -C writ -o pid=)",
            "ps -C writ -o pid= | xargs kill",
            "grep -l writ /proc/*/comm | cut -d/ -f3 | xargs kill",
            "for d in /proc/[0-9]*; do grep -q writ $d/comm && kill ${d#/proc/}; done",
            "systemctl --user stop writ-notary",
            "systemctl stop 'writ*'",
            "service writ stop",
            "gdb -p $(pgrep writ)",
            "prlimit --pid $(pgrep writ) --cpu=1",
            "renice 19 $(pgrep writ)",
        ],
        "deny",
    );
    cases(&["pkill ''", "pkill -v bash", "pkill -u $USER", "kill -9 -1", "kill -s KILL -1"], "ask");
    cases(
        &[
            "pkill node",
            "pkill -f 'vite serve'",
            "pkill -f 'node.*server'",
            "pkill -x wri",
            "pkill -TERM -f jest",
            "kill $(pgrep node)",
            "kill $(lsof -ti:3000)",
            "lsof -ti:3000 | xargs kill -9",
            "grep -rn written src; ps aux | grep node",
            "killall node",
            "killall -r '^node'",
            "fuser -k 3000/tcp",
            "sleep 1 & kill $!",
            "kill %1",
            "pkill typewriter",
            "pkill -f rewrite",
            "pkill -f write-server",
            "killall write",
            "pkill -u $USER node",
            "pkill -P $$",
            "kill -1 123",
            "ps aux | grep rewrite | awk '{print $2}' | xargs kill",
            "grep -rn writ README.md; kill $PID",
            "systemctl --user stop nginx",
            "systemctl status writ-notary",
            "gdb -p $(pgrep node)",
        ],
        "allow",
    );
}

/// What stands behind the beginning of a name is in another folder only where one is called so.
#[test]
fn a_name_that_begins_is_one_name() {
    let policy = r#"{"version":"1.0","name":"x","files":{"deny":["**/.env.*"]}}"#;
    check(
        policy,
        &[
            (bash("tar czf dist-$VERSION.tar.gz dist"), "allow"),
            (bash("cp a dist-$A-$B.tgz"), "allow"),
            (bash("tar czf doc$VERSION.tar.gz dist"), "ask"),
            (bash("mkdir dist-x; tar czf dist-$VERSION.tar.gz dist"), "ask"),
            (bash("tar czf $VERSION.tar.gz dist"), "ask"),
            (bash("tar czf dist-$VERSION/$A.gz dist"), "ask"),
            (bash("tar czf .env$VERSION.gz dist"), "deny"),
        ],
    );
}

#[test]
fn every_refusal_says_rule_place_and_remedy() {
    let policy = r#"{"version":"1.0","name":"x","tools":{"deny":["Bash:rm *"],"requireApproval":["Bash:git push"]},
        "files":{"allow":["src/**"],"deny":["**/.env"]},"domains":{"allow":["github.com"]}}"#;
    for (line, rule, piece) in [
        ("true && rm x", "/tools/deny/0", "rm x"),
        ("cd src && git push", "/tools/requireApproval/0", "git push"),
        ("cat src/a.rs src/.env", "/files/deny/0", "src/.env"),
        ("cat notes.md", "/files/allow", "notes.md"),
        ("curl https://evil.com/x", "/domains/allow", "https://evil.com/x"),
    ] {
        let decision = decided(policy, &bash(line));
        let reason =
            decision.reasons.iter().find(|reason| reason.rule == rule).unwrap_or_else(|| panic!("{decision:#?}"));
        let span = reason.matched.span.unwrap();
        assert_eq!(line.get(span.start..span.end), Some(piece), "{reason:?}");
        assert!(!reason.instead.is_empty() && !reason.message.is_empty());
        assert!(!reason.message.ends_with('.'), "{reason:?}");
    }
}

/// `Edit:path` is about what is there: making it anew is no change of it.
#[test]
fn edits_are_changes_of_what_is_there() {
    const EDITS: &str = r#"{"version":"1.0","name":"x","tools":{"deny":["Edit:lib/**","Read:src/**","Read:!src/b.txt"],
        "requireApproval":["Edit:**/.env","Edit:docs/**","Write:ci/**"]}}"#;
    let write = |path: &str| call("Write", &format!(r#"{{"file_path":"{path}","content":"x"}}"#));
    check(
        EDITS,
        &[
            (bash("echo A=1 > .env"), "allow"),
            (bash("cp a .env"), "allow"),
            (bash("echo A=1 > linked/x/.env"), "ask"),
            (write(".env"), "allow"),
            (write("src/deep/x/.env"), "ask"),
            (bash("sed -i s/a/b/ docs/guide.md"), "ask"),
            (bash("echo x >> docs/new.md"), "allow"),
            (bash("rm -r docs"), "ask"),
            (bash("sed -i s/a/b/ lib/one.c"), "deny"),
            (bash("echo x > lib/three.c"), "allow"),
            (bash("cat lib/one.c"), "allow"),
            (bash("cat src/a.rs"), "deny"),
            (bash("cat src/b.txt"), "allow"),
            (bash("cat linked/x/.env"), "deny"),
            (call("Grep", r#"{"pattern":"x","path":"src"}"#), "deny"),
            (call("Read", r#"{"file_path":"src/b.txt"}"#), "allow"),
            (call("Edit", r#"{"file_path":"lib/one.c","old_string":"a","new_string":"b"}"#), "deny"),
            (bash("git checkout main"), "allow"),
            (bash("rm -rf ci"), "ask"),
            (bash("echo x > ci/new.yml"), "ask"),
        ],
    );
}

/// A file made from one that the list takes back shows nothing; one that is there is not replaced, and nothing else is copied.
#[test]
fn templates_may_be_copied_where_nothing_is() {
    const SECRETS: &str =
        r#"{"version":"1.0","name":"x","files":{"deny":["**/.env","**/.env.*","!**/.env.example","keys/**"]}}"#;
    check(
        SECRETS,
        &[
            (bash("cp .env.example .env"), "allow"),
            (bash("cp -n ./.env.example ./.env"), "allow"),
            (bash("mv .env.example .env"), "allow"),
            (bash("install -m 600 .env.example .env.local"), "allow"),
            (bash("cd src && cp .env.example .env"), "allow"),
            (bash("cp src/deep/x/.env.example src/deep/x/.env"), "deny"),
            (bash("cp notes.md .env"), "deny"),
            (bash("cp .env.prod .env"), "deny"),
            (bash("cp .env.example keys/a"), "allow"),
            (bash("cp keys/a .env"), "deny"),
            (bash("ln .env.example .env"), "allow"),
            (bash("ln -s .env.example .env"), "deny"),
            (bash("cp .env.example notes.md .env"), "deny"),
            (bash("cp $X .env"), "deny"),
            (bash("echo A=1 > .env"), "deny"),
            (bash("cp .env.example .aflock"), "deny"),
            (call("Write", r#"{"file_path":".env","content":"x"}"#), "deny"),
        ],
    );
}

/// A policy that observes decides as any other; only what protects the record is enforced.
#[test]
fn observing_stops_nothing_but_what_touches_the_record() {
    let policy = r#"{"version":"1.0","name":"x","enforce":"observe","tools":{"deny":["Bash:curl *"],"requireApproval":["Bash:git push"]},
        "files":{"deny":["**/.env"]}}"#;
    let parsed = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    for (line, judged, told) in [
        ("curl https://x.example", "deny", "allow"),
        ("git push", "ask", "allow"),
        ("cat src/deep/x/.env", "deny", "allow"),
        ("ls", "allow", "allow"),
        ("echo {} > .aflock", "deny", "deny"),
        ("curl https://x.example; rm -r /h/.writ", "deny", "deny"),
        ("writ approve 12", "deny", "deny"),
        ("cat /h/.writ/keys/ledger.pem", "deny", "deny"),
    ] {
        let decision = decided(policy, &bash(line));
        assert_eq!(decision.verdict.as_str(), judged, "{line}");
        let enforced = enforce(parsed.enforce(), decision);
        assert_eq!(enforced.decision.verdict.as_str(), told, "{line}");
        assert_eq!(enforced.observed.map(|verdict| verdict.as_str()), (judged != told).then_some(judged), "{line}");
    }
    let decides = Policy::parse(policy.replace("observe", "decide").as_bytes(), ROOT).unwrap();
    let enforced = enforce(decides.enforce(), decided(policy, &bash("git push")));
    assert_eq!((enforced.decision.verdict.as_str(), enforced.observed), ("ask", None));
}
