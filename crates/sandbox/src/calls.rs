//! Which system calls are refused.
//!
//! Owns the lists, and makes BPF programs of them before anything is started. Refuses nothing a build, a test or a server on loopback needs.
//! Its invariant: an argument is compared only by the bits the kernel looks at, so high bits that it drops do not slip past.

use seccompiler::{BackendError, TargetArch, sock_filter};

use crate::confinement::UnixSockets;
use crate::search::{self, Condition, Rules};

/// What differs between confinements.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Whether Unix sockets may be made.
    pub unix_sockets: UnixSockets,
    /// Whether the process has namespaces of its own; without them, what they would hold is refused.
    pub namespaces: bool,
    /// Whether internet sockets may be made: in a network of its own, or because the host's is granted.
    pub internet: bool,
    /// Whether somebody outside makes them: sockets that are connected already.
    pub connected: bool,
    /// Whether Landlock keeps signals inside.
    pub signals_kept: bool,
}

/// The programs, in the order in which they are put on.
pub fn filters(setting: Setting) -> Result<Vec<Vec<sock_filter>>, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let number = |errno: i32| errno.unsigned_abs();
    // One for both: each costs every call, and the start of every command.
    let both = [(absent(), number(libc::ENOSYS)), (refused(setting), number(libc::EPERM))];
    let mut programs = vec![search::filter(&both, arch)?];
    if setting.connected {
        // As where the kernel has none: programs go on with the other family. Of two errors the last filter's counts.
        let inet6 = vec![vec![is(0, u64::from(libc::AF_INET6.cast_unsigned()))]];
        let inet6 = ([(libc::SYS_socket, inet6)].into_iter().collect(), number(libc::EAFNOSUPPORT));
        programs.push(search::filter(&[inet6], arch)?);
        // The C library asks for news of errors on each socket for names, and gives up without. There are none.
        let news = vec![vec![is(1, 0), is(2, u64::from(libc::IP_RECVERR.cast_unsigned()))]];
        let news = ([(libc::SYS_setsockopt, news)].into_iter().collect(), 0);
        programs.push(search::filter(&[news], arch)?);
    }
    if let Some(first) = programs.first_mut() {
        first.splice(0..0, foreign_numbers());
    }
    Ok(programs)
}

/// Calls by which files are named, to be watched: all that change something, and opening.
pub const NAMING: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmodat,
    libc::SYS_truncate,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];

/// Calls that ask about files, run them or enter folders: watched beside the others where all that is used is noted.
pub const ASKING: &[i64] = &[
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_chdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];

/// Calls by which sockets are made, connected and opened to others, where somebody outside answers them.
pub const CONNECTING: &[i64] = &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen];

/// Which calls are handed over.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// [`NAMING`].
    pub naming: bool,
    /// [`ASKING`].
    pub asking: bool,
    /// [`CONNECTING`].
    pub connecting: bool,
}

/// Hands those calls over to whoever listens, and lets the others go on; what another filter refuses stays refused.
pub fn watched(which: Watched) -> Vec<sock_filter> {
    let lists = [(which.naming, NAMING), (which.asking, ASKING), (which.connecting, CONNECTING)];
    let calls = lists.into_iter().filter(|(wanted, _)| *wanted).flat_map(|(_, list)| list);
    search::one_answer(calls.copied(), libc::SECCOMP_RET_USER_NOTIF)
}

/// On x86-64 the same architecture has a second set of numbers (x32), which no rule below names.
fn foreign_numbers() -> Vec<sock_filter> {
    if !cfg!(target_arch = "x86_64") {
        return Vec::new();
    }
    let load_number = 0x20;
    let jump_if_at_least = 0x35;
    let answer = 0x06;
    vec![
        sock_filter { code: load_number, jt: 0, jf: 0, k: 0 },
        sock_filter { code: jump_if_at_least, jt: 0, jf: 1, k: 0x4000_0000 },
        sock_filter { code: answer, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs() },
    ]
}

/// What programs do without when the kernel does not know it. The arguments of `clone3` and `openat2` are behind a pointer, where no filter
/// looks.
fn absent() -> Rules {
    let mut rules = Rules::new();
    for call in [
        libc::SYS_clone3,
        libc::SYS_openat2,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_userfaultfd,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
    ] {
        rules.insert(call, Vec::new());
    }
    rules
}

fn refused(setting: Setting) -> Rules {
    let mut rules = Rules::new();
    for call in ALWAYS {
        rules.insert(*call, Vec::new());
    }
    namespaces(&mut rules);
    others(&mut rules, setting);
    set_user_id_bits(&mut rules);
    sockets(&mut rules, setting);
    terminals(&mut rules);
    // A listener of its own would answer calls in place of ours.
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    rules.insert(libc::SYS_seccomp, vec![vec![bits(1, listener, listener)]]);
    let read = 0xffff_ffff;
    rules.insert(libc::SYS_personality, vec![vec![is_not(0, 0), is_not(0, read)]]);
    if !setting.namespaces {
        for call in SHARED_WITHOUT_NAMESPACES {
            rules.insert(*call, Vec::new());
        }
    }
    if !setting.signals_kept {
        // The caller's process group holds processes outside.
        rules.insert(libc::SYS_kill, vec![vec![is(0, 0)]]);
    }
    rules
}

/// Mounts, keys, modules, clocks, handles: nothing that a confined program has a use for.
const ALWAYS: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// `open_tree_attr(2)`, Linux 6.15.
const OPEN_TREE_ATTR: i64 = 467;

/// `SOCK_PACKET`, the old way to packets.
const PACKET: i32 = 10;

/// What an IPC or process namespace would keep apart.
const SHARED_WITHOUT_NAMESPACES: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
];

fn namespaces(rules: &mut Rules) {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    // The lowest byte of `clone`'s flags is a signal, where `unshare` has the time namespace.
    for flag in flags.into_iter().map(|flag| u64::from(flag.cast_unsigned())) {
        rules.entry(libc::SYS_clone).or_default().push(vec![bits(0, flag, flag)]);
        rules.entry(libc::SYS_unshare).or_default().push(vec![bits(0, flag, flag)]);
    }
    let time = u64::from(libc::CLONE_NEWTIME.cast_unsigned());
    rules.entry(libc::SYS_unshare).or_default().push(vec![bits(0, time, time)]);
}

/// Nobody's limits, priority or place among the processors are changed but the caller's own, which is 0. A number may be anybody's, also the
/// caller's: no filter knows that, so threads that place each other are left alone where a namespace keeps the rest of the machine apart.
fn others(rules: &mut Rules, setting: Setting) {
    let given = Condition::Given { argument: 2 };
    rules.insert(libc::SYS_prlimit64, vec![vec![is_not(0, 0), given]]);
    let of_a_user = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
    for (call, user) in of_a_user {
        rules.insert(call, vec![vec![is_not(1, 0)], vec![is(0, user)]]);
    }
    let mut calls = vec![
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ];
    if !setting.namespaces {
        calls.push(libc::SYS_sched_setaffinity);
    }
    for call in calls {
        rules.insert(call, vec![vec![is_not(0, 0)]]);
    }
}

/// No file is left behind that somebody else would run as its owner or group. Folders too: `chmod` does not say which it is.
fn set_user_id_bits(rules: &mut Rules) {
    let fchmodat2 = 452;
    let mut modes = vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (fchmodat2, 2), (libc::SYS_mknodat, 2)];
    let mut opens = vec![(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    {
        modes.extend([(libc::SYS_chmod, 1), (libc::SYS_mknod, 1), (libc::SYS_creat, 1)]);
        opens.push((libc::SYS_open, 1, 2));
    }
    for bit in [0o4000, 0o2000] {
        for (call, mode) in &modes {
            rules.entry(*call).or_default().push(vec![bits(*mode, bit, bit)]);
        }
        // Where nothing is made the mode is not looked at, and may be anything.
        for (call, flags, mode) in &opens {
            for makes in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                let makes = u64::from(makes.cast_unsigned());
                let conditions = vec![bits(*flags, makes, makes), bits(*mode, bit, bit)];
                rules.entry(*call).or_default().push(conditions);
            }
        }
    }
}

fn sockets(rules: &mut Rules, setting: Setting) {
    let family = |number: i32| u64::from(number.cast_unsigned());
    let [unix, inet, inet6, netlink] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(family);
    let mut socket = vec![vec![is_not(0, unix), is_not(0, inet), is_not(0, inet6), is_not(0, netlink)]];
    // Addresses and routes, which C libraries ask for; nothing else of netlink.
    socket.push(vec![is(0, netlink), is_not(2, 0)]);
    for internet in [inet, inet6] {
        for kind in [libc::SOCK_RAW, PACKET, libc::SOCK_SEQPACKET, libc::SOCK_DCCP] {
            socket.push(vec![is(0, internet), bits(1, 0xf, family(kind))]);
        }
        // TCP, UDP and echo requests. Not MPTCP, SCTP, UDP-Lite.
        let known = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6];
        let mut other = vec![is(0, internet)];
        for protocol in known {
            other.push(is_not(2, family(protocol)));
        }
        socket.push(other);
    }
    if !setting.internet {
        // Those of the first family that are left are answered outside.
        let outward: &[u64] = if setting.connected { &[inet6, netlink] } else { &[inet, inet6, netlink] };
        for outward in outward {
            socket.push(vec![is(0, *outward)]);
        }
    }
    if setting.unix_sockets == UnixSockets::Closed {
        socket.push(vec![is(0, unix)]);
        // A pair of these can be turned to another address; a pair of connected streams cannot.
        let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(family);
        for kind in kinds {
            rules.entry(libc::SYS_socketpair).or_default().push(vec![bits(1, 0xf, kind)]);
        }
    }
    rules.entry(libc::SYS_socketpair).or_default().push(vec![is_not(0, unix)]);
    rules.insert(libc::SYS_socket, socket);
    let fast_open = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        rules.insert(call, vec![vec![bits(flags, fast_open, fast_open)]]);
    }
    let option = vec![is(1, family(libc::IPPROTO_TCP)), is(2, family(libc::TCP_FASTOPEN_CONNECT))];
    rules.insert(libc::SYS_setsockopt, vec![option]);
}

/// No input is pushed into a terminal.
fn terminals(rules: &mut Rules) {
    let push = 0x5412;
    let console = 0x541c;
    rules.insert(libc::SYS_ioctl, vec![vec![is(1, push)], vec![is(1, console)]]);
}

fn is(argument: u8, value: u64) -> Condition {
    bits(argument, u64::from(u32::MAX), value)
}

fn is_not(argument: u8, value: u64) -> Condition {
    Condition::Not { argument, value: low(value) }
}

fn bits(argument: u8, mask: u64, value: u64) -> Condition {
    Condition::Bits { argument, mask: low(mask), value: low(value) }
}

/// The bits that the kernel looks at.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
