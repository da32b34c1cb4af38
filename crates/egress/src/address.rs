//! Which addresses are the public internet's, and which are somebody's own.
//!
//! Owns the table of special ranges (IANA's registries, and the metadata services of clouds). Refuses to take an address for
//! public because it is unknown: everything outside IPv6's `2000::/3` is special. Invariant: an address that carries another
//! (mapped, NAT64, 6to4, Teredo) is at least as special as the one inside.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use writ_core::json::read_text;

/// What kind of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what each is")]
pub enum AddressKind {
    Public,
    Loopback,
    LinkLocal,
    Private,
    Metadata,
    Reserved,
    Own,
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Private => "a private address",
            Self::Metadata => "a metadata service's address",
            Self::Reserved => "a reserved address",
            Self::Own => "an address of this machine",
        })
    }
}

/// What kind an address is, by its number alone.
pub fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // Amazon, Google, Azure and most others; Alibaba; Azure's host; Oracle.
        _ if [[169, 254, 169, 254], [169, 254, 170, 2], [100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192]]
            .contains(&address.octets()) =>
        {
            AddressKind::Metadata
        }
        (127, ..) => AddressKind::Loopback,
        (169, 254, _) => AddressKind::LinkLocal,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => AddressKind::Private,
        (0 | 224..=255, ..) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => {
            AddressKind::Reserved
        }
        _ => AddressKind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> AddressKind {
    if let Some(inner) = inner_v4(address) {
        let kind = kind_v4(inner);
        return if kind == AddressKind::Public { AddressKind::Reserved } else { kind };
    }
    let [a, b, ..] = address.segments();
    match (a, b) {
        _ if address == Ipv6Addr::LOCALHOST => AddressKind::Loopback,
        _ if address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => AddressKind::Metadata,
        (0xfe80..=0xfebf, _) => AddressKind::LinkLocal,
        (0xfc00..=0xfdff, _) | (0xfec0..=0xfeff, _) => AddressKind::Private,
        (0x2001, 0..=0x01ff) | (0x2001, 0xdb8) | (0x3fff, 0..=0x0fff) => AddressKind::Reserved,
        (0x2000..=0x3fff, _) => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// The IPv4 address that an IPv6 address stands for.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let (high, low) = match [a, b, c, d, e, f] {
        // Mapped, compatible, translated; NAT64 and its local prefix; 6to4; Teredo, which carries it inverted.
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] if (high, low) > (0, 1) => (high, low),
        [0x64, 0xff9b, ..] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        [0x2001, 0, ..] => (!high, !low),
        _ => return None,
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

/// Whether an address is one of this machine's: only those can be bound to.
pub fn is_own(address: IpAddr) -> bool {
    let binds = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    // Where the kernel lets any address be bound (`ip_nonlocal_bind`), this one of nobody's (RFC 5737, RFC 3849) is bound as well.
    let nobodys: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    binds(address) && (!binds(nobodys) || is_source(address))
}

/// Whether the kernel takes an address for the source of packets to it, as it does for a machine's first address.
fn is_source(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: connecting a UDP socket only looks up the route.
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`; an address alone is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Network {
    first: IpAddr,
    length: u8,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address or a range of addresses (`10.0.0.0/8`)")]
pub struct BadNetwork(String);

impl Network {
    /// Whether an address is in the range. An IPv4 range does not hold addresses inside IPv6.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                u32::from(first) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                u128::from(first) & mask == u128::from(address) & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// What lies in both ranges: the narrower of the two, where one holds the other.
    pub fn within(self, other: Self) -> Option<Self> {
        let (wide, narrow) = if self.length <= other.length { (self, other) } else { (other, self) };
        wide.holds(narrow.first).then_some(narrow)
    }

    /// Whether it is this one address alone.
    pub fn is_only(&self, address: IpAddr) -> bool {
        self.first == address && self.length == if address.is_ipv4() { 32 } else { 128 }
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let first: IpAddr = address.parse().map_err(|_error| bad())?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), |length| length.parse().map_err(|_error| bad()))?;
        let range = Self { first, length };
        let zeroed = Self { first: range.base(), ..range };
        if length > longest || zeroed != range { Err(bad()) } else { Ok(range) }
    }
}

impl Network {
    /// The first address of the range: what stands after the prefix is zero.
    fn base(self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.length.into())).unwrap_or(0);
                Ipv4Addr::from(u32::from(first) & mask).into()
            }
            IpAddr::V6(first) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(self.length.into())).unwrap_or(0);
                Ipv6Addr::from(u128::from(first) & mask).into()
            }
        }
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        format!("{}/{}", network.first, network.length)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, str::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (address, kind) in [
            ("93.184.216.34", AddressKind::Public),
            ("2606:2800:220::1", AddressKind::Public),
            ("127.255.0.1", AddressKind::Loopback),
            ("::1", AddressKind::Loopback),
            ("::ffff:127.0.0.1", AddressKind::Loopback),
            ("::ffff:8.8.8.8", AddressKind::Reserved),
            ("64:ff9b::a9fe:a9fe", AddressKind::Metadata),
            ("64:ff9b:1::a00:1", AddressKind::Private),
            ("2002:7f00:1::", AddressKind::Loopback),
            ("2001:0:1::80ff:fffe", AddressKind::Loopback),
            ("169.254.169.254", AddressKind::Metadata),
            ("168.63.129.16", AddressKind::Metadata),
            ("fd00:ec2::254", AddressKind::Metadata),
            ("169.254.1.1", AddressKind::LinkLocal),
            ("fe80::1", AddressKind::LinkLocal),
            ("172.31.0.1", AddressKind::Private),
            ("172.32.0.1", AddressKind::Public),
            ("100.64.0.1", AddressKind::Private),
            ("fd12::1", AddressKind::Private),
            ("fec0::1", AddressKind::Private),
            ("0.0.0.0", AddressKind::Reserved),
            ("::", AddressKind::Reserved),
            ("255.255.255.255", AddressKind::Reserved),
            ("224.0.0.1", AddressKind::Reserved),
            ("198.18.0.1", AddressKind::Reserved),
            ("ff02::1", AddressKind::Reserved),
            ("100::1", AddressKind::Reserved),
            ("2001:db8::1", AddressKind::Reserved),
        ] {
            assert_eq!(super::kind(address.parse().unwrap()), kind, "{address}");
        }
    }

    #[test]
    fn ranges() {
        let range = |text: &str| text.parse::<Network>();
        let ten = range("10.0.0.0/8").unwrap();
        assert!(ten.holds("10.255.0.1".parse().unwrap()) && !ten.holds("11.0.0.1".parse().unwrap()));
        assert!(!ten.holds("::ffff:10.0.0.1".parse().unwrap()));
        assert!(range("0.0.0.0/0").unwrap().holds("1.2.3.4".parse().unwrap()));
        assert!(range("::/0").unwrap().holds("1::".parse().unwrap()));
        assert!(
            range("127.0.0.1").unwrap().is_only("127.0.0.1".parse().unwrap())
                && !ten.is_only("10.0.0.0".parse().unwrap())
        );
        for bad in ["10.0.0.1/8", "10.0.0.0/33", "x", "10.0.0.0/", "10.0.0.0/-1", "::/129", "fd00::1/8", "1.2.3.4/300"]
        {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn own_addresses_are_known() {
        assert!(is_own("127.0.0.1".parse().unwrap()) && is_own("127.9.9.9".parse().unwrap()));
        assert!(is_source("127.0.0.1".parse().unwrap()));
        for other in ["192.0.2.1", "8.8.8.8"] {
            assert!(!is_own(other.parse().unwrap()) && !is_source(other.parse().unwrap()), "{other}");
        }
    }
}
