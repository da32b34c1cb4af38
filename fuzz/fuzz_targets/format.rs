//! A format takes what the parser takes and refuses what it refuses, reads the same from bytes and from a value, and what it
//! writes it reads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use writ_core::json::{FormatError, Limits, Value, compact, from_slice_with, from_value, parse_with, to_value};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    a: Option<u32>,
    #[serde(default)]
    b: Vec<Kind>,
    c: Value,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Empty,
    One(String),
    Two(f64, bool),
    Named { a: Option<Box<Format>> },
}

fuzz_target!(|bytes: &[u8]| {
    for limits in [Limits::OURS, Limits::FOREIGN, Limits::SIGNED] {
        let parsed = parse_with(bytes, limits);
        assert_eq!(from_slice_with::<Value>(bytes, limits), parsed.clone().map_err(FormatError::Json));
        let read = from_slice_with::<Format>(bytes, limits);
        let Ok(value) = parsed else { return assert!(read.is_err()) };
        assert_eq!(from_value::<Format>(&value).ok().as_ref(), read.as_ref().ok());
        let Ok(format) = read else { continue };
        let written = compact(&to_value(&format));
        assert_eq!(from_slice_with::<Format>(written.as_bytes(), limits).as_ref(), Ok(&format));
    }
});
