//! What a confined `/bin/true` costs more than a plain one, and what a self-test costs: `cost [RUNS]`.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement")]

use std::time::{Duration, Instant};

use writ_sandbox::{Command, Confinement, Features, Host, HostPath, Network, Ports, run, self_test};

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((word, world)) = words.split_first()
        && word == "attack"
    {
        assert!(writ_sandbox::attack(world));
        return;
    }
    let runs = std::env::args().nth(1).map_or(300, |text| text.parse().unwrap());
    let folder = HostPath::new(std::env::current_dir().unwrap()).unwrap();
    let state = std::env::temp_dir().join(format!("writ-cost-{}", std::process::id()));
    let features = Features::probe().unwrap();
    let host = Host { features: &features, state: &state };
    let mut reading = Confinement::reading(folder.clone());
    reading.binds.clear();
    let mut writing = reading.clone();
    writing.writable.push(folder.clone());
    for name in [".git/hooks/", ".git/config", ".envrc", ".claude/settings.json", ".vscode/tasks.json", ".mcp.json"] {
        writing.read_only.push(HostPath::new(folder.as_path().join(name)).unwrap());
    }
    let mut proxied = writing.clone();
    proxied.network = Network::Proxied(Ports::default());
    let mut open = writing.clone();
    open.network = Network::Open;
    let confined = |confinement: &Confinement| {
        let command = Command::new("/bin/true", []);
        run(confinement, command, host, Ok).unwrap();
    };
    let plain = || assert!(std::process::Command::new("/bin/true").status().unwrap().success());
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..runs {
        times[0].push(timed(plain));
        times[1].push(timed(|| confined(&reading)));
        times[2].push(timed(|| confined(&writing)));
        times[3].push(timed(|| confined(&proxied)));
        times[4].push(timed(|| confined(&open)));
    }
    for (name, times) in ["plain", "reading", "writing", "proxied", "host's network"].into_iter().zip(&mut times) {
        times.sort();
        println!(
            "{name:16} p50 {:>6} µs  p95 {:>6} µs",
            times[runs / 2].as_micros(),
            times[runs * 95 / 100].as_micros()
        );
    }
    let mut tests: Vec<Duration> =
        (0..9).map(|_| timed(|| drop(self_test(&writing, &["attack".into()], host).unwrap()))).collect();
    tests.sort();
    println!("self-test        p50 {:>6} µs of {} attacks", tests[4].as_micros(), writ_sandbox::attacks().count());
    std::fs::remove_dir_all(state).unwrap();
}

fn timed(action: impl FnOnce()) -> Duration {
    let start = Instant::now();
    action();
    start.elapsed()
}
