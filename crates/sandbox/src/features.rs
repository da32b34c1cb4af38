//! What this kernel and container allow.

use landlock::ABI;

/// What was found.
#[derive(Clone, Debug)]
pub struct Features {
    /// Landlock's version; 0 where there is none.
    pub landlock: u32,
    /// Whether `/proc` can be mounted in a namespace of processes.
    pub fresh_proc: bool,
}

impl Features {
    /// Landlock's version as far as it is known here.
    pub fn landlock_abi(&self) -> Option<ABI> {
        match self.landlock {
            0 => None,
            1 => Some(ABI::V1),
            2 => Some(ABI::V2),
            3 => Some(ABI::V3),
            4 => Some(ABI::V4),
            5 => Some(ABI::V5),
            6 => Some(ABI::V6),
            7 => Some(ABI::V7),
            8 => Some(ABI::V8),
            _ => Some(ABI::V9),
        }
    }
}
