//! Where an agent runs: machine, user, container, pod.
//!
//! Reads what the kernel shows of the process that asks, and the files that container engines and Kubernetes put beside it. Each part has
//! its standing: what the kernel tells, and that process could not have made so, is observed; the rest, as what a file tells, is reported.
//! Refuses to guess: a part that nothing tells is absent. Page: `spec/identity.md`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Asker;
use crate::procfs::Proc;

/// Largest file that is read here.
const MAX: u64 = 1 << 20;
/// What a document puts before the names of an environment's members.
pub const MEMBER: &str = "environment.";
/// The right to mount, among a process's: `CAP_SYS_ADMIN`.
const MOUNTS: u64 = 1 << 21;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The parts.
    pub environment: Environment,
    /// How those are known that are not reported, by member.
    standing: BTreeMap<String, Standing>,
}

impl Seen {
    /// An environment as a document tells of it, with the standing of its members: `environment.host`.
    pub fn recorded(environment: &Environment, standing: &BTreeMap<String, Standing>) -> Self {
        let member = |(name, known): (&String, &Standing)| Some((name.strip_prefix(MEMBER)?.to_owned(), *known));
        Self { environment: environment.clone(), standing: standing.iter().filter_map(member).collect() }
    }

    /// The members that are known, each with its standing.
    pub fn members(&self) -> Vec<(&'static str, Standing)> {
        self.parts().into_iter().filter_map(|(member, _, value)| value.map(|_| (member, self.known(member)))).collect()
    }

    /// What a policy's patterns are held against, and how each is known.
    pub fn names(&self) -> Vec<(String, Standing)> {
        let named = |(member, kind, value): (&str, &str, Option<String>)| {
            value.map(|value| (format!("{kind}:{value}"), self.known(member)))
        };
        self.parts().into_iter().filter_map(named).collect()
    }

    /// Whether the kernel tells of the process itself, and not of a namespace that it made.
    pub fn is_genuine(&self) -> bool {
        self.known("uid") == Standing::Observed
    }

    /// Whether a member is known from the kernel.
    pub fn is_observed(&self, member: &str) -> bool {
        self.known(member) == Standing::Observed
    }

    /// The same with what an engine told of the container.
    #[must_use]
    pub fn made_from(mut self, image: Option<String>, digest: Option<String>, standing: Standing) -> Self {
        let told = [("image", image.is_some()), ("imageDigest", digest.is_some())];
        let told = told.into_iter().filter(|(_, is_told)| *is_told);
        self.standing.extend(told.map(|(member, _)| (member.to_owned(), standing)));
        self.environment.image = image.or(self.environment.image);
        self.environment.image_digest = digest.or(self.environment.image_digest);
        self
    }

    fn known(&self, member: &str) -> Standing {
        self.standing.get(member).copied().unwrap_or(Standing::Reported)
    }

    /// Each member, what patterns call it, and its value.
    fn parts(&self) -> [(&'static str, &'static str, Option<String>); 8] {
        let Environment { host, uid, user, container, image, image_digest, pod, pod_uid } = self.environment.clone();
        [
            ("host", "host", host),
            ("uid", "uid", uid.map(|uid| uid.to_string())),
            ("user", "user", user),
            ("container", "container", container),
            ("image", "container", image),
            ("imageDigest", "image", image_digest),
            ("pod", "pod", pod),
            ("podUid", "pod-uid", pod_uid),
        ]
    }
}

/// What the environment of a process is.
pub fn see(asker: Asker) -> Seen {
    let proc = asker.id().and_then(|id| Some((id, Proc::open().ok()?)));
    let of_process = |name: &str| {
        let (id, proc) = proc.as_ref()?;
        proc.text(format!("{id}/{name}")).ok()
    };
    // In a user namespace of its own whoever asks is root, names the machine and mounts what it likes.
    let genuine = proc.as_ref().is_some_and(|(id, proc)| proc.is_in_first_users(*id));
    look(Path::new("/"), &of_process, genuine)
}

/// The same below a root, with a process's own files; `genuine` where what the kernel tells of it is not of its own making.
fn look(root: &Path, of_process: &dyn Fn(&str) -> Option<String>, genuine: bool) -> Seen {
    let read = |path: &str| text(&root.join(path));
    let host = read("proc/sys/kernel/hostname").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let status = of_process("status").unwrap_or_default();
    let after = |name: &str| status.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    let uid: Option<u32> = after("Uid:").and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    let user = uid.and_then(|uid| account(&read("etc/passwd")?, uid));
    let mounts = of_process("mountinfo").unwrap_or_default();
    // Who may mount could have mounted that, also over `/etc/passwd`, and may name the machine.
    let rights = after("CapEff:").and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    let mounted = standing(genuine && rights.is_none_or(|rights| rights & MOUNTS == 0));
    let by_group = || {
        let groups = of_process("cgroup")?;
        Some((id_in(&groups)?, standing(genuine && uid.is_some_and(|uid| !is_own_group(root, &groups, uid)))))
    };
    let kernel = container_of(&mounts).map(|id| (id, mounted)).or_else(by_group);
    let engine = read("run/.containerenv").unwrap_or_default();
    let said = |name: &str| {
        let line = engine.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))?;
        Some(line.trim().trim_matches('"').to_owned()).filter(|value| !value.is_empty())
    };
    let (container, container_standing) = kernel.map_or((None, Standing::Reported), |(id, known)| (Some(id), known));
    let space = read(NAMESPACE).map(|space| space.trim().to_owned()).filter(|space| !space.is_empty());
    let pod = space.and_then(|space| Some(format!("{space}/{}", host.as_deref()?)));
    let environment = Environment {
        uid,
        user,
        container: container.or_else(|| said("id")),
        image: said("image"),
        image_digest: said("imageid").map(|id| if id.starts_with("sha256:") { id } else { format!("sha256:{id}") }),
        pod,
        pod_uid: pod_of(&mounts),
        host,
    };
    let known = [
        ("host", mounted),
        ("uid", standing(genuine)),
        ("user", mounted),
        ("container", container_standing),
        ("podUid", mounted),
    ];
    Seen { environment, standing: known.into_iter().map(|(member, known)| (member.to_owned(), known)).collect() }
}

const fn standing(observed: bool) -> Standing {
    if observed { Standing::Observed } else { Standing::Reported }
}

/// Whether a user could have made and named the control group that it is in. Root can make any.
fn is_own_group(root: &Path, groups: &str, uid: u32) -> bool {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let found = path.and_then(|path| fs::symlink_metadata(root.join("sys/fs/cgroup").join(path)).ok());
    uid == 0 || found.is_none_or(|found| found.uid() == uid)
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
        let of_process = |name: &str| text(&root.path().join("proc/self").join(name));
        look(root.path(), &of_process, true)
    }

    #[test]
    fn a_machine_tells_its_name_and_user() {
        let here = see(Asker::This);
        assert!(here.environment.host.is_some() && here.environment.uid.is_some());
        let seen = lab(&[
            ("proc/sys/kernel/hostname", "build-7\n"),
            ("proc/self/status", "Name:\tx\nUid:\t0\t1000\t0\t0\n"),
            ("etc/passwd", "root:x:0:0::/:/bin/sh\nci-bot:x:1000:1000::/:/bin/sh\n"),
        ]);
        let names: Vec<String> = seen.names().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["host:build-7", "uid:1000", "user:ci-bot"]);
        assert!(lab(&[]).names().is_empty(), "what nothing tells is absent");
        // Whoever may administer the system names the machine, and mounts an `/etc/passwd`.
        let seen = lab(&[
            ("proc/sys/kernel/hostname", "build-7\n"),
            ("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
            ("etc/passwd", "ci-bot:x:0:0::/:/bin/sh\n"),
        ]);
        let names = seen.names().into_iter().map(|(name, standing)| (name, standing == Standing::Observed));
        let expected = [("host:build-7", false), ("uid:0", true), ("user:ci-bot", false)];
        assert_eq!(names.collect::<Vec<_>>(), expected.map(|(name, seen)| (name.to_owned(), seen)));
    }

    #[test]
    fn a_container_is_observed_where_the_kernel_tells_it() {
        let line = format!("600 500 0:1 /docker/containers/{CONTAINER}/hostname /etc/hostname rw - ext4 /dev/x rw\n");
        let seen = lab(&[("proc/self/mountinfo", &line)]);
        assert_eq!(seen.names(), [(format!("container:{CONTAINER}"), Standing::Observed)]);
        let elsewhere = line.replace(" /etc/hostname ", " /work ");
        assert!(lab(&[("proc/self/mountinfo", &elsewhere)]).names().is_empty(), "a path of the agent's own making");
        // Who may mount could have mounted it.
        let seen = lab(&[("proc/self/mountinfo", &line), ("proc/self/status", "CapEff:\t0000000000200000\n")]);
        assert_eq!(seen.names(), [(format!("container:{CONTAINER}"), Standing::Reported)]);
        let group = format!("system.slice/docker-{CONTAINER}.scope");
        let (cgroup, made) = (format!("0::/{group}\n"), format!("sys/fs/cgroup/{group}/cgroup.type"));
        let own = rustix::process::geteuid().as_raw();
        for (uid, known) in [(own.max(1) + 1, Standing::Observed), (own, Standing::Reported), (0, Standing::Reported)] {
            let status = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
            let files = [("proc/self/cgroup", cgroup.as_str()), ("proc/self/status", &status), (&made, "domain\n")];
            let container = lab(&files).members().into_iter().find(|(name, _)| *name == "container");
            assert_eq!(container, Some(("container", known)), "{uid}");
        }
        let told =
            format!("engine=\"podman\"\nid=\"{CONTAINER}\"\nimage=\"ghcr.io/org/agent:1\"\nimageid=\"{CONTAINER}\"\n");
        let seen = lab(&[("run/.containerenv", &told)]);
        assert!(seen.names().iter().all(|(_, standing)| *standing == Standing::Reported), "{seen:?}");
        assert!(seen.names().contains(&("container:ghcr.io/org/agent:1".to_owned(), Standing::Reported)));
        assert!(seen.names().contains(&(format!("image:sha256:{CONTAINER}"), Standing::Reported)));
    }

    #[test]
    fn in_a_user_namespace_of_its_own_everything_is_reported() {
        let files = [("proc/sys/kernel/hostname", "build-7\n"), ("proc/self/status", "Uid:\t0\t0\t0\t0\n")];
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        }
        let of_process = |name: &str| text(&root.path().join("proc/self").join(name));
        let seen = look(root.path(), &of_process, false);
        assert_eq!(
            seen.names(),
            [("host:build-7".to_owned(), Standing::Reported), ("uid:0".to_owned(), Standing::Reported)]
        );
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
