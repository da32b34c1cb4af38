//! The command's environment.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::confinement::{Environment, Pass};

/// What passes of `given`, what is set, and what is set for this run alone, each name once; the last value set wins.
pub fn of(
    environment: &Environment,
    given: impl Iterator<Item = (OsString, OsString)>,
    own: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let all: Vec<(OsString, OsString)> = environment.set.iter().cloned().chain(own).collect();
    let set = |name: &OsStr| all.iter().any(|(other, _)| other == name);
    let mut variables: Vec<(OsString, OsString)> =
        given.filter(|(name, _)| passes(environment, name) && !set(name)).collect();
    for (place, (name, value)) in all.iter().enumerate() {
        if !all.iter().skip(place + 1).any(|(later, _)| later == name) {
            variables.push((name.clone(), value.clone()));
        }
    }
    variables
}

fn passes(environment: &Environment, name: &OsStr) -> bool {
    let passed = match &environment.pass {
        Pass::All => true,
        Pass::Only(names) => names.iter().any(|pattern| matches(pattern, name)),
    };
    passed && !environment.drop.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == pattern,
    }
}

/// Names of the caller's variables that do not pass.
pub fn dropped(environment: &Environment) -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let set = |name: &OsString| environment.set.iter().any(|(other, _)| other == name);
    let dropped = names.filter(|name| !passes(environment, name) && !set(name));
    dropped.filter_map(|name| name.into_string().ok()).collect()
}

/// `NAME=value`, as `execve` takes it. A zero byte cannot be passed on, so such a variable is not.
pub fn texts(variables: &[(OsString, OsString)]) -> Vec<CString> {
    let text = |(name, value): &(OsString, OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        CString::new(text.into_vec()).ok()
    };
    variables.iter().filter_map(text).collect()
}

/// Where a program may lie.
pub fn programs(program: &OsStr, variables: &[(OsString, OsString)]) -> Vec<CString> {
    let path = |bytes: Vec<u8>| CString::new(bytes).ok();
    if program.as_bytes().contains(&b'/') {
        return path(program.as_bytes().to_vec()).into_iter().collect();
    }
    let folders = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_bytes());
    let folders = folders.unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    let join = |folder: &[u8]| {
        let folder = if folder.is_empty() { b"." } else { folder };
        path([folder, b"/", program.as_bytes()].concat())
    };
    folders.split(|byte| *byte == b':').filter_map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> impl Iterator<Item = (OsString, OsString)> {
        [("PATH", "/bin"), ("SECRET_KEY", "k"), ("HOME", "/h"), ("LC_ALL", "C")]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
    }

    #[test]
    fn what_passes_is_what_is_named() {
        let environment = |pass, drop: &[&str]| Environment {
            pass,
            drop: drop.iter().map(|name| (*name).to_owned()).collect(),
            set: vec![("HOME".into(), "/x".into()), ("NEW".into(), "1".into())],
        };
        let names = |environment| -> Vec<String> {
            of(&environment, given(), Vec::new())
                .into_iter()
                .map(|(name, value)| format!("{}={}", name.display(), value.display()))
                .collect()
        };
        assert_eq!(names(environment(Pass::All, &["SECRET*"])), ["PATH=/bin", "LC_ALL=C", "HOME=/x", "NEW=1"]);
        let only = Pass::Only(vec!["LC_*".into(), "SECRET_KEY".into()]);
        assert_eq!(names(environment(only, &["SECRET_KEY"])), ["LC_ALL=C", "HOME=/x", "NEW=1"]);
    }

    #[test]
    fn a_program_is_sought_in_the_path_it_gets() {
        let variables = [("PATH".into(), "/a::/b".into())];
        assert_eq!(programs("x".as_ref(), &variables), [c"/a/x".to_owned(), c"./x".to_owned(), c"/b/x".to_owned()]);
        assert_eq!(programs("./x".as_ref(), &variables), [c"./x".to_owned()]);
    }
}
