//! What programs run, touch and contact, as far as their options, operands and own languages tell.
//!
//! Owns all that is known of programs; the walk of the line (`eval`) knows none and asks here ([`command::PROGRAMS`]).

pub(crate) mod command;
pub(crate) mod containers;
pub(crate) mod copies;
pub(crate) mod effects;
pub(crate) mod entries;
pub(crate) mod find;
pub(crate) mod foreign;
pub(crate) mod interpreters;
pub(crate) mod operands;
pub(crate) mod prints;
pub(crate) mod read_only;
pub(crate) mod runs;
pub(crate) mod scripts;
pub(crate) mod searches;
pub(crate) mod variables;
pub(crate) mod wrappers;
