//! `writ verify PACKAGE`: whether to trust a package, before anything of it is unpacked.

use std::path::Path;

use writ_engine::Home;
use writ_engine::governing::Trust;
use writ_engine::verify::Outcome;
use writ_engine::verify::package::{Believed, PackageReport, package};
use writ_package::layout::MARKER;
use writ_package::{Descriptor, Layout, Reference, archive};

use super::build::Pulled;
use super::{Place, layout_failure, open};
use crate::args::{RegistryArgs, VerifyArgs};
use crate::commands::keys::public_key;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Whether a word names a package, and not a session's record.
pub fn is_one(target: &str) -> bool {
    let path = Path::new(target);
    if path.is_dir() {
        return path.join(MARKER).is_file();
    }
    if path.is_file() {
        return archive::is_one(path);
    }
    Reference::parse(target).is_ok() || matches!(Place::there(target), Ok(Place::Layout(..)))
}

/// Verifies it.
pub fn run(target: &str, args: &VerifyArgs) -> Result<(), Failure> {
    let opened = open(target, &args.registry)?;
    let (key, home) = (args.key.as_deref(), environment::home());
    let report = worth(&opened.layout, &opened.descriptor, key, &args.registry, &home)?;
    if args.format.is_json() {
        output::print_json(&report);
    } else {
        human(&report);
    }
    if report.verified() || args.allow_absent && report.holds() { Ok(()) } else { Err(Failure::No) }
}

/// What it is worth here, by one key's word or that of those who are trusted.
pub fn worth(
    layout: &Layout,
    descriptor: &Descriptor,
    key: Option<&Path>,
    registry: &RegistryArgs,
    home: &Home,
) -> Result<PackageReport, Failure> {
    let believed = match key {
        Some(file) => Believed::key(public_key(file)?),
        None => Believed::of(&Trust::open(home.state.as_deref())).map_err(Failure::could_not)?,
    };
    package(layout, descriptor, &Pulled(registry), &believed).map_err(layout_failure)
}

fn human(report: &PackageReport) {
    let name = output::plain(report.name.as_deref().unwrap_or("unknown"));
    let risk = report.risk.map_or_else(String::new, |risk| format!("  risk {}", risk.as_str()));
    output::line(format!("package {}  {}{risk}\n", output::bold(name), report.digest));
    for phase in &report.phases {
        let mark = match phase.outcome {
            Outcome::Passed => output::good(phase.outcome.mark()),
            Outcome::Failed => output::bad(phase.outcome.mark()),
            Outcome::Absent => output::dim(phase.outcome.mark()),
        };
        output::line(format!("{mark} {:<12} {}", phase.name, output::plain(&phase.summary)));
        for finding in &phase.findings {
            output::line(format!("    {}", output::plain(finding)));
        }
    }
    let verdict = output::plain(&report.verdict());
    output::line(match (report.verified(), report.holds()) {
        (true, _) => format!("\n{}", output::good(verdict)),
        (false, true) => format!("\n{}", output::warn(verdict)),
        (false, false) => format!("\n{}", output::bad(verdict)),
    });
}
