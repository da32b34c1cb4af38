//! Agents that are built on others: `FROM` a package is a ceiling wherever the child is decided, and without its base nothing is allowed.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/registry.rs"]
mod registry;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use registry::Registry;
use serde_json::Value;
use workplace::Workplace;

const BASE: &str = "AGENT base\nFROM scratch\nCMD true\nAUDIT all\nTOOL utcp:read\nTOOL utcp:write\nTOOL utcp:shell\nALLOW invoke read\n\
                    ALLOW invoke write\nALLOW invoke shell\nMOUNT /workspace rw\nURL https://api.example\nTIMEOUT 600\nPOLICY\n\
                    forbid(principal, action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/workspace/secret\");\n\
                    forbid(principal == AgentRC::Agent::\"child\", action == AgentRC::Action::\"filesystem.read\", resource in AgentRC::Path::\"/workspace/named\");\nEND\n";

fn said(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

struct Lab {
    place: Workplace,
    registry: Registry,
}

impl Lab {
    fn new(name: &str) -> Self {
        let place = Workplace::new(name);
        let registry = Registry::start(&place);
        fs::remove_file(place.folder.join("repository/.aflock")).unwrap();
        Self { place, registry }
    }

    fn writ(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut command = self.place.command(args);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        said(&command.stdin(Stdio::null()).output().unwrap())
    }

    fn done(&self, args: &[&str]) -> String {
        let (code, said) = self.writ(args);
        assert_eq!(code, Some(0), "{args:?}: {said}");
        said
    }

    /// Locks an Agentfile in a folder of its own, builds it and pushes it.
    fn publish(&self, name: &str, agentfile: &str) -> String {
        let folder = self.place.folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Agentfile"), agentfile).unwrap();
        let (file, out) = (folder.join("Agentfile"), self.place.folder.join(format!("{name}-out")));
        self.done(&["lock", text(&file)]);
        self.done(&["build", text(&folder), "-o", text(&out)]);
        let reference = format!("{}/org/{name}:1", self.registry.host);
        self.done(&["push", text(&out), &reference]);
        reference
    }

    fn child(&self, agentfile: &str) -> PathBuf {
        let file = self.place.folder.join("repository/Agentfile");
        fs::write(&file, agentfile).unwrap();
        file
    }

    fn decide(&self, file: &Path, action: &str, resource: &str) -> (Option<i32>, String) {
        self.writ(&["agentfile", "decide", "-f", text(file), "--action", action, "--resource", resource])
    }

    fn hook(&self, id: &str, tool: &str, input: &str) -> String {
        let more = format!(r#","tool_name":"{tool}","tool_use_id":"{id}","tool_input":{input}"#);
        self.place.answer(&self.place.payload("PreToolUse", &more))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_base_holds_through_two_levels() {
    let lab = Lab::new("base-levels");
    let base = lab.publish("base", BASE);
    let middle = format!(
        "AGENT middle\nFROM {base}\nCMD true\nAUDIT all\nTOOL utcp:read\nTOOL utcp:write\nTOOL utcp:shell\nALLOW invoke read\n\
         ALLOW invoke write\nALLOW invoke shell\nMOUNT /workspace rw\n"
    );
    let middle = lab.publish("middle", &middle);
    let own = |more: &str| {
        format!(
            "AGENT child\nFROM {middle}\nCMD cat work/a.txt work/secret/b.txt\nAUDIT all\nTOOL utcp:read\nTOOL utcp:shell\nALLOW invoke read\n\
             ALLOW invoke shell\nMOUNT /workspace rw\nBIND ./work /workspace rw\n{more}"
        )
    };
    let file = lab.child(&own(""));
    fs::create_dir_all(file.with_file_name("work/secret")).unwrap();
    fs::write(file.with_file_name("work/a.txt"), "open\n").unwrap();
    fs::write(file.with_file_name("work/secret/b.txt"), "hidden\n").unwrap();
    // Nobody has said yet what it leads to.
    let (code, told) = lab.decide(&file, "tool.invoke", "read");
    assert!(code == Some(1) && told.contains("writ lock"), "{told}");
    let (code, told) = lab.writ(&["init", "--agentfile", text(&file)]);
    assert!(code != Some(0) && told.contains("writ lock") && !told.contains("wrote"), "{told}");
    assert!(!file.with_file_name(".aflock").exists());
    lab.done(&["lock", text(&file)]);
    lab.done(&["agentfile", "lint", text(&file)]);
    assert_eq!(lab.decide(&file, "tool.invoke", "read").0, Some(0));
    assert_eq!(lab.decide(&file, "filesystem.read", "/workspace/a").0, Some(0));
    let (code, told) = lab.decide(&file, "filesystem.read", "/workspace/secret/a");
    assert!(code == Some(3) && told.contains("/org/base@sha256:"), "{told}");
    assert_eq!(lab.decide(&file, "filesystem.read", "/workspace/named/a").0, Some(3), "by the child's name");
    // A session, and a run.
    lab.done(&["init", "--agentfile", text(&file)]);
    let place = |name: &str| format!(r#"{{"file_path":"{}"}}"#, file.with_file_name(name).display());
    assert!(!lab.hook("1", "Read", &place("work/a.txt")).contains("deny"));
    let told = lab.hook("2", "Read", &place("work/secret/b.txt"));
    assert!(told.contains("deny") && told.contains("base"), "{told}");
    assert!(lab.hook("3", "Read", &place("work/named/c.txt")).contains("deny"), "by the child's name");
    assert!(lab.hook("4", "Read", &place("a.txt")).contains("deny"), "outside of what is mounted");
    // What walks over a folder reads what is forbidden in it.
    for (id, line) in [("w1", "grep -r x work"), ("w2", "tar c work"), ("w3", "find work -type f | xargs cat")] {
        let told = lab.hook(id, "Bash", &format!(r#"{{"command":"{line}"}}"#));
        assert!(told.contains("deny"), "{line}: {told}");
    }
    assert!(!lab.hook("w4", "Bash", r#"{"command":"cat work/a.txt"}"#).contains("deny"));
    // What the lock says of the base is the policy's: no agent changes it, and a package that is called an image stays a ceiling.
    let told = lab.hook("5", "Bash", r#"{"command":"sed -i s/true/false/ agentrc.lock"}"#);
    assert!(told.contains("deny") && told.contains("lock"), "{told}");
    let lock = file.with_file_name("agentrc.lock");
    let whole = fs::read_to_string(&lock).unwrap();
    let image = whole.replacen("\"package\": true", "\"package\": false", 1);
    assert_ne!(image, whole, "{whole}");
    fs::write(&lock, image).unwrap();
    let (code, told) = lab.decide(&file, "tool.invoke", "read");
    assert!(code == Some(1) && told.contains("it is an agent's package"), "{code:?} {told}");
    let other = lab.place.payload(
        "PreToolUse",
        &format!(r#","tool_name":"Read","tool_use_id":"6","tool_input":{}"#, place("work/a.txt")),
    );
    assert!(lab.place.answer(&other.replace(workplace::SESSION, "another")).contains("deny"));
    fs::write(&lock, whole).unwrap();
    let report: Value =
        serde_json::from_slice(&lab.place.writ(&["verify", workplace::SESSION, "--format", "json"]).stdout).unwrap();
    let failed = |phase: &&Value| phase["outcome"] == "failed";
    assert!(!report["phases"].as_array().unwrap().iter().any(|phase| failed(&phase)), "{report:#}");
    let (code, told) = lab.writ(&["run", text(&file)]);
    assert!(code == Some(126) && told.contains("forbidden on line") && !told.contains("hidden"), "{told}");
    // What a command reads by itself the sandbox holds.
    fs::write(file.with_file_name("work/q.sh"), "cat /workspace/secret/b.txt; cat /workspace/a.txt\n").unwrap();
    let quiet = lab.child(&own("").replace("CMD cat work/a.txt work/secret/b.txt", "CMD sh /workspace/q.sh"));
    lab.done(&["lock", text(&quiet)]);
    let (_, told) = lab.writ(&["run", text(&quiet)]);
    assert!(told.contains("open") && !told.contains("hidden"), "{told}");
    // What is asked for beyond either of them.
    for (more, rule) in [
        ("URL https://api.example\n", "widens-network"),
        ("TIMEOUT 601\n", "weakens-limit"),
        ("MOUNT /etc ro\n", "widens-files"),
    ] {
        let file = lab.child(&own(more));
        lab.done(&["lock", text(&file)]);
        let (code, told) = lab.writ(&["agentfile", "lint", text(&file)]);
        assert!(code == Some(3) && told.contains(rule), "{told}");
        let (code, told) = lab.writ(&["run", text(&file)]);
        assert!(code == Some(126) && told.contains("in the base"), "{told}");
    }
    // What cannot be held of the base is as much a reason not to begin.
    let probed = lab.publish("probed", "AGENT probed\nFROM scratch\nCMD true\nAUDIT all\nHEALTHCHECK CMD true\n");
    let file = lab.child(&format!("AGENT child\nFROM {probed}\nCMD touch ran\nAUDIT all\n"));
    lab.done(&["lock", text(&file)]);
    let (code, told) = lab.writ(&["run", text(&file)]);
    assert!(code == Some(126) && told.contains("/org/probed@sha256:") && told.contains("HEALTHCHECK"), "{told}");
    assert!(!file.with_file_name("ran").exists());
    // Without what was fetched nothing is decided, and nothing runs.
    let file = lab.child(&own(""));
    lab.done(&["lock", text(&file)]);
    fs::remove_dir_all(lab.place.folder.join("state/packages")).unwrap();
    let (code, told) = lab.decide(&file, "tool.invoke", "read");
    assert!(code == Some(1) && told.contains("cannot be had"), "{told}");
    let (code, told) = lab.writ(&["run", "--offline", text(&file)]);
    assert!(code == Some(126) && told.contains("cannot be had"), "{told}");
    lab.done(&["lock", text(&file), "--update", "base"]);
}
