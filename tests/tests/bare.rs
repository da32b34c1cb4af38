//! Calls where this machine gives no namespaces: Landlock, filters, and sockets that are connected to the proxy already.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[path = "workplace/host.rs"]
mod host;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use host::{CANARY, Host};
use lab::Lab;
use serde_json::{Value, json};

/// The word of the level.
const LEVEL: &str = "landlock";

/// What is known of the machine is kept in Writ's state; one without namespaces is one that says so there.
fn without_namespaces(lab: &Lab) {
    lab.writ(&["doctor"]);
    let kept = lab.place.folder.join("state/sandbox.json");
    let mut features: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    features["mounts"] = json!(false);
    fs::write(&kept, features.to_string()).unwrap();
    fs::write(lab.repository().join("src/in.txt"), "inside\n").unwrap();
    // Nothing runs as root, and without mounts its files cannot be shown to somebody else.
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        own(&lab.repository());
    }
}

fn own(path: &Path) {
    lchown(path, Some(12_345), Some(12_345)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| own(&entry.unwrap().path()));
    }
}

fn lab(name: &str, policy: &Value) -> Lab {
    let lab = Lab::new(name, policy, &[]);
    without_namespaces(&lab);
    lab
}

/// A service on this machine's loopback that answers in HTTP; what it is not asked for by Writ it is never asked for.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            assert!(stream.read(&mut [0; 4096]).is_ok());
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nlocal\n").unwrap();
        }
    });
    port
}

#[test]
fn only_what_is_allowed_is_reached() {
    let (port, other) = (service(), service());
    let policy = json!({
        "version": "1.0", "name": "bare", "files": {"allow": ["src/**"]}, "domains": {"allow": ["allowed.example"]},
        "enforce": {"calls": true, "network": {"loopback": [port]}},
    });
    let lab = lab("bare-network", &policy);
    let script = format!(
        "curl -sS -m 5 http://127.0.0.1:{port}/; echo; curl -sS -m 5 http://denied.example/; \
         curl -sS -m 5 --noproxy '*' http://127.0.0.1:{port}/; curl -sS -m 5 --noproxy '*' http://127.0.0.1:{other}/; \
         for name in allowed.example denied.example; do python3 -c 'import socket,sys; print(socket.gethostbyname(sys.argv[1]))' $name; done; \
         curl -sS -m 5 --noproxy '*' http://allowed.example/; \
         python3 -m http.server --bind 127.0.0.1 0; cat ../.aflock in.txt; exit 3"
    );
    fs::write(lab.repository().join("src/script"), script).unwrap();
    let (code, said) = lab.run("cd src && sh script");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("inside\n") && !said.contains("\"version\""), "{said}");
    assert!(said.contains("writ: `denied.example` is not allowed"), "{said}");
    // What knows no proxy asks for names, and reaches what they stand for and what is handed in.
    assert!(said.matches("local\n").count() == 2 && said.contains("127.7.0.1\n"), "{said}");
    assert!(said.contains("`allowed.example` is not found"), "{said}");
    let past = format!("writ: `127.0.0.1:{other}` was connected to, which stands for no host");
    assert!(said.contains(&past) && said.contains("a server wanted to listen"), "{said}");
    let rows = lab.rows("connection");
    let word = |row: &Value| row["connection"]["refusal"]["word"].as_str().unwrap_or("none").to_owned();
    let words: Vec<String> = rows.iter().map(word).collect();
    let of = |road: &str| rows.iter().filter(|row| row["connection"]["road"] == road).collect::<Vec<_>>();
    assert!(
        of("dns").iter().all(|row| row["connection"]["host"] == "denied.example") && !of("dns").is_empty(),
        "{rows:#?}"
    );
    assert!(of("http").iter().any(|row| row["connection"]["host"] == "allowed.example"), "{rows:#?}");
    assert!(["none", "host", "past"].iter().all(|word| words.iter().any(|found| found == word)), "{rows:#?}");
    let [confined] = lab.rows("confined").try_into().unwrap();
    assert_eq!((&confined["level"], &confined["connections"]), (&json!(LEVEL), &json!(2)), "{confined}");
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "passed", "{phase}");
    assert!(phase["summary"].as_str().unwrap().contains("(landlock; self-test "), "{phase}");
    // A host that the line names and nobody allows is denied before it runs, and what is not known is asked about.
    assert_eq!(lab.ask("curl http://denied.example/").1["permissionDecision"], "deny");
    assert_eq!(lab.ask("curl $HOST_NAME").1["permissionDecision"], "ask");
}

#[test]
fn programs_use_a_secret_without_having_it() {
    let host = Host::start("bare-secrets");
    let mut policy = host.policy();
    policy["files"] = json!({"allow": ["src/**"]});
    let lab = host.lab("bare-secrets", &policy);
    without_namespaces(&lab);
    let url = host.url("/");
    let python = "import os,sys,urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={'Authorization': os.environ['API_TOKEN']})).read())";
    let git = host.url("/repo.git").replace("https://", "https://me:$API_TOKEN@");
    let lines = [
        (format!("curl -sS --fail -H \"Authorization: Bearer $API_TOKEN\" {url}"), "hello Bearer ***"),
        (format!("python3 -c \"{python}\" {url}"), "hello ***"),
        (format!("git ls-remote {git}"), "refs/heads/mock-head"),
    ];
    for (line, wanted) in lines {
        let (code, said) = lab.run(&line);
        assert!(code == Some(0) && said.contains(wanted) && !said.contains("c4n4ry"), "{line}\n{said}");
        assert!(host.seen().contains(CANARY) || line.contains("git"), "{line}");
    }
    // The value is nowhere, and the authority is gone with its run.
    let script = "env; cat /proc/$PPID/environ /proc/[0-9]*/environ; tail -1 $SSL_CERT_FILE; ls $(dirname $SSL_CERT_FILE); \
        echo x > $SSL_CERT_FILE";
    fs::write(lab.repository().join("src/script"), script).unwrap();
    let (_, said) = lab.run("sh src/script");
    assert!(!said.contains("c4n4ry") && !said.contains("MY_VALUE=") && said.contains("END CERTIFICATE"), "{said}");
    let folder = said.lines().find_map(|line| line.strip_prefix("SSL_CERT_FILE=")).map(PathBuf::from).unwrap();
    assert!(!folder.parent().unwrap().exists() && said.contains("authority.pem"), "{said}");
    assert_eq!(lab.files_with("c4n4ry"), [] as [PathBuf; 0]);
    let through = format!("curl -sS -m 10 -H \"Authorization: $API_TOKEN\" http://localhost:{}/", host.port);
    fs::write(lab.repository().join("src/script"), through).unwrap();
    let (_, said) = lab.run("sh src/script");
    assert!(said.contains("the placeholder of secret") || said.contains("this port speaks TLS"), "{said}");
    assert!(!host.seen().contains("c4n4ry"), "{said}");
    assert!(
        lab.phase("sandbox")["summary"].as_str().unwrap().contains("secrets API_TOKEN (in "),
        "{}",
        lab.phase("sandbox")
    );
}

/// What is denied or kept is so below a folder that is given, whether the policy names its files or not; the price is that nothing new is
/// made beside it.
#[test]
fn what_is_kept_apart_is_held_in_the_folder_itself() {
    for (name, files) in [
        ("bare-all", json!({"deny": ["**/.env"], "readOnly": ["src/kept/**"]})),
        ("bare-root", json!({"allow": ["**", ".git/**"], "deny": ["**/.env"], "readOnly": ["src/kept/**"]})),
    ] {
        let lab = lab(name, &json!({"version": "1.0", "name": "bare", "enforce": "calls", "files": files}));
        let repository = lab.repository();
        for folder in ["src/kept", "lib/deep"] {
            fs::create_dir_all(repository.join(folder)).unwrap();
        }
        for file in ["src/.env", "src/kept/file", "top"] {
            fs::write(repository.join(file), format!("{file} text\n")).unwrap();
        }
        fs::create_dir_all(lab.place.folder.join(".ssh")).unwrap();
        fs::write(lab.place.folder.join(".ssh/id"), "a key\n").unwrap();
        let script = "cat ../src/.env; cat ~/.ssh/id; ls ~/.ssh; cat kept/file; echo x >> kept/file; echo x > kept/new
            echo x >> ../.aflock; echo x > ../.git/hooks/pre-commit; git config core.pager x; echo x > ../.envrc; mkdir ../.vscode
            echo more >> ../top && cat ../top; echo new > ../lib/deep/new && cat ../lib/deep/new && rm ../lib/deep/new; exit 3";
        fs::write(repository.join("lib/script"), script).unwrap();
        without_namespaces(&lab);
        let (code, said) = lab.run("cd src && sh ../lib/script");
        assert_eq!(code, Some(3), "{name}: {said}");
        assert!(
            said.contains("src/kept/file text\ntop text\nmore\nnew\n") || said.contains("top text\nmore\n"),
            "{name}: {said}"
        );
        assert!(!said.contains(".env text") && !said.contains("a key"), "{name}: {said}");
        assert_eq!(fs::read_to_string(repository.join("src/kept/file")).unwrap(), "src/kept/file text\n");
        for made in [".envrc", ".vscode", "src/kept/new", ".git/hooks/pre-commit", "lib/deep/new"] {
            assert!(!repository.join(made).exists(), "{name}: {made}");
        }
        let policy = fs::read_to_string(repository.join(".aflock")).unwrap();
        assert!(!policy.ends_with("x\n"), "{name}");
        assert_eq!(lab.phase("sandbox")["outcome"], "passed", "{}", lab.phase("sandbox"));
    }
}

/// Whatever a call leaves running ends with it.
#[test]
fn what_is_left_running_ends_with_the_call() {
    let lab = lab(
        "bare-left",
        &json!({"version": "1.0", "name": "bare", "enforce": "calls", "files": {"allow": ["src/**"]}}),
    );
    let (code, said) = lab.run("for i in 1 2 3; do (setsid sh -c 'sleep 2; echo late > src/late' >/dev/null 2>&1 </dev/null &); done; sleep 0.2; echo done");
    assert_eq!((code, said.as_str()), (Some(0), "done\n"));
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(!lab.repository().join("src/late").exists());
}

/// Hooks inside a run ask the supervisor, whose address stands for itself.
#[test]
fn a_run_is_held_and_its_hooks_are_answered() {
    let policy = json!({"version": "1.0", "name": "bare", "files": {"allow": ["src/**"], "deny": ["elsewhere/**"]}, "domains": {"allow": ["allowed.example"]}});
    let lab = lab("bare-run", &policy);
    let payload = lab
        .place
        .payload("PreToolUse", r#","tool_name":"Read","tool_use_id":"one","tool_input":{"file_path":"elsewhere/x"}"#);
    fs::write(lab.repository().join("src/payload"), payload).unwrap();
    let writ = lab.place.command(&[]).get_program().to_string_lossy().into_owned();
    let script = format!("{writ} hook < src/payload; curl -sS -m 5 http://denied.example/; exit 4");
    fs::write(lab.repository().join("src/script"), script).unwrap();
    let ran = lab.writ(&["run", "--", "sh", "src/script"]);
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(said.contains("\"permissionDecision\":\"deny\"") && said.contains("elsewhere"), "{said}");
    assert!(said.contains("`denied.example` is not allowed"), "{said}");
}
