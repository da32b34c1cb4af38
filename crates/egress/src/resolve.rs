//! Names to addresses, on the supervisor's side: the confined program never asks a name server.
//!
//! Owns the system's resolver behind a trait. Refuses to judge what comes back; the rules do, and the connection then goes to
//! the very address that was judged, so that a second answer (rebinding) is never asked for.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// Addresses that are still awaited.
pub type Addresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// What finds the addresses of a name. Tests bring a table of their own.
pub trait Resolve: Send + Sync {
    /// The addresses of `name` (lower case, no final dot), in the order they are to be tried.
    fn addresses<'a>(&'a self, name: &'a str) -> Addresses<'a>;
}

/// The machine's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> Addresses<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
