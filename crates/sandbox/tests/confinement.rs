//! What a confined command can reach, at the highest level.
mod common;

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command as Plain;

use common::{Order, Who, World, everybody, is_root};
use writ_sandbox::{Bind, HostPath, Level, Network, Pass, Ports, Reading, UnixSockets};

fn levels() -> [Level; 2] {
    [Level::Full, Level::Namespaces]
}

#[test]
fn files_are_held_and_given_back() {
    for who in everybody() {
        for level in levels() {
            let world = World::new(who);
            fs::create_dir_all(world.folder.join("secrets")).unwrap();
            fs::write(world.folder.join("secrets/key"), "CANARY").unwrap();
            fs::create_dir_all(world.folder.join("sub/.git/hooks")).unwrap();
            symlink(world.outside.join("secret"), world.folder.join("link")).unwrap();
            world.open();
            let mut confinement = world.confinement();
            confinement.masked.extend([world.path("secrets/key"), world.path("nothing"), world.path("nowhere/")]);
            confinement.masked.push(HostPath::try_from(world.outside.as_path()).unwrap());
            for kept in ["sub/.git/hooks/", ".envrc", ".claude/settings.json", "link"] {
                confinement.read_only.push(world.path(kept));
            }
            let script = "
                cat secrets/key; cat nothing; ls nowhere; cat link; cat ../outside/secret
                mv secrets s2; cat s2/key; ln secrets/key hard; cat hard; cp -r secrets s3; cat s3/key
                echo x > sub/.git/hooks/h; mv sub sub2; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/h
                echo x > .envrc; mv .claude c2; echo x > .claude/settings.json; echo x > nothing; echo x > nowhere/f
                rm -f link; ln -sf /etc/passwd link; rm -rf sub secrets .envrc .claude
                echo fine > written; cat written";
            let mut order = Order::shell(&confinement, script);
            order.level = level;
            let told = world.run(&order, b"");
            assert_eq!((told.text().as_str(), told.code), ("fine\n", Some(0)), "{who:?} {}", told.errors);
            assert_eq!(fs::read_to_string(world.folder.join("secrets/key")).unwrap(), "CANARY");
            let mut left: Vec<String> = fs::read_dir(&world.folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            assert_eq!(left, ["link", "s3", "secrets", "sub", "written"], "{who:?}");
            assert!(fs::read_dir(world.folder.join("sub/.git/hooks")).unwrap().next().is_none());
            // The control: without masks the same lines reach everything.
            let open = world.shell(
                &world.confinement(),
                "cat secrets/key link; echo x > .envrc; mv sub sub2; rm -f link; ls sub2/.git",
            );
            assert_eq!(open.text(), "CANARYCANARY\nhooks\n", "{who:?} {}", open.errors);
        }
    }
}

#[test]
fn what_is_not_writable_cannot_be_written() {
    for who in everybody() {
        let world = World::new(who);
        let mut confinement = world.confinement();
        confinement.writable.clear();
        let told = world.shell(
            &confinement,
            "echo x > a; echo x > ../outside/b; echo x > /tmp/c && cat /tmp/c; touch /usr/d; ls /dev/shm",
        );
        assert_eq!(told.text(), "x\n", "{who:?} {}", told.errors);
        assert!(!world.folder.join("a").exists() && !world.outside.join("b").exists());
    }
}

#[test]
fn closed_reading_shows_what_is_listed() {
    for who in everybody() {
        let world = World::new(who);
        let shown = world.outside.join("shown");
        fs::write(&shown, "shown\n").unwrap();
        world.open();
        let mut confinement = world.confinement();
        confinement.reading = Reading::Closed;
        for path in ["/usr", "/bin", "/lib", "/lib64"] {
            confinement.readable.push(HostPath::new(path).unwrap());
        }
        confinement.readable.push(HostPath::try_from(shown.as_path()).unwrap());
        confinement.binds.push(Bind {
            source: HostPath::try_from(shown.as_path()).unwrap(),
            target: HostPath::new("/etc/resolv.conf").unwrap(),
            writable: false,
        });
        let told = world.shell(
            &confinement,
            "cat ../outside/shown /etc/resolv.conf; cat ../outside/secret /etc/passwd; ls /; echo x > /etc/resolv.conf",
        );
        let text = told.text();
        assert!(
            text.starts_with("shown\nshown\n") && !text.contains("CANARY") && !text.contains("root:x"),
            "{who:?} {text} {}",
            told.errors
        );
        assert!(!text.contains("home"), "{text}");
        // Nothing lies over the root for `..` to lead to.
        let script = format!(
            "stat -c %d:%i / /usr/.. /dev/.. /proc/..; stat '/usr/..{0}'; chmod 777 '/usr/..{0}'; readlink /usr/../proc/1/exe",
            world.outside.join("secret").display()
        );
        let told = world.shell(&confinement, &script);
        let text = told.text();
        let roots: Vec<&str> = text.lines().collect();
        assert!(roots.len() == 4 && roots.iter().all(|root| *root == roots[0]), "{who:?} {text} {}", told.errors);
    }
}

/// The home is a folder of the command's own, in which what is granted is shown; the host's stays as it is.
#[test]
fn a_home_that_is_hidden_is_the_commands_own() {
    for who in everybody() {
        let world = World::new(who);
        fs::create_dir_all(world.outside.join("tools")).unwrap();
        fs::write(world.outside.join("tools/t"), "tool\n").unwrap();
        world.open();
        let mut confinement = world.confinement();
        confinement.reading = Reading::Closed;
        for path in ["/usr", "/bin", "/lib", "/lib64"] {
            confinement.readable.push(HostPath::new(path).unwrap());
        }
        let host = |path: &std::path::Path| HostPath::try_from(path).unwrap();
        confinement.readable.push(host(&world.outside.join("tools")));
        confinement.home =
            Some(Bind { source: host(&world.state.join("home")), target: host(&world.outside), writable: true });
        let home = world.outside.display();
        let first =
            format!("cd '{home}'; cat tools/t; cat secret; echo kept > new; mkdir d; echo x > tools/u; echo $?");
        let told = world.shell(&confinement, &first);
        assert_eq!(told.text(), "tool\n2\n", "{who:?} {}", told.errors);
        let told = world.shell(&confinement, &format!("cd '{home}'; cat new; ls -A"));
        assert_eq!(told.text(), "kept\nd\nnew\ntools\n", "{who:?} {}", told.errors);
        assert!(!world.outside.join("new").exists() && !world.outside.join("d").exists());
    }
}

#[test]
fn deeper_places_win() {
    let world = World::new(everybody()[0]);
    fs::create_dir_all(world.folder.join("a/b/c")).unwrap();
    fs::write(world.folder.join("a/b/f"), "CANARY").unwrap();
    fs::write(world.folder.join("a/b/c/f"), "shown\n").unwrap();
    fs::write(world.folder.join("a/b/c/g"), "CANARY").unwrap();
    world.open();
    let mut confinement = world.confinement();
    confinement.masked.extend([world.path("a/b"), world.path("a/b/c/g")]);
    confinement.readable.push(world.path("a/b/c"));
    let told = world.shell(&confinement, "cat a/b/f; cat a/b/c/f; cat a/b/c/g; echo x > a/b/c/h; echo x > a/ok");
    assert_eq!(told.text(), "shown\n", "{}", told.errors);
    assert!(world.folder.join("a/ok").exists() && !world.folder.join("a/b/c/h").exists());
}

#[test]
fn names_may_be_anything() {
    for who in everybody() {
        let world = World::new(who);
        let name = OsStr::from_bytes(b"a b\n\xff'\"$(x)");
        fs::create_dir(world.folder.join(name)).unwrap();
        fs::write(world.folder.join(name).join("denied"), "CANARY").unwrap();
        fs::write(world.folder.join(name).join("open"), "fine\n").unwrap();
        world.open();
        let mut confinement = world.confinement();
        confinement.folder = world.path(name);
        let mut inner = world.path(name).as_path().as_os_str().to_owned();
        inner.push("/denied");
        confinement.masked.push(HostPath::new(inner).unwrap());
        let told = world.shell(&confinement, "cat denied; cat open");
        assert_eq!(told.text(), "fine\n", "{who:?} {}", told.errors);
    }
}

#[test]
fn a_folder_below_tmp_is_shown_and_the_rest_is_not() {
    for who in everybody() {
        let world = World::at(who, &std::env::temp_dir());
        let told =
            world.shell(&world.confinement(), "cat ../outside/secret; echo fine > new; cat new; ls -A /tmp | wc -l");
        assert_eq!(told.text(), "fine\n1\n", "{who:?} {}", told.errors);
        assert!(world.folder.join("new").exists());
    }
}

#[test]
fn a_folder_on_another_mount_works() {
    if !is_root() {
        return;
    }
    let world = World::new(Who::Root);
    let mount = |arguments: &[&OsStr]| Plain::new("mount").args(arguments).status().unwrap().success();
    let options = format!("uid={0},gid={0}", common::SOMEBODY);
    assert!(mount(&[
        "-t".as_ref(),
        "tmpfs".as_ref(),
        "-o".as_ref(),
        options.as_ref(),
        "none".as_ref(),
        world.folder.as_os_str()
    ]));
    fs::write(world.folder.join("denied"), "CANARY").unwrap();
    fs::create_dir(world.folder.join("deeper")).unwrap();
    assert!(mount(&[
        "-t".as_ref(),
        "tmpfs".as_ref(),
        "-o".as_ref(),
        options.as_ref(),
        "none".as_ref(),
        world.folder.join("deeper").as_os_str()
    ]));
    let mut confinement = world.confinement();
    confinement.masked.push(world.path("denied"));
    let told = world.shell(&confinement, "cat denied; echo fine > deeper/new; cat deeper/new; umount deeper; umount .");
    let there = fs::read_to_string(world.folder.join("deeper/new"));
    for folder in [world.folder.join("deeper"), world.folder.clone()] {
        assert!(Plain::new("umount").arg(folder).status().unwrap().success());
    }
    assert_eq!((told.text().as_str(), there.unwrap().as_str()), ("fine\n", "fine\n"), "{}", told.errors);
}

#[test]
fn thousands_of_masked_files() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    for number in 0..3000 {
        let name = format!("d{}/f{number}", number % 7);
        fs::create_dir_all(world.folder.join(format!("d{}", number % 7))).unwrap();
        fs::write(world.folder.join(&name), "CANARY").unwrap();
        confinement.masked.push(world.path(&name));
    }
    world.open();
    let told = world.shell(&confinement, "cat d*/f* 2>/dev/null; echo end");
    assert_eq!(told.text(), "end\n", "{}", told.errors);
}

#[test]
fn the_network_is_as_asked() {
    for who in everybody() {
        let world = World::new(who);
        let outside = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = outside.local_addr().unwrap().port();
        let connect = |port: u16| {
            format!(
                "python3 -c 'import socket;s=socket.create_connection((\"127.0.0.1\",{port}),2);s.shutdown(1);print(s.recv(99).decode(),end=\"\")' 2>&1 | tail -1"
            )
        };
        let mut confinement = world.confinement();
        assert!(world.shell(&confinement, &connect(port)).text().contains("refused"), "{who:?}");
        // Loopback inside is for the command's own servers.
        let own = "python3 -c 'import socket;l=socket.create_server((\"127.0.0.1\",0));s=socket.create_connection(l.getsockname());print(\"own\")'";
        assert_eq!(world.shell(&confinement, own).text(), "own\n");
        confinement.network = Network::Proxied(Ports::default());
        let told = world.shell(&confinement, &connect(3128));
        assert_eq!(told.text(), "from outside\n", "{who:?} {}", told.errors);
        let dns = "python3 -c 'import socket;s=socket.socket(2,2);s.settimeout(2);s.sendto(b\"q\",(\"127.0.0.1\",53));print(s.recv(9))'";
        assert_eq!(world.shell(&confinement, dns).text(), "b'q'\n");
        assert!(world.shell(&confinement, &connect(port)).text().contains("refused"));
        confinement.network = Network::Open;
        let served = std::thread::spawn(move || drop(outside.accept().unwrap()));
        let told = world.shell(&confinement, &connect(port));
        assert_eq!(told.text(), "", "{}", told.errors);
        served.join().unwrap();
    }
}

#[test]
fn unix_sockets_are_as_asked() {
    let world = World::new(everybody()[0]);
    let socket = world.folder.join("s");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let connect = "python3 -c 'import socket;a,b=socket.socketpair();s=socket.socket(1);s.connect(\"s\");print(\"connected\")' 2>&1 | tail -1";
    let mut confinement = world.confinement();
    assert!(world.shell(&confinement, connect).text().contains("PermissionError"));
    confinement.unix_sockets = UnixSockets::Open;
    assert_eq!(world.shell(&confinement, connect).text(), "connected\n");
}

#[test]
fn the_environment_is_built() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    confinement.environment.pass = Pass::Only(vec!["PATH".into()]);
    confinement.environment.set = vec![("A".into(), "b c".into())];
    let told =
        world.run(&Order { program: "env".into(), arguments: Vec::new(), ..Order::shell(&confinement, "") }, b"");
    let text = told.text();
    assert!(
        text.contains("A=b c\n") && text.contains("PATH=") && !text.contains("WRIT_SANDBOX"),
        "{text} {}",
        told.errors
    );
}

#[test]
fn what_is_granted_and_missing_is_an_error() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    confinement.readable.push(world.path("missing"));
    let told = world.shell(&confinement, "echo ran");
    assert_eq!((told.text().as_str(), told.code), ("", Some(125)));
    assert!(told.errors.contains("missing") && told.errors.contains("does not exist"), "{}", told.errors);
}

#[test]
fn attacks_are_held() {
    for who in everybody() {
        for level in levels() {
            let world = World::new(who);
            fs::write(world.folder.join("denied"), "CANARY").unwrap();
            fs::write(world.folder.join("kept"), "as it is").unwrap();
            world.open();
            let mut confinement = world.confinement();
            confinement.masked.push(world.path("denied"));
            confinement.read_only.push(world.path("kept"));
            let order = Order { test: true, level, ..Order::shell(&confinement, "") };
            let told = world.run(&order, b"");
            assert_eq!(told.code, Some(0), "{who:?} {level:?} {}", told.errors);
            let test: writ_sandbox::SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
            assert_eq!(test.escaped().collect::<Vec<_>>(), Vec::<&str>::new(), "{who:?} {level:?}");
            assert!(test.held() >= 30, "{who:?} {test:?}");
        }
    }
}

/// Every attack of the long list, with limits, a layer and listeners of its own.
#[test]
fn the_whole_list_is_held() {
    for who in everybody() {
        for level in levels() {
            let world = World::new(who);
            let order = Order { test: true, whole: true, level, ..Order::shell(&world.confinement(), "") };
            let told = world.run(&order, b"");
            assert_eq!(told.code, Some(0), "{who:?} {level:?} {}", told.errors);
            let test: writ_sandbox::SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
            assert_eq!(test.escaped().collect::<Vec<_>>(), Vec::<&str>::new(), "{who:?} {level:?}");
            assert!(test.held() >= 110, "{who:?} {level:?} {test:?}");
            assert_eq!(test.results.get("X01"), Some(&writ_sandbox::AttackResult::Named));
            for id in ["L01", "N05", "P22", "R01", "R04", "I39"] {
                assert_eq!(test.results.get(id), Some(&writ_sandbox::AttackResult::Held), "{who:?} {id} {test:?}");
            }
        }
    }
}

#[test]
fn an_attack_that_succeeds_is_seen() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    // What is masked and also granted below the very same test is reached: a control of the self-test itself.
    confinement.network = Network::Open;
    let told = world.run(&Order { test: true, ..Order::shell(&confinement, "") }, b"");
    let test: writ_sandbox::SelfTest = writ_core::json::from_slice(told.text().trim_end().as_bytes()).unwrap();
    assert_eq!(test.results.get("N01"), Some(&writ_sandbox::AttackResult::Granted));
    assert_eq!(test.results.get("I04"), Some(&writ_sandbox::AttackResult::Held));
}

#[test]
fn what_root_closed_to_others_is_shown_where_it_is_granted() {
    for who in everybody() {
        let world = World::new(who);
        let home = world.outside.join("home");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        fs::write(home.join("settings"), "shown\n").unwrap();
        fs::write(home.join(".ssh/key"), "CANARY").unwrap();
        world.open();
        for path in [&home.join("settings"), &home.join(".ssh/key")] {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let at = |name: &str| HostPath::try_from(home.join(name).as_path()).unwrap();
        let mut confinement = world.confinement();
        confinement.masked.push(at(".ssh"));
        let script = format!("cd {}; cat settings .ssh/key; echo x > new; cat /etc/shadow", home.display());
        let told = world.shell(&confinement, &script);
        // A stand-in for root owns nothing, and is told so.
        let expected = if who == Who::RootsOwn { "" } else { "shown\n" };
        assert_eq!(told.text(), expected, "{who:?} {}", told.errors);
        confinement.readable.push(at(""));
        let told = world.shell(&confinement, &script);
        assert_eq!(told.text(), "shown\n", "{who:?} {}", told.errors);
        assert!(!home.join("new").exists());
    }
}
