//! JSON as Writ reads and writes it: a strict parser and the canonical form of RFC 8785.
//!
//! The parser refuses what makes canonical JSON ambiguous: duplicate member names, lone surrogates, numbers outside the
//! range of a double, trailing bytes, and (for formats of our own) integers that a double cannot hold. Its limits are
//! [`Limits`]. Rulings: R1. Format page: `spec/canonical-json.md`.

mod locate;
mod parse;
mod value;
mod write;

pub use locate::{Place, locate, position};
pub use parse::{Integers, JsonError, Limits, parse, parse_with};
pub use value::{Object, Value};
pub use write::{canonical, compact, pretty, write_string};
