//! `writ doctor`: what is wrong with the installation, and how to mend it.

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::claude_code::settings::inspect;
use writ_core::json::{Object, Value};
use writ_core::plain;
use writ_engine::{Home, Trust, governing, protect};

use crate::args::{Format, FormatArgs};
use crate::commands::init::client_version;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Largest settings file.
const MAX_SETTINGS: u64 = 64 << 20;

/// One question, its answer, and the remedy when the answer is bad.
struct Finding {
    good: bool,
    text: String,
    remedy: String,
}

fn good(text: impl Into<String>) -> Finding {
    Finding { good: true, text: text.into(), remedy: String::new() }
}

fn bad(text: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { good: false, text: text.into(), remedy: remedy.into() }
}

/// Checks everything. Exit code 3 when anything needs mending.
pub fn run(args: &FormatArgs) -> Result<(), Failure> {
    let home = environment::home();
    let cwd = environment::cwd()?;
    let mut findings = vec![state(&home), policy(&home, &cwd)];
    findings.push(good(writ_engine::claims::enforced(&home, &cwd).text()));
    findings.extend(hooks(&home, &cwd));
    findings.push(client()?);
    if args.format == Format::Json {
        output::print_json(&Value::Array(findings.iter().map(to_json).collect()));
    } else {
        for finding in &findings {
            let mark = if finding.good { output::good('✓') } else { output::bad('✗') };
            output::line(format!("{mark} {}", output::plain(&finding.text)));
            if !finding.remedy.is_empty() {
                output::line(format!("    {} {}", output::dim("mend it:"), output::plain(&finding.remedy)));
            }
        }
    }
    if findings.iter().all(|finding| finding.good) { Ok(()) } else { Err(Failure::No) }
}

fn to_json(finding: &Finding) -> Value {
    let mut out = Object::new();
    out.push("good", Value::from(finding.good));
    out.push("text", Value::from(finding.text.as_str()));
    out.push("remedy", Value::from(finding.remedy.as_str()));
    Value::Object(out)
}

fn state(home: &Home) -> Finding {
    let Some(dir) = &home.state else {
        return bad("there is nowhere to keep state", "set HOME or WRIT_STATE_DIR to an absolute path");
    };
    let probe = dir.join(".probe");
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(&probe, b"")).and_then(|()| fs::remove_file(&probe));
    match written {
        Ok(()) => good(format!("state is kept in {}", dir.display())),
        Err(error) => bad(
            format!("{} cannot be written: {error}", dir.display()),
            "make it writable; until then every governed call is denied",
        ),
    }
}

fn policy(home: &Home, cwd: &Path) -> Finding {
    let Some(path) = governing::find(cwd) else {
        return bad("no policy governs here: every call is allowed and nothing is recorded", "run `writ init`");
    };
    match governing::open(&path, None, &Trust::open(home.state.as_deref())) {
        Ok(governing) => good(format!(
            "policy `{}` governs ({}, {})",
            governing.policy.name(),
            path.display(),
            governing.signed.as_str()
        )),
        Err(error) => bad(error.to_string(), format!("`writ policy check {}` shows the places", path.display())),
    }
}

fn hooks(home: &Home, cwd: &Path) -> Vec<Finding> {
    let Some(places) = protect::places(home, governing::repository(cwd)) else {
        return vec![bad("cannot tell where the client's settings are", "set HOME")];
    };
    let files = [&places.user, &places.project, &places.local, places.managed.first().unwrap_or(&places.user)];
    let mut findings = Vec::new();
    let mut installed: Vec<&PathBuf> = Vec::new();
    for path in files {
        let Ok(text) = plain::text(path, MAX_SETTINGS) else { continue };
        match inspect(Some(&text)) {
            Err(error) => findings.push(bad(
                format!("{}: {error}, and ignores every hook in it", path.display()),
                "repair the JSON, then run `writ init`",
            )),
            Ok(found) => {
                if found.disabled {
                    findings
                        .push(bad(format!("{} switches all hooks off", path.display()), "remove `disableAllHooks`"));
                }
                if found.commands.is_empty() {
                    continue;
                }
                installed.push(path);
                findings.extend(look(path, &found));
            }
        }
    }
    match installed.as_slice() {
        [] => findings.push(bad("no settings file installs the hooks: the client never asks", "run `writ init`")),
        [_] => {}
        _ => findings.push(bad(
            "the hooks are installed twice: every call is recorded twice",
            "run `writ init --undo`, or with `--user`",
        )),
    }
    findings
}

fn look(path: &Path, found: &writ_clients::claude_code::settings::Installed) -> Vec<Finding> {
    let mut out = Vec::new();
    let shown = path.display();
    let again = "run `writ init` again";
    if !found.missing.is_empty() {
        out.push(bad(format!("{shown} lacks hooks for {}", found.missing.join(", ")), again));
    }
    if !found.twice.is_empty() {
        out.push(bad(format!("{shown} has more than one hook for {}", found.twice.join(", ")), again));
    }
    if !found.fails_open.is_empty() {
        out.push(bad(
            format!("{shown}: a hook that crashes lets the tool run ({})", found.fails_open.join(", ")),
            "update the client, then run `writ init` again",
        ));
    }
    for pointer in found.narrowed.iter().chain(&found.rejected) {
        out.push(bad(format!("{shown}: the hook at {pointer} does not see every call"), again));
    }
    for command in &found.commands {
        if !runs(command) {
            out.push(bad(
                format!("{shown} starts `{command}`, which is not there"),
                "put `writ` on the PATH, or run `writ init` again",
            ));
        }
    }
    if out.is_empty() {
        out.push(good(format!("hooks are installed in {shown}")));
    }
    out
}

fn runs(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    environment::search_path().iter().any(|dir| dir.join(command).is_file())
}

fn client() -> Result<Finding, Failure> {
    Ok(match client_version(None)? {
        None => good("no `claude` on the PATH to ask for its version"),
        Some(version) if version.blocks_on_failure() => good(format!("client {version} blocks when a hook fails")),
        Some(version) => bad(format!("client {version} lets a tool run when a hook fails"), "update the client"),
    })
}
