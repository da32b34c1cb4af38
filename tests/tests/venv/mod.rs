//! Programs of Python that tests ask, each in a virtual environment of its own that is made when it is missing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ends well where each package is there in its version.
const ASKED: &str = "import importlib.metadata as m, sys
sys.exit(any(m.version(name) != version for name, version in (package.split('==') for package in sys.argv[1:])))";

/// The programs of an environment with these packages, `NAME==VERSION`.
pub fn programs(packages: &[&str]) -> PathBuf {
    let name = packages.first().and_then(|package| package.split("==").next()).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("venv-{name}"));
    // Tests that run at the same time make one.
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let programs = folder.join("bin");
    let there = Command::new(programs.join("python")).args(["-c", ASKED]).args(packages).output();
    if there.is_ok_and(|ran| ran.status.success()) {
        return programs;
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status();
    assert!(made.is_ok_and(|status| status.success()), "python3 makes no virtual environment: install python3-venv");
    let mut install = Command::new(programs.join("pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
    assert!(install.status().is_ok_and(|status| status.success()), "pip does not install {packages:?}");
    programs
}
