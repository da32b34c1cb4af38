//! What is said of actions and their attestations, and of Agentfiles and packages.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::outputs::{Outputs, put};
use crate::sigstore;
use crate::workplace::Workplace;

pub const VERDICTS: [&str; 6] =
    ["attestation-list", "attestation-verify", "evaluate", "gate", "keys-list", "keys-registry"];
pub const TOOLS: [&str; 4] = ["tool-call", "tool-describe", "tool-events", "tool-list"];
pub const AGENTS: [&str; 11] = [
    "agentfile-decide",
    "agentfile-lint",
    "agentfile-prove",
    "agentfile-show",
    "build",
    "discover",
    "inspect",
    "sign",
    "tag",
    "transfer",
    "verify",
];

#[test]
fn what_is_said_of_consequences() {
    let mut out = Outputs::new(Workplace::new("schemas-verdicts"));
    let (proof, none) = (out.file("proof.json"), out.file("none.json"));
    out.json(&["evaluate", "shell", "rm -rf ~/x && make deploy"], 3);
    let lines = out.lines(&["evaluate", "shell", "--batch"], "{\"command\":\"rm -rf /\"}\n{\"command\":1}\n", 4);
    assert!(lines.len() == 2 && lines[1]["error"].is_string(), "{lines:?}");
    let report = out.json(&["evaluate", "shell", "rm -rf ~/x", "--attest", "--attest-to", &proof], 3);
    assert!(report["attestation"]["signature"].is_string(), "{report}");
    let change = json!({"actions": ["delete"], "before": {"id": "x", "skip_final_snapshot": true}, "after": null, "after_unknown": {}});
    let plan = json!({"format_version": "1.2", "terraform_version": "1.7.0", "resource_changes": [{
        "address": "aws_db_instance.a", "mode": "managed", "type": "aws_db_instance", "name": "a",
        "provider_name": "registry.terraform.io/hashicorp/aws", "change": change,
    }]});
    let plan = put(&out, "plan.json", &plan.to_string());
    out.json(&["evaluate", "terraform", &plan], 3);
    let asked = json!({"tool": "delete_bucket", "server": "s3", "arguments": {"bucket": "x"}});
    let asked = put(&out, "call.json", &asked.to_string());
    out.json(&["evaluate", "mcp", &asked], 3);
    out.json(&["attestation", "list"], 0);
    assert_eq!(out.json(&["attestation", "verify", &proof], 0)["valid"], true);
    out.json(&["attestation", "verify", &proof, "--mode", "ignore"], 0);
    assert_eq!(out.json(&["attestation", "verify", &plan], 3)["valid"], false);
    let gate = ["gate", "--max-risk", "block", "--require-attestation"];
    assert_eq!(out.json(&[&gate[..], &[proof.as_str(), "--command", "rm -rf ~/x"]].concat(), 0)["passes"], true);
    out.json(&[&gate[..], &[proof.as_str(), "--command", "ls"]].concat(), 3);
    out.json(&[&gate[..], &[none.as_str(), "--command", "ls"]].concat(), 3);
    out.always(&["keys", "registry"], "", 0);
    out.json(&["keys", "list"], 0);
    out.check(&VERDICTS);
}

const AGENTFILE: &str = "# syntax=agentrc.agentfile/v0.1\nAGENT reviewer\nFROM scratch\nCMD python -m agent.main\nTOOL utcp:file_read\n\
    SKILL ./skills/review\nURL https://api.github.com\nCRED github_token env:GITHUB_TOKEN host:api.github.com\nMOUNT /workspace ro\n\
    AUDIT all\nTRACE on\nISOLATION local\nSLICE cpu=2 memory=1Gi\nIMAGE docker.io/library/x:1\nALLOW invoke utcp:file_read\n\
    LIMIT calls 10/min\nRATELIMIT utcp:file_read 5/min\nTIMEOUT 600\nHEALTHCHECK --interval=30s CMD true\nPOLICY\n\
    forbid(principal, action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/workspace/secret\");\nEND\n";
const OTHERS: &str = "AGENT others\nFROM docker.io/library/base:1\nSHELL langchain\nCMD true\nTOOLSET utcp:fs\nFUNCTION ./f.py:g\nSKILL named\n\
    MCP github\nSERVER s https://s.example:8443\nBIND /a /b ro\nMEMORY notes ./m.py schema:Notes mode:rw\nSOP ./sops/x\nTRACE on\nDENY invoke utcp:shell\n";

#[test]
fn what_is_said_of_agents() {
    let mut out = Outputs::new(Workplace::new("schemas-agents"));
    put(&out, "agent/skills/review/SKILL.md", "# Review\n");
    put(&out, "agent/agent/main.py", "print('ready')\n");
    let (file, others) = (put(&out, "agent/Agentfile", AGENTFILE), put(&out, "others/Agentfile", OTHERS));
    out.json(&["agentfile", "lint", &file], 0);
    out.json(&["agentfile", "show", &file], 0);
    out.json(&["agentfile", "show", &others], 0);
    let bad = put(&out, "bad", "AGENT x\nNOTHING y\n");
    assert_eq!(out.json(&["agentfile", "lint", &bad], 3)["valid"], false);
    fs::write(&bad, b"AGENT x\nCMD \xff\n").unwrap();
    let found = out.json(&["agentfile", "lint", &bad], 4);
    assert_eq!((&found["diagnostics"][0]["code"], &found["diagnostics"][0]["line"]), (&json!("not-utf8"), &json!(2)));
    let requests =
        "{\"principal\":\"reviewer\",\"action\":\"tool.invoke\",\"resource\":\"utcp:file_read\"}\n\nno request\n";
    assert_eq!(out.lines(&["agentfile", "decide", "-f", &file], requests, 4).len(), 2);
    let secret = ["--action", "filesystem.read", "--resource", "/workspace/secret"];
    out.lines(&[&["agentfile", "decide", "-f", &file][..], &secret].concat(), "", 3);
    let base = "AGENT base\nFROM scratch\nCMD true\nAUDIT all\nTOOL utcp:file_read\nALLOW invoke file_read\n";
    let child = base.replace("base", "child").replace("all", "basic") + "TOOL utcp:shell\nALLOW invoke shell\n";
    let (base, child) = (put(&out, "base", base), put(&out, "child", &child));
    let proved = out.json(&["agentfile", "prove", "--child", &child, "--parent", &base], 3);
    let refuted = proved["requests"].as_array().unwrap().iter().find(|one| one["result"] == "refuted");
    assert!(refuted.is_some_and(|one| one["counterexample"]["context"].is_object()), "{proved:#}");
    out.good(&["lock", &file]);
    let folder = Path::new(&file).parent().unwrap().to_str().unwrap().to_owned();
    let (layout, second, archive) = (out.file("one"), out.file("two"), out.file("copy.tar"));
    out.json(&["build", &folder, "-o", &layout, "--source", "agent", "--tag", "1.0"], 0);
    out.json(&["tag", &layout, "2.0"], 0);
    out.json(&["inspect", &layout], 0);
    let key = out.file("key.pem");
    out.good(&["keys", "generate", &key]);
    out.json(&["sign", &layout, "--key", &key], 0);
    let services = sigstore::Services::start(&out.place);
    let (token, root) = (services.file("token"), services.file("trusted_root.json"));
    let instance = ["--fulcio-url", &services.url, "--rekor-url", &services.url, "--identity-token-file", &token];
    out.json(&[&["sign", &layout], instance.as_slice()].concat(), 0);
    out.good(&[
        "keys",
        "trust",
        "--sigstore",
        &root,
        "--issuer",
        sigstore::ISSUER,
        "--identity",
        "release@example.org",
    ]);
    assert_eq!(out.json(&["verify", &layout], 0)["identities"][0]["issuer"], sigstore::ISSUER);
    out.json(&["discover", &layout], 0);
    out.json(&["inspect", &layout], 0);
    out.json(&["verify", &layout, "--key", &format!("{key}.pub"), "--allow-absent"], 0);
    out.json(&["copy", &layout, &archive], 0);
    put(&out, "agent/Agentfile", &(AGENTFILE.to_owned() + "URL https://more.example\n"));
    out.good(&["lock", &file]);
    out.json(&["build", &folder, "-o", &second, "--source", "agent"], 0);
    out.json(&["inspect", &layout, "--diff", &second, "--exit-code"], 3);
    out.check(&AGENTS);
}

#[test]
fn what_is_said_of_tools() {
    let mut out = Outputs::new(Workplace::new("schemas-tools"));
    let more = "AUDIT all\nTOOL utcp:find\nTOOL utcp:wipe\nTOOL utcp:gone\nALLOW invoke find\nDENY invoke wipe\n";
    let file = put(&out, "agent/Agentfile", &format!("AGENT worker\nFROM scratch\n{more}"));
    let find = json!({
        "description": "Repeats a word.", "outputs": {"type": "string"},
        "inputs": {"properties": {"word": {"type": "string"}}, "required": ["word"]},
        "tool_call_template": {"call_template_type": "cli", "commands": [{"command": "printf %s UTCP_ARG_word_UTCP_END"}]},
    });
    put(&out, "agent/tools/find.json", &find.to_string());
    let wipe = json!({"tool_call_template": {"call_template_type": "cli", "commands": [{"command": "true"}]}});
    put(&out, "agent/tools/wipe.json", &wipe.to_string());
    let listed = out.json(&["tool", "list", "-f", &file], 0);
    assert!(listed[0]["how"] == "cli" && listed[2]["problem"].is_string(), "{listed:#}");
    out.json(&["tool", "describe", "find", "-f", &file], 0);
    let call = ["tool", "call", "find", "-f", &file, "--session", "tools", "--arg"];
    assert_eq!(out.json(&[&call[..], &["word=x"]].concat(), 0)["result"], "x");
    put(&out, "agent/tools/find.json", &find.to_string().replace("printf %s", "false"));
    assert!(out.json(&[&call[..], &["word=x"]].concat(), 1)["error"].is_string());
    let denied = out.run(&["tool", "call", "wipe", "-f", &file, "--session", "tools"], "");
    assert_eq!((denied.status.code(), denied.stdout.len()), (Some(3), 0), "{denied:?}");
    let events = |name: &'static str| ["tool", "events", name, "-f", &file, "--session", "tools"].map(str::to_owned);
    for (name, decisions) in [("find", &["APPROVED", "COMPLETED", "APPROVED", "FAILED"][..]), ("wipe", &["DENIED"])] {
        let words = events(name);
        let lines = out.lines(&words.each_ref().map(String::as_str), "", 0);
        assert_eq!(lines.iter().map(|line| line["decision"].as_str().unwrap()).collect::<Vec<_>>(), decisions);
    }
    out.check(&TOOLS);
}
