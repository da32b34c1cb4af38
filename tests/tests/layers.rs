//! Policies that lead to others, through the hook as a client calls it: a sub-agent under its own tighter policy, files that change
//! while a session runs, the lock and what is fetched for it.

#[cfg(test)]
#[expect(dead_code, reason = "these sessions start in their own ways")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use workplace::{SESSION, Workplace};
use writ_core::Digest;

const BASE: &str = r#"{"version":"1.0","name":"base","files":{"deny":["**/.env"]}}"#;

fn file(place: &Workplace, name: &str) -> PathBuf {
    place.folder.join("repository").join(name)
}

fn put(place: &Workplace, name: &str, text: &str) {
    fs::write(file(place, name), text).unwrap();
}

fn root(place: &Workplace, more: &str) {
    put(place, ".aflock", &format!(r#"{{"version":"1.0","name":"root"{more}}}"#));
}

/// A shell call of the main agent, or of a sub-agent as the client sends it.
fn bash(place: &Workplace, id: &str, line: &str, agent: Option<&str>) -> String {
    in_session(place, SESSION, id, line, agent)
}

fn in_session(place: &Workplace, session: &str, id: &str, line: &str, agent: Option<&str>) -> String {
    let agent = agent.map_or_else(String::new, |kind| format!(r#","agent_id":"a1b2c3","agent_type":"{kind}""#));
    let members = format!(r#","tool_name":"Bash","tool_input":{{"command":"{line}"}},"tool_use_id":"{id}"{agent}"#);
    place.answer(&place.payload("PreToolUse", &members).replace(&format!("\"{SESSION}\""), &format!("\"{session}\"")))
}

fn denied(answer: &str) -> bool {
    answer.contains("\"permissionDecision\":\"deny\"")
}

fn said(place: &Workplace, args: &[&str]) -> (Option<i32>, String) {
    said_with(place, args, &[])
}

fn said_with(place: &Workplace, args: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = place.command(args);
    command.envs(environment.iter().copied()).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn verified(place: &Workplace) -> String {
    let (_, text) = said(place, &["verify", SESSION, "--format", "json"]);
    for name in ["policy", "decisions"] {
        let phase = text.split(&format!("\"name\": \"{name}\"")).nth(1).unwrap_or_else(|| panic!("{text}"));
        assert!(phase.trim_start_matches([',', '\n', ' ']).starts_with("\"outcome\": \"passed\""), "{name}: {text}");
    }
    text
}

fn ledger(place: &Workplace) -> String {
    fs::read_to_string(place.session().join("ledger.jsonl")).unwrap()
}

const EXPLORER: &str = r#""sublayouts":[{"name":"Explore","policy":"explore.aflock","attestationPrefix":"ex-"}]"#;

fn explorer(place: &Workplace) {
    put(place, "base.aflock", BASE);
    put(place, "explore.aflock", r#"{"version":"1.0","name":"explorer","tools":{"deny":["Write","Bash:rm *"]}}"#);
    root(place, &format!(r#","extends":"./base.aflock",{EXPLORER}"#));
}

#[test]
fn a_sub_agent_is_stopped_by_its_own_tighter_policy() {
    let place = Workplace::new("sublayout");
    explorer(&place);
    place.start();
    assert!(!denied(&bash(&place, "one", "rm x", None)));
    assert!(!denied(&bash(&place, "two", "rm x", Some("Plan"))));
    let stopped = bash(&place, "three", "rm x", Some("Explore"));
    assert!(
        denied(&stopped) && stopped.contains("explorer:/tools/deny/1") && stopped.contains("`Bash:rm *`"),
        "{stopped}"
    );
    for (id, agent) in [("four", None), ("five", Some("Explore"))] {
        let stopped = bash(&place, id, "cat .env", agent);
        assert!(denied(&stopped) && stopped.contains("base:/files/deny/0"), "the parent's hold for all: {stopped}");
    }
    let untold = bash(&place, "six", "rm x", Some(""));
    assert!(denied(&untold), "one whose type is not told may be any: {untold}");
    for line in ["echo {} > base.aflock", "rm explore.aflock", "cp x .aflock.lock", "writ policy lock"] {
        let answer = bash(&place, "seven", line, None);
        assert!(denied(&answer) && answer.contains("self-protection"), "{line}: {answer}");
    }
    let rows = ledger(&place);
    let prefixed = rows.lines().filter(|row| row.contains(r#""attestationPrefix":"ex-""#)).count();
    assert_eq!(prefixed, 3, "the calls of the sub-agent: {rows}");
    let text = verified(&place);
    assert!(text.contains("`explorer` sha256:") && text.contains("calls of sub-agents of type `Explore`"), "{text}");
    let (code, text) = said(&place, &["why", "--agent", "Explore", "rm x"]);
    assert!(code == Some(3) && text.contains("explorer:/tools/deny/1"), "{text}");
    assert_eq!(said(&place, &["why", "rm x"]).0, Some(0));
    assert!(said(&place, &["session", "show", SESSION]).1.contains("`Bash:rm *`, explorer:/tools/deny/1"));
    assert!(said(&place, &["status"]).1.contains("explorer"));
}

#[test]
fn a_sandbox_holds_what_every_layer_holds() {
    let place = Workplace::new("layer-sandbox");
    put(&place, "base.aflock", r#"{"version":"1.0","name":"base","enforce":"calls","files":{"deny":["**/.env"]}}"#);
    put(&place, ".env", "x");
    root(&place, r#","extends":"base.aflock","files":{"readOnly":["docs/**"]}"#);
    let (code, plan) = said(&place, &["sandbox", "plan", "--format", "json"]);
    assert_eq!(code, Some(0), "{plan}");
    let list = |name: &str| {
        let rest = plan.split(&format!("\"{name}\": [")).nth(1).unwrap_or_default();
        rest.split(']').next().unwrap_or_default().to_owned()
    };
    let (kept, masked) = (list("read_only") + &list("readOnly"), list("masked"));
    assert!(kept.contains("/base.aflock") && kept.contains("/.aflock.lock"), "{plan}");
    assert!(masked.contains("/.env") || !plan.contains("/.env\""), "{plan}");
}

#[test]
fn a_sublayout_of_no_agent_is_told() {
    let place = Workplace::new("layer-agents");
    fs::create_dir_all(file(&place, ".claude/agents/team")).unwrap();
    put(&place, ".claude/agents/team/research.md", "---\ndescription: looks\nname: research-agent\n---\nLook.");
    let child = |name: &str| {
        format!(
            r#"{{"name":"{name}","policy":{{"version":"1.0","name":"c","grants":{{"secrets":{{"deny":["aws-sm:x"]}}}}}}}}"#
        )
    };
    let children = ["Explore", "research-agent", "reserch-agent"].map(child).join(",");
    root(&place, &format!(r#","sublayouts":[{children}]"#));
    let (code, text) = said(&place, &["policy", "check"]);
    assert_eq!(code, Some(0), "{text}");
    let told: Vec<&str> = text.lines().filter(|line| line.contains("no sub-agent of type")).collect();
    assert!(told.len() == 1 && told[0].contains("`reserch-agent`"), "{text}");
    assert!(text.contains("c-2:/grants/secrets/deny/0: not enforced yet"), "{text}");
}

#[test]
fn a_parents_limits_hold_the_session_and_a_sub_agents_own_its_type() {
    let place = Workplace::new("counted");
    put(&place, "base.aflock", r#"{"version":"1.0","name":"base","limits":{"maxToolCalls":{"value":2}}}"#);
    put(&place, "explore.aflock", r#"{"version":"1.0","name":"explorer","limits":{"maxToolCalls":{"value":1}}}"#);
    root(&place, r#","extends":"base.aflock","sublayouts":[{"name":"Explore","policy":"explore.aflock"}]"#);
    place.start();
    assert!(!denied(&bash(&place, "one", "ls", Some("Explore"))));
    let own = bash(&place, "own", "ls", Some("Explore"));
    assert!(denied(&own) && own.contains("explorer:/limits/maxToolCalls"), "{own}");
    assert!(!denied(&bash(&place, "two", "ls", None)), "what its type used counts toward the session, and no more");
    let stopped = bash(&place, "three", "ls", None);
    assert!(denied(&stopped) && stopped.contains("base:/limits/maxToolCalls"), "{stopped}");
    assert!(stopped.contains("writ limits raise maxToolCalls"), "{stopped}");
    let refused = place.answer(&place.payload("UserPromptSubmit", r#","prompt":"go on""#));
    assert!(refused.contains("block") && refused.contains("base:/limits/maxToolCalls"), "{refused}");
    let (_, shown) = said(&place, &["limits", "show"]);
    assert!(shown.contains("2 of 2 tool calls") && shown.contains("`Explore`: 1 of 1 tool call"), "{shown}");
    let report = verified(&place);
    assert!(report.contains("2 of 2 tool calls (reached)"), "{report}");
    assert!(report.contains("`Explore`: 1 of 1 tool call (reached)"), "{report}");
}

#[test]
fn a_row_with_another_layer_is_found() {
    let place = Workplace::new("layer-row");
    explorer(&place);
    place.start();
    assert!(denied(&bash(&place, "one", "rm x", Some("Explore"))));
    verified(&place);
    let kept: Vec<PathBuf> =
        fs::read_dir(place.session().join("layers")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [list] = kept.as_slice() else { panic!("{kept:?}") };
    let text = fs::read_to_string(list).unwrap();
    // The list says that the policy is another type's: the row's digest of it no longer fits.
    fs::write(list, text.replace("Explore", "Exploit")).unwrap();
    let (code, text) = said(&place, &["verify", SESSION]);
    assert!(code == Some(3) && text.contains("layers"), "{text}");
}

#[test]
fn a_layers_file_that_changes_goes_on_governing_and_can_only_tighten() {
    let place = Workplace::new("layer-changed");
    explorer(&place);
    place.start();
    assert!(denied(&bash(&place, "one", "cat .env", None)));
    put(&place, "base.aflock", r#"{"version":"1.0","name":"base","files":{"deny":["src/secret"]}}"#);
    let told = bash(&place, "two", "cat .env", None);
    assert!(denied(&told) && told.contains("base.aflock is not the one"), "{told}");
    let tightened = bash(&place, "three", "cat src/secret", None);
    assert!(denied(&tightened) && tightened.contains("changed-policy:base:/files/deny/0"), "{tightened}");
    assert!(!tightened.contains("systemMessage"), "told once: {tightened}");
    assert!(said(&place, &["status"]).1.contains("base.aflock is not the one"));
    fs::remove_file(file(&place, "explore.aflock")).unwrap();
    let told = bash(&place, "four", "rm x", Some("Explore"));
    assert!(denied(&told) && told.contains("explore.aflock is gone"), "{told}");
    verified(&place);
    // A new session does not begin under what nobody accepted here.
    fs::write(file(&place, "explore.aflock"), r#"{"version":"1.0","name":"explorer"}"#).unwrap();
    let other = in_session(&place, "second", "five", "rm x", Some("Explore"));
    assert!(denied(&other), "the accepted ones begin it: {other}");
    assert!(in_session(&place, "second", "six", "ls", None).contains("\"permissionDecision\":\"ask\""));
    explorer(&place);
    let restored = bash(&place, "seven", "ls", None);
    assert!(!restored.contains("\"permissionDecision\":\"deny\""), "{restored}");
    assert!(!said(&place, &["status"]).1.contains("is not the one"));
    verified(&place);
}

#[test]
fn a_lock_that_is_stale_or_tampered_with_denies() {
    let place = Workplace::new("lock");
    explorer(&place);
    let lock = file(&place, ".aflock.lock");
    assert_eq!(said(&place, &["policy", "lock"]).0, Some(0));
    assert_eq!(said(&place, &["policy", "lock", "--check"]).0, Some(0));
    assert!(!denied(&bash(&place, "one", "ls", None)));
    put(&place, "base.aflock", r#"{"version":"1.0","name":"base"}"#);
    let (code, text) = said(&place, &["policy", "lock", "--check"]);
    assert!(code == Some(3) && text.contains("~ base.aflock"), "{text}");
    let (code, text) = said(&place, &["policy", "check", "--format", "json"]);
    assert!(code == Some(3) && text.contains("stale-lock") && text.contains("writ policy lock"), "{text}");
    put(&place, "base.aflock", BASE);
    let good = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, good.replace("\"version\": 1", "\"version\": 2")).unwrap();
    let refused = in_session(&place, "second", "two", "ls", None);
    assert!(denied(&refused) && refused.contains("the lock") && refused.contains("writ policy lock"), "{refused}");
    fs::write(&lock, good).unwrap();
    assert!(!denied(&in_session(&place, "third", "three", "ls", None)));
    put(&place, "base.aflock", r#"{"version":"1.0","name":"base"}"#);
    let stale = in_session(&place, "fourth", "four", "ls", None);
    assert!(denied(&stale) && stale.contains("is not the file that the lock pins"), "{stale}");
}

/// A server of TLS that gives the files of a folder away.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(folder: &std::path::Path) -> Self {
        let line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 2 \
                    -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                    -addext basicConstraints=critical,CA:FALSE 2>/dev/null";
        let made = Command::new("sh").args(["-c", line]).current_dir(folder).status().unwrap();
        assert!(made.success(), "this test needs openssl");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let accept = format!("127.0.0.1:{port}");
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-WWW", "-accept", &accept, "-cert", "cert.pem", "-key", "key.pem"]);
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        for _ in 0..100 {
            if TcpStream::connect(&accept).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        Self { child, port }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_parent_from_an_address_is_locked_and_never_fetched_by_a_hook() {
    let place = Workplace::new("lock-https");
    let folder = place.folder.join("served");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("base.aflock"), BASE).unwrap();
    let served = Served::start(&folder);
    let address = format!("https://localhost:{}/base.aflock", served.port);
    root(&place, &format!(r#","extends":"{address}""#));
    let unlocked = bash(&place, "one", "ls", None);
    assert!(denied(&unlocked) && unlocked.contains("a human runs `writ policy lock`"), "{unlocked}");
    let trusting = [("SSL_CERT_FILE", folder.join("cert.pem"))];
    let trusting = [(trusting[0].0, trusting[0].1.to_str().unwrap())];
    let (code, text) = said(&place, &["policy", "lock"]);
    assert!(code != Some(0), "nobody vouches for the certificate: {text}");
    let (code, text) = said_with(&place, &["policy", "lock"], &trusting);
    assert!(code == Some(0) && text.contains(&format!("+ {address}")), "{text}");
    let lock = fs::read_to_string(file(&place, ".aflock.lock")).unwrap();
    assert!(lock.contains(&Digest::of(BASE.as_bytes()).to_string()), "{lock}");
    // What is there now is taken only when a human says so.
    fs::write(folder.join("base.aflock"), r#"{"version":"1.0","name":"base"}"#).unwrap();
    assert_eq!(said_with(&place, &["policy", "lock", "--check"], &trusting).0, Some(3));
    assert_eq!(said_with(&place, &["policy", "lock"], &trusting).0, Some(0));
    assert_eq!(lock, fs::read_to_string(file(&place, ".aflock.lock")).unwrap());
    let (code, text) = said_with(&place, &["policy", "lock", "--update", "https://localhost/other"], &trusting);
    assert!(code == Some(2) && text.contains("none of the references"), "{text}");
    drop(served);
    let stopped = in_session(&place, SESSION, "two", "cat .env", None);
    assert!(denied(&stopped) && stopped.contains("base:/files/deny/0"), "{stopped}");
    verified(&place);
    // Other bytes under the same digest.
    fs::write(file(&place, ".aflock.lock"), lock.replace("**/.env", "**/.enw")).unwrap();
    let tampered = in_session(&place, "second", "three", "ls", None);
    assert!(denied(&tampered) && tampered.contains("was changed"), "{tampered}");
    assert!(denied(&bash(&place, "four", "cat .env", None)), "a session goes on under what it began with");
}

/// A registry with one artifact, which wants a token.
fn registry(policy: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, port, policy);
        }
    });
    port
}

fn answer(mut stream: TcpStream, port: u16, policy: &str) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let allowed = headers.iter().any(|line| line.eq_ignore_ascii_case("authorization: bearer t0"));
    let path = request.split(' ').nth(1).unwrap_or_default();
    let digest = Digest::of(policy.as_bytes());
    let (status, more, body) = match path {
        _ if path.starts_with("/token?") => ("200 OK", String::new(), r#"{"token":"t0"}"#.to_owned()),
        _ if !allowed => {
            let realm = format!("WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"r\"\r\n");
            ("401 Unauthorized", realm, String::new())
        }
        "/v2/team/base/manifests/1" => {
            let layer = format!(
                r#"{{"mediaType":"application/vnd.aflock.policy+json","digest":"{digest}","size":{}}}"#,
                policy.len()
            );
            let config = format!(
                r#"{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"{}","size":2}}"#,
                Digest::of(b"{}")
            );
            let kind = "Content-Type: application/vnd.oci.image.manifest.v1+json\r\n".to_owned();
            ("200 OK", kind, format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{layer}]}}"#))
        }
        _ if path == format!("/v2/team/base/blobs/{digest}") => ("200 OK", String::new(), policy.to_owned()),
        _ => ("404 Not Found", String::new(), String::new()),
    };
    let text = format!("HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    drop(stream.write_all(text.as_bytes()));
}

#[test]
fn a_parent_from_a_registry_is_locked_by_what_its_manifest_says() {
    let place = Workplace::new("lock-oci");
    let reference = format!("oci://127.0.0.1:{}/team/base:1", registry(BASE));
    root(&place, &format!(r#","extends":"{reference}""#));
    let (code, text) = said(&place, &["policy", "lock"]);
    assert!(code == Some(0) && text.contains(&reference), "{text}");
    assert!(denied(&bash(&place, "one", "cat .env", None)));
    let (_, text) = said(&place, &["policy", "show", "--resolved"]);
    assert!(text.contains(&reference) && text.contains(&Digest::of(BASE.as_bytes()).to_string()), "{text}");
    verified(&place);
    root(&place, &format!(r#","extends":"{reference}@{}""#, Digest::of(b"another")));
    let (code, text) = said(&place, &["policy", "lock"]);
    assert!(code != Some(0) && text.contains("is not there"), "a manifest is asked for by its digest: {text}");
}

/// What acts in the root's policy alone is told where another policy has it, and nothing is plainly verified then; steps that a parent wants
/// are wanted.
#[test]
fn what_a_layer_wants_is_done_or_said() {
    let verify = |name: &str, more: &str, base: &str| {
        let place = Workplace::new(name);
        put(&place, "base.aflock", &format!(r#"{{"version":"1.0","name":"b"{base}}}"#));
        root(&place, more);
        place.start();
        place.answer(
            &place.payload("PreToolUse", r#","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"1""#),
        );
        place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
        let (code, text) = said(&place, &["verify", "--allow-absent"]);
        let told = said(&place, &["policy", "check"]).1;
        (code, text, told)
    };
    let extends = r#","extends":"base.aflock""#;
    let (code, text, _) = verify("layer-steps", extends, r#","requiredAttestations":["qc"]"#);
    assert!(code == Some(3) && text.contains("`qc`: no statement") && text.contains("breached"), "{text}");
    let (_, text, _) =
        verify("layer-rego", extends, r#","evaluators":{"rego":[{"name":"x","policy":"package agentflow"}]}"#);
    assert!(text.contains("evaluators") && !text.contains("enforced `b:/evaluators`"), "{text}");
    let materials = r#","materialsFrom":{"git":{"branch":"never"}}"#;
    let (code, text, told) = verify("layer-git", extends, materials);
    assert!(code == Some(3) && text.contains("not never") && text.contains("breached"), "{text}");
    assert!(!told.contains("not enforced yet"), "{told}");
    let folder = r#","attestationDir":"./runs""#;
    let (_, text, told) = verify("layer-dir", extends, folder);
    assert!(text.contains("nothing in this session enforced `b:/attestationDir`"), "{text}");
    assert!(told.contains("b:/attestationDir: not enforced yet"), "{told}");
    let child = format!(r#","sublayouts":[{{"name":"Explore","policy":{{"version":"1.0","name":"c"{folder}}}}}]"#);
    let (_, text, _) = verify("layer-dir-sub", &child, "");
    assert!(text.contains("nothing in this session enforced `c:/attestationDir`"), "{text}");
}
