//! A line that is a row is written back byte for byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_evidence::row::Row;

fuzz_target!(|line: &[u8]| {
    if let Ok(row) = Row::parse(line) {
        assert_eq!(row.to_line().as_bytes(), line);
    }
});
