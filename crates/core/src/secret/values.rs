//! The secrets of a text themselves, so that they can be hidden wherever else they turn up: in a report on it.

use super::{MASK, hide};

/// Shortest value that is looked for: a shorter one would be found in every other word.
const SHORTEST: usize = 4;
/// Most values of one text.
const MOST: usize = 64;

/// What [`hide`] takes out of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets of a text.
    pub fn of(text: &str) -> Self {
        let mut out = Self::default();
        out.add(text);
        out
    }

    /// Those of another text, too.
    pub fn add(&mut self, text: &str) {
        let hidden = hide(text);
        let mut rest = text;
        let mut pieces = hidden.split(MASK);
        rest = rest.strip_prefix(pieces.next().unwrap_or_default()).unwrap_or(rest);
        let mut pieces = pieces.peekable();
        // What stands between the pieces that stayed is what was taken out.
        while let Some(piece) = pieces.next() {
            let last = pieces.peek().is_none();
            let end = match piece {
                "" => rest.len(),
                piece if last => rest.len().saturating_sub(piece.len()),
                piece => rest.find(piece).unwrap_or(rest.len()),
            };
            let (value, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.value(value);
            rest = after.strip_prefix(piece).unwrap_or(after);
        }
    }

    /// A value that is known to be one.
    pub fn value(&mut self, value: &str) {
        let bare = value.trim_matches(['"', '\'', '\\', ' ']);
        if bare.len() >= SHORTEST && self.0.len() < MOST && !self.0.iter().any(|known| known == bare) {
            self.0.push(bare.to_owned());
        }
    }

    /// A text fit to be shown, also without the secrets of the texts that it is about.
    pub fn hide(&self, text: &str) -> String {
        let mut out = hide(text);
        for value in &self.0 {
            if out.contains(value.as_str()) {
                out = out.replace(value.as_str(), MASK);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_of_a_line_is_taken_out_of_what_is_said_of_it() {
        for line in [
            "usermod --password hunter2 bob",
            "mysql -phunter2 -e 'drop table t'",
            "A_TOKEN=hunter2 x; curl -u me:hunter2 https://x.example",
            "gem push --key \"hunter2\" x.gem",
        ] {
            let secrets = Secrets::of(line);
            assert_eq!(secrets.hide("`hunter2` is gone, `t` is not"), "`[secret]` is gone, `t` is not", "{line}");
        }
        assert_eq!(Secrets::of("rm -rf src").hide("`src` is gone"), "`src` is gone");
    }

    #[test]
    fn short_values_are_not_looked_for() {
        assert_eq!(Secrets::of("mysql -pab").hide("about ab"), "about ab");
    }
}
