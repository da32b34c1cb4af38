//! The end-to-end tests of `writ` are in `tests/`; the library itself is empty.
