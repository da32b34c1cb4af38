//! A process that goes on when whoever started it has ended.
//!
//! Owns its leave: whoever waits for the caller's streams or children does not wait for it. Refuses nothing. Its invariant: what it says of
//! its beginning is all it ever says.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, memfd_create, open};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, chdir, dumpable_behavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::sys::process::{Texts, execute_descriptor, go_on_alone, replace_streams};

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

/// Whether processes of the same user can look into this one.
pub fn is_open_to_others() -> bool {
    !matches!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable | DumpableBehavior::DumpableReadableOnlyByRoot))
}

/// How the path of a program begins that runs from [`begin_closed`]'s copy.
pub const COPY: &str = "/memfd:writ";

/// Begins this program anew, with the same words and variables, from a copy in memory that its user may run and not read: into such a one the
/// kernel lets no other process of that user look from its first instruction on, as one that closes itself could be looked into before. Its
/// first word is `program`, for the copy has no path. Root may read it, and is kept from nothing. Answers only if that failed.
pub fn begin_closed(program: &Path) -> io::Error {
    let copied = || -> io::Result<OwnedFd> {
        let copy = memfd_create(c"writ", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let (mut own, mut copy) = (File::open("/proc/self/exe")?, File::from(copy));
        io::copy(&mut own, &mut copy)?;
        // Who had opened it before may not change it either.
        fcntl_add_seals(&copy, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        fchmod(&copy, Mode::from_raw_mode(0o111))?;
        Ok(copy.into())
    };
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::other);
    let arguments =
        std::iter::once(text(program.as_os_str())).chain(std::env::args_os().skip(1).map(|word| text(&word)));
    let variables = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        text(&name)
    });
    let texts = (arguments.collect::<io::Result<Vec<_>>>(), variables.collect::<io::Result<Vec<_>>>());
    match (copied(), texts) {
        (Ok(copy), (Ok(arguments), Ok(variables))) => {
            execute_descriptor(copy.as_fd(), &Texts::new(arguments), &Texts::new(variables)).into()
        }
        (Err(error), _) | (_, (Err(error), _) | (_, Err(error))) => error,
    }
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
