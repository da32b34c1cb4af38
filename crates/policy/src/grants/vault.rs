//! The paths that Vault may be asked for, in the forms in which patterns are compared.
//!
//! Owns what its client makes of a path, and which paths are one secret: the second version of its store has values below `data` in a
//! mount, the first has not, and which one a mount has is not known. Page: `spec/grants.md`.

/// The folders of a mount's second version that are about the same secret.
const PARTS: [&str; 2] = ["data", "metadata"];
/// How many folders of a path may be the end of its mount.
const DEEPEST: usize = 16;

/// A path that is asked for.
pub(crate) struct Asked {
    /// What an allowed pattern has to name: any of these.
    pub spellings: Vec<String>,
    /// Not any, but all of them.
    pub all: bool,
    /// What a denied pattern may name.
    pub wide: Vec<String>,
}

/// A path as the API has it.
pub(crate) fn asked(path: &str) -> Asked {
    let path = joined(path);
    Asked { wide: same_secret(&path), spellings: vec![named(&path)], all: false }
}

/// A path as `vault kv` is given it; `part` is the folder that its command looks into.
pub(crate) fn asked_of_store(mount: Option<&str>, path: &str, part: &str) -> Asked {
    let whole = mount.map_or_else(|| path.to_owned(), |mount| format!("{mount}/{path}"));
    let (mount, rest) = match mount {
        Some(mount) => (mount, path),
        None => whole.split_once('/').unwrap_or((&whole, "")),
    };
    let within = [joined(&whole), joined(&format!("{mount}/{part}/{rest}"))];
    // The client folds once it has put the part in: a path that leaves its mount is another one then.
    let leaves = rest.split('/').any(|part| part == "..");
    let mut wide: Vec<String> = within.iter().flat_map(|path| same_secret(path)).collect();
    if leaves {
        wide.extend(with_parts(&whole).iter().flat_map(|path| same_secret(&joined(path))));
    }
    Asked { spellings: within.iter().map(|path| named(path)).collect(), all: leaves, wide }
}

fn named(path: &str) -> String {
    format!("vault:{path}")
}

/// A path with `.` and `..` folded, as the client does behind `/v1/`. What is not below that any more is left as it is.
fn joined(path: &str) -> String {
    let mut out = Vec::new();
    for part in ["v1"].into_iter().chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(out.pop()),
            other => out.push(other),
        }
    }
    match out.split_first() {
        Some((&"v1", rest)) => rest.join("/"),
        _ => path.to_owned(),
    }
}

/// The path of a secret in either version of a store, whichever folder its mount is.
fn same_secret(path: &str) -> Vec<String> {
    let segments: Vec<&str> = path.split('/').collect();
    let without = segments.iter().enumerate().skip(1).filter(|(_, part)| PARTS.contains(part)).map(|(at, _)| {
        let rest: Vec<&str> =
            segments.iter().enumerate().filter(|(own, _)| *own != at).map(|(_, part)| *part).collect();
        rest.join("/")
    });
    let other = |at: usize, part: &str| {
        let (front, behind) = segments.split_at_checked(at)?;
        let tail = behind.split_first().filter(|(first, _)| PARTS.contains(first)).map(|(_, tail)| tail)?;
        Some([front, &[part], tail].concat().join("/"))
    };
    let others = (1..segments.len()).flat_map(|at| PARTS.iter().filter_map(move |part| other(at, part)));
    let all = std::iter::once(path.to_owned()).chain(without).chain(others).chain(with_parts(path));
    all.map(|path| named(&path)).collect()
}

/// With one of the second version's folders behind each folder that may be a mount.
fn with_parts(path: &str) -> Vec<String> {
    let segments: Vec<&str> = path.split('/').collect();
    let put = |at: usize, part: &str| {
        let (mount, rest) = segments.split_at_checked(at)?;
        Some([mount, &[part], rest].concat().join("/"))
    };
    let places = 1..=segments.len().min(DEEPEST);
    places.flat_map(|at| PARTS.iter().filter_map(move |part| put(at, part))).collect()
}
