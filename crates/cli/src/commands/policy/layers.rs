//! `writ policy lock` and `writ policy show --resolved`: what a policy leads to.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use writ_core::Digest;
use writ_engine::governing::layers::LayerRef;
use writ_engine::governing::lock::{Lock, Locked};
use writ_engine::governing::{self, Elsewhere, Governing, Missing, Trust};
use writ_service::Policies;

use super::{Summary, report, summary};
use crate::args::{Format, FormatArgs};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Where `writ policy lock` takes policies from elsewhere: what is locked stays, the rest is fetched.
struct Fetching<'a> {
    network: Policies,
    known: Option<Lock>,
    /// References that are fetched though they are locked; all, where that is absent.
    anew: Option<&'a [String]>,
}

impl Elsewhere for Fetching<'_> {
    fn bytes(&self, address: &str) -> Result<Vec<u8>, Missing> {
        let anew = self.anew.is_none_or(|anew| anew.iter().any(|one| one == address));
        let known = self.known.as_ref().and_then(|lock| lock.get(address)).filter(|_| !anew);
        if let Some(document) = known.and_then(|known| known.document.as_ref()) {
            return Ok(document.clone().into_bytes());
        }
        self.network.fetch(address).map_err(|why| Missing { rule: "not-fetched", why })
    }

    /// The files are what they are now: that is what is pinned.
    fn check(&self, _reference: &str, _file: Digest) -> Result<(), Missing> {
        Ok(())
    }
}

/// Makes the lock beside a policy, or says what is another than it says.
pub fn lock(file: &Path, check: bool, update: &[String]) -> Result<(), Failure> {
    let file = std::path::absolute(file)?;
    let known = match Lock::read(&file) {
        Ok(known) => known,
        Err(error) if check => {
            output::line(format!("{} {}", output::bad("✗"), output::plain(&error.to_string())));
            return Err(Failure::No);
        }
        Err(error) => {
            output::note(format!(
                "{} {}; it is made anew",
                output::warn("warning:"),
                output::plain(&error.to_string())
            ));
            None
        }
    };
    let trust = Trust::open(environment::home().state.as_deref());
    let bytes = governing::read(&file).map_err(report)?;
    let governing = governing::open_alone(&file, bytes, None, &trust).map_err(report)?;
    let anew = (!check).then_some(update);
    let fetching = Fetching { network: Policies::default(), known: known.clone(), anew };
    let (_, locked) = governing::with_layers(governing, None, &trust, &fetching).map_err(report)?;
    if let Some(other) = update.iter().find(|one| !locked.iter().any(|locked| locked.reference == **one)) {
        return Err(Failure::Usage(format!(
            "`{other}` is none of the references: `writ policy show --resolved` shows them"
        )));
    }
    let before = known.map(|lock| lock.references).unwrap_or_default();
    let differences = differences(&before, &locked);
    for line in &differences {
        output::line(output::plain(line));
    }
    let path = Lock::path(&file);
    let shown = output::path(&path);
    match (differences.is_empty(), check) {
        (true, _) => {
            output::line(format!("{} {shown} is as it has to be: {} references", output::good("✓"), locked.len()))
        }
        (false, true) => {
            output::line(format!("{} {shown} is not what its references lead to now", output::bad("✗")));
            return Err(Failure::No);
        }
        (false, false) if locked.is_empty() => {
            fs::remove_file(&path)?;
            output::line(format!("removed {shown}: the policy names no other file"));
        }
        (false, false) => {
            write(&path, &Lock::of(locked).to_bytes())?;
            output::line(format!("wrote {shown}"));
        }
    }
    Ok(())
}

/// Whole or not at all: a hook may read it meanwhile.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    // An agent may have made a link of that name, to a file that is the human's alone.
    match fs::remove_file(&name) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Err(_) | Ok(()) => {}
    }
    let mut file = fs::File::options().write(true).create_new(true).open(&name)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(fs::rename(&name, path)?)
}

/// What is another, one line each.
fn differences(before: &[Locked], now: &[Locked]) -> Vec<String> {
    let known = |list: &[Locked], reference: &str| list.iter().find(|one| one.reference == reference).cloned();
    let mut out = Vec::new();
    for one in now {
        match known(before, &one.reference) {
            Some(old) if old == *one => {}
            Some(old) => out.push(format!("~ {}  {} → {}", one.reference, old.digest, one.digest)),
            None => out.push(format!("+ {}  {}", one.reference, one.digest)),
        }
    }
    let gone = before.iter().filter(|old| known(now, &old.reference).is_none());
    out.extend(gone.map(|old| format!("- {}  {}", old.reference, old.digest)));
    out
}

/// A policy and all that it leads to.
#[derive(Serialize)]
struct Resolved<'a> {
    #[serde(flatten)]
    root: Summary<'a>,
    layers: Vec<LayerRef>,
}

/// Shows each policy, its file and digest, and on whose calls it speaks.
pub fn show(governing: &Governing, args: &FormatArgs) -> Result<(), Failure> {
    let layers = governing.list();
    if args.format == Format::Json {
        output::print_json(&Resolved { root: summary(governing), layers });
        return Ok(());
    }
    let name = |name: &str| output::bold(output::plain(name));
    output::line(format!("{}  every call", name(governing.policy.name())));
    output::line(format!(
        "    {}\n    {}  {}",
        output::path(&governing.path),
        governing.policy.digest(),
        governing.signed.as_str()
    ));
    for layer in &layers {
        let of = layer.of.and_then(|of| layers.get(of)).map_or_else(|| governing.policy.name(), |of| of.name.as_str());
        output::line(format!("{}  {}", name(&layer.name), output::plain(&layer.about())));
        output::line(format!("    {}", output::plain(&layer.place())));
        output::line(format!("    {}  {}", layer.digest, layer.signed));
        output::line(format!("    named by {}{}", output::plain(of), layer.pointer));
        if let Some(prefix) = &layer.prefix {
            output::line(format!("    attestations begin with {}", output::plain(prefix)));
        }
    }
    Ok(())
}
