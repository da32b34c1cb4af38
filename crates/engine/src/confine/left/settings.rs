//! Whether the settings of a repository have git run programs, or obey other files.
//!
//! Owns the names of those that do not. Refuses a file that it does not understand to the last line: git may understand it. Invariant: what
//! is not known is taken for one that does.

/// Why settings are not left as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obeyed {
    /// This setting is no plain one.
    Setting(String),
    /// A line cannot be read with certainty.
    Unclear,
}

/// Names of settings that are plain data, by their sections. A `*` is each of a section.
const PLAIN: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "compression",
            "eol",
            "excludesfile",
            "filemode",
            "fscache",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "precomposeunicode",
            "preloadindex",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "splitindex",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "whitespace",
        ],
    ),
    ("advice", &["*"]),
    ("apply", &["whitespace", "ignorewhitespace"]),
    (
        "branch",
        &[
            "remote",
            "merge",
            "rebase",
            "description",
            "pushremote",
            "vscode-merge-base",
            "gh-merge-base",
            "autosetupmerge",
            "autosetuprebase",
            "sort",
        ],
    ),
    ("checkout", &["defaultremote", "guess", "workers"]),
    ("clone", &["defaultremotename", "rejectshallow"]),
    ("color", &["*"]),
    ("column", &["*"]),
    ("commit", &["gpgsign", "verbose", "cleanup", "status"]),
    ("diff", &["algorithm", "colormoved", "context", "mnemonicprefix", "noprefix", "renamelimit", "renames"]),
    ("extensions", &["objectformat", "compatobjectformat", "partialclone", "refstorage", "worktreeconfig"]),
    ("feature", &["experimental", "manyfiles"]),
    ("fetch", &["prune", "prunetags", "fsckobjects", "writecommitgraph", "parallel"]),
    ("gc", &["auto", "autodetach", "autopacklimit", "bigpackthreshold", "cruftpacks", "pruneexpire", "reflogexpire"]),
    ("gpg", &["format"]),
    ("http", &["lowspeedlimit", "lowspeedtime", "maxrequests", "postbuffer", "version"]),
    ("index", &["skiphash", "sparse", "threads", "version"]),
    ("init", &["defaultbranch"]),
    ("lfs", &["repositoryformatversion", "access", "url", "locksverify", "fetchinclude", "fetchexclude"]),
    ("log", &["date", "decorate", "follow", "abbrevcommit"]),
    ("maintenance", &["auto", "strategy"]),
    ("merge", &["conflictstyle", "ff", "renames"]),
    ("pack", &["compression", "depth", "packsizelimit", "threads", "usesparse", "window", "writebitmaps"]),
    ("protocol", &["version"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote", "followtags", "gpgsign"]),
    ("rebase", &["autosquash", "autostash", "updaterefs"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards", "denydeletes", "fsckobjects"]),
    (
        "remote",
        &[
            "url",
            "pushurl",
            "fetch",
            "push",
            "tagopt",
            "prune",
            "mirror",
            "promisor",
            "partialclonefilter",
            "gh-resolved",
        ],
    ),
    ("rerere", &["autoupdate", "enabled"]),
    ("status", &["branch", "relativepaths", "short", "showstash", "showuntrackedfiles", "submodulesummary"]),
    ("submodule", &["recurse", "active", "url", "branch", "ignore", "path", "fetchrecursesubmodules"]),
    ("tag", &["gpgsign", "sort"]),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
    ("worktree", &["guessremote", "userelativepaths"]),
];

/// Whether a file of settings holds plain data alone. That of a submodule's repository says where its work tree is: `is_its_tree` says of
/// which folders it may.
pub fn plain(text: &[u8], is_its_tree: impl Fn(&str) -> bool) -> Result<(), Obeyed> {
    let text = std::str::from_utf8(text).ok().ok_or(Obeyed::Unclear)?;
    let mut section = String::new();
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n') {
        let mut rest = line.trim();
        while let Some(inner) = rest.strip_prefix('[') {
            let (name, after) = header(inner).ok_or(Obeyed::Unclear)?;
            (section, rest) = (name, after.trim_start());
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        setting(&section, rest, &is_its_tree)?;
    }
    Ok(())
}

/// The name of a section, and what follows its `]`.
fn header(text: &str) -> Option<(String, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.')))?;
    let (name, rest) = text.split_at_checked(end)?;
    let section = name.split('.').next().filter(|name| !name.is_empty())?.to_ascii_lowercase();
    if let Some(after) = rest.strip_prefix(']') {
        return Some((section, after));
    }
    let mut letters = rest.trim_start().strip_prefix('"')?.char_indices();
    let quoted = rest.trim_start().strip_prefix('"')?;
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()?),
            '"' => return Some((section, quoted.get(at + 1..)?.strip_prefix(']')?)),
            _ => {}
        }
    }
    None
}

fn setting(section: &str, line: &str, is_its_tree: &dyn Fn(&str) -> bool) -> Result<(), Obeyed> {
    let end = line.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).unwrap_or(line.len());
    let (name, rest) = line.split_at_checked(end).ok_or(Obeyed::Unclear)?;
    let rest = rest.trim_start();
    // What ends so goes on in the next line.
    let is_whole = rest.is_empty() || rest.starts_with(['=', '#', ';']);
    if name.is_empty() || !is_whole || line.ends_with('\\') {
        return Err(Obeyed::Unclear);
    }
    let name = name.to_ascii_lowercase();
    let is_plain = PLAIN
        .iter()
        .any(|(known, names)| *known == section && names.iter().any(|plain| *plain == "*" || *plain == name));
    let is_plain = is_plain
        || match (section, name.as_str()) {
            // Git's own, which runs nothing else.
            ("core", "fsmonitor") => rest.strip_prefix('=').is_some_and(|on| matches!(on.trim(), "true" | "false")),
            // Where no hooks are.
            ("core", "hookspath") => rest.strip_prefix('=').is_some_and(|at| at.trim() == "/dev/null"),
            ("core", "worktree") => {
                let tree = rest.strip_prefix('=').map(str::trim).filter(|tree| !tree.contains(['"', '\\', '#', ';']));
                tree.is_some_and(is_its_tree)
            }
            _ => false,
        };
    if is_plain { Ok(()) } else { Err(Obeyed::Setting(format!("{section}.{name}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_itself_is_plain() {
        let made = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
                    [remote \"origin\"]\n\turl = https://host/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                    [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[submodule \"a \\\"b\\\"\"] active = true ; x\n\
                    # [core] fsmonitor = x\n[user]\n\tname = A \\\"B\\\" C\n[core]fsmonitor=false\n\tbare\n";
        assert_eq!(plain(made.as_bytes(), |_| false), Ok(()));
        assert_eq!(plain(b"", |_| false), Ok(()));
        let data = "[protocol] version = 2\n[branch]\nsort = -committerdate\nautoSetupMerge = always\n[checkout] defaultRemote = a\n\
                    [status]\nshowUntrackedFiles = all\n[submodule]\nrecurse = true\n[core]\nexcludesFile = x\n[lfs]\nurl = https://host/\n";
        assert_eq!(plain(data.as_bytes(), |_| false), Ok(()));
        let tree = |tree: &str| plain(format!("[core] worktree = {tree}").as_bytes(), |tree| tree == "../../x");
        assert_eq!(tree("../../x"), Ok(()));
        assert!(["/x", "../../../..", "\"../../x\"", "../../x ; y"].map(tree).iter().all(Result::is_err));
    }

    #[test]
    fn what_runs_something_is_named() {
        for (text, name) in [
            ("[core]\n\tfsmonitor = ./x", "core.fsmonitor"),
            ("[core]fsmonitor=./x", "core.fsmonitor"),
            ("\u{feff}[CORE]\r\n\tFsMonitor = ./x\r\n", "core.fsmonitor"),
            ("[core] bare = false\n[core \"x\"] [core] hooksPath = x", "core.hookspath"),
            ("[filter \"x\"]\n clean = x", "filter.clean"),
            ("[filter.x]\n clean = x", "filter.clean"),
            ("[include]\n path = x", "include.path"),
            ("[includeIf \"gitdir:/\"] path = x", "includeif.path"),
            ("[remote \"o\"]\n uploadpack = x", "remote.uploadpack"),
            ("[diff] external = x", "diff.external"),
            ("[submodule \"x\"] update = !x", "submodule.update"),
            ("[alias] st = !x", "alias.st"),
            ("[core] pager = x", "core.pager"),
            ("[core] editor = x", "core.editor"),
            ("[merge \"x\"] driver = x", "merge.driver"),
            ("[lfs] customtransfer = x", "lfs.customtransfer"),
            ("[url \"https://evil/\"] insteadOf = https://host/", "url.insteadof"),
            ("[core] worktree = /", "core.worktree"),
            ("[gc] recentObjectsHook = x", "gc.recentobjectshook"),
            ("[credential \"x\"] helper = x", "credential.helper"),
        ] {
            assert_eq!(plain(text.as_bytes(), |_| false), Err(Obeyed::Setting(name.to_owned())), "{text}");
        }
        for text in [
            "[core]\n bare = fal\\\nse\n",
            "[core\n]bare = x",
            "[\"x\"]\n",
            "[core]\n  x!y = z",
            "\u{feff}\u{feff}[core]\n= x",
            "[a \"b\nc\"]",
        ] {
            assert_eq!(plain(text.as_bytes(), |_| false), Err(Obeyed::Unclear), "{text}");
        }
        assert_eq!(plain(b"[core]\n bare = \xff", |_| false), Err(Obeyed::Unclear));
    }
}
