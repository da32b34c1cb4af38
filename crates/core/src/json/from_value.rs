//! Reading a [`Value`] into a type.

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::error::{Broken, FormatError};
use super::read::{Content, Named, visit_number};
use super::value::Value;

/// Reads a value that was parsed before into a type.
pub fn from_value<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, FormatError> {
    T::deserialize(Reader(value)).map_err(|broken| broken.told(""))
}

struct Reader<'de>(&'de Value);

impl<'de> de::Deserializer<'de> for Reader<'de> {
    type Error = Broken;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Number(number) => visit_number(*number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), index: 0 }),
            Value::Object(object) => visitor.visit_map(Members { members: object.members().iter(), last: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Broken> {
        if *self.0 == Value::Null { visitor.visit_none() } else { visitor.visit_some(self) }
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
        match self.0 {
            Value::String(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            Value::Object(object) => match object.members() {
                [(name, content)] => visitor.visit_enum(Variant { name, content }),
                _ => Err(de::Error::custom("expected an object of one member")),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(de::Error::custom("expected a text or an object of one member"))
            }
        }
    }

    /// An object alone: what is written with names is not read without them.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Broken> {
        if let Value::Array(_) = self.0 {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &visitor));
        }
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items<'de> {
    items: std::slice::Iter<'de, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Broken;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Broken> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let item = seed.deserialize(Reader(item)).map_err(|broken| broken.under(self.index))?;
        self.index += 1;
        Ok(Some(item))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<'de> {
    members: std::slice::Iter<'de, (String, Value)>,
    /// The member whose name was read last.
    last: Option<&'de (String, Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Broken;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Broken> {
        self.last = self.members.next();
        let Some((name, _)) = self.last else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some).map_err(|broken: Broken| broken.under(name))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Broken> {
        let Some((name, value)) = self.last else { return Err(de::Error::custom("expected a member")) };
        seed.deserialize(Reader(value)).map_err(|broken| broken.under(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

struct Variant<'de> {
    name: &'de str,
    content: &'de Value,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Broken;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Broken> {
        Ok((seed.deserialize(BorrowedStrDeserializer::<Broken>::new(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Broken;

    /// Such a variant is a text, and has no second spelling.
    fn unit_variant(self) -> Result<(), Broken> {
        Err(de::Error::custom("expected a text"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Broken> {
        seed.deserialize(Reader(self.content)).map_err(|broken| broken.under(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Broken> {
        self.newtype_variant_seed(Content(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Broken> {
        self.newtype_variant_seed(Named(visitor))
    }
}
