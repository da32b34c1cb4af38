//! The egress proxy: what a confined program may reach, and secrets it uses without having them.
//!
//! Owns the way from sockets inside an empty network to the hosts outside: it reads which host is meant, asks the rules, finds
//! the address itself, and passes bytes on. Refuses whatever does not say one host in one way, and keeps no ledger: each
//! connection is told to the caller's sink. Invariant: no byte goes out before its connection is on record, and no value of a
//! secret goes anywhere but to a host that its rule names, over TLS that proved it. Page: `spec/egress.md`.

mod address;
mod context;
mod crowd;
mod dns;
mod host;
mod http;
mod limits;
mod record;
mod refusal;
mod relay;
mod resolve;
mod rules;
mod secret;
mod serve;
mod tls;

pub use address::{AddressKind, BadNetwork, Network};
pub use host::HostName;
pub use record::{Record, Refused, Road, Sink, SinkError, Stage, Whose};
pub use refusal::Refusal;
pub use resolve::{Addresses, Resolve, SystemResolver};
pub use rules::{Limit, LoopbackPort, PortRule, PrivateRange, Protocol, Rules, RulesError};
pub use secret::{Inject, SecretError, SecretRule, SecretValue, is_placeholder, placeholder};
pub use serve::{Direct, Hand, Listeners, ServeError, Serving, Setup, serve, serve_all};
pub use tls::authority::{Authority, AuthorityError, Certificate};
pub use tls::trust::{BUNDLES, JAVA_STORES, Places, Trust, java_options, variables};

/// The readers of untrusted bytes, for the fuzz targets alone.
#[doc(hidden)]
pub mod fuzz {
    use crate::http::request::Request;
    use crate::http::response::Response;
    use crate::tls::hello;
    use crate::{dns, host};

    /// A TLS client's first message.
    pub fn client_hello(bytes: &[u8]) -> Option<(Option<String>, bool)> {
        let hello = hello::read(bytes).ok().flatten()?;
        Some((hello.server.map(|server| server.to_string()), hello.encrypted))
    }

    /// A request's head: method, host and port, target.
    pub fn request(bytes: &[u8]) -> Option<(String, String, u16, Vec<u8>)> {
        let request = Request::read(bytes).ok()?;
        let (host, port) = request.destination(80).ok()?;
        Some((request.method.clone(), host.to_string(), port, request.path().to_vec()))
    }

    /// An answer's head: its status.
    pub fn response(bytes: &[u8]) -> Option<u16> {
        Response::read(bytes, false).ok().map(|response| response.status)
    }

    /// A DNS packet: the name asked for, and the packet that refuses it.
    pub fn dns(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        match dns::read(bytes) {
            dns::Packet::Question(question) => {
                let answer = question.answered(dns::Answer::NoName);
                Some((question.name, answer))
            }
            dns::Packet::Odd(_) | dns::Packet::Ignored => None,
        }
    }

    /// `host:port`.
    pub fn authority(bytes: &[u8]) -> Option<(String, u16)> {
        host::authority(bytes, Some(80)).ok().map(|(host, port)| (host.to_string(), port))
    }
}
