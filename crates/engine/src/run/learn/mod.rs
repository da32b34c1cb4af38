//! A policy from what a run did: the tightest that people can read.
//!
//! Owns what the policy says and the row that says that it was made. Decides nothing: it is a text until a human puts it in place. Invariant:
//! what could not be observed is said beside it, and stands in the row.

pub mod calls;
mod files;
mod hosts;

use std::path::Path;

use serde::Serialize;
use writ_core::{Digest, json, visible};
use writ_sandbox::Network;

use self::files::{Files, Ground};
use self::hosts::Hosts;
pub use self::hosts::unwritten;
use crate::Home;
use crate::confine::order::Order;
use crate::confine::supervise::Observed;

/// Most paths that are told of one kind.
const TOLD: usize = 3;

/// What was learnt of a run.
#[derive(Debug)]
pub struct Learnt {
    /// The policy as indented JSON with a final newline.
    pub policy: String,
    /// What it does not know, and what is to be looked at, in words.
    pub remarks: Vec<String>,
    row: Row,
}

impl Learnt {
    /// What its row says.
    pub const fn row(&self) -> &Row {
        &self.row
    }
}

/// What the row says.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Digest of the policy's text.
    policy: Digest,
    /// Paths that it was made from; nothing where they were not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<usize>,
    /// Hosts and ports that it was made from; nothing where the network was the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<usize>,
    /// What it does not know.
    remarks: Vec<String>,
    standing: &'static str,
}

#[derive(Serialize)]
struct Policy {
    version: &'static str,
    name: &'static str,
    enforce: Enforce,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Lists>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domains: Option<Domains>,
}

#[derive(Serialize)]
struct Enforce {
    calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<hosts::Network>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lists {
    allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    read_only: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
}

#[derive(Serialize)]
struct Domains {
    allow: Vec<String>,
}

/// The policy for what was observed in `root`.
pub fn learn(observed: &Observed, order: &Order, root: &Path, home: &Home) -> Learnt {
    let mut remarks = Vec::new();
    let files = observed.noted.as_ref().map(|noted| {
        let confinement = Some(&order.confinement);
        let ground = Ground { root, home: home.user.as_deref(), search: &home.search, confinement };
        if noted.more {
            remarks.push("it used more paths than are kept: files.allow lacks some".to_owned());
        }
        files::files(noted, &ground)
    });
    let hosts = matches!(order.confinement.network, Network::Proxied(_))
        .then(|| hosts::hosts(&observed.reached, &order.egress));
    tell(&mut remarks, files.as_ref(), hosts.as_ref(), observed);
    let row = (files.as_ref().map(|files| files.paths), hosts.as_ref().map(|_| observed.reached.len()));
    let (network, domains) = match hosts {
        Some(Hosts { allow, network }) => (Some(network), Some(Domains { allow })),
        None => (None, None),
    };
    let policy = Policy {
        version: "1.0",
        name: "learnt",
        enforce: Enforce { calls: true, network: network.filter(|network| !network.is_empty()) },
        files: files.map(|Files { allow, read_only, deny, .. }| Lists { allow, read_only, deny }),
        domains,
    };
    let policy = json::pretty(&json::to_value(&policy)) + "\n";
    let (paths, hosts) = row;
    let digest = Digest::of(policy.as_bytes());
    let row = Row { policy: digest, paths, hosts, remarks: remarks.clone(), standing: "observed" };
    Learnt { policy, remarks, row }
}

/// What the policy does not know.
fn tell(remarks: &mut Vec<String>, files: Option<&Files>, hosts: Option<&Hosts>, observed: &Observed) {
    match files {
        None => remarks.push("files were not observed: this kernel hands no calls over".to_owned()),
        Some(files) => {
            remarks.push("not observed: files that were open before, or are used by descriptor alone".to_owned());
            if !files.not_kept.is_empty() {
                remarks.push(format!(
                    "changes outside the folder did not last, and are not in it: {}",
                    some(&files.not_kept)
                ));
            }
            if !files.secrets.is_empty() {
                let secrets = files.secrets.join(", ");
                remarks.push(format!("files that hold secrets as a rule were opened, and are in it: {secrets}"));
            }
            if files.left_writable > 0 {
                remarks.push(format!("{} more patterns were only read, and stay writable", files.left_writable));
            }
        }
    }
    if hosts.is_none() {
        remarks.push("hosts were not observed: the policy here leaves the network open".to_owned());
    }
    if observed.refused > 0 {
        remarks.push(format!("{} uses were refused, and are not in it", observed.refused));
    }
    if observed.more_reached {
        remarks.push("it reached more hosts than are kept: domains.allow lacks some".to_owned());
    }
}

/// The first of them, for people.
fn some(paths: &[String]) -> String {
    let first: Vec<_> = paths.iter().take(TOLD).map(|path| visible::line(path)).collect();
    let more = paths.len().saturating_sub(TOLD);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", first.join(", "))
}
