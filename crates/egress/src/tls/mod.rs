//! TLS: what a client says first, the authority that answers in a host's place, and what makes programs trust it.

pub mod authority;
pub mod hello;
pub mod trust;
pub mod upstream;
