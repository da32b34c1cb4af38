//! What an agent says it did, and what git says happened.
//!
//! Reads a claim out of an agent's last words, takes the state of a work tree before and after, and lays one beside the
//! other, file by file. It only reads: neither the index nor a file is touched. The invariant: a claim is called false only
//! on proof; whatever is in doubt is said to be in doubt. Format page: `spec/claims.md`.

mod claim;
mod facts;
mod file;
mod gate;
mod judge;
mod paths;
mod places;
mod replay;
mod tree;
mod verdict;

pub use claim::{Claim, Source, Status};
pub use facts::Facts;
pub use gate::{ALL, Code, Enforcement, Finding, Stop, decide};
pub use judge::{Verdict, judge};
pub use paths::resolved;
pub use replay::{Act, Edit};
pub use tree::{Delta, GitError, Limits, Only, Repository, Snapshot, status_of};
pub use verdict::{FileVerdict, Landing, Weight};
