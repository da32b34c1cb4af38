//! Secrets: put in for their hosts, found nowhere else.

use std::io::{Read, Write};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use writ_egress::Inject;

use crate::host::{Host, TestAuthority, echo, talk, text};
use crate::world::{VALUE, World, say};

fn get(path: &str, host: &str, port: u16, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}Connection: close\r\n\r\n")
}

#[test]
fn a_value_is_put_in_and_scrubbed_from_the_answer() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let mark = world.secret(&["api.test"]);
    let run = world.run();
    let basic = STANDARD.encode(format!("user:{mark}"));
    for (fields, field, sent) in [
        (format!("Authorization: Bearer {mark}\r\n"), "authorization", format!("Bearer {VALUE}")),
        (
            format!("Authorization: Basic {basic}\r\n"),
            "authorization",
            format!("Basic {}", STANDARD.encode(format!("user:{VALUE}"))),
        ),
        (format!("Cookie: a=b; s={mark}\r\n"), "cookie", format!("a=b; s={VALUE}")),
        (format!("X-Api-Key: {mark}\r\n"), "x-api-key", VALUE.to_owned()),
        (format!("Private-Token: {mark}\r\nRange: bytes=0-3\r\n"), "private-token", VALUE.to_owned()),
    ] {
        let answer = run.ask("api.test", host.port, &get("/", "api.test", host.port, &fields));
        let seen = host.seen().pop().unwrap();
        assert_eq!(seen.field(field), Some(sent.clone()));
        assert_eq!((seen.field("accept-encoding").as_deref(), seen.field("range")), (Some("identity"), None));
        // The host says it again, and the program does not get to see it.
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("****"), "{answer}");
        assert!(!answer.contains(VALUE) && !answer.contains(&sent[6..]), "{answer}");
    }
    let records = run.records(5);
    assert!(records.iter().all(|record| record.secrets == ["token"] && record.terminated && record.requests == 1));
    let text = format!("{:?}", run.records.lock().unwrap());
    assert!(!text.contains("hunter2"));
}

#[test]
fn a_value_goes_into_the_query_where_the_rule_says_so() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let mark = world.secret(&["api.test"]);
    world.rules.secrets[0].inject = Inject::Query;
    let run = world.run();
    let answer = run.ask("api.test", host.port, &get(&format!("/q?key={mark}&x"), "api.test", host.port, ""));
    assert!(host.seen()[0].head.starts_with("GET /q?key=hunter2-s3cr3t%2Fvalue%2B0123456789&x "));
    assert!(answer.starts_with("HTTP/1.1 200 ") && !answer.contains("s3cr3t%2Fvalue"), "{answer}");
}

#[test]
fn a_placeholder_for_another_host_is_blocked_and_recorded() {
    let mut world = World::new(&["*.test"]);
    let bound = world.tls(&["api.test"], echo());
    let seen = world.tls(&["seen.test"], echo());
    let plain = world.plain(&["plain.test"], echo());
    let mark = world.secret(&["api.test"]);
    world.rules.terminated = crate::world::patterns(&["seen.test"]);
    let run = world.run();
    let basic = STANDARD.encode(format!("u:{mark}"));
    let post = |host: &str, port: u16, fields: &str, body: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {}\r\nConnection: close\r\n{fields}\r\n{body}",
            body.len()
        )
    };
    let at = |fields: &str, body: &str| run.ask("seen.test", seen.port, &post("seen.test", seen.port, fields, body));
    for answer in [
        at(&format!("Authorization: Bearer {mark}\r\n"), ""),
        at(&format!("Authorization: Basic {basic}\r\n"), ""),
        at(&format!("X-{mark}: a\r\n"), ""),
        at("", &format!("a{mark}b")),
        at("", &format!("{}{basic}", "x".repeat(100_000))),
        run.ask("seen.test", seen.port, &get(&format!("/{mark}"), "seen.test", seen.port, "")),
        run.ask("seen.test", seen.port, &get(&format!("/?{}", mark.replace('_', "%5f")), "seen.test", seen.port, "")),
        talk(
            run.connect(),
            post("plain.test", plain.port, "", &mark)
                .replace("POST /", &format!("POST http://plain.test:{}/", plain.port))
                .as_bytes(),
        ),
    ] {
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("x-writ-refused: placeholder"), "{answer}");
        assert!(answer.contains("the placeholder of secret `token` is not for `"), "{answer}");
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(format!("{{\"a\":\"{mark}\"}}").as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: seen.test:{}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        seen.port,
        packed.len()
    );
    let answer = say(&mut run.open("seen.test", seen.port), &[head.as_bytes(), &packed].concat());
    assert!(answer.contains("x-writ-refused: placeholder"), "{answer}");
    // Its own host may get it in a body, as it is: it is worth nothing.
    let answer = run.ask("api.test", bound.port, &post("api.test", bound.port, "", &mark));
    assert!(answer.contains(&mark) && bound.seen()[0].body == mark.as_bytes(), "{answer}");
    assert!(seen.seen().is_empty() && plain.seen().is_empty());
    let records = run.records(10);
    assert_eq!(
        records.iter().filter(|record| record.refusal.as_ref().is_some_and(|one| one.word == "placeholder")).count(),
        9
    );
}

#[test]
fn a_placeholder_in_the_wrong_place_is_blocked() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let mark = world.secret(&["api.test"]);
    let run = world.run();
    for (path, fields) in [
        ("/".to_owned(), format!("X-Other: {mark}\r\n")),
        (format!("/?a={mark}"), String::new()),
        ("/".to_owned(), format!("User-Agent: {mark}\r\n")),
    ] {
        let answer = run.ask("api.test", host.port, &get(&path, "api.test", host.port, &fields));
        assert!(answer.contains("x-writ-refused: place\r\n"), "{answer}");
    }
    assert!(host.seen().is_empty());
}

#[test]
fn secrets_travel_over_verified_tls_only() {
    let mut world = World::new(&["*.test"]);
    let plain = world.plain(&["api.test"], echo());
    let named = world.tls(&["other.test"], echo());
    world.port(&["api.test"], named.port, writ_egress::Protocol::Tls);
    let stranger = Host::tls(TestAuthority::new().server(&["api.test"]), echo());
    world.port(&["api.test"], stranger.port, writ_egress::Protocol::Tls);
    let good = world.tls(&["api.test"], echo());
    let mark = world.secret(&["api.test"]);
    let run = world.run();
    let bearer = format!("Authorization: Bearer {mark}\r\n");
    let answer = talk(
        run.connect(),
        get(&format!("http://api.test:{}/", plain.port), "api.test", plain.port, &bearer).as_bytes(),
    );
    assert!(answer.contains("x-writ-refused: plain-secret"), "{answer}");
    // Another's certificate, and one by an authority that nobody knows.
    for port in [named.port, stranger.port] {
        let answer = run.ask("api.test", port, &get("/", "api.test", port, &bearer));
        assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("x-writ-refused: untrusted"), "{answer}");
    }
    assert!(plain.seen().is_empty() && named.seen().is_empty() && stranger.seen().is_empty());
    assert!(run.ask("api.test", good.port, &get("/", "api.test", good.port, &bearer)).starts_with("HTTP/1.1 200 "));
}

#[test]
fn one_tunnel_is_for_one_host() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let mark = world.secret(&["api.test"]);
    let run = world.run();
    for (line, field) in [
        ("/", "other.test".to_owned()),
        ("https://other.test/", format!("api.test:{}", host.port)),
        ("/", format!("api.test:{}", host.port + 1)),
    ] {
        let ask = format!("GET {line} HTTP/1.1\r\nHost: {field}\r\nAuthorization: Bearer {mark}\r\n\r\n");
        let answer = run.ask("api.test", host.port, &ask);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    }
    let answer = run.ask("api.test", host.port, "CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(host.seen().is_empty());
    // A pinned server name is asked for in lower case, or not at all.
    let answer = run.ask("API.test", host.port, &get("/", "API.TEST", host.port, ""));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn answers_of_all_kinds_are_scrubbed() {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(format!("packed {VALUE} end").as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let gzip = [
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len()).as_bytes(),
        &packed,
    ]
    .concat();
    let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for byte in format!("split {VALUE} end").bytes() {
        chunked.extend(format!("1\r\n{}\r\n", char::from(byte)).bytes());
    }
    chunked.extend(b"0\r\n\r\n");
    let field =
        format!("HTTP/1.1 200 {VALUE}\r\nlocation: /?t={VALUE}\r\nx-{VALUE}: a\r\ncontent-length: 3\r\n\r\nend")
            .replace("x-hunter2-s3cr3t/value+", "x-");
    let until_close =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nclosing {} end", STANDARD.encode(format!("u:{VALUE}")));
    for answer in [gzip, chunked, field.into_bytes(), until_close.into_bytes()] {
        let mut world = World::new(&["*.test"]);
        let host = world.tls(&["api.test"], Arc::new(move |_| answer.clone()));
        world.secret(&["api.test"]);
        let run = world.run();
        let answer = run.ask("api.test", host.port, &get("/", "api.test", host.port, ""));
        let body: String = answer
            .split("\r\n\r\n")
            .nth(1)
            .unwrap()
            .split("\r\n")
            .filter(|line| line.len() > 5 || answer.contains("location"))
            .collect();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("end") || body.contains('*'), "{answer}");
        assert!(!answer.contains("s3cr3t") && !answer.contains(&STANDARD.encode(VALUE)[..20]), "{answer}");
        assert!(!answer.replace("\r\n1\r\n", "").contains("s3cr3t"), "{answer}");
    }
    // What cannot be looked through is not passed on.
    let mut world = World::new(&["*.test"]);
    let host = world.tls(
        &["api.test"],
        Arc::new(|_| b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc".to_vec()),
    );
    world.secret(&["api.test"]);
    let run = world.run();
    let answer = run.ask("api.test", host.port, &get("/", "api.test", host.port, ""));
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("x-writ-refused: answer"), "{answer}");
}

#[test]
fn requests_share_connections_to_the_host() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], Arc::new(|_| text("ok")));
    world.secret(&["api.test"]);
    let run = world.run();
    for _ in 0..3 {
        let mut stream = run.open("api.test", host.port);
        for _ in 0..4 {
            stream.write_all(format!("GET / HTTP/1.1\r\nHost: api.test:{}\r\n\r\n", host.port).as_bytes()).unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"ok") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                answer.push(byte[0]);
            }
        }
    }
    assert_eq!((host.accepted(), host.seen().len()), (1, 12));
    assert!(run.records(3).iter().all(|record| record.requests == 4));
}

#[test]
fn web_sockets_are_passed_on_and_scrubbed() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(
        &["api.test"],
        Arc::new(|_| b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n".to_vec()),
    );
    world.secret(&["api.test"]);
    let run = world.run();
    let mut stream = run.open("api.test", host.port);
    write!(
        stream,
        "GET / HTTP/1.1\r\nHost: api.test:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        host.port
    )
    .unwrap();
    let mut got = Vec::new();
    let mut until = |stream: &mut crate::world::Secure, end: &[u8]| {
        while !got.ends_with(end) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            got.push(byte[0]);
        }
        String::from_utf8(std::mem::take(&mut got)).unwrap()
    };
    let head = until(&mut stream, b"\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: websocket"), "{head}");
    write!(stream, "frame {VALUE} end").unwrap();
    let frame = until(&mut stream, b" end");
    assert!(frame.starts_with("frame *") && !frame.contains("s3cr3t"), "{frame}");
}
