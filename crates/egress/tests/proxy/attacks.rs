//! Ways around, each with a harmless twin.

use std::io::{Read, Write};

use writ_egress::{PrivateRange, Stage};

use crate::host::{echo, talk};
use crate::world::{World, patterns};

fn refused(answer: &str, word: &str) {
    assert!(answer.contains(&format!("x-writ-refused: {word}\r\n")), "{word}: {answer}");
}

#[test]
fn only_allowed_hosts_are_connected_with() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let run = world.run();
    assert!(run.tunnel(&format!("api.test:{}", host.port)).is_ok());
    for (target, word) in [
        ("evil.com:443", "host"),
        ("test:443", "host"),
        ("api.test.evil.com:443", "host"),
        ("apiatest:443", "host"),
        ("api.test.:443", "name"),
        ("evil.com\0.test:443", "request"),
        ("evil.com%00.test:443", "name"),
        ("user@api.test:443", "name"),
        ("api.test@evil.com:443", "name"),
        ("bücher.test:443", "request"),
        ("api.test:25", "port"),
        ("api.test:0443", "name"),
        ("api.test:65979", "name"),
        ("api.test", "name"),
        ("127.0.0.1:443", "host"),
        ("0x7f000001:443", "name"),
        ("2130706433:443", "name"),
        ("017700000001:443", "name"),
        ("127.1:443", "name"),
        ("[::1]:443", "host"),
        ("[::ffff:127.0.0.1]:443", "name"),
        ("[::ffff:7f00:1]:443", "host"),
        ("169.254.169.254:80", "host"),
        ("a..test:443", "name"),
        ("-a.test:443", "unresolved"),
    ] {
        refused(&run.tunnel(target).unwrap_err(), word);
    }
    assert_eq!(host.seen().len(), 0);
}

#[test]
fn addresses_must_be_named_and_public() {
    let mut world = World::new(&["*", "10.9.9.9"]);
    world.rules.private.clear();
    world.names.set("one.test", &[&["127.0.0.1"]]);
    world.names.set("two.test", &[&["10.0.0.1", "169.254.169.254", "::1"]]);
    world.names.set("three.test", &[&["::ffff:127.0.0.1"]]);
    world.names.set("four.test", &[&["64:ff9b::a9fe:a9fe"]]);
    world.names.set("five.test", &[&["0.0.0.0"]]);
    let run = world.run();
    for name in ["one", "two", "three", "four", "five"] {
        refused(&run.tunnel(&format!("{name}.test:443")).unwrap_err(), "private");
    }
    // `*` names no address; a pattern does, and then the range has to be named too.
    refused(&run.tunnel("127.0.0.1:443").unwrap_err(), "address");
    refused(&run.tunnel("[::ffff:7f00:1]:443").unwrap_err(), "address");
    refused(&run.tunnel("10.9.9.9:443").unwrap_err(), "private");
    assert!(run.records(8).iter().all(|record| record.stage == Stage::Refused && record.address.is_none()));
}

#[test]
fn an_address_that_is_named_is_reached() {
    let mut world = World::new(&["127.0.0.1"]);
    let host = world.tls(&["127.0.0.1"], echo());
    let run = world.run();
    let answer = run.ask("127.0.0.1", host.port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn a_name_is_resolved_once_and_that_address_is_connected_with() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    // The second answer would be one that is not allowed, the third one that nobody listens at.
    world.names.set("api.test", &[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.2", "127.0.0.1"]]);
    let run = world.run();
    let target = format!("api.test:{}", host.port);
    assert!(run.tunnel(&target).is_ok());
    refused(&run.tunnel(&target).unwrap_err(), "private");
    // Of several, only those that are allowed are tried.
    assert!(run.tunnel(&target).is_ok());
    let records = run.records(3);
    assert_eq!(records.iter().filter(|record| record.address == Some("127.0.0.1".parse().unwrap())).count(), 2);
}

#[test]
fn a_range_is_for_the_hosts_that_name_it() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test", "evil.test"], echo());
    world.rules.private = vec![PrivateRange { range: "127.0.0.0/8".parse().unwrap(), hosts: patterns(&["api.test"]) }];
    let run = world.run();
    assert!(run.tunnel(&format!("api.test:{}", host.port)).is_ok());
    refused(&run.tunnel(&format!("evil.test:{}", host.port)).unwrap_err(), "private");
}

#[test]
fn a_tunnel_carries_the_tls_it_was_asked_for() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test", "other.test"], echo());
    let run = world.run();
    let tunnel = || run.tunnel(&format!("api.test:{}", host.port)).unwrap();
    let error = run.secure(tunnel(), "other.test").unwrap_err();
    assert!(error.contains("AccessDenied"), "{error}");
    // No server name: TLS to an address.
    assert!(run.secure(tunnel(), "127.0.0.1").is_err());
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\0\x04\x02\0\0\0",
        b"\x05\x01\0",
    ] {
        assert_eq!(talk(tunnel(), bytes).as_bytes(), [21, 3, 3, 0, 2, 2, 49], "{bytes:?}");
    }
    let words: Vec<String> = run.records(6).iter().map(|record| record.refusal.clone().unwrap().word).collect();
    assert_eq!(words, ["mismatch", "no-server-name", "not-tls", "not-tls", "not-tls", "not-tls"]);
    assert_eq!(host.seen().len(), 0);
    assert!(run.secure(tunnel(), "api.test").is_ok());
}

#[test]
fn a_hidden_server_name_is_refused() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let run = world.run();
    // A first message of openssl's shape, with and without the extension.
    let message = |more: &[u8]| {
        let name = b"\0\0\0\x0d\0\x0b\0\0\x08api.test";
        let groups = b"\0\x0a\0\x04\0\x02\0\x1d";
        let schemes = b"\0\x0d\0\x04\0\x02\x04\x03";
        let extensions = [&name[..], groups, schemes, more].concat();
        let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
        let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0], &length(&extensions), &extensions].concat();
        let message = [&[1, 0][..], &length(&body), &body].concat();
        [&[22, 3, 1][..], &length(&message), &message].concat()
    };
    let tunnel = || run.tunnel(&format!("api.test:{}", host.port)).unwrap();
    let hidden = message(b"\xfe\x0d\0\x0d\0\0\x01\0\x01\x05\0\x01e\0\x02pp");
    assert_eq!(talk(tunnel(), &hidden).as_bytes(), [21, 3, 3, 0, 2, 2, 49]);
    assert_eq!(run.refusal(), "encrypted-hello");
    // The twin is answered by the host: a server's first message, or its own alert.
    let mut twin = tunnel();
    twin.write_all(&message(b"")).unwrap();
    let mut first = [0; 3];
    twin.read_exact(&mut first).unwrap();
    drop(twin);
    let records = run.records(2);
    assert!(
        records[1].bytes_down > 0 && records[1].refusal.as_ref().is_none_or(|refusal| !refusal.decided),
        "{records:?}"
    );
}

#[test]
fn requests_that_could_be_two_are_refused() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], echo());
    let run = world.run();
    let with = |more: &str| {
        format!("POST http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}\r\nConnection: close\r\n{more}", host.port)
    };
    let smuggled = "GET http://one.test/admin HTTP/1.1\r\nHost: one.test\r\n\r\n";
    for more in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "X: a\0b\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "Host: two.test\r\n\r\n",
        "\n\n",
    ] {
        let answer = talk(run.connect(), format!("{}{smuggled}", with(more)).as_bytes());
        refused(&answer, "request");
    }
    // Found only when the body is read: the host gets no end of it.
    for body in [
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
    ] {
        let answer = talk(run.connect(), with(&format!("Transfer-Encoding: chunked\r\n\r\n{body}")).as_bytes());
        refused(&answer, "request");
    }
    assert_eq!(host.seen().len(), 0);
    let long = talk(run.connect(), with(&format!("X: {}\r\n\r\n", "y".repeat(70_000))).as_bytes());
    refused(&long, "request");
    let good = talk(run.connect(), with("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").as_bytes());
    assert!(good.starts_with("HTTP/1.1 200 "), "{good}");
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn answers_that_could_be_two_are_refused() {
    let twin = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        b"nonsense\r\n\r\n",
        twin,
    ] {
        let mut world = World::new(&["*.test"]);
        let sent = answer.to_vec();
        let host = world.plain(&["one.test"], std::sync::Arc::new(move |_| sent.clone()));
        let run = world.run();
        let got = talk(
            run.connect(),
            format!("GET http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}\r\nConnection: close\r\n\r\n", host.port)
                .as_bytes(),
        );
        if answer == twin {
            assert!(got.ends_with("ok"), "{got}");
        } else {
            refused(&got, "answer");
        }
    }
}

#[test]
fn what_is_not_carried_is_said() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], echo());
    let tls = world.tls(&["two.test"], echo());
    let run = world.run();
    assert_eq!(talk(run.connect(), b"\x05\x01\0").as_bytes(), "\u{5}\u{fffd}".as_bytes());
    assert_eq!(run.refusal(), "socks");
    let ask = |line: String| talk(run.connect(), format!("{line}\r\nConnection: close\r\n\r\n").as_bytes());
    refused(&ask(format!("TRACE http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}", host.port)), "method");
    refused(&ask(format!("GET https://two.test:{0}/ HTTP/1.1\r\nHost: two.test:{0}", tls.port)), "request");
    refused(&ask(format!("GET http://two.test:{0}/ HTTP/1.1\r\nHost: two.test:{0}", tls.port)), "request");
    refused(&ask("GET / HTTP/1.1\r\nHost: one.test".to_owned()), "request");
    refused(&ask("GET http://gone.test/ HTTP/1.1\r\nHost: gone.test".to_owned()), "unresolved");
    // A proxy inside a host's tunnel leads nowhere.
    let tunnel = run.tunnel(&format!("one.test:{}", host.port)).unwrap();
    refused(&talk(tunnel, b"CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n"), "method");
    assert_eq!(host.seen().len(), 0);
}
