//! A package, checked by someone who did not build it, before anything of it is unpacked.
//!
//! Asks one question a phase: does it hold together, does it stay within what it is built on, who signed it, how was it built, what is in
//! it. Refuses whatever cannot be checked. Invariant: *verified* is said only where a key or an identity that is trusted here signed this very
//! manifest, and nothing failed. Page: `spec/verify.md`, "Packages".

mod worth;

use serde::Serialize;
use writ_agentfile::Lock;
use writ_agentfile::ceiling::{Level, Violation, chain_violations, taken};
use writ_agentfile::risk::Tier;
use writ_core::Digest;
use writ_core::json;
use writ_evidence::signer::Signer;
use writ_package::bundled::{self, PROVENANCE, SBOM, SIGNATURE, Said};
use writ_package::check::{Package, check};
use writ_package::provenance::Provenance;
use writ_package::{Descriptor, Layout, LayoutError, Reference, form};

use super::report::{Outcome, Phase, Standing, Status};
pub use worth::Believed;
use worth::Worth;

/// Most packages that one is built on, each on the next.
const MAX_CHAIN: usize = 16;
/// The phase of what it is built on.
const INHERITANCE: &str = "inheritance";
/// The phase of how it was built.
const BUILT: &str = "provenance";

/// Where what a package is built on is found.
pub trait Parents {
    /// A package by its digest, held against it; why it cannot be had.
    fn find(&self, reference: &Reference) -> Result<(Layout, Descriptor), String>;

    /// What kind of artifact something is; why nobody can tell.
    fn kind(&self, reference: &Reference) -> Result<String, String>;
}

/// Why the packages that another is built on do not say what it may do.
#[derive(Debug, thiserror::Error)]
pub enum AncestryError {
    /// One cannot be had.
    #[error("its base {reference} cannot be had, so nobody knows its ceiling: {why}")]
    Away {
        /// Which.
        reference: String,
        /// Why.
        why: String,
    },
    /// One does not hold.
    #[error("its base {reference} does not hold: {why}")]
    Broken {
        /// Which.
        reference: String,
        /// Why.
        why: String,
    },
    /// More than are followed.
    #[error("it is built on more than {MAX_CHAIN} packages, each on the next")]
    TooDeep,
}

/// The packages that a lock leads to, nearest first, each checked.
pub fn chain(lock: &Lock, parents: &dyn Parents) -> Result<Vec<Level>, AncestryError> {
    let (mut out, mut next) = (Vec::new(), lock.base_image.clone());
    while let Some(base) = next {
        let text = format!("{}/{}@{}", base.registry, base.name, base.digest);
        let broken = |why: String| AncestryError::Broken { reference: text.clone(), why };
        let reference = Reference::parse(&text).map_err(|error| broken(error.to_string()))?;
        if !base.package {
            // Whoever says that a package is an image is rid of its ceiling.
            let kind = parents.kind(&reference).map_err(|why| AncestryError::Away { reference: text.clone(), why })?;
            if kind == writ_package::build::PACKAGE {
                return Err(broken("the lock says that it is an image, and it is an agent's package".to_owned()));
            }
            return Ok(out);
        }
        if out.len() >= MAX_CHAIN {
            return Err(AncestryError::TooDeep);
        }
        let found = parents.find(&reference).map_err(|why| AncestryError::Away { reference: text.clone(), why })?;
        let (layout, descriptor) = found;
        if Some(descriptor.digest) != reference.digest() {
            return Err(broken(format!("it is {}", descriptor.digest)));
        }
        let package = check(&layout, &descriptor).map_err(|error| broken(error.to_string()))?;
        let mut linted = package.linted;
        linted.agent.file = text;
        next = package.lock.base_image.clone();
        out.push(Level::locked(linted, package.lock));
    }
    Ok(out)
}

/// A package's verification.
#[derive(Clone, Debug)]
pub struct PackageReport {
    /// Its manifest.
    pub digest: Digest,
    /// The agent's name, where it could be read.
    pub name: Option<String>,
    /// How much of a risk it is.
    pub risk: Option<Tier>,
    /// What it is worth.
    pub status: Status,
    /// The keys that signed it.
    pub signers: Vec<Digest>,
    /// The identities that signed it.
    pub identities: Vec<Signer>,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

#[derive(Serialize)]
struct Document<'a> {
    verified: bool,
    status: Status,
    except: Vec<&'a str>,
    digest: Digest,
    name: Option<&'a str>,
    risk: Option<Tier>,
    signers: &'a [Digest],
    identities: &'a [Signer],
    phases: &'a [Phase],
}

impl Serialize for PackageReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = Document {
            verified: self.verified(),
            status: self.status,
            except: self.exceptions().collect(),
            digest: self.digest,
            name: self.name.as_deref(),
            risk: self.risk,
            signers: &self.signers,
            identities: &self.identities,
            phases: &self.phases,
        };
        document.serialize(serializer)
    }
}

impl PackageReport {
    /// What it does not speak for although it holds.
    pub fn exceptions(&self) -> impl Iterator<Item = &str> {
        let absent = |phase: &&Phase| phase.outcome == Outcome::Absent && [INHERITANCE, BUILT].contains(&phase.name);
        self.phases.iter().filter(absent).map(|phase| phase.summary.as_str())
    }

    /// Whether somebody who is trusted signed it and nothing failed.
    pub fn holds(&self) -> bool {
        self.status == Status::Verified
    }

    /// The same without exception.
    pub fn verified(&self) -> bool {
        self.holds() && self.exceptions().next().is_none()
    }

    /// The last line: what it all comes to.
    pub fn verdict(&self) -> String {
        let told = match self.status {
            Status::Unsigned => "NOT VERIFIED: unsigned: nobody signed this package",
            Status::UnknownKey => {
                "NOT VERIFIED: unknown key: whoever signed it is not trusted here (give --key, or `writ keys trust`)"
            }
            Status::Broken | Status::Breached | Status::Empty => "NOT VERIFIED: broken: the package does not hold",
            Status::Verified => match self.exceptions().collect::<Vec<_>>().join("; ") {
                none if none.is_empty() => "verified",
                except => return format!("verified, except: {except}"),
            },
        };
        told.to_owned()
    }
}

/// Verifies a package by the word of those who are believed.
pub fn package(
    layout: &Layout,
    descriptor: &Descriptor,
    parents: &dyn Parents,
    believed: &Believed,
) -> Result<PackageReport, LayoutError> {
    let mut report = PackageReport {
        digest: descriptor.digest,
        name: None,
        risk: None,
        status: Status::Broken,
        signers: Vec::new(),
        identities: Vec::new(),
        phases: Vec::new(),
    };
    let package = match check(layout, descriptor) {
        Ok(package) => package,
        Err(error) => {
            let summary = format!("{}: {error}", error.code());
            report.phases.push(phase("content", Outcome::Failed, summary));
            return Ok(report);
        }
    };
    let (said, unread) = match bundled::said(layout, descriptor) {
        Err(error @ LayoutError::Tampered { .. }) => {
            report.phases.push(phase("content", Outcome::Failed, format!("blob-tampered: {error}")));
            return Ok(report);
        }
        said => said?,
    };
    let held =
        format!("{} blobs, Agentfile, lock, policy, config and annotations agree", package.manifest.layers.len() + 2);
    let findings = form::findings(layout, &package)?;
    report.phases.push(Phase { findings, ..phase("content", Outcome::Passed, held) });
    report.name = Some(package.config.name.clone());
    report.risk = Some(package.config.report.tier);
    report.phases.push(inheritance(&package, parents));
    let (signature, signers, status) = signature(&said, &unread, descriptor.digest, believed);
    report.phases.push(signature);
    for signer in signers {
        match signer {
            Signer::Key { id } => report.signers.push(id),
            Signer::X509 { .. } | Signer::Keyless { .. } => report.identities.push(signer),
        }
    }
    report.phases.push(provenance(&said, &package, believed));
    report.phases.push(materials(&said, descriptor.digest, believed));
    let failed = report.phases.iter().any(|phase| phase.outcome == Outcome::Failed);
    report.status = if failed { Status::Broken } else { status };
    Ok(report)
}

fn phase(name: &'static str, outcome: Outcome, summary: String) -> Phase {
    Phase { name, outcome, standing: Standing::Observed, summary, findings: Vec::new() }
}

fn inheritance(package: &Package, parents: &dyn Parents) -> Phase {
    let levels = match chain(&package.lock, parents) {
        Ok(levels) => levels,
        Err(error @ AncestryError::Away { .. })
            if package.lock.base_image.as_ref().is_some_and(|base| !base.package) =>
        {
            return phase(INHERITANCE, Outcome::Absent, error.to_string());
        }
        Err(error) => return phase(INHERITANCE, Outcome::Failed, format!("inheritance: {error}")),
    };
    let found = chain_violations(&package.linted.agent, Some(&package.lock), &levels);
    if found.is_empty() {
        let summary = match levels.len() {
            0 => "it is built on no other agent".to_owned(),
            count => format!("it stays within the {count} packages that it is built on"),
        };
        let names = levels.iter().flat_map(|level| taken(&package.linted.agent, Some(&package.lock), level));
        let findings = names.map(|found| found.message).collect();
        return Phase { findings, ..phase(INHERITANCE, Outcome::Passed, summary) };
    }
    let told = |one: &Violation| one.diagnostic(&package.linted.agent).message;
    let summary = format!("ceiling-exceeded: it asks for more than its base allows, {} times", found.len());
    Phase { findings: found.iter().map(told).collect(), ..phase(INHERITANCE, Outcome::Failed, summary) }
}

fn signature(
    said: &[Said],
    unread: &[bundled::Unread],
    subject: Digest,
    believed: &Believed,
) -> (Phase, Vec<Signer>, Status) {
    let (mut signers, mut unknown, mut reasons, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one in said.iter().filter(|one| one.kind == SIGNATURE) {
        match believed.worth(one, subject) {
            Worth::Trusted(by) => signers.extend(by),
            Worth::Unknown(why) => {
                unknown.push(format!("{}: {why}", one.descriptor.digest));
                reasons.push(why);
            }
            Worth::Wrong(why) => wrong.push(format!("{why} ({})", one.descriptor.digest)),
        }
    }
    signers.sort_by_key(ToString::to_string);
    signers.dedup();
    let unreadable = unread.iter().map(|one| format!("{}: {}", one.digest, one.why));
    // One reason for all of them is the phase's.
    let shared = reasons.first().filter(|first| unread.is_empty() && reasons.iter().all(|why| why == *first)).cloned();
    if !wrong.is_empty() {
        let summary = wrong.first().cloned().unwrap_or_default();
        return (Phase { findings: wrong, ..phase("signature", Outcome::Failed, summary) }, Vec::new(), Status::Broken);
    }
    if !signers.is_empty() {
        let by: Vec<String> = signers.iter().map(ToString::to_string).collect();
        let passed = phase("signature", Outcome::Passed, format!("signed by {}", by.join(", ")));
        return (passed, signers, Status::Verified);
    }
    let (summary, status) = if unknown.is_empty() && unread.is_empty() {
        ("unsigned: no signature is attached".to_owned(), Status::Unsigned)
    } else {
        (shared.unwrap_or_else(|| believed.nobody().to_owned()), Status::UnknownKey)
    };
    let findings = unknown.into_iter().chain(unreadable).collect();
    (Phase { findings, ..phase("signature", Outcome::Absent, summary) }, Vec::new(), status)
}

fn provenance(said: &[Said], package: &Package, believed: &Believed) -> Phase {
    let mut findings = Vec::new();
    for one in said.iter().filter(|one| one.kind == PROVENANCE) {
        match believed.worth(one, package.descriptor.digest) {
            Worth::Trusted(_) => {
                let read = one.predicate().ok_or_else(|| "it has no predicate".to_owned());
                let read =
                    read.and_then(|value| json::from_value::<Provenance>(&value).map_err(|error| error.to_string()));
                let why = match &read {
                    Ok(provenance) => provenance.differs(package),
                    Err(error) => Some(error.clone()),
                };
                let Some(why) = why else {
                    let by = read.map(|provenance| provenance.run_details.builder.id).unwrap_or_default();
                    return phase(BUILT, Outcome::Passed, format!("built by {by}"));
                };
                return phase(BUILT, Outcome::Failed, format!("provenance-mismatch: {why}"));
            }
            Worth::Unknown(why) => findings.push(format!("{}: {why}", one.descriptor.digest)),
            Worth::Wrong(why) => return phase(BUILT, Outcome::Failed, why),
        }
    }
    let summary = "no provenance by anybody who is trusted here".to_owned();
    Phase { findings, ..phase(BUILT, Outcome::Absent, summary) }
}

fn materials(said: &[Said], subject: Digest, believed: &Believed) -> Phase {
    let mut findings = Vec::new();
    for one in said.iter().filter(|one| one.kind == SBOM) {
        match believed.worth(one, subject) {
            Worth::Trusted(_) => {
                return phase("materials", Outcome::Passed, "a bill of materials is signed".to_owned());
            }
            Worth::Unknown(why) => findings.push(format!("{}: {why}", one.descriptor.digest)),
            Worth::Wrong(why) => return phase("materials", Outcome::Failed, why),
        }
    }
    let summary = "no bill of materials by anybody who is trusted here".to_owned();
    Phase { findings, ..phase("materials", Outcome::Absent, summary) }
}
