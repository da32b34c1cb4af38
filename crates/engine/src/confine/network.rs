//! Policies into what the egress proxy lets through.
//!
//! Owns how layers join: a port, a range and a port of the loopback are granted where every layer that closes the network grants
//! them, and every layer's ceilings hold. Which hosts may be reached, and what be asked of them, the proxy asks each layer's `domains`
//! and `grants` itself.

use writ_egress::{Limit, LoopbackPort, Network, PortRule, PrivateRange, Protocol, Rules};
use writ_policy::sandbox::{self, both};
use writ_policy::{Domains, Policy};

/// What every layer lets through.
pub fn rules(layers: &[&Policy]) -> Result<Rules, String> {
    // A layer without `domains` lets everything through.
    let closing: Vec<&Policy> = layers.iter().copied().filter(|policy| policy.domains().any()).collect();
    let domains: Vec<Domains> = closing.iter().map(|policy| policy.domains().clone()).collect();
    let mut networks = closing.iter().map(|policy| &policy.sandbox().network);
    let Some(first) = networks.next() else { return Ok(Rules { domains, ..Rules::default() }) };
    let mut rules = granted(first)?;
    for other in networks {
        rules = narrowed(rules, granted(other)?);
    }
    let grants = layers.iter().map(|policy| policy.web_grants()).filter(|grants| !grants.is_empty()).collect();
    Ok(Rules { domains, grants, ..rules })
}

/// What one layer grants and limits.
fn granted(network: &sandbox::Network) -> Result<Rules, String> {
    let range = |private: &sandbox::Private| -> Result<PrivateRange, String> {
        let range: Network = private.range.parse().map_err(|error: writ_egress::BadNetwork| error.to_string())?;
        Ok(PrivateRange { range, hosts: private.hosts.clone() })
    };
    Ok(Rules {
        ports: network.ports.iter().map(port).collect(),
        private: network.private.iter().map(range).collect::<Result<_, _>>()?,
        limits: network.limits.iter().map(limit).collect(),
        loopback: network.loopback.iter().map(loopback).collect(),
        ..Rules::default()
    })
}

fn port(rule: &sandbox::Port) -> PortRule {
    let protocol = match rule.protocol {
        sandbox::Protocol::Tls => Protocol::Tls,
        sandbox::Protocol::Http => Protocol::Http,
        sandbox::Protocol::Opaque => Protocol::Opaque,
    };
    PortRule { hosts: rule.hosts.clone(), port: rule.port, protocol }
}

fn limit(rule: &sandbox::TrafficLimit) -> Limit {
    Limit {
        pointer: rule.pointer.clone(),
        hosts: rule.hosts.clone(),
        per_minute: rule.per_minute,
        bytes_up: rule.bytes_up,
        bytes_down: rule.bytes_down,
    }
}

fn loopback(rule: &sandbox::Loopback) -> LoopbackPort {
    LoopbackPort { pointer: rule.pointer.clone(), port: rule.port }
}

/// What both grant, under the ceilings of both.
fn narrowed(one: Rules, other: Rules) -> Rules {
    let pairs = one.ports.iter().flat_map(|rule| other.ports.iter().map(move |same| (rule, same)));
    let ports = pairs.filter(|(rule, same)| rule.port == same.port && rule.protocol == same.protocol);
    let ports = ports.map(|(rule, same)| PortRule { hosts: both(&rule.hosts, &same.hosts), ..rule.clone() });
    let ports = ports.filter(|rule| !rule.hosts.is_empty()).collect();
    let pairs = one.private.iter().flat_map(|rule| other.private.iter().map(move |same| (rule, same)));
    let private = pairs.filter_map(|(rule, same)| {
        let hosts = both(&rule.hosts, &same.hosts);
        let range = rule.range.within(same.range).filter(|_| !hosts.is_empty())?;
        Some(PrivateRange { range, hosts })
    });
    let private = private.collect();
    let loopback = one.loopback.into_iter().filter(|rule| other.loopback(rule.port).is_some()).collect();
    let limits = one.limits.into_iter().chain(other.limits).collect();
    Rules { ports, private, limits, loopback, ..Rules::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(network: &str) -> Policy {
        let text = format!(
            r#"{{"version":"1.0","name":"n","domains":{{"allow":["*"]}},"enforce":{{"calls":true,"network":{network}}}}}"#
        );
        Policy::parse(text.as_bytes(), "/w").unwrap()
    }

    #[test]
    fn each_layer_only_tightens() {
        let one = policy(
            r#"{"ports":[{"hosts":["*.x.example"],"port":22,"protocol":"opaque"},{"hosts":["y.example"],"port":81,"protocol":"http"}],
                "private":[{"range":"10.0.0.0/8","hosts":["*"]},{"range":"127.0.0.1","hosts":["*"]}],
                "limits":[{"hosts":["*"],"bytesUp":5}],"loopback":[5432,80]}"#,
        );
        let other = policy(
            r#"{"ports":[{"hosts":["a.x.example","*.z.example"],"port":22,"protocol":"opaque"},{"hosts":["y.example"],"port":81,"protocol":"tls"}],
                "private":[{"range":"10.1.0.0/16","hosts":["a.x.example"]}],
                "limits":[{"hosts":["*"],"bytesDown":5}],"loopback":[80,8080]}"#,
        );
        let rules = rules(&[&one, &other]).unwrap();
        let names = |hosts: &[writ_policy::HostRule]| -> Vec<String> {
            hosts.iter().map(|host| host.pattern.clone()).collect()
        };
        assert_eq!(rules.ports.len(), 1);
        assert_eq!((names(&rules.ports[0].hosts), rules.ports[0].port), (vec!["a.x.example".to_owned()], 22));
        assert_eq!(rules.private.len(), 1);
        assert_eq!(String::from(rules.private[0].range), "10.1.0.0/16");
        assert_eq!((rules.limits.len(), rules.domains.len()), (2, 2));
        assert_eq!(rules.loopback.iter().map(|rule| rule.port).collect::<Vec<_>>(), [80]);
        // A layer that says nothing of the network takes nothing away, and one that closes it grants nothing more.
        let open = Policy::parse(br#"{"version":"1.0","name":"o"}"#, "/w").unwrap();
        assert_eq!(super::rules(&[&one, &open]).unwrap(), super::rules(&[&one]).unwrap());
        let closed = Policy::parse(br#"{"version":"1.0","name":"o","domains":{"allow":[]}}"#, "/w").unwrap();
        let none = super::rules(&[&one, &closed]).unwrap();
        assert!(none.ports.is_empty() && none.private.is_empty() && none.loopback.is_empty());
    }
}
