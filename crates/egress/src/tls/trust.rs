//! What makes programs inside trust the run's authority: a bundle, a Java trust store, variables.
//!
//! Owns the contents; where they are mounted the sandbox decides. Refuses to drop the machine's own authorities: hosts that are
//! not terminated are still checked against them. Invariant: none of it holds a key.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::authority::Certificate;

/// Where distributions keep the bundle that programs read without being told.
pub const BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/share/ssl/certs/ca-bundle.crt",
];

/// Where they keep Java's trust store; beside these, `lib/security/cacerts` of each Java.
pub const JAVA_STORES: [&str; 2] = ["/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"];

/// What Java takes for the password of a trust store when nobody says another.
const JAVA_PASSWORD: &str = "changeit";

/// What to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The authority's certificate, PEM: for programs that add to what they trust.
    pub authority: String,
    /// The machine's authorities and this one, PEM: for programs that are told what to trust, and over [`BUNDLES`].
    pub bundle: Vec<u8>,
    /// The same as a Java key store (JKS, password `changeit`): over [`JAVA_STORES`].
    pub java: Vec<u8>,
}

impl Trust {
    /// What to mount, made of the machine's authorities.
    pub fn new(authority: &Certificate) -> Self {
        let machine = rustls_native_certs::load_native_certs().certs;
        let mut bundle = Vec::new();
        for certificate in &machine {
            bundle.extend_from_slice(pem(certificate).as_bytes());
        }
        bundle.extend_from_slice(authority.pem().as_bytes());
        let own = std::iter::once(authority.der());
        let java = java_store(machine.iter().map(|certificate| certificate.as_ref()).chain(own));
        Self { authority: authority.pem().to_owned(), bundle, java }
    }
}

/// Where the sandbox put things, as the programs inside see them.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    /// The proxy's port on 127.0.0.1.
    pub proxy: u16,
    /// [`Trust::authority`] and [`Trust::bundle`]; `None` where no host is terminated.
    pub trust: Option<(&'a Path, &'a Path)>,
}

/// The variables that make programs use the proxy, and trust it.
pub fn variables(places: &Places<'_>) -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{}", places.proxy);
    let here = "localhost,127.0.0.1,::1";
    let mut out: Vec<(&'static str, String)> = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"]
        .into_iter()
        .map(|name| (name, proxy.clone()))
        .collect();
    out.extend([("NO_PROXY", here.to_owned()), ("no_proxy", here.to_owned())]);
    // Node 24 and later; earlier ones find the proxy by the names it answers for.
    out.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    let Some((authority, bundle)) = places.trust else { return out };
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let whole = [
        "SSL_CERT_FILE",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "PIP_CERT",
        "GIT_SSL_CAINFO",
        "CARGO_HTTP_CAINFO",
        "AWS_CA_BUNDLE",
        "npm_config_cafile",
        "DENO_CERT",
    ];
    out.extend(whole.map(|name| (name, path(bundle))));
    out.push(("NODE_EXTRA_CA_CERTS", path(authority)));
    out
}

/// What Java is told where its trust store cannot be mounted over: the value of `JAVA_TOOL_OPTIONS`, which Java mentions on
/// standard error each time it starts.
pub fn java_options(proxy: u16, store: &Path) -> String {
    let store = PathBuf::from(store);
    format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={proxy} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={proxy} \
         -Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword={JAVA_PASSWORD}",
        store.display()
    )
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    out
}

/// A key store of trusted certificates. The format is Java's first (`sun.security.provider.JavaKeyStore`); no crate at hand writes
/// it, and it is a list: numbers big-endian, texts with their length before them, SHA-1 over password and content behind.
fn java_store<'a>(certificates: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut count = 0_u32;
    for certificate in certificates {
        entries.extend(2_u32.to_be_bytes());
        java_text(&mut entries, &format!("authority-{count}"));
        entries.extend(0_u64.to_be_bytes());
        java_text(&mut entries, "X.509");
        entries.extend(u32::try_from(certificate.len()).unwrap_or(0).to_be_bytes());
        entries.extend_from_slice(certificate);
        count += 1;
    }
    let mut store = Vec::new();
    store.extend(0xfeed_feed_u32.to_be_bytes());
    store.extend(2_u32.to_be_bytes());
    store.extend(count.to_be_bytes());
    store.extend(entries);
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    let password: Vec<u8> = JAVA_PASSWORD.encode_utf16().flat_map(u16::to_be_bytes).collect();
    digest.update(&password);
    digest.update(b"Mighty Aphrodite");
    digest.update(&store);
    store.extend_from_slice(digest.finish().as_ref());
    store
}

fn java_text(out: &mut Vec<u8>, text: &str) {
    out.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
