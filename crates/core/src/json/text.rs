//! Types whose document is one text.

use std::fmt;

use serde::Serialize;
use serde::de::{self, Visitor};
use serde::ser::{self, Impossible};

/// Reads a text and makes of it what `parse` makes: the `Deserialize` of a type that is written as a text.
pub fn read_text<'de, D, T, E>(deserializer: D, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    E: fmt::Display,
{
    deserializer.deserialize_str(Parse(parse))
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
