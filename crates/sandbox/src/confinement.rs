//! What a command may reach, as plain data.
//!
//! Owns the words; refuses nothing here (`plan` does, where the host is looked at). Its invariant: two confinements that are equal have one
//! canonical form, so a digest names one.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use writ_core::{Digest, json};

use crate::host_path::{HostPath, pairs};

/// Everything that a command may reach. What is deeper wins: a masked file below a writable folder is masked, a readable folder below a
/// masked one is readable. At the same path `masked` wins over `readOnly`, and that over `writable`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confinement {
    /// Where the command starts. Where reading is open it is readable; elsewhere it is empty but for what is granted.
    pub folder: HostPath,
    /// What may be read besides `readable` and `writable`.
    pub reading: Reading,
    /// Files and folders that can be written and read. They exist.
    pub writable: Vec<HostPath>,
    /// Folders that can be written and stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layered: Vec<Layered>,
    /// Files and folders that can be read. They exist.
    pub readable: Vec<HostPath>,
    /// Files and folders that can be neither read nor written nor replaced. What does not exist yet below a writable folder cannot be made
    /// (as a folder where the path ends with `/`).
    pub masked: Vec<HostPath>,
    /// Folders that are empty but for what is granted below them, and in which nothing else can be made: in a home of the command's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hollow: Vec<HostPath>,
    /// Files and folders below writable ones that cannot be written, renamed or replaced; the same for what does not exist yet.
    pub read_only: Vec<HostPath>,
    /// Files shown under another path: certificates, name resolution, a client's own copies.
    pub binds: Vec<Bind>,
    /// Names that lead to what is granted. Only where reading is closed there is room for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Device nodes besides `null`, `zero`, `full`, `random`, `urandom`, `tty` and terminals of its own.
    pub devices: Vec<HostPath>,
    /// Bytes that its own `/tmp` and `/dev/shm` hold together; `/dev/shm` alone where `/tmp` is a folder.
    pub temporary: u64,
    /// A folder of the host that is its `/tmp`, for what one command writes and the next reads. It is made if only its last name is missing.
    /// What it holds is bounded by its disk, and each file by `limits.fileSize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary_folder: Option<HostPath>,
    /// A folder of the host that is the user's home, in the place of what the host has there: what is granted below is shown in it. It is
    /// made if only its last name is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Bind>,
    /// What it reaches by network.
    pub network: Network,
    /// Whether it may make Unix sockets (pairs of connected ones it always may).
    pub unix_sockets: UnixSockets,
    /// Its environment.
    pub environment: Environment,
    /// What it may use up.
    pub limits: Limits,
    /// Who it is.
    pub identity: Identity,
    /// Whose session and terminal.
    pub session: Session,
    /// What becomes of its children when it ends.
    pub survivors: Survivors,
}

impl Confinement {
    /// Nothing but reading, in `folder`: what the other fields start from.
    pub fn reading(folder: HostPath) -> Self {
        Self {
            folder,
            reading: Reading::Open,
            writable: Vec::new(),
            layered: Vec::new(),
            readable: Vec::new(),
            masked: Vec::new(),
            hollow: Vec::new(),
            read_only: Vec::new(),
            binds: Vec::new(),
            links: Vec::new(),
            devices: Vec::new(),
            temporary: 512 << 20,
            temporary_folder: None,
            home: None,
            network: Network::Closed,
            unix_sockets: UnixSockets::Closed,
            environment: Environment { pass: Pass::All, drop: Vec::new(), set: Vec::new() },
            limits: Limits::default(),
            identity: Identity::Owner,
            session: Session::Own,
            survivors: Survivors::End,
        }
    }

    /// The digest of its canonical form.
    pub fn digest(&self) -> Digest {
        Digest::of(json::to_canonical(self).as_bytes())
    }
}

/// What may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// Everything that is not masked.
    Open,
    /// What is listed, and nothing else.
    Closed,
}

/// A folder whose changes go elsewhere. It exists, and nothing is mounted below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Layered {
    /// The folder.
    pub path: HostPath,
    /// Where its changes go, for what one command writes and the next reads: below `changes`, as an overlay keeps them. It is made if only its
    /// last name is missing.
    pub layer: HostPath,
    /// Whether they are to outlast a power cut. Then everything on the layer's file system is written to the disk when the command has ended,
    /// which takes as long as others have written there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}

/// A file or folder shown under another path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bind {
    /// What is shown.
    pub source: HostPath,
    /// Where. It exists, unless it lies in a folder of the sandbox's own.
    pub target: HostPath,
    /// Whether it can be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
}

/// A name of the sandbox's own that leads elsewhere in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Link {
    /// The name. Nothing granted is there, above it, or below it.
    pub name: HostPath,
    /// Where it leads.
    pub target: HostPath,
}

/// A text that the sandbox shows as a file, which lies on no disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Where: over a file that is there, or below `/dev`.
    pub place: HostPath,
    /// What it says.
    pub text: Vec<u8>,
}

/// What is reached by network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// The host's network.
    Open,
    /// A loopback of its own.
    Closed,
    /// A loopback of its own, where somebody outside answers on these ports.
    Proxied(Ports),
}

/// Where somebody outside answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ports {
    /// TCP on 127.0.0.1: an HTTP proxy.
    pub http: u16,
    /// TCP on every loopback address: for programs that know no proxy.
    pub direct: Vec<u16>,
    /// UDP on 127.0.0.1: names.
    pub dns: Option<u16>,
    /// TCP on 127.0.0.1: what a client's hooks ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<u16>,
}

impl Default for Ports {
    fn default() -> Self {
        Self { http: 3128, direct: vec![443, 80], dns: Some(53), hooks: None }
    }
}

/// Whether Unix sockets can be made. A socket can be reached through any folder that is shown, whoever listens; kernels before Linux 7.1
/// cannot tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnixSockets {
    /// Only pairs of connected ones.
    Closed,
    /// Any, so whoever listens below a folder that is shown can be talked to.
    Open,
}

/// The command's environment: what `pass` lets through, without `drop`, with `set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Environment {
    /// Of the caller's.
    pub pass: Pass,
    /// Names that do not pass; a last `*` stands for any ending.
    pub drop: Vec<String>,
    /// Names and values, over those that passed.
    #[serde(with = "pairs")]
    pub set: Vec<(OsString, OsString)>,
}

/// Which of the caller's variables pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pass {
    /// All.
    All,
    /// These; a last `*` stands for any ending.
    Only(Vec<String>),
}

/// What may be used up; nothing is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Milliseconds until everything ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<u64>,
    /// Seconds of processor time, of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<u64>,
    /// Bytes of memory, of all processes together: only a control group can hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Bytes of memory, of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_memory: Option<u64>,
    /// Processes and threads at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Bytes of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// Open files, of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
}

/// Who the command is: uid 0 only where nothing can be mounted and root owns `folder`, and then without any right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Identity {
    /// The caller; for root the owner of `folder`.
    Owner,
    /// Only for root: this user.
    User {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
}

/// Session and terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Session {
    /// A session of its own, without a terminal that controls it.
    Own,
    /// The caller's session, terminal and process group: for what people use.
    Terminal,
}

/// What becomes of the command's children when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Survivors {
    /// They end.
    End,
    /// They may go on until the last has ended or the supervisor ends them.
    Stay,
}
