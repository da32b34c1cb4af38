//! git's settings files: git-config(1), "Syntax".

/// Settings by full name, in order: section and variable in lower case, the subsection as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    settings: Vec<(String, String)>,
    damaged: bool,
}

impl Config {
    /// Reads a settings file. A line that is no setting is passed over and remembered: git refuses the file.
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rest = Text(text.chars().peekable());
        let (mut out, mut section) = (Self::default(), None);
        while let Some(c) = rest.next() {
            let read = match c {
                '#' | ';' => {
                    rest.skip_line();
                    Some(())
                }
                '[' => rest.section().map(|name| section = Some(name)),
                c if is_space(c) => Some(()),
                c if c.is_ascii_alphabetic() => rest.setting(c).map(|(name, value)| {
                    let section: &str = section.as_deref().unwrap_or_default();
                    out.settings.push((format!("{section}.{name}"), value));
                }),
                _ => None,
            };
            if read.is_none() {
                out.damaged = true;
                rest.skip_line();
            }
        }
        out
    }

    /// Takes in a setting, behind its own.
    pub fn push(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Whether git refuses the file, as a line of it is no setting.
    pub const fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Each setting, in order.
    pub fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The values of a setting, in order.
    pub fn all<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c str> {
        self.settings.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value that holds.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.settings.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Subsection and value of `section.*.name`.
    pub fn below<'c>(&'c self, section: &'c str, name: &'c str) -> impl Iterator<Item = (&'c str, &'c str)> {
        self.settings.iter().filter_map(move |(own, value)| {
            let rest = own.strip_prefix(section)?.strip_prefix('.')?;
            Some((rest.strip_suffix(name)?.strip_suffix('.')?, value.as_str()))
        })
    }

    /// Whether objects go by SHA-256.
    pub fn is_sha256(&self) -> bool {
        self.last("extensions.objectformat").is_some_and(|format| format.eq_ignore_ascii_case("sha256"))
    }
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// What is left of a file. A line's end is `\n`, however it was written, and so is the file's.
struct Text<'t>(std::iter::Peekable<std::str::Chars<'t>>);

impl Text<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.0.next()?;
        Some(if c == '\r' { self.0.next_if_eq(&'\n').unwrap_or(c) } else { c })
    }

    fn in_line(&mut self) -> char {
        self.next().unwrap_or('\n')
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// A section's name, behind its bracket. The line's end is not taken where it fails.
    fn section(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match *self.0.peek()? {
                ']' => {
                    self.0.next();
                    return Some(name);
                }
                ' ' | '\t' => break,
                c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
            self.0.next();
        }
        while self.0.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        self.0.next_if_eq(&'"')?;
        name.push('.');
        loop {
            let mut c = self.0.next_if(|c| *c != '\n')?;
            if c == '"' {
                break;
            }
            if c == '\\' {
                c = self.0.next_if(|c| *c != '\n')?;
            }
            name.push(c);
        }
        self.0.next_if_eq(&']').map(|_| name)
    }

    /// A variable that begins with this letter, and its value.
    fn setting(&mut self, first: char) -> Option<(String, String)> {
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.0.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            name.push(c.to_ascii_lowercase());
        }
        while self.0.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.0.peek() {
            None | Some('\n' | '\r') => Some((name, "true".to_owned())),
            Some('=') => {
                self.0.next();
                Some((name, self.value()?))
            }
            // A remark behind a name, which git does not take.
            Some(_) => None,
        }
    }

    /// A value up to its line's end, without its quotes and what is remarked behind it.
    fn value(&mut self) -> Option<String> {
        let (mut out, mut kept, mut quoted) = (String::new(), 0, false);
        loop {
            match self.in_line() {
                '\n' => break,
                c if is_space(c) && !quoted => {
                    if !out.is_empty() {
                        out.push(c);
                    }
                    continue;
                }
                '#' | ';' if !quoted => {
                    self.skip_line();
                    break;
                }
                '"' => quoted = !quoted,
                '\\' => match self.in_line() {
                    '\n' => continue,
                    't' => out.push('\t'),
                    'b' => out.push('\u{8}'),
                    'n' => out.push('\n'),
                    c @ ('\\' | '"') => out.push(c),
                    _ => return None,
                },
                c => out.push(c),
            }
            kept = out.len();
        }
        out.truncate(kept);
        (!quoted).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let config = Config::parse(
            "[core]\n\tbare = false ; no\n[remote \"Up\"]\n  url = \"https://x.example/a#b\" # c\n  pushURL=https://y.example\n\
             [branch \"a.b\"] remote = Up\n[url \"https://evil.example/\"]\n\tinsteadOf = https://x.example/\n[extensions]\nobjectFormat=SHA256\n",
        );
        assert_eq!(config.last("core.bare"), Some("false"));
        assert_eq!(config.last("remote.Up.url"), Some("https://x.example/a#b"));
        assert_eq!(config.last("remote.Up.pushurl"), Some("https://y.example"));
        assert_eq!(config.last("branch.a.b.remote"), Some("Up"));
        assert_eq!(config.last("remote.up.url"), None);
        let instead: Vec<_> = config.below("url", "insteadof").collect();
        assert_eq!(instead, [("https://evil.example/", "https://x.example/")]);
        assert!(config.is_sha256());
    }

    #[test]
    fn what_git_refuses_is_known() {
        for text in ["[a]\nb = \"open\n", "[a]\nb = \\x\n", "[a\nb = c\n", "[a \"b]\n", "[a]\n=b\n", "[a]\nb # no\n"] {
            assert!(Config::parse(text).is_damaged(), "{text}");
        }
        let text = "\u{feff}# a \\\n[a \"x]y\"] B = one \\\n  two ; three\r\nc\n[d.E]f=\"g \" # h";
        let config = Config::parse(text);
        assert!(!config.is_damaged());
        let all: Vec<_> = config.each().collect();
        assert_eq!(all, [("a.x]y.b", "one   two"), ("a.x]y.c", "true"), ("d.e.f", "g ")]);
    }
}
