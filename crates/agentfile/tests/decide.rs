//! Decisions: declared, permitted, not forbidden, no error (R5, R62).
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Instant;

use writ_agentfile::cedar::{Request, Rules};
use writ_agentfile::{Agent, Options, lint};

fn agent(text: &str) -> (Agent, Rules) {
    let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
    assert!(!linted.has_errors(), "{:?}", linted.found);
    (linted.agent, linted.rules)
}

fn decide(text: &str, request: &str) -> (bool, Vec<usize>) {
    let (agent, rules) = agent(text);
    let decided = rules.decide(&agent, &Request::parse(request.as_bytes()).unwrap());
    (decided.is_allowed(), decided.rules.iter().map(|said| said.line).collect())
}

const TEXT: &str = "AGENT a\nAUDIT basic\nTOOL utcp:read\nTOOL utcp:write\nTOOL utcp:shell\nMOUNT /w rw\nMOUNT /w/ro ro\nURL https://api.example\n\
                    CRED t env:T host:*.h.example\nALLOW invoke read\nDENY invoke shell\nRATELIMIT read 1/min\nPOLICY\n\
                    permit(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"shell\");\n\
                    @id(\"writes\") permit(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"write\")\n  \
                    when { context.path like \"/w/*\" };\nEND\n";

#[test]
fn the_line_that_decides_is_named() {
    for (request, allowed, lines) in [
        (r#"{"action":"tool.invoke","resource":"read"}"#, true, vec![10]),
        (r#"{"action":"tool.invoke","resource":"utcp:read"}"#, true, vec![10]),
        (r#"{"action":"AgentRC::Action::\"tool.invoke\"","resource":"AgentRC::Tool::\"read\""}"#, true, vec![10]),
        (
            r#"{"action":"tool.invoke","resource":{"type":"AgentRC::Tool","id":"read"},"principal":{"type":"Agent","id":"a"}}"#,
            true,
            vec![10],
        ),
        (r#"{"action":"tool.invoke","resource":"read","principal":"b"}"#, false, vec![]),
        (r#"{"action":"tool.invoke","resource":"read","context":{"rate_exceeded":true}}"#, false, vec![12]),
        (r#"{"action":"tool.invoke","resource":"shell"}"#, false, vec![11]),
        (r#"{"action":"tool.invoke","resource":"nope"}"#, false, vec![]),
        (r#"{"action":"tool.invoke","resource":"write","context":{"path":"/w/a"}}"#, true, vec![15]),
        (r#"{"action":"tool.invoke","resource":"write","context":{"path":"/etc/a"}}"#, false, vec![]),
        // Nothing is known of a path: the policy errs, and that denies.
        (r#"{"action":"tool.invoke","resource":"write"}"#, false, vec![]),
        (r#"{"action":"network.egress","resource":"api.example"}"#, true, vec![8]),
        (r#"{"action":"network.egress","resource":"API.example"}"#, true, vec![8]),
        (r#"{"action":"network.egress","resource":"evil.example"}"#, false, vec![]),
        (
            r#"{"action":"network.egress","resource":"api.example","context":{"scheme":"https","port":443}}"#,
            true,
            vec![8],
        ),
        (r#"{"action":"network.egress","resource":"api.example","context":{"scheme":""}}"#, true, vec![8]),
        (r#"{"action":"network.egress","resource":"api.example","context":{"port":8443}}"#, false, vec![]),
        (r#"{"action":"network.egress","resource":"api.example","context":{"scheme":"http"}}"#, false, vec![]),
        (r#"{"action":"network.egress","resource":"api.example","context":{"scheme":"HTTPS"}}"#, false, vec![]),
        (r#"{"action":"filesystem.write","resource":"/w/a"}"#, true, vec![6]),
        (r#"{"action":"filesystem.write","resource":"/w/ro/a"}"#, false, vec![]),
        (r#"{"action":"filesystem.read","resource":"/w/ro/a"}"#, true, vec![6, 7]),
        (r#"{"action":"filesystem.read","resource":"/w/../etc"}"#, false, vec![]),
        (r#"{"action":"filesystem.read","resource":"/etc"}"#, false, vec![]),
        (r#"{"action":"cred.resolve","resource":"t","context":{"host":"x.h.example"}}"#, true, vec![9]),
        (r#"{"action":"cred.resolve","resource":"t","context":{"host":"h.example"}}"#, false, vec![]),
        (r#"{"action":"cred.resolve","resource":"t"}"#, false, vec![]),
        (r#"{"action":"cred.resolve","resource":"u","context":{"host":"x.h.example"}}"#, false, vec![]),
        (r#"{"action":"agent.delegate","resource":"b"}"#, false, vec![]),
    ] {
        let (found, by) = decide(TEXT, request);
        assert_eq!((found, &by), (allowed, &lines), "{request}");
    }
}

#[test]
fn an_error_denies_beside_a_permit() {
    let text = "AGENT a\nAUDIT off\nTOOL utcp:read\nALLOW invoke read\nPOLICY\n\
                forbid(principal, action == AgentRC::Action::\"tool.invoke\", resource) when { context.count + 9223372036854775807 > 0 };\nEND\n";
    let (agent, rules) = agent(text);
    for (count, errs) in [(1, true), (-1, false)] {
        let request = format!(r#"{{"action":"tool.invoke","resource":"read","context":{{"count":{count}}}}}"#);
        let decided = rules.decide(&agent, &Request::parse(request.as_bytes()).unwrap());
        assert!(!decided.is_allowed());
        assert_eq!(!decided.errors.is_empty(), errs, "{decided:?}");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    for bad in [
        "",
        "{}",
        "[]",
        r#"{"action":"tool.run","resource":"x"}"#,
        r#"{"action":"tool.invoke"}"#,
        r#"{"action":"tool.invoke","resource":"AgentRC::Host::\"x\""}"#,
        r#"{"action":"tool.invoke","resource":{"type":"Host","id":"x"}}"#,
        r#"{"action":"tool.invoke","resource":"x","context":{"nope":1}}"#,
        r#"{"action":"tool.invoke","resource":"x","context":{"path":1}}"#,
        r#"{"action":"tool.invoke","resource":"x","context":{"count":1.5}}"#,
        r#"{"action":"tool.invoke","resource":"x","context":[]}"#,
        r#"{"action":"tool.invoke","resource":"x","more":1}"#,
    ] {
        assert!(Request::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn broken_policies_decide_nothing() {
    let linted =
        lint(b"AGENT a\nTOOL utcp:read\nALLOW invoke read\nPOLICY\nnonsense;\nEND\n", "Agentfile", &Options::default());
    assert!(linted.has_errors());
    let request = Request::parse(br#"{"action":"tool.invoke","resource":"read"}"#).unwrap();
    assert!(!linted.rules.decide(&linted.agent, &request).is_allowed());
}

/// Not a bar, which a loaded machine and an unoptimised build would miss: the figures are printed, and the order of magnitude is held.
#[test]
fn fifty_policies_and_five_hundred_lines_are_soon_done() {
    let mut text = String::from("AGENT a\nAUDIT off\nTOOL utcp:read\nALLOW invoke read\n");
    for at in 0..49 {
        text.push_str(&format!("TOOL utcp:t{at}\nALLOW invoke t{at}\n"));
    }
    let (agent, rules) = agent(&text);
    let request = Request::parse(br#"{"action":"tool.invoke","resource":"read"}"#).unwrap();
    assert!(rules.decide(&agent, &request).is_allowed());
    let start = Instant::now();
    for _ in 0..1000 {
        assert!(rules.decide(&agent, &request).is_allowed());
    }
    let each = start.elapsed() / 1000;
    while text.lines().count() < 500 {
        text.push_str(&format!("URL https://h{}.example\n", text.lines().count()));
    }
    let start = Instant::now();
    assert!(!lint(text.as_bytes(), "Agentfile", &Options::default()).has_errors());
    let linted = start.elapsed();
    println!("decide {each:?} with 50 policies, lint {linted:?} of 500 lines");
    assert!(each.as_millis() < 5 && linted.as_millis() < 1000, "{each:?} {linted:?}");
}

/// A policy that is too deep for the validator is not one that it has nothing against.
#[test]
fn deep_policies_are_checked_or_refused() {
    for (body, code) in [
        (format!("context.nope {} == 1", "+ 1 ".repeat(1_900)), "cedar-type"),
        (format!("context{} == 1", ".a".repeat(1_900)), "cedar-type"),
        (format!("context{} == 1", ".a".repeat(6_000)), "too-large"),
        (format!("context.nope {} == 1", "+ 1 ".repeat(3_500)), "too-large"),
    ] {
        let text = format!(
            "AGENT a\nCMD run\nTOOL utcp:w\nPOLICY\npermit(principal, action == AgentRC::Action::\"tool.invoke\", resource) when {{ {body} }};\nEND\n"
        );
        let found = lint(text.as_bytes(), "Agentfile", &Options::default()).found;
        assert!(found.iter().any(|one| one.code == code && one.is_error()), "{code}: {found:?}");
    }
}
