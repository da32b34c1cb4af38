//! A type's document as a [`Value`].

use std::fmt;

use serde::Serialize;
use serde::ser::{self, SerializeMap, SerializeSeq};

use super::value::Value;

/// The document of `format`, its members in the order of its fields.
///
/// Total: structs, enums, lists, maps named by texts or numbers, and what they hold all have a document. Only a type whose
/// own `Serialize` refuses has none, and becomes `null`; no format of Writ is one.
pub fn to_value<T: Serialize + ?Sized>(format: &T) -> Value {
    let value = format.serialize(Build);
    debug_assert!(value.is_ok(), "{value:?}");
    value.unwrap_or(Value::Null)
}

/// What a `Serialize` said when it refused.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

struct Build;

impl ser::Serializer for Build {
    type Ok = Value;
    type Error = Refused;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    fn serialize_bool(self, truth: bool) -> Result<Value, Refused> {
        Ok(Value::Bool(truth))
    }

    fn serialize_i8(self, number: i8) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_i16(self, number: i16) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_i32(self, number: i32) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    #[expect(clippy::cast_precision_loss, reason = "as for `From<u64>`: beyond 2^53 the nearest double")]
    fn serialize_i64(self, number: i64) -> Result<Value, Refused> {
        Ok(Value::Number(number as f64))
    }

    fn serialize_u8(self, number: u8) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_u16(self, number: u16) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_u32(self, number: u32) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_u64(self, number: u64) -> Result<Value, Refused> {
        Ok(Value::from(number))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Refused> {
        Ok(Value::Number(number.into()))
    }

    fn serialize_f64(self, number: f64) -> Result<Value, Refused> {
        Ok(Value::Number(number))
    }

    fn serialize_char(self, character: char) -> Result<Value, Refused> {
        Ok(Value::String(character.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Refused> {
        Ok(Value::from(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Refused> {
        Ok(Value::Array(bytes.iter().map(|&byte| Value::Number(byte.into())).collect()))
    }

    fn serialize_none(self) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<Value, Refused> {
        inner.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Refused> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Refused> {
        Ok(Value::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, inner: &T) -> Result<Value, Refused> {
        inner.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        inner: &T,
    ) -> Result<Value, Refused> {
        Ok(named(Some(variant), inner.serialize(self)?))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, Refused> {
        Ok(Items { variant: None, items: Vec::with_capacity(len.unwrap_or(0)) })
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, Refused> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, Refused> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, Refused> {
        Ok(Items { variant: Some(variant), items: Vec::with_capacity(len) })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Members, Refused> {
        Ok(Members { variant: None, name: None, members: Vec::with_capacity(len.unwrap_or(0)) })
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Members, Refused> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Members, Refused> {
        Ok(Members { variant: Some(variant), name: None, members: Vec::with_capacity(len) })
    }
}

/// `value` itself, or as the content of a variant.
fn named(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        None => value,
        Some(variant) => Value::Object([(variant.to_owned(), value)].into_iter().collect()),
    }
}

struct Items {
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl SerializeSeq for Items {
    type Ok = Value;
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Refused> {
        self.items.push(item.serialize(Build)?);
        Ok(())
    }

    fn end(self) -> Result<Value, Refused> {
        Ok(named(self.variant, Value::Array(self.items)))
    }
}

struct Members {
    variant: Option<&'static str>,
    /// The name whose value comes next.
    name: Option<String>,
    members: Vec<(String, Value)>,
}

impl SerializeMap for Members {
    type Ok = Value;
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Refused> {
        self.name = Some(match name.serialize(Build)? {
            Value::String(name) => name,
            Value::Number(number) => ryu_js::Buffer::new().format(number).to_owned(),
            name @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(Refused(format!("a member named by a {}", name.kind())));
            }
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let name = self.name.take().unwrap_or_default();
        self.members.push((name, value.serialize(Build)?));
        Ok(())
    }

    fn end(self) -> Result<Value, Refused> {
        Ok(named(self.variant, Value::Object(self.members.into_iter().collect())))
    }
}

/// serde names the same two shapes seven times.
macro_rules! same_as {
    ($shape:ty, $through:ident: $($name:ident $method:ident),*) => {$(
        impl ser::$name for $shape {
            type Ok = Value;
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Refused> {
                $through::serialize_element(self, item)
            }

            fn end(self) -> Result<Value, Refused> {
                $through::end(self)
            }
        }
    )*};
}

same_as!(Items, SerializeSeq: SerializeTuple serialize_element, SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

macro_rules! fields_of {
    ($($name:ident),*) => {$(
        impl ser::$name for Members {
            type Ok = Value;
            type Error = Refused;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Refused> {
                self.members.push((name.to_owned(), value.serialize(Build)?));
                Ok(())
            }

            fn end(self) -> Result<Value, Refused> {
                SerializeMap::end(self)
            }
        }
    )*};
}

fields_of!(SerializeStruct, SerializeStructVariant);
