//! What is held where there are no namespaces.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod common;

use std::fs;
use std::time::Duration;

use common::{Order, Who, World, everybody};
use writ_sandbox::{
    AttackResult, Confinement, HostPath, Level, Network, Ports, Reading, SelfTest, Survivors, UnixSockets,
};

/// Root's own folder needs a mount to be shown to somebody else.
fn people() -> impl Iterator<Item = Who> {
    everybody().into_iter().filter(|who| *who != Who::RootsOwn)
}

fn order(confinement: &Confinement, script: &str) -> Order {
    Order { level: Level::Landlock, ..Order::shell(confinement, script) }
}

fn closed(world: &World) -> Confinement {
    let mut confinement = world.confinement();
    confinement.reading = Reading::Closed;
    confinement.readable = ["/usr", "/bin", "/lib", "/lib64"].map(|path| HostPath::new(path).unwrap()).into();
    confinement
}

#[test]
fn files_and_network_are_held() {
    for who in people() {
        let world = World::new(who);
        let told = world.run(
            &order(&closed(&world), "cat ../outside/secret /etc/passwd; echo x > ../outside/new; echo fine > new; cat new; kill -0 $PPID && echo reached; exit 4"),
            b"",
        );
        assert_eq!((told.text().as_str(), told.code), ("fine\n", Some(4)), "{who:?} {}", told.errors);
        let python = "import socket\nfor f,k in ((2,1),(2,2),(10,1),(1,1),(16,3),(40,1)):\n try: socket.socket(f,k); print('made',f,k)\n except OSError: pass";
        let told = world.run(&order(&world.confinement(), &format!("python3 -c \"{python}\"")), b"");
        assert_eq!(told.text(), "", "{}", told.errors);
    }
}

/// The folder it starts in gives nothing, where something below it is granted.
#[test]
fn where_it_starts_is_not_granted() {
    for who in people() {
        let world = World::new(who);
        fs::create_dir(world.folder.join("in")).unwrap();
        fs::write(world.folder.join("beside"), "secret\n").unwrap();
        world.open();
        let mut confinement = closed(&world);
        confinement.writable = vec![world.path("in")];
        let told =
            world.run(&order(&confinement, "cat beside; ls; echo x > new; echo fine > in/new; cat in/new; pwd"), b"");
        assert_eq!(told.text(), format!("fine\n{}\n", world.folder.display()), "{who:?} {}", told.errors);
    }
}

#[test]
fn what_needs_mounts_is_refused() {
    let world = World::new(Who::Somebody);
    let mut confinement = closed(&world);
    confinement.masked.push(world.path("denied"));
    let told = world.run(&order(&confinement, "echo ran"), b"");
    assert!(told.code == Some(125) && told.errors.contains("mount namespace"), "{told:?}");
    // Where Unix sockets are open an address would be decided by memory that changes.
    let mut confinement = closed(&world);
    (confinement.network, confinement.unix_sockets) = (Network::Proxied(Ports::default()), UnixSockets::Open);
    let told = world.run(&order(&confinement, "echo ran"), b"");
    assert!(told.code == Some(125) && told.errors.contains("network namespace"), "{told:?}");
    // What is masked and was never granted needs nothing.
    let mut confinement = closed(&world);
    confinement.masked.push(HostPath::try_from(world.outside.as_path()).unwrap());
    assert_eq!(world.run(&order(&confinement, "echo ran"), b"").text(), "ran\n");
}

#[test]
fn attacks_are_held() {
    for who in people() {
        let world = World::new(who);
        let mut proxied = closed(&world);
        proxied.network = Network::Proxied(Ports::default());
        let told = world.run(&Order { test: true, ..order(&proxied, "") }, b"");
        assert_eq!(told.code, Some(0), "{}", told.errors);
        let test: SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
        assert_eq!(test.escaped().collect::<Vec<_>>(), Vec::<&str>::new(), "{who:?}");
        assert_eq!(test.results.get("D01"), Some(&AttackResult::Granted));
        assert_eq!(test.results.get("F01"), Some(&AttackResult::Held));
        assert!(test.held() >= 20, "{test:?}");
    }
}

/// What is left of the long list where there are no namespaces.
#[test]
fn the_whole_list_is_held_as_far_as_it_goes() {
    for who in people() {
        let world = World::new(who);
        let told = world.run(&Order { test: true, whole: true, ..order(&closed(&world), "") }, b"");
        assert_eq!(told.code, Some(0), "{}", told.errors);
        let test: SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
        assert_eq!(test.escaped().collect::<Vec<_>>(), Vec::<&str>::new(), "{who:?}");
        assert!(test.held() >= 60, "{test:?}");
    }
}

fn alive(marker: &str) -> usize {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    processes.filter(|line| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())).count()
}

#[test]
fn daemons_end_with_the_command_and_with_the_supervisor() {
    for who in people() {
        let world = World::new(who);
        let marker = format!("6{}{}", std::process::id(), who as u8);
        let daemons = format!(
            "i=0; while [ $i -lt 100 ]; do (setsid sleep {marker} >/dev/null 2>&1 </dev/null &); i=$((i+1)); done; sleep 0.2"
        );
        let told = world.run(&order(&world.confinement(), &format!("{daemons}; exit 3")), b"");
        assert_eq!((told.code, alive(&marker)), (Some(3), 0), "{who:?} {}", told.errors);
        let mut child = world.start(&order(&world.confinement(), &format!("{daemons}; sleep {marker}")));
        std::thread::sleep(Duration::from_millis(700));
        assert!(alive(&marker) > 90, "{}", alive(&marker));
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(alive(&marker), 0);
        let mut limited = world.confinement();
        limited.limits.wall_time = Some(300);
        assert_eq!(world.run(&order(&limited, &format!("{daemons}; sleep {marker}")), b"").code, Some(201));
        assert_eq!(alive(&marker), 0);
        let mut stay = world.confinement();
        stay.survivors = Survivors::Stay;
        let told = world.run(&order(&stay, "(sleep 0.2; echo late >&2) & exit 3"), b"");
        assert_eq!((told.code, told.errors.as_str()), (Some(3), "late\n"));
    }
}
