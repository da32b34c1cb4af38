//! Texts of a description that name variables: `Bearer ${TOKEN}`.
//!
//! Owns which part of a text is a variable's. Knows no value. Invariant: a text without variables is the text itself.

/// A text with the places of its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Part>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Plain(String),
    /// A variable's value.
    Variable(String),
}

impl Text {
    /// Reads `${NAME}` and `$NAME`. A `$` before anything else is itself.
    pub fn read(text: &str) -> Self {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, behind)) = rest.split_once('$') {
            plain.push_str(before);
            let Some((name, after)) = named(behind) else {
                plain.push('$');
                rest = behind;
                continue;
            };
            if !plain.is_empty() {
                parts.push(Part::Plain(std::mem::take(&mut plain)));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Plain(plain));
        }
        Self(parts)
    }

    /// The variables that it names.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Plain(_) => None,
        })
    }

    /// It with its values. They are secrets: whoever keeps it wipes it.
    pub fn filled(&self, value: &dyn Fn(&str) -> String) -> String {
        let part = |part: &Part| match part {
            Part::Plain(text) => text.clone(),
            Part::Variable(name) => value(name),
        };
        self.0.iter().map(part).collect()
    }
}

/// The name at the beginning of a text, and what is behind it.
fn named(text: &str) -> Option<(&str, &str)> {
    let (name, after) = match text.strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => {
            let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
            text.split_at_checked(end)?
        }
    };
    is_variable(name).then_some((name, after))
}

const fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a text may be a variable's name.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_in_both_forms() {
        let text = Text::read("Bearer ${A}.$B_1-$ $1 ${a b}");
        assert_eq!(text.variables().collect::<Vec<_>>(), ["A", "B_1"]);
        assert_eq!(text.filled(&|name| format!("<{name}>")), "Bearer <A>.<B_1>-$ $1 ${a b}");
        assert_eq!(Text::read("plain").variables().count(), 0);
    }
}
