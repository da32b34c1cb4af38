//! The git hook that has `writ agentflow verify` run before each push: put in and taken out by `writ init`.
//!
//! Owns one file, and only one that it wrote itself: another's hook is left as it is, with the line for it told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::exit::Failure;
use crate::output;

/// What shows that a hook is Writ's.
const MARK: &str = "# Written by `writ init --pre-push`";

/// Puts the hook in; `program` is Writ as a shell's word.
pub fn install(root: &Path, program: &str) -> Result<(), Failure> {
    let path = place(root)?;
    let line = format!("{} agentflow verify", quoted(program));
    let text = format!(
        "#!/bin/sh\n{MARK}: nothing is pushed while the last run here, or without one the newest session, does not\n# verify. `$CURRENT_RUN` names another run or session.\nexec {line}\n"
    );
    match fs::read_to_string(&path) {
        Ok(there) if there == text => {
            output::line(format!("{} the hook is already in {}", output::good("✓"), output::path(&path)));
            return Ok(());
        }
        Ok(there) if !is_ours(&there) => {
            let shown = output::path(&path);
            return Err(Failure::could_not(format!(
                "{shown} is another's hook: add the line `{line} || exit 1` to it"
            )));
        }
        Ok(_) | Err(_) => {}
    }
    let wrong = |error: std::io::Error| Failure::could_not(format!("{}: {error}", path.display()));
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(wrong)?;
    fs::write(&path, text).map_err(wrong)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(wrong)?;
    output::line(format!("{} git verifies before each push: {}", output::good("✓"), output::path(&path)));
    Ok(())
}

/// Takes it out, if it is there and Writ's.
pub fn remove(root: &Path) -> Result<(), Failure> {
    let Ok(path) = place(root) else { return Ok(()) };
    if fs::read_to_string(&path).is_ok_and(|text| is_ours(&text)) {
        fs::remove_file(&path).map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        output::line(format!("{} hook taken out: {}", output::good("✓"), output::path(&path)));
    }
    Ok(())
}

/// A program as a word of a shell's.
fn quoted(program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if program.chars().all(plain) { program.to_owned() } else { format!("'{}'", program.replace('\'', "'\\''")) }
}

fn is_ours(text: &str) -> bool {
    text.lines().nth(1).is_some_and(|line| line.starts_with(MARK))
}

/// Where git looks for it: settings and work trees say that, not a folder's name.
fn place(root: &Path) -> Result<PathBuf, Failure> {
    let asked = Command::new("git")
        .args(["rev-parse", "--git-path", "hooks/pre-push"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let found = asked.ok().filter(|output| output.status.success());
    let text = found.and_then(|output| String::from_utf8(output.stdout).ok());
    let path = text.map(|text| root.join(text.trim_end_matches('\n')));
    path.ok_or_else(|| Failure::could_not(format!("{} is no git repository, or there is no git", root.display())))
}
