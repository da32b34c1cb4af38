//! One rule more, or one less, in a policy's text, with everything else as it was written.
//!
//! Owns which lists take rules, and how a suggestion of a refusal is read. Refuses a text that is no policy before or after. Invariant: what
//! comes out parses as a policy, and differs from what went in by the entry alone. Page: `spec/policy.md`.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstRootNode};
use writ_core::json::{self, Place, locate};
use writ_policy::{Policy, PolicyError};

/// The lists that take rules, as pointers.
pub const LISTS: [&str; 8] = [
    "/tools/allow",
    "/tools/deny",
    "/tools/requireApproval",
    "/files/allow",
    "/files/deny",
    "/files/readOnly",
    "/domains/allow",
    "/domains/deny",
];

/// A change of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Puts a rule at the end of a list.
    Add {
        /// The list, as a pointer.
        list: String,
        /// The rule.
        entry: String,
    },
    /// Takes the rule at a pointer out.
    Remove {
        /// Where it stands.
        pointer: String,
    },
}

/// Why a policy is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It says nothing that can be done.
    #[error("`{text}` names no change: write `tools.allow Bash:git status *`, or `remove /tools/deny/0` (lists: {})", LISTS.join(", "))]
    NotUnderstood {
        /// As it was given.
        text: String,
    },
    /// The list has it.
    #[error("`{entry}` is in {list} already")]
    There {
        /// The rule.
        entry: String,
        /// The list.
        list: String,
    },
    /// A list that is not there allows everything: with one entry it would allow that alone.
    #[error(
        "there is no {list}, so that everything is allowed which is not denied; a list of one entry would allow that alone: write it by hand if that is meant"
    )]
    WouldTighten {
        /// The list.
        list: String,
    },
    /// Nothing stands there.
    #[error("no rule stands at {pointer}")]
    Nothing {
        /// Where.
        pointer: String,
    },
    /// It does not read as plain JSON.
    #[error("the policy cannot be changed in place: {why}")]
    Text {
        /// Why.
        why: String,
    },
    /// What it would become is no policy.
    #[error("with that change it is no policy any more: {0}")]
    Policy(#[from] PolicyError),
}

impl Edit {
    /// Reads a rule as a person writes it (`tools.allow Bash:ls *`), or a suggestion as a refusal words it: ``add `Bash:ls *` to
    /// /tools/allow``, `remove the rule at /tools/deny/0`.
    pub fn read(text: &str) -> Result<Self, EditError> {
        let text = text.trim();
        let known = |list: &str| LISTS.iter().find(|known| **known == list).map(|list| (*list).to_owned());
        if let Some(rest) = text.strip_prefix("add ") {
            let (front, list) = rest.rsplit_once(" to ").unwrap_or_default();
            let entry = front.split_once('`').and_then(|(_, rest)| rest.rsplit_once('`')).map(|(entry, _)| entry);
            if let (Some(entry), Some(list)) = (entry.filter(|entry| !entry.is_empty()), known(list.trim())) {
                return Ok(Self::Add { list, entry: entry.to_owned() });
            }
        }
        let removes = ["remove the rule at ", "remove "].iter().find_map(|front| text.strip_prefix(front));
        if let Some(rest) = removes {
            let pointer = rest.split([',', ' ']).next().unwrap_or_default();
            if pointer.rsplit_once('/').is_some_and(|(list, at)| known(list).is_some() && at.parse::<usize>().is_ok()) {
                return Ok(Self::Remove { pointer: pointer.to_owned() });
            }
        }
        let (list, entry) = text.split_once(char::is_whitespace).unwrap_or_default();
        let list = if list.starts_with('/') { list.to_owned() } else { format!("/{}", list.replace('.', "/")) };
        match known(&list).filter(|_| !entry.trim().is_empty()) {
            Some(list) => Ok(Self::Add { list, entry: entry.trim().to_owned() }),
            None => Err(EditError::NotUnderstood { text: text.to_owned() }),
        }
    }

    /// Makes the change. Patterns hang off `root`.
    pub fn apply(&self, text: &str, root: &str) -> Result<String, EditError> {
        Policy::parse(text.as_bytes(), root)?;
        let wrong = |why: String| EditError::Text { why };
        let options = ParseOptions {
            allow_comments: false,
            allow_loose_object_property_names: false,
            allow_trailing_commas: false,
        };
        let document = CstRootNode::parse(text, &options).map_err(|error| wrong(error.to_string()))?;
        match self {
            Self::Add { list, entry } => {
                let there = self::list(&document, list);
                if there.is_none() && list.ends_with("/allow") {
                    return Err(EditError::WouldTighten { list: list.clone() });
                }
                let array = match there {
                    Some(array) => array,
                    None => made(&document, list).ok_or_else(|| wrong(format!("{list} is no list")))?,
                };
                if entries(&array).iter().any(|known| known == entry) {
                    return Err(EditError::There { entry: entry.clone(), list: list.clone() });
                }
                array.append(CstInputValue::String(escaped(entry)));
                let text = document.to_string();
                if last(&text, list).as_ref() != Some(entry) {
                    return Err(wrong(format!("`{entry}` cannot be written into it")));
                }
                Policy::parse(text.as_bytes(), root)?;
                Ok(text)
            }
            Self::Remove { pointer } => removed(text, pointer, root),
        }
    }
}

/// The last entry of a list, as JSON reads it.
fn last(text: &str, pointer: &str) -> Option<String> {
    let (object, list) = pointer.strip_prefix('/')?.split_once('/')?;
    let whole = json::parse(text.as_bytes()).ok()?;
    whole.get(object)?.get(list)?.as_array()?.last()?.as_str().map(str::to_owned)
}

/// A text with what JSON has a meaning for written out, but for the quotes, which the library writes out itself.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// The text without the entry at a pointer, and without one of the commas beside it.
fn removed(text: &str, pointer: &str, root: &str) -> Result<String, EditError> {
    let nothing = || EditError::Nothing { pointer: pointer.to_owned() };
    let (list, at) = pointer.rsplit_once('/').ok_or_else(nothing)?;
    let at: usize = at.parse().map_err(|_not_a_number| nothing())?;
    let entry = |at: usize| locate(text, &format!("{list}/{at}"), Place::Value);
    let own = entry(at).ok_or_else(nothing)?;
    let gone = match (entry(at + 1), at.checked_sub(1).and_then(entry)) {
        (Some(next), _) => own.start..next.start,
        (None, Some(before)) => before.end..own.end,
        (None, None) => own.start..own.end,
    };
    let mut text = text.to_owned();
    text.replace_range(gone, "");
    Policy::parse(text.as_bytes(), root)?;
    Ok(text)
}

fn list(document: &CstRootNode, pointer: &str) -> Option<CstArray> {
    let (object, list) = pointer.strip_prefix('/')?.split_once('/')?;
    document.object_value()?.object_value(object)?.array_value(list)
}

/// An empty list that is put there.
fn made(document: &CstRootNode, pointer: &str) -> Option<CstArray> {
    let (object, list) = pointer.strip_prefix('/')?.split_once('/')?;
    Some(document.object_value()?.object_value_or_create(object)?.array_value_or_set(list))
}

fn entries(array: &CstArray) -> Vec<String> {
    let text = |node: jsonc_parser::cst::CstNode| node.as_string_lit()?.decoded_value().ok();
    array.elements().into_iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "{\n    \"version\": \"1.0\",\n    \"name\":   \"odd  spacing\",\n    \"tools\": {\n        \"allow\": [\n            \"Read\",\n            \"Bash:git *\"\n        ],\n        \"deny\": [\"Bash:rm *\", \"Bash:curl *\"]\n    }\n}\n";

    fn apply(text: &str) -> Result<String, String> {
        Edit::read(text).and_then(|edit| edit.apply(POLICY, "/w")).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_entry_changes() {
        let added = apply("tools.allow Bash:ls *").unwrap();
        assert_eq!(added, POLICY.replace("\"Bash:git *\"\n", "\"Bash:git *\",\n            \"Bash:ls *\"\n"));
        assert_eq!(apply("add `Bash:ls *` to /tools/allow").unwrap(), added);
        let less = apply("remove the rule at /tools/deny/0, or leave this path out").unwrap();
        assert_eq!(less, POLICY.replace("\"Bash:rm *\", ", ""));
        let more = apply("/tools/requireApproval Bash:git push").unwrap();
        assert!(more.contains("\"requireApproval\": [") && more.contains("odd  spacing"), "{more}");
        assert!(apply("files.deny **/.env").unwrap().contains("**/.env"));
        // What JSON would read as another text is written out.
        for (rule, written) in [
            (r"tools.allow Bash:\u002a *", r#""Bash:\\u002a *""#),
            (r"tools.deny Bash:sed s/a\.b/c/ *", r#""Bash:sed s/a\\.b/c/ *""#),
            (r#"tools.deny Bash:echo "x" *"#, r#""Bash:echo \"x\" *""#),
        ] {
            let text = apply(rule).unwrap();
            assert!(text.contains(written), "{text}");
        }
    }

    #[test]
    fn what_is_no_change_or_no_policy_is_refused() {
        for (text, why) in [
            ("tools.allow Read", "already"),
            ("files.allow src/**", "alone"),
            ("tools.allow", "names no change"),
            ("limits.x 1", "names no change"),
            ("add a pattern for `/x` to nowhere", "names no change"),
            ("remove /tools/deny/7", "no rule stands"),
            ("files.deny a[", "no policy"),
        ] {
            assert!(apply(text).unwrap_err().contains(why), "{text}: {:?}", apply(text));
        }
        assert!(Edit::Remove { pointer: "/tools/deny/0".into() }.apply("{}", "/w").is_err());
        assert!(Edit::read("tools.deny X").unwrap().apply("{,}", "/w").is_err());
    }
}
