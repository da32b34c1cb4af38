//! The TypeScript library: compiled, and asked many questions over one pipe.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;
use writ_core::Digest;

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../verifiers/ts")
}

/// The folder with the compiled library. It is compiled anew when a source is another than the last time.
pub fn built() -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/verify-ts");
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let dist = folder().join("dist");
    let sources = sources();
    let stamp = cache.join("stamp");
    if fs::read_to_string(&stamp).ok().as_ref() != Some(&sources) || !dist.join("index.js").is_file() {
        drop(fs::remove_dir_all(&dist));
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]));
        run(Command::new("node").args(["node_modules/typescript/bin/tsc"]));
        fs::write(stamp, sources).unwrap();
    }
    dist
}

fn sources() -> String {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder().join("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.extend(["package.json", "package-lock.json", "tsconfig.json"].map(|name| folder().join(name)));
    files.sort();
    let digests = files.iter().map(|file| format!("{} {}\n", file.display(), Digest::of(&fs::read(file).unwrap())));
    digests.collect()
}

/// Runs a command in the library's folder to its good end.
pub fn run(command: &mut Command) -> String {
    let output = command.current_dir(folder()).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{:?} does not start: {error}", command.get_program()));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

/// What the library says of each line.
pub fn answers(lines: &[Value]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attested/lines.mjs");
    let mut node = Command::new("node");
    node.arg(script)
        .arg(built().join("index.js"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut child = node.spawn().expect("node starts");
    let mut input = child.stdin.take().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let writer = thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(|line| serde_json::from_str::<String>(line).unwrap()).collect()
}
