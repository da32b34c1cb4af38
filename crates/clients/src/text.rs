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
