//! Texts on their way into a page.

use std::fmt::Write;

use writ_core::visible;

/// A foreign text as HTML, for the content of an element or a quoted attribute: nothing in it is markup, and nothing is unseen.
pub fn text(text: &str) -> String {
    let shown = visible::line(text);
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Adds to a page.
pub fn push(page: &mut String, args: std::fmt::Arguments<'_>) {
    // A string takes everything.
    page.write_fmt(args).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(text("<script>'\"&\u{202e}\n</td>"), "&lt;script&gt;&#39;&quot;&amp;\\u{202e}\\u{a}&lt;/td&gt;");
    }
}
