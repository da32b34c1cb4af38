//! A line as it may be shown: by the shapes of tokens, by names of values, and by what programs do with their words.

use super::pairs::masked;
use super::places::{VERBS, about_secrets, assigns_secrets, is_place};
use super::programs::{Takes, feeds_secret, is_known, is_user, names_next, sets, takes};
use super::{MASK, mask, names};

/// Deepest text in quotes that is looked into.
const MAX_DEPTH: usize = 4;

/// Most words of a command that are remembered.
const MAX_SAID: usize = 48;

/// A line or a sentence fit to be shown to others: its tokens masked, and the values that stand behind names of secrets
/// (`PGPASSWORD=…`, `--token …`, `Authorization: …`, `"password": "…"`, `?token=…`), in addresses (`://user:…@`), and where programs
/// take them (`mysql -p…`, `curl -u`, `sshpass -p`).
pub fn hide(text: &str) -> String {
    let text = mask(text);
    // Most sentences have nothing that leads to a value.
    if !text.bytes().any(|byte| matches!(byte, b':' | b'=' | b'-' | b'\'' | b'"' | b'<' | b'|' | b' ')) {
        return text.into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let feeds = feeds_secret(&text);
    line(&masked(&text), feeds, 0, &mut out);
    out
}

/// What the words before say of the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Plain,
    /// It is a secret.
    Secret,
    /// It is `user:secret`.
    User,
    /// It is a header.
    Header,
    /// It is `name=secret`.
    Pair,
}

/// What is known of the command a word stands in.
struct Command<'a> {
    program: &'a str,
    said: Vec<&'a str>,
    next: Next,
}

fn line(text: &str, feeds: bool, depth: usize, out: &mut String) {
    let mut command = Command { program: "", said: Vec::new(), next: Next::Plain };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() || matches!(first, ';' | '|' | '&' | '(' | ')' | '`') {
            if !matches!(first, ' ' | '\t' | '\r') {
                command = Command { program: "", said: Vec::new(), next: Next::Plain };
            }
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        }
        let end = word_end(rest);
        let (word, after) = rest.split_at(end);
        shown(word, &mut command, feeds, depth, out);
        rest = after;
    }
}

/// Where a word ends: quotes that close hold it together.
fn word_end(text: &str) -> usize {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '\'' | '"' => {
                let body = text.get(at + 1..).unwrap_or_default();
                let closed = body.char_indices().find(|(end, c)| {
                    *c == letter && !(letter == '"' && body.get(..*end).is_some_and(|body| body.ends_with('\\')))
                });
                if let Some((end, _)) = closed {
                    let to = at + 1 + end;
                    while letters.as_str().len() > text.len() - to - 1 {
                        letters.next();
                    }
                }
            }
            _ if letter.is_whitespace() || matches!(letter, ';' | '|' | '&' | '(' | ')' | '`') => return at,
            _ => {}
        }
    }
    text.len()
}

fn shown<'a>(word: &'a str, command: &mut Command<'a>, feeds: bool, depth: usize, out: &mut String) {
    let bare = word.trim_matches(['"', '\'']);
    let next = std::mem::replace(&mut command.next, Next::Plain);
    let option = bare.starts_with("--") || bare.starts_with('-') && bare.len() == 2 || bare.starts_with('<');
    match next {
        Next::Secret if !bare.starts_with('$') && !option => return out.push_str(&quoted(word)),
        Next::User => return out.push_str(&user(word)),
        Next::Header => return out.push_str(&header(word)),
        Next::Pair => return out.push_str(&pair(word, 0)),
        Next::Plain | Next::Secret => {}
    }
    let name = bare.rsplit('/').next().unwrap_or_default();
    let assigns =
        command.said.is_empty() && bare.split_once('=').is_some_and(|(name, _)| !name.contains(['-', '/', '.']));
    if is_known(name) || command.program.is_empty() && !assigns && !bare.starts_with('-') && !is_wrapper(name) {
        command.program = name;
        command.said.clear();
    }
    // What stands so far behind its command is a list.
    let shown = if command.said.len() < MAX_SAID {
        let shown = leads(word, bare, command, feeds).or_else(|| operand(word, bare, command, feeds));
        command.said.push(bare);
        shown
    } else if bare.starts_with('-') {
        leads(word, bare, command, feeds)
    } else {
        None
    };
    out.push_str(&shown.unwrap_or_else(|| plain(word, feeds, depth)));
}

/// What a word says of the next one; and itself, where a secret is glued to it.
fn leads(word: &str, bare: &str, command: &mut Command<'_>, feeds: bool) -> Option<String> {
    let (program, said) = (command.program, &command.said);
    match takes(program, said, bare) {
        Takes::Next => {
            command.next = Next::Secret;
            return None;
        }
        Takes::Glued(length) if !word.starts_with(['"', '\'']) => {
            let (option, value) = word.split_at(length);
            let value = if value.starts_with('$') { value.to_owned() } else { quoted(value) };
            return Some(format!("{option}{value}"));
        }
        Takes::Glued(_) | Takes::Nothing => {}
    }
    let option = bare.starts_with('-') && !bare.contains('=') && !(program == "pulumi" && bare == "--secret");
    if is_user(program, bare) {
        command.next = Next::User;
    } else if matches!(bare, "-H" | "--header" | "--proxy-header") {
        command.next = Next::Header;
    } else if bare == "--from-literal" {
        command.next = Next::Pair;
    } else if option && names::is_secret(bare.trim_start_matches('-'))
        || matches!(bare, "-p" | "-P" | "-t" | "-w" | "-b") && about_secrets(program, said)
        || sets(program, said, bare)
        || names_next(program, said, bare)
        || bare == "<<<" && feeds
    {
        command.next = Next::Secret;
    }
    None
}

/// An operand that stands where its command takes a secret.
fn operand(word: &str, bare: &str, command: &Command<'_>, feeds: bool) -> Option<String> {
    let (program, said) = (command.program, &command.said);
    if bare.starts_with("--from-literal=") {
        return Some(pair(word, 1));
    }
    // `redis-cli ACL SETUSER me '>secret'`
    if said.iter().any(|word| word.eq_ignore_ascii_case("setuser")) && bare.starts_with(['>', '<']) {
        return Some(quoted(word));
    }
    if let Some(value) = word.strip_prefix("-H").filter(|value| program == "curl" && !value.is_empty()) {
        return Some(format!("-H{}", header(value)));
    }
    if program.starts_with("sql")
        && let Some(login) = login(word)
    {
        return Some(login);
    }
    if assigns_secrets(program, said) && (!bare.starts_with('-') || bare.starts_with("--value=")) && bare.contains('=')
    {
        return Some(pair(word, 0));
    }
    if said.is_empty() || bare.starts_with(['-', '$', '%', '>', '<']) {
        return None;
    }
    if program == "bundle" && said.contains(&"config") && !bare.contains("//") {
        return Some(user(word));
    }
    let prints = feeds && matches!(program, "echo" | "printf" | "yes");
    // `printf 'DB_PASS=%s' …`
    let filled = program == "printf" && said.iter().any(|word| word.contains(MASK));
    let batch = program == "htpasswd" && said.iter().any(|word| word.starts_with('-') && word.contains('b'));
    let third = batch && said.iter().filter(|word| !word.starts_with('-')).count() >= 2 && said.len() >= 3;
    let phrase = program == "wpa_passphrase" && said.len() >= 2;
    let given = about_secrets(program, said) && may_be_secret(bare);
    (prints || filled || third || phrase || given || is_place(program, said)).then(|| quoted(word))
}

/// Whether an operand of a command about secrets is none of a verb, a name in capitals, a host, a path, a number.
fn may_be_secret(bare: &str) -> bool {
    !VERBS.contains(&bare)
        && !bare.contains(['/', '.', ':', '='])
        && !bare.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

/// `name=secret`, after so many other equals signs.
fn pair(word: &str, skip: usize) -> String {
    let Some((at, _)) = word.match_indices('=').nth(skip) else { return word.to_owned() };
    let (name, value) = word.split_at(at + 1);
    if value.is_empty() || value.trim_start_matches(['"', '\'']).starts_with('$') {
        return word.to_owned();
    }
    // The word's own quotes stay in pairs.
    let close = word.chars().next().filter(|first| matches!(first, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{name}{MASK}{close}")
}

/// `user/secret@database`, as Oracle's programs take it.
fn login(word: &str) -> Option<String> {
    let (user, rest) = word.split_once('/')?;
    let (_, database) = rest.rsplit_once('@')?;
    (!user.is_empty()).then(|| format!("{user}/{MASK}@{database}"))
}

/// Programs that run the one behind them.
fn is_wrapper(name: &str) -> bool {
    matches!(
        name,
        "sudo" | "env" | "time" | "nohup" | "exec" | "command" | "doas" | "xargs" | "watch" | "timeout" | "nice"
    )
}

/// A word that no one before it speaks of.
fn plain(word: &str, feeds: bool, depth: usize) -> String {
    if let Some(shown) = glued_user(word).or_else(|| address(word)).or_else(|| at_host(word)).or_else(|| random(word)) {
        return shown;
    }
    // `bash -c "mysql -p…"`, `{"run":"mysql -p…"}`, or a header by itself.
    let mut out = String::with_capacity(word.len());
    let mut rest = word;
    while let Some((front, quote, inner, behind)) = quoted_part(rest).filter(|_| depth < MAX_DEPTH) {
        out.push_str(front);
        out.push(quote);
        if inner.contains(char::is_whitespace) {
            line(inner, feeds, depth + 1, &mut out);
        } else {
            out.push_str(inner);
        }
        out.push(quote);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The first text in quotes that close: what stands before it, the quote, itself, and what comes behind.
fn quoted_part(word: &str) -> Option<(&str, char, &str, &str)> {
    let at = word.find(['"', '\''])?;
    let quote = word.get(at..)?.chars().next()?;
    let body = word.get(at + 1..)?;
    let closes =
        |(end, _): &(usize, &str)| quote == '\'' || !body.get(..*end).is_some_and(|inner| inner.ends_with('\\'));
    let (end, _) = body.match_indices(quote).find(closes)?;
    Some((word.get(..at)?, quote, body.get(..end)?, body.get(end + 1..)?))
}

/// `-uuser:secret`, `--user=user:secret`.
fn glued_user(word: &str) -> Option<String> {
    let long = ["--user=", "--proxy-user=", "--creds=", "--auth="].iter().find(|option| word.starts_with(**option));
    let length = match long {
        Some(option) => option.len(),
        None if word.starts_with("-u") && word.contains(':') && !word.contains("://") => 2,
        None => return None,
    };
    let (option, value) = word.split_at(length);
    Some(format!("{option}{}", user(value)))
}

/// `user:secret`, `user%secret`; an identity of numbers is none.
fn user(word: &str) -> String {
    let bare = word.trim_matches(['"', '\'']);
    let Some((name, secret)) = bare.split_once([':', '%', ',']) else { return word.to_owned() };
    let numbers = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    if secret.is_empty() || numbers(name) && numbers(secret) || secret.starts_with('$') {
        return word.to_owned();
    }
    let sign = bare.chars().nth(name.chars().count()).unwrap_or(':');
    let quote = word.chars().next().filter(|first| matches!(first, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{quote}{name}{sign}{MASK}{quote}")
}

/// `'X-Api-Key: …'`: a header's value is a secret when its name says so, or when it looks like one.
fn header(word: &str) -> String {
    let bare = word.trim_matches(['"', '\'']);
    let Some((name, value)) = bare.split_once(':') else { return word.to_owned() };
    let lower = name.to_ascii_lowercase();
    let harmless = [
        "accept",
        "content-type",
        "user-agent",
        "host",
        "origin",
        "referer",
        "content-length",
        "cache-control",
        "if-none-match",
    ];
    let secret = names::is_secret(name)
        || ["key", "auth", "cookie", "session", "signature"].iter().any(|part| lower.contains(part));
    let value = value.trim();
    if harmless.contains(&lower.as_str()) || !secret || value.is_empty() || value.starts_with('$') {
        return word.to_owned();
    }
    let quote = word.chars().next().filter(|first| matches!(first, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{quote}{name}: {MASK}{quote}")
}

/// `scheme://user:secret@host`, and hooks whose path is the secret.
fn address(word: &str) -> Option<String> {
    const HOOKS: [&str; 6] = [
        "hooks.slack.com/services/",
        "/api/webhooks/",
        "api.telegram.org/bot",
        "webhook.office.com/",
        "hooks.zapier.com/",
        "maker.ifttt.com/",
    ];
    let (scheme, rest) = word.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '"', '\'']).unwrap_or(rest.len()));
    // A secret may hold `/`, `?` or `#`: what stands before the last `@` of the word belongs to it.
    let (authority, path) = match (authority.contains('@'), rest.split_once('@')) {
        (false, Some((front, behind))) if front.contains(':') && !front.contains(['=', ' ']) => {
            let end = behind.find(['/', '?', '#', '"', '\'']).unwrap_or(behind.len());
            rest.split_at(front.len() + 1 + end)
        }
        _ => (authority, path),
    };
    if let Some((user, host)) = authority.rsplit_once('@') {
        let user = match user.split_once(':') {
            // The token stands in the user's place.
            Some((_, "x-oauth-basic")) => format!("{MASK}:x-oauth-basic"),
            Some((user, secret)) if !secret.starts_with('$') => format!("{user}:{MASK}"),
            // A token alone: `https://TOKEN@host`.
            None if user.len() >= 16 => MASK.to_owned(),
            Some(_) | None => user.to_owned(),
        };
        return Some(format!("{scheme}://{user}@{host}{path}"));
    }
    let hook = HOOKS.iter().find_map(|hook| rest.find(hook).map(|at| at + hook.len()))?;
    let end = rest.find(['"', '\'']).unwrap_or(rest.len()).max(hook);
    Some(format!("{scheme}://{}{MASK}{}", rest.get(..hook)?, rest.get(end..)?))
}

/// `user:secret@host.example` without a scheme.
fn at_host(word: &str) -> Option<String> {
    const SCHEMES: [&str; 8] = ["npm", "jsr", "file", "git", "workspace", "mailto", "link", "portal"];
    let (front, host) = word.rsplit_once('@')?;
    let (user, secret) = front.split_once(':')?;
    let name = user.trim_start_matches(['"', '\'']);
    let plain = !name.is_empty() && !name.contains(['/', '=', '@']) && !SCHEMES.contains(&name);
    let to_host = (host.contains('.') || host.starts_with("localhost") || host.chars().all(char::is_alphanumeric))
        && !host.starts_with("sha")
        && host.chars().next().is_some_and(char::is_alphanumeric);
    (plain && to_host && !secret.is_empty() && !secret.contains(['/', '$', ' ']))
        .then(|| format!("{user}:{MASK}@{host}"))
}

/// Forty letters of the kind that clouds make keys of.
fn random(word: &str) -> Option<String> {
    let bare = word.trim_matches(['"', '\'']);
    let of = |test: fn(&char) -> bool| bare.chars().filter(test).count();
    let shape = (40..=88).contains(&bare.len())
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '+' | '='))
        && of(char::is_ascii_digit) >= 2
        && of(char::is_ascii_uppercase) >= 8
        && of(char::is_ascii_lowercase) >= 8
        && !bare.starts_with('/');
    (shape || changes(bare) >= 6).then(|| quoted(word))
}

/// How often upper case, lower case, digits and signs take turns in a word that is no name: what people and machines make of
/// passwords (`Wq7vLr93xk`). None where a word is longer or shorter than these, or has parts.
fn changes(bare: &str) -> usize {
    let kind = |c: char| match c {
        'A'..='Z' => 0_u8,
        'a'..='z' => 1,
        '0'..='9' => 2,
        '!' | '@' | '#' | '%' | '^' | '*' | '+' => 3,
        _ => 4,
    };
    let kinds: Vec<u8> = bare.chars().map(kind).collect();
    if !(8..=39).contains(&kinds.len()) || kinds.contains(&4) || !(0..=2).all(|kind| kinds.contains(&kind)) {
        return 0;
    }
    kinds.windows(2).filter(|pair| matches!(pair, [one, other] if one != other)).count()
}

/// The mask in the word's own quotes, so that the line still reads.
fn quoted(word: &str) -> String {
    let quote = |c: Option<char>| c.filter(|c| matches!(c, '"' | '\'')).map(String::from).unwrap_or_default();
    format!("{}{MASK}{}", quote(word.chars().next()), quote(word.chars().next_back().filter(|_| word.len() > 1)))
}
