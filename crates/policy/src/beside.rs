//! What rules in another language say beside their objections: rates, and where a sandbox shows folders.
//!
//! Owns nothing; it asks [`crate::Also`]. Invariant: a policy without such rules says nothing here.

use crate::also::{Mounted, Rate};
use crate::policy::Policy;

impl Policy {
    /// How often tools may be called.
    pub fn rates(&self) -> Vec<Rate> {
        self.also.as_ref().map(|also| also.rates()).unwrap_or_default()
    }

    /// Where a sandbox shows folders under other names.
    pub fn mounted(&self) -> Vec<Mounted> {
        self.also.as_ref().map(|also| also.mounted()).unwrap_or_default()
    }
}
