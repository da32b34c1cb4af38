//! Stub.
use super::{Around, Reading};
pub fn read(_text: &str, _around: &Around<'_>) -> Reading { Reading::default() }
