//! How an entry is written: the types that `data/programs/*.toml` is read into.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use crate::words::{Effect, List, Operands, Prints, Role, Run, Stdin, Variable, Word};

/// One file of entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    #[serde(default)]
    pub program: Vec<Spanned<Program>>,
    /// Variables that steer more than one program.
    #[serde(default)]
    pub variables: Variables,
    /// Kinds of a project's own files: names, endings, beginnings.
    #[serde(default)]
    pub file_kinds: BTreeMap<String, String>,
}

/// What code in a language may name: words by what a call of them does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    pub lists: BTreeMap<List, BTreeMap<Effect, String>>,
    /// The members of a module, an object or a class.
    #[serde(default)]
    pub members: BTreeMap<String, BTreeMap<Effect, String>>,
}

/// One entry. The page says what each member means: `spec/programs.md`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    pub names: Vec<Spanned<String>>,
    pub like: Option<Spanned<String>>,
    pub operands: Option<Several<Operands>>,
    #[serde(default)]
    pub options: Options,
    #[serde(default)]
    pub glued: Options,
    #[serde(default)]
    pub recursive: String,
    #[serde(default)]
    pub reads_input: bool,
    #[serde(default)]
    pub dash_words: bool,
    pub runs: Option<Runs>,
    pub own: Option<Own>,
    #[serde(default)]
    pub prints: BTreeMap<Prints, Vec<String>>,
    pub project_files: Option<Spanned<String>>,
    #[serde(default)]
    pub sends: Vec<Sends>,
    #[serde(default)]
    pub variables: Variables,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sends {
    pub words: Vec<String>,
    #[serde(default)]
    pub to: String,
    #[serde(default)]
    pub named_by: String,
    #[serde(default)]
    pub unless: String,
    #[serde(default)]
    pub given: String,
    #[serde(default)]
    pub input: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Runs {
    pub like: Option<Spanned<String>>,
    pub operands: Option<Several<Run>>,
    pub after: Option<usize>,
    #[serde(default)]
    pub remote: bool,
    #[serde(default)]
    pub unsure: bool,
    #[serde(default)]
    pub options: Options,
    #[serde(default)]
    pub last: Options,
    #[serde(default)]
    pub glued: Options,
    #[serde(default)]
    pub flags: String,
    pub input: Option<Stdin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Own {
    #[serde(default)]
    pub options: Options,
    #[serde(default)]
    pub glued: Options,
    #[serde(default)]
    pub flags: String,
}

/// Names with blanks between them, by what their values are; in the order of the file.
#[derive(Default)]
pub struct Options(pub Vec<(Role, Spanned<String>)>);

/// Names by what a variable holds.
#[derive(Default)]
pub struct Variables(pub Vec<(Variable, String, String)>);

/// Words with blanks between them.
pub struct Several<T>(pub Vec<T>);

/// Words as they are read from an entry, and as the crate's code spells them.
pub trait Spelled: Word + Debug {
    fn of<E: de::Error>(word: &str) -> Result<Self, E> {
        let found = Self::WORDS.iter().find(|(known, ..)| *known == word).map(|(_, own, _)| *own);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::WORDS.iter().map(|(known, ..)| *known).collect();
            E::custom(format!("`{word}` is no word here; these are: {}", known.join(", ")))
        })
    }

    fn code(self) -> String {
        let kind = std::any::type_name::<Self>().rsplit("::").next().unwrap_or_default();
        format!("{kind}::{self:?}")
    }
}

macro_rules! spelled {
    ($($kind:ident)*) => {$(
        impl Spelled for $kind {}

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::of(&String::deserialize(from)?)
            }
        }
    )*};
}

spelled!(Effect List Operands Prints Role Run Stdin Variable);

impl<'de, T: Spelled> Deserialize<'de> for Several<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.split_ascii_whitespace().map(T::of).collect::<Result<_, _>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Options;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("options by what their values are")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
                let mut out = Vec::new();
                while let Some(row) = map.next_entry()? {
                    out.push(row);
                }
                Ok(Options(out))
            }
        }

        from.deserialize_map(Members)
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members;

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Where {
            names: String,
            texts: String,
        }

        impl<'de> Visitor<'de> for Members {
            type Value = Variables;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("names of variables by what they hold")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Variables, A::Error> {
                let mut out = Vec::new();
                while let Some(holds) = map.next_key()? {
                    if holds == Variable::SteersWhere {
                        let rows: Vec<Where> = map.next_value()?;
                        out.extend(rows.into_iter().map(|row| (holds, row.names, row.texts)));
                    } else {
                        out.push((holds, map.next_value()?, String::new()));
                    }
                }
                out.sort_by_key(|(holds, ..)| *holds);
                Ok(Variables(out))
            }
        }

        from.deserialize_map(Members)
    }
}
