//! A real registry, Debian's `docker-registry`, for one test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::workplace::Workplace;

/// A registry of its own for one test; it ends with it.
pub struct Registry {
    process: Child,
    pub host: String,
    folder: PathBuf,
}

impl Registry {
    pub fn start(place: &Workplace) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let folder = place.folder.join("registry");
        let config = place.folder.join("registry.yml");
        let text = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {host}\n",
            folder.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new("docker-registry");
        command.args(["serve", config.to_str().unwrap()]).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.process_group(0).spawn().expect("this test needs docker-registry");
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&host).is_err() {
            assert!(Instant::now() < until, "the registry does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { process, host, folder }
    }

    /// Its files of blobs.
    pub fn blob(&self, hex: &str) -> PathBuf {
        let shard: String = hex.chars().take(2).collect();
        self.folder.join("docker/registry/v2/blobs/sha256").join(shard).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
