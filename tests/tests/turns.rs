//! Attestations of turns, end to end: made at each stop, bound to transcript and work tree, verified, and rejected once anything is changed.

#[cfg(test)]
mod talk;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;

use serde_json::{Value, json};
use talk::{MODEL, Talk, git, phase, with_agents};
use workplace::{SESSION, Workplace};

#[test]
fn each_turn_leaves_a_statement_that_says_what_happened() {
    let talk = Talk::new("turns-made", &json!({}));
    talk.turn(1);
    talk.asks("prompt 2");
    assert!(!talk.writes(None, "no", "elsewhere.rs"));
    talk.says(talk.main(), "end-2", &json!({"type": "text", "text": "Done."}), 1);
    talk.stops();
    assert_eq!(talk.names(), ["turn-1.json", "turn-2.json"]);
    let (one, two) = (talk.statement("turn-1.json"), talk.statement("turn-2.json"));
    assert_eq!(one["predicateType"], "https://agentflow.dev/attestation/turn/v0.1");
    assert_eq!(one["subject"][0]["name"], format!("agentflow:run:{SESSION}"));
    let said = &one["predicate"];
    assert_eq!((&said["turn"], &said["runId"], &said["model"]), (&json!(1), &json!(SESSION), &json!(MODEL)));
    assert_eq!((&said["metrics"]["tokensIn"], &said["metrics"]["tokensOut"]), (&json!(17), &json!(22)), "{said:#}");
    assert_eq!((&said["metrics"]["cacheRead"], &said["metrics"]["cacheWrite"]), (&json!(6), &json!(0)));
    assert_eq!(said["tools"], json!([{"name": "Write", "path": "src/1.rs", "allowed": true}]));
    assert_eq!(said["files"]["written"], json!(["src/1.rs"]));
    let (said, before) = (&two["predicate"], &one["predicate"]);
    assert_eq!(said["tools"], json!([{"name": "Write", "path": "elsewhere.rs", "allowed": false}]));
    assert_eq!(said["files"]["written"], json!([]));
    assert_eq!(said["cumulative"]["tokensIn"], 34);
    assert_eq!((&said["cumulative"]["turns"], &said["cumulative"]["toolCalls"]), (&json!(2), &json!(1)));
    assert_eq!((&said["sessionBinding"]["turnIndex"], &said["sessionBinding"]["treeSize"]), (&json!(1), &json!(2)));
    assert_eq!(said["sessionBinding"]["merkleProof"].as_array().unwrap().len(), 1);
    assert_eq!(said["sessionBinding"]["merkleProof"][0], before["sessionBinding"]["merkleRoot"], "a tree of one leaf");
    // The state of the code, as git would have it.
    let tree = two["subject"][1].clone();
    git(&talk.place, &["add", "-A"]);
    assert_eq!(
        (&tree["name"], &tree["digest"]["sha1"]),
        (&json!("git:treehash"), &json!(git(&talk.place, &["write-tree"])))
    );
    let copy = talk.place.folder.join(format!("repository/proof/runs/{SESSION}/turn-2.json"));
    assert_eq!(fs::read(copy).unwrap(), fs::read(talk.kept().join("turn-2.json")).unwrap());
    talk.passes();
    // The agent puts nothing beside them.
    assert!(!talk.writes(None, "forged", &format!("proof/runs/{SESSION}/turn-3.json")));
}

#[test]
fn whatever_is_changed_is_rejected() {
    let talk = Talk::new(
        "turns-changed",
        &json!({"materialsFrom": {"session": {"constraints": {"requireContiguousTurns": true}}}}),
    );
    (1..=4).for_each(|number| talk.turn(number));
    talk.passes();
    let path = |name: &str| talk.kept().join(name);
    let all: Vec<(String, Vec<u8>)> =
        talk.names().into_iter().map(|name| (name.clone(), fs::read(path(&name)).unwrap())).collect();
    for (at, (name, bytes)) in all.iter().enumerate() {
        for step in 0..6 {
            let mut other = bytes.clone();
            let place = (step * bytes.len() / 6 + at * 7) % bytes.len();
            other[place] ^= 1;
            fs::write(path(name), &other).unwrap();
            talk.fails("turns", &format!("byte {place} of {name}"));
        }
        fs::remove_file(path(name)).unwrap();
        talk.fails("turns", &format!("{name} removed"));
        let (next, others) = &all[(at + 1) % all.len()];
        fs::write(path(name), others).unwrap();
        talk.fails("turns", &format!("{next} in the place of {name}"));
        fs::write(path(name), bytes).unwrap();
    }
    fs::write(path("turn-5.json"), &all[3].1).unwrap();
    talk.fails("turns", "one that no row names");
    fs::remove_file(path("turn-5.json")).unwrap();
    let other = Talk::new("turns-replayed", &json!({}));
    other.turn(1);
    fs::write(path("turn-1.json"), fs::read(other.kept().join("turn-1.json")).unwrap()).unwrap();
    talk.fails("turns", "another session's");
    fs::write(path("turn-1.json"), &all[0].1).unwrap();
    talk.passes();
    // A transcript that was rewritten accuses nobody, and is not passed over.
    let text = fs::read_to_string(talk.main()).unwrap();
    fs::write(talk.main(), text.replacen("prompt 2", "prompt 7", 1)).unwrap();
    let (code, report) = talk.verify();
    let found = phase(&report, "session binding");
    assert_eq!(
        (code, &found["outcome"], &report["verified"]),
        (Some(3), &json!("absent"), &json!(false)),
        "{report:#}"
    );
    fs::write(talk.main(), &text).unwrap();
    talk.passes();
}

#[test]
fn what_is_told_late_and_what_a_crash_left_open_is_said() {
    let talk = Talk::new("turns-late", &json!({}));
    talk.turn(1);
    // The last message of turn 1 comes after its stop; turn 2 has no stop.
    talk.says(talk.main(), "late-1", &json!({"type": "text", "text": "late"}), 5);
    talk.asks("prompt 2");
    assert!(talk.writes(None, "call-2", "src/2.rs"));
    talk.turn(3);
    assert_eq!(talk.names(), ["turn-1.json", "turn-2.json", "turn-3.json"]);
    let (two, three) = (talk.statement("turn-2.json"), talk.statement("turn-3.json"));
    let (two, three) = (&two["predicate"], &three["predicate"]);
    assert_eq!((&two["late"], &three["late"]), (&json!(true), &Value::Null));
    assert_eq!((&two["toldLate"]["tokensIn"], &two["toldLate"]["tokensOut"]), (&json!(8), &json!(10)), "{two:#}");
    assert_eq!(two["tools"][0]["path"], "src/2.rs");
    assert_eq!(three["tools"], json!([{"name": "Write", "path": "src/3.rs", "allowed": true}]));
    talk.passes();
    // It goes on without a prompt.
    assert!(talk.writes(None, "call-4", "src/4.rs"));
    talk.stops();
    assert_eq!(talk.names().last().unwrap(), "turn-3.json");
    let part = talk.statement("turn-3-part-2.json");
    assert_eq!((&part["predicate"]["turn"], &part["predicate"]["part"]), (&json!(3), &json!(2)));
    talk.passes();
    // Without what is kept between two readings everything comes out the same.
    fs::remove_dir_all(talk.place.session().join("turns")).unwrap();
    talk.turn(4);
    assert_eq!(talk.statement("turn-4.json")["predicate"]["sessionBinding"]["turnIndex"], 3);
    talk.passes();
}

/// A turn that only the transcript has: nobody attested it, and nobody passes over it.
#[test]
fn a_turn_that_only_the_transcript_has_is_found() {
    let near =
        json!({"materialsFrom": {"session": {"constraints": {"requireContiguousTurns": true, "maxTurnDistance": 1}}}});
    let unseen = |talk: &Talk, number: u64| {
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "p"}, "timestamp": "2026-01-18T10:30:00.000Z"});
        talk.add(talk.main(), &prompt);
        talk.says(talk.main(), &format!("unseen-{number}"), &json!({"type": "text", "text": "hi"}), 100);
    };
    let wanted = |talk: &Talk, words: &str| {
        let (code, report) = talk.verify();
        let materials = phase(&report, "materials");
        assert_eq!((code, &materials["outcome"]), (Some(3), &json!("failed")), "{report:#}");
        assert!(materials["findings"].to_string().contains(words), "{report:#}");
    };
    let first = Talk::new("turns-first", &near);
    unseen(&first, 1);
    unseen(&first, 2);
    first.turn(3);
    wanted(&first, "turn 3 is the first that is attested");
    let behind = Talk::new("turns-behind", &near);
    behind.turn(1);
    unseen(&behind, 2);
    // It may go on still: another prompt ends it.
    behind.passes();
    unseen(&behind, 3);
    wanted(&behind, "1 turns of the transcript are over behind turn 1");
    let ended = Talk::new("turns-ended", &json!({}));
    ended.turn(1);
    ended.event("SessionEnd", r#","reason":"exit""#);
    ended.passes();
    unseen(&ended, 2);
    let (code, report) = ended.verify();
    assert_eq!((code, &report["verified"]), (Some(3), &json!(false)), "{report:#}");
    assert_eq!(phase(&report, "session binding")["outcome"], "absent", "{report:#}");
}

/// A sub-agent that nobody heard of again has ended with its session.
#[test]
fn a_sub_agent_that_never_stops_is_found() {
    let talk = Talk::new("turns-unstopped", &json!({}));
    talk.asks("prompt 1");
    talk.event("SubagentStart", r#","agent_id":"b2","agent_type":"research""#);
    assert!(talk.writes(Some("b2"), "call-b2", "src/b2.rs"));
    talk.says(talk.main(), "end-1", &json!({"type": "text", "text": "Done."}), 1);
    talk.stops();
    // It may go on still.
    talk.passes();
    talk.event("SessionEnd", r#","reason":"exit""#);
    let (code, report) = talk.verify();
    let turns = phase(&report, "turns");
    assert_eq!((code, &turns["outcome"]), (Some(3), &json!("absent")), "{report:#}");
    assert!(turns["findings"].to_string().contains("b2: no attestation speaks"), "{report:#}");
}

#[test]
fn sub_agents_have_statements_of_their_own() {
    let talk = with_agents("turns-agents", &json!({"spawnedAtTurn": 1}));
    assert_eq!(talk.names(), ["research-b2-turn-1.json", "research-turn-1.json", "turn-1.json"]);
    let sub = talk.statement("research-turn-1.json");
    assert_eq!(
        (&sub["predicate"]["agent"]["id"], &sub["predicate"]["agent"]["type"]),
        (&json!("a1"), &json!("research"))
    );
    assert_eq!(sub["predicate"]["files"]["written"], json!(["src/a1.rs"]));
    assert_eq!(talk.statement("turn-1.json")["predicate"]["tools"][0]["agent"], "research");
    talk.passes();
    let (_, report) = talk.verify();
    assert_eq!(phase(&report, "materials")["outcome"], "passed", "{report:#}");
    // Another turn, a turn that is none, another root.
    for (name, bound) in
        [("turn", json!({"spawnedAtTurn": 2})), ("root", json!({"spawnedAtTurn": 1, "merkleRoot": "0".repeat(64)}))]
    {
        let (code, report) = with_agents(&format!("turns-agents-{name}"), &bound).verify();
        assert_eq!(
            (code, phase(&report, "materials")["outcome"].as_str()),
            (Some(3), Some("failed")),
            "{name}: {report:#}"
        );
    }
}

/// A call that was let, asked about or denied and started nobody is not the turn that started a sub-agent.
#[test]
fn a_call_that_started_nobody_did_not_spawn_it() {
    let worker = json!({"version": "1.0", "name": "worker", "files": {"allow": ["src/**"]}});
    for (name, tools) in
        [("let", json!({})), ("asked", json!({"requireApproval": ["Agent"]})), ("denied", json!({"deny": ["Agent"]}))]
    {
        let outcome = |turn: u64| {
            let more = json!({"sublayouts": [{"name": "research", "policy": worker, "attestationPrefix": "research-"}],
                "tools": tools, "materialsFrom": {"sublayoutSessions": {"research": {"spawnedAtTurn": turn}}}});
            let talk = Talk::new(&format!("turns-spawn-{name}-{turn}"), &more);
            talk.asks("prompt 1");
            let input = json!({"subagent_type": "research", "prompt": "go", "description": "d"});
            talk.event("PreToolUse", &format!(r#","tool_name":"Agent","tool_input":{input},"tool_use_id":"none""#));
            talk.stops();
            talk.turn(2);
            talk.asks("prompt 3");
            if name == "let" {
                talk.spawns("spawn", &["a1"]);
            }
            talk.stops();
            let (_, report) = talk.verify();
            phase(&report, "materials")["outcome"].clone()
        };
        assert_eq!(outcome(1), "failed", "{name}");
        if name == "let" {
            assert_eq!(outcome(3), "passed");
        }
    }
}

#[test]
fn what_a_policy_binds_to_is_looked_at() {
    let talk = Talk::new("turns-materials", &json!({}));
    talk.turn(1);
    talk.turn(2);
    let root = talk.statement("turn-2.json")["predicate"]["sessionBinding"]["merkleRoot"].clone();
    let of = |materials: Value| {
        let place = Workplace::new("turns-materials-more");
        drop(place);
        let talk = Talk::new(&format!("turns-m{}", materials.to_string().len()), &json!({"materialsFrom": materials}));
        talk.turn(1);
        talk.turn(2);
        let (_, report) = talk.verify();
        phase(&report, "materials")
    };
    let transcript = talk.main();
    let found = of(json!({"session": {"path": transcript, "merkleRoot": root}}));
    assert_eq!(found["outcome"], "passed", "{found:#}");
    let found = of(json!({"session": {"path": transcript, "merkleRoot": "0".repeat(64)}, "git": {"branch": "none"}}));
    assert_eq!((&found["outcome"], found["findings"].as_array().unwrap().len()), (&json!("failed"), 2), "{found:#}");
    let digest = writ_core::Digest::of(b"text").hex();
    let found = of(json!({"artifacts": [{"name": "out", "uri": "file://./src/1.rs", "digest": {"sha256": digest}}]}));
    assert_eq!(found["outcome"], "passed", "{found:#}");
    let found = of(json!({"artifacts": [{"name": "out", "uri": "file://./src/1.rs", "digest": {"sha256": root}}]}));
    assert_eq!(found["outcome"], "failed", "{found:#}");
    let found =
        of(json!({"artifacts": [{"name": "out!", "uri": "https://x.example/1", "digest": {"sha256": digest}}]}));
    assert_eq!(found["outcome"], "absent", "{found:#}");
    let found = of(json!({"git": {"treeHash": "a".repeat(40)}}));
    assert_eq!(found["outcome"], "failed", "{found:#}");
}
