//! A folder whose changes go to a layer: it stays as it is, and what was changed is there for the next command.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod common;

use std::fs;

use common::{Order, Who, World, everybody};
use writ_sandbox::{Confinement, HostPath, Layered, Level, Reading};

fn home(world: &World) -> std::path::PathBuf {
    let home = world.folder.join("home: of, \\ somebody");
    fs::create_dir_all(home.join("cache/deep")).unwrap();
    fs::create_dir_all(home.join("keys")).unwrap();
    fs::create_dir_all(home.join("work")).unwrap();
    fs::write(home.join("cache/deep/old"), "old\n").unwrap();
    fs::write(home.join("keys/key"), "CANARY\n").unwrap();
    fs::write(home.join("profile"), "profile\n").unwrap();
    fs::write(home.join("kept"), "kept\n").unwrap();
    world.open();
    home
}

fn confinement(world: &World, home: &std::path::Path) -> Confinement {
    let path = |name: &str| HostPath::try_from(home.join(name).as_path()).unwrap();
    let mut confinement = Confinement::reading(path("work"));
    confinement.writable.push(path("work"));
    confinement.masked.push(path("keys"));
    confinement.read_only.push(path("kept"));
    confinement.read_only.push(path("none"));
    let layer = HostPath::try_from(world.state.join("layer").as_path()).unwrap();
    confinement.layered.push(Layered { path: HostPath::try_from(home).unwrap(), layer, lasting: false });
    confinement
}

#[test]
fn changes_stay_in_the_layer() {
    for who in everybody() {
        for level in [Level::Full, Level::Namespaces] {
            let world = World::new(who);
            let home = home(&world);
            let confinement = confinement(&world, &home);
            let run = |script: &str| {
                let mut order = Order::shell(&confinement, script);
                order.level = level;
                let told = world.run(&order, b"");
                (told.text(), told.errors)
            };
            let (text, errors) = run(
                "cd ..; cat keys/key kept profile cache/deep/old; echo new > cache/deep/new; echo more >> profile; rm cache/deep/old
                 echo x > kept; mkdir -p .npm/a; echo y > .npm/a/b; mv .npm .n; echo z > work/made; ln -s x link; chmod 700 cache
                 python3 -c 'open(\"many\",\"w\").write(\"x\"*100000)'; echo 'x' > none; ls",
            );
            assert_eq!(
                text, "kept\nprofile\nold\ncache\nkept\nkeys\nlink\nmany\nnone\nprofile\nwork\n",
                "{who:?} {level:?} {errors}"
            );
            let (text, errors) = run(
                "cd ..; cat profile cache/deep/new .n/a/b work/made; ls cache/deep; cat cache/deep/old; wc -c < many",
            );
            assert_eq!(text, "profile\nmore\nnew\ny\nz\nnew\n100000\n", "{who:?} {level:?} {errors}");
            // The host's own is as it was.
            let mut there: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            there.sort();
            assert_eq!(there, ["cache", "kept", "keys", "profile", "work"], "{who:?} {level:?}");
            assert_eq!(fs::read_to_string(home.join("profile")).unwrap(), "profile\n");
            assert_eq!(fs::read_to_string(home.join("cache/deep/old")).unwrap(), "old\n");
            assert!(!home.join("cache/deep/new").exists());
            assert_eq!(fs::read_to_string(home.join("work/made")).unwrap(), "z\n");
            // The kernel's own folder is gone.
            let mut layer: Vec<_> =
                fs::read_dir(world.state.join("layer")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            layer.sort();
            assert_eq!(layer, ["changes"], "{who:?} {level:?}");
        }
    }
}

/// Two at once share what was changed, and end as well as one.
#[test]
fn two_commands_at_once() {
    for who in everybody() {
        let world = World::new(who);
        let home = home(&world);
        let confinement = confinement(&world, &home);
        let script = |name: &str| {
            format!(
                "cd ..; for i in $(seq 200); do echo $i > {name}$i && mv {name}$i {name}; echo $i >> profile; done; cat {name}; echo end"
            )
        };
        let children: Vec<_> = ["a", "b", "c"]
            .map(|name| world.start(&Order::shell(&confinement, &script(name))))
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        for child in children {
            assert_eq!(
                String::from_utf8_lossy(&child.stdout),
                "200\nend\n",
                "{who:?} {}",
                String::from_utf8_lossy(&child.stderr)
            );
        }
        assert_eq!(fs::read_to_string(home.join("profile")).unwrap(), "profile\n");
    }
}

/// The end of a layer that is to outlast a power cut writes out what anybody has written to the same disk; of no other one.
#[test]
fn only_a_lasting_layer_is_written_out() {
    let world = World::new(Who::Somebody);
    let home = home(&world);
    let mut confinement = confinement(&world, &home);
    for lasting in [false, true] {
        confinement.layered.iter_mut().for_each(|layered| layered.lasting = lasting);
        let told = world.shell(&confinement, "grep -q ' overlay .*volatile' /proc/self/mounts && echo not; echo end");
        assert_eq!(told.text(), if lasting { "end\n" } else { "not\nend\n" }, "{}", told.errors);
    }
}

/// Where reading is closed, the layered folder is shown as it is granted: whole.
#[test]
fn a_root_of_its_own_has_layers_too() {
    let world = World::new(Who::Somebody);
    let home = home(&world);
    let mut confinement = confinement(&world, &home);
    confinement.reading = Reading::Closed;
    for path in ["/usr", "/bin", "/lib", "/lib64"] {
        confinement.readable.push(HostPath::new(path).unwrap());
    }
    let told = world.shell(&confinement, "cat ../profile; echo x > ../profile; cat ../profile ../keys/key");
    assert_eq!(told.text(), "profile\nx\n", "{}", told.errors);
    assert_eq!(fs::read_to_string(home.join("profile")).unwrap(), "profile\n");
}
