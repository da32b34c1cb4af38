//! Runs that share namespaces: what is shared, what is not, and what ends when.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a step that fails fails the test")]

mod common;

use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Who, World, everybody};
use writ_core::Decision;
use writ_policy::Grant;
use writ_sandbox::{
    Book, Command, Confinement, End, Features, Host, HostPath, Layered, Lease, Observer, Shared, Survivors, listen, run,
};

struct Nobody;

impl Book for Nobody {
    fn began(&self, _name: &str, _mounts: u64) {}

    fn ended(&self, name: &str, _mounts: u64, _well: bool) -> Vec<u8> {
        name.as_bytes().to_vec()
    }

    fn observer(&self) -> Option<Observer> {
        None
    }
}

/// A world whose runs share what a thread of this process holds until the value goes.
struct Lab {
    world: World,
    features: Features,
    shared: Arc<Shared>,
}

impl Lab {
    fn new() -> Self {
        Self::of(everybody()[0])
    }

    fn of(who: Who) -> Self {
        let world = World::new(who);
        let features = Features::probe().unwrap();
        let host = Host { features: &features, state: &world.state };
        let (shared, _) = Shared::begin(&world.confinement(), host).unwrap();
        let shared = Arc::new(shared);
        let (socket, serving) = (listen(&world.state, "socket").unwrap(), Arc::clone(&shared));
        std::thread::spawn(move || serving.serve(&socket, Arc::new(Nobody), Duration::from_secs(60), || ()));
        Self { world, features, shared }
    }

    /// Runs a line: how it ended, and what it said until then.
    fn run(&self, confinement: &Confinement, line: &str) -> (End, String) {
        let (lease, awaited) = Lease::ask(&self.world.state, "socket", "run", &confinement.layered).unwrap();
        let (mut read, write) = io::pipe().unwrap();
        let command = Command {
            shared: Some(awaited),
            output: Some(OwnedFd::from(write)),
            watched: true,
            ..Command::new("/bin/sh", ["-c".into(), line.into()])
        };
        let host = Host { features: &self.features, state: &self.world.state };
        let grant = Grant::of(&Decision::from_reasons(Vec::new()), confinement.digest(), line).unwrap();
        let ran = run(&grant, confinement, command, host, |listeners| lease.began(&listeners), || ()).unwrap();
        let stays = confinement.survivors == Survivors::Stay && matches!(ran.end, End::Exited(_));
        assert_eq!(lease.end(stays, ran.watched, || ()).unwrap(), b"run");
        let mut said = String::new();
        read.read_to_string(&mut said).unwrap();
        (ran.end, said)
    }
}

fn alive(marker: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())).count()
}

/// Waits until so many are alive: one that was started may not be the program yet, one that was killed may still be there.
fn becomes(marker: &str, wanted: usize) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        if alive(marker) == wanted {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn gone(marker: &str) -> bool {
    becomes(marker, 0)
}

#[test]
fn a_network_is_shared_and_processes_where_they_may_stay() {
    let lab = Lab::new();
    let mut confinement = lab.world.confinement();
    // What it leaves running keeps their numbers from being given again.
    let spaces = "readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/ipc; setsid sleep 30 >/dev/null 2>&1 &";
    let of = |confinement: &Confinement| -> Vec<String> {
        lab.run(confinement, spaces).1.lines().map(str::to_owned).collect()
    };
    confinement.survivors = Survivors::Stay;
    let (one, two) = (of(&confinement), of(&confinement));
    confinement.survivors = Survivors::End;
    let alone = of(&confinement);
    assert_eq!((one.len(), &one[..2]), (4, &two[..2]));
    assert!(one[2] != two[2] && one[3] != two[3], "mounts and shared memory are each run's own");
    assert!(alone[0] == one[0] && alone[1] != one[1], "{alone:?} {one:?}");
}

#[test]
fn what_may_stay_stays_and_everything_else_ends() {
    let lab = Lab::new();
    let mut confinement = lab.world.confinement();
    let marker = |number: u32| format!("9{}.{number}", std::process::id());
    let left = |marker: &str| format!("setsid sleep {marker} >/dev/null 2>&1 & exit 3");
    assert_eq!(lab.run(&confinement, &left(&marker(1))).0, End::Exited(3));
    assert!(gone(&marker(1)), "children that may not stay");
    confinement.survivors = Survivors::Stay;
    assert_eq!(lab.run(&confinement, &left(&marker(2))).0, End::Exited(3));
    assert!(becomes(&marker(2), 1));
    confinement.limits.wall_time = Some(300);
    let line = format!("setsid sleep {0} >/dev/null 2>&1 & sleep {0}", marker(3));
    assert_eq!(lab.run(&confinement, &line).0, End::TimeUp);
    assert!(gone(&marker(3)), "what has left the command's own session too");
    assert!(becomes(&marker(2), 1), "what another run has left");
    let Lab { shared, .. } = lab;
    Lease::retire(Path::new(&lab.world.state), "socket").unwrap();
    drop(shared);
    assert!(gone(&marker(2)));
}

/// One that lets nobody look into it is found by whose child it has become.
#[test]
fn who_hides_from_the_keeper_ends_too() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        return;
    }
    let lab = Lab::new();
    let mut confinement = lab.world.confinement();
    confinement.survivors = Survivors::Stay;
    confinement.limits.wall_time = Some(700);
    let marker = format!("9{}.9", std::process::id());
    let hides = "import ctypes,time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); time.sleep(60)";
    let (end, _) =
        lab.run(&confinement, &format!("setsid /usr/bin/python3 -c '{hides}' {marker} >/dev/null 2>&1 & sleep 60"));
    assert_eq!(end, End::TimeUp);
    assert!(gone(&marker));
}

/// They are made while nobody waits, and show what is there when a run begins: nothing of a folder is looked at before.
#[test]
fn overlays_that_are_lent_are_as_fresh_as_a_runs_own() {
    for who in everybody().into_iter().filter(|who| *who != Who::Somebody || everybody().len() == 1) {
        let lab = Lab::of(who);
        let home = lab.world.folder.join("home");
        let begin = |text: &str| {
            fs::create_dir_all(home.join("work")).unwrap();
            fs::write(home.join("old"), text).unwrap();
            lab.world.open();
        };
        begin("old\n");
        let path = |name: &str| HostPath::new(home.join(name)).unwrap();
        let mut confinement = Confinement::reading(path("work"));
        confinement.writable.push(path("work"));
        confinement.survivors = Survivors::Stay;
        let layer = HostPath::new(lab.world.state.join("layer")).unwrap();
        confinement.layered.push(Layered { path: HostPath::new(&home).unwrap(), layer, lasting: false });
        let said = |line: &str| lab.run(&confinement, line).1;
        assert_eq!(said("cd ..; cat late old 2>/dev/null; echo new > made; ls"), "old\nmade\nold\nwork\n", "{who:?}");
        fs::write(home.join("late"), "late\n").unwrap();
        lab.world.open();
        // Those of the run before are there while something that it left running has them.
        let left = "cd ..; cat late made; (sleep 0.3; echo later > left) >/dev/null 2>&1 &";
        assert_eq!(said(left), "late\nnew\n", "{who:?}");
        std::thread::sleep(Duration::from_millis(600));
        assert_eq!(said("cd ..; cat left; rm made"), "later\n", "{who:?}");
        // A folder in the place of the one that the next were made over.
        fs::rename(&home, lab.world.folder.join("before")).unwrap();
        begin("another\n");
        assert_eq!(said("cd ..; cat old left; ls"), "another\nlater\nleft\nold\nwork\n", "{who:?}");
        // What the kernel worked in for them goes with whoever lends them. The next ones may still be in the making.
        std::thread::sleep(Duration::from_millis(300));
        fs::remove_dir_all(lab.world.state.join("layer")).unwrap();
        assert_eq!(said("cd ..; ls"), "old\nwork\n", "{who:?}");
        let Lab { shared, world, .. } = lab;
        Lease::retire(&world.state, "socket").unwrap();
        drop(shared);
        let works = || fs::read_dir(world.state.join("layer")).unwrap().count() - 1;
        let start = Instant::now();
        while works() > 1 && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(works(), 1, "{who:?}");
    }
}

/// Linux 6.15 and later.
fn mounts_in_what_is_detached() -> bool {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = kernel.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>());
    let mut next = || numbers.next().unwrap().unwrap();
    (next(), next()) >= (6, 15)
}

/// It is made before the run, and nobody has had it.
#[test]
fn a_tree_that_is_lent_is_as_fresh_as_a_runs_own() {
    for who in everybody().into_iter().filter(|who| *who != Who::Somebody || everybody().len() == 1) {
        let lab = Lab::of(who);
        let mut confinement = lab.world.confinement();
        confinement.survivors = Survivors::Stay;
        let line = "stat -c %.9Y /dev; date +%s.%N; ls /dev /dev/shm /dev/pts; echo left > /dev/shm/left; echo x > /dev/null; \
                    echo x > /dev/left; echo x > /dev/tty; head -c 2 /dev/zero | od -An -c; \
                    cut -d' ' -f 4-6 /proc/self/mountinfo | sort; cat /etc/passwd 2>&1";
        let ran = |confinement: &Confinement| {
            std::thread::sleep(Duration::from_millis(200));
            let (end, said) = lab.run(confinement, line);
            assert_eq!(end, End::Exited(0), "{who:?} {said}");
            let mut lines = said.splitn(3, '\n');
            let mut next = || lines.next().unwrap().to_owned();
            let [made, now] = [next(), next()].map(|time| time.parse::<f64>().unwrap());
            (now - made, next())
        };
        let (age, own) = ran(&confinement);
        assert!(age < 0.2, "{who:?}: nobody could have made one for the first run, {age}");
        assert!(own.contains("null") && own.contains("\\0"), "{who:?} {own}");
        for _ in 0..2 {
            let (age, lent) = ran(&confinement);
            assert_eq!(age > 0.1, mounts_in_what_is_detached(), "{who:?} {age}");
            assert_eq!(lent, own, "{who:?}");
        }
        confinement.temporary += 1 << 20;
        assert!(ran(&confinement).0 < 0.2, "{who:?}: another tree than the one that was made");
    }
}

/// Each lies over its own folder, in whatever order they are asked for.
#[test]
fn overlays_lie_over_their_own_folders() {
    let lab = Lab::new();
    let home = lab.world.folder.join("home");
    let names = ["zeta", "alpha", "mid/deep", "mid"];
    for name in names {
        fs::create_dir_all(home.join(name)).unwrap();
        fs::write(home.join(name).join("file"), format!("{name}\n")).unwrap();
    }
    fs::create_dir_all(home.join("work")).unwrap();
    lab.world.open();
    let path = |name: &str| HostPath::new(home.join(name)).unwrap();
    let mut confinement = Confinement::reading(path("work"));
    confinement.writable.push(path("work"));
    confinement.survivors = Survivors::Stay;
    for name in &names[..3] {
        let layer = HostPath::new(lab.world.state.join(format!("layer-{}", name.replace('/', "_")))).unwrap();
        confinement.layered.push(Layered { path: path(name), layer, lasting: false });
    }
    for _ in 0..2 {
        let (_, said) = lab.run(&confinement, "cd ..; cat zeta/file alpha/file mid/deep/file; echo x >> alpha/new");
        assert_eq!(said, "zeta\nalpha\nmid/deep\n");
    }
    assert_eq!(fs::read(lab.world.state.join("layer-alpha/changes/new")).unwrap(), b"x\nx\n");
}

/// While one looks at the names that are kept, another gives some back: neither waits for the other.
#[test]
fn runs_at_once_wait_for_nobody() {
    let lab = Lab::new();
    let mut confinement = lab.world.confinement();
    confinement.survivors = Survivors::Stay;
    confinement.read_only.push(lab.world.path("kept/file"));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..15).for_each(|_| assert_eq!(lab.run(&confinement, "echo done").1, "done\n")));
        }
    });
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
}

#[test]
fn nobody_is_lent_anything_after_the_end() {
    let lab = Lab::new();
    Lease::retire(&lab.world.state, "socket").unwrap();
    assert!(Lease::ask(&lab.world.state, "socket", "late", &[]).and_then(|(_, late)| late.lent()).is_err());
}
