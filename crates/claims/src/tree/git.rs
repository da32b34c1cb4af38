//! Running git to read, and nothing but to read.
//!
//! No lock is taken, no configured program is started that can be switched off, and a git that does not come to an end in time
//! is killed. What git says is bounded.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::{env, fs, io, thread};

use writ_core::Digest;

use super::Limits;

/// Where programs lie for whoever has no `PATH`.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";
/// Longest answer of git, in bytes.
const MAX_OUTPUT: u64 = 64 << 20;

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder is in no repository.
    #[error("{} is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// git cannot be started, or its answer not be read.
    #[error("git cannot be run: {0}")]
    Run(#[from] io::Error),
    /// git says no.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// The first line of what it said.
        message: String,
    },
    /// git took too long.
    #[error("`git {0}` took too long")]
    Timeout(String),
    /// git said too much, or what is no answer.
    #[error("the answer of `git {0}` cannot be read")]
    Answer(String),
}

/// The settings that a file lists, `\n` before each value and a zero byte behind it. It is git that reads them; no repository is looked at.
pub fn settings(file: &Path, tree: &Path, limits: &Limits) -> Result<Vec<u8>, GitError> {
    let mut command = command(Path::new("/"), tree)?;
    command.args(["config", "--list", "-z", "--file"]).arg(file);
    carry_out(command, "config", &[], limits)
}

/// A git that starts what nobody may have put there since.
pub fn command(dir: &Path, tree: &Path) -> io::Result<Command> {
    let mut command = Command::new(program(&[dir, tree])?);
    command.arg("--no-optional-locks").args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    for (variable, _) in env::vars_os() {
        if variable.to_str().is_some_and(|variable| variable.starts_with("GIT_")) {
            command.env_remove(variable);
        }
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C").current_dir(dir);
    Ok(command)
}

/// The program. A folder of the work tree in `PATH`, as tools put it there that build environments, holds what the agent wrote; one in
/// the home is taken only where there is no other.
fn program(trees: &[&Path]) -> io::Result<PathBuf> {
    // From the root nothing is a tree of the agent's.
    let trees = trees.iter().filter_map(|tree| tree.canonicalize().ok()).filter(|tree| tree.parent().is_some());
    let trees: Vec<PathBuf> = trees.collect();
    // The home of whoever has none is everybody's.
    let home = env::home_dir().and_then(|home| home.canonicalize().ok()).filter(|home| home.parent().is_some());
    let folders = env::var_os("PATH").unwrap_or_else(|| SYSTEM.into());
    let found = env::split_paths(&folders).filter(|folder| folder.is_absolute()).filter_map(|folder| {
        let program = folder.join("git");
        let real = program.canonicalize().ok()?;
        let is_program = real.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        let folder = folder.canonicalize().ok()?;
        let within = |tree: &Path| real.starts_with(tree) || folder.starts_with(tree);
        let written = trees.iter().any(|tree| within(tree));
        (is_program && !written).then(|| (home.as_deref().is_some_and(within), program))
    });
    let first = found.min_by_key(|(in_home, _)| *in_home).map(|(_, program)| program);
    first.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no `git` in `PATH` but below the work tree"))
}

/// Runs it to its end, `input` on its standard input, and gives what it prints. `name` is the subcommand.
pub fn carry_out(mut command: Command, name: &str, input: &[u8], limits: &Limits) -> Result<Vec<u8>, GitError> {
    let name = name.to_owned();
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_owned();
        // A git that ends early has its say in its exit code.
        thread::spawn(move || pipe.write_all(&input).ok());
    }
    let read = gather(&mut child);
    let answer = read.recv_timeout(limits.timeout);
    if answer.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let (out, complaint) = answer.map_err(|_late| GitError::Timeout(name.clone()))??;
    if !status.success() {
        let message = complaint.lines().next().unwrap_or("no reason given").to_owned();
        return Err(GitError::Failed { command: name, message });
    }
    if u64::try_from(out.len()).is_ok_and(|length| length > MAX_OUTPUT) {
        return Err(GitError::Answer(name));
    }
    Ok(out)
}

type Gathered = io::Result<(Vec<u8>, String)>;

/// Reads both outputs away from this thread, so that waiting for them can end.
fn gather(child: &mut Child) -> mpsc::Receiver<Gathered> {
    let (out, complaint) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let read = || -> Gathered {
            let mut bytes = Vec::new();
            if let Some(out) = out {
                out.take(MAX_OUTPUT + 1).read_to_end(&mut bytes)?;
            }
            let mut text = Vec::new();
            if let Some(complaint) = complaint {
                complaint.take(4096).read_to_end(&mut text)?;
            }
            Ok((bytes, String::from_utf8_lossy(&text).into_owned()))
        };
        // Nobody listens any more when git took too long.
        sender.send(read()).ok();
    });
    receiver
}

/// The one repository that git is asked about, where others may have been made to harm: git runs programs that settings name, and
/// whoever may write a work tree may make repositories in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Only(Digest);

impl Only {
    /// The repository of this work tree.
    pub fn at(root: &Path) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self(Digest::of(root.as_os_str().as_bytes()))
    }

    /// Whether it is this one.
    pub fn is(self, repository: &Repository) -> bool {
        Self::at(&repository.root) == self
    }
}

/// Where a work tree keeps its repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The top of the work tree.
    pub root: PathBuf,
    /// HEAD and its log live here.
    pub private: PathBuf,
    /// References live here; the same unless this is a linked work tree.
    pub common: PathBuf,
}

impl Repository {
    /// The repository whose work tree `dir` lies in.
    pub fn containing(dir: &Path) -> Result<Self, GitError> {
        let dir = dir.canonicalize()?;
        dir.ancestors().find_map(Self::at).ok_or(GitError::NoRepository(dir))
    }

    /// The repository of the work tree whose top is `root`. A folder `.git` without a HEAD is none to git either.
    pub fn at(root: &Path) -> Option<Self> {
        let entry = root.join(".git");
        let private = if entry.is_dir() {
            fs::symlink_metadata(entry.join("HEAD")).ok()?;
            entry
        } else {
            let text = fs::read_to_string(&entry).ok()?;
            root.join(text.strip_prefix("gitdir:")?.trim())
        };
        let common = match fs::read_to_string(private.join("commondir")) {
            Ok(text) => private.join(text.trim()),
            Err(_) => private.clone(),
        };
        Some(Self { root: root.to_owned(), private, common })
    }

    /// Whether a branch, a tag or a remote's branch bears this name.
    pub fn has_reference(&self, name: &str) -> bool {
        let name = name.trim_matches('/');
        let packed = fs::read_to_string(self.common.join("packed-refs")).unwrap_or_default();
        ["heads", "tags", "remotes", "remotes/origin"].iter().any(|kind| {
            let name = format!("refs/{kind}/{name}");
            self.common.join(&name).exists() || packed.lines().any(|line| line.split(' ').nth(1) == Some(&name))
        })
    }

    /// The newest stash.
    pub fn stash(&self) -> Option<String> {
        Some(fs::read_to_string(self.common.join("refs/stash")).ok()?.trim().to_owned())
    }

    /// How long HEAD's log is: what is behind that place came later.
    pub fn log_length(&self) -> u64 {
        fs::metadata(self.private.join("logs/HEAD")).map_or(0, |found| found.len())
    }

    /// The commits HEAD was at since its log was `from` bytes long, latest last, at most 64.
    pub fn visited(&self, from: u64) -> Vec<String> {
        let Ok(text) = fs::read_to_string(self.private.join("logs/HEAD")) else { return Vec::new() };
        let start = usize::try_from(from).ok().filter(|start| *start <= text.len()).unwrap_or_default();
        let lines = text.get(start..).unwrap_or_default().lines();
        let commits = lines.filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
        let mut commits: Vec<String> = commits.collect();
        commits.drain(..commits.len().saturating_sub(64));
        commits
    }

    /// The tops of the other work trees of this repository, at most 64.
    pub fn others(&self) -> Vec<PathBuf> {
        let main = self.common.parent().filter(|top| self.common == top.join(".git")).map(Path::to_owned);
        let linked = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().filter_map(|entry| {
            let text = fs::read_to_string(entry.ok()?.path().join("gitdir")).ok()?;
            Some(Path::new(text.trim()).parent()?.to_owned())
        });
        let here = self.root.canonicalize().ok();
        let tops = main.into_iter().chain(linked.take(64)).filter_map(|top| top.canonicalize().ok());
        tops.filter(|top| Some(top) != here.as_ref()).collect()
    }
}
