//! A secret that Writ itself puts into a request for a call.

use serde::{Deserialize, Serialize};

/// A secret, where it goes and how. Never its value (R8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretFact {
    /// Its name.
    pub name: String,
    /// The host that gets it.
    pub host: String,
    /// `header` or `query`.
    pub inject: String,
}
