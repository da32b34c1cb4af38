//! What the value of an option touches, by its role in the entry of the program.

use crate::action::{Access, NetTarget, UnresolvedKind};
use crate::eval::Eval;
use crate::programs::entries::words::Role;
use crate::programs::operands::{all, copy, net};
use crate::shape::{is_url, looks_like_path, text_word};
use crate::word::{Part, Word};

/// Puts on record what an option's value touches.
pub fn value(eval: &mut Eval<'_>, role: Role, word: &Word) {
    let text = word.literal().unwrap_or_default();
    let mut named = |file: &str| read(eval, file, word);
    match role {
        Role::Reads | Role::ReadsHosts if !is_url(word) => all(eval, &[word], Access::Read, false),
        Role::Inventory if !text.contains(',') => all(eval, &[word], Access::Read, false),
        Role::ReadsTree => all(eval, &[word], Access::Read, true),
        Role::Writes => {
            eval.settings_file(word, None);
            all(eval, &[word], Access::Write, false);
        }
        Role::WritesTree => all(eval, &[word], Access::Write, true),
        Role::Lists | Role::RunsIn => all(eval, &[word], Access::List, false),
        Role::OutputFolder => copy::unpack(eval, word),
        Role::Command => eval.code(word, None, "an option"),
        Role::UrlOrHost | Role::Hosts if text.starts_with(['.', '/', '~']) => all(eval, &[word], Access::Read, false),
        Role::Url | Role::AtFile => text.strip_prefix('@').into_iter().for_each(named),
        Role::NameAtFile => {
            text.split_once('@').filter(|(name, _)| !name.contains('=')).into_iter().for_each(|(_, file)| named(file))
        }
        Role::FormField if !text.contains(['=', '@']) && looks_like_path(word) => named(&text),
        Role::FormField => form(&text).into_iter().for_each(named),
        Role::WriteOut => write_out(eval, &text, word),
        Role::Cookie if !text.contains('=') => named(&text),
        Role::NamedFile => {
            let file = text.split_once('=').map_or(text.as_str(), |(_, file)| file);
            let file = file.strip_prefix("file:").unwrap_or(file);
            if looks_like_path(&text_word(file, word.span)) || !text.contains(':') {
                named(file);
            }
        }
        Role::Volume => mounted(eval, false, &text, word),
        Role::Mount => mounted(eval, true, &text, word),
        Role::EditorCommand => vim(eval, word),
        Role::ClientCommand => sql(eval, word),
        // Text, hosts, and what runs.
        _ => {}
    }
}

fn read(eval: &mut Eval<'_>, file: &str, word: &Word) {
    if !matches!(file, "" | "-") {
        for file in net::urls(&text_word(file, word.span)) {
            eval.file(file, Access::Read, false);
        }
    }
}

/// The files of `name=@a,b;type=x` and `name=<a`.
fn form(text: &str) -> Vec<&str> {
    let files = text.strip_prefix('@').or_else(|| text.split_once("=@").map(|(_, files)| files));
    // httpie's `field@file`
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let files = files.or_else(|| text.split_once('@').filter(|(name, _)| plain(name)).map(|(_, file)| file));
    let files = files.or_else(|| text.split_once("=<").or_else(|| text.split_once(":=@")).map(|(_, file)| file));
    files.map(|files| files.split([';', ',']).filter(|file| !file.contains('=')).collect()).unwrap_or_default()
}

/// curl's `-w @file`, and `%output{file}` in it.
fn write_out(eval: &mut Eval<'_>, text: &str, word: &Word) {
    if let Some(file) = text.strip_prefix('@') {
        read(eval, file, word);
    }
    for piece in text.split("%output{").skip(1) {
        let file = piece.split('}').next().unwrap_or_default().trim_start_matches(">>");
        eval.file(text_word(file, word.span), Access::Write, false);
    }
}

/// A container's `from:to[:ro]`, `type=bind,src=from,…`.
fn mounted(eval: &mut Eval<'_>, pairs: bool, text: &str, word: &Word) {
    let from = if !pairs {
        text.split_once(':').map(|(from, _)| from).filter(|from| from.contains(['/', '.', '~']))
    } else {
        let mut pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| matches!(*name, "src" | "source")).map(|(_, from)| from)
    };
    let fixed = text.split([':', ',']).any(|piece| matches!(piece, "ro" | "readonly" | "type=secret"));
    if let Some(from) = from {
        eval.file(text_word(from, word.span), if fixed { Access::Read } else { Access::Write }, true);
    }
}

/// `name=value`, `--name=@value`, `@value`: the side that may be a file. The word itself when there is but one.
pub fn value_side(word: &Word) -> Word {
    let Some(text) = word.literal() else { return word.clone() };
    let value = text.split_once('=').map_or(text.as_str(), |(_, value)| value);
    text_word(value.strip_prefix('@').unwrap_or(value), word.span)
}

/// `OPEN:file`, `EXEC:cmd`.
pub fn socat(eval: &mut Eval<'_>, word: &Word) {
    let Some(text) = word.literal() else { return };
    let mut parts = text.split([':', ',']);
    let kind = parts.next().unwrap_or_default().to_uppercase();
    let rest = text_word(parts.next().unwrap_or_default(), word.span);
    match kind.as_str() {
        "EXEC" | "SYSTEM" | "SHELL" => eval.code(&rest, None, "socat"),
        "OPEN" | "FILE" | "GOPEN" => {
            let text = text.to_lowercase();
            let writes = ["creat", "trunc", "append", "wronly", "rdwr"].iter().any(|option| text.contains(option));
            eval.file(rest, if writes { Access::Write } else { Access::Read }, false);
        }
        "CREATE" | "CREAT" => eval.file(rest, Access::Write, false),
        _ => {}
    }
}

/// An editor's command: `w file`, `r file`, `!command`.
pub fn vim(eval: &mut Eval<'_>, word: &Word) {
    let span = word.span;
    let Some(text) = word.literal() else {
        return eval.unresolved(UnresolvedKind::Code, "an editor's command", span);
    };
    for command in text.split(['|', '\n']) {
        let command = command.trim_start_matches([':', ' ', '%']);
        if let Some(code) = command.strip_prefix('!') {
            eval.code(&text_word(code, word.span), None, "an editor");
        } else if ["system", "execute", "py", "lua", "perl", "ruby", "r!", "r !", "so"]
            .iter()
            .any(|it| command.contains(it))
        {
            eval.unresolved(UnresolvedKind::Code, "an editor's command", word.span);
        }
        let (verb, rest) = command.split_once(' ').unwrap_or((command, ""));
        // What a command puts in another text's place is none that it opens.
        let puts = command.starts_with(['s', 'g', 'v']) && !verb.chars().all(char::is_alphabetic);
        for url in rest.split_whitespace().map(|word| text_word(word, span)).filter(|url| !puts && is_url(url)) {
            eval.net(NetTarget::Url(url), span);
        }
        let access = match verb.trim_end_matches('!') {
            "w" | "wq" | "write" | "sav" | "saveas" | "x" | "up" => Access::Write,
            "r" | "read" | "e" | "edit" | "sp" | "vs" | "tabe" | "tabedit" | "view" => Access::Read,
            _ => continue,
        };
        if let Some(file) = rest.split_whitespace().last().filter(|file| !file.contains("://")) {
            eval.file(text_word(file.trim_start_matches('>'), word.span), access, false);
        }
    }
}

/// A database of SQLite's: a file, or its URI (`file:a%20b?mode=ro`).
pub fn database(word: &Word) -> Word {
    let text = word.literal().unwrap_or_default();
    let Some(uri) = text.strip_prefix("file:") else { return word.clone() };
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let local = path.strip_prefix("//localhost").or_else(|| path.strip_prefix("//")).unwrap_or(path);
    text_word(&percent_decoded(local), word.span)
}

/// `%xx` as the letter it stands for.
fn percent_decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.split_at_checked(2).map(|(digits, rest)| (u8::from_str_radix(digits, 16), rest)) {
            Some((Ok(byte), rest)) => {
                out.push(byte);
                out.extend_from_slice(rest.as_bytes());
            }
            _ => {
                out.push(b'%');
                out.extend_from_slice(piece.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A database client's commands that name files: `.read x`, `\copy t from 'x'`, `readfile('x')`.
pub fn sql(eval: &mut Eval<'_>, word: &Word) {
    let Some(text) = word.literal() else { return };
    let lower = text.to_lowercase();
    let mut words = text.split(|c: char| c.is_whitespace() || c == ';');
    let access = match words.find(|word| !word.is_empty()).unwrap_or_default() {
        ".output" | ".once" | ".backup" | ".save" | ".log" | ".excel" | "\\o" | "\\w" | "\\g" | "tee" => Access::Write,
        ".read" | ".import" | ".restore" | ".open" | ".cd" | ".load" | "\\i" | "\\ir" | "\\lo_import" | "source" => {
            Access::Read
        }
        "\\copy" if lower.contains(" to ") => Access::Write,
        "\\copy" => Access::Read,
        _ if ["readfile(", "writefile(", "load_file(", "infile", "outfile", "copy ", "load_extension("]
            .iter()
            .any(|it| lower.contains(it)) =>
        {
            let access =
                if lower.contains("writefile") || lower.contains("outfile") { Access::Write } else { Access::Read };
            let quoted = text.split(['\'', '"']).skip(1).step_by(2);
            return quoted.for_each(|file| eval.file(text_word(file, word.span), access, false));
        }
        _ => return,
    };
    let files = words.map(|word| word.trim_matches(['\'', '"', '|'])).filter(|word| !word.is_empty());
    files.for_each(|file| eval.file(Word { parts: vec![Part::Text(file.to_owned())], span: word.span }, access, false));
}
