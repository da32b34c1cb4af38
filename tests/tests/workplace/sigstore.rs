//! A Sigstore instance of a test's own, asked over HTTP (`signers/sigstore_services.py`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::workplace::Workplace;

/// Who vouches for the holders of its tokens.
pub const ISSUER: &str = "https://issuer.example.org";

/// Sigstore's services, for one test; they end with it.
pub struct Services {
    process: Child,
    pub url: String,
    folder: PathBuf,
}

impl Services {
    pub fn start(place: &Workplace) -> Self {
        let folder = place.folder.join("sigstore");
        fs::create_dir_all(&folder).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/signers/sigstore_services.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg("-B").arg(script).arg(&folder).arg(ISSUER).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        assert!(!port.trim().is_empty(), "the services do not start: this test needs python3-cryptography and openssl");
        Self { process, url: format!("http://127.0.0.1:{}", port.trim()), folder }
    }

    /// What they wrote: trust, configuration, tokens.
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
