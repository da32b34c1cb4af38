//! `writ inspect`: what a package asks for, for whoever reviews it (§21).

use serde::Serialize;
use writ_agentfile::directive::Directive;
use writ_agentfile::risk::{Item, Report, Tier};
use writ_core::Digest;
use writ_package::bundled::said;
use writ_package::check::{Package, check};

use super::{layout_failure, open, refused};
use crate::args::{InspectArgs, RegistryArgs};
use crate::exit::Failure;
use crate::output;

/// A package and what is said of it.
#[derive(Serialize)]
struct Shown<'a> {
    digest: Digest,
    config: &'a writ_package::config::Config,
    annotations: &'a writ_package::manifest::Annotations,
    lock: &'a writ_agentfile::Lock,
    files: usize,
    signatures: &'a [Statement],
    /// No scanner of vulnerabilities is asked.
    vulnerabilities: Option<()>,
}

/// A statement that nobody checked.
#[derive(Serialize)]
struct Statement {
    digest: Digest,
    #[serde(rename = "predicateType")]
    kind: String,
}

/// Shows it.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let (package, signatures) = read(&args.package, &args.registry)?;
    if let Some(update) = &args.diff {
        let (update, _) = read(update, &args.registry)?;
        return diff(&package, &update, args);
    }
    if args.format.is_json() {
        output::print_json(&Shown {
            digest: package.descriptor.digest,
            config: &package.config,
            annotations: &package.manifest.annotations,
            lock: &package.lock,
            files: package.files.len(),
            signatures: &signatures,
            vulnerabilities: None,
        });
        return Ok(());
    }
    human(&package, &signatures);
    Ok(())
}

fn read(text: &str, args: &RegistryArgs) -> Result<(Package, Vec<Statement>), Failure> {
    let opened = open(text, args)?;
    let package = check(&opened.layout, &opened.descriptor).map_err(|error| refused(&error))?;
    let (good, bad) = said(&opened.layout, &opened.descriptor).map_err(layout_failure)?;
    let mut out: Vec<Statement> =
        good.into_iter().map(|one| Statement { digest: one.descriptor.digest, kind: one.kind }).collect();
    out.extend(bad.into_iter().map(|one| Statement { digest: one.digest, kind: format!("unreadable: {}", one.why) }));
    Ok((package, out))
}

fn human(package: &Package, signatures: &[Statement]) {
    let Package { config, lock, manifest, .. } = package;
    let report = &config.report;
    output::line(format!("{}  {}", output::bold(output::plain(&config.name)), package.descriptor.digest));
    output::line(format!("risk {}", tier(report.tier)));
    for why in &report.why {
        output::line(format!("    {}", output::plain(why)));
    }
    let words = |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    output::line(format!("\ncommand      {}", output::plain(&words(vec![config.command.join(" ")]))));
    let base = lock.base_image.as_ref().map(|base| {
        let ceiling = if base.package { ", whose ceiling holds" } else { ", an image" };
        format!("{}/{}@{}{ceiling}", base.registry, base.name, base.digest)
    });
    output::line(format!("base         {}", output::plain(&base.unwrap_or_else(|| "none".to_owned()))));
    for (name, items) in lists(report) {
        list(name, items);
    }
    for name in ["version", "licenses", "source", "revision", "created"] {
        if let Some(value) = manifest.annotations.get(&format!("org.opencontainers.image.{name}")) {
            output::line(format!("{name:<12} {}", output::plain(value)));
        }
    }
    output::line(format!("files        {} in {} layers", package.files.len(), package.layers.len()));
    if signatures.is_empty() {
        output::line(format!("signatures   {}", output::warn("none")));
    }
    for one in signatures {
        output::line(format!(
            "signatures   {} {}",
            output::plain(&one.kind),
            output::dim("(not checked: `writ verify`)")
        ));
    }
    output::line("scans        none: Writ asks no scanner of vulnerabilities");
}

fn lists(report: &Report) -> [(&'static str, &[Item]); 9] {
    [
        ("hosts", &report.hosts),
        ("mounts", &report.mounts),
        ("credentials", &report.credentials),
        ("tools", &report.tools),
        ("risky tools", &report.risky_tools),
        ("permits", &report.permits),
        ("forbids", &report.forbids),
        ("ceilings", &report.ceilings),
        ("unsupported", &report.unsupported),
    ]
}

fn list(name: &str, items: &[Item]) {
    if items.is_empty() {
        output::line(format!("{name:<12} none"));
    }
    for (at, item) in items.iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        let line = output::dim(format!("line {}", item.line));
        output::line(format!("{name:<12} {} {line}", output::plain(&item.text)));
    }
}

fn tier(tier: Tier) -> String {
    match tier {
        Tier::Low => output::good(tier.as_str()),
        Tier::Medium => output::warn(tier.as_str()),
        Tier::High | Tier::Critical => output::bad(tier.as_str()),
    }
}

/// What an update newly asks for.
#[derive(Serialize)]
struct Difference<'a> {
    before: Digest,
    after: Digest,
    risk: [&'static str; 2],
    more: Vec<Change<'a>>,
    less: Vec<Change<'a>>,
    /// Files that are new, hold something else, or may be run where they could not.
    changed: Vec<&'a str>,
    /// Files that are there no more.
    removed: Vec<&'a str>,
}

#[derive(Serialize)]
struct Change<'a> {
    what: &'a str,
    items: &'a [Item],
}

fn shown<'a>(list: &'a [(&'static str, Vec<Item>)]) -> Vec<Change<'a>> {
    list.iter().map(|(what, items)| Change { what, items }).collect()
}

/// What is started and what it is made of, where `other` has no such line.
fn parts(package: &Package, other: &Package) -> Option<(&'static str, Vec<Item>)> {
    let of = |package: &Package| -> Vec<Item> {
        let is_part = |directive: &Directive| {
            matches!(
                directive,
                Directive::Cmd(_)
                    | Directive::Shell(_)
                    | Directive::Server { .. }
                    | Directive::Mcp(_)
                    | Directive::Function(_)
                    | Directive::Skill(_)
                    | Directive::Sop(_)
                    | Directive::Memory { .. }
            )
        };
        let entries = package.linted.agent.entries.iter().filter(|entry| is_part(&entry.directive));
        entries.map(|entry| Item { text: entry.quoted(), line: entry.line() }).collect()
    };
    let known = of(other);
    let own: Vec<Item> =
        of(package).into_iter().filter(|item| known.iter().all(|known| known.text != item.text)).collect();
    (!own.is_empty()).then_some(("parts", own))
}

fn diff(before: &Package, after: &Package, args: &InspectArgs) -> Result<(), Failure> {
    let (old, new) = (&before.config.report, &after.config.report);
    let (mut more, mut less) = (new.beyond(old), old.beyond(new));
    more.extend(parts(after, before));
    less.extend(parts(before, after));
    let held = |package: &Package, path: &str| package.files.get(path).map(|file| (file.digest, file.run));
    let changed = |path: &&str| held(before, path) != held(after, path);
    let changed: Vec<&str> = after.files.keys().map(String::as_str).filter(changed).collect();
    let removed = before.files.keys().filter(|path| !after.files.contains_key(*path));
    let removed: Vec<&str> = removed.map(String::as_str).collect();
    if args.format.is_json() {
        output::print_json(&Difference {
            before: before.descriptor.digest,
            after: after.descriptor.digest,
            risk: [old.tier.as_str(), new.tier.as_str()],
            more: shown(&more),
            less: shown(&less),
            changed,
            removed,
        });
    } else {
        output::line(format!("risk {} → {}", tier(old.tier), tier(new.tier)));
        for (sign, list) in [("+", &more), ("-", &less)] {
            for (what, items) in list {
                for item in items {
                    let told = format!("{sign} {what:<12} {} (line {})", item.text, item.line);
                    let told = output::plain(&told);
                    output::line(if sign == "+" { output::bad(told) } else { output::good(told) });
                }
            }
        }
        if more.is_empty() && less.is_empty() {
            output::line("it asks for nothing more and nothing less");
        }
        for (sign, paths) in [("~", changed), ("-", removed)] {
            for path in paths {
                output::line(output::plain(&format!("{sign} file         {path}")));
            }
        }
    }
    if args.exit_code && (!more.is_empty() || new.tier > old.tier) { Err(Failure::No) } else { Ok(()) }
}
