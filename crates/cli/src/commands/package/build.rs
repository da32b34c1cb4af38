//! `writ build`: an Agentfile, its lock and its files as one package.

use std::fs;
use std::path::Path;

use serde::Serialize;
use writ_agentfile::ceiling::{Level, Violation, chain_violations};
use writ_agentfile::{Lock, Options, lint};
use writ_core::{Digest, regular_file};
use writ_engine::verify::package::{AncestryError, Parents, chain};
use writ_package::build::{BuildError, Input, Labels, build};
use writ_package::check::check;
use writ_package::{Descriptor, Layout, Reference};

use super::{Place, layout_failure, moved, pulled, refused, registry};
use crate::args::{BuildArgs, RegistryArgs};
use crate::commands::leaks::leaks;
use crate::commands::rooms;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest Agentfile or lock.
const MAX_FILE: u64 = 16 << 20;

/// Where parents are fetched from: registries, through Writ's own layout.
pub struct Pulled<'a>(pub &'a RegistryArgs);

impl Parents for Pulled<'_> {
    fn find(&self, reference: &Reference) -> Result<(Layout, Descriptor), String> {
        let why = |failure: Failure| match failure {
            Failure::CouldNot(error) | Failure::Malformed(error) => error.to_string(),
            Failure::Usage(text) => text,
            Failure::No | Failure::Said(_) | Failure::MalformedReport(_) => "it was tampered with".to_owned(),
        };
        let opened = pulled(reference, self.0).map_err(why)?;
        Ok((opened.layout, opened.descriptor))
    }

    fn kind(&self, reference: &Reference) -> Result<String, String> {
        if self.0.offline {
            return Err("`--offline` asks no registry".to_owned());
        }
        let registry = registry(self.0).map_err(|_usage| "the mirrors cannot be read".to_owned())?;
        let (descriptor, _) = registry.manifest(reference).map_err(|error| error.to_string())?;
        Ok(descriptor.artifact_type.unwrap_or(descriptor.media_type))
    }
}

#[derive(Serialize)]
struct Told<'a> {
    digest: Digest,
    output: String,
    tag: &'a str,
    config: &'a writ_package::config::Config,
}

/// Builds it.
pub fn run(args: &BuildArgs) -> Result<(), Failure> {
    let root = args.folder.canonicalize().map_err(|error| at(&args.folder, &error))?;
    let file = args.file.clone().map_or_else(|| root.join("Agentfile"), |file| root.join(file));
    let bytes = regular_file::read(&file, MAX_FILE).map_err(|error| at(&file, &error))?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let linted = lint(&bytes, &name, &Options::default());
    for found in &linted.found {
        let (line, column) = (found.place.line, found.place.column);
        let told = format!("{name}:{line}:{column}: {}: {}", found.severity.as_str(), found.message);
        output::note(output::plain(&told));
    }
    if linted.has_errors() {
        return Err(Failure::malformed(format!("{} has errors: `writ agentfile lint` explains them", file.display())));
    }
    let lock_file = file.with_file_name("agentrc.lock");
    let lock = regular_file::read(&lock_file, MAX_FILE)
        .map_err(|error| Failure::could_not(format!("{}: {error}; `writ lock` makes it", lock_file.display())))?;
    let lock = Lock::parse(&lock).map_err(|error| Failure::malformed(format!("{}: {error}", lock_file.display())))?;
    if let Some(what) = leaks(&lock, &linted.agent) {
        return Err(refused(&format!("{}: {what}, and a package holds none", lock_file.display())));
    }
    let parents = chain(&lock, &Pulled(&args.registry)).map_err(|error| match error {
        AncestryError::Away { .. } => Failure::could_not(error),
        AncestryError::Broken { .. } | AncestryError::TooDeep => refused(&error),
    })?;
    within(&linted.agent, &lock, &parents)?;
    let labels = Labels {
        version: args.version.clone(),
        licenses: args.licenses.clone(),
        source: args.source_url.clone(),
        revision: args.revision.clone(),
        created: environment::source_date()?,
    };
    let input = Input {
        root: &root,
        linted: &linted,
        lock: &lock,
        sources: &args.source,
        known: &args.known_token,
        labels: &labels,
    };
    let room = rooms::folder()?;
    let layout = Layout::create(room.path()).map_err(layout_failure)?;
    let built = build(&layout, &input).map_err(|error| match error {
        BuildError::Lock { .. } | BuildError::Secret { .. } => refused(&error),
        BuildError::Layer(_) | BuildError::Layout(_) => Failure::could_not(error),
        BuildError::Agentfile(_) | BuildError::File { .. } | BuildError::Outside(_) => Failure::malformed(error),
    })?;
    check(&layout, &built.descriptor).map_err(|error| {
        refused(&format!("{error}; where files changed since they were locked, `writ lock` takes them anew"))
    })?;
    let opened = super::Opened::of(layout, built.descriptor.clone(), &args.tag);
    let to = moved::to_file(&args.output);
    if let Place::Layout(_, _) | Place::Archive(_) = &to {
        moved::put(&opened, &to, Some(&args.tag))?;
    }
    match (&args.run_manifest, &built.placement) {
        (Some(to), Some(placement)) => fs::write(to, placement.to_bytes())?,
        (None, Some(placement)) => output::note(format!(
            "{} {} lines say where it runs, and are not in the package: `--run-manifest FILE` keeps them",
            output::warn("warning:"),
            placement.placement.len()
        )),
        (_, None) => {}
    }
    if args.format.is_json() {
        let digest = built.descriptor.digest;
        output::print_json(&Told {
            digest,
            output: args.output.display().to_string(),
            tag: &args.tag,
            config: &built.config,
        });
        return Ok(());
    }
    let tier = built.config.report.tier.as_str();
    output::line(format!(
        "built {} as {}:{}, risk {tier}",
        output::plain(&built.config.name),
        output::path(&args.output),
        args.tag
    ));
    output::line(built.descriptor.digest);
    Ok(())
}

/// Refuses what the base does not allow, each with both sides.
fn within(agent: &writ_agentfile::Agent, lock: &Lock, parents: &[Level]) -> Result<(), Failure> {
    let found = chain_violations(agent, Some(lock), parents);
    for Violation { message, child, parent, .. } in &found {
        let told =
            format!("{message}: `{}` ({}), and its base `{}` ({})", child.text, child.file, parent.text, parent.file);
        output::note(format!("{} {}", output::bad("refused:"), output::plain(&told)));
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::No) }
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::could_not(format!("{}: {error}", path.display()))
}
