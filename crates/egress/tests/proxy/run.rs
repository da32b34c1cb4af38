//! A run's beginning and end, and its records.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use writ_egress::{
    Addresses, Authority, Listeners, Record, Resolve, Rules, SecretError, SecretValue, ServeError, Setup, SinkError,
    Stage, SystemResolver, serve,
};

use crate::host::{echo, talk, text};
use crate::world::{World, patterns, secret};

fn setup(rules: Rules) -> Setup {
    Setup {
        rules,
        secrets: Vec::new(),
        authority: None,
        resolver: Arc::new(SystemResolver),
        extra_authorities: Vec::new(),
        sink: Box::new(|_| Ok(())),
    }
}

/// Nobody who is to be asked.
struct Nobody;

impl Resolve for Nobody {
    fn addresses<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        Box::pin(async move { Err(io::Error::other(format!("asked for `{name}`"))) })
    }
}

/// What costs is put off until somebody connects: the machine's authorities are read and names are asked for then. How long it takes, the
/// bench `egress` measures.
#[test]
fn a_run_without_connections_reads_no_authorities_and_asks_nobody() {
    let mut setup = setup(Rules::default());
    setup.resolver = Arc::new(Nobody);
    setup.sink = Box::new(|record| Err(SinkError(format!("told of {record:?}"))));
    // Whoever makes a client of these fails: they are no certificate.
    setup.extra_authorities = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    let listeners = Listeners { proxy: Some(TcpListener::bind("127.0.0.1:0").unwrap()), ..Listeners::default() };
    assert_eq!(serve(listeners, setup).unwrap().end(), Ok(()));
}

#[test]
fn rules_that_cannot_be_kept_do_not_begin() {
    let with = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup(Rules { secrets: vec![secret("token", &["api.test"])], ..Rules::default() });
        setup.authority = Some(Arc::new(Authority::new().unwrap()));
        setup.secrets = vec![SecretValue::new("token".to_owned(), b"0123456789".to_vec()).unwrap()];
        change(&mut setup);
        serve(Listeners::default(), setup).map(|_| ())
    };
    assert!(with(&|_| {}).is_ok());
    assert!(matches!(with(&|setup| setup.authority = None), Err(ServeError::NoAuthority)));
    assert!(matches!(with(&|setup| setup.secrets.clear()), Err(ServeError::Secrets(SecretError::Values(_)))));
    assert!(matches!(with(&|setup| setup.rules.secrets[0].hosts = patterns(&["*"])), Err(ServeError::Rules(_))));
    assert!(matches!(
        with(&|setup| setup.extra_authorities = b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n".to_vec()),
        Err(ServeError::Authorities)
    ));
}

#[test]
fn a_sink_that_fails_ends_everything() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], echo());
    let records = Arc::<Mutex<Vec<Record>>>::default();
    let kept = Arc::clone(&records);
    // The first connection is kept as opened; the second is not kept at all.
    let run = world.run_with(
        records,
        Box::new(move |record| {
            let mut kept = kept.lock().unwrap();
            if record.id > 1 {
                return Err(SinkError("the disk is full".to_owned()));
            }
            kept.push(record);
            Ok(())
        }),
    );
    let ask = format!("GET http://one.test:{0}/ HTTP/1.1\r\nHost: one.test:{0}\r\n\r\n", host.port);
    let mut first = run.connect();
    first.write_all(ask.as_bytes()).unwrap();
    let mut piece = [0; 100];
    assert!(first.read(&mut piece).unwrap() > 0);
    assert!(run.serving.is_serving());
    // A sink that cannot keep the opening keeps the request from going out.
    assert!(!talk(run.connect(), ask.as_bytes()).contains("200 OK"));
    let mut rest = Vec::new();
    first.read_to_end(&mut rest).ok();
    assert!(!run.serving.is_serving());
    assert_eq!(host.seen().len(), 1);
    assert_eq!(run.serving.end(), Err(SinkError("the disk is full".to_owned())));
    assert!(std::net::TcpStream::connect(("127.0.0.1", run.proxy)).is_err());
}

#[test]
fn a_slow_sink_loses_nothing() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], Arc::new(|_| text("ok")));
    let records = Arc::<Mutex<Vec<Record>>>::default();
    let kept = Arc::clone(&records);
    let run = world.run_with(
        records,
        Box::new(move |record| {
            std::thread::sleep(Duration::from_millis(2));
            kept.lock().unwrap().push(record);
            Ok(())
        }),
    );
    let (proxy, port) = (run.proxy, host.port);
    let programs: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                for _ in 0..25 {
                    let stream = std::net::TcpStream::connect(("127.0.0.1", proxy)).unwrap();
                    let ask = format!(
                        "GET http://one.test:{port}/ HTTP/1.1\r\nHost: one.test:{port}\r\nConnection: close\r\n\r\n"
                    );
                    assert!(talk(stream, ask.as_bytes()).ends_with("ok"));
                }
            })
        })
        .collect();
    programs.into_iter().for_each(|program| program.join().unwrap());
    run.serving.end().unwrap();
    let records = run.records.lock().unwrap();
    let count = |stage: Stage| records.iter().filter(|record| record.stage == stage).count();
    assert_eq!((count(Stage::Opened), count(Stage::Closed), count(Stage::Refused)), (200, 200, 0));
}

#[test]
fn a_connection_that_was_accepted_elsewhere_is_served() {
    let mut world = World::new(&["*.test"]);
    let host = world.plain(&["one.test"], Arc::new(|_| text("ok")));
    let run = world.run();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    run.serving.hand().stream(listener.accept().unwrap().0).unwrap();
    let ask = |name: &str| {
        format!("GET http://{name}:{0}/ HTTP/1.1\r\nHost: {name}:{0}\r\nConnection: close\r\n\r\n", host.port)
    };
    assert!(talk(program, ask("one.test").as_bytes()).ends_with("ok"));
    let program = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    run.serving.hand().stream(listener.accept().unwrap().0).unwrap();
    assert!(talk(program, ask("evil.com").as_bytes()).starts_with("HTTP/1.1 403 "));
}

#[test]
fn the_end_of_a_run_ends_and_records_what_is_open() {
    let mut world = World::new(&["*.test"]);
    let host = world.tls(&["api.test"], echo());
    let run = world.run();
    let mut tunnel = run.open("api.test", host.port);
    let waiting = run.connect();
    let begun = Instant::now();
    run.serving.end().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    let mut rest = Vec::new();
    tunnel.read_to_end(&mut rest).ok();
    drop(waiting);
    let records = run.records.lock().unwrap();
    let closed = records.iter().find(|record| record.stage == Stage::Closed).unwrap();
    assert_eq!(closed.refusal.as_ref().unwrap().word, "ended");
    assert!(closed.bytes_down > 0);
}

#[test]
fn why_something_was_refused_outlives_the_end_of_the_run() {
    let run = World::new(&["*.test"]).run();
    let mut stream = run.connect();
    write!(stream, "CONNECT evil.com:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 403");
    // The program has not gone yet, so its connection is still read when the run ends.
    run.serving.end().unwrap();
    let records = run.records.lock().unwrap();
    assert_eq!((records[0].stage, records[0].refusal.as_ref().unwrap().word.as_str()), (Stage::Refused, "host"));
}
