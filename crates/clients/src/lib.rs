//! Agent clients: their hook JSON, their settings files, their transcripts.
//!
//! One folder per client, each turning that client's formats into the words of `writ-core` and back. Nothing here
//! decides about a call or writes a file; only the transcript readers touch the disk, and they only read. The
//! invariant: whatever bytes a client or an agent hands over, a reader here answers with a value or an error, never a
//! panic, and within stated limits. Format page: `spec/clients/claude-code.md`.

pub mod claude_code;
