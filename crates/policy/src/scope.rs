//! Which uses of a path a rule is about.

use writ_shell::Access;

/// Which uses of a path a rule is about. What `Read:path`, `Write:path` and `Edit:path` say among `tools` holds for shell lines
/// too (R15, R78), so those entries are rules about files as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Every use: an entry of a `files` list.
    Any,
    /// `Read:path`: reads, by any tool.
    Reads,
    /// `Write:path`: writes in a shell line.
    Writes,
    /// `Edit:path`: changes of what is there, in a shell line or by writing the file anew.
    Changes,
}

impl Scope {
    pub const ALL: [Self; 4] = [Self::Any, Self::Reads, Self::Writes, Self::Changes];

    /// What a path rule about `tool` says of other tools' uses of the path; `None` where it says nothing.
    pub fn of_tool(tool: &str) -> Option<Self> {
        match tool {
            "Read" => Some(Self::Reads),
            "Write" => Some(Self::Writes),
            "Edit" | "MultiEdit" => Some(Self::Changes),
            _ => None,
        }
    }

    /// Whether uses of this kind can be meant.
    pub fn covers(self, access: Access) -> bool {
        match self {
            Self::Any => true,
            Self::Reads => matches!(access, Access::Read | Access::Exec),
            Self::Writes | Self::Changes => access == Access::Write,
        }
    }
}
