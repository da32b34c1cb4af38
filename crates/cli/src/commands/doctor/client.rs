//! The settings of one client: whether each event reaches one hook of Writ's, whether that hook answers, what switches it off.

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::Client;
use writ_clients::settings::{Installed, Settings, SettingsError};
use writ_core::regular_file;
use writ_engine::{Home, governing};

use super::{Finding, Look, app_server, bad, better, dry_run, good};
use crate::commands::init::{is_here, is_pinned, untried};

/// Largest settings file.
const MAX_SETTINGS: u64 = 64 << 20;

/// What there is to say of a client.
pub struct Checked {
    pub findings: Vec<Finding>,
    /// Whether one of its files installs hooks.
    pub installed: bool,
}

/// Everything about one client's hooks; nothing where it is not here and has none.
pub fn check(client: &'static dyn Client, home: &Home, cwd: &Path, how: Look) -> Option<Checked> {
    let settings = client.settings()?;
    let places = home.places(client, governing::repository(cwd))?;
    let name = client.name();
    let again = format!("run `writ init --client {name}`");
    let mut findings = Vec::new();
    let mut installed: Vec<&PathBuf> = Vec::new();
    for path in &places.settings {
        let Ok(text) = regular_file::text(path, MAX_SETTINGS) else { continue };
        match settings.inspect(Some(&text)) {
            Ok(found) if found.starts.is_empty() => {}
            Ok(found) => {
                installed.push(path);
                let one = One { client, settings, path, again: &again };
                findings.extend(one.look(&found, &text, home, places.managed.as_ref() == Some(path), cwd, how));
            }
            Err(error) => findings.extend(unreadable(path, &error, &text)),
        }
    }
    if installed.is_empty() && !is_here(client, home) {
        return None;
    }
    if installed.is_empty() {
        let text =
            format!("`{name}` is on this machine, and nothing of Writ's is in its settings: its calls are not held");
        findings.push(better(text, again));
        return Some(Checked { findings, installed: false });
    }
    if let [one, _, ..] = installed.as_slice() {
        let text = format!(
            "the hooks of `{name}` are installed twice, also in {}: every call is recorded twice",
            one.display()
        );
        findings.push(bad(
            text,
            format!("run `writ init --client {name} --undo`, with `--user`, `--project` or `--managed`"),
        ));
    }
    if !client.is_tried() {
        let remedy =
            format!("try a call that your policy denies, and look with `writ why --last` (spec/clients/{name}.md)");
        findings.push(better(untried(client), remedy));
    }
    let files = places.settings.iter().chain(places.others.iter().map(|(path, _)| path));
    let holds = settings.pin().filter(is_pinned).map_or(&[] as &[&str], |pin| pin.holds);
    findings.extend(files.flat_map(|path| switches(settings, path, holds)));
    findings.extend(pinned(name, settings));
    if how == Look::Answers && name == writ_clients::codex::NAME {
        findings.extend(app_server::check(home, cwd, &installed, &again));
    }
    Some(Checked { findings, installed: true })
}

/// A file that Writ does not read; it matters where it may hold hooks of Writ's.
fn unreadable(path: &Path, error: &SettingsError, text: &str) -> Option<Finding> {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(" ({cause})"));
    let remedy = format!("make {} plain JSON, without comments", path.display());
    text.contains("writ hook").then(|| bad(format!("{}: {error}{cause}", path.display()), remedy))
}

/// Switches in one of the client's files, but for those that the administrator's holds.
fn switches(settings: &dyn Settings, path: &Path, holds: &[&str]) -> Option<Finding> {
    let text = fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .and_then(|_| regular_file::text(path, MAX_SETTINGS).ok())?;
    let mut found = settings.switches(&text);
    found.retain(|name| !holds.contains(&name.as_str()));
    let (shown, names) = (path.display(), found.join("`, `"));
    (!found.is_empty())
        .then(|| bad(format!("{shown} switches hooks off (`{names}`)"), format!("take `{names}` out of {shown}")))
}

/// What could switch the hooks off, and whether an administrator holds it.
fn pinned(name: &str, settings: &dyn Settings) -> Option<Finding> {
    let pin = settings.pin()?;
    let open = if pin.open.is_empty() { String::new() } else { format!("; always open: {}", pin.open.join("; ")) };
    if let Some(moved) = pin.moved_by.filter(|name| std::env::var_os(name).is_some()) {
        let text = format!("`{moved}` is set, so `{name}` does not read {}, nor what it holds", pin.file);
        return Some(bad(text, format!("unset `{moved}`")));
    }
    let moved = pin.moved_by.map_or_else(String::new, |name| format!("; `{name}` in its environment moves that file"));
    let open = open + &moved;
    if is_pinned(&pin) {
        return Some(good(format!(
            "the hooks of `{name}` cannot be switched off by {}: {} holds them{open}",
            pin.held.join(" or "),
            pin.file
        )));
    }
    Some(better(format!("the hooks of `{name}` can be switched off by {}{open}", pin.held.join(" or ")), pin.how))
}

/// One settings file with hooks of Writ's.
struct One<'a> {
    client: &'static dyn Client,
    settings: &'a dyn Settings,
    path: &'a Path,
    again: &'a str,
}

impl One<'_> {
    fn look(&self, found: &Installed, text: &str, home: &Home, managed: bool, cwd: &Path, how: Look) -> Vec<Finding> {
        let shown = self.path.display();
        let mut out = Vec::new();
        let mut say = |text: String| out.push(bad(text, self.again));
        if !found.missing.is_empty() {
            say(format!("{shown} lacks hooks for {}", found.missing.join(", ")));
        }
        if !found.twice.is_empty() {
            say(format!("{shown} has more than one hook for {}", found.twice.join(", ")));
        }
        if !found.hurried.is_empty() {
            say(format!("{shown} gives the hook too little time for {}: the tool then runs", found.hurried.join(", ")));
        }
        if !found.fails_open.is_empty() {
            say(format!("{shown}: a hook that crashes lets the tool run ({})", found.fails_open.join(", ")));
        }
        for pointer in &found.narrowed {
            say(format!("{shown}: the hook at {pointer} does not see every call, or is not waited for"));
        }
        if found.commands.len() > 1 {
            say(format!("{shown} starts more than one program as Writ: {}", found.commands.join(", ")));
        }
        for pointer in &found.rejected {
            let text = format!("{shown}: the client refuses what is at {pointer}, and with it hooks");
            out.push(bad(text, format!("mend or remove {pointer} in {shown}")));
        }
        out.extend(self.trusted(text, home, managed));
        if let (Look::Answers, Some(start)) = (how, found.starts.first()) {
            let tried = dry_run::call(self.client, start, cwd);
            let why = tried
                .err()
                .map(|why| format!("{shown} starts `{}`, which does not answer as a hook: {why}", start.command));
            out.extend(why.map(|why| bad(why, self.again)));
        }
        if out.is_empty() {
            let answer = if how == Look::Answers { ", and answer" } else { "" };
            out.push(good(format!("hooks of `{}` are installed in {shown}{answer}", self.client.name())));
        }
        out
    }

    /// Hooks that the client leaves out because another file does not agree to them.
    fn trusted(&self, text: &str, home: &Home, managed: bool) -> Option<Finding> {
        let companion = self.settings.companion().filter(|_| !managed)?;
        let folder = home.folder(self.client);
        let path = companion.path(home.user.as_deref().or(folder)?, folder);
        let config = regular_file::text(&path, MAX_SETTINGS).ok();
        let missing = companion.missing(config.as_deref(), self.path, text);
        let text = format!(
            "{} does not trust {} of Writ's hooks in {}: the client leaves them out in silence",
            path.display(),
            missing.len(),
            self.path.display()
        );
        (!missing.is_empty()).then(|| bad(text, self.again))
    }
}
