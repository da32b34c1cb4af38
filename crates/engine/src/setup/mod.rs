//! Writ in a client's settings: put in, taken out, watched while a session runs.

pub mod agents;
pub mod install;
pub mod watch;
