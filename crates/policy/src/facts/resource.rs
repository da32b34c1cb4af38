//! What `grants` objects to in a call.

use serde::{Deserialize, Serialize};
use writ_core::Span;

use super::document;
use crate::grants;

/// A secret, an API or something stored that the call would use, and that a rule of `grants` objects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceFact {
    pub grant: grants::Kind,
    /// `env:NAME`, `vault:PATH`, `file:PATH`, scheme and host, the store.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Pointers of `deny` rules that match; `false` where they only might.
    #[serde(default, with = "document::hits", skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<(String, bool)>,
    /// No rule of `allow` names it for certain, and there is such a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// What it is, or whether it is used, is not fully known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perhaps: bool,
}
