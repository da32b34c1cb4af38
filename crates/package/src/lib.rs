//! Agent packages: what a built agent is as an OCI artifact, and what can be proven of it.
//!
//! Owns references, manifests, layouts on disk, reproducible layers, the package's own documents and the checks that need no network.
//! Refuses bytes that are not what their descriptor says; speaks to no registry, that is `service`'s. Invariant: nothing is unpacked that
//! was not held against its digest. Pages: `spec/package.md`, `spec/registry.md`.

pub mod archive;
pub mod build;
pub mod bundled;
pub mod check;
pub mod config;
mod content;
mod covered;
pub mod form;
pub mod layer;
pub mod layout;
pub mod manifest;
pub mod portable;
pub mod provenance;
pub mod reference;
pub mod sbom;
mod secrets;

pub use layout::{Layout, LayoutError};
pub use manifest::{Descriptor, Document, Index, Manifest};
pub use reference::{Reference, ReferenceError};
