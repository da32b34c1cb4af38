//! Programs that know no proxy: names are answered with addresses that stand for them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use writ_egress::{LoopbackPort, Protocol, Road, Stage};

use crate::host::{echo, talk};
use crate::world::{Run, World, say};

/// Asks the run's name server; the answer's code, and the address in it.
pub fn ask(run: &Run, name: &str, kind: u16) -> (u8, Option<Ipv4Addr>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut packet = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(u8::try_from(label.len()).unwrap());
        packet.extend(label.bytes());
    }
    packet.push(0);
    packet.extend(kind.to_be_bytes());
    packet.extend([0, 1]);
    socket.send_to(&packet, run.dns).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).unwrap();
    let address = (answer[7] == 1).then(|| {
        let last: [u8; 4] = answer[length - 4..length].try_into().unwrap();
        Ipv4Addr::from(last)
    });
    (answer[3] & 15, address)
}

/// A connection to the address that stands for a name.
fn connect(run: &Run, name: &str, port: u16) -> TcpStream {
    let (_, address) = ask(run, name, 1);
    let stream = TcpStream::connect(SocketAddr::from((address.unwrap(), run.direct[&port]))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

#[test]
fn names_are_answered_when_they_are_allowed() {
    let run = World::new(&["*.test"]).run();
    let (code, address) = ask(&run, "Api.TEST", 1);
    assert_eq!((code, address.unwrap().octets()[..2].to_vec()), (0, vec![127, 7]));
    assert_eq!(ask(&run, "api.test", 1).1, address);
    assert_ne!(ask(&run, "b.test", 1).1, address);
    assert_eq!(ask(&run, "api.test", 28), (0, None));
    assert_eq!(ask(&run, "api.test", 16), (0, None));
    assert_eq!(ask(&run, "localhost", 1), (0, Some(Ipv4Addr::LOCALHOST)));
    for bad in ["evil.com", "test", "10.0.0.1", "aGVsbG8gd29ybGQ.tunnel.evil.com"] {
        for kind in [1, 28, 16] {
            assert_eq!(ask(&run, bad, kind).0, 3, "{bad}");
        }
    }
    let records = run.records(3);
    // Once a name, however often it is asked for; an address is no name and leads nowhere.
    assert_eq!(records.len(), 3);
    assert_eq!(
        (records[0].road, records[0].stage, records[0].host.as_deref()),
        (Road::Dns, Stage::Refused, Some("evil.com"))
    );
}

#[test]
fn tls_goes_through_by_its_server_name() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test", "other.test"], echo());
    let run = world.run();
    let mut stream = run.secure(connect(&run, "api.test", host.port), "api.test").unwrap();
    let answer = say(&mut stream, b"GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(stream);
    assert_eq!(run.records(1)[0].road, Road::Tls);
    // The address says one name, TLS another; both are allowed.
    let refused = run.secure(connect(&run, "api.test", host.port), "other.test").unwrap_err();
    assert!(refused.contains("AccessDenied"), "{refused}");
    assert_eq!(run.records(2)[1].refusal.as_ref().unwrap().word, "mismatch");
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn http_goes_through_by_its_host() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["api.test", "other.test"], echo());
    let run = world.run();
    let ask = |name: &str| format!("GET / HTTP/1.1\r\nHost: {name}:{}\r\nConnection: close\r\n\r\n", host.port);
    assert!(talk(connect(&run, "api.test", host.port), ask("api.test").as_bytes()).starts_with("HTTP/1.1 200 "));
    assert_eq!(run.records(1)[0].road, Road::Http);
    let answer = talk(connect(&run, "api.test", host.port), ask("other.test").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 421 ") && answer.contains("two hosts are named"), "{answer}");
    let answer = talk(connect(&run, "api.test", host.port), b"\x16\x03\x01\x00\x05hello");
    assert!(!answer.contains("200 OK"));
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn other_ports_are_carried_by_rule() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["git.test"], echo());
    world.rules.ports.clear();
    world.port(&["git.test"], host.port, Protocol::Opaque);
    let run = world.run();
    let answer = talk(connect(&run, "git.test", host.port), b"SSH-2.0 in a way\r\nConnection: close\r\n\r\n");
    assert!(answer.contains("SSH-2.0 in a way"), "{answer}");
    // The port is another host's.
    assert_eq!(talk(connect(&run, "www.test", host.port), b"SSH-2.0\r\n\r\n").as_bytes(), [21, 3, 3, 0, 2, 2, 49]);
    assert_eq!(run.records(2)[1].refusal.as_ref().unwrap().word, "port");
}

#[test]
fn a_port_of_the_machine_itself_is_handed_in_by_rule() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["git.test"], echo());
    let mark = world.secret(&["api.test"]);
    world.rules.loopback.push(LoopbackPort { pointer: "/loopback/0".to_owned(), port: host.port });
    let run = world.run();
    let at = || TcpStream::connect((Ipv4Addr::LOCALHOST, run.direct[&host.port])).unwrap();
    let answer = talk(at(), b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let record = run.records(1).remove(0);
    assert_eq!((record.stage, record.road, record.host.as_deref()), (Stage::Closed, Road::Loopback, Some("127.0.0.1")));
    assert!(
        record.rule.as_deref() == Some("/loopback/0") && record.bytes_up > 0 && record.bytes_down > 0,
        "{record:?}"
    );
    // What speaks to the machine itself is watched as any other host.
    assert_eq!(talk(at(), format!("GET /{mark} HTTP/1.1\r\n\r\n").as_bytes()), "");
    assert_eq!(run.records(2)[1].refusal.as_ref().unwrap().word, "placeholder");
    // An address that stands for a name is that name's, on the same port.
    let answer = talk(connect(&run, "git.test", host.port), b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

#[test]
fn an_address_that_stands_for_nothing_needs_a_name() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    world.rules.ports.clear();
    let run = world.run();
    let at = |port: u16| TcpStream::connect((Ipv4Addr::LOCALHOST, run.direct[&port])).unwrap();
    assert_eq!(talk(at(host.port), b"x"), "");
    assert_eq!(run.records(1)[0].refusal.as_ref().unwrap().word, "name");
    assert!(run.secure(at(443), "evil.test.com").is_err());
    assert_eq!(run.records(2)[1].refusal.as_ref().unwrap().word, "host");
    let answer = talk(at(80), b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("`evil.com` is not allowed (/domains/allow)"),
        "{answer}"
    );
}
