//! What `writ serve` sends to a collector, and what it does without one.

#[cfg(test)]
mod service_parts;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use service_parts::{Client, Folder, LINE, Server, command};

/// A collector that takes one request: its port, and the request's head and body.
fn collector() -> (u16, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let (mut request, mut part) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(end) = request.windows(4).position(|end| end == b"\r\n\r\n") {
                let (head, body) = (String::from_utf8_lossy(&request[..end]).into_owned(), &request[end + 4..]);
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() >= length.parse().unwrap() {
                    client.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                    return (head, body.to_vec());
                }
            }
            let read = client.read(&mut part).unwrap();
            request.extend_from_slice(&part[..read]);
        }
    });
    (port, taken)
}

#[test]
fn spans_reach_a_collector() {
    let folder = Folder::new("serve-spans");
    let (port, taken) = collector();
    let mut start = command(&folder.state(), &["--listen", "127.0.0.1:0", "--log", "json", "--attest"]);
    start.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{port}"));
    let server = Server::started(start);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let headers = format!("content-type: application/json\r\ntraceparent: 00-{trace}-b7ad6b7169203331-01\r\n");
    server.client().request("POST", "/api/evaluate", &headers, LINE.as_bytes());
    let (head, body) = taken.join().unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1") && head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_slice(&body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["evaluate", "attest", "POST /api/evaluate"]);
    let whole = &spans[2];
    assert_eq!((&whole["traceId"], &whole["parentSpanId"]), (&trace.into(), &"b7ad6b7169203331".into()));
    assert!(spans[..2].iter().all(|span| span["parentSpanId"] == whole["spanId"] && span["traceId"] == trace));
    let verdict = whole["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == "writ.verdict");
    assert_eq!(verdict.unwrap()["value"]["stringValue"], "block");
    let nanos = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
    assert!(spans.iter().all(|span| nanos(span, "startTimeUnixNano") <= nanos(span, "endTimeUnixNano")));
    // A collector that is gone holds nothing up.
    assert_eq!(Client::new(server.address).evaluate(LINE).status, 200);
    server.stop();
}

#[test]
fn metrics_reach_a_collector_by_its_name() {
    let folder = Folder::new("serve-otlp-metrics");
    let (port, taken) = collector();
    let mut start = command(&folder.state(), &["--listen", "127.0.0.1:0", "--log", "json"]);
    start.env("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", format!("http://localhost:{port}/otlp/v1/metrics"));
    start.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf").env("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=a-team");
    start.env("OTEL_SERVICE_NAME", "judge").env("OTEL_METRIC_EXPORT_INTERVAL", "1000");
    let server = Server::started(start);
    assert_eq!(server.client().evaluate(LINE).status, 200);
    let (head, body) = taken.join().unwrap();
    assert!(head.starts_with("POST /otlp/v1/metrics HTTP/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf") && head.contains("x-scope: a-team"), "{head}");
    for text in ["http.server.request.duration", "writ.verdicts", "writ.connections", "judge", "/api/evaluate", "block"]
    {
        assert!(body.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
    }
    server.stop();
}

#[test]
fn spans_go_over_tls_to_whom_the_certificate_names() {
    let folder = Folder::new("serve-otlp-tls");
    let (certificate, key) = (folder.0.join("cert.pem"), folder.0.join("key.pem"));
    let mut made = Command::new("openssl");
    made.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    made.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    made.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]);
    made.arg(&key).arg("-out").arg(&certificate).stderr(Stdio::null());
    assert!(made.status().expect("this test needs openssl").success());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut collector = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
        .arg(&certificate)
        .arg("-key")
        .arg(&key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    let mut start = command(&folder.state(), &["--listen", "127.0.0.1:0", "--log", "json"]);
    start.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", format!("https://localhost:{port}/spans"));
    start.env("OTEL_EXPORTER_OTLP_CERTIFICATE", &certificate).env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let server = Server::started(start);
    assert_eq!(server.client().evaluate(LINE).status, 200);
    let (mut taken, mut part) = (String::new(), [0; 4096]);
    while !(taken.starts_with("POST /spans HTTP/1.1") && taken.contains("POST /api/evaluate")) {
        let read = collector.stdout.as_mut().unwrap().read(&mut part).unwrap();
        taken.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    collector.stdin.as_mut().unwrap().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
    thread::sleep(Duration::from_millis(200));
    drop(collector.kill());
    drop(collector.wait());
    let log = server.stop();
    assert!(!log.contains("spans_lost"), "{log}");
}

#[test]
fn a_collector_that_is_not_there_is_told_of() {
    let folder = Folder::new("serve-otlp-gone");
    let mut start =
        command(&folder.state(), &["--listen", "127.0.0.1:0", "--log", "json", "--otlp", "http://127.0.0.1:1"]);
    start.env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let server = Server::started(start);
    assert_eq!(server.client().evaluate(LINE).status, 200);
    let metrics = (0..100).find_map(|_| {
        thread::sleep(Duration::from_millis(100));
        let metrics = server.client().get("/metrics").text();
        metrics.lines().any(|line| line.starts_with("writ_spans_lost_total ") && !line.ends_with(" 0")).then_some(())
    });
    assert!(metrics.is_some(), "nothing was counted");
    let log = server.stop();
    assert!(log.contains("\"event\":\"spans_lost\"") && log.contains("refused"), "{log}");
    let wrong = command(&folder.state(), &["--otlp", "collector.example"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
}

/// A variable that says something nobody can do is told, and a file that never ends is not waited for.
#[test]
fn variables_that_cannot_be_meant_are_told() {
    let folder = Folder::new("serve-otlp-wrong");
    let pipe = folder.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "junk"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", pipe.to_str().unwrap()),
    ] {
        let mut start = command(&folder.state(), &["--listen", "127.0.0.1:0"]);
        start.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").env(name, value);
        let output = start.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{name}: {said}");
        assert!(said.contains(name) || said.contains("pipe"), "{name}: {said}");
    }
}
