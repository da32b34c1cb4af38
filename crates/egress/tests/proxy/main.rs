//! The proxy as programs meet it: real sockets on 127.0.0.1, hosts of our own behind it, nothing outside.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]
#![expect(clippy::indexing_slicing, reason = "a step that fails fails the test")]
#![expect(clippy::string_slice, reason = "a step that fails fails the test")]

mod attacks;
mod clients;
mod direct;
mod host;
mod run;
mod secrets;
mod tunnels;
mod world;
