//! Where an agent runs: machine, user, container, pod.
//!
//! Reads what the kernel shows of the process that asks, and the files that container engines and Kubernetes put beside it. Each part has
//! its standing: what the kernel tells is observed; what a file tells, which whoever is root there may write, is reported.
//! Refuses to guess: a part that nothing tells is absent. Page: `spec/identity.md`.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Asker;

/// Largest file that is read here.
const MAX: u64 = 1 << 20;
/// Hexadecimal digits of a container's id.
const ID: usize = 64;
/// What Kubernetes mounts into a pod's containers.
const NAMESPACE: &str = "var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How a part is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The kernel, or Writ itself, tells.
    Observed,
    /// A file, or the client, tells.
    Reported,
}

/// The part of an identity that says where the agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// The machine's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The user's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The user's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The container's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The image's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The image's digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// The pod: `namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The pod's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

/// An environment, and how each of its parts is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The parts.
    pub environment: Environment,
    /// Whether the kernel tells the container's id.
    pub container_observed: bool,
}

impl Seen {
    /// The members that are known, each with its standing.
    pub fn members(&self) -> Vec<(&'static str, Standing)> {
        let Environment { host, uid, user, container, image, image_digest, pod, pod_uid } = &self.environment;
        [
            ("host", host.is_some(), Standing::Observed),
            ("uid", uid.is_some(), Standing::Observed),
            ("user", user.is_some(), Standing::Observed),
            ("container", container.is_some(), self.container_standing()),
            ("image", image.is_some(), Standing::Reported),
            ("imageDigest", image_digest.is_some(), Standing::Reported),
            ("pod", pod.is_some(), Standing::Reported),
            ("podUid", pod_uid.is_some(), Standing::Observed),
        ]
        .into_iter()
        .filter_map(|(name, is_known, standing)| is_known.then_some((name, standing)))
        .collect()
    }

    const fn container_standing(&self) -> Standing {
        if self.container_observed { Standing::Observed } else { Standing::Reported }
    }

    /// What a policy's patterns are held against, and how each is known.
    pub fn names(&self) -> Vec<(String, Standing)> {
        let Environment { host, uid, user, container, image, image_digest, pod, pod_uid } = &self.environment;
        let named = |kind: &str, value: &Option<String>, standing| {
            value.as_ref().map(|value| (format!("{kind}:{value}"), standing))
        };
        [
            named("host", host, Standing::Observed),
            uid.map(|uid| (format!("uid:{uid}"), Standing::Observed)),
            named("user", user, Standing::Observed),
            named("container", container, self.container_standing()),
            named("container", image, Standing::Reported),
            named("image", image_digest, Standing::Reported),
            named("pod", pod, Standing::Reported),
            named("pod-uid", pod_uid, Standing::Observed),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What the environment of a process is. `root` is the file system's.
pub fn see(root: &Path, asker: Asker) -> Seen {
    let read = |path: &str| text(&root.join(path));
    let of_process = |name: &str| match asker {
        Asker::This => read(&format!("proc/self/{name}")),
        Asker::Process(id) => read(&format!("proc/{id}/{name}")),
        Asker::Unknown => None,
    };
    let host = read("proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let uid = of_process("status").and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:").map(str::to_owned))?;
        line.split_whitespace().nth(1)?.parse().ok()
    });
    let user = uid.and_then(|uid| account(&read("etc/passwd")?, uid));
    let mounts = of_process("mountinfo").unwrap_or_default();
    let kernel = container_of(&mounts).or_else(|| of_process("cgroup").and_then(|groups| id_in(&groups)));
    let engine = read("run/.containerenv").unwrap_or_default();
    let said = |name: &str| {
        let line = engine.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))?;
        Some(line.trim().trim_matches('"').to_owned()).filter(|value| !value.is_empty())
    };
    let container_observed = kernel.is_some();
    let space = read(NAMESPACE).map(|space| space.trim().to_owned()).filter(|space| !space.is_empty());
    let pod = space.and_then(|space| Some(format!("{space}/{}", host.as_deref()?)));
    let environment = Environment {
        uid,
        user,
        container: kernel.or_else(|| said("id")),
        image: said("image"),
        image_digest: said("imageid").map(|id| if id.starts_with("sha256:") { id } else { format!("sha256:{id}") }),
        pod,
        pod_uid: pod_of(&mounts),
        host,
    };
    Seen { environment, container_observed }
}

/// A small file's text. The kernel's files have no size, so that what is read has the bound.
fn text(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The name of an account.
fn account(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The container whose files are mounted over `/etc/hostname` and its like: `/var/lib/docker/containers/<id>/hostname`.
fn container_of(mounts: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (from, to) = (fields.next()?, fields.next()?);
        if matches!(to, "/etc/hostname" | "/etc/hosts" | "/etc/resolv.conf") { id_in(from) } else { None }
    })
}

/// The pod whose files are mounted: `/var/lib/kubelet/pods/<uid>/etc-hosts`.
fn pod_of(mounts: &str) -> Option<String> {
    mounts.lines().find_map(|line| {
        let from = line.split(' ').nth(3)?;
        let uid = from.split_once("/pods/")?.1.split('/').next()?;
        (uid.len() == 36 && uid.chars().all(|c| c.is_ascii_hexdigit() || c == '-')).then(|| uid.to_owned())
    })
}

/// The first container's id in a path.
fn id_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_hexdigit());
    words.into_iter().find(|word| word.len() == ID).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINER: &str = "3f9a1c023f9a1c023f9a1c023f9a1c023f9a1c023f9a1c023f9a1c023f9a1c02";

    fn lab(files: &[(&str, &str)]) -> Seen {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        see(root.path(), Asker::This)
    }

    #[test]
    fn a_machine_tells_its_name_and_user() {
        let here = see(Path::new("/"), Asker::This);
        assert!(here.environment.host.is_some() && here.environment.uid.is_some());
        let seen = lab(&[
            ("proc/sys/kernel/hostname", "build-7\n"),
            ("proc/self/status", "Name:\tx\nUid:\t0\t1000\t0\t0\n"),
            ("etc/passwd", "root:x:0:0::/:/bin/sh\nci-bot:x:1000:1000::/:/bin/sh\n"),
        ]);
        let names: Vec<String> = seen.names().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["host:build-7", "uid:1000", "user:ci-bot"]);
        assert!(lab(&[]).names().is_empty(), "what nothing tells is absent");
    }

    #[test]
    fn a_container_is_observed_where_the_kernel_tells_it() {
        let line = format!("600 500 0:1 /docker/containers/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/x rw\n");
        let seen = lab(&[("proc/self/mountinfo", &line)]);
        assert_eq!(seen.names(), [(format!("container:{CONTAINER}"), Standing::Observed)]);
        let elsewhere = line.replace(" /etc/hostname ", " /work ");
        assert!(lab(&[("proc/self/mountinfo", &elsewhere)]).names().is_empty(), "a path of the agent's own making");
        let cgroup = format!("0::/system.slice/docker-{CONTAINER}.scope\n");
        assert!(lab(&[("proc/self/cgroup", &cgroup)]).container_observed);
        let told =
            format!("engine=\"podman\"\nid=\"{CONTAINER}\"\nimage=\"ghcr.io/org/agent:1\"\nimageid=\"{CONTAINER}\"\n");
        let seen = lab(&[("run/.containerenv", &told)]);
        assert!(!seen.container_observed);
        assert!(seen.names().iter().all(|(_, standing)| *standing == Standing::Reported), "{seen:?}");
        assert!(seen.names().contains(&("container:ghcr.io/org/agent:1".to_owned(), Standing::Reported)));
        assert!(seen.names().contains(&(format!("image:sha256:{CONTAINER}"), Standing::Reported)));
    }

    #[test]
    fn a_pod_has_a_name_and_an_id() {
        let uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let line = format!("9 8 0:1 /var/lib/kubelet/pods/{uid}/etc-hosts /etc/hosts rw - ext4 /dev/x rw\n");
        let seen = lab(&[("proc/sys/kernel/hostname", "agent-0\n"), (NAMESPACE, "ci"), ("proc/self/mountinfo", &line)]);
        assert_eq!(
            (seen.environment.pod.as_deref(), seen.environment.pod_uid.as_deref()),
            (Some("ci/agent-0"), Some(uid))
        );
    }
}
