use super::*;
use crate::secret::{Inject, placeholder};

fn patterns(texts: &[&str]) -> Vec<HostRule> {
    texts.iter().map(|text| HostRule::parse(format!("/{text}"), text).unwrap()).collect()
}

fn allowing(allow: &[&str], deny: &[&str]) -> Domains {
    Domains { allow: Some(patterns(allow)), deny: patterns(deny) }
}

fn name(text: &str) -> HostName {
    HostName::read(text.as_bytes()).unwrap()
}

fn secret() -> SecretRule {
    SecretRule {
        name: "token".to_owned(),
        placeholder: placeholder().unwrap(),
        hosts: patterns(&["*.x.com"]),
        inject: Inject::Header,
        headers: vec![],
    }
}

#[test]
fn every_layer_must_allow() {
    let rules = Rules {
        domains: vec![allowing(&["*.x.com", "y.com"], &["bad.x.com"]), allowing(&["*"], &["y.com"])],
        ..Rules::default()
    };
    assert_eq!(rules.host(&name("a.x.com")), Ok("/*.x.com".to_owned()));
    for (host, rule) in
        [("x.com", "/domains/allow"), ("bad.x.com", "/bad.x.com"), ("y.com", "/y.com"), ("z.com", "/domains/allow")]
    {
        assert_eq!(rules.host(&name(host)), Err(Refusal::Host { host: host.to_owned(), rule: rule.to_owned() }));
    }
    assert!(Rules::default().host(&name("a.x.com")).is_err());
}

#[test]
fn addresses_must_be_named() {
    let rules = Rules { domains: vec![allowing(&["*"], &[])], ..Rules::default() };
    assert!(rules.host(&name("a.com")).is_ok());
    assert_eq!(rules.host(&name("8.8.8.8")), Err(Refusal::Address { host: "8.8.8.8".to_owned() }));
    let rules = Rules { domains: vec![allowing(&["*", "8.8.8.8", "[2606:4700::1]"], &[])], ..Rules::default() };
    assert!(rules.host(&name("8.8.8.8")).is_ok() && rules.host(&name("[2606:4700::1]")).is_ok());
    assert!(rules.host(&name("8.8.4.4")).is_err());
    // An address inside an address counts as the one inside.
    let denied = Rules { domains: vec![allowing(&["*", "[64:ff9b::808:808]"], &["8.8.8.8"])], ..Rules::default() };
    assert!(denied.host(&name("[64:ff9b::808:808]")).is_err());
}

#[test]
fn ports_have_protocols() {
    let ssh = PortRule { hosts: patterns(&["git.x.com"]), port: 22, protocol: Protocol::Opaque };
    let rules = Rules { ports: vec![ssh], ..Rules::default() };
    assert_eq!(rules.protocol(&name("git.x.com"), 22), Ok(Protocol::Opaque));
    assert_eq!(rules.protocol(&name("git.x.com"), 443), Ok(Protocol::Tls));
    assert_eq!(rules.protocol(&name("git.x.com"), 80), Ok(Protocol::Http));
    for (host, port) in [("www.x.com", 22), ("git.x.com", 25), ("git.x.com", 8443)] {
        assert!(rules.protocol(&name(host), port).is_err());
    }
    assert_eq!(rules.listening_ports().into_iter().collect::<Vec<_>>(), [22, 80, 443]);
}

#[test]
fn private_ranges_are_for_the_hosts_that_name_them() {
    let range = |range: &str, hosts: &[&str]| PrivateRange { range: range.parse().unwrap(), hosts: patterns(hosts) };
    let rules = Rules {
        private: vec![
            range("10.0.0.0/8", &["*.corp"]),
            range("169.254.0.0/16", &["*.corp"]),
            range("100.100.100.200", &["meta.corp"]),
        ],
        ..Rules::default()
    };
    let may = |host: &str, address: &str| rules.address(&name(host), address.parse().unwrap()).is_ok();
    assert!(may("a.corp", "10.1.2.3") && may("a.corp", "169.254.1.1") && may("a.com", "93.184.216.34"));
    assert!(may("meta.corp", "100.100.100.200"));
    for (host, address) in [
        ("a.com", "10.1.2.3"),
        ("a.corp", "192.168.0.1"),
        ("a.corp", "::ffff:10.1.2.3"),
        ("a.corp", "64:ff9b::a01:203"),
        ("a.corp", "169.254.169.254"),
        ("a.corp", "100.100.100.200"),
        ("a.corp", "127.0.0.1"),
        ("a.com", "::1"),
        ("a.com", "0.0.0.0"),
        ("a.com", "fe80::1"),
    ] {
        assert!(!may(host, address), "{host} {address}");
    }
}

#[test]
fn rules_that_cannot_be_kept_are_refused() {
    let with = |secrets: Vec<SecretRule>| Rules { secrets, ..Rules::default() }.check();
    assert_eq!(with(vec![secret()]), Ok(()));
    let twice = secret();
    assert!(with(vec![twice.clone(), twice]).is_err());
    for (hosts, header, mark) in [
        (&[][..], "x-token", true),
        (&["*"], "x-token", true),
        (&["a.com"], "host", true),
        (&["a.com"], "X-Token", true),
        (&["a.com"], "x-token", false),
    ] {
        let placeholder = if mark { secret().placeholder } else { "writ_secret_short".to_owned() };
        let rule = SecretRule { hosts: patterns(hosts), headers: vec![header.to_owned()], placeholder, ..secret() };
        assert!(with(vec![rule]).is_err(), "{hosts:?} {header}");
    }
}

#[test]
fn rules_are_written_and_read_alike() {
    let rules = Rules {
        domains: vec![allowing(&["*.x.com"], &["y.com"])],
        ports: vec![PortRule { hosts: patterns(&["a.x.com"]), port: 22, protocol: Protocol::Opaque }],
        private: vec![PrivateRange { range: "10.0.0.0/8".parse().unwrap(), hosts: patterns(&["a.x.com"]) }],
        limits: vec![Limit {
            pointer: "/limits/0".to_owned(),
            hosts: patterns(&["*"]),
            per_minute: std::num::NonZeroU32::new(3),
            bytes_up: Some(5),
            bytes_down: None,
        }],
        loopback: vec![LoopbackPort { pointer: "/loopback/0".to_owned(), port: 5432 }],
        terminated: patterns(&["b.x.com"]),
        grants: vec![json::from_slice(br#"{"storage":{"deny":[]}}"#).unwrap()],
        secrets: vec![secret()],
    };
    let text = json::to_canonical(&rules);
    assert_eq!(json::from_slice::<Rules>(text.as_bytes()).unwrap(), rules);
    assert_ne!(Rules::default().digest(), rules.digest());
    for bad in [r#"{"domains":[],"more":1}"#, r#"{"domains":[{"allow":[{"pattern":"a b","pointer":""}]}]}"#, r#"{}"#] {
        assert!(json::from_slice::<Rules>(bad.as_bytes()).is_err(), "{bad}");
    }
}
