//! How a confined command runs and ends: codes, signals, terminals, limits, and nothing left behind.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command as Plain, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Order, Who, World, everybody};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use writ_sandbox::{Session, Survivors, sweep};

#[test]
fn codes_and_signals_pass() {
    for who in everybody() {
        let world = World::new(who);
        let confinement = world.confinement();
        assert_eq!(world.shell(&confinement, "exit 7").code, Some(7));
        // 1000 and the signal, of which an exit code keeps the low byte.
        assert_eq!(world.shell(&confinement, "kill -TERM $$").code, Some((1000 + 15) & 0xff));
        assert_eq!(world.shell(&confinement, "kill -KILL $$").code, Some((1000 + 9) & 0xff));
        let program = |program: &str| Order { program: program.into(), ..Order::shell(&confinement, "") };
        assert_eq!(world.run(&program("no-such-program"), b"").code, Some(127));
        assert_eq!(world.run(&program("/no/such/program"), b"").code, Some(127));
        assert_eq!(world.run(&program("/etc/passwd"), b"").code, Some(126));
    }
}

#[test]
fn much_data_passes() {
    let world = World::new(everybody()[0]);
    let data: Vec<u8> = (0..40_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let told = world.run(&Order::shell(&world.confinement(), "cat; echo error >&2"), &data);
    assert!(told.output == data, "{} of {}", told.output.len(), data.len());
    assert_eq!(told.errors, "error\n");
}

/// Starts a supervisor whose command says when it is there, and gives its output.
fn started(world: &World, order: &Order) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let mut child = world.start(order);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "there\n" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "no command");
    }
    (child, output)
}

fn signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn signals_reach_the_command_alone() {
    let world = World::new(everybody()[0]);
    for (given, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::WINCH, "WINCH"),
    ] {
        let script = format!("trap 'echo got; exit 5' {name}; echo there; while :; do sleep 0.05; done");
        let (mut child, mut output) = started(&world, &Order::shell(&world.confinement(), &script));
        signal(&child, given);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("got\n", Some(5)), "{name}");
    }
    let (mut child, _output) = started(&world, &Order::shell(&world.confinement(), "echo there; sleep 100"));
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some((1000 + 15) & 0xff));
}

/// Processes of which the command line holds `marker`.
fn alive(marker: &str) -> usize {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let words = |line: &[u8]| line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes());
    processes.filter(|line| words(line)).count()
}

fn gone(marker: &str) -> bool {
    let start = Instant::now();
    while alive(marker) > 0 {
        if start.elapsed() > Duration::from_secs(5) {
            return false;
        }
        sleep(Duration::from_millis(2));
    }
    true
}

#[test]
fn daemons_end_with_the_command() {
    let world = World::new(everybody()[0]);
    let marker = format!("7{}", std::process::id());
    let script = format!(
        "i=0; while [ $i -lt 300 ]; do (setsid sleep {marker} >/dev/null 2>&1 </dev/null &); i=$((i+1)); done; ps ax -o args | grep -c '^sleep {marker}'"
    );
    let told = world.shell(&world.confinement(), &script);
    assert_eq!((told.text().as_str(), alive(&marker)), ("300\n", 0), "{}", told.errors);
}

#[test]
fn children_may_stay() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    confinement.survivors = Survivors::Stay;
    let told = world.shell(&confinement, "(sleep 0.3; echo late >&2) & exit 3");
    assert_eq!((told.code, told.errors.as_str()), (Some(3), "late\n"));
    confinement.survivors = Survivors::End;
    let told = world.shell(&confinement, "(sleep 0.3; echo late >&2) & exit 3");
    assert_eq!((told.code, told.errors.as_str()), (Some(3), ""));
}

#[test]
fn limits_hold() {
    for who in everybody() {
        let world = World::new(who);
        let mut confinement = world.confinement();
        confinement.limits.wall_time = Some(400);
        let marker = format!("8{}", std::process::id());
        let start = Instant::now();
        assert_eq!(world.shell(&confinement, &format!("sleep {marker} & sleep {marker}")).code, Some(201));
        assert!(start.elapsed() < Duration::from_secs(4) && alive(&marker) == 0);
        confinement.limits = writ_sandbox::Limits {
            file_size: Some(4096),
            open_files: Some(20),
            cpu_time: Some(1),
            ..Default::default()
        };
        let told =
            world.shell(&confinement, "ulimit -n; head -c 9999 /dev/zero > big; wc -c < big; while :; do :; done");
        assert!(told.text().starts_with("20\n") && told.text().contains("4096") && told.code != Some(0), "{told:?}");
        confinement.limits = writ_sandbox::Limits { processes: Some(40), ..Default::default() };
        let told = world.shell(&confinement, "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i+1)); done; echo all");
        assert!(!told.text().contains("all") && told.code != Some(0), "{told:?}");
        confinement.limits = writ_sandbox::Limits::default();
        confinement.temporary = 1 << 20;
        let told = world.shell(&confinement, "head -c 9999999 /dev/zero > /tmp/big || echo full");
        assert_eq!(told.text(), "full\n");
    }
}

fn mounts() -> usize {
    fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count()
}

#[test]
fn nothing_is_left_when_a_supervisor_is_killed() {
    for who in everybody() {
        let world = World::new(who);
        let marker = format!("9{}{}", std::process::id(), who as u8);
        let before = mounts();
        let mut confinement = world.confinement();
        confinement.read_only.extend([world.path(".envrc"), world.path(".claude/settings.json")]);
        let script = format!("(setsid sleep {marker} &) ; sleep {marker}");
        for round in 0..34u64 {
            let mut child = world.start(&Order::shell(&confinement, &script));
            sleep(Duration::from_micros(round * 900));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(gone(&marker), "{who:?}: {} processes", alive(&marker));
        assert_eq!(mounts(), before);
        // Whoever was killed before it was tied to its child has one that goes on for a moment, until nobody answers it.
        let begun = Instant::now();
        loop {
            sweep(&world.state).unwrap();
            let left: Vec<_> = fs::read_dir(&world.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            if left.is_empty() {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{who:?} {left:?}");
            sleep(Duration::from_millis(5));
        }
        assert_eq!(fs::read_dir(world.state.join("reserved")).unwrap().count(), 1);
        assert_eq!(world.shell(&confinement, "echo next").text(), "next\n");
    }
}

#[test]
fn runs_beside_each_other_share_names() {
    let world = World::new(everybody()[0]);
    let mut confinement = world.confinement();
    confinement.read_only.push(world.path(".envrc"));
    let script =
        "sleep 0.0$1; i=0; while [ $i -lt 20 ]; do echo x > .envrc && echo ESCAPED; i=$((i+1)); done 2>/dev/null";
    std::thread::scope(|scope| {
        for number in 0..40 {
            let (world, confinement) = (&world, &confinement);
            scope.spawn(move || {
                sleep(Duration::from_millis(number * 7));
                assert_eq!(world.shell(confinement, script).text(), "");
            });
        }
    });
    assert!(world.folder.join(".envrc").symlink_metadata().is_err());
}

#[test]
fn a_folder_that_becomes_a_link_shows_nothing_else() {
    let world = World::new(everybody()[0]);
    for name in ["real", "kept"] {
        fs::create_dir(world.folder.join(name)).unwrap();
    }
    fs::write(world.folder.join("real/f"), "fine\n").unwrap();
    let (mut confinement, turning) = (world.confinement(), world.folder.join("turning"));
    fs::rename(world.folder.join("real"), &turning).unwrap();
    world.open();
    confinement.writable = vec![world.path("turning")];
    confinement.read_only = vec![world.path("turning/x/")];
    confinement.masked = vec![writ_sandbox::HostPath::try_from(world.outside.as_path()).unwrap()];
    let done = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&turning, world.folder.join("aside")).unwrap();
                std::os::unix::fs::symlink(&world.outside, &turning).unwrap();
                sleep(Duration::from_micros(300));
                fs::remove_file(&turning).unwrap();
                fs::rename(world.folder.join("aside"), &turning).unwrap();
                sleep(Duration::from_micros(1500));
            }
        });
        let mut seen = [0, 0];
        for _ in 0..60 {
            let told = world
                .shell(&confinement, "echo ran; cat turning/secret; echo x > turning/written; echo x > turning/x/y");
            assert!(!told.text().contains("CANARY"), "{told:?}");
            seen[usize::from(told.text().starts_with("ran"))] += 1;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        seen
    });
    assert!(!world.outside.join("written").exists());
    assert!(seen[1] > 0, "{seen:?}");
}

/// A shell on a terminal of its own, as people have it.
struct Terminal {
    keys: fs::File,
    seen: std::sync::mpsc::Receiver<u8>,
    shell: std::process::Child,
    size: OwnedFd,
}

impl Terminal {
    fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        unlockpt(&master).unwrap();
        let slave = || {
            Stdio::from(
                ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap(),
            )
        };
        let mut shell = Plain::new("setsid");
        shell.args(["--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"]).env("PS1", "$ ").env("TERM", "dumb");
        let shell = shell.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        let size = rustix::io::dup(&master).unwrap();
        let keys = fs::File::from(master);
        let mut from = keys.try_clone().unwrap();
        let (send, seen) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut byte = [0u8; 1];
            while from.read(&mut byte).is_ok_and(|read| read == 1) && send.send(byte[0]).is_ok() {}
        });
        Self { keys, seen, shell, size }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn see(&self, words: &str) {
        let mut text = String::new();
        while !text.contains(words) {
            match self.seen.recv_timeout(Duration::from_secs(10)) {
                Ok(byte) => text.push(byte.into()),
                Err(error) => panic!("no `{words}` in {text:?}: {error}"),
            }
        }
    }
}

#[test]
fn a_terminal_works_as_without() {
    for who in everybody() {
        let world = World::new(who);
        let mut confinement = world.confinement();
        confinement.session = Session::Terminal;
        let line = |script: &str| {
            let order = Order::shell(&confinement, script);
            let command = world.command(&order);
            let mut line = String::new();
            if common::is_root() && who == Who::Somebody {
                line.push_str(&format!("setpriv --reuid {0} --regid {0} --clear-groups ", common::SOMEBODY));
            }
            line.push_str("env ");
            for (name, value) in command.get_envs() {
                line.push_str(&format!("'{}={}' ", name.display(), value.unwrap().display()));
            }
            line.push_str(&format!("'{}' ", Path::new(command.get_program()).display()));
            for word in command.get_args() {
                line.push_str(&format!("{} ", word.display()));
            }
            line.push('\n');
            line
        };
        let mut terminal = Terminal::new();
        terminal.see("$ ");
        // Ctrl-C.
        terminal.press(&line("trap 'echo interrupted; exit 9' INT; echo the''re; while :; do sleep 0.05; done"));
        terminal.see("there");
        terminal.press("\x03");
        terminal.see("interrupted");
        terminal.press("echo code=$?.\n");
        terminal.see("code=9.");
        // Ctrl-Z, and on.
        // Not by the shell: one that is stopped between `vfork` and `execve` hangs, confined or not.
        let waiting = "import os,time;print(\"the\"+\"re\",flush=True)\nwhile not os.path.exists(\"go\"): time.sleep(.05)\nprint(\"went\"+\" on\")";
        terminal.press(&line(&format!("exec python3 -c '{waiting}'")));
        terminal.see("there");
        terminal.press("\x1a");
        terminal.see("Stopped");
        terminal.press("jobs\n");
        terminal.see("Stopped");
        terminal.press("fg\n");
        sleep(Duration::from_millis(300));
        fs::write(world.folder.join("go"), "").unwrap();
        terminal.see("went on");
        // A new size.
        terminal
            .press(&line("trap 'echo si''ze $(stty size); exit 4' WINCH; echo the''re; while :; do sleep 0.05; done"));
        terminal.see("there");
        tcsetwinsize(&terminal.size, Winsize { ws_row: 33, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        terminal.see("size 33 77");
        // A shell with jobs of its own.
        terminal.press(&line("echo the''re; exec bash --norc --noprofile -i"));
        terminal.see("there");
        terminal.see("$ ");
        terminal.press("echo sle''eps; sleep 100\n");
        terminal.see("sleeps");
        sleep(Duration::from_millis(100));
        terminal.press("\x1a");
        terminal.see("Stopped");
        terminal.press("fg\n");
        sleep(Duration::from_millis(300));
        terminal.press("\x03");
        terminal.see("$ ");
        terminal.press("exit 6\n");
        terminal.see("$ ");
        terminal.press("echo code=$?.\n");
        terminal.see("code=6.");
        terminal.press("exit\n");
        assert!(terminal.shell.wait().unwrap().success());
    }
}
