//! What a confined `/bin/true` costs more than a plain one, and what a self-test costs: `cost [RUNS]`. A call is
//! what an agent's shell gets: reading open, one repository, kept names, masks, a network that is answered outside.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement")]

use std::fs;
use std::time::{Duration, Instant};

use writ_core::Decision;
use writ_policy::Grant;
use writ_sandbox::{Command, Confinement, Features, Host, HostPath, Network, Ports, Suite, run, self_test};

/// How many names are kept that are not there: folders, files.
const KEPT: [usize; 2] = [7, 8];

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some((word, world)) = words.split_first()
        && word == "attack"
    {
        assert!(writ_sandbox::attack(world));
        return;
    }
    let runs = std::env::args().nth(1).map_or(200, |text| text.parse().unwrap());
    let home = std::env::temp_dir().join(format!("writ-cost-{}", std::process::id()));
    let (folder, state) = (home.join("repository"), home.join("state"));
    for name in [".git/hooks", "secrets", "src"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::create_dir(&state).unwrap();
    for name in [".env", "secrets/key", ".git/config"] {
        fs::write(folder.join(name), "x\n").unwrap();
    }
    let path = |name: &str| HostPath::new(folder.join(name)).unwrap();
    let features = Features::probe().unwrap();
    let host = Host { features: &features, state: &state };
    let reading = Confinement::reading(HostPath::try_from(folder.as_path()).unwrap());
    let mut writing = reading.clone();
    writing.writable.push(reading.folder.clone());
    let mut call = writing.clone();
    let [folders, files] = KEPT;
    let kept = (0..folders)
        .map(|number| format!(".kept-{number}/"))
        .chain((0..files).map(|number| format!(".kept-file-{number}")));
    call.read_only.extend([path(".git/hooks/"), path(".git/config")].into_iter().chain(kept.map(|name| path(&name))));
    call.masked.extend([path(".env"), path("secrets"), HostPath::try_from(state.as_path()).unwrap()]);
    call.network = Network::Proxied(Ports::default());
    let mut open = call.clone();
    open.network = Network::Open;
    let confined = |confinement: &Confinement| {
        let command = Command::new("/bin/true", []);
        let grant = Grant::of(&Decision::from_reasons(Vec::new()), confinement.digest(), "true").unwrap();
        run(&grant, confinement, command, host, Ok, || ()).unwrap();
    };
    let plain = || assert!(std::process::Command::new("/bin/true").status().unwrap().success());
    let mut times = [const { Vec::new() }; 5];
    for _ in 0..runs {
        times[0].push(timed(plain));
        times[1].push(timed(|| confined(&reading)));
        times[2].push(timed(|| confined(&writing)));
        times[3].push(timed(|| confined(&call)));
        times[4].push(timed(|| confined(&open)));
    }
    for (name, times) in ["plain", "reading", "writing", "a call", "host's network"].into_iter().zip(&mut times) {
        times.sort();
        println!(
            "{name:16} p50 {:>6} µs  p95 {:>6} µs",
            times[runs / 2].as_micros(),
            times[runs * 95 / 100].as_micros()
        );
    }
    let mut tests: Vec<Duration> =
        (0..9).map(|_| timed(|| drop(self_test(&call, Suite::Quick, &["attack".into()], host).unwrap()))).collect();
    tests.sort();
    println!(
        "self-test        p50 {:>6} µs of {} attacks",
        tests[4].as_micros(),
        writ_sandbox::attacks(Suite::Quick).count()
    );
    fs::remove_dir_all(home).unwrap();
}

fn timed(action: impl FnOnce()) -> Duration {
    let start = Instant::now();
    action();
    start.elapsed()
}
