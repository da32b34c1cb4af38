//! §16: the seven MUST NOTs, chains of several levels, and that a child never allows what a parent does not.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use proptest::prelude::*;
use writ_agentfile::cedar::{ACTIONS, Request, known_action};
use writ_agentfile::ceiling::{self, Level, MustNot, chain_violations, violations};
use writ_agentfile::{Lock, Options, lint};

fn level(text: &str, file: &str) -> Level {
    let linted = lint(text.as_bytes(), file, &Options::default());
    assert!(!linted.has_errors(), "{file}: {:?}", linted.found);
    Level::of(linted)
}

const BASE: &str = "AGENT base\nAUDIT all\nTOOL utcp:read\nTOOL utcp:write\nTOOL utcp:shell\nALLOW invoke read\nALLOW invoke write\n\
                    DENY invoke shell\nURL https://api.example\nURL https://b.example\nURL http://c.example:8080\nURL https://c.example\nMOUNT /w rw\nMOUNT /data ro\n\
                    CRED t env:T host:api.example host:*.s.example\nRATELIMIT write 20/hour\nTIMEOUT 60\nLIMIT tool_calls 100\n\
                    POLICY\nforbid(principal, action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/w/secret\");\nEND\n";

fn child(lines: &str) -> Level {
    level(&format!("AGENT child\n{lines}"), "child")
}

fn found(lines: &str) -> Vec<MustNot> {
    let found = violations(&child(lines).agent, None, &level(BASE, "base"));
    for one in &found {
        assert!(one.child.file == "child" && one.parent.file == "base", "{one:?}");
        assert!(one.child.line.is_some() && !one.child.text.is_empty() && !one.parent.text.is_empty(), "{one:?}");
    }
    found.into_iter().map(|one| one.rule).collect()
}

#[test]
fn what_stays_within_is_let_through() {
    for lines in [
        "",
        "AUDIT all\n",
        "AUDIT compliance\nTOOL utcp:read\nALLOW invoke read\n",
        "URL https://api.example/path\n",
        "URL https://api.example:443\nSERVER s https://B.example:443/x\n",
        "TRACE on\n",
        "TRACE otlp://API.example:4317\n",
        "URL http://c.example:8080\nURL https://c.example\n",
        "MOUNT /w ro\n",
        "MOUNT /w/sub rw\n",
        "MOUNT /data/x ro\n",
        "CRED t env:T host:api.example\n",
        "CRED t env:T host:a.s.example\n",
        "TOOL utcp:write\nRATELIMIT write 10/hour\n",
        "TOOL utcp:write\nRATELIMIT write 20/day\n",
        "TIMEOUT 60\nLIMIT tool_calls 99\n",
        "TOOL utcp:shell\nDENY invoke shell\n",
    ] {
        let rules: Vec<MustNot> = found(lines)
            .into_iter()
            .filter(|rule| *rule != MustNot::IncreaseAuthority || !lines.contains("shell"))
            .collect();
        assert_eq!(rules, [], "{lines}");
    }
}

/// What no line says by itself: requests that the child allows and the base denies, and sets whose tools nobody knows.
#[test]
fn what_policies_grant_beyond_the_base_is_refused() {
    use MustNot::{IncreaseAuthority, RemoveDeny};
    let base = |lines: &str| level(&format!("AGENT p\nCMD run\nAUDIT all\n{lines}"), "base");
    let block = |text: &str| format!("POLICY\n{text}\nEND\n");
    let forbid = |action: &str, resource: &str| {
        block(&format!("forbid(principal, action == AgentRC::Action::\"{action}\", resource {resource});"))
    };
    let tools = "permit(principal, action == AgentRC::Action::\"tool.invoke\", resource);";
    let own = format!(
        "TOOL utcp:x\n{}",
        block(&format!(
            "{tools}\nforbid(principal, action in [AgentRC::Action::\"tool.invoke\"], resource) when {{ resource == AgentRC::Tool::\"x\" }};"
        ))
    );
    for (parent, lines, wanted) in [
        (String::new(), block("permit(principal, action, resource);"), vec![IncreaseAuthority]),
        (String::new(), block("permit(principal, action, resource is AgentRC::Agent);"), vec![IncreaseAuthority]),
        (
            format!("URL https://a.example\n{}", forbid("network.egress", "== AgentRC::Host::\"a.example\"")),
            "URL https://a.example\n".to_owned(),
            vec![RemoveDeny],
        ),
        (
            format!("URL https://a.b.example\n{}", forbid("network.egress", "in AgentRC::Host::\"*.b.example\"")),
            "URL https://a.b.example\n".to_owned(),
            vec![RemoveDeny],
        ),
        (
            format!("MOUNT /w rw\n{}", forbid("filesystem.write", "in AgentRC::Path::\"/w/s\"")),
            "MOUNT /w/s rw\n".to_owned(),
            vec![RemoveDeny],
        ),
        (own.clone(), "TOOL utcp:x\nALLOW invoke x\n".to_owned(), vec![RemoveDeny]),
        (format!("TOOL utcp:x\n{}", block(tools)), "TOOLSET st:ws\n".to_owned(), vec![IncreaseAuthority]),
        (format!("TOOL utcp:x\n{}", block(tools)), "TOOL utcp:x\nALLOW invoke x\n".to_owned(), vec![]),
        ("MOUNT /w rw\n".to_owned(), "MOUNT /w/s rw\n".to_owned(), vec![]),
    ] {
        let found: Vec<MustNot> =
            violations(&child(&lines).agent, None, &base(&parent)).into_iter().map(|one| one.rule).collect();
        assert_eq!(found, wanted, "{parent}{lines}");
    }
}

/// By a short name each file means its own tool.
#[test]
fn a_tool_is_the_base_s_by_its_whole_name() {
    let base = level("AGENT b\nCMD run\nTOOL utcp:x\nALLOW invoke x\n", "base");
    for (tool, allowed) in [("utcp", true), ("evil", false)] {
        let child = child(&format!("TOOL {tool}:x\nALLOW invoke x\n"));
        let request = Request::new(known_action("tool.invoke").unwrap(), "x");
        let (decided, _) = ceiling::decide(&child, std::slice::from_ref(&base), &request);
        assert_eq!(decided.is_allowed(), allowed, "{tool}: {decided:?}");
    }
}

#[test]
fn each_of_the_seven_is_refused() {
    use MustNot::{ExposeCredential, IncreaseAuthority, LowerAudit, RemoveDeny, WeakenLimit, WidenFiles, WidenNetwork};
    for (lines, rule) in [
        ("TOOL utcp:shell\nALLOW invoke shell\n", RemoveDeny),
        (
            "TOOL utcp:shell\nPOLICY\npermit(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"shell\");\nEND\n",
            RemoveDeny,
        ),
        ("URL https://evil.example\n", WidenNetwork),
        ("SERVER s https://evil.example\n", WidenNetwork),
        ("URL https://api.example:8443\n", WidenNetwork),
        ("URL http://api.example\n", WidenNetwork),
        ("URL http://api.example:443\n", WidenNetwork),
        ("SERVER s https://api.example:8443/x\n", WidenNetwork),
        // A scheme of one line and a port of another are neither's.
        ("URL https://c.example:8080\n", WidenNetwork),
        ("URL http://c.example\n", WidenNetwork),
        ("TRACE https://evil.example/v1\n", WidenNetwork),
        ("TRACE otlp://evil.example:4317\n", WidenNetwork),
        ("MOUNT /other ro\n", WidenFiles),
        ("MOUNT /data rw\n", WidenFiles),
        ("MOUNT / ro\n", WidenFiles),
        ("CRED u env:U host:api.example\n", ExposeCredential),
        ("CRED t env:T host:b.example\n", ExposeCredential),
        ("CRED t env:OTHER host:api.example\n", ExposeCredential),
        ("CRED t env:T host:api.example inject:query\n", ExposeCredential),
        ("CRED t env:T host:*.example.org\n", ExposeCredential),
        ("AUDIT basic\n", LowerAudit),
        ("AUDIT off\n", LowerAudit),
        ("TOOL utcp:new\nALLOW invoke new\n", IncreaseAuthority),
        (
            "POLICY\npermit(principal, action == AgentRC::Action::\"agent.delegate\", resource);\nEND\n",
            IncreaseAuthority,
        ),
        ("TOOL utcp:write\nRATELIMIT write 21/hour\n", WeakenLimit),
        ("TOOL utcp:write\nRATELIMIT write 1/sec\n", WeakenLimit),
        ("TIMEOUT 61\n", WeakenLimit),
        ("LIMIT tool_calls 101\n", WeakenLimit),
    ] {
        assert!(found(lines).contains(&rule), "{lines}: {:?}", found(lines));
    }
}

#[test]
fn a_violation_quotes_how_both_sides_reach_a_host() {
    let found = violations(&child("URL https://c.example:8443\n").agent, None, &level(BASE, "base"));
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.message, "`c.example` is reached by https on port 8443");
    assert_eq!(one.child.text, "URL https://c.example:8443");
    assert_eq!(one.parent.text, "URL http://c.example:8080`, `URL https://c.example");
    assert_eq!(one.parent.line, Some(11));
}

/// What stands in a block is told at its own line, and what is wrong with a base at no line of the child.
#[test]
fn a_violation_is_told_where_it_stands() {
    let delegates = "POLICY\n\n  permit(principal, action == AgentRC::Action::\"agent.delegate\", resource);\nEND\n";
    let own = child(delegates);
    let told = |found: &[ceiling::Violation]| {
        let places = found.iter().map(|one| one.diagnostic(&own.agent).place);
        places.map(|place| (place.line, place.column)).collect::<Vec<_>>()
    };
    assert_eq!(told(&violations(&own.agent, None, &level(BASE, "base"))), [(4, 3)]);
    assert_eq!(
        told(&violations(&child("AUDIT all\nURL https://evil.example\n").agent, None, &level(BASE, "base"))),
        [(3, 1)]
    );
    let middle = level(&format!("AGENT middle\nAUDIT all\n{delegates}"), "middle");
    let found = chain_violations(&own.agent, None, &[middle, level(BASE, "base")]);
    assert_eq!(told(&found), [(1, 1), (4, 3)]);
}

#[test]
fn a_chain_holds_at_every_level() {
    let middle =
        level("AGENT middle\nAUDIT all\nTOOL utcp:read\nALLOW invoke read\nURL https://api.example\n", "middle");
    let chain = [middle, level(BASE, "base")];
    assert_eq!(chain_violations(&child("URL https://api.example\n").agent, None, &chain), []);
    // The base would let it, the nearer one does not.
    let far: Vec<_> = chain_violations(&child("URL https://b.example\n").agent, None, &chain)
        .into_iter()
        .map(|one| (one.rule, one.parent.file))
        .collect();
    assert_eq!(far, [(MustNot::WidenNetwork, "middle".to_owned())]);
}

fn ask(child: &Level, chain: &[Level], action: &str, resource: &str) -> (bool, Option<usize>) {
    let request = Request::new(known_action(action).unwrap(), resource);
    let (decided, level) = ceiling::decide(child, chain, &request);
    (decided.is_allowed(), level)
}

#[test]
fn every_level_is_asked() {
    let own =
        child("TOOL utcp:read\nTOOL utcp:shell\nALLOW invoke read\nALLOW invoke shell\nMOUNT /w rw\nMOUNT /x rw\n");
    let chain = [level(BASE, "base")];
    assert_eq!(ask(&own, &chain, "tool.invoke", "read"), (true, None));
    assert_eq!(ask(&own, &chain, "tool.invoke", "shell"), (false, Some(0)));
    assert_eq!(ask(&own, &[], "tool.invoke", "shell"), (true, None));
    assert_eq!(ask(&own, &chain, "filesystem.write", "/w/a"), (true, None));
    assert_eq!(ask(&own, &chain, "filesystem.read", "/w/secret/a"), (false, Some(0)));
    assert_eq!(ask(&own, &chain, "filesystem.read", "/x/a"), (false, Some(0)));
    assert_eq!(ask(&own, &chain, "filesystem.read", "/y/a"), (false, None));
}

#[test]
fn what_a_base_forbids_to_the_child_by_name_holds() {
    let base = "AGENT base\nTOOL utcp:read\nALLOW invoke read\nPOLICY\nforbid(principal == AgentRC::Agent::\"child\", action, resource);\nEND\n";
    let own = child("TOOL utcp:read\nALLOW invoke read\n");
    assert_eq!(ask(&own, &[level(base, "base")], "tool.invoke", "read"), (false, Some(0)));
    // By whatever name, and however it is written.
    let lines = "TOOL utcp:read\nALLOW invoke read\nURL https://h.example\nMOUNT /w ro\n";
    let forbids = |text: &str| {
        let forbid = format!("POLICY\nforbid(principal == AgentRC::Agent::\"child\", action, resource) {text};\nEND\n");
        [level(&format!("AGENT base\n{lines}{forbid}"), "base")]
    };
    let own = child(lines);
    for (text, action, names) in [
        ("when { resource == AgentRC::Tool::\"read\" }", "tool.invoke", ["read", "utcp:read"]),
        ("when { resource == AgentRC::Host::\"h.example\" }", "network.egress", ["h.example", "H.EXAMPLE"]),
        ("when { resource == AgentRC::Path::\"/w/s\" }", "filesystem.read", ["/w/s", "/w/s/"]),
    ] {
        for name in names {
            assert_eq!(ask(&own, &forbids(text), action, name), (false, Some(0)), "{text} {name}");
            assert_eq!(ask(&own, &forbids("when { resource == AgentRC::Tool::\"x\" }"), action, name), (true, None));
        }
    }
    // What is forbidden to another by name is nobody else's affair.
    let base = "AGENT base\nAUDIT all\nTOOL utcp:read\nALLOW invoke read\nPOLICY\nforbid(principal == AgentRC::Agent::\"other\", action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"read\");\nEND\n";
    let own = child("TOOL utcp:read\nALLOW invoke read\n");
    assert_eq!(violations(&own.agent, None, &level(base, "base")), []);
    assert!(!violations(&own.agent, None, &level(&base.replace("other", "child"), "base")).is_empty());
}

const LINES: [&str; 18] = [
    "TOOL utcp:read",
    "TOOL utcp:write",
    "TOOL utcp:shell",
    "URL https://api.example",
    "URL https://b.example",
    "URL https://c.example",
    "MOUNT /w rw",
    "MOUNT /data ro",
    "MOUNT /etc ro",
    "CRED t env:T host:api.example",
    "CRED u env:U host:b.example",
    "AUDIT basic",
    "AUDIT off",
    "AUDIT all",
    "TIMEOUT 60",
    "TIMEOUT 600",
    "LIMIT tool_calls 10",
    "LIMIT tool_calls 1000",
];

/// A valid Agentfile of some of these lines, its tools permitted.
fn made(name: &str, picks: &[usize]) -> String {
    let mut lines = vec![format!("AGENT {name}")];
    for line in picks.iter().filter_map(|at| LINES.get(*at)) {
        let key = |line: &str| {
            line.split(' ')
                .take(if line.starts_with("AUDIT") || line.starts_with("TIMEOUT") { 1 } else { 2 })
                .collect::<Vec<_>>()
                .join(" ")
        };
        if lines.iter().all(|known| key(known) != key(line)) {
            lines.push((*line).to_owned());
        }
    }
    let allowed: Vec<String> =
        lines.iter().filter_map(|line| Some(format!("ALLOW invoke {}", line.strip_prefix("TOOL ")?))).collect();
    lines.extend(allowed);
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A child that has no violations is allowed nothing by itself that its base would not allow.
    #[test]
    fn without_violations_nothing_is_wider(base in prop::collection::vec(0usize..18, 0..9), child in prop::collection::vec(0usize..18, 0..9)) {
        let (base, child) = (level(&made("base", &base), "base"), level(&made("child", &child), "child"));
        let clean = violations(&child.agent, None, &base).is_empty();
        let mut wider = Vec::new();
        for action in &ACTIONS {
            for resource in ["read", "write", "shell", "api.example", "b.example", "c.example", "/w/a", "/data/a", "/etc/a", "t", "u"] {
                for host in ["api.example", "b.example"] {
                    let mut request = Request::new(action, resource);
                    if action.name == "cred.resolve" {
                        request.context.push("host", writ_core::json::Value::from(host));
                    }
                    let own = child.rules.decide(&child.agent, &request).is_allowed();
                    let held = base.rules.decide(&base.agent, &request).is_allowed();
                    if own && !held {
                        wider.push(format!("{} on {resource}", action.name));
                    }
                    let (both, _) = ceiling::decide(&child, std::slice::from_ref(&base), &request);
                    prop_assert!(!both.is_allowed() || own && held);
                }
            }
        }
        prop_assert!(!clean || wider.is_empty(), "{wider:?}\n{}\n{}", base.agent.text, child.agent.text);
    }
}

/// What the base permits by name is told where the name is another's.
#[test]
fn a_name_of_the_base_s_is_told() {
    let digest = format!("ghcr.io/o/s@sha256:{}", "0".repeat(64));
    let parent = level(
        &format!(
            "AGENT p\nCMD run\nAUDIT all\nSKILL ./a/x\nSKILL named\nSKILL {digest}\nFUNCTION ./a.py:f\nMCP m\nMCP registry://r/n@1\nSERVER m https://m.example\nSOP s\none\nEND\n"
        ),
        "base",
    );
    let told = |line: &str| {
        let own = child(&format!("{line}\n"));
        let found = ceiling::taken(&own.agent, None, &parent);
        assert!(found.iter().all(|one| one.code == "base-name" && !one.is_error() && one.place.line == 2), "{found:?}");
        found.len()
    };
    for other in [
        "SKILL ./a/x",
        "SKILL ./b/x",
        "SKILL x",
        "SKILL ./named",
        "SKILL ghcr.io/o/s:1",
        "FUNCTION ./a.py:f",
        "FUNCTION f",
        "MCP registry://r/n@2",
        "SERVER m https://other.example",
        "SOP s\ntwo\nEND",
    ] {
        assert_eq!(told(other), 1, "{other}");
    }
    for same in [
        "SKILL named",
        "SKILL ./y",
        &format!("SKILL {digest}"),
        "FUNCTION g",
        "MCP m",
        "MCP registry://r/n@1",
        "SERVER m https://m.example",
        "SOP s\none\nEND",
    ] {
        assert_eq!(told(same), 0, "{same}");
    }
}

/// Which tools a set has, its list says, and the lock which list that is.
#[test]
fn a_set_is_the_base_s_by_the_same_list() {
    let locked = |text: &str, file: &str, list: Option<&str>| {
        let own = lint(text.as_bytes(), file, &Options::default());
        let hash = list.map(|list| format!("sha256:{}", list.repeat(64)));
        let set = hash
            .map(|hash| format!(r#"[{{"name":"st:ws","version":"","hash":"{hash}","source":"./toolsets/ws.json"}}]"#));
        let tool = r#"[{"name":"utcp:x","version":"","source":"runner"}]"#;
        let json = format!(
            r#"{{"version":"1","agentfile_hash":"{}","tools":{tool},"toolsets":{},"functions":[],"skills":[],"sops":[],"policy_hash":"{}","credential_names":[]}}"#,
            own.agent.digest(),
            set.unwrap_or_else(|| "[]".to_owned()),
            own.rules.digest(),
        );
        Level::locked(own, Lock::parse(json.as_bytes()).unwrap())
    };
    let base = "AGENT p\nCMD run\nAUDIT all\nTOOLSET st:ws\nPOLICY\npermit(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"x\");\nEND\n";
    let own = "AGENT c\nCMD run\nAUDIT all\nTOOLSET st:ws\n";
    let found = |child: Option<&str>, parent: Option<&str>| {
        let (child, parent) = (locked(own, "child", child), locked(base, "base", parent));
        let own = lint(own.as_bytes(), "child", &Options::default());
        violations(&own.agent, child.lock.as_ref(), &parent)
    };
    assert_eq!(found(Some("a"), Some("a")), []);
    for (child, parent) in [(Some("a"), Some("b")), (Some("a"), None), (None, Some("a")), (None, None)] {
        let found = found(child, parent);
        assert!(matches!(found.as_slice(), [one] if one.rule == MustNot::IncreaseAuthority), "{found:?}");
    }
    // What a set brings is declared, and what it does not is not.
    let base = [locked(base, "base", Some("a"))];
    for (tool, wanted) in [("utcp:x", true), ("utcp:y", false)] {
        let child = child(&format!("TOOL {tool}\nALLOW invoke {tool}\n"));
        assert_eq!(violations(&child.agent, None, &base[0]).is_empty(), wanted, "{tool}");
        assert_eq!(ask(&child, &base, "tool.invoke", tool).0, wanted, "{tool}");
    }
}
