//! Words that every room shares: digests, canonical JSON, tool calls, decisions, ids.
//!
//! This crate does no I/O beyond reading the clock and opening plain files ([`plain`]), and depends on no other room. Its invariant: two values that are
//! equal canonicalise to the same bytes, and bytes that parse are never silently lossy about names (duplicate keys,
//! lone surrogates and trailing bytes are errors). Format page: `spec/canonical-json.md`.

mod call;
mod custody;
mod decision;
mod digest;
mod event;
mod id;
pub mod json;
mod money;
pub mod regular_file;
pub mod secret;
mod span;
mod time;
pub mod visible;

pub use call::{OWN_TOOLS, Search, ToolCall, ToolKind};
pub use custody::Custody;
pub use decision::{Decision, Matched, Reason, Subject, Verdict};
pub use digest::{Digest, DigestError, Hasher};
pub use event::{Agent, Answer, BatchCall, Event, EventKind, Outcome, Reply, ToolUse};
pub use id::SessionId;
pub use money::Money;
pub use span::Span;
pub use time::{TimeError, Timestamp};
