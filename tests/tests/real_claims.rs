//! Claims in the real client, with the hooks from the plugin: an honest DONE passes, a false one is sent back once.

mod client;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use client::mock::{Script, serve, text, tool};
use client::{Place, binary, client};

fn agent(prompt: &str) -> Vec<Value> {
    let input = json!({ "description": "sub", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false });
    vec![tool("Agent", input)]
}

/// One agent never writes what it claims; one does once it is sent back; one tells the truth. In this order, because a tree
/// that is dirty at the start proves nothing against anyone.
fn scripts(work: &Path) -> Vec<Script> {
    let write = |name: &str| {
        let path = work.join(name).to_string_lossy().into_owned();
        vec![tool("Write", json!({ "file_path": path, "content": "VALUE = 1\n" }))]
    };
    let done = |name: &str| vec![text(&format!("Status: DONE\n\n## Handoff\nstatus: DONE\nfiles_changed: {name}"))];
    vec![
        Script { word: "HONEST:", turns: vec![write("honest.py"), done("honest.py")] },
        Script { word: "HASTY:", turns: vec![done("hasty.py"), write("hasty.py"), done("hasty.py")] },
        Script { word: "STUBBORN:", turns: vec![done("never.py"), done("never.py"), done("never.py")] },
        Script {
            word: "WRIT:",
            turns: vec![
                agent("STUBBORN: write it"),
                agent("HASTY: write it"),
                agent("HONEST: write it"),
                vec![text("All done.")],
            ],
        },
    ]
}

#[test]
fn a_false_done_is_sent_back_once_and_an_honest_one_passes() {
    let client = client();
    let place = Place::new("real-claims");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments).current_dir(&place.work);
        assert!(command.status().unwrap().success());
    };
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    install_plugin(&place, &client);

    let port = serve(scripts(&place.work));
    let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
    let ran = place.run_client(&client, port, "WRIT: do the work", &[("ATTEST_ENFORCE", "1"), ("PATH", &path)]);
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    assert!(place.work.join("honest.py").exists() && place.work.join("hasty.py").exists(), "{said}");

    let claims: Value =
        serde_json::from_slice(&place.command(&binary()).args(["claims", "--format", "json"]).output().unwrap().stdout)
            .unwrap();
    let claims = claims.as_array().unwrap();
    let codes = |name: &str| -> Vec<&str> {
        let about = claims.iter().map(|row| &row["claim"]).filter(|claim| claim["claimed"] == json!([name]));
        about.map(|claim| claim["code"].as_str().unwrap()).collect()
    };
    assert_eq!(codes("honest.py"), ["ALLOW_NOT_FALSE_DONE"], "{claims:#?}");
    assert_eq!(codes("hasty.py"), ["BLOCK_FALSE_DONE", "ALLOW_NOT_FALSE_DONE"], "{claims:#?}");
    assert_eq!(codes("never.py"), ["BLOCK_FALSE_DONE", "ALLOW_RETRY_CAP"], "{claims:#?}");

    // The record holds; one claim in it is false and stands.
    let report = place.writ(&["verify", "--format", "json", "--allow-absent"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["status"], &report["verified"]), (&json!("verified"), &json!(false)), "{report:#}");
    assert_eq!(report["except"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert!(report["phases"].as_array().unwrap().iter().any(|phase| phase["name"] == "claims"), "{report:#}");
    fs::remove_dir_all(&place.root).unwrap();
}

/// The way a user does it: add the folder as a marketplace, install from it.
fn install_plugin(place: &Place, client: &Path) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin").canonicalize().unwrap();
    for arguments in [["plugin", "validate"].as_slice(), &["plugin", "marketplace", "add"]] {
        let out = place.command(client).args(arguments).arg(&folder).output().unwrap();
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let out = place.command(client).args(["plugin", "install", "writ@writ"]).output().unwrap();
    assert!(out.status.success(), "install: {}", String::from_utf8_lossy(&out.stderr));
}
