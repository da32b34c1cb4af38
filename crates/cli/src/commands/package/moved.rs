//! `writ push`, `pull`, `copy`, `tag` and `discover`: packages on their way.

use std::path::Path;

use serde::Serialize;
use writ_core::Digest;
use writ_package::{Descriptor, Layout, Reference, archive};
use writ_service::registry::{Moved, Watch};

use super::{Opened, Place, archive_failure, layout_failure, open, pulled, registry, registry_failure};
use crate::args::{CopyArgs, DiscoverArgs, FormatArgs, PullArgs, PushArgs, RegistryArgs, TagArgs};
use crate::commands::rooms;
use crate::exit::Failure;
use crate::output;

/// Sends a package.
pub fn push(args: &PushArgs) -> Result<(), Failure> {
    let to = Reference::parse(&args.to).map_err(|error| Failure::Usage(error.to_string()))?;
    let opened = open(&args.from, &args.registry)?;
    let moved = send(&opened, &to, &args.registry)?;
    told("pushed", &to.to_string(), &moved, &args.format)
}

fn send(opened: &Opened, to: &Reference, args: &RegistryArgs) -> Result<Moved, Failure> {
    let watch = Watch::new(output::progress);
    let from = opened.reference.as_ref();
    registry(args)?.push(&opened.layout, &opened.descriptor, to, from, &watch).map_err(registry_failure)
}

/// Fetches a package.
pub fn pull(args: &PullArgs) -> Result<(), Failure> {
    let from = Reference::parse(&args.from).map_err(|error| Failure::Usage(error.to_string()))?;
    let opened = pulled(&from, &args.registry)?;
    if let Some(output) = &args.output {
        let name = opened.name.clone();
        put(&opened, &to_file(output), name.as_deref())?;
    }
    let moved = match &opened.moved {
        Some(moved) => moved.clone(),
        None => counted(&opened)?,
    };
    told("pulled", &from.to_string(), &moved, &args.format)
}

/// Copies a package.
pub fn copy(args: &CopyArgs) -> Result<(), Failure> {
    let opened = open(&args.from, &args.registry)?;
    let moved = match Place::to_be(&args.to)? {
        Place::Registry(to) => send(&opened, &to, &args.registry)?,
        place => {
            put(&opened, &place, opened.name.as_deref())?;
            match &opened.moved {
                Some(moved) => moved.clone(),
                None => counted(&opened)?,
            }
        }
    };
    told("copied", &args.to, &moved, &args.format)
}

/// A folder, or an archive where it ends in `.tar`.
pub fn to_file(path: &Path) -> Place {
    if path.extension().is_some_and(|extension| extension == "tar") {
        Place::Archive(path.to_owned())
    } else {
        Place::Layout(path.to_owned(), None)
    }
}

/// Writes a package and what is said of it to a layout or an archive.
pub fn put(opened: &Opened, to: &Place, name: Option<&str>) -> Result<(), Failure> {
    match to {
        Place::Layout(folder, own) => {
            let to = Layout::create(folder).map_err(layout_failure)?;
            transfer(&opened.layout, &opened.descriptor, &to, own.as_deref().or(name))
        }
        Place::Archive(file) => {
            let room = rooms::folder()?;
            let between = Layout::create(room.path()).map_err(layout_failure)?;
            transfer(&opened.layout, &opened.descriptor, &between, name)?;
            archive::write(&between, file).map_err(archive_failure)
        }
        Place::Registry(_) => Ok(()),
    }
}

/// From one layout to another, each blob held against its digest.
fn transfer(from: &Layout, top: &Descriptor, to: &Layout, name: Option<&str>) -> Result<(), Failure> {
    let said = from.referrers(top.digest).map_err(layout_failure)?;
    for one in std::iter::once(top).chain(said.iter().map(|(descriptor, _)| descriptor)) {
        for blob in from.closure(one).map_err(layout_failure)? {
            from.check(&blob).map_err(layout_failure)?;
            if !to.has(&blob) || to.check(&blob).is_err() {
                let mut writer = to.writer().map_err(layout_failure)?;
                std::io::copy(&mut from.blob(blob.digest).map_err(layout_failure)?, &mut writer)?;
                let written = writer.finish(&blob.media_type).map_err(layout_failure)?;
                if written.digest != blob.digest {
                    return Err(super::refused(&format!("{} changed while it was copied", blob.digest)));
                }
            }
        }
    }
    let named = Descriptor { annotations: Default::default(), ..top.clone() };
    to.tag(Some(name.unwrap_or("latest")), &named).map_err(layout_failure)?;
    for (descriptor, _) in &said {
        to.tag(None, descriptor).map_err(layout_failure)?;
    }
    Ok(())
}

/// What a package that did not come over the network comes to.
fn counted(opened: &Opened) -> Result<Moved, Failure> {
    let said = opened.layout.referrers(opened.descriptor.digest).map_err(layout_failure)?;
    let mut blobs = opened.layout.closure(&opened.descriptor).map_err(layout_failure)?;
    for (descriptor, _) in &said {
        blobs.extend(opened.layout.closure(descriptor).map_err(layout_failure)?);
    }
    blobs.sort_by_key(|blob| blob.digest);
    blobs.dedup_by_key(|blob| blob.digest);
    Ok(Moved {
        digest: opened.descriptor.digest,
        media_type: opened.descriptor.media_type.clone(),
        artifact_type: opened.descriptor.artifact_type.clone(),
        blobs: blobs.len(),
        bytes: blobs.iter().map(|blob| blob.size).sum(),
        transferred: 0,
        referrers: said.len(),
    })
}

/// Gives a package another name.
pub fn tag(args: &TagArgs) -> Result<(), Failure> {
    let digest = match Place::there(&args.package)? {
        Place::Registry(reference) => {
            registry(&args.registry)?.tag(&reference, &args.tag).map_err(registry_failure)?.digest
        }
        Place::Layout(folder, name) => {
            let layout = Layout::open(&folder).map_err(layout_failure)?;
            let descriptor = layout.resolve(name.as_deref()).map_err(layout_failure)?;
            if !writ_package::reference::is_tag(&args.tag) {
                return Err(Failure::Usage(format!("`{}` is no tag: letters, digits, `.`, `_` and `-`", args.tag)));
            }
            layout.tag(Some(&args.tag), &descriptor).map_err(layout_failure)?;
            descriptor.digest
        }
        Place::Archive(file) => {
            return Err(Failure::Usage(format!("{} is an archive: `writ copy` gives it another name", file.display())));
        }
    };
    named(&args.tag, digest, &args.format);
    Ok(())
}

#[derive(Serialize)]
struct Named<'a> {
    tag: &'a str,
    digest: Digest,
}

fn named(tag: &str, digest: Digest, format: &FormatArgs) {
    if format.is_json() {
        return output::print_json(&Named { tag, digest });
    }
    output::line(format!("{} is now called {}", digest, output::plain(tag)));
    output::line(digest);
}

#[derive(Serialize)]
struct Told<'a> {
    reference: &'a str,
    #[serde(flatten)]
    moved: &'a Moved,
}

fn told(what: &str, reference: &str, moved: &Moved, format: &FormatArgs) -> Result<(), Failure> {
    if format.is_json() {
        output::print_json(&Told { reference, moved });
        return Ok(());
    }
    output::line(format!(
        "{what} {}: {} blobs, {}, {} over the network, {} signatures and attestations",
        output::plain(reference),
        moved.blobs,
        size(moved.bytes),
        size(moved.transferred),
        moved.referrers
    ));
    output::line(moved.digest);
    Ok(())
}

/// Bytes as people read them.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..=9999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[derive(Serialize)]
struct Discovered {
    digest: Digest,
    referrers: Vec<Descriptor>,
}

/// Lists what is said of a package.
pub fn discover(args: &DiscoverArgs) -> Result<(), Failure> {
    let kind = args.artifact_type.as_deref();
    let (digest, mut referrers) = match Place::there(&args.package)? {
        Place::Registry(reference) if !args.registry.offline => {
            let registry = registry(&args.registry)?;
            let (descriptor, _) = registry.manifest(&reference).map_err(registry_failure)?;
            let found = registry.referrers(&reference, descriptor.digest, kind).map_err(registry_failure)?;
            (descriptor.digest, found)
        }
        Place::Registry(_) | Place::Layout(..) | Place::Archive(_) => {
            let opened = open(&args.package, &args.registry)?;
            let found = opened.layout.referrers(opened.descriptor.digest).map_err(layout_failure)?;
            let told = |(mut descriptor, manifest): (Descriptor, writ_package::Manifest)| {
                descriptor.artifact_type = Some(manifest.kind().to_owned());
                descriptor.annotations = manifest.annotations;
                descriptor
            };
            (opened.descriptor.digest, found.into_iter().map(told).collect())
        }
    };
    referrers.retain(|one| kind.is_none_or(|kind| one.artifact_type.as_deref() == Some(kind)));
    if args.format.is_json() {
        output::print_json(&Discovered { digest, referrers });
        return Ok(());
    }
    output::line(output::bold(digest));
    for one in &referrers {
        let said = one.annotation("dev.sigstore.bundle.predicateType").unwrap_or_default();
        let kind = one.artifact_type.as_deref().unwrap_or("unknown");
        output::line(format!("  {}  {} {}", one.digest, output::plain(kind), output::dim(output::plain(said))));
    }
    if referrers.is_empty() {
        output::line("  nothing is said of it: no signature, no attestation");
    }
    Ok(())
}
