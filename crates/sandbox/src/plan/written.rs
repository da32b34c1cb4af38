//! Texts that the sandbox shows as files, which lie on no disk.
//!
//! Owns what programs inside find hosts by where only a proxy is reached, and what the caller shows. Refuses a place where nothing
//! is, outside the sandbox's own folders. Its invariant: what is masked stays so, since masks are laid over afterwards.

use std::path::Path;

use super::PlanError;
use super::places::{Entry, Places, look, read};
use super::resolve::Found;
use crate::confinement::{Network, Shown};

/// This machine, and no other.
const HOSTS: &[u8] = b"127.0.0.1 localhost\n::1 localhost\n";
/// The caller's name server.
const RESOLVER: &[u8] = b"nameserver 127.0.0.1\noptions ndots:1\n";

/// Shows what the caller wants shown.
pub fn shown(places: &mut Places, shown: &[Shown]) -> Result<(), PlanError> {
    for (number, Shown { place, text }) in shown.iter().enumerate() {
        let resolved = look(place.as_path())?;
        let own = matches!(places.cover(&resolved.path), Some((_, Entry::Own { .. })));
        if resolved.found != Found::File && !own {
            return Err(PlanError::NoTarget(place.as_path().to_owned()));
        }
        places.links.extend(resolved.links);
        places.entries.insert(resolved.path, Entry::Written { name: format!("shown{number}"), text: text.clone() });
    }
    Ok(())
}

/// Where somebody outside answers for names, programs ask there and nowhere else: an address that the host's own files say cannot be
/// reached from inside.
pub fn host_names(places: &mut Places, network: &Network) -> Result<(), PlanError> {
    let Network::Proxied(ports) = network else { return Ok(()) };
    // The resolver of the C library asks no other port than this.
    if ports.dns != Some(53) {
        return Ok(());
    }
    let own: [(&str, &[u8]); 2] = [("/etc/hosts", HOSTS), ("/etc/resolv.conf", RESOLVER)];
    for (file, text) in own {
        write_over(places, file, |_given| text.to_vec())?;
    }
    write_over(places, "/etc/nsswitch.conf", |given| looked_up_here(&given))
}

/// Shows a text over a file of the host's, where that is one and nothing else is to be shown there.
fn write_over(places: &mut Places, file: &str, text: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Result<(), PlanError> {
    let resolved = look(Path::new(file))?;
    if resolved.found != Found::File || places.entries.has(&resolved.path) {
        return Ok(());
    }
    let hidden = places.own_root && places.cover(&resolved.path).is_none();
    let given = if hidden { Vec::new() } else { read(&resolved.path)? };
    let name = file.trim_start_matches("/etc/").to_owned();
    places.entries.insert(resolved.path, Entry::Written { name, text: text(given) });
    Ok(())
}

/// The same file, with hosts looked up in `/etc/hosts` and by DNS.
fn looked_up_here(given: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in
        given.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"hosts:"))
    {
        text.extend_from_slice(line);
    }
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend_from_slice(b"hosts: files dns\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_about_hosts_changes() {
        let given = b"passwd: files sss\nhosts:  files resolve [!UNAVAIL=return]\nrpc: db";
        assert_eq!(looked_up_here(given), b"passwd: files sss\nrpc: db\nhosts: files dns\n");
        assert_eq!(looked_up_here(b""), b"hosts: files dns\n");
    }
}
