//! What `writ serve` answered is there: after `kill -9`, from every replica, and under a key that was active.

#[cfg(test)]
mod service_parts;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use service_parts::postgres::Postgres;
use service_parts::{Client, Folder, LINE, Server, path};
use writ_core::Timestamp;
use writ_engine::attest::issuer::Issuer;
use writ_evidence::attestation::Attestation;
use writ_evidence::registry::{KeyState, Registry};

const KILLS: usize = 12;
const CLIENTS: usize = 8;

/// Asks again and again until the connection breaks; gives what was answered.
fn ask_until_killed(address: std::net::SocketAddr) -> Vec<Attestation> {
    let mut answered = Vec::new();
    let Ok(_) = std::net::TcpStream::connect(address) else { return answered };
    let mut client = Client::new(address);
    while let Ok(answer) = client.try_evaluate(LINE) {
        answered.push(answer.attestation());
    }
    answered
}

/// Under a limit on the size of files, which is what a full disk is to whoever writes: it can be set without rights.
#[test]
fn a_disk_that_takes_nothing_more_is_no_health() {
    let folder = Folder::new("serve-full");
    let arguments = ["--attest", "--listen", "127.0.0.1:0", "--log", "json"];
    let limited = |blocks: &str| {
        let service = service_parts::command(&folder.state(), &arguments);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", blocks]).arg(service.get_program());
        shell.args(service.get_args()).env_clear().env("HOME", folder.state()).env("WRIT_STATE_DIR", folder.state());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Server::started(shell)
    };
    // With room first, so that keys and database are there.
    let server = limited("unlimited");
    let health = server.client().get("/api/health");
    assert_eq!(health.status, 200, "{}", health.text());
    server.stop();
    // 100 KiB: less than is written to find out.
    let server = limited("200");
    let health = server.client().get("/api/health");
    assert_eq!((health.status, health.json()["status"].as_str()), (503, Some("disk")), "{}", health.text());
    server.kill();
    let server = limited("unlimited");
    assert_eq!(server.client().get("/api/health").status, 200, "there is room again");
    server.stop();
}

#[test]
fn no_answered_attestation_is_lost_to_kills() {
    let folder = Folder::new("serve-killed");
    let base = ["--attest", "--rate", "0", "--base-url", "http://127.0.0.1:7411"];
    let mut answered: Vec<Attestation> = Vec::new();
    for round in 0..KILLS {
        let server = Server::start(&folder.state(), &base);
        let address = server.address;
        let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(move || ask_until_killed(address))).collect();
        thread::sleep(Duration::from_millis(150 + 37 * round as u64));
        server.kill();
        answered.extend(clients.into_iter().flat_map(|client| client.join().unwrap()));
    }
    assert!(answered.len() > KILLS * CLIENTS, "only {} were answered before the kills", answered.len());
    let server = Server::start(&folder.state(), &base);
    let (registry, mut client) = (server.registry(), server.client());
    for attestation in &answered {
        let copy = client.get(&path(attestation));
        assert_eq!((copy.status, copy.text()), (200, attestation.canonical()));
        registry.check(attestation).unwrap();
    }
    let ids: BTreeSet<&str> = answered.iter().map(Attestation::id).collect();
    assert_eq!(ids.len(), answered.len(), "two have one id");
    server.stop();
}

/// What was answered, and every registry that each replica showed, in order.
#[derive(Default)]
struct Seen {
    answered: Mutex<Vec<Attestation>>,
    registries: Mutex<Vec<Registry>>,
    refused: AtomicUsize,
}

/// Ends the load, also where something panics: the scope waits for its threads.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn load(server: &Server, seen: &Seen, end: &AtomicBool) {
    let mut client = server.client();
    let mut answered = Vec::new();
    while !end.load(Ordering::Relaxed) {
        match client.try_evaluate(LINE) {
            Ok(answer) if answer.status == 200 => answered.push(answer.attestation()),
            Ok(answer) => {
                assert_eq!((answer.status, answer.code().as_str()), (503, "not_attested"));
                seen.refused.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{error}"),
        }
    }
    seen.answered.lock().unwrap().extend(answered);
}

fn watch(server: &Server, seen: &Seen, end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        seen.registries.lock().unwrap().push(server.registry());
        thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn a_database_is_reached_over_tls_that_it_proves() {
    let postgres = Postgres::start();
    let folder = Folder::new("serve-tls-database");
    let registry = |host: &str, more: &str, authority: Option<&Path>| {
        let mut command = Command::new(service_parts::command(&folder.state(), &[]).get_program());
        command.args(["evaluate", "shell", "ls", "--attest", "--database", &format!("{}?{more}", postgres.url(host))]);
        command.env_clear().env("HOME", &folder.0).env("WRIT_STATE_DIR", folder.state());
        command.envs(authority.map(|path| ("SSL_CERT_FILE", path)));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let certificate = postgres.certificate();
    assert_eq!(registry("localhost", "sslmode=require", Some(&certificate)).0, Some(0));
    assert_eq!(registry("localhost", "", None).0, Some(0), "on this machine nobody asks for TLS");
    for (host, authority, why) in [
        ("localhost", None, "an authority that nobody knows"),
        ("127.0.0.1", Some(certificate.as_path()), "a certificate for another name"),
    ] {
        let (code, said) = registry(host, "sslmode=require", authority);
        assert!(code == Some(1) && said.contains("certificate"), "{why}: {said}");
    }
}

#[test]
fn three_replicas_one_registry_and_rotations_under_load() {
    let postgres = Postgres::start();
    let folder = Folder::new("serve-replicas");
    let started = |host: &str| {
        let url = postgres.url(host);
        let name = ["--instance", "trio", "--base-url", "http://127.0.0.1:7411"];
        Server::start(&folder.state(), &[&["--attest", "--rate", "0", "--database", &url][..], &name].concat())
    };
    // All at once on an empty database, by number and by name: one of them makes tables, identity and key, the others take them.
    let replicas: Vec<Server> = thread::scope(|scope| {
        let starting = ["127.0.0.1", "localhost", "127.0.0.1"].map(|host| scope.spawn(move || started(host)));
        starting.into_iter().map(|server| server.join().unwrap()).collect()
    });
    let end = AtomicBool::new(false);
    let seen: Vec<Seen> = replicas.iter().map(|_| Seen::default()).collect();
    thread::scope(|scope| {
        for (server, seen) in replicas.iter().zip(&seen) {
            (0..3).for_each(|_| drop(scope.spawn(|| load(server, seen, &end))));
            scope.spawn(|| watch(server, seen, &end));
        }
        let _ends = Ends(&end);
        let mut operator = Issuer::open(&folder.state(), Some(&postgres.url("127.0.0.1")), None).unwrap();
        for round in 0..10 {
            thread::sleep(Duration::from_millis(120));
            let now = Timestamp::now();
            let planned = (round % 3 == 2).then(|| Timestamp::from_millis(now.millis() + 1000));
            operator.rotate(planned, now).unwrap();
            // The next one must not meet it on its way.
            thread::sleep(Duration::from_millis(if planned.is_some() { 1100 } else { 0 }));
        }
        thread::sleep(Duration::from_millis(300));
    });
    let last = replicas[0].registry();
    assert!(last.keys().len() >= 11, "{} keys", last.keys().len());
    let mut signers = BTreeSet::new();
    for (number, seen) in seen.iter().enumerate() {
        let answered = seen.answered.lock().unwrap();
        assert_eq!(seen.refused.load(Ordering::Relaxed), 0, "replica {number} refused");
        assert!(answered.len() > 50, "replica {number} answered {} times", answered.len());
        let registries = seen.registries.lock().unwrap();
        assert!(registries.windows(2).all(|pair| pair[1].may_follow(&pair[0]).is_ok()), "replica {number} went back");
        for attestation in answered.iter() {
            let state = last.check(attestation).unwrap();
            let (key, moment) = (last.key(attestation.key_id()).unwrap(), attestation.timestamp());
            assert!(key.valid_from.unwrap() <= moment, "{} signed before its time", key.id);
            assert!(
                key.deprecated_at.is_none_or(|end| moment <= end),
                "{} signed after its time: {moment} {key:?}",
                key.id
            );
            assert!(matches!(state, KeyState::Active | KeyState::Deprecated));
            signers.insert(key.id.clone());
        }
    }
    assert!(signers.len() > 5, "only {signers:?} signed");
    for server in &replicas {
        let mut client = server.client();
        for attestation in seen.iter().flat_map(|seen| seen.answered.lock().unwrap().clone()) {
            let copy = client.get(&path(&attestation));
            assert_eq!((copy.status, copy.text()), (200, attestation.canonical()));
        }
    }
    // The database goes away and comes back; so does the service, without a word about where it is.
    postgres.down();
    let refused = replicas[1].client().evaluate(LINE);
    assert_eq!((refused.status, refused.code().as_str()), (503, "not_attested"));
    assert_eq!(replicas[1].client().get("/api/health").status, 503);
    postgres.up();
    let start = Instant::now();
    while replicas[1].client().evaluate(LINE).status != 200 {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not come back");
        thread::sleep(Duration::from_millis(100));
    }
    for server in replicas {
        let log = server.stop();
        assert!(!log.contains("postgres://"), "{log}");
    }
}
