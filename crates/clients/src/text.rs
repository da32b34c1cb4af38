//! Texts as every client's answers hold them.

use writ_core::visible;

/// The longest reason, message or context in an answer, in bytes; longer texts are cut and end in `…`.
pub const TEXT_LIMIT: usize = 4096;

/// A text as an answer holds it: not too long, and nothing in it that is not seen.
pub fn bounded(text: &str) -> String {
    // A file's name must not repaint the user's terminal.
    let text = visible::lines(text);
    if text.len() <= TEXT_LIMIT {
        return text.into_owned();
    }
    let room = TEXT_LIMIT - '…'.len_utf8();
    let kept = text.char_indices().take_while(|(at, c)| at + c.len_utf8() <= room).map(|(_, c)| c);
    kept.chain(std::iter::once('…')).collect()
}

/// JSON without its comments, which some clients take out before they read it: a blank stands in the place of each.
pub fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_text = false;
    while let Some(c) = rest.chars().next() {
        let comment = match in_text {
            true => None,
            false if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            false if rest.starts_with("/*") => Some(rest.find("*/").map_or(rest.len(), |end| end + 2)),
            false => None,
        };
        let (taken, left) = rest.split_at(match comment {
            Some(length) => length,
            None if in_text && c == '\\' => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
            None => c.len_utf8(),
        });
        if comment.is_some() {
            out.push(' ');
        } else {
            in_text ^= taken == "\"";
            out.push_str(taken);
        }
        rest = left;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_alone_are_taken_out() {
        for (text, plain) in [
            ("{ // c\n\"a\": 1 /* b */ }", "{  \n\"a\": 1   }"),
            (r#"{"u": "https://x", "q": "\"/* no */"}"#, r#"{"u": "https://x", "q": "\"/* no */"}"#),
            ("/* open", " "),
            ("\"open // text", "\"open // text"),
            ("é//", "é "),
        ] {
            assert_eq!(without_comments(text), plain);
        }
    }
}
