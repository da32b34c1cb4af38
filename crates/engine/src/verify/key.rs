//! Which key a record is checked with, and what is wrong with the one that its folder brings.

use std::fmt;

use writ_core::Digest;
use writ_core::json::{self, Value};
use writ_evidence::keys::PublicKey;
use writ_evidence::row::Row;
use writ_store::Store;

use super::Options;
use crate::Home;
use crate::governing::Trust;
use crate::session::PUBLIC_KEY;
use crate::session::custody::Named;

/// Which key the checkpoints were checked with, and why that one.
pub enum KeyUsed {
    /// The verifier gave it.
    Given(Digest),
    /// The folder brings it, and the verifier trusts it.
    Trusted(Digest),
    /// This machine's own.
    Machine(Digest),
    /// The folder brings it.
    Folder(Digest),
    /// There is none.
    None,
}

impl KeyUsed {
    /// Whether the verifier brought it.
    pub const fn is_pinned(&self) -> bool {
        matches!(self, Self::Given(_) | Self::Trusted(_) | Self::Machine(_))
    }

    /// Its id.
    pub const fn id(&self) -> Option<Digest> {
        match self {
            Self::Given(id) | Self::Trusted(id) | Self::Machine(id) | Self::Folder(id) => Some(*id),
            Self::None => None,
        }
    }
}

impl fmt::Display for KeyUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(id) => write!(f, "by the given key {id}"),
            Self::Trusted(id) => write!(f, "by key {id}, which you trust"),
            Self::Machine(id) => write!(f, "by this machine's ledger key {id}"),
            Self::Folder(id) => write!(f, "by key {id}, which the folder itself brings: give --key to pin it"),
            Self::None => f.write_str("by no key that is known here"),
        }
    }
}

/// The given key, else this machine's where the session was seen here, else the folder's own.
pub fn pick(brought: Option<&[u8]>, home: &Home, options: &Options, here: bool) -> (Option<PublicKey>, KeyUsed) {
    if let Some(key) = &options.key {
        return (Some(key.clone()), KeyUsed::Given(key.key_id()));
    }
    let machine = home.state().ok().and_then(|state| Store::open(state.to_owned()).ok()?.public_key());
    let brought = brought.and_then(|pem| PublicKey::from_pem(std::str::from_utf8(pem).ok()?).ok());
    let trusted = || Trust::open(home.state.as_deref()).keys().unwrap_or_default();
    match (machine, brought) {
        (Some(machine), brought) if here || brought.as_ref() == Some(&machine) => {
            let id = machine.key_id();
            (Some(machine), KeyUsed::Machine(id))
        }
        (_, Some(brought)) => {
            let id = brought.key_id();
            let used = if trusted().contains(&brought) { KeyUsed::Trusted(id) } else { KeyUsed::Folder(id) };
            (Some(brought), used)
        }
        (_, None) => (None, KeyUsed::None),
    }
}

/// How the problem ends that a folder without a key has.
pub const NOT_THERE: &str = "is not there";

/// The key that the genesis row names, and the bytes that lie beside the ledger, where they are not the key used.
pub fn problems(genesis: &Row, brought: Option<&[u8]>, key: Option<&PublicKey>) -> Vec<String> {
    let mut out = Vec::new();
    let named = genesis.detail.get("key").and_then(Value::as_str);
    let introduced = genesis.detail.get("custody").and_then(|custody| json::from_value::<Named>(custody).ok());
    let introduced = introduced.and_then(|named| PublicKey::from_der(&named.key?.0).ok());
    match (named, key) {
        (Some(_), Some(key)) if introduced.as_ref() == Some(key) => {}
        (Some(named), Some(key)) if named != key.key_id().to_string() => {
            out.push(format!("the genesis row names another key: {named}"));
        }
        (None, _) => out.push("the genesis row names no key".to_owned()),
        (Some(_), _) => {}
    }
    match brought {
        None => out.push(format!("{PUBLIC_KEY} {NOT_THERE}")),
        Some(brought) => {
            let read = std::str::from_utf8(brought).ok().and_then(|pem| PublicKey::from_pem(pem).ok());
            let read = read.filter(|read| read.to_pem().as_bytes() == brought);
            if read.is_none_or(|read| named != Some(read.key_id().to_string().as_str())) {
                out.push(format!("{PUBLIC_KEY} does not hold the key that was pinned at the start, byte for byte"));
            }
        }
    }
    out
}
