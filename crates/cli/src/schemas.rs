//! The JSON Schemas of what commands print as JSON, as the binary carries them.
//!
//! Owns which schema is whose: the files are `spec/schemas/NAME.schema.json`, each whole in itself, and a network is asked for none. Refuses
//! to know their content; that it fits what commands print is held by `tests/tests/schemas/`. Invariant: every command with
//! `--format json` has one. Page: `spec/output.md`.

/// The schema of one form of output.
pub struct Schema {
    /// Its name, as of its file.
    pub name: &'static str,
    /// The commands that print this.
    pub commands: &'static [&'static str],
    /// Whether they print one document a line.
    pub lines: bool,
    /// The schema.
    pub text: &'static str,
}

/// How many documents a command prints.
enum Form {
    One,
    Lines,
}

macro_rules! schemas {
    ($($form:ident $name:literal [$($command:literal),+];)+) => {
        [$(Schema {
            name: $name,
            commands: &[$($command),+],
            lines: matches!(Form::$form, Form::Lines),
            text: include_str!(concat!("../../../spec/schemas/", $name, ".schema.json")),
        }),+]
    };
}

/// All, by name.
pub static ALL: [Schema; 62] = schemas! {
    Lines "agentfile-decide" ["agentfile decide"];
    One "agentfile-lint" ["agentfile lint"];
    One "agentfile-prove" ["agentfile prove"];
    One "agentfile-show" ["agentfile show"];
    One "agentflow-start" ["agentflow start"];
    One "agentflow-verify" ["agentflow verify"];
    One "approvals" ["approvals"];
    One "attestation-list" ["attestation list"];
    One "attestation-push" ["attestation push"];
    One "attestation-search" ["attestation search"];
    One "attestation-verify" ["attestation verify"];
    One "build" ["build"];
    One "claim-parse" ["claim parse"];
    One "claim-snapshot" ["claim snapshot"];
    One "claim-verify" ["claim verify"];
    One "claims" ["claims"];
    One "conformance" ["conformance"];
    Lines "decide" ["decide"];
    One "discover" ["discover"];
    One "doctor" ["doctor"];
    One "evaluate" ["evaluate shell", "evaluate terraform", "evaluate mcp"];
    One "export" ["export"];
    One "gate" ["gate"];
    One "identity" ["identity"];
    One "inspect" ["inspect"];
    One "keys-list" ["keys list"];
    One "keys-registry" ["keys registry"];
    One "keys-trusted" ["keys trusted"];
    One "limits-show" ["limits show"];
    One "mcp-pins" ["mcp pins", "mcp pins list"];
    One "notary-status" ["notary status"];
    One "policy-add" ["policy add"];
    One "policy-check" ["policy check"];
    One "policy-diff" ["policy diff"];
    One "policy-learn" ["policy learn"];
    One "policy-show" ["policy show"];
    One "policy-test" ["policy test"];
    One "policy-verify" ["policy verify"];
    One "prices-show" ["prices show"];
    One "replay" ["replay"];
    One "report" ["report"];
    One "rows" ["session show", "ledger show"];
    One "sandbox-diff" ["sandbox diff"];
    One "sandbox-plan" ["sandbox plan"];
    One "sandbox-test" ["sandbox test"];
    One "schema" ["schema"];
    One "session-list" ["session list"];
    One "shell-explain" ["shell explain"];
    One "shell-programs" ["shell programs"];
    One "sign" ["sign"];
    One "status" ["status"];
    One "step-run" ["step run"];
    One "tag" ["tag"];
    One "token-check" ["token check"];
    One "tool-call" ["tool call"];
    One "tool-describe" ["tool describe"];
    Lines "tool-events" ["tool events"];
    One "tool-list" ["tool list"];
    One "transfer" ["push", "pull", "copy"];
    One "verify" ["verify", "ledger verify"];
    Lines "watch" ["watch"];
    One "why" ["why"];
};

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use writ_core::json::{self, Value};

    use super::*;
    use crate::args;

    /// Commands that print JSON whatever `--format` would say.
    const ALWAYS: [&str; 8] = [
        "agentfile decide",
        "claim parse",
        "claim snapshot",
        "claim verify",
        "decide",
        "keys registry",
        "token check",
        "tool events",
    ];

    /// Every command with a `--format` that can be `json`.
    fn with_format(command: &clap::Command, path: &str, all: &mut BTreeSet<String>, found: &mut BTreeSet<String>) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
            let json = |arg: &clap::Arg| arg.get_possible_values().iter().any(|value| value.get_name() == "json");
            if inner.get_arguments().any(|arg| arg.get_long() == Some("format") && json(arg)) {
                found.insert(path.clone());
            }
            with_format(inner, &path, all, found);
            all.insert(path);
        }
    }

    #[test]
    fn every_command_that_prints_json_has_a_schema() {
        let (mut all, mut json) = (BTreeSet::new(), BTreeSet::new());
        with_format(&args::command(), "", &mut all, &mut json);
        assert!(json.len() > 50, "the command line is not walked: {json:?}");
        assert_eq!(ALWAYS.iter().find(|command| !all.contains(**command)), None);
        json.extend(ALWAYS.map(str::to_owned));
        let known: Vec<String> =
            ALL.iter().flat_map(|schema| schema.commands).map(|command| (*command).to_owned()).collect();
        let once: BTreeSet<String> = known.iter().cloned().collect();
        assert_eq!(known.len(), once.len(), "a command has two");
        assert_eq!(json, once);
    }

    #[test]
    fn the_files_are_those_of_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/schemas");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let files: BTreeSet<String> = files.collect();
        let names: Vec<String> = ALL.iter().map(|schema| format!("{}.schema.json", schema.name)).collect();
        assert!(names.is_sorted());
        assert_eq!(files, names.into_iter().collect());
    }

    #[test]
    fn a_schema_says_what_it_is_and_a_definition_is_the_same_everywhere() {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for Schema { name, text, .. } in &ALL {
            let document = json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                document.get("$schema").and_then(Value::as_str),
                Some("https://json-schema.org/draft/2020-12/schema")
            );
            assert_eq!(document.get("title").and_then(Value::as_str), Some(*name));
            assert!(
                document.get("description").and_then(Value::as_str).is_some_and(|about| about.ends_with('.')),
                "{name}"
            );
            let Some(definitions) = document.get("$defs").and_then(Value::as_object) else { continue };
            for (of, definition) in definitions.iter() {
                let other = known.entry(of.to_owned()).or_insert_with(|| definition.clone());
                assert_eq!(other, definition, "`{of}` of {name} is another elsewhere");
            }
        }
    }
}
