//! Tokens in names and paths: masked before anything is judged or recorded (R8).
//!
//! Knows the shapes that providers gave their tokens so that they can be found. A secret without such a shape, used as a program's
//! or a file's name, is not found.

use std::borrow::Cow;

/// How a token begins, and how many more characters it has at least.
const SHAPES: [(&str, usize); 32] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("npm_", 20),
    ("pypi-", 20),
    ("AIza", 30),
    ("ya29.", 20),
    ("eyJ", 30),
    ("dop_v1_", 20),
    ("hf_", 20),
    ("SG.", 20),
    ("shpat_", 20),
    ("dckr_pat_", 16),
    ("lin_api_", 16),
    ("sq0csp-", 16),
    ("AGE-SECRET-KEY-", 16),
    ("whsec_", 16),
];
/// No token has a run of letters and digits shorter than this.
const SHORTEST: usize = 14;
/// What stands in a token's place.
const MASK: &str = "[secret]";

/// The text with its tokens masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    // Nearly every name is too short to be one.
    if !text.split(|c| !is_token(c)).any(|run| run.len() >= SHORTEST) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.char_indices() {
        if at < done || text.get(..at).is_some_and(|before| before.ends_with(is_token)) {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        let long = |(start, least): &&(&str, usize)| {
            rest.strip_prefix(start).is_some_and(|tail| tail.chars().take_while(|c| is_token(*c)).count() >= *least)
        };
        if SHAPES.iter().any(|shape| long(&shape)) {
            let length = rest.find(|c| !is_token(c) && c != '.').unwrap_or(rest.len());
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str(MASK);
            done = at + length;
        }
    }
    if done == 0 && out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Names whose values are secrets.
const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "private_key",
    "authorization",
];

/// A line or a sentence fit to be shown to others: its tokens masked, and the values that stand behind names of secrets
/// (`PGPASSWORD=…`, `--token …`, `Authorization: …`), in URLs (`://user:…@`) and behind `-u`.
pub fn hide(text: &str) -> String {
    let text = mask(text);
    // Nothing below does anything without one of these, and most sentences have none.
    if !text.bytes().any(|byte| matches!(byte, b':' | b'=' | b'-')) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut next = Next::Plain;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        let space = word.get(bare.len()..).unwrap_or_default();
        let (shown, then) = if bare.is_empty() { (Cow::Borrowed(""), next) } else { shown(bare, next) };
        out.push_str(&shown);
        out.push_str(space);
        next = then;
    }
    out
}

/// What the word before says of the next one.
#[derive(Clone, Copy)]
enum Next {
    Plain,
    /// It is a secret.
    Secret,
    /// It, and all up to a closing quote, is a secret.
    Header,
    /// It is `user:secret`.
    User,
}

fn shown(word: &str, next: Next) -> (Cow<'_, str>, Next) {
    let closed = word.ends_with(['"', '\'']);
    match next {
        Next::Secret => return (quoted(word).into(), Next::Plain),
        Next::Header => return (quoted(word).into(), if closed { Next::Plain } else { Next::Header }),
        Next::User => {
            let shown = word.split_once(':').map(|(user, _)| format!("{user}:{MASK}"));
            return (shown.map_or(Cow::Borrowed(word), Cow::Owned), Next::Plain);
        }
        Next::Plain => {}
    }
    if let Some((scheme, rest)) = word.split_once("://") {
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if let Some(((user, _), host)) =
            authority.rsplit_once('@').and_then(|(user, host)| Some((user.split_once(':')?, host)))
        {
            return (format!("{scheme}://{user}:{MASK}@{host}{path}").into(), Next::Plain);
        }
    }
    match word.find(['=', ':']) {
        Some(at) if is_secret(word.get(..at).unwrap_or_default()) => {
            let (name, value) = word.split_at(at + 1);
            if value.is_empty() {
                return (word.into(), if word.ends_with(':') { Next::Header } else { Next::Secret });
            }
            (format!("{name}{}", quoted(value)).into(), Next::Plain)
        }
        None if word.starts_with('-') && is_secret(word) => (word.into(), Next::Secret),
        _ if matches!(word, "-u" | "--user") => (word.into(), Next::User),
        _ => (word.into(), Next::Plain),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|secret| name.contains(secret))
}

/// The mask in the word's own quotes, so that the line still reads.
fn quoted(word: &str) -> String {
    let quote = |c: Option<char>| c.filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{}{MASK}{}", quote(word.chars().next()), quote(word.chars().next_back().filter(|_| word.len() > 1)))
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fit_to_be_shown() {
        for (line, shown) in [
            ("PGPASSWORD=hunter2 psql -c 'SELECT 1'", "PGPASSWORD=[secret] psql -c 'SELECT 1'"),
            ("vault --token hunter2 rm  x", "vault --token [secret] rm  x"),
            ("vault --token=\"hunter2\" rm", "vault --token=\"[secret]\" rm"),
            ("curl -u me:hunter2 https://x/", "curl -u me:[secret] https://x/"),
            ("psql postgres://me:hunter2@db:5/x?y", "psql postgres://me:[secret]@db:5/x?y"),
            ("psql postgres://me:hun@ter2@db/x", "psql postgres://me:[secret]@db/x"),
            ("curl -H 'Authorization: Bearer hunter2' x", "curl -H 'Authorization: [secret] [secret]' x"),
            ("rm -rf /data && git push --force", "rm -rf /data && git push --force"),
        ] {
            assert_eq!(hide(line), shown);
        }
    }

    #[test]
    fn tokens_are_masked_and_names_are_not() {
        let token = format!("ghp_{}", "aB3".repeat(12));
        assert_eq!(mask(&format!("/w/{token}/x")), "/w/[secret]/x");
        assert_eq!(mask(&token), "[secret]");
        assert_eq!(mask(&format!("a={token},b")), "a=[secret],b");
        for plain in ["/w/src/ghp_short", "task-skeleton-of-a-very-long-file-name.rs", "sk-learn", "", "/usr/bin/git"] {
            assert_eq!(mask(plain), plain);
        }
    }
}
