//! Words: from their raw parts to what a program may get.

pub(crate) mod arithmetic;
pub(crate) mod braces;
pub(crate) mod expand;
pub(crate) mod globs;
pub(crate) mod params;
pub(crate) mod pattern;
pub(crate) mod reevaluate;
