//! Web addresses as patterns of `grants` see them.

mod stores;

use crate::facts::Host;
use crate::url;

pub(crate) use stores::Stored;

/// A web address as patterns see it.
#[derive(Clone)]
pub(crate) struct Web {
    scheme: String,
    host: String,
    /// With `.` and `..` folded.
    pub path: String,
    port: Option<u16>,
    stores: Vec<Stored>,
}

impl Web {
    /// Reads one; `None` where servers and programs may read it in different ways.
    pub fn read(text: &str) -> Option<Self> {
        let read = ::url::Url::parse(text).ok()?;
        let Host::Name(host) = url::read_host(read.host_str()?) else { return None };
        let path = read.path();
        let stores = stores::stored(&host, path, read.query());
        // An encoded slash is one to some servers, and a letter to others; in a store's names it is one.
        let lower = path.to_ascii_lowercase();
        if stores.is_empty() && lower.contains("%2f") || ["%5c", "%2e", "//"].iter().any(|sign| lower.contains(sign)) {
            return None;
        }
        let scheme = match read.scheme() {
            "ws" => "http",
            "wss" => "https",
            other => other,
        };
        Some(Self { scheme: scheme.to_owned(), host, path: path.to_owned(), port: read.port(), stores })
    }

    /// With `%xx` read; the web's schemes are one to patterns.
    pub fn spelling(&self) -> String {
        self.with(&self.host, self.port, &self.decoded())
    }

    fn decoded(&self) -> String {
        url::decoded(&self.path, |letter, out| out.push(letter))
    }

    fn with(&self, host: &str, port: Option<u16>, path: &str) -> String {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}{path}", self.scheme)
    }

    /// With any of the web's schemes, without its port, and at the address that its own stands for: what forbids it in one of these
    /// forbids it.
    pub fn wide(&self) -> Vec<String> {
        let hosts = [Some(self.host.clone()), url::inner_v4(&self.host)];
        let mut paths = vec![self.decoded(), self.path.clone()];
        paths.dedup();
        let mut out = Vec::new();
        for scheme in ["http", "https"] {
            let web = Self { scheme: scheme.to_owned(), ..self.clone() };
            for host in hosts.iter().flatten() {
                let ports = [self.port, None];
                let each = ports.iter().flat_map(|port| paths.iter().map(|path| web.with(host, *port, path)));
                out.extend(each);
            }
        }
        out
    }

    /// Scheme and host.
    pub fn shown(&self) -> String {
        format!("{}://{}", self.scheme, self.host)
    }

    /// Whether a Vault most likely answers there.
    pub fn is_vault(&self) -> bool {
        is_vault(&self.host, self.port)
    }

    /// The path as one of Vault's; nothing where it is none.
    pub fn vault_path(&self) -> Option<String> {
        self.decoded().strip_prefix("/v1/").map(str::to_owned)
    }

    /// What of stores is asked for there.
    pub fn stores(&self) -> &[Stored] {
        &self.stores
    }
}

/// What a path at a store's host is to the store itself.
pub(crate) fn address(host: &str, path: &str) -> Option<String> {
    stores::place(host, path)
}

/// Whether a host is a store's.
pub fn is_store(host: &str) -> bool {
    stores::place(host, "").is_some()
}

/// The beginning of what a store's host has, where an address at it is not read for certain: `s3:`, `s3://bucket`.
pub(crate) fn start_of_store(text: &str) -> Option<String> {
    let read = ::url::Url::parse(text).ok()?;
    let Host::Name(host) = url::read_host(read.host_str()?) else { return None };
    stores::place(&host, "").map(|place| place.trim_end_matches('/').to_owned())
}

/// Whether a Vault most likely answers at a host.
pub fn is_vault(host: &str, port: Option<u16>) -> bool {
    port == Some(8200) || host.split('.').any(|label| label.contains("vault"))
}

/// What an address that is not read for certain leads to.
pub(crate) struct Place {
    /// A Vault most likely answers there.
    pub is_vault: bool,
    /// Its path may be one of Vault's.
    pub is_below_v1: bool,
    /// It has no path.
    pub is_whole_host: bool,
}

impl Place {
    pub fn of(text: &str) -> Option<Self> {
        let read = ::url::Url::parse(text).ok()?;
        Some(Self {
            is_vault: is_vault(&read.host_str()?.to_ascii_lowercase(), read.port()),
            is_below_v1: is_below_v1(read.path()),
            is_whole_host: read.path() == "/",
        })
    }
}

/// Whether a path that is read in different ways may be one of Vault's.
pub fn is_below_v1(path: &str) -> bool {
    let decoded = url::percent_decoded(path);
    decoded.as_deref().unwrap_or(path).trim_start_matches('/').starts_with("v1")
}
