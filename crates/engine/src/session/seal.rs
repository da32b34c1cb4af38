//! A signed checkpoint over every row so far, at each turn's end (R42).

use writ_evidence::checkpoint::{Checkpoint, origin};

use super::{Session, SessionError};

/// Signs the tree over all rows with the key that signs here and keeps the note. Durable on return.
pub fn seal(session: &mut Session<'_>) -> Result<(), SessionError> {
    session.take_custody()?;
    let (key, kept) = (session.signer()?, Some(session.kept()?));
    let origin = origin(&session.id);
    let tree = session.ledger().tree()?;
    let note = Checkpoint { origin, size: tree.size(), root: tree.root(), kept }.sign(&key)?;
    session.ledger().keep_checkpoint(&note, &tree)?;
    Ok(())
}
