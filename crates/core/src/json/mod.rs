//! JSON as Writ reads and writes it: a strict parser and the canonical form of RFC 8785.
//!
//! The parser refuses what makes canonical JSON ambiguous: duplicate member names, lone surrogates, numbers outside the
//! range of a double, trailing bytes, and (for formats of our own) integers that a double cannot hold. Its limits are
//! [`Limits`]. A format is a type with serde derives: [`from_slice`] and [`from_value`] read it, [`to_value`] and
//! [`to_canonical`] write it. Rulings: R1. Format page: `spec/canonical-json.md`.

mod derive;
mod error;
mod from_value;
mod locate;
mod parse;
mod read;
mod rounded;
mod surrogates;
#[cfg(test)]
mod tests;
mod to_value;
mod value;
mod write;

pub use derive::{Loose, filled, given, path, read_text, word};
pub use error::FormatError;
pub use from_value::from_value;
pub use locate::{Place, locate, position};
pub use parse::{Integers, JsonError, Limits, parse, parse_with};
pub use read::{from_slice, from_slice_with};
pub use rounded::rounded;
pub use surrogates::without_lone_surrogates;
pub use to_value::to_value;
pub use value::{Object, Value};
pub use write::{canonical, compact, pretty, to_canonical, to_compact, write_string};
