//! What all connections of a run share: rules, secrets, counters, pools, the way to hosts.
//!
//! Owns the order in which a connection is judged: host, port, rate, record, address. Refuses to connect before a record is kept.
//! Invariant: nobody but [`Context::dial`] and [`Context::dial_loopback`] opens a connection to the outside.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::crowd::Crowd;
use crate::dns::Table;
use crate::host::HostName;
use crate::http::upstream::{Pool, Stream, Upstream};
use crate::limits::{Limits, Meter};
use crate::record::{Entry, Reporter, Road, Stage, Whose};
use crate::refusal::Refusal;
use crate::resolve::Resolve;
use crate::rules::{LoopbackPort, Protocol, Rules};
use crate::secret::Secrets;
use crate::tls::authority::Authority;
use crate::tls::upstream::Client;

/// How long a name or one of its addresses may take.
const TIME: Duration = Duration::from_secs(10);
/// Most addresses of a name that are tried.
const TRIED: usize = 8;

/// What all connections of a run share.
pub struct Context {
    /// What may be reached.
    pub rules: Rules,
    /// What is put in.
    pub secrets: Arc<Secrets>,
    /// Who vouches for hosts whose TLS ends here.
    pub authority: Option<Arc<Authority>>,
    /// Addresses that stand for names.
    pub table: Table,
    /// Where records go.
    pub reporter: Reporter,
    /// Ends every connection.
    pub ended: CancellationToken,
    /// Who asks, where there are several.
    pub whose: Option<Whose>,
    /// Who is connected.
    pub crowd: Arc<Crowd>,
    limits: Limits,
    resolver: Arc<dyn Resolve>,
    extra: Vec<CertificateDer<'static>>,
    client: OnceLock<Result<Client, String>>,
    idle: Pool,
}

/// A host that may be reached, and how.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// The host.
    pub host: HostName,
    /// Its port.
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Its counters.
    pub meter: Meter,
}

impl Context {
    /// Who has a socket. Finding out may take its time.
    pub async fn asker(&self, socket: SocketAddr, stream: bool) -> Option<u64> {
        let whose = self.whose.clone()?;
        tokio::task::spawn_blocking(move || whose(socket, stream)).await.ok().flatten()
    }

    /// A run's beginning.
    pub fn new(
        rules: Rules,
        secrets: Secrets,
        authority: Option<Arc<Authority>>,
        resolver: Arc<dyn Resolve>,
        extra: Vec<CertificateDer<'static>>,
        (reporter, ended, whose): (Reporter, CancellationToken, Option<Whose>),
    ) -> Self {
        let limits = Limits::new(&rules.limits);
        let secrets = Arc::new(secrets);
        let (table, client) = (Table::default(), OnceLock::new());
        let idle = Pool::default();
        let crowd = Arc::new(Crowd::new(whose.is_some()));
        Self { rules, secrets, authority, table, reporter, ended, whose, crowd, limits, resolver, extra, client, idle }
    }

    /// Whether a host and port may be reached; notes them in the record either way.
    pub fn allow(&self, host: HostName, port: u16, entry: &Entry) -> Result<Allowed, Refusal> {
        entry.note(|record| {
            record.host = Some(host.to_string());
            record.port = port;
        });
        if let Some(rule) = self.loopback(&host, port) {
            entry.note(|record| {
                record.road = Road::Loopback;
                record.rule = Some(rule.pointer.clone());
            });
            let meter = self.limits.of(&host);
            return Ok(Allowed { host, port, protocol: Protocol::Opaque, meter });
        }
        let rule = self.rules.host(&host)?;
        entry.note(|record| record.rule = Some(rule));
        let protocol = self.rules.protocol(&host, port)?;
        if protocol != Protocol::Tls && self.rules.has_secret(&host) {
            return Err(Refusal::PlainSecret { host: host.to_string() });
        }
        let meter = self.limits.of(&host);
        Ok(Allowed { host, port, protocol, meter })
    }

    /// The rule that hands a port of this machine's own loopback in, where it is that.
    pub fn loopback(&self, host: &HostName, port: u16) -> Option<&LoopbackPort> {
        let own = host.as_str() == "localhost" || host.address() == Some(Ipv4Addr::LOCALHOST.into());
        self.rules.loopback(port).filter(|_| own)
    }

    /// Keeps a record that a connection is about to be opened.
    pub async fn open(&self, entry: &Entry) -> Result<(), Refusal> {
        if entry.note(|record| std::mem::replace(&mut record.stage, Stage::Opened)) == Stage::Opened {
            return Ok(());
        }
        self.reporter.open(entry.record()).await
    }

    /// A connection to an allowed host: to an address that the rules allow, and to no other.
    pub async fn dial(&self, allowed: &Allowed, entry: &Entry) -> Result<TcpStream, Refusal> {
        let host = &allowed.host;
        let own = self.loopback(host, allowed.port).map(|_rule| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        let addresses = match own {
            Some(own) => own,
            None => self.addresses(host).await?,
        };
        self.open(entry).await?;
        let mut why = "no address answers".to_owned();
        for address in addresses.into_iter().take(TRIED) {
            match timeout(TIME, TcpStream::connect(SocketAddr::new(address, allowed.port))).await {
                Ok(Ok(stream)) => {
                    entry.note(|record| record.address = Some(address));
                    // Small messages are not held back; where the socket cannot be told, they only come later.
                    stream.set_nodelay(true).ok();
                    return Ok(stream);
                }
                Ok(Err(error)) => why = error.to_string(),
                Err(_elapsed) => "it does not answer in time".clone_into(&mut why),
            }
        }
        Err(Refusal::Unreachable { host: host.to_string(), why })
    }

    /// A connection to a port of this machine's own loopback that a rule hands in.
    pub async fn dial_loopback(&self, rule: &LoopbackPort, entry: &Entry) -> Result<(Allowed, TcpStream), Refusal> {
        let (address, port) = (IpAddr::V4(Ipv4Addr::LOCALHOST), rule.port);
        let host = HostName::read(address.to_string().as_bytes())?;
        entry.note(|record| {
            record.road = Road::Loopback;
            record.host = Some(host.to_string());
            record.port = port;
            record.address = Some(address);
            record.rule = Some(rule.pointer.clone());
        });
        let meter = self.limits.of(&host);
        meter.ask()?;
        self.open(entry).await?;
        let stream = timeout(TIME, TcpStream::connect(SocketAddr::new(address, port))).await;
        let why =
            |error: &dyn std::fmt::Display| Refusal::Unreachable { host: host.to_string(), why: error.to_string() };
        let stream = stream.map_err(|elapsed| why(&elapsed))?.map_err(|error| why(&error))?;
        stream.set_nodelay(true).ok();
        Ok((Allowed { host, port, protocol: Protocol::Opaque, meter }, stream))
    }

    /// The addresses of a host that the rules allow; when they allow none of them, why not.
    async fn addresses(&self, host: &HostName) -> Result<Vec<IpAddr>, Refusal> {
        if let Some(address) = host.address() {
            return self.rules.address(host, address).map(|()| vec![address]);
        }
        let found = timeout(TIME, self.resolver.addresses(host.as_str())).await;
        let found = found.map_err(|_elapsed| Refusal::Timeout)?;
        let found = found.map_err(|_error| Refusal::Unresolved(host.to_string()))?;
        let (mut good, mut refused) = (Vec::new(), None);
        for address in found {
            match self.rules.address(host, address) {
                Ok(()) => good.push(address),
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if good.is_empty() => Err(refusal),
            _ if good.is_empty() => Err(Refusal::Unresolved(host.to_string())),
            _ => Ok(good),
        }
    }

    /// A connection that speaks HTTP with an allowed host: one that waits, or a new one. `secure` is TLS, verified.
    pub async fn upstream(
        &self,
        allowed: &Allowed,
        secure: bool,
        entry: &Entry,
        fresh: bool,
    ) -> Result<Upstream, Refusal> {
        let key = (allowed.host.clone(), allowed.port, secure);
        if !fresh && let Some(waiting) = self.idle.take(&key).await {
            self.open(entry).await?;
            return Ok(waiting);
        }
        let stream = self.dial(allowed, entry).await?;
        let stream: Stream = if secure {
            let client = self.client(&allowed.host)?;
            let stream = timeout(TIME, client.connect(&allowed.host, stream)).await;
            Box::new(stream.map_err(|_elapsed| Refusal::Timeout)??)
        } else {
            Box::new(stream)
        };
        Ok(Upstream::new(key, stream))
    }

    /// Keeps a connection whose answer was read to its end.
    pub fn keep(&self, upstream: Upstream) {
        self.idle.put(upstream);
    }

    /// The client's side of TLS; made when it is first needed.
    fn client(&self, host: &HostName) -> Result<&Client, Refusal> {
        let client = self.client.get_or_init(|| Client::new(&self.extra).map_err(|error| error.to_string()));
        client.as_ref().map_err(|why| Refusal::Untrusted { host: host.to_string(), why: why.clone() })
    }
}
