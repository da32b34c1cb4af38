//! From the first process's child to the command.
//!
//! Owns the order: session, limits, folder, rights, Landlock, system calls, program. Refuses to go on after a step that failed, and before
//! those outside are ready. Its invariant: between the filter and the program one word is awaited, and nothing else is done.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, CWD, Mode, OFlags, ResolveFlags, access, openat2};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{PidfdFlags, Resource, Rlimit, chdir, getpid, pidfd_open, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

use super::{At, Failed, Orders, expect};
use crate::confinement::Session;
use crate::message::{self, Message, Step};
use crate::sys::process::{close_on_execution, execute, execute_descriptor, replace_output};
use crate::sys::{filter, landlock, signal};

/// Becomes the command. Answers only if that failed.
pub fn become_command(orders: &Orders, socket: &OwnedFd) -> Failed {
    match prepare(orders, socket) {
        Err(failed) => failed,
        Ok(()) => (Step::Execute, execute_first(orders), 0),
    }
}

fn prepare(orders: &Orders, socket: &OwnedFd) -> Result<(), Failed> {
    // The first process goes on only when this one is its program.
    let handle = pidfd_open(getpid(), PidfdFlags::empty()).at(Step::Start)?;
    message::send(socket, Message::Started, &[handle.as_fd()]).at(Step::Tell)?;
    drop(handle);
    if orders.session == Session::Own {
        setsid().at(Step::Session)?;
    }
    for (item, (resource, limit)) in orders.limits.iter().enumerate() {
        let limit = Rlimit { current: Some(*limit), maximum: Some(*limit) };
        setrlimit(*resource, limit).item(Step::Limits, item)?;
    }
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).at(Step::Limits)?;
    if let Some(output) = &orders.output {
        replace_output(output.as_fd()).at(Step::Descriptors)?;
    }
    close_on_execution(3).at(Step::Descriptors)?;
    if let Some(kept) = &orders.kept {
        fcntl_setfd(kept, FdFlags::empty()).at(Step::Descriptors)?;
    }
    chdir(orders.plan.folder.as_c_str()).at(Step::Folder)?;
    let rules = orders.rules.as_ref();
    if let Some(rules) = rules {
        let place = |path: &CString| {
            openat2(CWD, path.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        };
        for (item, (path, rights)) in orders.plan.rights.iter().enumerate() {
            let place = place(path).item(Step::Landlock, item)?;
            landlock::allow(rules.as_fd(), place.as_fd(), *rights).item(Step::Landlock, item)?;
        }
        for (path, rights) in &orders.plan.parts {
            match place(path) {
                Ok(place) => landlock::allow(rules.as_fd(), place.as_fd(), *rights).at(Step::Landlock)?,
                Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err((Step::Landlock, error, usize::MAX)),
            }
        }
        if let Some(program) = &orders.descriptor {
            // It need not lie in any folder that is shown.
            landlock::allow(rules.as_fd(), program.as_fd(), landlock::EXECUTE).item(Step::Landlock, usize::MAX)?;
        }
    }
    drop_capabilities().at(Step::Capabilities)?;
    set_no_new_privs(true).at(Step::Capabilities)?;
    if let Some(rules) = rules {
        landlock::restrict(rules.as_fd()).at(Step::Landlock)?;
    }
    signal::reset(&orders.ignored);
    orders.mask.restore();
    if let Some(watched) = &orders.watched {
        let listener = filter::install_with_listener(watched).at(Step::Filter)?;
        message::send(socket, Message::Watched, &[listener.as_fd()]).at(Step::Tell)?;
    }
    for (item, program) in orders.filters.iter().enumerate() {
        filter::install(program).item(Step::Filter, item)?;
    }
    // All that was to be done here is done while those outside get ready.
    expect(socket, Message::Go)
}

/// Narrows what can be gained to nothing, for this process and all it starts. Without a user namespace of its own a process may have none, and not the right to narrow what it
/// could gain; that it gains nothing is what `no_new_privs` says.
pub fn narrow(namespaces: bool) -> Result<(), Errno> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel knows none from here on.
            Err(Errno::INVAL) => break,
            Err(Errno::PERM) if !namespaces => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives up every capability, for good.
pub fn drop_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Tries each place where the program may lie, as a shell does: where it may not be run is remembered, where it is not is passed over.
fn execute_first(orders: &Orders) -> Errno {
    if let Some(program) = &orders.descriptor {
        return execute_descriptor(program.as_fd(), &orders.arguments, &orders.environment);
    }
    let mut answer = Errno::NOENT;
    for program in &orders.programs {
        match execute(program, &orders.arguments, &orders.environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            // A folder that may not be entered holds nothing.
            Errno::ACCESS => {
                if access(program.as_c_str(), Access::EXISTS).is_ok() {
                    answer = Errno::ACCESS;
                }
            }
            other => return other,
        }
    }
    answer
}
