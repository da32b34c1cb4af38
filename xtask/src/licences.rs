//! Licences of dependencies, against a list.
//!
//! Owns which licences Writ may be built with; `deny.toml` says the same for those who have `cargo deny`. Refuses an
//! expression it cannot read. Invariant: every dependency that passes can be used under listed licences alone.

use crate::metadata::Package;

/// Licences that ask for no more than notices, or for changes to their own files.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "OpenSSL",
    "Unicode-3.0",
    "Zlib",
];

/// What is wrong with the licences of these packages.
pub fn check(packages: &[Package]) -> Vec<String> {
    let refused = packages.iter().filter(|package| !package.licence.as_deref().is_some_and(permitted));
    refused
        .map(|package| {
            let licence = package.licence.as_deref().unwrap_or("no licence expression");
            format!("`{} {}`: licence not allowed: {licence}", package.name, package.version)
        })
        .collect()
}

/// Whether an SPDX expression can be met with listed licences. The old `MIT/Apache-2.0` means OR.
fn permitted(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut holds = all_of(rest)?;
    while take(rest, "OR") {
        holds |= all_of(rest)?;
    }
    Some(holds)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut holds = one(rest)?;
    while take(rest, "AND") {
        holds &= one(rest)?;
    }
    Some(holds)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    if take(rest, "(") {
        let holds = any_of(rest)?;
        return take(rest, ")").then_some(holds);
    }
    let (licence, tail) = rest.split_first()?;
    *rest = tail;
    if take(rest, "WITH") {
        // An exception only ever permits more than its licence.
        let (_exception, tail) = rest.split_first()?;
        *rest = tail;
    }
    Some(ALLOWED.contains(licence))
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, tail)) if *first == word => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_licences_pass() {
        for expression in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR GPL-2.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "ISC AND (Apache-2.0 OR ISC) AND OpenSSL",
        ] {
            assert!(permitted(expression), "{expression}");
        }
    }

    #[test]
    fn others_and_nonsense_do_not() {
        for expression in
            ["", "GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT", "MIT)", "MIT OR", "AND", "MIT MIT", "mit"]
        {
            assert!(!permitted(expression), "{expression}");
        }
    }

    #[test]
    fn deny_toml_has_the_same_list() {
        let (_, table) = include_str!("../../deny.toml").split_once("[licenses]").unwrap();
        let (list, _) = table.split_once(']').unwrap();
        let listed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(listed, ALLOWED);
    }

    #[test]
    fn a_package_without_a_licence_is_named() {
        let package = Package { name: "x".to_owned(), version: "1.0.0".to_owned(), ..Package::default() };
        assert_eq!(check(&[package]), ["`x 1.0.0`: licence not allowed: no licence expression"]);
    }
}
