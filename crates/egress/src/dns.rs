//! Names answered from a table: the confined program's name server.
//!
//! Owns the one question a packet may ask, and the addresses that stand for allowed names inside. Refuses to forward anything:
//! what is asked here leaves the machine for no other name server. Invariant: an address is given out for one name only, so
//! that a connection to it says which name was meant.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use crate::host::HostName;

/// Most names of a run: as many as 127.7.0.0/16 has addresses, less its first.
const NAMES: u16 = u16::MAX - 1;
/// How long a client may keep an answer, in seconds.
const KEPT: u32 = 60;
const HEAD: usize = 12;
/// Longest packet over UDP without extensions, and far more than a question needs.
const PACKET: usize = 512;

const ADDRESS: u16 = 1;
const ANY: u16 = 255;
const INTERNET: u16 = 1;

/// What is said of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has this address.
    Address(Ipv4Addr),
    /// It exists, and has nothing of the kind that was asked for.
    Nothing,
    /// There is no such name.
    NoName,
    /// The question is not understood.
    Malformed,
    /// What is asked for is not done.
    NotDone,
    /// It cannot be answered now.
    Failed,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name as it was asked for, without the final dot. Its bytes may be anything.
    pub name: Vec<u8>,
    /// Whether an IPv4 address is wanted.
    pub wants_address: bool,
    /// Head and question, to be said again in the answer.
    said: Vec<u8>,
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// One question.
    Question(Question),
    /// Something that gets this packet for an answer.
    Odd(Vec<u8>),
    /// Something that gets none: an answer, or less than a head.
    Ignored,
}

/// Reads a packet.
pub fn read(packet: &[u8]) -> Packet {
    let Some((head, rest)) = packet.split_at_checked(HEAD).filter(|_| packet.len() <= 4 * PACKET) else {
        return Packet::Ignored;
    };
    let number = |at: usize| {
        head.get(at..at + 2).map_or(0, |pair| pair.iter().fold(0, |sum, byte| (sum << 8) | u16::from(*byte)))
    };
    let flags = number(2);
    if flags & 0x8000 != 0 {
        return Packet::Ignored;
    }
    // Operation 0 is a query; the others change things or are obsolete.
    if flags & 0x7800 != 0 {
        return Packet::Odd(answer(head, Answer::NotDone));
    }
    let question = (number(4) == 1 && number(6) == 0 && number(8) == 0).then(|| question(head, rest)).flatten();
    question.map_or_else(|| Packet::Odd(answer(head, Answer::Malformed)), Packet::Question)
}

fn question(head: &[u8], rest: &[u8]) -> Option<Question> {
    let mut name = Vec::new();
    let mut at = 0;
    loop {
        let length = usize::from(*rest.get(at)?);
        let label = rest.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            break;
        }
        // A question has nothing before it that it could point to.
        if length > 63 || name.len() > 255 {
            return None;
        }
        if !name.is_empty() {
            name.push(b'.');
        }
        // A dot inside a label would make one name look like another.
        if label.contains(&b'.') {
            return None;
        }
        name.extend_from_slice(label);
    }
    let &[kind_high, kind_low, class_high, class_low] = rest.get(at..at + 4)? else { return None };
    let (kind, class) = (u16::from_be_bytes([kind_high, kind_low]), u16::from_be_bytes([class_high, class_low]));
    let wants_address = matches!(kind, ADDRESS | ANY) && class == INTERNET;
    let said = [head, rest.get(..at + 4)?].concat();
    Some(Question { name, wants_address, said })
}

impl Question {
    /// The packet that answers it.
    pub fn answered(&self, with: Answer) -> Vec<u8> {
        let unwanted = matches!(with, Answer::Address(_)) && !self.wants_address;
        answer(&self.said, if unwanted { Answer::Nothing } else { with })
    }
}

/// `said` is a head, with the question behind it if it was understood.
fn answer(said: &[u8], with: Answer) -> Vec<u8> {
    let code = match with {
        Answer::Address(_) | Answer::Nothing => 0,
        Answer::Malformed => 1,
        Answer::Failed => 2,
        Answer::NoName => 3,
        Answer::NotDone => 4,
    };
    let mut out = Vec::with_capacity(said.len() + 16);
    out.extend_from_slice(said.get(..2).unwrap_or_default());
    // An answer, by authority, recursion wanted as it was asked and available.
    let wanted = said.get(2).copied().unwrap_or(0) & 0x79;
    out.extend([0x84 | wanted, 0x80 | code]);
    out.extend([0, u8::from(said.len() > HEAD), 0, u8::from(matches!(with, Answer::Address(_))), 0, 0, 0, 0]);
    out.extend_from_slice(said.get(HEAD..).unwrap_or_default());
    if let Answer::Address(address) = with {
        // The name again, by pointing to where it stands.
        out.extend([0xc0, 12]);
        out.extend(ADDRESS.to_be_bytes());
        out.extend(INTERNET.to_be_bytes());
        out.extend(KEPT.to_be_bytes());
        out.extend([0, 4]);
        out.extend(address.octets());
    }
    out
}

/// The addresses that stand for names inside.
#[derive(Debug, Default)]
pub struct Table(Mutex<Names>);

#[derive(Debug, Default)]
struct Names {
    addresses: HashMap<HostName, u16>,
    names: Vec<HostName>,
}

impl Table {
    /// The address that stands for a name; `None` when there are no more.
    pub fn address(&self, host: &HostName) -> Option<Ipv4Addr> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = names.addresses.get(host) {
            return Some(at(*place));
        }
        let place = u16::try_from(names.names.len()).ok().filter(|place| *place < NAMES)?;
        names.names.push(host.clone());
        names.addresses.insert(host.clone(), place);
        Some(at(place))
    }

    /// The name that an address stands for.
    pub fn name(&self, address: IpAddr) -> Option<HostName> {
        let IpAddr::V4(address) = address else { return None };
        let [127, 7, high, low] = address.octets() else { return None };
        let place = usize::from(u16::from_be_bytes([high, low]).checked_sub(1)?);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).names.get(place).cloned()
    }
}

fn at(place: u16) -> Ipv4Addr {
    let [high, low] = (place + 1).to_be_bytes();
    Ipv4Addr::new(127, 7, high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(name: &str, kind: u16) -> Vec<u8> {
        let mut packet = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(label.len() as u8);
            packet.extend(label.as_bytes());
        }
        packet.extend([0]);
        packet.extend(kind.to_be_bytes());
        packet.extend([0, 1]);
        packet
    }

    fn question(packet: &[u8]) -> Question {
        let Packet::Question(question) = read(packet) else { panic!("{packet:?}") };
        question
    }

    #[test]
    fn addresses_are_answered() {
        let question = question(&ask("Api.Example.com", 1));
        assert_eq!(question.name, b"Api.Example.com");
        let answer = question.answered(Answer::Address(Ipv4Addr::new(127, 7, 0, 1)));
        assert_eq!(&answer[..12], [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        assert!(answer.ends_with(&[0, 0, 0, 60, 0, 4, 127, 7, 0, 1]));
        // The question comes back in the letters it was asked in.
        assert!(answer.windows(3).any(|three| three == b"Api"));
    }

    #[test]
    fn other_kinds_get_nothing() {
        for kind in [28, 16, 65, 64, 15, 5] {
            let answer = question(&ask("a.com", kind)).answered(Answer::Address(Ipv4Addr::LOCALHOST));
            assert_eq!((answer[3] & 15, answer[7]), (0, 0), "{kind}");
        }
        assert_eq!(question(&ask("a.com", 1)).answered(Answer::NoName)[3] & 15, 3);
    }

    #[test]
    fn odd_packets() {
        let mut update = ask("a.com", 1);
        update[2] = 0x28;
        assert!(matches!(read(&update), Packet::Odd(answer) if answer[3] & 15 == 4));
        let mut two = ask("a.com", 1);
        two[5] = 2;
        let mut pointer = ask("a.com", 1);
        pointer[12] = 0xc0;
        let dotted = [&ask("", 1)[..12], &[3, b'a', b'.', b'b', 0, 0, 1, 0, 1]].concat();
        for odd in [two, pointer, dotted, ask("a.com", 1)[..18].to_vec(), ask(&"a".repeat(64), 1)] {
            assert!(matches!(read(&odd), Packet::Odd(answer) if answer[3] & 15 == 1 && answer.len() == 12));
        }
        let mut answer = ask("a.com", 1);
        answer[2] = 0x81;
        assert_eq!(read(&answer), Packet::Ignored);
        assert_eq!(read(b"short"), Packet::Ignored);
    }

    #[test]
    fn an_address_stands_for_one_name() {
        let table = Table::default();
        let name = |text: &str| HostName::read(text.as_bytes()).unwrap();
        let (one, two) = (table.address(&name("a.com")).unwrap(), table.address(&name("b.com")).unwrap());
        assert_eq!((one, two), (Ipv4Addr::new(127, 7, 0, 1), Ipv4Addr::new(127, 7, 0, 2)));
        assert_eq!(table.address(&name("a.com")), Some(one));
        assert_eq!(table.name(two.into()), Some(name("b.com")));
        for other in ["127.7.0.0", "127.7.0.3", "127.0.0.1", "::1"] {
            assert_eq!(table.name(other.parse().unwrap()), None);
        }
    }
}
