//! What a command takes of memory and time.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::workplace::Workplace;

/// Runs `writ`, and says the exit code, what was printed, the time, and the most memory in kilobytes.
pub fn measured(place: &Workplace, args: &[&str]) -> (Option<i32>, String, Duration, u64) {
    let start = Instant::now();
    let out = place.folder.join("report");
    let stdout = fs::File::create(&out).unwrap();
    let mut child = place.command(args).stdin(Stdio::null()).stdout(stdout).spawn().unwrap();
    let mut most = 0;
    let code = loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(now.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        thread::sleep(Duration::from_millis(2));
    };
    (code, fs::read_to_string(out).unwrap(), start.elapsed(), most)
}
