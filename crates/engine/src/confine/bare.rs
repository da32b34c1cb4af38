//! What is different where there are no namespaces: no network of its own, and nothing that is mounted.
//!
//! Owns the files that stand for what a mount would show, for one run. Refuses nothing: what cannot be held the sandbox itself refuses.
//! Invariant: the files are gone with the run; those of a run that was killed go with the next.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use writ_egress::{Places, java_options, variables};
use writ_evidence::keys::random;
use writ_sandbox::{Confinement, HostPath, Network, Shown};

use super::trust::{Form, TrustPlace};

/// How the folder of a run is called; its number and chance follow.
const NAME: &str = "writ-trust-";

/// What honours a proxy is not to look at the host's loopback itself: it would not be told why nothing is there.
pub fn fit(confinement: &mut Confinement) {
    if !matches!(confinement.network, Network::Proxied(_)) {
        return;
    }
    for (name, value) in &mut confinement.environment.set {
        if name.eq_ignore_ascii_case("NO_PROXY") {
            value.clear();
        }
    }
}

/// The files of a run, which can be read inside. They go with this value.
pub struct Files(PathBuf);

impl Drop for Files {
    fn drop(&mut self) {
        // What stays is removed by the next.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Writes what would be mounted to files, and has the run's variables name them.
pub fn show(
    places: &[TrustPlace],
    shown: Vec<Shown>,
    command: &mut writ_sandbox::Command,
    confinement: &mut Cow<'_, Confinement>,
) -> io::Result<Option<Files>> {
    let port = match &confinement.network {
        Network::Proxied(ports) if !shown.is_empty() => ports.http,
        Network::Proxied(_) | Network::Open | Network::Closed => return Ok(None),
    };
    // Where others may go too: the command need not be the same user. It lies outside of what it may write.
    let above = std::env::temp_dir().canonicalize()?;
    sweep(&above);
    let folder = above.join(format!("{NAME}{}-{:032x}", std::process::id(), random().map_err(io::Error::other)?));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let files = Files(folder.clone());
    let mut written = Vec::new();
    for (place, Shown { text, .. }) in places.iter().zip(shown) {
        let name = match place.form {
            Form::Authority => "authority.pem",
            Form::Bundle => "bundle.pem",
            Form::Java => "cacerts",
        };
        let path = folder.join(name);
        if !written.contains(&path) {
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
            written.push(path);
        }
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    confinement.to_mut().readable.push(HostPath::new(folder.as_os_str()).map_err(io::Error::other)?);
    let [authority, bundle, java] = ["authority.pem", "bundle.pem", "cacerts"].map(|name| folder.join(name));
    let named = variables(&Places { proxy: port, trust: Some((&authority, &bundle)) });
    let named = named.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    // What says where the proxy is stands in the plan already.
    command.environment.extend(named.filter(|(_, value)| Path::new(value).starts_with(&folder)));
    if java.exists() {
        command.environment.push(("JAVA_TOOL_OPTIONS".into(), java_options(port, &java).into()));
    }
    Ok(Some(files))
}

/// Removes what runs that were killed have left.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-')).map(|(number, _)| number);
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // It may be somebody else's.
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}
