//! Decisions of small Agentfiles.

use super::*;
use crate::cedar::by_action::ByAction;
use crate::{Options, lint};

/// What is forbidden whatever the context says is known without a request.
#[test]
fn what_is_forbidden_without_a_condition_is_listed() {
    use crate::cedar::forbidden::Which;
    let text = "AGENT x\nAUDIT basic\nPOLICY\n\
        forbid(principal, action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/w/s\");\n\
        forbid(principal == AgentRC::Agent::\"x\", action in [AgentRC::Action::\"filesystem.write\", AgentRC::Action::\"filesystem.read\"], resource == AgentRC::Path::\"/w/one\");\n\
        forbid(principal == AgentRC::Agent::\"other\", action, resource);\n\
        forbid(principal, action == AgentRC::Action::\"network.egress\", resource) when { context.port == 22 };\n\
        forbid(principal, action == AgentRC::Action::\"network.egress\", resource == AgentRC::Host::\"h.example\");\nEND\n";
    let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
    assert!(!linted.has_errors(), "{:?}", linted.found);
    let found = linted.rules.forbidden(&["x"]);
    let (within, one) = (Which::Within("/w/s".to_owned()), Which::One("/w/one".to_owned()));
    assert_eq!(found.read.len(), 2);
    assert!(found.read.contains(&within) && found.read.contains(&one), "{found:?}");
    assert_eq!((found.written, found.hosts), (vec![one], vec![Which::One("h.example".to_owned())]));
    assert_eq!(linted.rules.forbidden(&["x", "other"]).hosts.len(), 2);
}

/// A policy on what is spelled as nothing is that is asked about would forbid nothing.
#[test]
fn paths_and_hosts_in_policies_are_spelled_as_they_are_asked_about() {
    let codes = |resource: &str| {
        let text = format!("AGENT x\nAUDIT basic\nPOLICY\nforbid(principal, action, resource {resource});\nEND\n");
        let found = lint(text.as_bytes(), "Agentfile", &Options::default()).found;
        found.into_iter().filter(|found| found.is_error()).map(|found| found.code).collect::<Vec<_>>()
    };
    for path in ["/w/.git", "/", "/w"] {
        assert_eq!(codes(&format!("in AgentRC::Path::\"{path}\"")), Vec::<&str>::new(), "{path}");
    }
    for path in ["/w/.git/", "/w/.git/**", "/w/../x", "//w", ".git", "w/x", ""] {
        assert_eq!(codes(&format!("in AgentRC::Path::\"{path}\"")), ["path-name"], "{path}");
    }
    for host in ["h.example", "*.h.example", "127.0.0.1", "[::1]"] {
        assert_eq!(codes(&format!("in AgentRC::Host::\"{host}\"")), Vec::<&str>::new(), "{host}");
    }
    let exact = "AGENT x\nPOLICY\nforbid(principal, action, resource == AgentRC::Host::\"*.h.example\");\nEND\n";
    let found = lint(exact.as_bytes(), "Agentfile", &Options::default()).found;
    assert!(found.iter().any(|one| one.code == "never-applies" && one.place.line == 3), "{found:?}");
    for host in ["H.example", "h.example.", "https://h.example", "h.example:443", "*", "h.*"] {
        assert_eq!(codes(&format!("in AgentRC::Host::\"{host}\"")), ["host-name"], "{host}");
    }
}

/// What is known of a call is held to the same forms as what it is about.
#[test]
fn a_context_names_hosts_and_paths_as_they_are() {
    let text = "AGENT x\nAUDIT basic\nTOOL builtin:shell\nNETWORK *.x.com:443\nCRED tok env:TOK host:*.x.com\nMOUNT /w rw\nPOLICY\n\
        permit(principal, action, resource);\n\
        forbid(principal, action == AgentRC::Action::\"tool.invoke\", resource) when { context.path like \"/etc/*\" };\nEND\n";
    let linted = lint(text.as_bytes(), "Agentfile", &Options::default());
    for (action, resource, context, allowed) in [
        ("cred.resolve", "tok", r#"{"host":"a.x.com","inject":"header"}"#, true),
        ("cred.resolve", "tok", r#"{"host":"A.x.com"}"#, true),
        ("cred.resolve", "tok", r#"{"host":"a.x.com","inject":"query"}"#, false),
        ("cred.resolve", "tok", r##"{"host":"evil.com#.x.com"}"##, false),
        ("cred.resolve", "tok", r#"{"host":"evil/.x.com"}"#, false),
        ("tool.invoke", "shell", r#"{"path":"/w/a/"}"#, true),
        ("tool.invoke", "shell", r#"{"path":"a"}"#, true),
        ("tool.invoke", "shell", r#"{"path":""}"#, true),
        ("tool.invoke", "shell", r#"{"path":"/w/../etc/passwd"}"#, false),
        ("tool.invoke", "shell", r#"{"path":"../etc/passwd"}"#, false),
        ("tool.invoke", "shell", r#"{"path":"//etc/passwd"}"#, false),
    ] {
        let asked = format!(r#"{{"action":"{action}","resource":"{resource}","context":{context}}}"#);
        let decided = linted.rules.decide(&linted.agent, &Request::parse(asked.as_bytes()).unwrap());
        assert_eq!(decided.is_allowed(), allowed, "{asked} {decided:?} {:?}", linted.found);
    }
}

/// What is asked of sorted policies is what Cedar says of all of them.
#[test]
fn sorted_policies_decide_as_all_of_them() {
    let (heads, conditions) = (
        ["permit", "forbid"],
        [
            "",
            "when { context.mode == \"read\" }",
            "unless { context.count < 3 }",
            "when { context.count + 9223372036854775807 > 0 }",
        ],
    );
    let tool = |name: &str| format!("resource == AgentRC::Tool::\"{name}\"");
    let resources = [tool("a"), tool("b"), "resource".to_owned(), "resource is AgentRC::Tool".to_owned()];
    let mut number = 0_usize;
    // A generator of its own, so that a failure repeats.
    let mut next = |most: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % most
    };
    for _ in 0..60 {
        let mut text = "AGENT x\nAUDIT basic\nTOOL utcp:a\nTOOL utcp:b\nPOLICY\n".to_owned();
        for _ in 0..next(6) {
            let (head, what, when) = (heads[next(2)], &resources[next(4)], conditions[next(4)]);
            text += &format!("{head}(principal, action == AgentRC::Action::\"tool.invoke\", {what}) {when};\n");
        }
        let linted = lint((text.clone() + "END\n").as_bytes(), "Agentfile", &Options::default());
        assert!(!linted.has_errors(), "{text} {:?}", linted.found);
        let mut whole = lint(linted.agent.text.as_bytes(), "Agentfile", &Options::default()).rules;
        whole.by_action = ByAction::default();
        for name in ["a", "b"] {
            for count in [0, 1, 9] {
                let asked = format!(
                    r#"{{"action":"tool.invoke","resource":"{name}","context":{{"mode":"read","count":{count}}}}}"#
                );
                let request = Request::parse(asked.as_bytes()).unwrap();
                let (sorted, all) =
                    (linted.rules.decide(&linted.agent, &request), whole.decide(&linted.agent, &request));
                assert_eq!(
                    (sorted.decision, &sorted.rules, sorted.errors.len()),
                    (all.decision, &all.rules, all.errors.len()),
                    "{text}{asked}"
                );
            }
        }
    }
}
