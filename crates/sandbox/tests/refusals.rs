//! What a command was refused of files is told, and what it was given is not.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use common::{Order, World, everybody};
use writ_sandbox::Level;

#[test]
fn refusals_are_told_with_their_paths() {
    for who in everybody() {
        for level in [Level::Full, Level::Namespaces] {
            let world = World::new(who);
            fs::create_dir_all(world.folder.join("kept")).unwrap();
            fs::create_dir_all(world.folder.join("deep/er")).unwrap();
            fs::write(world.folder.join("key"), "CANARY").unwrap();
            fs::write(world.folder.join("kept/file"), "text").unwrap();
            symlink(&world.folder, world.outside.join("alias")).unwrap();
            world.open();
            let mut confinement = world.confinement();
            confinement.masked.push(world.path("key"));
            confinement.read_only.push(world.path("kept/"));
            let alias = world.outside.join("alias/written");
            let outside = world.outside.join("new");
            let script = format!(
                "cd deep/er; cat ../../key; cat ../../kept/file; echo x > ../../kept/file; cd ../..; mv kept k; \
                 mkdir kept/more; ln -s x kept/link; rm kept/file; truncate -s 0 kept/file; \
                 echo fine > fine; cat fine; mkdir -p a/b; mv a c; rm -r c; echo x > '{}'; echo x > '{}'; echo > /tmp/x; \
                 python3 -c 'import os; os.open(\"/usr/none\", os.O_RDWR|os.O_CREAT)'; exec 5<> /dev/null; true",
                alias.display(),
                outside.display()
            );
            let mut order = Order::shell(&confinement, &script);
            (order.level, order.told) = (level, true);
            let told = world.run(&order, b"");
            let mut lines: Vec<&str> =
                told.errors.lines().filter(|line| line.starts_with("change ") || line.starts_with("open ")).collect();
            lines.sort_unstable();
            let at = |name: &str| world.folder.join(name).display().to_string();
            let mut expected = vec![
                format!("open true {}", at("key")),
                format!("change true {}", at("kept")),
                format!("change true {}", at("kept/file")),
                format!("change true {}", at("kept/link")),
                format!("change true {}", at("kept/more")),
                format!("change false {}", outside.display()),
                "change false /usr/none".to_owned(),
            ];
            expected.sort();
            assert_eq!(lines, expected, "{who:?} {level:?} {}", told.errors);
            assert_eq!(told.code, Some(0));
        }
    }
}

/// Programs that name many files are not slowed down much, and threads that name them at once are not mixed up.
#[test]
fn many_files_are_named_at_once() {
    let world = World::new(everybody()[0]);
    fs::write(world.folder.join("key"), "CANARY").unwrap();
    world.open();
    let mut confinement = world.confinement();
    confinement.masked.push(world.path("key"));
    let script = "python3 - <<'end'
import os, threading, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work(name):
    for number in range(4000):
        os.close(os.open(name + str(number % 7), os.O_RDWR | os.O_CREAT))
        try: os.open('key', os.O_RDONLY)
        except PermissionError: pass
threads = [threading.Thread(target=work, args=(name,)) for name in 'abcd']
[thread.start() for thread in threads]
[thread.join() for thread in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
print('done')
end";
    let begun = Instant::now();
    let mut order = Order::shell(&confinement, script);
    order.told = true;
    let told = world.run(&order, b"");
    assert_eq!(told.text(), "done\n", "{}", told.errors);
    let lines: Vec<&str> = told.errors.lines().collect();
    assert_eq!(lines, [format!("open true {}", world.folder.join("key").display())]);
    println!("32,000 calls: {:?}", begun.elapsed());
}
