//! `cargo xtask dist`: what a release is made of.
//!
//! Owns the folder `target/dist/out`: the archive, what it was made from, and digests of both. Refuses a work tree that is not what its commit
//! says, unless `--dirty` is there. Invariant: two runs on one commit with one toolchain give the same bytes; `--check` builds twice and
//! compares.

mod sbom;
mod statement;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::run::{call, cargo, output, say, step};

/// The profile of what ships.
const PROFILE: &str = "dist";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is asked for.
#[derive(Debug)]
struct Wish {
    profile: String,
    check: bool,
    dirty: bool,
}

/// What a release is made from.
#[derive(Debug)]
pub struct Source {
    /// The commit.
    pub commit: String,
    /// Its moment, in seconds since the epoch.
    pub epoch: String,
    /// Where it is published.
    pub repository: String,
    /// The version of the program.
    pub version: String,
    /// `rustc --version`.
    pub toolchain: String,
    /// The profile it is built with.
    pub profile: String,
}

/// Makes a release.
pub fn run(words: &[&str]) -> Result<()> {
    let wish = wish(words)?;
    let root = Metadata::workspace()?.root;
    let source = source(&root, &wish)?;
    let dist = root.join("target/dist");
    let out = dist.join("out");
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let writ = step("build", || build(&root, &dist.join("one"), &source))?;
    if wish.check {
        let other = step("build again", || build(&root, &dist.join("two"), &source))?;
        let (one, two) = (fs::read(&writ)?, fs::read(&other)?);
        if one != two {
            bail!("two builds of one commit differ: {} and {}", writ.display(), other.display());
        }
        say("    the same bytes");
    }
    let name = format!("writ-{}-{TARGET}", source.version);
    let archive = out.join(format!("{name}.tar.gz"));
    step("archive", || pack(&root, &dist, &writ, &name, &archive, &source))?;
    let bill = out.join(format!("{name}.cdx.json"));
    step("bill of materials", || write(&bill, &sbom::cyclonedx(&root, &source, TARGET)?))?;
    let provenance = out.join(format!("{name}.intoto.json"));
    let subjects = [&archive, &bill].map(|path| Ok((file_name(path), digest(path)?)));
    let subjects = subjects.into_iter().collect::<Result<Vec<_>>>()?;
    let lock = digest(&root.join("Cargo.lock"))?;
    step("provenance", || write(&provenance, &statement::provenance(&subjects, &source, &lock, TARGET)))?;
    let sums = [&archive, &bill, &provenance].map(|path| Ok(format!("{}  {}\n", digest(path)?, file_name(path))));
    let sums = sums.into_iter().collect::<Result<String>>()?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    say(&format!("{}{}", sums, out.display()));
    Ok(())
}

fn wish(words: &[&str]) -> Result<Wish> {
    let mut wish = Wish { profile: PROFILE.to_owned(), check: false, dirty: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--check" => wish.check = true,
            "--dirty" => wish.dirty = true,
            "--profile" => wish.profile = words.next().context("`--profile` without a name")?.to_string(),
            other => bail!("unknown word `{other}`\nhelp: cargo xtask dist [--check] [--dirty] [--profile NAME]"),
        }
    }
    Ok(wish)
}

fn source(root: &Path, wish: &Wish) -> Result<Source> {
    let git = |args: &[&str]| text(Command::new("git").arg("-C").arg(root).args(args));
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    if !changed.is_empty() && !wish.dirty {
        bail!("the work tree is not what its commit says:\n{changed}\nhelp: commit first, or `--dirty` for a trial");
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let member = |name: &str| {
        let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.and_then(|rest| rest.split('"').next()).map(str::to_owned).with_context(|| format!("no `{name}`"))
    };
    Ok(Source {
        commit: git(&["rev-parse", "HEAD"])?,
        epoch: git(&["log", "-1", "--format=%ct"])?,
        repository: member("repository")?,
        version: member("version")?,
        toolchain: text(Command::new("rustc").arg("--version"))?,
        profile: wish.profile.clone(),
    })
}

/// Builds the program. No path of this machine is in it: what the compiler writes down of places is mapped.
fn build(root: &Path, folder: &Path, source: &Source) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut maps = vec![(folder.display().to_string(), "/target"), (root.display().to_string(), "/writ")];
    maps.extend(home.map(|home| (home.display().to_string(), "/cargo")));
    // The compiler takes the last that fits.
    maps.reverse();
    let flags: Vec<String> = maps.iter().map(|(from, to)| format!("\"--remap-path-prefix={from}={to}\"")).collect();
    let config = format!("target.{TARGET}.rustflags=[{}]", flags.join(", "));
    let mut build = cargo(["build", "--locked", "-p", "writ", "--target", TARGET]);
    build.args(["--profile", &source.profile, "--config", &config, "--target-dir"]).arg(folder);
    build.env("SOURCE_DATE_EPOCH", &source.epoch).env("CARGO_INCREMENTAL", "0").current_dir(root);
    call(&mut build)?;
    let named = if source.profile == "dev" { "debug" } else { &source.profile };
    Ok(folder.join(TARGET).join(named).join("writ"))
}

/// The archive: sorted, of nobody, of the commit's moment.
fn pack(root: &Path, dist: &Path, writ: &Path, name: &str, archive: &Path, source: &Source) -> Result<()> {
    let folder = dist.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("man"))?;
    fs::create_dir_all(folder.join("completions"))?;
    fs::copy(writ, folder.join("writ"))?;
    for file in ["LICENSE", "README.md", "spec/policy.schema.json"] {
        let path = root.join(file);
        fs::copy(&path, folder.join(path.file_name().unwrap_or_default())).with_context(|| file.to_owned())?;
    }
    call(Command::new(writ).args(["man"]).arg(folder.join("man")))?;
    for (shell, file) in [("bash", "writ.bash"), ("zsh", "_writ"), ("fish", "writ.fish")] {
        let script = output(Command::new(writ).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    let tar = dist.join(format!("{name}.tar"));
    let mtime = format!("--mtime=@{}", source.epoch);
    let mut pack = Command::new("tar");
    pack.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    pack.args(["--mode=u=rwX,go=rX", &mtime, "--file"]).arg(&tar).arg("--directory").arg(dist).arg(name);
    call(&mut pack)?;
    // Without a name and a moment of its own.
    let packed = output(Command::new("gzip").args(["--no-name", "--best", "--stdout"]).arg(&tar))?;
    fs::write(archive, packed).with_context(|| archive.display().to_string())?;
    Ok(fs::remove_file(tar)?)
}

fn write(path: &Path, value: &serde_json::Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// SHA-256 in hexadecimal.
fn digest(path: &Path) -> Result<String> {
    let said = text(Command::new("sha256sum").arg("--").arg(path))?;
    said.split(' ').next().map(str::to_owned).context("sha256sum says nothing")
}

fn text(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8(output(command)?).context("not text")?.trim().to_owned())
}
