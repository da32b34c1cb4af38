//! A process that goes on when whoever started it has ended.
//!
//! Owns its leave: whoever waits for the caller's streams or children does not wait for it. Refuses nothing. Its invariant: what it says of
//! its beginning is all it ever says.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, chdir, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::sys::process::{go_on_alone, replace_streams};

/// Leaves whoever started this process, which is to have just begun. What comes back goes to what was its standard output, and is what
/// was its standard input, still open.
pub fn detach() -> io::Result<(File, OwnedFd)> {
    go_on_alone()?;
    chdir(c"/")?;
    let told: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    let kept: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    replace_streams(nothing.as_fd())?;
    Ok((told.into(), kept))
}

/// From here on nobody of the same user can look into this process.
pub fn close_to_others() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Becomes another user for good, and keeps of root's rights only that to read every file. For a process that has one thread.
pub fn become_reader(uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let reads = CapabilitySet::DAC_READ_SEARCH;
    let sets = CapabilitySets { effective: reads, permitted: reads, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    set_keep_capabilities(false)?;
    Ok(set_no_new_privs(true)?)
}

/// While it lives, nobody of the same user can look into this process, and it leaves no core.
pub struct Closed(DumpableBehavior);

impl Closed {
    /// Closes it.
    pub fn now() -> Result<Self, Errno> {
        let before = dumpable_behavior()?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        Ok(Self(before))
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        // What cannot be undone leaves it closed.
        set_dumpable_behavior(self.0).unwrap_or_default();
    }
}
