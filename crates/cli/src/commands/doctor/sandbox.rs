//! What the kernel can hold here, and what would have it hold more.

use std::fs;
use std::path::Path;

use writ_engine::Home;
use writ_engine::confine::{exec, strength};
use writ_engine::governing::layers::Caller;
use writ_engine::governing::{self, Trust};
use writ_policy::Confine;
use writ_sandbox::{Features, Layer, Level};

use super::{Finding, bad, good};

/// The level that can be had, what is missing for the next, and whether the policy here wants more.
pub fn check(home: &Home, cwd: &Path) -> Vec<Finding> {
    let features = match exec::features(home) {
        Ok(features) => features,
        Err(error) => {
            return vec![bad(format!("what the kernel can hold here is not known: {error}"), "mend the above")];
        }
    };
    let wanted = governing::find(cwd)
        .and_then(|path| governing::open(&path, None, &Trust::open(home.state.as_deref())).ok())
        .and_then(|governing| {
            let all = governing.policies(Caller::Untold).into_iter().filter_map(|policy| policy.confine());
            all.max_by_key(|confine| confine.at_least)
        });
    let mut out = vec![held(&features, wanted)];
    if features.cgroups.memory.is_none() {
        out.push(note(
            "memory of a whole call cannot be limited here, only that of each process: no control group can be written",
            "start the client with `systemd-run --user --scope -p Delegate=yes`, or as root",
        ));
    }
    out
}

fn held(features: &Features, wanted: Option<Confine>) -> Finding {
    let level = features.level();
    let word = level.map_or("none", strength::word);
    let number = level.map_or(0, Level::number);
    let next = [Level::Filters, Level::Landlock, Level::Namespaces, Level::Full]
        .into_iter()
        .find(|next| level.is_none_or(|level| *next > level));
    let missing = next.map(|next| features.missing(next)).unwrap_or_default();
    let remedy: Vec<String> = missing.iter().map(|layer| raise(*layer)).collect();
    let lacks = match next.zip(missing.first()) {
        None => String::new(),
        Some((next, layer)) => format!("; `{}` needs {layer}", strength::word(next)),
    };
    let text = format!("the kernel can hold calls at level `{word}` ({number} of 4){lacks}");
    match wanted {
        Some(confine) if confine.at_least > number => bad(
            format!("{text}; the policy wants more, so calls are denied"),
            format!("{}; or lower `enforce.atLeast`", remedy.join("; ")),
        ),
        Some(_) | None if remedy.is_empty() => good(text),
        Some(_) | None => note(text, &remedy.join("; ")),
    }
}

/// What is as it should be, and could be better.
fn note(text: impl Into<String>, remedy: &str) -> Finding {
    Finding { good: true, text: text.into(), remedy: remedy.to_owned() }
}

/// What would bring a layer.
fn raise(layer: Layer) -> String {
    let contained = contained();
    match layer {
        Layer::Filters => "a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        Layer::Notifications => {
            "Linux 5.5 or later, or a container runtime that passes seccomp's listener on".to_owned()
        }
        Layer::Landlock => {
            "Linux 5.13 or later with `landlock` in `/sys/kernel/security/lsm` (boot option `lsm=landlock,…`)"
                .to_owned()
        }
        Layer::Mounts | Layer::Processes | Layer::Networks | Layer::Others => {
            if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
                "an AppArmor profile for `writ` with `userns,`, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
                    .to_owned()
            } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
                "`sysctl kernel.unprivileged_userns_clone=1`".to_owned()
            } else if is("/proc/sys/user/max_user_namespaces", "0") {
                "`sysctl user.max_user_namespaces=10000`".to_owned()
            } else if contained {
                "a container whose seccomp profile allows user namespaces (`--security-opt seccomp=…`)".to_owned()
            } else {
                "a kernel with user, mount, process and network namespaces".to_owned()
            }
        }
        Layer::FreshProc => {
            "a container whose `/proc` has no masked paths (`--security-opt unmask=ALL`, `procMount: Unmasked`)"
                .to_owned()
        }
        Layer::MappedOwners => "root, on a file system that maps owners".to_owned(),
        Layer::Memory => "a control group that can be written".to_owned(),
        Layer::Overlay => "Linux 5.11 or later with overlayfs".to_owned(),
    }
}

/// Whether system calls are filtered already, as containers do.
fn contained() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn is(path: &str, value: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
}
