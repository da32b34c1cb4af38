//! A process that goes on when whoever started it has ended.
//!
//! Owns its leave: whoever waits for the caller's streams or children does not wait for it. Refuses nothing. Its invariant: what it says of
//! its beginning is all it ever says.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, chdir, set_dumpable_behavior};

use crate::sys::process::{go_on_alone, replace_streams};

/// Leaves whoever started this process, which is to have just begun. What comes back goes to what was its standard output.
pub fn detach() -> io::Result<File> {
    go_on_alone()?;
    chdir(c"/")?;
    let told: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    let nothing = open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    replace_streams(nothing.as_fd())?;
    Ok(told.into())
}

/// From here on nobody of the same user can look into this process.
pub fn close_to_others() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
