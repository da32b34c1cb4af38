//! Members and words: small helps for derives.

use std::fmt;

use serde::de::{self, Visitor};
use serde::ser::{self, Impossible};
use serde::{Deserialize, Serialize};

use super::from_value::from_value;
use super::value::Value;

/// A member that counts for nothing where it is of another kind: for what others write, and for files of our own whose
/// other members are worth having. Stands in a struct whose members default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Loose<T>(pub Option<T>);

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: de::DeserializeOwned> Deserialize<'de> for Loose<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(from_value(&value).ok()))
    }
}

/// `#[serde(with = "json::path")]`: a path as a text, what is no UTF-8 in it replaced.
pub mod path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes it.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&path.to_string_lossy())
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        String::deserialize(deserializer).map(PathBuf::from)
    }
}

/// Reads a text that is not empty.
pub fn filled<'de, D: de::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let full =
        |text: &str| if text.is_empty() { Err("expected a text that is not empty") } else { Ok(text.to_owned()) };
    read_text(deserializer, full)
}

/// Reads a text and makes of it what `parse` makes: the `Deserialize` of a type that is written as a text. What `parse`
/// says is wrong does not repeat the text, which may be a secret (R8).
pub fn read_text<'de, D, T, E>(deserializer: D, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    E: fmt::Display,
{
    deserializer.deserialize_str(Parse(parse))
}

/// Reads a member that may be missing and is not `null`: `#[serde(default, deserialize_with = "json::given")]`. An
/// `Option` inside tells `null` from missing.
pub fn given<'de, D: de::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

struct Parse<F>(F);

impl<T, E: fmt::Display, F: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Parse<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<R: de::Error>(self, text: &str) -> Result<T, R> {
        (self.0)(text).map_err(R::custom)
    }
}

/// The word that a variant without content is written as, which its derive says. Empty for anything else.
pub fn word<T: Serialize>(variant: &T) -> &'static str {
    variant.serialize(Word).unwrap_or_default()
}

struct Word;

/// The value is no variant without content.
#[derive(Debug)]
struct NoWord;

impl fmt::Display for NoWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no variant without content")
    }
}

impl std::error::Error for NoWord {}

impl ser::Error for NoWord {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// What has no word.
macro_rules! none {
    ($($method:ident($($argument:ty),*) -> $of:ty;)*) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$of, NoWord> {
            Err(NoWord)
        }
    )*};
}

type No = Impossible<&'static str, NoWord>;

impl ser::Serializer for Word {
    type Ok = &'static str;
    type Error = NoWord;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<&'static str, NoWord> {
        Ok(variant)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<&'static str, NoWord> {
        Err(NoWord)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<&'static str, NoWord> {
        Err(NoWord)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<&'static str, NoWord> {
        Err(NoWord)
    }

    none! {
        serialize_bool(bool) -> &'static str;
        serialize_i8(i8) -> &'static str;
        serialize_i16(i16) -> &'static str;
        serialize_i32(i32) -> &'static str;
        serialize_i64(i64) -> &'static str;
        serialize_u8(u8) -> &'static str;
        serialize_u16(u16) -> &'static str;
        serialize_u32(u32) -> &'static str;
        serialize_u64(u64) -> &'static str;
        serialize_f32(f32) -> &'static str;
        serialize_f64(f64) -> &'static str;
        serialize_char(char) -> &'static str;
        serialize_str(&str) -> &'static str;
        serialize_bytes(&[u8]) -> &'static str;
        serialize_none() -> &'static str;
        serialize_unit() -> &'static str;
        serialize_unit_struct(&'static str) -> &'static str;
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct(&'static str, usize) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }
}
