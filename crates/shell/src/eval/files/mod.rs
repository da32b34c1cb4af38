//! Files, folders and what the line itself makes of them on its way.

pub(crate) mod descriptors;
pub(crate) mod dirs;
pub(crate) mod links;
pub(crate) mod listings;
pub(crate) mod mounts;
mod named;
pub(crate) mod unchanged;
pub(crate) mod written;
