//! Limits that the kernel holds around a command.
//!
//! Owns the way from a [`Confinement`], which says what a command may reach, to a process that cannot reach more: namespaces, mounts,
//! Landlock, system-call filters, capabilities, limits. Reads no policy, keeps no ledger and carries no traffic: it hands listening sockets
//! out; nothing is run without a [`writ_policy::Grant`]. Its invariant: a layer that was asked for and cannot be had is an error, so a command that runs at all runs with all of it.
//!
//! The only room with `unsafe`: what has no wrapper stands in `sys`, each with its reason.

mod attack;
mod calls;
mod confinement;
mod features;
mod host_path;
mod inside;
mod message;
mod plan;
mod search;
mod self_test;
mod supervise;
mod sys;

pub use attack::{BEYOND_A_KERNEL, Suite, attack, list as attacks};
pub use confinement::{
    Bind, Confinement, Environment, Identity, Layered, Limits, Link, Network, Pass, Ports, Reading, Session, Shown,
    Survivors, UnixSockets,
};
pub use features::{Cgroups, Controllers, Features, Layer, Level};
pub use host_path::{HostPath, HostPathError};
pub use message::Step;
pub use plan::{CHANGES, PlanError, is_reserve};
pub use self_test::{Result as AttackResult, SelfTest, SelfTestError, self_test};
pub use supervise::{
    Act, Asked, Awaited, Book, COPY, Command, Connected, End, Ending, Host, Lease, Listeners, Memory, MemoryHeldBy,
    Noted, Observer, Outcome, Refused, Replaced, RunError, STAND_IN, Shared, Told, Use, become_reader, begin_closed,
    close_to_others, detach, is_open_to_others, listen, read_now, run, sweep,
};
pub use sys::memory::{Locked, SECRET};
