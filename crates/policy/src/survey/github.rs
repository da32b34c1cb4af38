//! What GitHub's own program asks of its API.

use writ_core::Span;

use super::Survey;

/// Options of `gh api` with a value behind them.
const GITHUB_VALUES: [&str; 16] = [
    "-X",
    "--method",
    "-f",
    "--raw-field",
    "-F",
    "--field",
    "-H",
    "--header",
    "-q",
    "--jq",
    "-t",
    "--template",
    "-p",
    "--preview",
    "--input",
    "--cache",
];

impl Survey<'_> {
    /// `gh api PATH`
    pub(super) fn github(&mut self, arguments: &[Option<String>], span: Option<Span>) {
        let mut texts = arguments.iter().map(|text| text.as_deref().unwrap_or("\u{1}"));
        let Some("api") = texts.next() else { return };
        let (mut host, mut path) = ("api.github.com".to_owned(), None);
        while let Some(text) = texts.next() {
            match text.split_once('=') {
                Some(("--hostname", name)) => host = name.to_owned(),
                _ if text == "--hostname" => host = texts.next().unwrap_or("\u{1}").to_owned(),
                _ if GITHUB_VALUES.contains(&text) => drop(texts.next()),
                _ if text.starts_with('-') => {}
                _ => path = path.or(Some(text)),
            }
        }
        let Some(path) = path else { return };
        // `{owner}` and `:owner` are filled in by the program.
        let query = path.find('?').unwrap_or(path.len());
        let at = path.find(['{', ':']).filter(|at| *at < query && !path.contains("://"));
        let path = at.map_or_else(|| path.to_owned(), |at| format!("{}\u{1}", path.get(..at).unwrap_or_default()));
        let whole =
            if path.contains("://") { path } else { format!("https://{host}/{}", path.trim_start_matches('/')) };
        self.url_text(&whole, span);
    }
}
