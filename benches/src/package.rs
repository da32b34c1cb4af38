//! Packages: 500 MB pushed to a registry on this machine and pulled from it, against `skopeo copy` of the same blobs.
//!
//! Each copy goes to a registry of its own, or one of the two would send what the other has left there.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::hook::timed;
use crate::measure::{Bar, Figure};

/// Skills of the package, each a blob.
const BLOBS: usize = 5;
/// Bytes of each, which no compression makes fewer.
const SIZE: usize = 100_000_000;
/// Files that each is made of.
const PARTS: usize = 4;
/// How often each is measured.
const RUNS: usize = 3;

/// Measures both ways.
pub fn run() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let bench = Bench::new(folder.path())?;
    let (mut push, mut pull) = ([Duration::MAX; 2], [Duration::MAX; 2]);
    for number in 0..RUNS {
        let registry = Registry::start(&folder.path().join(format!("registry-{number}")))?;
        let at = format!("{}/bench/writ:1", registry.host);
        shorter(&mut push[0], bench.writ(number, &["push", &bench.layout(), &at])?);
        shorter(&mut pull[0], bench.writ(number, &["pull", &at, "-o", &bench.out("writ")])?);
        drop(registry);
        let registry = Registry::start(&folder.path().join(format!("registry-{number}")))?;
        let at = format!("docker://{}/bench/skopeo:1", registry.host);
        shorter(&mut push[1], skopeo(&[&format!("oci:{}:1", bench.layout()), &at])?);
        shorter(&mut pull[1], skopeo(&[&at, &format!("oci:{}:1", bench.out("skopeo"))])?);
        for name in ["writ", "skopeo", &format!("state-{number}")] {
            fs::remove_dir_all(bench.out(name))?;
        }
    }
    let figure = |what: &str, [ours, theirs]: [Duration; 2]| Figure {
        bytes: Some(BLOBS * SIZE),
        ..Figure::time(format!("package: {what}, 500 MB"), ours, ("skopeo copy", theirs), Bar::TimesBaseline(1.5))
    };
    Ok(vec![figure("push", push), figure("pull", pull)])
}

fn shorter(least: &mut Duration, took: Duration) {
    *least = took.min(*least);
}

/// A built package.
struct Bench<'a> {
    folder: &'a Path,
    writ: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        let writ = env::var_os("WRIT_BIN").map(PathBuf::from);
        let writ = writ.context("WRIT_BIN does not say where the release `writ` is; run `cargo xtask bench`")?;
        let bench = Self { folder, writ };
        let mut agentfile = "AGENT bench\nFROM scratch\nCMD true\nAUDIT all\n".to_owned();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for number in 0..BLOBS {
            let skill = folder.join(format!("agent/skills/s{number}"));
            fs::create_dir_all(&skill)?;
            fs::write(skill.join("SKILL.md"), format!("# Skill {number}\n"))?;
            // A file of a package has at most 64 MiB.
            for part in 0..PARTS {
                let bytes = (0..SIZE / PARTS / 8).flat_map(|_| next(&mut state).to_le_bytes()).collect::<Vec<u8>>();
                fs::write(skill.join(format!("data{part}")), bytes)?;
            }
            agentfile.push_str(&format!("SKILL ./skills/s{number}\n"));
        }
        let file = folder.join("agent/Agentfile");
        fs::write(&file, agentfile)?;
        bench.writ(RUNS, &["lock", &file.to_string_lossy()])?;
        let from = folder.join("agent");
        bench.writ(RUNS, &["build", &from.to_string_lossy(), "-o", &bench.layout(), "--tag", "1"])?;
        Ok(bench)
    }

    fn out(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    fn layout(&self) -> String {
        self.out("layout")
    }

    /// Runs `writ` with a state of its own for each number: what was kept there is not fetched again.
    fn writ(&self, number: usize, words: &[&str]) -> Result<Duration> {
        let state = self.out(&format!("state-{number}"));
        fs::create_dir_all(&state)?;
        let mut command = Command::new(&self.writ);
        command.args(words).env("WRIT_STATE_DIR", &state).env("HOME", &state);
        ended(command)
    }
}

/// Xorshift: bytes that look random.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn skopeo(places: &[&str]) -> Result<Duration> {
    let mut command = Command::new("skopeo");
    command.args(["copy", "--quiet", "--preserve-digests", "--src-tls-verify=false", "--dest-tls-verify=false"]);
    command.args(places);
    ended(command).context("skopeo (Debian's package `skopeo`)")
}

fn ended(command: Command) -> Result<Duration> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (took, output) = timed(command, b"")?;
    ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}

/// A registry, empty at first.
struct Registry {
    process: Child,
    host: String,
    folder: PathBuf,
}

impl Registry {
    fn start(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let host = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let config = folder.join("config.yml");
        let root = folder.join("blobs");
        let text = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {host}\n",
            root.display()
        );
        fs::write(&config, text)?;
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().context("docker-registry (Debian's package `docker-registry`)")?;
        let registry = Self { process, host, folder: folder.to_owned() };
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&registry.host).is_err() {
            ensure!(Instant::now() < until, "the registry does not answer");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(registry)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}
