//! Programs that know the proxy.

use std::io::{Read, Write};

use writ_egress::{Limit, Protocol, Road, Stage};

use crate::host::{echo, talk, text};
use crate::world::{World, patterns, say};

const GET: &str = "GET /a?b HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n";

#[test]
fn tls_goes_through_and_is_recorded() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let run = world.run();
    let answer = run.ask("api.test", host.port, &GET.replace("HOST", "api.test"));
    assert!(answer.contains("GET /a?b HTTP/1.1\r\nHost: api.test"), "{answer}");
    let records = run.records(1);
    let record = &records[0];
    assert_eq!((record.stage, record.road, record.terminated), (Stage::Closed, Road::Connect, false));
    assert_eq!((record.host.as_deref(), record.port), (Some("api.test"), host.port));
    assert_eq!(record.rule.as_deref(), Some("/domains/allow/*.test"));
    assert_eq!(record.address, Some("127.0.0.1".parse().unwrap()));
    assert!(record.bytes_up > 100 && record.bytes_down > 500 && record.refusal.is_none(), "{record:?}");
    // It was on record before anything went out.
    let opened = run.records.lock().unwrap()[0].clone();
    assert_eq!((opened.stage, opened.id, opened.bytes_up), (Stage::Opened, record.id, 0));
    run.serving.end().unwrap();
}

#[test]
fn names_are_compared_in_lower_case() {
    let mut world = World::new(&["api.test"]);
    let host = world.tls(&["api.test"], echo());
    let run = world.run();
    let tunnel = run.tunnel(&format!("API.Test:{}", host.port)).unwrap();
    let answer = say(&mut run.secure(tunnel, "api.TEST").unwrap(), GET.replace("HOST", "API.TEST").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn absolute_urls_are_fetched() {
    let mut world = World::new(&["*.test"]);
    let (one, two) = (world.plain(&["one.test"], echo()), world.plain(&["two.test"], echo()));
    let run = world.run();
    let ask = |name: &str, port: u16, more: &str| {
        format!("GET http://{name}:{port}/p HTTP/1.1\r\nHost: {name}:{port}\r\nProxy-Connection: x\r\n{more}\r\n")
    };
    let mut stream = run.connect();
    // Two hosts on one connection are two records.
    write!(stream, "{}{}", ask("one.test", one.port, ""), ask("one.test", one.port, "")).unwrap();
    let answer = say(&mut stream, ask("two.test", two.port, "Connection: close\r\n").as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
    assert!(answer.contains(&format!("GET /p HTTP/1.1\r\nhost: one.test:{}", one.port)));
    assert!(!answer.to_lowercase().contains("proxy-connection"));
    let records = run.records(2);
    assert_eq!((records[0].requests, records[1].requests), (2, 1));
    assert_eq!((records[0].road, records[1].host.as_deref()), (Road::Forward, Some("two.test")));
    assert_eq!(one.accepted(), 1);
}

#[test]
fn bodies_of_all_kinds_pass() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(
        &["one.test"],
        std::sync::Arc::new(|seen| {
            let body = seen.body.clone();
            let mut out = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            for piece in body.chunks(1000) {
                out.extend(format!("{:x};ext=1\r\n", piece.len()).bytes());
                out.extend(piece);
                out.extend(b"\r\n");
            }
            out.extend(b"0\r\ntrailer: x\r\n\r\n");
            out
        }),
    );
    let run = world.run();
    let at = format!("http://one.test:{}/", host.port);
    let big: String = (0..200_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let plain =
        format!("POST {at} HTTP/1.0\r\nHost: one.test:{}\r\nContent-Length: {}\r\n\r\n{big}", host.port, big.len());
    let answer = talk(run.connect(), plain.as_bytes());
    // HTTP/1.0 knows no chunks: the body ends with the connection.
    assert!(answer.ends_with(&format!("\r\n\r\n{big}")) && !answer.contains("chunked"));
    let chunked = format!(
        "POST {at} HTTP/1.1\r\nHost: one.test:{}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: x\r\n\r\n",
        host.port
    );
    let answer = talk(run.connect(), chunked.as_bytes());
    assert!(answer.ends_with("b\r\nhello world\r\n0\r\n\r\n"), "{answer}");
    assert_eq!(host.seen()[1].body, b"hello world");
}

#[test]
fn interim_answers_and_heads_pass() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(
        &["one.test"],
        std::sync::Arc::new(|seen| {
            if seen.head.starts_with("HEAD") {
                return b"HTTP/1.1 200 OK\r\ncontent-length: 77\r\n\r\n".to_vec();
            }
            [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".to_vec(), text("late")].concat()
        }),
    );
    let run = world.run();
    let ask = |method: &str| {
        format!("{method} http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}\r\nConnection: close\r\n\r\n", host.port)
    };
    let answer = talk(run.connect(), ask("GET").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 103 ") && answer.ends_with("late"), "{answer}");
    let answer = talk(run.connect(), ask("HEAD").as_bytes());
    assert!(answer.contains("content-length: 77"), "{answer}");
}

#[test]
fn a_connection_that_waited_too_long_is_opened_anew() {
    let mut world = World::new(&["*.test"]);
    // It says that it keeps the connection, and closes it.
    let host = world.plain(
        &["one.test"],
        std::sync::Arc::new(|_| b"HTTP/1.1 200 OK\r\nx: connection: close\r\ncontent-length: 2\r\n\r\nok".to_vec()),
    );
    let run = world.run();
    let mut stream = run.connect();
    for _ in 0..3 {
        write!(stream, "GET http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}\r\n\r\n", host.port).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
    assert_eq!(host.accepted(), 3);
}

#[test]
fn other_protocols_need_a_rule() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], echo());
    world.rules.ports.clear();
    let refused = world.run();
    let answer = refused.tunnel(&format!("one.test:{}", host.port)).unwrap_err();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("x-writ-refused: port"), "{answer}");
    let mut world = World::new(&["*.test"]);
    world.port(&["one.test"], host.port, Protocol::Opaque);
    let run = world.run();
    let answer =
        talk(run.tunnel(&format!("one.test:{}", host.port)).unwrap(), b"ANY thing\r\nConnection: close\r\n\r\n");
    assert!(answer.contains("ANY thing"), "{answer}");
    // HTTP inside a tunnel to a port that speaks HTTP is read.
    let mut world = World::new(&["*.test"]);
    world.port(&["one.test"], host.port, Protocol::Http);
    let run = world.run();
    let target = format!("one.test:{}", host.port);
    let answer = talk(run.tunnel(&target).unwrap(), GET.replace("HOST", &target).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = talk(run.tunnel(&target).unwrap(), GET.replace("HOST", "two.test").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

#[test]
fn limits_hold() {
    let limit = |per_minute: u32, up: Option<u64>, down: Option<u64>| Limit {
        pointer: "/limits/0".to_owned(),
        hosts: patterns(&["*.test"]),
        per_minute: per_minute.try_into().ok(),
        bytes_up: up,
        bytes_down: down,
    };
    let ask = |port: u16, body: &str| {
        format!(
            "POST http://one.test:{port}/ HTTP/1.1\r\nHost: one.test:{port}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for (limit, word) in
        [(limit(2, None, None), "rate"), (limit(0, Some(900), None), "bytes"), (limit(0, None, Some(900)), "bytes")]
    {
        let mut world = World::new(&["*.test"]);
        let host = world.plain(&["one.test"], echo());
        world.rules.limits.push(limit);
        let run = world.run();
        for _ in 0..2 {
            assert!(talk(run.connect(), ask(host.port, "x").as_bytes()).starts_with("HTTP/1.1 200 "), "{word}");
        }
        let answer = talk(run.connect(), ask(host.port, &"x".repeat(900)).as_bytes());
        assert!(!answer.ends_with("xxxx"), "{answer}");
        let records = run.records(3);
        assert_eq!(records[2].refusal.as_ref().unwrap().word, word);
    }
}
