//! What programs run, touch and contact, as far as their options, operands and own languages tell.

pub(crate) mod awk;
pub(crate) mod effects;
pub(crate) mod entries;
pub(crate) mod find;
pub(crate) mod foreign;
pub(crate) mod git;
pub(crate) mod git_code;
pub(crate) mod interpreters;
pub(crate) mod linked;
pub(crate) mod makefile;
pub(crate) mod modules;
pub(crate) mod mounts;
pub(crate) mod operands;
pub(crate) mod patch;
pub(crate) mod places;
pub(crate) mod projects;
pub(crate) mod repository;
pub(crate) mod runs;
pub(crate) mod searches;
pub(crate) mod sed;
pub(crate) mod settings;
pub(crate) mod shown;
pub(crate) mod tar;
pub(crate) mod variables;
pub(crate) mod words;
pub(crate) mod wrappers;
