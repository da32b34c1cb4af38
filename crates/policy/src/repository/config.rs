//! git's settings files: git-config(1), "Syntax".

/// Settings by full name, in order: section and variable in lower case, the subsection as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(Vec<(String, String)>);

impl Config {
    /// Reads a settings file. What is no setting is passed over, as git would refuse the file.
    pub fn parse(text: &str) -> Self {
        let mut out = Vec::new();
        let mut section = String::new();
        let joined = text.replace("\\\r\n", "").replace("\\\n", "");
        for line in joined.lines().map(str::trim) {
            let mut rest = line;
            if let Some(inside) = line.strip_prefix('[') {
                let Some((head, tail)) = inside.split_once(']') else { continue };
                section = match head.split_once(['"']) {
                    Some((name, sub)) => {
                        let sub = sub.trim_end().trim_end_matches('"').replace("\\\"", "\"").replace("\\\\", "\\");
                        format!("{}.{sub}", name.trim().to_ascii_lowercase())
                    }
                    None => head.trim().to_ascii_lowercase(),
                };
                rest = tail.trim();
            }
            if rest.is_empty() || rest.starts_with(['#', ';']) {
                continue;
            }
            let (name, value) = rest.split_once('=').unwrap_or((rest, "true"));
            out.push((format!("{section}.{}", name.trim().to_ascii_lowercase()), unquoted(value)));
        }
        Self(out)
    }

    /// The values of a setting, in order.
    pub fn all<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value that holds.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Subsection and value of `section.*.name`.
    pub fn below<'c>(&'c self, section: &'c str, name: &'c str) -> impl Iterator<Item = (&'c str, &'c str)> {
        self.0.iter().filter_map(move |(own, value)| {
            let rest = own.strip_prefix(section)?.strip_prefix('.')?;
            Some((rest.strip_suffix(name)?.strip_suffix('.')?, value.as_str()))
        })
    }

    /// Whether objects go by SHA-256.
    pub fn is_sha256(&self) -> bool {
        self.last("extensions.objectformat").is_some_and(|format| format.eq_ignore_ascii_case("sha256"))
    }
}

/// A value without its quotes and what is remarked behind it.
fn unquoted(value: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    let mut chars = value.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => out.extend(chars.next().map(|next| match next {
                'n' => '\n',
                't' => '\t',
                other => other,
            })),
            c => out.push(c),
        }
    }
    out.trim_end().to_owned()
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
}
