//! A supervisor for the tests: its order is a file, its exit code tells the end.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::exit, reason = "a step that fails fails the test")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its caller reads them")]

#[path = "../tests/common/order.rs"]
#[expect(dead_code, reason = "what the tests alone use")]
mod order;

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::exit;

use order::Order;
use writ_core::{Decision, json};
use writ_policy::Grant;
use writ_sandbox::{
    Asked, Command, Connected, End, Features, Host, Listeners, RunError, Suite, attack, run, self_test,
};

fn main() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some((word, world)) = words.split_first()
        && word == "attack"
    {
        exit(i32::from(!attack(world)));
    }
    let order = fs::read(std::env::var_os("WRIT_SANDBOX_ORDER").unwrap()).unwrap();
    let order: Order = json::from_slice(&order).unwrap();
    let state = PathBuf::from(std::env::var_os("WRIT_SANDBOX_STATE").unwrap());
    let features = Features::probe().unwrap().at_most(order.level);
    let host = Host { features: &features, state: &state };
    if order.test {
        let suite = if order.whole { Suite::Whole } else { Suite::Quick };
        let test = self_test(&order.confinement, suite, &["attack".into()], host).unwrap();
        println!("{}", json::to_canonical(&test));
        exit(0);
    }
    let command = Command::new(order.program, order.arguments.into_iter().map(OsString::from));
    let command = Command { watched: true, ..command };
    let grant = Grant::of(&Decision::from_reasons(Vec::new()), order.confinement.digest(), "a test").unwrap();
    let ready = |listeners: Listeners| {
        let answer = listeners.http.map(|http| {
            std::thread::spawn(move || {
                let (mut connection, _) = http.accept().unwrap();
                connection.write_all(b"from outside\n").unwrap();
            })
        });
        if let Some(connected) = &listeners.connected {
            receive(connected, order.told);
        }
        if let Some(hooks) = listeners.hooks {
            std::thread::spawn(move || {
                let (mut connection, _) = hooks.accept().unwrap();
                connection.write_all(b"from hooks\n").unwrap();
            });
        }
        if let Some(dns) = listeners.dns {
            std::thread::spawn(move || {
                let mut bytes = [0u8; 100];
                let (length, from) = dns.recv_from(&mut bytes).unwrap();
                dns.send_to(&bytes[..length], from).unwrap();
            });
        }
        Ok(answer)
    };
    let result = run(&grant, &order.confinement, command, host, ready, || ());
    match result {
        Ok(outcome) => {
            for refused in outcome.refused.iter().filter(|_| order.told) {
                let what = if refused.change { "change" } else { "open" };
                eprintln!("{what} {} {}", refused.named, refused.path.display());
            }
            match outcome.end {
                End::Exited(code) => exit(code),
                End::Signaled(signal) => exit(1000 + signal),
                End::TimeUp => exit(201),
                End::Killed => exit(202),
            }
        }
        Err(error) => fail(&error),
    }
}

/// Answers on each socket; with `told`, says what was refused.
fn receive(connected: &Connected, told: bool) {
    connected.received_by(move |asked| {
        match asked {
            Asked::Proxy(mut stream) => drop(std::thread::spawn(move || {
                let mut byte = [0];
                if stream.read(&mut byte).unwrap() == 1 {
                    stream.write_all(b"from outside\n").unwrap();
                }
            })),
            // Who is connected to speaks first.
            Asked::Direct(mut stream, to) => drop(std::thread::spawn(move || {
                stream.write_all(format!("{to}\n").as_bytes()).unwrap();
            })),
            Asked::Names(socket) => drop(std::thread::spawn(move || {
                let socket = UnixDatagram::from(socket);
                let mut packet = [0; 512];
                while let Ok(length @ 1..) = socket.recv(&mut packet) {
                    if length < 17 {
                        continue;
                    }
                    socket.send(&answer(&packet[..length])).unwrap();
                }
            })),
            Asked::Elsewhere(address) if told => eprintln!("elsewhere {address}"),
            Asked::Other(what) if told => eprintln!("{what}"),
            Asked::Elsewhere(_) | Asked::Other(_) => {}
        }
        Ok(())
    });
}

/// Any name has one address; other questions have no answer.
fn answer(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer.truncate(12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5);
    (answer[2], answer[3]) = (0x84, 0x80);
    answer[8..12].fill(0);
    if answer[answer.len() - 4..] == [0, 1, 0, 1] {
        answer[7] = 1;
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 7, 0, 1]);
    }
    answer
}

fn fail(error: &RunError) -> ! {
    eprintln!("error: {error}");
    exit(error.exit_code().into())
}
