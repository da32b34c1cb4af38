//! What becomes of a path: by where it lies, by its name, and by what whoever calls knows of it.

mod names;

use crate::report::{Confidence, Effect, Evidence, Missing, Tier};
use writ_core::json::Value;

use names::{CACHES, MADE_AGAIN, MADE_ENDINGS, PASSING, PRECIOUS, PRECIOUS_ENDINGS, SYSTEM, SYSTEM_TREES};

/// What is done to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathOperation {
    /// It is removed.
    Delete,
    /// Its contents are replaced, or it is made.
    Overwrite,
    /// It is taken elsewhere.
    Move,
    /// Owner or mode change.
    Permit,
}

/// What git knows of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Git {
    /// Committed, and as committed.
    Clean,
    /// Committed, with changes since.
    Changed,
    /// In no commit.
    Untracked,
    /// Git is told to leave it alone.
    Ignored,
    /// In no repository.
    Outside,
}

/// What is known of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Whether it is there.
    pub exists: Option<bool>,
    /// What git knows of it; of a folder, the worst in it.
    pub git: Option<Git>,
    /// It is a folder.
    pub folder: bool,
}

/// Who looks at paths. Two kinds: the disk (in the engine), and [`NoProbe`].
pub trait Probe {
    /// Looks at an absolute path.
    fn look(&self, path: &str) -> Seen;
    /// The text of the file at an absolute path, if the agent itself wrote exactly it: it is judged when it runs.
    fn authored(&self, _path: &str) -> Option<String> {
        None
    }
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn look(&self, _path: &str) -> Seen {
        Seen::default()
    }
}

/// What comes of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The tier.
    pub tier: Tier,
    /// Why.
    pub why: String,
    /// How sure.
    pub confidence: Confidence,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What would change it.
    pub missing: Vec<Missing>,
}

/// A path in its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Absolute, folded; relative only when nobody knows from where.
    pub path: &'a str,
    /// Everything below it too.
    pub tree: bool,
    /// A shell's glob stands for its last part.
    pub glob: bool,
    /// Where the line starts.
    pub cwd: Option<&'a str>,
    /// The user's home.
    pub home: Option<&'a str>,
}

/// Judges what is done to a place.
pub fn judge(doing: PathOperation, place: &Place<'_>, seen: Seen) -> Outcome {
    let at = |tier, why: &str| outcome(tier, why, Confidence::High);
    let path = place.path;
    if let Some(found) = device(path) {
        return found(doing);
    }
    if path == "/dev/null" || passing(place) {
        return at(Tier::Reversible, "nothing is kept there");
    }
    match doing {
        PathOperation::Permit => return permit(place),
        PathOperation::Overwrite => return overwrite(place),
        PathOperation::Delete | PathOperation::Move => {}
    }
    let here = place.cwd == Some(path.trim_end_matches(['/', '*'])) || matches!(path, "*" | "./*");
    if is_whole(place) && !(doing == PathOperation::Move && here) {
        return at(Tier::Unrecoverable, &format!("`{path}` holds the system, a home or the whole project"));
    }
    if SYSTEM_TREES.iter().any(|tree| path.starts_with(tree)) {
        return at(Tier::Unrecoverable, &format!("`{path}` belongs to the system"));
    }
    if doing == PathOperation::Move {
        return at(Tier::Reversible, "it can be moved back");
    }
    if PASSING.iter().any(|folder| folder.trim_end_matches('/') == path.trim_end_matches('/')) && place.tree {
        return at(Tier::FromBackup, &format!("what others keep in `{path}` for now goes, too"));
    }
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let precious =
        PRECIOUS.contains(&name) || PRECIOUS_ENDINGS.iter().any(|end| name.ends_with(end)) || path.contains("/.git/");
    if precious && seen.exists != Some(false) && seen.git != Some(Git::Clean) {
        return at(Tier::Unrecoverable, &format!("`{name}` holds history, keys or data that is made nowhere else"));
    }
    by_evidence(place, seen, name)
}

/// A deletion in or beside the project, by what is known of it.
fn by_evidence(place: &Place<'_>, seen: Seen, name: &str) -> Outcome {
    let path = place.path;
    if is_record(path) && seen.exists != Some(false) {
        let why = format!("`{path}` is removed, and with it the record of what happened");
        return outcome(Tier::FromBackup, &why, Confidence::Medium);
    }
    let inside = place.cwd.is_none_or(|cwd| path.strip_prefix(cwd).is_some_and(|rest| rest.starts_with('/')))
        || !path.starts_with('/');
    // What the folders above the project are called says nothing of what is in it.
    let own = place.cwd.filter(|_| inside).and_then(|cwd| path.strip_prefix(cwd)).unwrap_or(path);
    let made = own.split('/').any(|part| MADE_AGAIN.contains(&part)) || is_made_again(name);
    // Wherever it lies, nobody gives these names to anything else.
    let surely = own.split('/').any(is_surely_made_again);
    let cache = place.home.and_then(|home| path.strip_prefix(home)).is_some_and(|rest| {
        CACHES.iter().any(|cache| rest.strip_prefix(cache).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    });
    let git = |value: &str, description: &str| {
        vec![Evidence {
            key: "git.status".to_owned(),
            value: Value::from(value),
            present: true,
            description: description.to_owned(),
        }]
    };
    let mut found = match (seen.exists, seen.git) {
        (Some(false), _) => outcome(Tier::Reversible, "nothing of that name is there", Confidence::High),
        (_, Some(Git::Clean)) => {
            let found = outcome(Tier::WithEffort, "git has it as it is", Confidence::High);
            Outcome { evidence: git("clean", "committed, without changes since"), ..found }
        }
        (_, Some(Git::Ignored)) if inside => {
            let found =
                outcome(Tier::WithEffort, "git is told to leave it alone, as what a build makes", Confidence::Medium);
            Outcome { evidence: git("ignored", "in .gitignore"), ..found }
        }
        _ if made && inside || surely || cache || name.starts_with(".zcompdump") => {
            outcome(Tier::WithEffort, "made again by a build or a download", Confidence::Medium)
        }
        (_, Some(Git::Changed)) => {
            let found = outcome(Tier::FromBackup, "changes since the last commit are in no commit", Confidence::High);
            Outcome { evidence: git("changed", "changes since the last commit"), ..found }
        }
        (Some(true), Some(Git::Untracked)) if place.tree => {
            let found = outcome(Tier::Unrecoverable, "files in it are in no commit", Confidence::High);
            Outcome { evidence: git("untracked", "in no commit"), ..found }
        }
        (Some(true), Some(Git::Untracked)) => {
            let found = outcome(Tier::FromBackup, "it is in no commit", Confidence::High);
            Outcome { evidence: git("untracked", "in no commit"), ..found }
        }
        _ if !inside && place.tree => outcome(
            Tier::Unrecoverable,
            &format!("everything below `{path}`, outside the project, is removed"),
            Confidence::Medium,
        ),
        _ if !inside => outcome(Tier::FromBackup, &format!("`{path}` lies outside the project"), Confidence::Medium),
        _ if place.tree || place.glob => {
            outcome(Tier::FromBackup, &format!("what lies below `{path}` is not known"), Confidence::Low)
        }
        _ => outcome(Tier::WithEffort, "a single file of the project", Confidence::Low),
    };
    if seen.git.is_none() && seen.exists != Some(false) {
        found.missing.push(Missing {
            key: "git.status".to_owned(),
            description: "whether version control has it".to_owned(),
            effect: Effect::LowersConfidence,
        });
    }
    found
}

/// Whether a file records what was done on the machine: logs of the system, of containers, a shell's history.
pub fn is_record(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let history = name.starts_with('.') && (name.ends_with("_history") || matches!(name, ".history" | ".lesshst"));
    history
        || ["/var/log/", "/var/lib/docker/containers/", "/var/audit/"].iter().any(|tree| path.starts_with(tree))
        || matches!(path, "/var/run/utmp" | "/run/utmp" | "/var/log" | "/var/audit")
}

/// Whether nobody gives this name to anything but what is made again.
pub fn is_surely_made_again(name: &str) -> bool {
    let surely = name.starts_with('.') || matches!(name, "node_modules" | "__pycache__" | "DerivedData");
    surely && MADE_AGAIN.contains(&name)
}

/// Whether what is written to a place is made again, or kept by nobody: caches, logs, what a build or a test prints.
pub fn is_kept_nowhere(place: &Place<'_>) -> bool {
    const OUTPUTS: [&str; 14] = [
        "log", "logs", "out", "output", "outputs", "stdout", "stderr", "result", "results", "report", "trace",
        "errors", "err", "nohup",
    ];
    let path = place.path;
    let own = place.cwd.and_then(|cwd| path.strip_prefix(cwd)).unwrap_or(path);
    let name = own.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let output = stem.split(['-', '_']).any(|word| OUTPUTS.contains(&word));
    let backup = name.ends_with(".bak") || name.ends_with(".orig") || name.ends_with('~');
    let cache = place.home.and_then(|home| path.strip_prefix(home)).is_some_and(|rest| {
        CACHES.iter().any(|cache| rest.strip_prefix(cache).is_some_and(|rest| rest.starts_with('/')))
    });
    passing(place)
        || path.starts_with("/dev/")
        || output
        || cache
        || own.split('/').any(|part| MADE_AGAIN.contains(&part))
        || is_made_again(name) && !backup
}

/// Whether a build or a download makes what has this name.
pub fn is_made_again(name: &str) -> bool {
    MADE_AGAIN.contains(&name) || MADE_ENDINGS.iter().any(|end| name.ends_with(end))
}

fn outcome(tier: Tier, why: &str, confidence: Confidence) -> Outcome {
    Outcome { tier, why: why.to_owned(), confidence, evidence: Vec::new(), missing: Vec::new() }
}

/// The system, a home, the project itself or what it lies in.
fn is_whole(place: &Place<'_>) -> bool {
    let path = place.path.trim_end_matches(['/', '*']).trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    let above = |inner: &str| {
        inner == path || inner.strip_prefix(path).is_some_and(|rest| rest.starts_with('/') || path == "/")
    };
    let broad = place.tree || place.glob;
    broad
        && (SYSTEM.contains(&path)
            || path.strip_prefix("/home/").or(path.strip_prefix("/Users/")).is_some_and(|user| !user.contains('/'))
            || place.home.is_some_and(above)
            || place.cwd.is_some_and(above)
            || place.home.is_some_and(|home| {
                path.strip_prefix(home).is_some_and(|rest| {
                    rest.matches('/').count() == 1 && !CACHES.contains(&rest) && !rest.starts_with("/.zcompdump")
                })
            })
            || matches!(path, "." | "~" | "*")
            || path.split('/').all(|part| matches!(part, ".." | "*")))
}

/// Below a folder where nothing is kept, but neither the project nor the home: they may lie there, too.
fn passing(place: &Place<'_>) -> bool {
    let below = |path: &str| {
        let rest = PASSING.iter().find_map(|folder| path.strip_prefix(folder));
        rest.is_some_and(|rest| !rest.is_empty())
    };
    let whole = |own: &str| {
        let rest = place.path.strip_prefix(own).or(own.strip_prefix(place.path));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let own = [place.cwd, place.home].into_iter().flatten().filter(|own| below(own)).any(whole);
    below(place.path) && !own
}

/// Devices: what is written there overwrites what they hold.
fn device(path: &str) -> Option<fn(PathOperation) -> Outcome> {
    const HARMLESS: [&str; 8] = ["null", "zero", "stdout", "stderr", "stdin", "tty", "full", "random"];
    let name = path.strip_prefix("/dev/")?;
    if HARMLESS.contains(&name)
        || name.starts_with("fd/")
        || name.starts_with("shm/")
        || name.starts_with("pts/")
        || name.starts_with("tcp/")
    {
        return None;
    }
    Some(|_| outcome(Tier::Unrecoverable, "a device is written to directly", Confidence::High))
}

fn permit(place: &Place<'_>) -> Outcome {
    let path = place.path;
    let system = place.home != Some(path) && SYSTEM.contains(&path.trim_end_matches('/'))
        || path == "/"
        || SYSTEM_TREES.iter().any(|tree| path.starts_with(tree));
    match (system, place.tree) {
        (true, true) => {
            outcome(Tier::Unrecoverable, "the modes of a system's files are kept nowhere", Confidence::High)
        }
        (true, false) => outcome(Tier::FromBackup, &format!("`{path}` belongs to the system"), Confidence::Medium),
        (false, _) if place.tree && (place.home == Some(path) || matches!(path, "~" | "..")) => {
            outcome(Tier::FromBackup, "the old modes are kept nowhere", Confidence::Medium)
        }
        (false, _) => outcome(Tier::Reversible, "it can be changed back", Confidence::Medium),
    }
}

fn overwrite(place: &Place<'_>) -> Outcome {
    const ACCOUNTS: [&str; 7] = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/group",
        "/etc/sudoers",
        "/etc/fstab",
        "/proc/sysrq-trigger",
        "/etc/crontab",
    ];
    const PERSISTENT: [&str; 10] = [
        "/.bashrc",
        "/.zshrc",
        "/.profile",
        "/.bash_profile",
        "/.ssh/authorized_keys",
        "/.ssh/config",
        "/.gitconfig",
        "/.npmrc",
        "/.netrc",
        "/.zprofile",
    ];
    let path = place.path;
    let home = place.home.unwrap_or("/root");
    let inner = path.strip_prefix(".git/").or(path.split_once("/.git/").map(|(_, inner)| inner));
    if inner.is_some_and(|inner| {
        matches!(inner, "HEAD" | "config" | "index" | "packed-refs")
            || inner.starts_with("refs/")
            || inner.starts_with("objects/")
    }) {
        return outcome(Tier::FromBackup, &format!("`{path}` is what git itself keeps"), Confidence::Medium);
    }
    if ACCOUNTS.contains(&path)
        || ["/boot/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/bin/", "/usr/lib/", "/usr/sbin/", "/etc/sudoers.d/"]
            .iter()
            .any(|tree| path.starts_with(tree))
    {
        return outcome(Tier::Unrecoverable, &format!("`{path}` is part of the system"), Confidence::High);
    }
    if ["/etc/", "/sys/", "/proc/", "/var/lib/", "/var/spool/cron"].iter().any(|tree| path.starts_with(tree)) {
        return outcome(Tier::FromBackup, &format!("`{path}` belongs to the system"), Confidence::Medium);
    }
    if of_a_home(path, home).is_some_and(|rest| PERSISTENT.contains(&rest)) {
        return outcome(Tier::FromBackup, &format!("`{path}` is read at every login"), Confidence::Medium);
    }
    outcome(Tier::Reversible, "a file is written", Confidence::Low)
}

/// What follows a user's home in a path.
fn of_a_home<'a>(path: &'a str, home: &str) -> Option<&'a str> {
    let homes = ["/home/", "/Users/"].iter().find_map(|homes| path.strip_prefix(homes));
    let other = homes.and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)));
    path.strip_prefix(home).or(other)
}

/// What it means that something is copied, moved or linked over a path: a device, an account, what is read at every login.
pub fn land(place: &Place<'_>) -> Option<Outcome> {
    let path = place.path;
    if let Some(found) = device(path) {
        return Some(found(PathOperation::Overwrite));
    }
    let tracked = ["/etc/", "/usr/", "/bin/", "/sbin/", "/lib", "/boot/", "/sys/", "/proc/", "/var/"];
    let exact = matches!(path, "/etc/passwd" | "/etc/shadow" | "/etc/sudoers" | "/etc/fstab" | "/etc/group");
    let found = overwrite(place);
    (found.tier > Tier::WithEffort && (exact || !tracked.iter().any(|tree| path.starts_with(tree)))).then_some(found)
}
