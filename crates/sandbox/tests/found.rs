//! What a command finds: its temporary files, its name, and names that are kept.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{World, everybody, is_root};
use writ_sandbox::{Bind, HostPath, Reading};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn temporary_files_last_as_long_as_their_folder() {
    for who in everybody() {
        for place in [Path::new(env!("CARGO_TARGET_TMPDIR")), &std::env::temp_dir()] {
            let world = World::at(who, place);
            // Only the supervisor may go where it lies.
            mode(&world.state, 0o700);
            let mut confinement = world.confinement();
            let folder = world.state.join("tmp");
            confinement.temporary_folder = Some(HostPath::try_from(folder.as_path()).unwrap());
            let shown = world.path("shown");
            fs::write(shown.as_path(), "shown\n").unwrap();
            world.open();
            confinement.binds.push(Bind { source: shown, target: HostPath::new("/tmp/a/b").unwrap(), writable: false });
            let told = world.shell(&confinement, "echo kept > /tmp/new; mkdir /tmp/d && echo x > new; cat /tmp/a/b");
            assert_eq!((told.text().as_str(), told.code), ("shown\n", Some(0)), "{who:?} {}", told.errors);
            let script = format!(
                "cat /tmp/new new; [ -O /tmp/new ] && echo own; echo x > '{}'/other; rm /tmp/new; ls -d /tmp/a /tmp/d",
                folder.display()
            );
            let told = world.shell(&confinement, &script);
            assert_eq!(told.text(), "kept\nx\nown\n/tmp/a\n/tmp/d\n", "{who:?} {place:?} {}", told.errors);
            assert!(!folder.join("other").exists() && !folder.join("new").exists() && folder.join("d").is_dir());
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), if place == std::env::temp_dir() { 3 } else { 2 });
            // Open to all, it is not used.
            mode(&folder, 0o777);
            assert_eq!(world.shell(&confinement, "echo ran").code, Some(125));
        }
    }
}

#[test]
fn what_an_earlier_command_put_in_the_way_is_not_followed() {
    for who in everybody() {
        let world = World::new(who);
        let mut confinement = world.confinement();
        confinement.temporary_folder = Some(HostPath::try_from(world.state.join("tmp").as_path()).unwrap());
        world.open();
        let link = format!("ln -s '{}' /tmp/a", world.outside.display());
        assert_eq!(world.shell(&confinement, &link).code, Some(0));
        let secret = HostPath::try_from(world.outside.join("secret").as_path()).unwrap();
        confinement.binds.push(Bind { source: secret, target: HostPath::new("/tmp/a/b").unwrap(), writable: false });
        assert_eq!(world.shell(&confinement, "echo ran").code, Some(125));
        assert!(!world.outside.join("b").exists());
    }
}

#[test]
fn the_user_has_a_name() {
    for who in everybody().into_iter().filter(|_| is_root()) {
        let world = World::new(who);
        let mut confinement = world.confinement();
        confinement.environment.set.push(("HOME".into(), "/nowhere".into()));
        let script = "whoami; id -gn; echo $HOME; head -1 /etc/passwd; echo x >> /etc/passwd; getent passwd $(id -u) | cut -d: -f6";
        let told = world.shell(&confinement, script);
        let first = fs::read_to_string("/etc/passwd").unwrap().lines().next().unwrap().to_owned();
        assert_eq!(told.text(), format!("writ\nwrit\n/nowhere\n{first}\n/nowhere\n"), "{who:?} {}", told.errors);
        // What the caller says wins.
        confinement.masked.push(HostPath::new("/etc/passwd").unwrap());
        assert!(!world.shell(&confinement, "whoami; cat /etc/passwd").text().contains("writ"));
        confinement.masked.clear();
        confinement.reading = Reading::Closed;
        for path in ["/usr", "/bin", "/lib", "/lib64"] {
            confinement.readable.push(HostPath::new(path).unwrap());
        }
        let told = world.shell(&confinement, "whoami; wc -l < /etc/passwd; wc -l < /etc/group; ls /etc");
        assert_eq!(told.text(), "writ\n1\n1\ngroup\npasswd\n", "{who:?} {}", told.errors);
    }
}

#[test]
fn a_kept_name_disturbs_no_program() {
    for who in everybody() {
        let world = World::new(who);
        fs::create_dir_all(world.folder.join("repository/src")).unwrap();
        fs::write(world.folder.join("repository/src/file"), "x\n").unwrap();
        world.open();
        let mut confinement = world.confinement();
        confinement.environment.set.push(("HOME".into(), "/nowhere".into()));
        for name in ["repository/.envrc", "repository/.gitmodules", "repository/src/.npmrc", "repository/.vscode/"] {
            confinement.read_only.push(world.path(name));
        }
        let script = "cd repository && git init -q . && git status --short && git clean -nd && git add -An
            git add src && git -c user.name=a -c user.email=a@b commit -qm a && touch new && git -c user.name=a -c user.email=a@b stash -qu && git stash pop -q >/dev/null && git clean -nd
            tar cf ../t . && cp -r . ../copy && python3 -c 'import shutil; shutil.copytree(\".\", \"../tree\")' && echo well
            echo x > .envrc; rm -f .envrc; mv .envrc e; ln -f src/file .envrc; wc -c < .envrc; chmod 777 .envrc || echo kept";
        let told = world.shell(&confinement, script);
        let expected = "?? src/\nWould remove src/\nadd 'src/file'\nWould remove new\nwell\n0\nkept\n";
        assert_eq!(told.text(), expected, "{who:?} {}", told.errors);
        assert!(!world.folder.join("repository/.envrc").exists() && !told.errors.contains("tar:"));
    }
}
