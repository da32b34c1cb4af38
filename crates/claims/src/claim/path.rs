//! One path as people write it (R51): quoted, bracketed, linked, with a place or a remark behind it.
//!
//! It refuses to guess: what could be prose, a pattern or a place outside the tree is no path.

use super::words;

/// Longest path.
const MAX_PATH: usize = 4096;

/// A path found in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Path {
    pub name: String,
    /// Whether it looks like a path by itself; else it is a bare word such as `x`, a path by its place only.
    pub strong: bool,
    /// Whether the text says that it is gone: deleted, or the old name of a rename.
    pub gone: bool,
}

/// The path that a word is; `None` when it is none for certain. `quoted` words may hold spaces and end as they please.
pub(super) fn path(word: &str, quoted: bool) -> Option<Path> {
    let word = if quoted { word.trim() } else { trimmed(word) };
    let unescaped;
    let (word, quoted) = match octal_decoded(word) {
        Some(text) => {
            unescaped = text;
            (unescaped.as_str(), true)
        }
        None => (word, quoted),
    };
    if word.is_empty() || word.len() > MAX_PATH || word.contains(|c: char| c.is_control()) {
        return None;
    }
    let decoded;
    let (word, quoted) = match word.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")) {
        Some(scheme) => {
            let rest = word.strip_prefix(scheme)?;
            decoded = percent_decoded(rest.strip_prefix("localhost").unwrap_or(rest))?;
            decoded.starts_with('/').then_some((decoded.as_str(), true))?
        }
        None => (word, quoted),
    };
    let pattern = |c: char| matches!(c, '*' | '?' | '<' | '>' | '|' | '"' | '{' | '}');
    let drive = word.get(1..2) == Some(":") && word.starts_with(|c: char| c.is_ascii_alphabetic());
    let shell = !quoted && (word.ends_with('\\') || word.starts_with("~~") || word.starts_with('-'));
    let odd = |open: char, close: char| word.matches(open).count() != word.matches(close).count();
    let torn = !quoted && (odd('(', ')') || odd('[', ']'));
    let home = word == "~" || word.starts_with("~/");
    if word.contains(pattern)
        || word.contains("://")
        || word.contains("::")
        || word.contains(": ")
        || drive
        || home
        || shell
        || torn
    {
        return None;
    }
    let name = components(&slashes(word, quoted)?)?;
    let strong = strong(&name);
    let whole = if quoted { !is_command(&name) } else { !name.contains(char::is_whitespace) && !name.contains(':') };
    let bare =
        strong || (name.contains(char::is_alphanumeric) && name.chars().all(of_a_word) && !words::names_nothing(&name));
    (whole && bare).then_some(Path { name, strong, gone: false })
}

/// Without the punctuation of the sentence around it.
pub(super) fn trimmed(word: &str) -> &str {
    let mut word = word.trim();
    let count = |c: char| word.matches(c).count();
    let mut odd = [count(')').saturating_sub(count('(')), count(']').saturating_sub(count('['))];
    while let Some(end) = word.chars().next_back() {
        let [round, square] = &mut odd;
        let cut = match end {
            '.' => !matches!(word, "." | ".." | "./" | "../") && !word.ends_with(".."),
            ',' | ';' | ':' | '!' | '"' | '\'' | '`' => true,
            ')' => take(round),
            ']' => take(square),
            c => words::is_symbol(c),
        };
        match word.strip_suffix(end) {
            Some(rest) if cut => word = rest,
            _ => break,
        }
    }
    word
}

/// Whether a bare word that is a file's name can hold it.
fn of_a_word(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit() || "_.-+@$#~=,'".contains(c)
}

fn take(count: &mut usize) -> bool {
    let left = *count > 0;
    *count = count.saturating_sub(1);
    left
}

/// With `/` between folders. `\_` without any `/` may be Markdown or Windows: then it is nothing for certain.
fn slashes(word: &str, quoted: bool) -> Option<String> {
    if !word.contains('\\') {
        return Some(word.to_owned());
    }
    let escape = |rest: &str| rest.starts_with(|c: char| c.is_ascii_punctuation() && c != '.' && c != '\\');
    let escapes_only = word.split('\\').skip(1).all(escape);
    match (quoted || !escapes_only, word.contains('/')) {
        (true, _) => Some(word.replace('\\', "/")),
        (false, true) => Some(word.replace('\\', "")),
        (false, false) => None,
    }
}

/// Without `.` and doubled slashes; the slash at the end, which says "a folder", stays. `None` where no name is left.
fn components(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let named = parts.iter().any(|part| *part != "..");
    if !named || parts.iter().any(|part| matches!(*part, "..." | "…") || part.ends_with('…')) {
        return None;
    }
    if parts.last().is_some_and(|part| part.ends_with("..") && *part != "..") {
        return None;
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let folder = if path.ends_with('/') { "/" } else { "" };
    Some(format!("{root}{}{folder}", parts.join("/")))
}

/// Whether it looks like a path without its place saying so.
pub(super) fn strong(name: &str) -> bool {
    let base = name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let spoken = ["n/a", "and/or", "i/o", "w/o", "e.g", "i.e"];
    if spoken.iter().any(|word| word.eq_ignore_ascii_case(name.trim_end_matches('.'))) {
        return false;
    }
    name.contains('/') || words::known_name(base) || has_extension(base)
}

/// Whether a path's last name is a file's by itself.
pub(super) fn is_file_name(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or_default();
    words::known_name(base) || has_extension(base)
}

/// `a.py`, `.gitignore`: letters or digits behind the last dot, one letter at least, and no space next to it.
pub(super) fn has_extension(base: &str) -> bool {
    base.rsplit_once('.').is_some_and(|(stem, extension)| {
        (1..=16).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            && extension.contains(|c: char| c.is_ascii_alphabetic())
            && !stem.ends_with(char::is_whitespace)
            && !stem.ends_with('.')
    })
}

/// Whether quoted text with spaces is a command or a sentence and not a name.
fn is_command(name: &str) -> bool {
    let mut words = name.split_whitespace();
    let first = words.next().unwrap_or_default();
    let commands = [
        "git", "npm", "npx", "yarn", "pnpm", "python", "python3", "pytest", "cargo", "go", "rm", "mv", "cp", "touch",
        "cat", "sed", "make", "node", "bash", "sh", "cd", "ls", "mkdir", "echo", "bats", "no", "did", "see", "several",
        "various", "some", "all",
    ];
    words.next().is_some() && (commands.contains(&first) || words::is_change(first) || first.contains(':'))
}

/// A name as git prints it in quotes, with its bytes in octal (`caf\303\251.txt`); `None` without any.
fn octal_decoded(text: &str) -> Option<String> {
    // Only what is no ASCII: `src\001_init.sql` is a path of Windows.
    let octal = |digits: &str| {
        digits.starts_with(['2', '3']) && digits.len() == 3 && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte))
    };
    let (mut bytes, mut rest, mut found) = (Vec::with_capacity(text.len()), text, false);
    while let Some(c) = rest.chars().next() {
        let digits = rest.get(1..4).filter(|digits| c == '\\' && octal(digits));
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                (rest, found) = (rest.get(4..).unwrap_or_default(), true);
            }
            None => {
                bytes.extend(rest.get(..c.len_utf8()).unwrap_or_default().bytes());
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }
    found.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// The text with its `%xx` read.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
