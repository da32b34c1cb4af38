//! What the first process inside and the supervisor tell each other.
//!
//! Owns the messages: one packet each on a pair of sockets, sixteen bytes, descriptors beside them. Refuses a packet of another size or
//! number. Its invariant: neither side allocates, and a packet is read whole or not at all.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// How many descriptors a message carries at most; the kernel takes 253.
pub const DESCRIPTORS: usize = 160;

/// One message. From outside: `Mapped`, `Lent`, `Go`; all others from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// User and group are mapped.
    Mapped,
    /// What the first process mounts lies ready; trees that it cannot take itself are beside it, in the order of their slots.
    Lent,
    /// Everything outside is ready.
    Go,
    /// The sandbox stands; listening sockets are beside it.
    Ready,
    /// The command was started; the descriptor that stands for it is beside it.
    Started,
    /// Calls that name files are handed over to the descriptor beside it.
    Watched,
    /// It was stopped by this signal.
    Stopped(i32),
    /// It goes on.
    Continued,
    /// It ended with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// A step failed.
    Failed(Failure),
    /// The first process was started in namespaces that runs share; this is its number, and what stands for it is beside it.
    Joined(i32),
}

/// A step that failed inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub step: Step,
    /// The error of the system call.
    pub error: i32,
    /// Which of several: a mount, a rule, a limit.
    pub item: u32,
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = $words:literal),+ $(,)?) => {
        /// What is done inside, in this order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Step { $($(#[$doc])* $name),+ }

        impl Step {
            const ALL: &[Step] = &[$(Step::$name),+];

            /// In words.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words),+ }
            }
        }
    };
}

steps! {
    /// Waiting for the map of users.
    Map = "wait for the map of users",
    /// Becoming the user.
    Identity = "become the user",
    /// Entering namespaces that runs share.
    Join = "enter the session's namespaces",
    /// Ending with the supervisor.
    Tie = "end with the supervisor",
    /// Switching the loopback on.
    Loopback = "switch the loopback on",
    /// Listening.
    Listen = "listen",
    /// Keeping mounts from the host's.
    Private = "keep mounts apart from the host's",
    /// Opening what is granted.
    Take = "open what is granted",
    /// Making folders of its own.
    Make = "make folders of its own",
    /// An overlay.
    Overlay = "lay changes over a folder",
    /// The fresh `/proc`.
    Proc = "mount `/proc`",
    /// Terminals of its own.
    Terminals = "mount terminals",
    /// Making the rest read-only.
    ReadOnly = "make the rest read-only",
    /// Changing the root.
    Root = "change the root",
    /// Putting a mount in its place.
    Place = "put a mount in its place",
    /// Keeping a name that is not there yet.
    Reserve = "reserve a name",
    /// Telling the supervisor.
    Tell = "tell the supervisor",
    /// Starting the command's process.
    Start = "start a process",
    /// A session of its own.
    Session = "begin a session",
    /// Limits.
    Limits = "set a limit",
    /// The working folder.
    Folder = "enter the working folder",
    /// Capabilities.
    Capabilities = "drop capabilities",
    /// Landlock.
    Landlock = "apply Landlock",
    /// System calls.
    Filter = "filter system calls",
    /// Descriptors.
    Descriptors = "close descriptors",
    /// The program.
    Execute = "execute",
}

const SIZE: usize = 16;

impl Message {
    fn words(self) -> [u32; 4] {
        match self {
            Self::Mapped => [1, 0, 0, 0],
            Self::Go => [2, 0, 0, 0],
            Self::Ready => [3, 0, 0, 0],
            Self::Started => [4, 0, 0, 0],
            Self::Stopped(signal) => [5, signal.cast_unsigned(), 0, 0],
            Self::Continued => [6, 0, 0, 0],
            Self::Exited(code) => [7, code.cast_unsigned(), 0, 0],
            Self::Signaled(signal) => [8, signal.cast_unsigned(), 0, 0],
            Self::Watched => [10, 0, 0, 0],
            Self::Failed(Failure { step, error, item }) => [9, step as u32, error.cast_unsigned(), item],
            Self::Joined(pid) => [11, pid.cast_unsigned(), 0, 0],
            Self::Lent => [12, 0, 0, 0],
        }
    }

    fn of(words: [u32; 4]) -> Option<Self> {
        let [kind, first, second, third] = words;
        Some(match kind {
            1 => Self::Mapped,
            2 => Self::Go,
            3 => Self::Ready,
            4 => Self::Started,
            5 => Self::Stopped(first.cast_signed()),
            6 => Self::Continued,
            7 => Self::Exited(first.cast_signed()),
            8 => Self::Signaled(first.cast_signed()),
            9 => {
                let step = *Step::ALL.get(usize::try_from(first).ok()?)?;
                Self::Failed(Failure { step, error: second.cast_signed(), item: third })
            }
            10 => Self::Watched,
            11 => Self::Joined(first.cast_signed()),
            12 => Self::Lent,
            _ => return None,
        })
    }
}

/// Sends one.
pub fn send(socket: impl AsFd, message: Message, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut bytes = [0u8; SIZE];
    for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(message.words()) {
        *to = word.to_le_bytes();
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    loop {
        match sendmsg(&socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL) {
            Ok(SIZE) => return Ok(()),
            Ok(_) => return Err(Errno::IO),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Receives one and hands each descriptor beside it over; `None` when the other side is gone.
pub fn receive(socket: impl AsFd, flags: RecvFlags, mut take: impl FnMut(OwnedFd)) -> Result<Option<Message>, Errno> {
    let mut bytes = [0u8; SIZE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptors.for_each(&mut take);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.bytes != SIZE {
        return Err(Errno::BADMSG);
    }
    let mut words = [0; 4];
    for (word, from) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*from);
    }
    Message::of(words).map(Some).ok_or(Errno::BADMSG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_comes_back() {
        let failures = Step::ALL.iter().map(|step| Message::Failed(Failure { step: *step, error: 13, item: 7 }));
        let others = [
            Message::Mapped,
            Message::Lent,
            Message::Go,
            Message::Ready,
            Message::Started,
            Message::Stopped(20),
            Message::Continued,
            Message::Exited(-1),
            Message::Signaled(9),
            Message::Watched,
            Message::Joined(7),
        ];
        for message in failures.chain(others) {
            assert_eq!(Message::of(message.words()), Some(message));
        }
        assert_eq!(Message::of([13, 0, 0, 0]), None);
        assert_eq!(Message::of([9, 1000, 0, 0]), None);
    }
}
