//! `writ mcp serve` on pipes and on a socket: both lifecycles, every tool, and what hostile lines do to it.

mod conformance;
mod server;

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use server::{Http, Pipes, folder, initialize, meta};

const SHELL: &str = "recourse_evaluate_shell";
const VERIFY: &str = "recourse_verify_attestation";

/// The text a model gets, which is the structured content again.
fn report(result: &Value) -> &Value {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let report = &result["structuredContent"];
    assert_eq!(serde_json::from_str::<Value>(text).as_ref().ok(), Some(report), "{result:#}");
    report
}

fn refusal(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result:#}");
    assert!(result["structuredContent"].is_null(), "{result:#}");
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn both_lifecycles_find_the_same_tools() {
    let folder = folder("lifecycles");
    let mut old = Pipes::start(&folder, &[]);
    let probed = old.ask("server/discover", json!({ "_meta": meta() }));
    let versions = probed["result"]["supportedVersions"].as_array().unwrap().clone();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-06-18")), "{probed:#}");
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut other = Pipes::start(&folder, &[]);
        let mut params = initialize();
        params["protocolVersion"] = json!(version);
        assert_eq!(other.ask("initialize", params)["result"]["protocolVersion"], version);
        assert_eq!(other.ask("ping", json!({}))["result"], json!({}));
    }
    old.ask("initialize", initialize());
    let tools = old.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected =
        [SHELL, "recourse_evaluate_terraform", "recourse_evaluate_mcp_call", "recourse_supported_resources", VERIFY];
    assert_eq!(names, expected);
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool:#}");
        assert_eq!((&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]), (&json!("object"), &json!("object")));
    }

    let mut new = Pipes::start(&folder, &[]);
    let listed = new.ask("tools/list", json!({ "_meta": meta() }));
    assert_eq!(listed["result"]["tools"], tools, "without a handshake");
    let called = new.ask("tools/call", json!({ "name": SHELL, "arguments": { "command": "ls" }, "_meta": meta() }));
    assert_eq!(report(&called["result"])["riskAssessment"], "allow");
    assert_eq!(new.end(), (vec![], true));
}

#[test]
fn each_tool_answers_in_its_shape() {
    let folder = folder("tools");
    let mut server = Pipes::open(&folder, &[]);

    let shell = server.call(SHELL, json!({ "command": "rm -rf /" }));
    assert_eq!(report(&shell)["schemaVersion"], "recourse.consequence.v1");
    assert_eq!(report(&shell)["riskAssessment"], "block");
    assert!(report(&shell)["attestation"].is_null(), "off unless it is turned on");

    let change = json!({ "address": "aws_s3_bucket.a", "mode": "managed", "type": "aws_s3_bucket", "name": "a",
        "provider_name": "aws", "change": { "actions": ["delete"], "before": { "bucket": "a" }, "after": null } });
    let plan = json!({ "format_version": "1.2", "terraform_version": "1.9.0", "resource_changes": [change] });
    let object = server.call("recourse_evaluate_terraform", json!({ "plan": plan }));
    let text = server.call("recourse_evaluate_terraform", json!({ "plan": plan.to_string(), "state": null }));
    assert_eq!(report(&object)["riskAssessment"], "block");
    assert_eq!(report(&object), report(&text));

    let call = json!({ "tool": "execute_sql", "server": "db", "arguments": { "sql": "DROP TABLE users" } });
    let call = server.call("recourse_evaluate_mcp_call", call);
    assert_eq!(report(&call)["riskAssessment"], "block");

    let all = server.call("recourse_supported_resources", json!({}));
    let one = server.call("recourse_supported_resources", json!({ "filter": "aws_s3_bucket" }));
    let count = |result: &Value| report(result)["terraform"].as_array().unwrap().len();
    assert!(count(&all) > 175 && count(&one) >= 1 && count(&one) < count(&all), "{} of {}", count(&one), count(&all));
    let bucket = report(&one)["terraform"].as_array().unwrap().iter().find(|row| row["type"] == "aws_s3_bucket");
    assert_eq!(bucket.unwrap()["tier"], 4);
    let git = server.call("recourse_supported_resources", json!({ "filter": "force-push" }));
    assert!(report(&git)["shell"][0]["rules"].as_array().unwrap().iter().any(|rule| rule["id"] == "git/force-push"));
    assert_eq!(server.end(), (vec![], true));
}

#[test]
fn what_cannot_be_evaluated_is_told_to_the_model() {
    let folder = folder("refusals");
    let mut server = Pipes::open(&folder, &[]);
    for (tool, arguments, part) in [
        (SHELL, json!({}), "`command` is missing"),
        (SHELL, json!({ "command": 5 }), "not a string"),
        (SHELL, json!({ "comand": "ls" }), "unknown argument `comand`"),
        ("recourse_evaluate_terraform", json!({ "plan": "{" }), "no JSON document"),
        ("recourse_evaluate_terraform", json!({ "plan": {} }), ""),
        ("recourse_evaluate_mcp_call", json!({ "server": "x" }), "`tool` is missing"),
        ("recourse_supported_resources", json!({ "filter": [] }), "not a string"),
        (VERIFY, json!({}), "either"),
        (VERIFY, json!({ "attestation": {}, "uri": "x" }), "either"),
    ] {
        let result = server.call(tool, arguments.clone());
        assert!(refusal(&result).contains(part), "{tool} {arguments}: {result:#}");
    }
    let unknown = server.ask("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
    assert_eq!(server.ask("tools/call", json!({ "name": 5 }))["error"]["code"], -32602);
    assert_eq!(server.ask("no/such", json!({}))["error"]["code"], -32601);
}

#[test]
fn no_secret_leaves() {
    let folder = folder("secrets");
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let mut server = Pipes::open(&folder, &["--attest"]);
    let line = format!(
        "curl -H 'Authorization: Bearer {secret}' -X DELETE https://x.example/{secret} && rm -rf /srv/{secret}"
    );
    let result = server.call(SHELL, json!({ "command": line }));
    assert!(report(&result)["attestation"].is_object());
    assert!(!result.to_string().contains(&secret), "{result:#}");
    let bad = server.call(SHELL, json!({ "command": "ls", (secret.clone()): 1 }));
    assert!(!bad.to_string().contains(&secret), "{bad:#}");
}

#[test]
fn attestations_come_with_the_report_and_verify() {
    let folder = folder("attested");
    let mut server = Pipes::open(&folder, &["--attest"]);
    let result = server.call(SHELL, json!({ "command": "git push --force", "cwd": "/srv" }));
    let mut bare = report(&result).clone();
    let attestation = bare.as_object_mut().unwrap().remove("attestation").expect("attested");
    assert_eq!(attestation["output"], bare, "what was signed is what was said");
    assert_eq!(attestation["input"]["source"], "shell");

    for (cwd, expected) in [(Value::Null, "work"), (json!("sub"), "work/sub"), (json!("/srv"), "/srv")] {
        let result = server.call(SHELL, json!({ "command": "ls", "cwd": cwd }));
        assert_eq!(report(&result)["attestation"]["input"]["cwd"], json!(folder.join(expected)), "from where it runs");
    }

    let good = server.call(VERIFY, json!({ "attestation": attestation }));
    assert_eq!(report(&good)["valid"], true, "{good:#}");
    for name in ["key_id", "key_state", "verdict", "expires_at", "detail"] {
        assert!(report(&good)[name].is_string(), "{name}: {good:#}");
    }
    assert_eq!(report(&good)["verdict"], bare["riskAssessment"]);
    for same in [json!({ "attestation": attestation.to_string() }), json!({ "uri": attestation["attestation_uri"] })] {
        let again = server.call(VERIFY, same);
        assert_eq!(report(&again), report(&good));
    }

    let changed = |name: &str, value: Value| {
        let mut other = attestation.clone();
        other[name] = value;
        json!({ "attestation": other })
    };
    let uri = attestation["attestation_uri"].as_str().unwrap();
    let elsewhere = uri.replace("127.0.0.1", "writ.example");
    for (arguments, code) in [
        (changed("expires_at", json!("2999-01-01T00:00:00Z")), "signature_invalid"),
        (changed("output", json!({ "riskAssessment": "allow" })), "invalid_attestation"),
        (changed("key_id", json!("another")), "invalid_attestation"),
        (changed("attestation_uri", json!(elsewhere)), "instance_not_trusted"),
        (json!({ "attestation": {} }), "invalid_attestation"),
        (json!({ "attestation": "{" }), "invalid_attestation"),
        (json!({ "uri": elsewhere }), "instance_not_trusted"),
        (json!({ "uri": "http://127.0.0.1:7411/../keys" }), "invalid_attestation"),
        (json!({ "uri": uri.replace(&uri[uri.len() - 37..uri.len() - 5], &"0".repeat(32)) }), "attestation_absent"),
    ] {
        let bad = server.call(VERIFY, arguments);
        assert_eq!(report(&bad)["valid"], false, "{bad:#}");
        assert_eq!(report(&bad)["code"], code, "{bad:#}");
        assert!(report(&bad)["verdict"].is_null(), "{bad:#}");
    }
    assert_eq!(server.end(), (vec![], true));

    let mut later = Pipes::open(&folder, &[]);
    assert!(report(&later.call(SHELL, json!({ "command": "ls" })))["attestation"].is_null());
    assert_eq!(report(&later.call(VERIFY, json!({ "uri": uri })))["valid"], true, "it outlives the server");
    let mut stranger = Pipes::open(&self::folder("stranger"), &[]);
    let foreign = stranger.call(VERIFY, json!({ "attestation": attestation }));
    assert_eq!(report(&foreign)["code"], "instance_not_trusted");
}

#[test]
fn without_its_attestation_no_report_leaves() {
    let folder = folder("keyless");
    let mut server = Pipes::open(&folder, &["--attest"]);
    let keys = folder.join("state/keys");
    drop(fs::remove_dir_all(&keys));
    fs::write(&keys, "not a folder").unwrap();
    let result = server.call(SHELL, json!({ "command": "ls" }));
    assert!(refusal(&result).contains("no attestation could be made"), "{result:#}");
}

#[test]
fn a_line_that_is_no_message_is_answered_and_ends_nothing() {
    let folder = folder("lines");
    let mut server = Pipes::start(&folder, &[]);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let wide = [br#"{"jsonrpc":"2.0","id":1,"method":""#.to_vec(), vec![b'x'; 33 << 20], br#""}"#.to_vec()].concat();
    let wrong: [(&[u8], i64); 9] = [
        (b"nonsense", -32700),
        (b"{\"jsonrpc\":", -32700),
        (b"\xff\xfe\x00", -32700),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700),
        (&deep, -32700),
        (&wide, -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (b"null", -32600),
    ];
    let ignored: [&[u8]; 7] = [
        b"",
        b"\r",
        br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        br#"{"jsonrpc":"2.0","method":"$/what"}"#,
        br#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        br#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#,
    ];
    for round in 0..2 {
        for (line, code) in wrong {
            server.line(line);
            let answer = server.next();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{answer:#}");
        }
        ignored.iter().for_each(|line| server.line(line));
        assert_eq!(server.ask("ping", json!({}))["result"], json!({}), "round {round}");
        if round == 0 {
            server.ask("initialize", initialize());
        }
    }
    assert_eq!(server.end(), (vec![], true));
}

/// A generator of test data; the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).unwrap()).unwrap()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(1000)),
            3 => json!(-0.5),
            4 => json!("rm -rf / $(`"),
            5 => json!(["tools/call", "ping", "initialize", "2.0", "", "\u{0}"][self.roll(6)]),
            6 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let names =
                    ["jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "arguments", "command"];
                Value::Object(
                    (0..self.roll(5))
                        .map(|_| (names[self.roll(names.len())].to_owned(), self.value(depth - 1)))
                        .collect(),
                )
            }
        }
    }

    /// A line without a line's end in it.
    fn line(&mut self) -> Vec<u8> {
        match self.roll(4) {
            0 => (0..self.roll(200))
                .map(|_| u8::try_from(self.roll(256)).unwrap())
                .filter(|byte| *byte != b'\n')
                .collect(),
            1 => self.value(4).to_string().into_bytes(),
            2 => {
                let mut message = json!({ "jsonrpc": "2.0", "method": "tools/call", "params": self.value(3) });
                if self.roll(2) == 0 {
                    message["id"] = self.value(1);
                }
                message.to_string().into_bytes()
            }
            _ => {
                let message = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params":
                    { "name": SHELL, "arguments": { "command": "rm -rf $(echo x)", "cwd": self.value(2) } } });
                let mut bytes = message.to_string().into_bytes();
                for _ in 0..self.roll(3) {
                    let at = self.roll(bytes.len());
                    bytes[at] = u8::try_from(32 + self.roll(224)).unwrap();
                }
                bytes
            }
        }
    }
}

#[test]
fn the_server_outlives_any_lines() {
    let folder = folder("garbage");
    for (seed, open) in [(0x9e37_79b9_7f4a_7c15, false), (0xdead_beef_cafe_f00d, true)] {
        let mut dice = Dice(seed);
        let mut server = if open { Pipes::open(&folder, &[]) } else { Pipes::start(&folder, &[]) };
        for _ in 0..2_000 {
            server.line(&dice.line());
        }
        server.line(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
        let answer = std::iter::repeat_with(|| server.next()).find(|answer| {
            assert_eq!(answer["jsonrpc"], "2.0");
            assert!(answer["result"].is_null() != answer["error"].is_null(), "{answer:#}");
            answer["id"] == "last"
        });
        assert_eq!(answer.unwrap()["result"], json!({}));
        assert!(server.end().1);
    }
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let folder = folder("end");
    let mut server = Pipes::open(&folder, &["--attest"]);
    for id in 100..120 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": SHELL, "arguments": { "command": "rm -rf src" } } });
        server.line(call.to_string().as_bytes());
    }
    let (answers, well) = server.end();
    let mut ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!((ids, well), ((100..120).collect(), true));
    assert!(answers.iter().all(|answer| answer["result"]["structuredContent"]["attestation"].is_object()));
}

#[test]
fn http_answers_and_refuses() {
    let folder = folder("http");
    let mut server = Http::start(&folder, &["--attest"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize() });
    let call = |arguments: Value| json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": SHELL, "arguments": arguments } });
    assert_eq!(server.ask(&hello, &[])["result"]["protocolVersion"], "2025-11-25");
    let answer =
        server.ask(&call(json!({ "command": "rm -rf /", "cwd": "/srv" })), &[("Mcp-Protocol-Version", "2025-11-25")]);
    assert_eq!(report(&answer["result"])["riskAssessment"], "block");
    assert!(report(&answer["result"])["attestation"].is_object());
    let relative = server.ask(&call(json!({ "command": "ls", "cwd": "src" })), &[]);
    assert!(refusal(&relative["result"]).contains("absolute"));
    let mut modern = call(json!({ "command": "ls" }));
    modern["params"]["_meta"] = meta();
    let headers = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", SHELL)];
    assert_eq!(report(&server.ask(&modern, &headers)["result"])["riskAssessment"], "allow");

    let hello = hello.to_string();
    let port = server.port;
    let own = format!("http://localhost:{port}");
    assert_eq!(server.post(hello.as_bytes(), &[("Origin", &own)]).0, 200);
    let second = [("Origin", own.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(server.post(hello.as_bytes(), &second).0, 400, "an origin behind another");
    assert_eq!(server.post(hello.as_bytes(), &[("Host", &format!("localhost:{port}"))]).0, 200);
    for header in [
        ("Host", "evil.example"),
        ("Host", "localhost:1"),
        ("Origin", "http://evil.example"),
        ("Origin", "http://localhost:1"),
        ("Origin", "null"),
    ] {
        assert_eq!(server.post(hello.as_bytes(), &[header]).0, 403, "{header:?}");
    }
    for (body, status, code) in [
        ("{".as_bytes(), 400, -32700),
        (b"[]", 400, -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, 400, -32600),
    ] {
        let (answered, body) = server.post(body, &[]);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((answered, &body["error"]["code"]), (status, &json!(code)));
    }
    // It answers before it has read everything, and the answer may be lost over what was still on its way.
    assert!(matches!(server.post(&vec![b' '; 33 << 20], &[]).0, 413 | 0));
    assert_eq!(server.post(hello.as_bytes(), &[("Content-Type", "text/plain")]).0, 415);
    assert!(server.stop(), "it ends well when asked to");
}

#[test]
fn what_cannot_be_served_is_said() {
    let folder = folder("usage");
    let run = |arguments: &[&str]| {
        let output = Command::new(server::binary()).args(["mcp", "serve"]).args(arguments).output().unwrap();
        output.status.code()
    };
    assert_eq!(run(&["--http", "example.com:80"]), Some(2));
    assert_eq!(run(&["--allow-host", "a.example"]), Some(2));
    // Beyond this machine only with tokens, and attestations only where others find them.
    assert_eq!(run(&["--http", "0.0.0.0:0"]), Some(2));
    assert_eq!(run(&["--http", "[::]:0", "--attest"]), Some(2));
    assert_eq!(run(&["--http", "0.0.0.0:0", "--attest", "--token-file", "/nowhere"]), Some(2));
    let taken = Http::start(&folder, &[]);
    assert_eq!(run(&["--http", &format!("127.0.0.1:{}", taken.port)]), Some(1));
}

#[test]
fn what_its_urls_promise_is_served_to_everybody() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder("promise");
    let (tokens, token) = (folder.join("tokens"), "a".repeat(32));
    std::fs::write(&tokens, &token).unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Http::start(&folder, &["--attest", "--token-file", tokens.to_str().unwrap()]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "recourse_evaluate_shell", "arguments": { "command": "rm -rf ~/x", "home": "/home/me" }, "_meta": meta() } });
    let body = call.to_string();
    assert_eq!(server.post(body.as_bytes(), &[]).0, 401);
    assert_eq!(server.post(body.as_bytes(), &[("Authorization", "Bearer wrong")]).0, 401);
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "recourse_evaluate_shell"),
    ];
    let answer = server.ask(&call, &headers);
    let attestation = &report(&answer["result"])["attestation"];
    let uri = attestation["attestation_uri"].as_str().unwrap();
    let path = uri.strip_prefix(&format!("http://127.0.0.1:{}", server.port)).expect("its own address");
    let (status, copy) = server.get(path);
    assert_eq!((status, serde_json::from_str::<Value>(&copy).unwrap()), (200, attestation.clone()));
    let (status, registry) = server.get("/.well-known/recourse-keys.json");
    assert_eq!(status, 200);
    assert!(registry.contains(attestation["key_id"].as_str().unwrap()));
    for path in ["/.well-known/attestations/0123456789abcdef0123456789abcdef.json", "/.well-known/attestations/x.json"]
    {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
}
