//! Whether claims are enforced here, and who says so: the policy, the environment, or the client's settings.
//!
//! For people who ask; the hook itself has its environment from the client, which puts its settings' `env` there.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_claims::ALL;
use writ_clients::Client;
use writ_clients::settings::Places;

use super::found;
use crate::claim_settings::{ClaimSettings, MAIN};
use crate::governing::layers::Caller;
use crate::{Home, governing};

/// Longest settings file that is read.
const MAX_SETTINGS: u64 = 4 << 20;

/// What is enforced, and where that comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Enforced {
    /// Whether a false DONE is sent back.
    #[serde(rename = "enforced")]
    pub on: bool,
    /// Who says so: `policy`, `ATTEST_ENFORCE`, `ATTEST_ENFORCE in <file>`.
    pub from: Vec<String>,
    /// The agent types it is about; empty for every subagent.
    pub agents: Vec<String>,
    /// Whether the main agent's stops are judged, too.
    pub main: bool,
}

/// Finds out what is enforced in `cwd`.
pub fn enforced(home: &Home, cwd: &Path) -> Enforced {
    let policy = found(cwd, Caller::Main);
    let places: Vec<_> = home.all_places(governing::repository(cwd)).collect();
    let (mut switches, mut from) = (home.claims.clone(), Vec::new());
    if policy.as_ref().is_some_and(|claims| claims.enforce) {
        from.push("policy".to_owned());
    }
    match setting(&places, "ATTEST_ENFORCE") {
        Some((file, value)) => {
            switches.enforce = value == "1";
            from.extend(switches.enforce.then(|| format!("ATTEST_ENFORCE in {}", file.display())));
        }
        None if switches.enforce => from.push("ATTEST_ENFORCE".to_owned()),
        None => {}
    }
    if let Some((_, agents)) = setting(&places, "ATTEST_ENFORCE_AGENTS") {
        switches.agents = ClaimSettings::kinds(&agents);
    }
    let enforcement = switches.with(policy.as_ref());
    Enforced { on: enforcement.on, from, agents: enforcement.agents, main: switches.includes_main(policy.as_ref()) }
}

/// A variable in the strongest settings file of a client that sets it.
fn setting(clients: &[(&dyn Client, Places)], name: &str) -> Option<(PathBuf, String)> {
    clients.iter().find_map(|(client, places)| {
        let settings = client.settings()?;
        places.settings.iter().rev().find_map(|file| {
            let small = fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= MAX_SETTINGS);
            let text = small.then(|| fs::read_to_string(file).ok()).flatten()?;
            Some((file.clone(), settings.variable(&text, name)?))
        })
    })
}

impl Enforced {
    /// One sentence.
    pub fn text(&self) -> String {
        if !self.on {
            let main = if self.main { ", the main agent's too" } else { "" };
            return format!(
                "claims are reported{main}, not enforced (`\"claims\": {{\"enforce\": true}}` in the policy, or ATTEST_ENFORCE=1)"
            );
        }
        let kinds: Vec<&str> = self.agents.iter().map(String::as_str).filter(|kind| *kind != MAIN).collect();
        let about = match (kinds.as_slice(), self.main) {
            _ if kinds.contains(&ALL) && self.main => "every subagent and the main agent".to_owned(),
            _ if kinds.contains(&ALL) => "every subagent".to_owned(),
            ([], true) => "the main agent".to_owned(),
            ([], false) => "every subagent".to_owned(),
            (kinds, true) => format!("{} and the main agent", kinds.join(", ")),
            (kinds, false) => kinds.join(", "),
        };
        format!("claims are enforced for {about} ({})", self.from.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_who_enforces() {
        let folder = tempfile::tempdir().unwrap();
        let (user, work) = (folder.path().join("home"), folder.path().join("work"));
        for folder in [user.join(".claude"), work.join(".claude"), work.join(".git")] {
            fs::create_dir_all(folder).unwrap();
        }
        let home = |enforce| Home {
            user: Some(user.clone()),
            claims: ClaimSettings { enforce, ..ClaimSettings::default() },
            ..Home::default()
        };
        let nothing = enforced(&home(false), &work);
        assert!(!nothing.on && nothing.from.is_empty() && nothing.text().contains("not enforced"), "{nothing:?}");
        assert_eq!(enforced(&home(true), &work).from, ["ATTEST_ENFORCE"]);
        let settings = user.join(".claude/settings.json");
        fs::write(&settings, r#"{"env": {"ATTEST_ENFORCE": "1", "ATTEST_ENFORCE_AGENTS": "all, main"}}"#).unwrap();
        let by_settings = enforced(&home(false), &work);
        assert_eq!(by_settings.from, [format!("ATTEST_ENFORCE in {}", settings.display())]);
        assert!(by_settings.text().contains("every subagent and the main agent"), "{}", by_settings.text());
        // The project's file is the stronger one, and switches it off.
        fs::write(work.join(".claude/settings.json"), r#"{"env": {"ATTEST_ENFORCE": "0"}}"#).unwrap();
        assert!(!enforced(&home(true), &work).on);
        fs::write(work.join(".aflock"), POLICY).unwrap();
        let by_policy = enforced(&home(false), &work);
        assert_eq!((by_policy.from, by_policy.on), (vec!["policy".to_owned()], true));
    }

    const POLICY: &str = r#"{"version": "1.0", "name": "p", "claims": {"enforce": true}}"#;
}
