//! What commands print as JSON is what their schemas say: on real sessions, policies, packages and services, and no schema is left out.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod agents;
mod outputs;
mod policies;
mod services;
mod sessions;
#[cfg(test)]
#[path = "../workplace/sigstore.rs"]
mod sigstore;
#[cfg(test)]
#[path = "../venv/mod.rs"]
mod venv;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "../workplace/mod.rs"]
mod workplace;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use outputs::{Outputs, validate};
use serde_json::{Value, json};
use workplace::Workplace;

#[test]
fn the_tests_below_hold_every_schema_against_output_and_the_page_names_it() {
    let out = Outputs::new(Workplace::new("schemas-all"));
    let lists: [&[&str]; 9] = [
        &sessions::SESSION,
        &policies::POLICIES,
        &policies::LOOKED_UP,
        &agents::VERDICTS,
        &agents::AGENTS,
        &agents::TOOLS,
        &sessions::CLAIMS,
        &services::SERVICES,
        &services::CONFINED,
    ];
    let held: BTreeSet<String> = lists.concat().into_iter().map(str::to_owned).collect();
    assert_eq!(held, out.names());
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/output.md")).unwrap();
    let listed: Value = serde_json::from_str(&out.good(&["schema", "--format", "json"])).unwrap();
    for schema in listed.as_array().unwrap() {
        let name = schema["name"].as_str().unwrap();
        let commands: Vec<String> =
            schema["commands"].as_array().unwrap().iter().map(|one| format!("`{}`", one.as_str().unwrap())).collect();
        let each = if schema["lines"] == true { ", one a line" } else { "" };
        let row = format!("| `{name}` | {}{each} |", commands.join(", "));
        assert!(page.contains(&row), "spec/output.md has no row {row}");
        // By its name or by a command, it is the file.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../spec/schemas/{name}.schema.json"));
        let file = fs::read_to_string(file).unwrap();
        let words: Vec<&str> = schema["commands"][0].as_str().unwrap().split(' ').collect();
        assert_eq!(out.good(&["schema", name]), file);
        assert_eq!(out.good(&[&["schema"], words.as_slice()].concat()), file);
    }
    let unknown = out.run(&["schema", "session-lists"], "");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `session-list`"), "{unknown:?}");
    let human = out.good(&["schema"]);
    assert!(human.contains("session show, ledger show") && human.contains("writ policy schema"), "{human}");
    let mut offers = out.place.command(&["--", "writ", "schema", "sandbox"]);
    offers.env("WRIT_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
    let offered = offers.output().unwrap();
    assert!(String::from_utf8_lossy(&offered.stdout).contains("sandbox-plan"), "{offered:?}");
}

/// The validator says no where it should, or all the tests here say nothing.
#[test]
fn a_wrong_document_and_an_open_object_are_found() {
    let closed = json!({"type": "object", "additionalProperties": false, "required": ["a"], "properties": {"a": {"type": "integer"}}});
    let given = |schema: &Value, document: Value| json!({"schemas": {"x": schema}, "documents": [{"schema": "x", "words": "x", "document": document}]});
    assert_eq!(validate(&given(&closed, json!({"a": 1}))).trim(), "1");
    let says = |given: &Value| {
        let said = std::panic::catch_unwind(|| validate(given)).unwrap_err();
        said.downcast_ref::<String>().unwrap().clone()
    };
    assert!(says(&given(&closed, json!({"a": "1"}))).contains("is not of type"));
    assert!(says(&given(&closed, json!({"b": 1}))).contains("unexpected"));
    let loose = json!({"type": "object", "additionalProperties": false, "properties": {"a": {}}, "patternProperties": {"^a": {}}});
    assert!(says(&given(&loose, json!({"a": 1}))).contains("may have another name"));
    assert!(says(&given(&json!({}), json!({"a": 1}))).contains("refused nothing"));
    assert!(says(&given(&json!({"type": "objekt"}), json!({}))).contains("no valid schema"));
}
