//! Pathspecs: gitglossary(7), "pathspec".

/// Pathspecs, those that leave out among them.
#[derive(Clone, Debug, Default)]
pub struct Pathspecs {
    takes: Vec<Spec>,
    leaves: Vec<Spec>,
}

#[derive(Clone, Debug)]
struct Spec {
    text: String,
    folded: bool,
    literal: bool,
    /// `*` stops at a slash.
    glob: bool,
    /// Nothing of it is known: it may match anything.
    any: bool,
}

impl Pathspecs {
    /// Reads pathspecs, written in a folder of the work tree that has this prefix; `None` stands for one that is not known.
    pub fn parse<'t>(texts: impl IntoIterator<Item = Option<&'t str>>, prefix: &str) -> Self {
        let mut out = Self::default();
        for text in texts {
            let Some(text) = text else {
                out.takes.push(Spec { text: String::new(), folded: false, literal: false, glob: false, any: true });
                continue;
            };
            let (spec, leaves) = Spec::parse(text, prefix);
            if leaves { &mut out.leaves } else { &mut out.takes }.push(spec);
        }
        out
    }

    /// Whether a tracked path is meant.
    pub fn matches(&self, path: &str) -> bool {
        let taken = self.takes.is_empty() || self.takes.iter().any(|spec| spec.matches(path));
        taken && !self.leaves.iter().any(|spec| !spec.any && spec.matches(path))
    }

    /// Whether nothing is named.
    pub const fn is_empty(&self) -> bool {
        self.takes.is_empty() && self.leaves.is_empty()
    }
}

impl Spec {
    fn parse(text: &str, prefix: &str) -> (Self, bool) {
        let mut spec = Self { text: String::new(), folded: false, literal: false, glob: false, any: false };
        let (mut top, mut leaves) = (false, false);
        let mut rest = text;
        if let Some(inside) = text.strip_prefix(":(") {
            let (words, tail) = inside.split_once(')').unwrap_or((inside, ""));
            for word in words.split(',') {
                match word {
                    "top" => top = true,
                    "icase" => spec.folded = true,
                    "literal" => spec.literal = true,
                    "glob" => spec.glob = true,
                    "exclude" => leaves = true,
                    "" => {}
                    _ => spec.any = true,
                }
            }
            rest = tail;
        } else if let Some(signs) = text.strip_prefix(':') {
            rest = signs.trim_start_matches(['/', '!', '^']);
            let own = signs.get(..signs.len() - rest.len()).unwrap_or_default();
            (top, leaves) = (own.contains('/'), own.contains(['!', '^']));
            rest = rest.strip_prefix(':').unwrap_or(rest);
        }
        let whole = if top { rest.to_owned() } else { format!("{prefix}{rest}") };
        spec.text = folded_path(&whole);
        if spec.folded {
            spec.text = spec.text.to_lowercase();
        }
        (spec, leaves)
    }

    fn matches(&self, path: &str) -> bool {
        let lower = if self.folded { path.to_lowercase() } else { path.to_owned() };
        let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.any
            || self.text.is_empty()
            || lower.strip_prefix(self.text.as_str()).is_some_and(below)
            || (!self.literal && wildmatch(self.text.as_bytes(), lower.as_bytes(), self.glob))
    }
}

/// A path of the work tree without `.` and `..`.
fn folded_path(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(out.pop()),
            part => out.push(part),
        }
    }
    out.join("/")
}

/// Whether a pattern matches a text, or the beginning of one up to a slash. A set in brackets is taken for any letter.
fn wildmatch(pattern: &[u8], text: &[u8], glob: bool) -> bool {
    let mut states = vec![0usize];
    let advance = |states: &mut Vec<usize>| {
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            if pattern.get(state) == Some(&b'*') && !states.contains(&(state + 1)) {
                states.push(state + 1);
            }
            // `**/` is also nothing.
            if glob && pattern.get(state..state + 3) == Some(b"**/") && !states.contains(&(state + 3)) {
                states.push(state + 3);
            }
            at += 1;
        }
    };
    advance(&mut states);
    for &byte in text {
        if byte == b'/' && states.contains(&pattern.len()) {
            return true;
        }
        let mut next: Vec<usize> = Vec::new();
        let mut add = |state: usize| {
            if !next.contains(&state) {
                next.push(state);
            }
        };
        for &state in &states {
            let twice = pattern.get(state + 1) == Some(&b'*') || state > 0 && pattern.get(state - 1) == Some(&b'*');
            match pattern.get(state) {
                Some(b'*') if byte != b'/' || !glob || twice => add(state),
                Some(b'*') => {}
                Some(b'?') if byte != b'/' || !glob => add(state + 1),
                Some(b'[') => {
                    let close = pattern.iter().skip(state + 2).position(|c| *c == b']');
                    add(close.map_or(state + 1, |close| state + close + 3));
                }
                Some(b'\\') if pattern.get(state + 1) == Some(&byte) => add(state + 2),
                Some(own) if *own == byte => add(state + 1),
                _ => {}
            }
        }
        states = next;
        advance(&mut states);
    }
    states.contains(&pattern.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(specs: &[&str], prefix: &str, path: &str) -> bool {
        Pathspecs::parse(specs.iter().map(|spec| Some(*spec)), prefix).matches(path)
    }

    #[test]
    fn paths_are_matched_as_git_matches_them() {
        for (specs, prefix, path, expected) in [
            (&[][..], "", ".env", true),
            (&["."], "", ".env", true),
            (&["."], "src/", ".env", false),
            (&["src"], "", "src/a.rs", true),
            (&["src"], "", "src2/a.rs", false),
            (&["*flock"], "", ".aflock", true),
            (&["*.txt"], "", "secrets/prod.txt", true),
            (&[":(glob)*.txt"], "", "secrets/prod.txt", false),
            (&[":(glob)**"], "", "secrets/prod.txt", true),
            (&[":(glob)**/prod.txt"], "", "prod.txt", true),
            (&[":(icase).AFLOCK"], "", ".aflock", true),
            (&[":(literal)*flock"], "", ".aflock", false),
            (&[":/.env"], "src/", ".env", true),
            (&[":(top).env"], "src/", ".env", true),
            (&["../.env"], "src/", ".env", true),
            (&[":!secrets"], "", "secrets/prod.txt", false),
            (&[":^secrets"], "", "src/a", true),
            (&[".", ":(exclude).env"], "", ".env", false),
            (&[".en[v]"], "", ".env", true),
            (&["sec*"], "", "secrets/prod.txt", true),
            (&["src/?.rs"], "", "src/a.rs", true),
            (&[":(attr:x)"], "", "any", true),
        ] {
            assert_eq!(matches(specs, prefix, path), expected, "{specs:?} {prefix} {path}");
        }
    }
}
