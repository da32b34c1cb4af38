//! A Python that speaks gRPC.

#[cfg(test)]
#[path = "../venv/mod.rs"]
mod venv;

use std::path::PathBuf;

/// Python with what a service is made with.
pub fn python() -> PathBuf {
    venv::programs(&["grpcio==1.85.1", "grpcio-tools==1.85.1"]).join("python3")
}
