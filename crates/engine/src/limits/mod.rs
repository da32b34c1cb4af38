//! What a session uses, held against its policy's limits.
//!
//! Owns what is used (`meter`, `prices`), how that is shown (`shown`), and a human's word that raises a limit (`raise`). Calls are
//! refused where every call is judged, prompts and turns where their hooks are answered; both by the policy's own word. Invariant: a session whose policy limits nothing
//! reads and writes nothing more because of this. Page: `spec/limits.md`.

pub mod meter;
pub mod prices;
pub mod raise;
pub mod shown;
