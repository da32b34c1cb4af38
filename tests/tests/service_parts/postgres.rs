//! A PostgreSQL server of its own: an unprivileged user's, in a folder that goes with it, on a free port.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    pub port: u16,
    root: bool,
}

impl Postgres {
    pub fn start() -> Self {
        let programs = programs();
        // The server refuses to run as root, and a short path keeps its socket's name within bounds.
        let root = fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap() == 0;
        let folder = std::env::temp_dir().join(format!("writ-postgres-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        if root {
            let id = |flag| {
                let output = Command::new("id").args([flag, "postgres"]).output().unwrap();
                String::from_utf8(output.stdout).unwrap().trim().parse::<u32>().expect("there is no user `postgres`")
            };
            chown(&folder, Some(id("-u")), Some(id("-g"))).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { folder, programs, port, root };
        server.run("initdb", &["-D", "data", "-U", "writ", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        server.certify();
        server.up();
        server
    }

    /// A certificate for `localhost`, by nobody.
    fn certify(&self) {
        let what = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 2 -subj /CN=localhost \
                    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.pem";
        self.run("/usr/bin/openssl", &what.split_whitespace().collect::<Vec<_>>());
    }

    /// The certificate it shows to those who want TLS.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("server.pem")
    }

    /// Starts the server, and waits until it answers.
    pub fn up(&self) {
        let folder = self.folder.display();
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c ssl=on \
             -c ssl_cert_file={folder}/server.pem -c ssl_key_file={folder}/server.key",
            self.port
        );
        self.run("pg_ctl", &["-D", "data", "-w", "-t", "60", "-l", "log", "-o", &options, "start"]);
    }

    /// Stops it as a crash would.
    pub fn down(&self) {
        self.run("pg_ctl", &["-D", "data", "-w", "-m", "immediate", "stop"]);
    }

    pub fn url(&self, host: &str) -> String {
        format!("postgres://writ@{host}:{}/postgres", self.port)
    }

    fn run(&self, program: &str, args: &[&str]) {
        let program = self.programs.join(program);
        let mut command = if self.root {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.args(args).current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{command:?}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.folder.join("data/postmaster.pid").exists() {
            self.down();
        }
        let start = Instant::now();
        while fs::remove_dir_all(&self.folder).is_err() && start.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Where `initdb` is: Debian keeps it out of the path.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|version| version.path().join("bin"));
    let mut folders = std::env::split_paths(&path).chain(debian);
    let found = folders.find(|folder: &PathBuf| Path::new(folder).join("initdb").is_file());
    found.expect("this test needs PostgreSQL's server: `cargo xtask test` installs it")
}
