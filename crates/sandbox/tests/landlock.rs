//! What is held where there are no namespaces.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use common::{Order, Who, World, everybody, is_root};
use writ_sandbox::{
    AttackResult, Confinement, HostPath, Level, Network, Ports, Reading, SelfTest, Survivors, UnixSockets,
};

/// In root's own folder it is root, without any right.
fn people() -> Vec<Who> {
    everybody()
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
    confinement.temporary_folder = Some(HostPath::try_from(world.state.join("tmp").as_path()).unwrap());
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

/// What is kept apart in a folder that is given: names beside it are given one by one, and none is made beside it.
#[test]
fn what_is_apart_in_an_open_folder_is_held() {
    for (who, reading) in people().into_iter().flat_map(|who| [(who, Reading::Closed), (who, Reading::Open)]) {
        let world = World::new(who);
        for folder in ["src/deep", "kept", "hidden", "plain/a"] {
            fs::create_dir_all(world.folder.join(folder)).unwrap();
        }
        for file in ["top", "src/.env", "src/deep/.env", "src/deep/free", "kept/file", "hidden/file", "plain/a/file"] {
            fs::write(world.folder.join(file), format!("{file}\n")).unwrap();
        }
        symlink("hidden/file", world.folder.join("link")).unwrap();
        world.open();
        let mut confinement = Confinement { reading, ..closed(&world) };
        confinement.masked = ["src/.env", "src/deep/.env", "hidden", "none/yet"].map(|name| world.path(name)).into();
        confinement.masked.push(HostPath::try_from(world.outside.as_path()).unwrap());
        confinement.read_only = ["kept/", ".envrc"].map(|name| world.path(name)).into();
        let script = "cat src/.env src/deep/.env hidden/file link ../outside/secret; cat kept/file src/deep/free
            for f in top src/deep/free plain/a/file; do echo more >> $f; done; cat top
            echo new > plain/new && mv plain/new plain/a/newer && cat plain/a/newer && rm -r plain/a
            echo x > .envrc; echo x > none; mkdir none; echo x > kept/file; echo x > kept/new; rm -f kept/file; mv kept k; mv hidden h; mv src s
            ln src/.env plain/e; ln kept/file plain/k; mv src/.env plain/e; mv plain/z src/.env; ln -s ../hidden plain/h; cat plain/h/file
            ls -A; ls src; exit 4";
        let told = world.run(&order(&confinement, script), b"");
        let wanted = "kept/file\nsrc/deep/free\ntop\nmore\nnew\nhidden\nkept\nlink\nplain\nsrc\ntop\ndeep\n";
        assert_eq!((told.text().as_str(), told.code), (wanted, Some(4)), "{who:?} {reading:?} {}", told.errors);
        assert_eq!(fs::read_to_string(world.folder.join("kept/file")).unwrap(), "kept/file\n");
        assert!(fs::read_to_string(world.folder.join("src/deep/free")).unwrap().contains("more"), "{}", told.errors);
        assert!(world.folder.join("src/.env").exists() && !world.folder.join("none").exists());
    }
}

/// Where the command is root it has no right of root's, and none of what is root's alone.
#[test]
fn root_without_rights_is_held() {
    for reading in [Reading::Closed, Reading::Open] {
        if !is_root() {
            return;
        }
        let world = World::new(Who::RootsOwn);
        let mut confinement = Confinement { reading, ..closed(&world) };
        confinement.readable.push(HostPath::new("/etc").unwrap());
        let script = "id -u; grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | tr '\n\t' ' :'; echo
            cat /etc/shadow /etc/gshadow; wc -l < /etc/passwd >/dev/null && echo public
            chown 1 . ; chmod 4755 .; mknod n c 1 3; mount -t tmpfs none .; unshare -m true; kill -0 $PPID; kill -0 1
            python3 -c 'import socket; socket.socket(2, 3, 1)'; echo x > /etc/writ-test; echo x > /proc/sys/kernel/hostname; su -c true nobody
            chroot / true; setpriv --reuid 1 true; python3 -c 'import os; os.setuid(1)'; hostname writ; date -s @0 >&2; echo own > new; cat new; exit 4";
        let told = world.run(&order(&confinement, script), b"");
        let none = "0000000000000000";
        let caps = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|name| format!("{name}::{none}")).join(" ");
        assert_eq!(told.text(), format!("0\n{caps} NoNewPrivs::1 \npublic\nown\n"), "{reading:?} {}", told.errors);
        assert_eq!(told.code, Some(4), "{}", told.errors);
        let refused =
            ["chown", "mknod", "mount", "unshare", "chroot", "setpriv", "Permission denied", "PermissionError"];
        assert!(refused.iter().all(|word| told.errors.contains(word)), "{}", told.errors);
        confinement.limits.processes = Some(50);
        let told = world.run(&order(&confinement, "echo ran"), b"");
        assert!(told.code == Some(125) && told.errors.contains("exempts"), "{told:?}");
    }
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
        for id in ["D01", "D02", "D03", "D04", "D08", "F01", "P01", "P02", "P03", "P06"] {
            assert_eq!(test.results.get(id), Some(&AttackResult::Held), "{id} {who:?}");
        }
        assert!(test.held() >= 40, "{test:?}");
        // Of a masked folder names are seen, and no file is read.
        fs::create_dir(world.folder.join("keys")).unwrap();
        fs::write(world.folder.join("keys/one"), "secret\n").unwrap();
        world.open();
        let mut open = Confinement { reading: Reading::Open, ..closed(&world) };
        open.masked.push(world.path("keys"));
        let told = world.run(&Order { test: true, ..order(&open, "") }, b"");
        let test: SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
        assert_eq!(test.escaped().collect::<Vec<_>>(), Vec::<&str>::new(), "{who:?}");
        assert_eq!(test.results.get("F11"), Some(&AttackResult::Held), "{who:?}");
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
