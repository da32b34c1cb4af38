//! A Python that speaks gRPC.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python with what a service is made with: in an environment of its own, made once.
pub fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grpc-peer");
    let python = folder.join("bin/python3");
    let lock = File::create(folder.with_extension("lock")).unwrap();
    // Several tests may find that it is not there.
    lock.lock().unwrap();
    if Command::new(&python)
        .args(["-c", "import grpc, grpc_tools.protoc"])
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        return python;
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status();
    assert!(made.is_ok_and(|status| status.success()), "python3 makes no virtual environment: install python3-venv");
    let install = ["install", "--quiet", "--disable-pip-version-check", "grpcio==1.85.1", "grpcio-tools==1.85.1"];
    let installed = Command::new(folder.join("bin/pip")).args(install).status();
    assert!(installed.is_ok_and(|status| status.success()), "pip does not install grpcio and grpcio-tools");
    python
}
