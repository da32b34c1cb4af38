//! `writ agentfile prove` against brute force: what it calls proved, no generated request refutes; what it calls refuted is shown by a
//! request that `decide` allows to the child and, with the base, denies.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use workplace::Workplace;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

const TOOLS: [&str; 2] = ["t1", "t2"];
const HOSTS: [&str; 3] = ["a.x.example", "b.x.example", "y.example"];
const PATHS: [&str; 5] = ["/w", "/w/p", "/w/p/q", "/w/z", "/w/p2"];

const CALL: [&str; 10] = [
    "context.path == \"/w/p\"",
    "context has path && context.path like \"/w/*\"",
    "context has host && context.host == \"a.x.example\"",
    "context.count > 3",
    "context has count && context.count > 3",
    "context.rate_exceeded",
    "context has path || context.count > 3",
    "if context has path then context.path like \"/w/*\" else context has host",
    "context has count && context.count + 1 > 3",
    "!(context has caller)",
];
const EGRESS: [&str; 6] = [
    "context.port == 443",
    "context has port && context.port > 100",
    "context has method && [\"GET\", \"PUT\"].contains(context.method)",
    "context.host like \"*.x.example\"",
    "resource in AgentRC::Host::\"*.x.example\"",
    "resource == AgentRC::Host::\"a.x.example\"",
];
const FILE: [&str; 5] = [
    "context has mode && context.mode == \"rw\"",
    "resource in AgentRC::Path::\"/w/p\"",
    "context.path like \"/w/p*\"",
    "resource in [AgentRC::Path::\"/w/p/q\", AgentRC::Path::\"/w/z\"]",
    "context.mode == \"rw\"",
];
const SECRET: [&str; 3] = ["context.host == \"a.x.example\"", "context has url", "context has inject"];

fn policy(dice: &mut Dice, name: &str) -> String {
    let (action, kind, resources, conditions): (&str, &str, &[&str], &[&str]) = match dice.roll(7) {
        0..3 => ("tool.invoke", "Tool", &TOOLS, &CALL),
        3 => ("network.egress", "Host", &["a.x.example", "*.x.example"], &EGRESS),
        4 => ("filesystem.write", "Path", &PATHS, &FILE),
        5 => ("filesystem.read", "Path", &PATHS, &FILE),
        _ => ("cred.resolve", "Credential", &["tok"], &SECRET),
    };
    let effect = dice.pick(&["permit", "permit", "forbid"]);
    let principal = match dice.roll(4) {
        0 => format!("principal == AgentRC::Agent::\"{name}\""),
        _ => "principal".to_owned(),
    };
    let sign = dice.pick(&["==", "in"]);
    let resource = match dice.roll(3) {
        0 => "resource".to_owned(),
        _ => format!("resource {sign} AgentRC::{kind}::\"{}\"", dice.pick(resources)),
    };
    let when = match dice.roll(3) {
        0 => String::new(),
        1 => format!(" when {{ {} }}", dice.pick(conditions)),
        _ => format!(" unless {{ {} }}", dice.pick(conditions)),
    };
    format!("{effect}({principal}, action == AgentRC::Action::\"{action}\", {resource}){when};\n")
}

/// An agent whose policies for a hostname, a path, a secret and a tool are thrown.
fn agent(dice: &mut Dice, name: &str) -> String {
    let mut out = format!("AGENT {name}\nFROM scratch\nCMD x\nAUDIT all\nTOOL utcp:t1\nTOOL utcp:t2\nMOUNT /w rw\n");
    for host in HOSTS {
        if dice.roll(4) > 0 {
            writeln!(out, "URL https://{host}").unwrap();
        }
    }
    writeln!(out, "CRED tok env:TOK host:{}", dice.pick(&["a.x.example", "b.x.example"])).unwrap();
    for tool in TOOLS {
        if dice.roll(3) > 0 {
            writeln!(out, "ALLOW invoke {tool}").unwrap();
        }
    }
    out.push_str("POLICY\n");
    for _ in 0..=dice.roll(4) {
        out.push_str(&policy(dice, name));
    }
    out + "END\n"
}

/// Every combination of some values, each of which may be absent.
fn contexts(of: &[(&str, &[Value])]) -> Vec<Value> {
    let mut out = vec![json!({})];
    for (name, values) in of {
        let more: Vec<Value> = out
            .iter()
            .flat_map(|context| {
                values.iter().map(|value| {
                    let mut context = context.clone();
                    context[*name] = value.clone();
                    context
                })
            })
            .collect();
        out.extend(more);
    }
    out
}

fn requests() -> Vec<String> {
    let texts = |of: &[&str]| of.iter().map(|text| json!(text)).collect::<Vec<Value>>();
    let call = contexts(&[
        ("path", &texts(&["/w/p", "/w/z", "/q"])),
        ("host", &texts(&["a.x.example"])),
        ("count", &[json!(2), json!(5), json!(9)]),
        ("caller", &texts(&["someone"])),
        ("rate_exceeded", &[json!(true)]),
    ]);
    let egress = contexts(&[("port", &[json!(443), json!(80)]), ("method", &texts(&["GET", "DELETE"]))]);
    let file = contexts(&[("mode", &texts(&["rw", "ro"]))]);
    let secret = contexts(&[
        ("host", &texts(&["a.x.example", "b.x.example"])),
        ("url", &texts(&["https://a.x.example/"])),
        ("inject", &texts(&["header", "query"])),
    ]);
    let kinds: [(&str, &[&str], &[Value]); 5] = [
        ("tool.invoke", &TOOLS, &call),
        ("network.egress", &HOSTS, &egress),
        ("filesystem.read", &PATHS, &file),
        ("filesystem.write", &PATHS, &file),
        ("cred.resolve", &["tok"], &secret),
    ];
    let mut out = Vec::new();
    for (action, resources, contexts) in kinds {
        for (resource, context) in resources.iter().flat_map(|one| contexts.iter().map(move |context| (one, context))) {
            for principal in ["child", "zz"] {
                out.push(
                    json!({ "principal": principal, "action": action, "resource": resource, "context": context })
                        .to_string(),
                );
            }
        }
    }
    out
}

fn allowed(place: &Workplace, requests: &[String], base: &[&str]) -> Vec<bool> {
    let args = [&["agentfile", "decide", "--no-record", "-f", "child"], base].concat();
    let mut child = place.command(&args);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let (mut stdin, lines) = (child.stdin.take().unwrap(), requests.join("\n") + "\n");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said: Vec<bool> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["decision"] == "allow")
        .collect();
    assert_eq!(said.len(), requests.len(), "{}", String::from_utf8_lossy(&out.stderr));
    said
}

fn proved(place: &Workplace) -> Vec<Value> {
    let out = place.writ(&["agentfile", "prove", "--child", "child", "--parent", "base", "--format", "json"]);
    let said: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)));
    said["requests"].as_array().unwrap().clone()
}

/// A counterexample as `decide` reads it.
fn asked(shown: &Value) -> String {
    shown.to_string()
}

#[test]
fn proofs_agree_with_brute_force() {
    let place = Workplace::new("prove");
    let (mut dice, requests) = (Dice(20_261_128), requests());
    let (mut results, mut found) = ([0usize; 3], 0usize);
    for pair in 0..40 {
        let (base, child) = (agent(&mut dice, "base"), agent(&mut dice, "child"));
        fs::write(place.folder.join("repository/base"), &base).unwrap();
        fs::write(place.folder.join("repository/child"), &child).unwrap();
        let files = format!("pair {pair}\n{base}\n{child}");
        let answers = proved(&place);
        let result = |action: &str| answers.iter().find(|one| one["action"] == action).unwrap().clone();
        let (alone, both) = (allowed(&place, &requests, &[]), allowed(&place, &requests, &["--base", "base"]));
        for ((request, alone), both) in requests.iter().zip(alone).zip(both) {
            let action = serde_json::from_str::<Value>(request).unwrap()["action"].as_str().unwrap().to_owned();
            let answer = result(&action);
            assert!(alone || !both, "{request}\n{files}");
            if alone && !both {
                found += 1;
                assert_eq!(answer["result"], "refuted", "{request} {answer}\n{files}");
            }
        }
        for answer in &answers {
            let kind = ["proved", "refuted", "unknown"].iter().position(|kind| answer["result"] == *kind).unwrap();
            results[kind] += 1;
            assert_ne!(kind, 2, "{answer}\n{files}");
            if kind == 1 {
                let request = [asked(&answer["counterexample"])];
                assert_eq!(allowed(&place, &request, &[]), [true], "{answer}\n{files}");
                assert_eq!(allowed(&place, &request, &["--base", "base"]), [false], "{answer}\n{files}");
            }
        }
    }
    assert!(results[0] > 100 && results[1] > 20 && found > 1000, "{results:?} {found}");
}
