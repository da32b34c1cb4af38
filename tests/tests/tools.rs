//! `writ tool` and `writ agentfile project`: declared tools called for real, on the road of all calls.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use workplace::Workplace;

/// What a command came to: exit code, standard output, standard error.
type Said = (Option<i32>, String, String);

/// A folder with an agent that has tools.
struct Agent {
    place: Workplace,
    variables: Vec<(String, String)>,
}

const HEAD: &str = "# syntax=agentrc.agentfile/v0.1\nAGENT worker\nFROM scratch\nAUDIT all\nBIND ./ /workspace rw\nMOUNT /workspace rw\n";

impl Agent {
    fn new(name: &str, more: &str) -> Self {
        let agent = Self { place: Workplace::new(name), variables: Vec::new() };
        fs::remove_file(agent.folder().join(".aflock")).unwrap();
        agent.write("Agentfile", &format!("{HEAD}{more}"));
        agent.write("log.txt", "INFO one\nERROR two\nERROR three\n");
        agent
    }

    fn folder(&self) -> PathBuf {
        self.place.folder.join("repository")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, file: &str, text: &str) {
        self.write(file, text);
        fs::set_permissions(self.folder().join(file), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn describe(&self, name: &str, description: &Value) {
        self.write(&format!("tools/{name}.json"), &description.to_string());
    }

    fn writ(&self, args: &[&str]) -> Said {
        self.given(args, "")
    }

    fn given(&self, args: &[&str], input: &str) -> Said {
        let mut command = self.place.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        ended(command, input)
    }

    fn call(&self, name: &str, arguments: &Value) -> Said {
        self.writ(&["tool", "call", name, &arguments.to_string()])
    }

    /// The only session of calls.
    fn session(&self) -> String {
        let sessions = fs::read_dir(self.place.folder.join("state/sessions")).unwrap().flatten();
        let names = sessions.map(|entry| entry.file_name().into_string().unwrap());
        let mut named: Vec<String> = names.filter(|name| name.starts_with("tools-")).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        named.remove(0)
    }

    fn verified(&self) -> Value {
        let (code, out, err) = self.writ(&["verify", &self.session(), "--format", "json"]);
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
        assert!(report["verified"] == true && code == Some(0), "{report:#} {err}");
        report
    }

    /// Decisions and tools on record, in order.
    fn rows(&self) -> Vec<(String, String)> {
        let (_, out, err) = self.writ(&["session", "show", &self.session(), "--format", "json"]);
        let rows: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let rows = rows.as_array().unwrap().iter().filter(|row| row["toolName"].is_string());
        rows.map(|row| (text(row, "decision"), text(row, "toolName"))).collect()
    }

    /// Files of Writ's state that hold a text.
    fn state_holds(&self, text: &str) -> Vec<PathBuf> {
        let (mut out, mut rest) = (Vec::new(), vec![self.place.folder.join("state")]);
        while let Some(next) = rest.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    rest.push(path);
                } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|at| at == text.as_bytes())) {
                    out.push(path);
                }
            }
        }
        out
    }
}

fn ended(mut command: Command, input: &str) -> Said {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever does not read it has ended.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A command that finds words in the log.
fn find() -> Value {
    json!({
        "name": "find", "description": "Lines of the log that hold a word.",
        "inputs": { "type": "object", "properties": { "word": { "type": "string", "description": "What is looked for" } },
            "required": ["word"], "additionalProperties": false },
        "outputs": { "type": "string" },
        "tool_call_template": { "call_template_type": "cli", "commands": [
            { "command": "grep -F -e UTCP_ARG_word_UTCP_END log.txt" } ] }
    })
}

#[test]
fn a_command_is_called_denied_and_on_record() {
    let more = "TOOL utcp:find\nTOOL utcp:wipe\nALLOW invoke find\nDENY invoke wipe\n";
    let agent = Agent::new("tool-command", more);
    agent.describe("find", &find());
    let wipe =
        json!({ "tool_call_template": { "call_template_type": "cli", "commands": [{ "command": "rm log.txt" }] } });
    agent.describe("wipe", &wipe);
    let (code, out, err) = agent.call("find", &json!({ "word": "ERROR" }));
    assert_eq!((code, out.as_str()), (Some(0), "ERROR two\nERROR three\n"), "{err}");
    let (code, out, err) = agent.writ(&["tool", "call", "utcp:find", "--arg", "word=INFO", "--format", "json"]);
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    assert!(code == Some(0) && told["result"] == "INFO one" && told["session"] == agent.session().as_str(), "{told}");
    let (code, out, err) = agent.given(&["tool", "call", "find", "-"], r#"{"word":"two"}"#);
    assert_eq!((code, out.as_str()), (Some(0), "ERROR two\n"), "{err}");
    // Cedar's forbid, by its line; nothing of it ran.
    let (code, out, err) = agent.call("wipe", &json!({}));
    assert!(
        code == Some(3) && out.is_empty() && err.contains("line 10") && err.contains("/Agentfile/10"),
        "{code:?} {out} {err}"
    );
    assert!(agent.folder().join("log.txt").is_file());
    // Undeclared, too.
    let (code, out, err) = agent.call("other", &json!({}));
    assert!(code == Some(3) && out.is_empty() && err.contains("`other`"), "{code:?} {out} {err}");
    // One that fails says how it ended.
    let (code, _, err) = agent.call("find", &json!({ "word": "nowhere" }));
    assert!(code == Some(1) && err.contains("exit code 1"), "{code:?} {err}");
    let rows = agent.rows();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(decision, tool)| (decision.as_str(), tool.as_str())).collect();
    let ran = [("APPROVED", "find"), ("COMPLETED", "find")];
    let expected =
        [&ran[..], &ran, &ran, &[("DENIED", "wipe"), ("DENIED", "other"), ("APPROVED", "find"), ("FAILED", "find")]];
    assert_eq!(rows, expected.concat());
    agent.verified();
    let (code, out, _) = agent.writ(&["tool", "events", "wipe"]);
    let event: Value = serde_json::from_str(out.trim()).unwrap();
    assert!(
        code == Some(0)
            && event["decision"] == "DENIED"
            && event["denialReason"].as_str().unwrap().contains("/Agentfile/10")
    );
}

#[test]
fn arguments_are_checked_before_any_policy_is_asked() {
    let agent = Agent::new("tool-arguments", "TOOL utcp:find\nALLOW invoke find\n");
    agent.describe("find", &find());
    for (arguments, told) in [
        (r#"{"word":7}"#, "`/word`"),
        ("{}", "required"),
        (r#"{"word":"x","more":1}"#, "`` "),
        (r#"{"word":"x","word":"y"}"#, "duplicate member"),
        ("[]", "not an object"),
        ("{", "the arguments"),
    ] {
        let (code, out, err) = agent.writ(&["tool", "call", "find", arguments]);
        assert!(code == Some(4) && out.is_empty() && err.contains(told), "{arguments}: {code:?} {out} {err}");
        // What an argument holds is nobody's affair.
        assert!(!err.contains("c4n4ry"), "{err}");
    }
    assert!(!agent.place.folder.join("state/sessions").exists(), "nothing was decided");
    let (code, _, err) = agent.writ(&["tool", "call", "find", "--arg", "word"]);
    assert!(code == Some(2) && err.contains("KEY=VALUE"), "{code:?} {err}");
}

/// Whatever an argument holds, it is one word; and the policy sees the line that is run.
#[test]
fn an_argument_is_no_command() {
    let agent = Agent::new("tool-quoting", "TOOL utcp:say\nTOOL utcp:older\nALLOW invoke say\nALLOW invoke older\n");
    agent.describe(
        "say",
        &json!({ "inputs": { "properties": { "text": { "type": "string" } } }, "outputs": { "type": "string" },
        "tool_call_template": { "call_template_type": "cli", "commands": [
            { "command": "printf '%s' \"<UTCP_ARG_text_UTCP_END>\" UTCP_ARG_text_UTCP_END" } ] } }),
    );
    agent.describe(
        "older",
        &json!({ "outputs": { "type": "string" },
        "tool_provider": { "provider_type": "cli", "command_name": "printf '%s\\n'" } }),
    );
    for attack in [
        "\"; touch pwned; \"",
        "'; touch pwned; '",
        "$(touch pwned)",
        "`touch pwned`",
        "a\ntouch pwned\n#",
        "\\",
        "$HOME",
        "*",
    ] {
        let (code, out, err) = agent.call("say", &json!({ "text": attack }));
        assert_eq!((code, out), (Some(0), format!("<{attack}>{attack}\n")), "{err}");
        let (code, out, err) = agent.call("older", &json!({ "text": attack }));
        assert_eq!((code, out), (Some(0), format!("--text\n{attack}\n")), "{err}");
    }
    assert!(!agent.folder().join("pwned").exists());
    // What a program makes of its argument is judged as that.
    agent.write("Agentfile", &format!("{HEAD}TOOL utcp:code\nALLOW invoke code\n"));
    agent.describe(
        "code",
        &json!({ "tool_call_template": { "call_template_type": "cli", "commands": [
        { "command": "sh -c \"ls; UTCP_ARG_x_UTCP_END\"" } ] } }),
    );
    let (code, out, err) = agent.call("code", &json!({ "x": "cat /etc/hostname" }));
    assert!(code == Some(3) && out.is_empty() && err.contains("/etc/hostname"), "{code:?} {out} {err}");
}

#[test]
fn a_program_has_its_arguments_on_its_input() {
    let more = "TOOL utcp:count\nTOOL utcp:wrong\nTOOL utcp:plain\nALLOW invoke count\nALLOW invoke wrong\nALLOW invoke plain\nTIMEOUT 20\nLIMIT max_output 64\n\
                CRED token env:MY_VALUE host:api.example\n";
    let mut agent = Agent::new("tool-program", more);
    agent.variables = vec![("MY_VALUE".to_owned(), "c4n4ry".to_owned()), ("OTHER".to_owned(), "c4n4ry".to_owned())];
    let schema = json!({ "inputs": { "properties": { "file": { "type": "string" } }, "required": ["file"] },
        "outputs": { "type": "object", "properties": { "lines": { "type": "integer" } }, "required": ["lines"] } });
    agent.describe("count", &schema);
    agent.describe("wrong", &schema);
    agent.program(
        "tools/count",
        "#!/bin/sh\nread line\necho note >&2\nprintf '{\"lines\": %s}\\n' \"$(wc -l < log.txt)\"\n",
    );
    agent.program("tools/wrong", "#!/bin/sh\necho '{\"lines\": \"c4n4ry\"}'\n");
    agent.program("tools/plain", "#!/bin/sh\ncat; env | grep -c c4n4ry; exit 0\n");
    let (code, out, err) = agent.call("count", &json!({ "file": "log.txt" }));
    assert_eq!((code, out.as_str(), err.trim()), (Some(0), "{\"lines\":3}\n", "note"));
    // Its result is not what it says.
    let (code, out, err) = agent.call("wrong", &json!({ "file": "log.txt" }));
    assert!(
        code == Some(1) && out.is_empty() && err.contains("`/lines`") && !err.contains("c4n4ry"),
        "{code:?} {out} {err}"
    );
    // Without a description it takes anything; no secret is in its variables.
    let (code, out, err) = agent.call("plain", &json!({ "a": [1, "x"] }));
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":[1,\"x\"]}\n0\n"), "{err}");
    let (code, _, err) = agent.call("plain", &json!({ "a": "x".repeat(100) }));
    assert!(code == Some(1) && err.contains("LIMIT max_output"), "{code:?} {err}");
    // A path among its arguments is judged like one of any tool's.
    let (code, out, err) = agent.call("count", &json!({ "file": "/etc/hostname" }));
    assert!(code == Some(3) && out.is_empty() && err.contains("/etc/hostname"), "{code:?} {out} {err}");
    let decisions: Vec<String> = agent.rows().into_iter().map(|(decision, _)| decision).collect();
    assert_eq!(
        decisions,
        ["APPROVED", "COMPLETED", "APPROVED", "FAILED", "APPROVED", "COMPLETED", "APPROVED", "FAILED", "DENIED"]
    );
    agent.verified();
    agent.program("tools/count", "#!/bin/sh\nsleep 60\n");
    agent.write(
        "Agentfile",
        &fs::read_to_string(agent.folder().join("Agentfile")).unwrap().replace("TIMEOUT 20", "TIMEOUT 1"),
    );
    let (code, _, err) = agent.call("count", &json!({ "file": "log.txt" }));
    assert!(code == Some(1) && err.contains("after 1 s"), "{code:?} {err}");
}

/// A request as a server got it.
#[derive(Clone, Debug)]
struct Got {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A server on this machine that answers with what it got.
fn web() -> (u16, Arc<Mutex<Vec<Got>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, got) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&got);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                continue;
            }
            let mut headers = Vec::new();
            loop {
                let mut header = String::new();
                reader.read_line(&mut header).unwrap();
                let Some((name, value)) = header.trim_end().split_once(':') else { break };
                headers.push((name.to_owned(), value.trim().to_owned()));
            }
            let mut request = Got { line: line.trim_end().to_owned(), headers, body: String::new() };
            let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            request.body = String::from_utf8(body).unwrap();
            let (status, more, answer) = match request.line.split(' ').nth(1).unwrap_or_default() {
                path if path.starts_with("/away") => {
                    ("302 Found", "Location: http://127.0.0.1:1/\r\n", "{}".to_owned())
                }
                path if path.starts_with("/gone") => ("404 Not Found", "", "no such city".to_owned()),
                path if path.starts_with("/wrong") => ("200 OK", "", json!({ "city": 7 }).to_string()),
                path => {
                    let said = request.headers.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ");
                    ("200 OK", "", json!({ "city": path, "said": said }).to_string())
                }
            };
            kept.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}Connection: close\r\n\r\n",
                answer.len()
            );
            let mut stream = stream;
            drop(stream.write_all((head + &answer).as_bytes()));
        }
    });
    (port, got)
}

fn weather(url: &str, more: &Value) -> Value {
    let mut template = json!({ "call_template_type": "http", "url": url, "http_method": "GET" });
    for (name, value) in more.as_object().unwrap() {
        template[name] = value.clone();
    }
    json!({
        "inputs": { "properties": { "city": { "type": "string" } }, "required": ["city"] },
        "outputs": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
        "tool_call_template": template
    })
}

#[test]
fn a_request_goes_to_declared_hosts_with_its_secret_alone() {
    let (port, got) = web();
    let url = format!("http://127.0.0.1:{port}");
    let more = format!(
        "TOOL utcp:weather\nTOOL utcp:elsewhere\nTOOL utcp:unbound\nTOOL utcp:post\nTOOL utcp:away\nTOOL utcp:gone\nTOOL utcp:wrong\n\
         URL {url}\nCRED token env:MY_VALUE host:127.0.0.1\nCRED other env:MY_OTHER host:api.example\n\
         ALLOW invoke weather\nALLOW invoke elsewhere\nALLOW invoke unbound\nALLOW invoke post\nALLOW invoke away\nALLOW invoke gone\nALLOW invoke wrong\n"
    );
    let mut agent = Agent::new("tool-request", &more);
    agent.variables =
        vec![("MY_VALUE".to_owned(), "c4n4ry-value".to_owned()), ("MY_OTHER".to_owned(), "c4n4ry-other".to_owned())];
    let key = |name: &str| json!({ "auth": { "auth_type": "api_key", "api_key": format!("Bearer ${{{name}}}"), "var_name": "Authorization" } });
    agent.describe("weather", &weather(&format!("{url}/of/{{city}}"), &key("token")));
    agent.describe("elsewhere", &weather(&format!("http://localhost:{port}/of/{{city}}"), &json!({})));
    agent.describe("unbound", &weather(&format!("{url}/of/{{city}}"), &key("MY_OTHER")));
    let basic = json!({ "http_method": "POST", "body_field": "data", "auth": { "auth_type": "basic", "username": "me", "password": "$token" } });
    agent.describe("post", &weather(&format!("{url}/of/{{city}}"), &basic));
    for name in ["away", "gone", "wrong"] {
        agent.describe(name, &weather(&format!("{url}/{name}/{{city}}"), &json!({})));
    }
    let (code, out, err) = agent.call("weather", &json!({ "city": "../a b", "unit": "C" }));
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    assert_eq!((code, told["city"].as_str()), (Some(0), Some("/of/..%2Fa%20b?unit=C")), "{err}");
    // The value was sent, and did not come back.
    assert_eq!(got.lock().unwrap().last().unwrap().header("authorization"), Some("Bearer c4n4ry-value"));
    assert!(told["said"].as_str().unwrap().contains("Bearer [secret token]"), "{told}");
    let (code, _, err) = agent.call("post", &json!({ "city": "x", "data": { "a": [1] } }));
    let last = got.lock().unwrap().last().unwrap().clone();
    assert_eq!(
        (code, last.line.as_str(), last.body.as_str()),
        (Some(0), "POST /of/x HTTP/1.1", "{\"a\":[1]}"),
        "{err}"
    );
    assert_eq!(last.header("authorization"), Some("Basic bWU6YzRuNHJ5LXZhbHVl"));
    let count = got.lock().unwrap().len();
    // A host that no line declares, and a secret that is for another: nothing is sent.
    let (code, out, err) = agent.call("elsewhere", &json!({ "city": "x" }));
    assert!(code == Some(3) && out.is_empty() && err.contains("localhost"), "{code:?} {out} {err}");
    let (code, out, err) = agent.call("unbound", &json!({ "city": "x" }));
    assert!(code == Some(3) && out.is_empty() && err.contains("`other`"), "{code:?} {out} {err}");
    let (code, _, err) = agent.call("weather", &json!({ "city": ".." }));
    assert!(code == Some(4), "{code:?} {err}");
    assert_eq!(got.lock().unwrap().len(), count);
    // What comes back may lead elsewhere, be an error, or not be what was said.
    for (name, told) in [("away", "redirect"), ("gone", "404: no such city"), ("wrong", "`/city`")] {
        let (code, out, err) = agent.call(name, &json!({ "city": "x" }));
        assert!(code == Some(1) && out.is_empty() && err.contains(told), "{name}: {code:?} {out} {err}");
    }
    agent.variables.clear();
    let (code, _, err) = agent.call("weather", &json!({ "city": "x" }));
    assert!(code == Some(1) && err.contains("MY_VALUE is not set"), "{code:?} {err}");
    agent.verified();
    assert_eq!(agent.state_holds("c4n4ry"), [] as [PathBuf; 0]);
}

#[test]
fn a_rate_holds_from_one_call_to_the_next() {
    let agent = Agent::new(
        "tool-rate",
        "TOOL utcp:find\nTOOL utcp:other\nALLOW invoke find\nALLOW invoke other\nRATELIMIT find 2/hour\n",
    );
    agent.describe("find", &find());
    agent.describe("other", &find());
    let codes: Vec<Option<i32>> = (0..3).map(|_| agent.call("find", &json!({ "word": "INFO" })).0).collect();
    assert_eq!(codes, [Some(0), Some(0), Some(3)]);
    let (_, out, err) = agent.call("find", &json!({ "word": "INFO" }));
    assert!(out.is_empty() && err.contains("line 11"), "{out} {err}");
    // Nor does a session of another name begin the count anew.
    let (code, _, err) = agent.writ(&["tool", "call", "find", r#"{"word":"INFO"}"#, "--session", "fresh"]);
    assert!(code == Some(2) && err.contains("leave it out"), "{code:?} {err}");
    // Another tool has its own.
    assert_eq!(agent.call("other", &json!({ "word": "INFO" })).0, Some(0));
    agent.verified();
}

#[test]
fn a_tool_is_the_locked_one_or_none() {
    let agent = Agent::new(
        "tool-lock",
        "TOOL utcp:find\nTOOL utcp:plain\nTOOLSET utcp:more\nALLOW invoke find\nALLOW invoke plain\nALLOW invoke utcp:extra\n",
    );
    agent.describe("find", &find());
    agent.describe("extra", &find());
    agent.write("toolsets/more.json", r#"["utcp:extra"]"#);
    agent.program("tools/plain", "#!/bin/sh\necho plain\n");
    let (code, _, err) = agent.writ(&["lock"]);
    assert_eq!(code, Some(0), "{err}");
    for (tool, arguments) in
        [("find", json!({ "word": "INFO" })), ("extra", json!({ "word": "INFO" })), ("plain", json!({}))]
    {
        let (code, _, err) = agent.call(tool, &arguments);
        assert_eq!(code, Some(0), "{tool}: {err}");
        assert_eq!(decided(&agent, tool), Some(0), "{tool}");
    }
    assert_eq!((agent.call("missing", &json!({})).0, decided(&agent, "missing")), (Some(3), Some(3)));
    // Another description, another program, another list, another Agentfile.
    let mut other = find();
    other["description"] = json!("Anything else.");
    agent.describe("find", &other);
    agent.program("tools/plain", "#!/bin/sh\necho other\n");
    for (tool, what) in [("find", "tools/utcp:find/digest"), ("plain", "tools/utcp:plain/program")] {
        let (code, out, err) = agent.call(tool, &json!({ "word": "INFO" }));
        assert!(code == Some(3) && out.is_empty() && err.contains(what), "{tool}: {code:?} {out} {err}");
    }
    assert_eq!(agent.call("extra", &json!({ "word": "INFO" })).0, Some(0));
    agent.write("toolsets/more.json", r#"["utcp:extra", "utcp:find"]"#);
    let (code, _, err) = agent.call("extra", &json!({ "word": "INFO" }));
    assert!(code == Some(3) && err.contains("toolsets/utcp:more/hash"), "{code:?} {err}");
    assert_eq!(decided(&agent, "extra"), Some(3));
    // Nor is it held to a base by another list than the lock's.
    agent.write("Base", &fs::read_to_string(agent.folder().join("Agentfile")).unwrap());
    let lint = || agent.writ(&["agentfile", "lint", "--base", "Base"]);
    let (code, _, err) = lint();
    assert!(code == Some(3) && err.contains("toolsets/utcp:more/hash"), "{code:?} {err}");
    agent.write("toolsets/more.json", r#"["utcp:extra"]"#);
    let (_, _, err) = lint();
    assert!(!err.contains("toolsets/utcp:more/hash"), "{err}");
    agent.write("Agentfile", &(fs::read_to_string(agent.folder().join("Agentfile")).unwrap() + "TIMEOUT 9\n"));
    let (code, _, err) = agent.call("extra", &json!({ "word": "INFO" }));
    assert!(code == Some(3) && err.contains("agentfile_hash"), "{code:?} {err}");
    let (code, _, err) = agent.writ(&["lock"]);
    assert_eq!(code, Some(0), "{err}");
    let (code, out, _) = agent.call("plain", &json!({}));
    assert_eq!((code, out.as_str()), (Some(0), "other\n"));
}

/// What a decision by itself comes to.
fn decided(agent: &Agent, tool: &str) -> Option<i32> {
    agent.writ(&["agentfile", "decide", "--no-record", "--action", "tool.invoke", "--resource", tool]).0
}

/// An MCP server in Python, as its specification has it: two tools, one of which the Agentfile forbids.
const SERVER: &str = r#"import json, sys
open("started", "a").write("x")
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    p = m.get("params", {})
    if m["method"] == "initialize":
        r = {"protocolVersion": p["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list":
        words = open("words").read() if __import__("os").path.exists("words") else "Adds."
        number = {"type": "number"}
        r = {"tools": [{"name": "add", "description": words, "inputSchema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
             "outputSchema": {"type": "object", "properties": {"sum": number}, "required": ["sum"]}}, {"name": "drop", "inputSchema": {"type": "object"}}]}
    else:
        a = p["arguments"]
        s = a["a"] + a["b"]
        r = {"content": [{"type": "text", "text": str(s)}], "structuredContent": {"sum": s if s < 100 else "much"}}
        if s < 0:
            r = {"content": [{"type": "text", "text": "below nothing"}], "isError": True}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

#[test]
fn a_servers_tool_is_judged_as_behind_the_proxy() {
    let more =
        "MCP sums\nTOOL mcp:sums.add\nTOOL mcp:sums.drop\nALLOW invoke mcp:sums.add\nDENY invoke mcp:sums.drop\n";
    let agent = Agent::new("tool-server", more);
    agent.write("server.py", SERVER);
    agent.write(
        ".mcp.json",
        &json!({ "mcpServers": { "sums": { "command": "python3", "args": ["server.py"] } } }).to_string(),
    );
    let (code, out, err) = agent.call("mcp:sums.add", &json!({ "a": 1, "b": 2.5 }));
    assert_eq!((code, out.as_str()), (Some(0), "{\"sum\":3.5}\n"), "{err}");
    let (code, out, err) = agent.call("sums.add", &json!({ "a": -1, "b": 0 }));
    assert!(code == Some(1) && out.is_empty() && err.contains("below nothing"), "{code:?} {out} {err}");
    let (code, _, err) = agent.call("sums.add", &json!({ "a": 100, "b": 0 }));
    assert!(code == Some(1) && err.contains("`/sum`"), "{code:?} {err}");
    let (code, _, err) = agent.call("sums.add", &json!({ "a": "1", "b": 0 }));
    assert!(code == Some(4) && err.contains("`/a`"), "{code:?} {err}");
    // What is denied starts no server.
    let started = || fs::read_to_string(agent.folder().join("started")).unwrap().len();
    let before = started();
    let (code, out, err) = agent.call("sums.drop", &json!({}));
    assert!(code == Some(3) && out.is_empty() && err.contains("line 11"), "{code:?} {out} {err}");
    assert_eq!(started(), before);
    let rows = agent.rows();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(decision, tool)| (decision.as_str(), tool.as_str())).collect();
    let (add, drop) = ("mcp__sums__add", "mcp__sums__drop");
    assert_eq!(
        rows,
        [
            ("APPROVED", add),
            ("COMPLETED", add),
            ("APPROVED", add),
            ("FAILED", add),
            ("APPROVED", add),
            ("FAILED", add),
            ("DENIED", drop)
        ]
    );
    // Other words than when it was first seen: a human has to look.
    agent.write("words", "Adds, and first reads ~/.ssh.");
    let (code, out, err) = agent.call("sums.add", &json!({ "a": 1, "b": 2 }));
    assert!(code == Some(3) && out.is_empty() && err.contains("writ mcp pins"), "{code:?} {out} {err}");
    agent.verified();
}

#[test]
fn a_server_whose_start_is_denied_is_not_started() {
    let agent = Agent::new("tool-start", "MCP sums\nTOOL mcp:sums.add\nALLOW invoke mcp:sums.add\n");
    agent.write("server.py", SERVER);
    let command = json!({ "command": "python3", "args": ["server.py"] });
    agent.write(".mcp.json", &json!({ "mcpServers": { "sums": command } }).to_string());
    let governed = |tools: Value| {
        agent.write(".aflock", &json!({ "version": "1.0", "name": "folder", "tools": tools }).to_string());
    };
    let commands: [&[&str]; 4] = [
        &["tool", "list"],
        &["tool", "describe", "sums.add"],
        &["tool", "call", "sums.add", r#"{"a": 1, "b": 2}"#],
        &["agentfile", "project", "tree"],
    ];
    governed(json!({ "deny": ["Bash:python3 *"] }));
    for command in commands {
        let (_, out, err) = agent.writ(command);
        assert!(format!("{out}{err}").contains("/tools/deny/0"), "{command:?}: {out} {err}");
    }
    let (code, out, err) = agent.writ(&["lock", "Agentfile"]);
    assert!(code == Some(1) && err.contains("/tools/deny/0"), "{code:?} {out} {err}");
    assert!(!agent.folder().join("started").exists() && !agent.folder().join("agentrc.lock").exists());
    // A list of tools names no servers.
    governed(json!({ "allow": ["mcp__sums__add"] }));
    for command in commands {
        let (code, out, err) = agent.writ(command);
        assert_eq!(code, Some(0), "{command:?}: {out} {err}");
    }
}

#[test]
fn what_governs_the_folder_holds_too() {
    let agent = Agent::new("tool-both", "TOOL utcp:find\nALLOW invoke find\n");
    agent.describe("find", &find());
    agent.write(".aflock", &json!({ "version": "1.0", "name": "folder", "files": { "deny": ["private/**"] }, "tools": { "deny": ["Bash:grep *"] } }).to_string());
    let (code, out, err) = agent.call("find", &json!({ "word": "INFO" }));
    assert!(code == Some(3) && out.is_empty() && err.contains("folder"), "{code:?} {out} {err}");
    agent.verified();
    fs::remove_dir_all(agent.place.folder.join("state")).unwrap();
    agent.write(
        ".aflock",
        &json!({ "version": "1.0", "name": "folder", "tools": { "deny": ["Bash:rm *"] } }).to_string(),
    );
    let (code, out, err) = agent.call("find", &json!({ "word": "INFO" }));
    assert_eq!((code, out.as_str()), (Some(0), "INFO one\n"), "{err}");
    agent.verified();
    // One that extends the Agentfile is both already.
    fs::remove_dir_all(agent.place.folder.join("state")).unwrap();
    agent.write(
        ".aflock",
        &json!({ "version": "1.0", "name": "folder", "extends": "./Agentfile", "tools": { "allow": ["find"] } })
            .to_string(),
    );
    let (code, out, err) = agent.call("find", &json!({ "word": "INFO" }));
    assert_eq!((code, out.as_str()), (Some(0), "INFO one\n"), "{err}");
    agent.verified();
}

#[test]
fn the_tree_is_used_as_a_shell_user_would() {
    let more = "TOOL utcp:find\nTOOL utcp:wipe\nTOOL utcp:runner\nFUNCTION ./functions/review.py:summarize\nSKILL ./skills/pr-review\nTIMEOUT 30\nLIMIT tool_calls 50\n\
                RATELIMIT find 600/hour\nALLOW invoke find\nDENY invoke wipe\n";
    let agent = Agent::new("tool-tree", more);
    agent.describe("find", &find());
    agent.describe(
        "wipe",
        &json!({ "tool_call_template": { "call_template_type": "cli", "commands": [{ "command": "rm log.txt" }] } }),
    );
    agent.write("functions/review.py", "def summarize(diff: str) -> str:\n    return diff\n");
    agent.write("skills/pr-review/SKILL.md", "# Review\nRead it all.\n");
    agent.write("skills/pr-review/more/list.md", "- a\n");
    let tree = agent.place.folder.join("agentrc");
    let (code, _, err) = agent.writ(&["agentfile", "project", tree.to_str().unwrap()]);
    assert!(code == Some(0) && err.contains("utcp:runner"), "{code:?} {err}");
    let read = |path: &str| fs::read_to_string(tree.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    // A shell that finds `writ`, in a folder that is not the Agentfile's.
    let shell = |line: &str| {
        let writ = agent.place.command(&[]);
        let folder = PathBuf::from(writ.get_program()).parent().unwrap().to_owned();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(line).current_dir(&agent.place.folder).env_clear().env("PATH", path).env("T", &tree);
        command.env("HOME", &agent.place.folder).env("WRIT_STATE_DIR", agent.place.folder.join("state"));
        ended(command, "")
    };
    let (code, out, err) = shell(r#""$T"/tools/find '{"word":"ERROR"}' | wc -l"#);
    assert_eq!((code, out.trim()), (Some(0), "2"), "{err}");
    let (code, out, err) = shell(r#"echo '{"word":"INFO"}' | "$T"/tools/find - && "$T"/tools/wipe; echo $?"#);
    assert!(code == Some(0) && out == "INFO one\n3\n" && err.contains("/Agentfile/16"), "{code:?} {out} {err}");
    let (code, out, _) = shell(r#""$T"/tools/wipe.events"#);
    assert!(code == Some(0) && out.lines().count() == 1 && out.contains("DENIED"), "{out}");
    assert!(read("tools/find.help").contains("word (string, required)  What is looked for"));
    let schema: Value = serde_json::from_str(&read("tools/find.schema.json")).unwrap();
    assert_eq!((schema["name"].as_str(), schema["inputs"]["required"][0].as_str()), (Some("utcp:find"), Some("word")));
    assert_eq!(read("skills/pr-review/SKILL.md"), "# Review\nRead it all.\n");
    assert_eq!(read("skills/pr-review/more/list.md"), "- a\n");
    assert!(read("functions/summarize").contains("functions/review.py"));
    assert!(read("proc/policy").contains("forbid(principal == AgentRC::Agent::\"worker\""));
    let limits: Value = serde_json::from_str(&read("proc/limits")).unwrap();
    assert_eq!((limits["timeoutSeconds"].as_u64(), limits["rates"][0]["count"].as_u64()), (Some(30), Some(600)));
    let audit: Value = serde_json::from_str(&read("proc/audit")).unwrap();
    assert_eq!((audit["audit"].as_str(), audit["session"].as_str()), (Some("all"), Some(agent.session().as_str())));
    assert!(PathBuf::from(audit["ledger"].as_str().unwrap()).is_file());
    agent.verified();
    // Again, the same; elsewhere, the same.
    let all = |folder: &PathBuf| {
        let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
        let mut rest = vec![folder.clone()];
        while let Some(next) = rest.pop() {
            for entry in fs::read_dir(&next).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    rest.push(path)
                } else {
                    files.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()))
                }
            }
        }
        files.sort();
        files
    };
    let before = all(&tree);
    assert_eq!(agent.writ(&["agentfile", "project", tree.to_str().unwrap()]).0, Some(0));
    assert_eq!(all(&tree), before);
    let other = agent.place.folder.join("other");
    assert_eq!(agent.writ(&["agentfile", "project", other.to_str().unwrap()]).0, Some(0));
    assert_eq!(all(&other), before);
    // What is somebody's own stays, and what is in the way is refused.
    fs::write(tree.join("tools/find"), "mine\n").unwrap();
    let (code, _, err) = agent.writ(&["agentfile", "project", tree.to_str().unwrap()]);
    assert!(
        code == Some(1) && err.contains("tools/find is there already") && read("tools/find") == "mine\n",
        "{code:?} {err}"
    );
    fs::write(other.join("kept"), "mine\n").unwrap();
    agent.write(
        "Agentfile",
        &fs::read_to_string(agent.folder().join("Agentfile"))
            .unwrap()
            .replace("TOOL utcp:wipe\n", "")
            .replace("DENY invoke wipe\n", ""),
    );
    assert_eq!(agent.writ(&["agentfile", "project", other.to_str().unwrap()]).0, Some(0));
    assert!(other.join("kept").is_file() && !other.join("tools/wipe").exists() && other.join("tools/find").is_file());
    // Nothing is written through a link.
    let linked = agent.place.folder.join("linked");
    fs::create_dir_all(&linked).unwrap();
    std::os::unix::fs::symlink(agent.folder(), linked.join("tools")).unwrap();
    let (code, _, err) = agent.writ(&["agentfile", "project", linked.to_str().unwrap()]);
    assert!(code == Some(1) && err.contains("no folder of its own"), "{code:?} {err}");
    // A name that is no file's.
    agent.write("Agentfile", &format!("{HEAD}TOOL utcp:a/b\nALLOW invoke utcp:a/b\n"));
    let (code, _, err) = agent.writ(&["agentfile", "project", agent.place.folder.join("third").to_str().unwrap()]);
    assert!(code == Some(1) && err.contains("`a/b`"), "{code:?} {err}");
}

#[test]
fn a_tools_sandbox_is_the_agentfiles_isolation() {
    let agent = Agent::new("tool-sandbox", "TOOL utcp:peek\nALLOW invoke peek\nISOLATION local\nLIMIT file_size 1\n");
    agent.program(
        "tools/peek",
        "#!/bin/sh\nread line; echo \"$line\"; cat ../outside.txt 2>/dev/null || echo hidden; echo x > written.txt\n",
    );
    fs::write(agent.place.folder.join("outside.txt"), "c4n4ry\n").unwrap();
    let (code, out, err) = agent.call("peek", &json!({ "a": 1 }));
    assert_eq!((code, out.as_str()), (Some(0), "{\"a\":1}\nhidden\n"), "{err}");
    assert_eq!(fs::read_to_string(agent.folder().join("written.txt")).unwrap(), "x\n");
    let report = agent.verified();
    let sandbox = report["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "sandbox");
    assert!(sandbox.is_some_and(|phase| phase["outcome"] == "passed"), "{report:#}");
}

#[test]
fn tools_are_listed_and_described() {
    let agent = Agent::new("tool-list", "TOOL utcp:find\nTOOL utcp:nowhere\nALLOW invoke find\n");
    agent.describe("find", &find());
    let (code, out, err) = agent.writ(&["tool", "list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out} {err}"));
    assert_eq!((code, listed[0]["how"].as_str(), listed[1]["how"].as_str()), (Some(0), Some("cli"), None));
    assert!(listed[1]["problem"].as_str().unwrap().contains("tools/nowhere"), "{listed}");
    let (code, out, _) = agent.writ(&["tool", "describe", "find"]);
    assert!(
        code == Some(0)
            && out.contains("Lines of the log that hold a word.")
            && out.contains("writ tool call utcp:find"),
        "{out}"
    );
    let (code, out, _) = agent.writ(&["tool", "describe", "find", "--format", "json"]);
    assert!(code == Some(0) && serde_json::from_str::<Value>(&out).unwrap()["outputs"]["type"] == "string");
    let (code, _, err) = agent.writ(&["tool", "describe", "none"]);
    assert!(code == Some(1) && err.contains("`none`"), "{code:?} {err}");
}
