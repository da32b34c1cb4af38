//! A makefile given as text: the commands of its recipes, and `$(shell …)`.

use writ_core::Span;

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::programs::foreign::{MARK, STEM, marked, unmarked};
use crate::word::Word;

/// Functions of make that only deal with text.
const SAFE: [&str; 22] = [
    "subst",
    "patsubst",
    "strip",
    "findstring",
    "filter",
    "filter-out",
    "sort",
    "word",
    "words",
    "wordlist",
    "firstword",
    "lastword",
    "dir",
    "notdir",
    "suffix",
    "basename",
    "addsuffix",
    "addprefix",
    "join",
    "wildcard",
    "abspath",
    "info",
];

/// Follows every recipe of a makefile.
pub fn text(eval: &mut Eval<'_>, what: &str, makefile: &Word) {
    let text = marked(makefile).replace("\\\n", " ");
    functions(eval, what, &text, makefile.span);
    let mut rule = ("", "");
    for line in text.lines() {
        let indented = if what == "just" { line.strip_prefix([' ', '\t']) } else { line.strip_prefix('\t') };
        let recipe = match indented {
            Some(recipe) => recipe,
            None => {
                let Some((target, rest)) = line.split_once(':') else { continue };
                let (needs, recipe) =
                    rest.split_once(';').map_or((rest, None), |(needs, recipe)| (needs, Some(recipe)));
                rule = (target.trim(), needs.trim_start_matches(':').split('|').next().unwrap_or_default().trim());
                let Some(recipe) = recipe else { continue };
                recipe
            }
        };
        let recipe = recipe.trim_start_matches(|c: char| matches!(c, '@' | '-' | '+') || c.is_whitespace());
        eval.code(&unmarked(&variables(&automatic(recipe, rule)), makefile.span), None, what);
    }
}

/// A recipe with `$@`, `$<`, `$^` and `$*` put in, as its rule has them.
fn automatic(recipe: &str, (target, needs): (&str, &str)) -> String {
    // A variable in them is not known; a stem is.
    let known = |text: &str| !text.is_empty() && !text.contains('$');
    let stem = |text: &str| text.replace('%', &STEM.to_string());
    let first = needs.split_whitespace().next().unwrap_or_default();
    let mut out = recipe.to_owned();
    for (mark, text) in [("@", target), ("<", first), ("^", needs), ("+", needs)] {
        if known(text) {
            out = out.replace(&format!("$({mark})"), &stem(text)).replace(&format!("${mark}"), &stem(text));
        }
    }
    out.replace("$*", &STEM.to_string())
}

/// Follows `$(shell …)` in a text; other functions that may run something are left open.
pub fn functions(eval: &mut Eval<'_>, what: &str, text: &str, span: Span) {
    // More calls than this are left open: each is read to the end of the text.
    const MAX: usize = 256;
    let calls = text.match_indices(['(', '{']);
    if calls.clone().nth(MAX).is_some() {
        eval.unresolved(UnresolvedKind::Limit, what, span);
    }
    for (at, opening) in calls.take(MAX) {
        if !text.get(..at).is_some_and(|before| before.ends_with('$') && !before.ends_with("$$")) {
            continue;
        }
        let Some(inner) = text.get(at + opening.len()..) else { continue };
        let Some((name, rest)) = inner.split_once([' ', '\t']) else { continue };
        let close = rest.rfind([')', '}']).unwrap_or(rest.len());
        if name == "shell" {
            eval.code(&unmarked(&variables(rest.get(..close).unwrap_or_default()), span), None, what);
        } else if name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !SAFE.contains(&name) {
            eval.unresolved(UnresolvedKind::Code, what, span);
        }
    }
}

/// Make's variables as something unknown, `$$` as the shell's dollar.
fn variables(recipe: &str) -> String {
    let mut out = String::new();
    let mut chars = recipe.chars();
    while let Some(c) = chars.next() {
        if c != '$' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('$') => out.push('$'),
            Some('(') => {
                chars.by_ref().find(|c| *c == ')');
                out.push(MARK);
            }
            Some('{') => {
                chars.by_ref().find(|c| *c == '}');
                out.push(MARK);
            }
            _ => out.push(MARK),
        }
    }
    out
}

/// A makefile with the variables that it sets itself, and those that make knows, put in.
pub fn with_variables(text: &str) -> String {
    // More variables and longer texts than these are left as they are.
    const MAX: (usize, usize) = (64, 64 << 10);
    let known = [
        ("CC", "cc"),
        ("CXX", "g++"),
        ("AR", "ar"),
        ("RM", "rm -f"),
        ("MAKE", "make"),
        ("SHELL", "sh"),
        ("PYTHON", "python3"),
    ];
    let own = text.lines().filter(|line| !line.starts_with('\t')).filter_map(definition);
    let mut variables: Vec<(&str, &str)> = own.take(MAX.0).collect();
    variables.extend(known.iter().filter(|(name, _)| !text.contains(&format!("{name} "))));
    let mut out = text.to_owned();
    // A value may name others.
    for _ in 0..3 {
        for (name, value) in &variables {
            for mark in [format!("$({name})"), format!("${{{name}}}")] {
                if out.contains(&mark) && out.len() + out.matches(&mark).count() * value.len() < MAX.1 {
                    out = out.replace(&mark, value);
                }
            }
        }
    }
    out
}

/// `NAME := value`
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end_matches([':', '?', '+']).trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| (name, value.trim()))
}
