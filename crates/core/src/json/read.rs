//! Reading a document into a type: the strict parser as a serde data format.
//!
//! [`from_slice`] builds no [`Value`] between the bytes and the type, and refuses all that [`super::parse`] refuses, also
//! in members that the type skips. An integer is whole and within ±(2^53 − 1), however it is spelt (`1.0` is 1).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{
    self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::error::{Broken, FormatError};
use super::parse::{JsonError, Limits, Parser, twice};
use super::value::EXACT;

/// Reads one document of our own formats, under [`Limits::OURS`].
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, FormatError> {
    from_slice_with(bytes, Limits::OURS)
}

/// Reads one document. Time and memory are linear in its size.
pub fn from_slice_with<'de, T: Deserialize<'de>>(bytes: &'de [u8], limits: Limits) -> Result<T, FormatError> {
    let mut parser = Parser::new(bytes, limits)?;
    let mut names = Vec::new();
    let read = T::deserialize(Reader { parser: &mut parser, names: &mut names, depth: 0 });
    let value = read.map_err(|broken| broken.told(parser.text))?;
    parser.end()?;
    Ok(value)
}

/// Hands a visitor the integer that a number is, or the double.
pub(super) fn visit_number<'de, V: Visitor<'de>>(number: f64, visitor: V) -> Result<V::Value, Broken> {
    if number.fract() != 0.0 || number.abs() > EXACT {
        return visitor.visit_f64(number);
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within ±(2^53 − 1)")]
    let whole = number as i64;
    match u64::try_from(whole) {
        Ok(count) => visitor.visit_u64(count),
        Err(_negative) => visitor.visit_i64(whole),
    }
}

/// The parser where a value stands.
struct Reader<'p, 'de> {
    parser: &'p mut Parser<'de>,
    /// The member names of the objects that are open, one object after the other.
    names: &'p mut Vec<Cow<'de, str>>,
    depth: usize,
}

impl<'de> Reader<'_, 'de> {
    /// The same parser, for a value inside.
    fn inner(&mut self) -> Reader<'_, 'de> {
        Reader { parser: self.parser, names: self.names, depth: self.depth }
    }

    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        match self.parser.peek() {
            Some(b'"') => visit_text(self.parser.string()?, visitor),
            Some(b'{') => {
                let mut members = Members::open(self)?;
                let value = visitor.visit_map(&mut members)?;
                if members.next()? { Err(de::Error::custom("more members than expected")) } else { Ok(value) }
            }
            Some(b'[') => {
                let mut items = Items::open(self)?;
                let value = visitor.visit_seq(&mut items)?;
                if items.next()? { Err(de::Error::custom("more elements than expected")) } else { Ok(value) }
            }
            Some(b't') => self.parser.word("true").map_err(Broken::from).and_then(|()| visitor.visit_bool(true)),
            Some(b'f') => self.parser.word("false").map_err(Broken::from).and_then(|()| visitor.visit_bool(false)),
            Some(b'n') => self.parser.word("null").map_err(Broken::from).and_then(|()| visitor.visit_unit()),
            _ => visit_number(self.parser.number()?, visitor),
        }
    }
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, Broken> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

impl<'de> de::Deserializer<'de> for Reader<'_, 'de> {
    type Error = Broken;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        self.parser.space();
        let start = self.parser.at;
        self.visit(visitor).map_err(|broken| broken.at(start))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        self.parser.space();
        if self.parser.peek() == Some(b'n') {
            self.parser.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Broken> {
        visitor.visit_newtype_struct(self)
    }

    /// A text is a variant without content; an object of one member is a variant and its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Broken> {
        self.parser.space();
        let start = self.parser.at;
        let read = match self.parser.peek() {
            Some(b'"') => {
                let word = self.parser.string()?;
                visitor.visit_enum(CowStrDeserializer::<Broken>::new(word))
            }
            Some(b'{') => Members::open(self).and_then(|mut members| {
                let value = visitor.visit_enum(Variant(&mut members))?;
                if members.next()? { Err(de::Error::custom("expected one member")) } else { Ok(value) }
            }),
            _ => Err(de::Error::custom("expected a text or an object of one member")),
        };
        read.map_err(|broken| broken.at(start))
    }

    /// An object alone: what is written with names is not read without them.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Broken> {
        self.parser.space();
        if self.parser.peek() == Some(b'[') {
            let error: Broken = de::Error::invalid_type(Unexpected::Seq, &visitor);
            return Err(error.at(self.parser.at));
        }
        self.deserialize_any(visitor)
    }

    /// What is skipped is read as strictly as all else, and nothing is built of it.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        self.parser.skip(self.depth)?;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

/// The elements of an array.
struct Items<'p, 'de> {
    reader: Reader<'p, 'de>,
    index: usize,
    closed: bool,
}

impl<'p, 'de> Items<'p, 'de> {
    fn open(mut reader: Reader<'p, 'de>) -> Result<Self, Broken> {
        reader.depth = reader.parser.open(reader.depth)?;
        Ok(Self { reader, index: 0, closed: false })
    }

    /// Whether an element follows. The parser stands before it, or behind the array.
    fn next(&mut self) -> Result<bool, Broken> {
        self.closed = self.closed || !self.reader.parser.another(self.index == 0, b']')?;
        Ok(!self.closed)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Broken;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Broken> {
        if !self.next()? {
            return Ok(None);
        }
        let item = seed.deserialize(self.reader.inner()).map_err(|broken| broken.under(self.index))?;
        self.index += 1;
        Ok(Some(item))
    }
}

/// The members of an object.
struct Members<'p, 'de> {
    reader: Reader<'p, 'de>,
    /// Where this object's names begin.
    base: usize,
    closed: bool,
}

impl<'p, 'de> Members<'p, 'de> {
    fn open(mut reader: Reader<'p, 'de>) -> Result<Self, Broken> {
        reader.depth = reader.parser.open(reader.depth)?;
        let base = reader.names.len();
        Ok(Self { reader, base, closed: false })
    }

    /// Whether a member follows; its name is read then. Behind the object no name may have come twice.
    fn next(&mut self) -> Result<bool, Broken> {
        let Reader { parser, names, .. } = &mut self.reader;
        if self.closed {
            return Ok(false);
        }
        if parser.another(names.len() == self.base, b'}')? {
            names.push(parser.name()?);
            return Ok(true);
        }
        self.closed = true;
        if let Some(name) = twice(names.get(self.base..).unwrap_or_default(), Cow::as_ref) {
            return Err(JsonError::Duplicate { name: name.to_owned(), at: parser.at }.into());
        }
        names.truncate(self.base);
        Ok(false)
    }

    fn read_name<T: DeserializeSeed<'de>>(&self, seed: T) -> Result<T::Value, Broken> {
        match self.reader.names.last() {
            Some(Cow::Borrowed(name)) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Some(Cow::Owned(name)) => seed.deserialize(name.as_str().into_deserializer()),
            None => Err(de::Error::custom("expected a member")),
        }
        .map_err(|broken| self.under(broken))
    }

    fn read_value<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Broken> {
        let open = self.reader.names.len();
        let read = seed.deserialize(self.reader.inner());
        read.map_err(|broken| {
            self.reader.names.truncate(open);
            self.under(broken)
        })
    }

    fn under(&self, broken: Broken) -> Broken {
        broken.under(self.reader.names.last().map(Cow::as_ref).unwrap_or_default())
    }
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Broken;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Broken> {
        if self.next()? { self.read_name(seed).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Broken> {
        self.read_value(seed)
    }
}

/// An object of one member as a variant: its name, and its content.
struct Variant<'m, 'p, 'de>(&'m mut Members<'p, 'de>);

impl<'de> EnumAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Broken;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Broken> {
        if !self.0.next()? {
            return Err(de::Error::custom("expected an object of one member"));
        }
        Ok((self.0.read_name(seed)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_, 'de> {
    type Error = Broken;

    /// Such a variant is a text, and has no second spelling.
    fn unit_variant(self) -> Result<(), Broken> {
        Err(de::Error::custom("expected a text"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Broken> {
        self.0.read_value(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Broken> {
        self.0.read_value(Content(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Broken> {
        self.0.read_value(Named(visitor))
    }
}

/// A visitor as the seed of what it visits.
pub(super) struct Content<V>(pub(super) V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Content<V> {
    type Value = V::Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_any(self.0)
    }
}

/// The same, of members that have names.
pub(super) struct Named<V>(pub(super) V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Named<V> {
    type Value = V::Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_struct("", &[], self.0)
    }
}
