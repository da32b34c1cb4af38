//! Policies that lead to others: whatever a parent stops stays stopped, whoever tightens it, by brute force over calls; and what makes
//! a chain of policies unusable.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a step that fails fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use writ_clients::Client as _;
use writ_clients::claude_code::ClaudeCode;
use writ_core::json::{self, Value};
use writ_core::{SessionId, Timestamp, ToolCall, Verdict};
use writ_engine::decide::approvals::{self, Word};
use writ_engine::governing::layers::{self, Caller, LayerRef};
use writ_engine::governing::{self, Governing, GoverningError, Trust};
use writ_engine::verify::{self, Options, Outcome};
use writ_engine::{Home, decide, hook};
use writ_store::Store;

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A list of some of these, as JSON.
    fn list(&mut self, of: &[&str], most: usize) -> String {
        let count = self.below(most + 1);
        let items: Vec<String> = (0..count).map(|_| format!("{:?}", self.one(of))).collect();
        format!("[{}]", items.join(","))
    }
}

const TOOLS: [&str; 14] = [
    "Bash",
    "Bash:git *",
    "Bash:git push*",
    "Bash:rm *",
    "Bash:cat *",
    "Bash:!git status",
    "Read",
    "Read:src/**",
    "Read:**/.env",
    "Write",
    "Edit:src/**",
    "Task",
    "WebFetch:*.example",
    "mcp__files",
];
const PATHS: [&str; 9] =
    ["src/**", "**/.env", "**/.env.*", "!**/.env.example", "docs/**", "*.md", "secret/**", "src/a.rs", "/etc/**"];
const HOSTS: [&str; 5] = ["a.example", "*.example", "b.test", "*", "c.*"];
const CALLS: [(&str, &str); 18] = [
    ("Bash", r#"{"command":"git push origin main"}"#),
    ("Bash", r#"{"command":"git status && rm -rf src"}"#),
    ("Bash", r#"{"command":"cat .env"}"#),
    ("Bash", r#"{"command":"cat src/a.rs > docs/b.md"}"#),
    ("Bash", r#"{"command":"curl https://a.example/x"}"#),
    ("Bash", r#"{"command":"cp .env .env.example"}"#),
    ("Bash", r#"{"command":"$X src"}"#),
    ("Bash", r#"{"command":"git reset --hard"}"#),
    ("Read", r#"{"file_path":"src/a.rs"}"#),
    ("Read", r#"{"file_path":"secret/key"}"#),
    ("Read", r#"{"file_path":".env.example"}"#),
    ("Write", r#"{"file_path":"src/a.rs","content":"x"}"#),
    ("Write", r#"{"file_path":"readme.md","content":"x"}"#),
    ("Edit", r#"{"file_path":"docs/b.md","old_string":"a","new_string":"b"}"#),
    ("WebFetch", r#"{"url":"https://b.test/","prompt":"x"}"#),
    ("Grep", r#"{"pattern":"x","path":"."}"#),
    ("Task", r#"{"subagent_type":"Explore","prompt":"x","description":"x"}"#),
    ("mcp__files__read", r#"{"path":"secret/key"}"#),
];

/// A policy of rules taken at random; `more` are its other members.
fn random(numbers: &mut Numbers, name: &str, more: &str) -> String {
    let mut members = vec![r#""version":"1.0""#.to_owned(), format!(r#""name":"{name}""#)];
    let mut lists = |object: &str, names: &[(&str, usize)], of: &[&str]| {
        let mut inner = Vec::new();
        for (list, rarely) in names {
            if numbers.below(*rarely) == 0 {
                inner.push(format!(r#""{list}":{}"#, numbers.list(of, 3)));
            }
        }
        members.push(format!(r#""{object}":{{{}}}"#, inner.join(",")));
    };
    lists("tools", &[("allow", 4), ("deny", 2), ("requireApproval", 3)], &TOOLS);
    lists("files", &[("allow", 5), ("deny", 2), ("readOnly", 3)], &PATHS);
    lists("domains", &[("allow", 5), ("deny", 3)], &HOSTS);
    let others =
        [r#""enforce":"observe""#, r#""consequences":{"ask":3,"deny":5}"#, r#""expires":"2020-01-01T00:00:00Z""#];
    for (other, rarely) in others.iter().zip([3, 3, 12]) {
        if numbers.below(rarely) == 0 {
            members.push((*other).to_owned());
        }
    }
    format!("{{{}{more}}}", members.join(","))
}

struct Lab {
    folder: tempfile::TempDir,
    home: Home,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let user = folder.path().join("home");
        for below in ["repo/.git", "repo/src", "repo/docs", "repo/secret", "home"] {
            fs::create_dir_all(folder.path().join(below)).unwrap();
        }
        for file in ["src/a.rs", "docs/b.md", ".env", ".env.example", "secret/key"] {
            fs::write(folder.path().join("repo").join(file), "x").unwrap();
        }
        let home = Home { state: Some(user.join("state")), user: Some(user), ..Home::default() };
        Self { folder, home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("repo").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn open(&self, name: &str) -> Result<Governing, GoverningError> {
        governing::open(&self.path(name), None, &Trust::open(None))
    }

    fn wrong(&self, name: &str) -> (String, String) {
        let error = self.open(name).unwrap_err();
        let rule = if let GoverningError::Layer { rule, .. } = &error { *rule } else { "" };
        (rule.to_owned(), error.to_string())
    }

    /// The hook's answer to a shell call of the main agent.
    fn bash(&self, id: &str, line: &str) -> String {
        let cwd = self.path("");
        let payload = format!(
            r#"{{"session_id":"s","cwd":"{}","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"{id}","tool_input":{{"command":"{line}"}}}}"#,
            cwd.display()
        );
        ClaudeCode.render(&hook::answer(payload.as_bytes(), &ClaudeCode, &self.home, &cwd))
    }

    /// What the client is told of a call.
    fn told(&self, governing: &Governing, call: &ToolCall, caller: Caller<'_>) -> Verdict {
        let decision = decide::now(governing, call, caller, writ_clients::DEFAULT, &self.home);
        let modes = governing.policies(caller).into_iter().map(writ_policy::Policy::enforce);
        writ_policy::enforce(writ_policy::Enforce::strictest(modes), decision).decision.verdict
    }

    fn call(&self, numbers: &mut Numbers) -> ToolCall {
        let (tool, input) = CALLS[numbers.below(CALLS.len())];
        ToolCall::new(tool, json::parse(input.as_bytes()).unwrap(), self.path("").to_string_lossy().into_owned())
    }
}

/// A thousand pairs and a thousand chains of three, with a sub-agent's policy each: what one of them stops for somebody is stopped for
/// whoever tightens it.
#[test]
fn nothing_that_a_parent_denies_becomes_allowed() {
    let (lab, mut numbers) = (Lab::new(), Numbers(14));
    let (mut tighter, mut stopped) = (0, 0);
    for number in 0..2000 {
        let chain = number % 2 == 1;
        let base = random(&mut numbers, "base", "");
        let above = if chain { "middle.aflock" } else { "base.aflock" };
        lab.write("base.aflock", &base);
        if chain {
            lab.write("middle.aflock", &random(&mut numbers, "middle", r#","extends":"base.aflock""#));
        }
        let child = random(&mut numbers, "child", "");
        let more = format!(r#","extends":"./{above}","sublayouts":[{{"name":"Explore","policy":{child}}}]"#);
        lab.write("root.aflock", &random(&mut numbers, "root", &more));
        let root = lab.open("root.aflock").unwrap();
        let mut parents = vec![lab.open("base.aflock").unwrap()];
        if chain {
            parents.push(lab.open(above).unwrap());
        }
        for _ in 0..2 {
            let call = lab.call(&mut numbers);
            let told = lab.told(&root, &call, Caller::Main);
            for parent in &parents {
                let parents = lab.told(parent, &call, Caller::Main);
                assert!(told >= parents, "{number}: {told:?} against {parents:?}: {call:?} {root:?}");
                stopped += usize::from(parents > Verdict::Allow);
                tighter += usize::from(told > parents);
            }
            let explorers = lab.told(&root, &call, Caller::SubAgent("Explore"));
            assert!(explorers >= told, "{number}: {explorers:?} against {told:?}: {call:?} {root:?}");
            if number % 20 == 0 {
                assert_eq!(lab.told(&root, &call, Caller::SubAgent("Plan")), told, "{number}");
                assert_eq!(lab.told(&root, &call, Caller::Untold), explorers, "{number}");
            }
        }
    }
    assert!(tighter > 500 && stopped > 500, "{tighter} {stopped}: the policies say something");
}

/// An approval is for the policies that were judged: another layer is another action (R71).
#[test]
fn an_approval_is_void_under_another_layer() {
    let (lab, base) = (Lab::new(), policy("base", ""));
    lab.write("base.aflock", &base);
    lab.write(".aflock", &policy("root", r#","extends":"base.aflock","tools":{"requireApproval":["Bash:make*"]}"#));
    let (asks, runs) =
        (|answer: &str| answer.contains(r#""permissionDecision":"ask""#), |answer: &str| answer.contains("\"allow\""));
    assert!(asks(&lab.bash("1", "make x")));
    let store = Store::open(lab.home.state.clone().unwrap()).unwrap();
    let id = SessionId::new("s");
    let waiting = approvals::waiting(&store, &id, Timestamp::now()).unwrap();
    approvals::answer(&store, &id, &waiting[0].name(), &Word::YES, &lab.home).unwrap();
    lab.write("base.aflock", &policy("base", r#","files":{"deny":["secret/**"]}"#));
    assert!(asks(&lab.bash("2", "make x")), "it was not given under this one");
    lab.write("base.aflock", &base);
    assert!(runs(&lab.bash("3", "make x")));
    assert!(asks(&lab.bash("4", "make x")), "once");
    let report = verify::session(&store, &id, &lab.home, &Options::default()).unwrap();
    let failed: Vec<_> = report.phases.iter().filter(|phase| phase.outcome == Outcome::Failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// A human takes over what the layers' files have become, and the record follows.
#[test]
fn accepted_layers_govern_from_then_on() {
    let lab = Lab::new();
    lab.write("base.aflock", &policy("base", r#","tools":{"deny":["Bash:rm *"]}"#));
    lab.write(".aflock", &policy("root", r#","extends":"base.aflock""#));
    assert!(lab.bash("1", "rm x").contains("base:/tools/deny/0"));
    lab.write("base.aflock", &policy("next", r#","tools":{"deny":["Bash:cp *"]}"#));
    let (moved, copied) = (lab.bash("2", "rm x"), lab.bash("3", "cp x y"));
    assert!(moved.contains("base:/tools/deny/0") && copied.contains("changed-policy:base:/tools/deny/0"), "{copied}");
    let store = Store::open(lab.home.state.clone().unwrap()).unwrap();
    let id = SessionId::new("s");
    approvals::accept(&store, &id, &lab.home).unwrap();
    assert!(!lab.bash("4", "rm x").contains("deny"));
    assert!(lab.bash("5", "cp x y").contains("(`Bash:cp *`, next:/tools/deny/0"));
    fs::remove_file(lab.path("base.aflock")).unwrap();
    assert!(lab.bash("6", "cp x y").contains("next:/tools/deny/0"), "what is gone goes on governing");
    let report = verify::session(&store, &id, &lab.home, &Options::default()).unwrap();
    let failed: Vec<_> = report.phases.iter().filter(|phase| phase.outcome == Outcome::Failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Verification walks the policies' own references: no list passes that says less, more, or otherwise.
#[test]
fn a_list_is_what_the_policies_name() {
    let lab = Lab::new();
    let child = policy("child", "");
    lab.write("base.aflock", &policy("base", ""));
    let more =
        format!(r#","extends":"base.aflock","sublayouts":[{{"name":"x","policy":{child},"attestationPrefix":"x-"}}]"#);
    lab.write("root.aflock", &policy("root", &more));
    let governing = lab.open("root.aflock").unwrap();
    let check = |list: &[LayerRef]| {
        let found = |layer: &LayerRef| {
            let known = governing.layers.iter().find(|known| known.at.file == layer.file);
            known.map(|known| known.policy.clone()).ok_or_else(|| "not kept".to_owned())
        };
        layers::check(&governing.policy, &governing.path, list, &found)
    };
    let list = governing.list();
    assert_eq!(check(&list), Ok(()));
    assert!(check(&list[..1]).is_err() && check(&list[1..]).is_err() && check(&[]).is_err());
    assert!(check(&[list.clone(), list.clone()].concat()).is_err());
    let other = |change: &dyn Fn(&mut Vec<LayerRef>)| {
        let mut list = list.clone();
        change(&mut list);
        check(&list).is_err()
    };
    assert!(other(&|list| list.swap(0, 1)));
    assert!(other(&|list| list[1].agent = None));
    assert!(other(&|list| list[0].agent = Some("x".to_owned())));
    assert!(other(&|list| list[1].agent = Some("y".to_owned())));
    assert!(other(&|list| list[1].prefix = None));
    assert!(other(&|list| list[0].path = Some("/elsewhere/base.aflock".to_owned())));
    assert!(other(&|list| list[0].file = list[1].file));
    assert!(other(&|list| list[0].digest = list[1].digest));
    assert!(other(&|list| list[1].name = list[0].name.clone()));
    assert!(other(&|list| list[1].of = Some(0)));
}

/// A row that leaves a layer out, or says that another one was judged, does not verify.
#[test]
fn a_row_holds_the_layers_that_speak_on_it() {
    let lab = Lab::new();
    lab.write("base.aflock", &policy("base", r#","tools":{"deny":["Bash:rm *"]}"#));
    lab.write(".aflock", &policy("root", r#","extends":"base.aflock""#));
    assert!(lab.bash("1", "rm x").contains("base:/tools/deny/0"));
    let store = Store::open(lab.home.state.clone().unwrap()).unwrap();
    let folder = store.folder(&SessionId::new("s"));
    let rows = fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
    let list = fs::read_dir(folder.join("layers")).unwrap().count();
    assert!(list == 1 && rows.contains(r#""layers":[{"facts":"#), "{rows}");
    let decisions = |folder: &Path| {
        let report = verify::folder(folder, &lab.home, &Options::default()).unwrap();
        report
            .phases
            .iter()
            .filter(|phase| phase.outcome == Outcome::Failed)
            .map(|phase| phase.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(decisions(&folder), [] as [&str; 0]);
    // Without the list, nobody knows which layers there were; without a layer's file, nobody can judge again.
    for gone in ["layers", "policies"] {
        let copy = lab.folder.path().join(gone);
        fs::create_dir_all(&copy).unwrap();
        for below in ["layers", "policies"] {
            fs::create_dir_all(copy.join(below)).unwrap();
            for entry in fs::read_dir(folder.join(below)).unwrap().map(Result::unwrap) {
                let root = fs::read_to_string(entry.path()).unwrap().contains("\"root\"");
                if below != gone || root && below == "policies" {
                    fs::copy(entry.path(), copy.join(below).join(entry.file_name())).unwrap();
                }
            }
        }
        fs::copy(folder.join("ledger.jsonl"), copy.join("ledger.jsonl")).unwrap();
        let failed = decisions(&copy);
        assert!(failed.contains(&"policy") && failed.contains(&"decisions"), "{gone}: {failed:?}");
    }
}

fn policy(name: &str, more: &str) -> String {
    format!(r#"{{"version":"1.0","name":"{name}"{more}}}"#)
}

#[test]
fn a_chain_is_followed_and_a_circle_is_not() {
    let lab = Lab::new();
    lab.write("a.aflock", &policy("a", r#","extends":"shared/b.aflock""#));
    lab.write("shared/b.aflock", &policy("b", r#","extends":"../c.aflock""#));
    lab.write("c.aflock", &policy("a", r#","files":{"deny":["src/**"]}"#));
    let governing = lab.open("a.aflock").unwrap();
    let names: Vec<_> = governing.layers.iter().map(|layer| layer.at.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(governing.layers[1].at.of, Some(0));
    lab.write("c.aflock", &policy("c", r#","extends":"./shared/../a.aflock""#));
    let (rule, text) = lab.wrong("a.aflock");
    assert!(rule == "circle" && text.contains("c.aflock: /extends"), "{text}");
    for at in 0..9 {
        lab.write(&format!("deep/{at}.aflock"), &policy("d", &format!(r#","extends":"./{}.aflock""#, at + 1)));
    }
    lab.write("deep/9.aflock", &policy("d", ""));
    assert_eq!(lab.wrong("deep/0.aflock").0, "too-deep");
    assert!(lab.open("deep/2.aflock").is_ok(), "eight are not too many");
    lab.write("gone.aflock", &policy("g", r#","extends":"./nowhere.aflock""#));
    assert!(lab.wrong("gone.aflock").1.contains("there is no file `./nowhere.aflock`"));
    lab.write("far.aflock", &policy("f", r#","extends":"https://policies.example/base.aflock""#));
    let (rule, text) = lab.wrong("far.aflock");
    assert!(rule == "not-locked" && text.contains("a human runs `writ policy lock`"), "{text}");
}

#[test]
fn limits_looser_than_a_parents_are_refused_in_files_too() {
    let lab = Lab::new();
    lab.write("base.aflock", &policy("base", r#","limits":{"maxToolCalls":{"value":10},"maxSpendUSD":5}"#));
    lab.write("root.aflock", &policy("root", r#","extends":"base.aflock","limits":{"maxToolCalls":{"value":20}}"#));
    let (rule, text) = lab.wrong("root.aflock");
    assert_eq!(rule, "looser-limit");
    assert!(text.contains("`maxToolCalls` is 20 in") && text.contains("root.aflock and 10 in"), "{text}");
    let child = |limits: &str, beside: &str| {
        lab.write("agents/child.aflock", &policy("child", limits));
        let more =
            format!(r#","extends":"base.aflock","sublayouts":[{{"name":"x","policy":"agents/child.aflock"{beside}}}]"#);
        lab.write("root.aflock", &policy("root", &more));
        lab.open("root.aflock").map(drop).map_err(|error| error.to_string())
    };
    assert!(child("", "").is_ok(), "what is absent is inherited");
    assert!(child(r#","limits":{"maxSpendUSD":5}"#, r#","limits":{"maxSpendUSD":2}"#).is_ok());
    let file = child(r#","limits":{"maxSpendUSD":6}"#, "").unwrap_err();
    assert!(file.contains("6 in") && file.contains("child.aflock and 5 in") && file.contains("base.aflock"), "{file}");
    let beside = child("", r#","limits":{"maxSpendUSD":6}"#).unwrap_err();
    assert!(beside.contains("/sublayouts/0/limits and 5 in"), "{beside}");
    let nested = r#","sublayouts":[{"name":"y","policy":{"version":"1.0","name":"n","limits":{"maxSpendUSD":3}}}]"#;
    let nested = child(nested, r#","limits":{"maxSpendUSD":2}"#).unwrap_err();
    assert!(nested.contains("3 in"), "a limit is inherited by those below: {nested}");
}

#[test]
fn a_sublayout_is_the_one_that_is_pinned() {
    let lab = Lab::new();
    let text = policy("child", "");
    lab.write("child.aflock", &text);
    let pinned = |digest: &str| {
        let more = format!(r#","sublayouts":[{{"name":"x","policy":"child.aflock","policyDigest":{digest}}}]"#);
        lab.write("root.aflock", &policy("root", &more));
        lab.open("root.aflock").map(drop).map_err(|error| error.to_string())
    };
    let digest = writ_core::Digest::of(text.as_bytes());
    assert!(pinned(&format!(r#"{{"sha256":"{}"}}"#, digest.hex())).is_ok());
    assert!(pinned(&format!(r#"{{"sha256":"{}"}}"#, "0".repeat(64))).is_err());
    let other = pinned(&format!(r#"{{"sha512":"{}"}}"#, "0".repeat(128))).unwrap_err();
    assert!(other.contains("no SHA-256"), "what cannot be checked is not checked: {other}");
    let inline = |digest: &str| {
        let child =
            format!(r#"{{"name":"x","policy":{{"version":"1.0","name":"i"}},"policyDigest":{{"sha256":"{digest}"}}}}"#);
        lab.write("root.aflock", &policy("root", &format!(r#","sublayouts":[{child}]"#)));
        lab.open("root.aflock").is_ok()
    };
    let canonical = writ_core::Digest::of(br#"{"name":"i","version":"1.0"}"#);
    assert!(inline(&canonical.hex()) && !inline(&digest.hex()));
}

/// Whoever names a layer speaks where it speaks; one whose type is not told may be any.
#[test]
fn a_layer_speaks_on_the_calls_of_its_type() {
    let lab = Lab::new();
    let inner = policy("inner", "");
    let outer =
        policy("outer", &format!(r#","extends":"strict.aflock","sublayouts":[{{"name":"in","policy":{inner}}}]"#));
    lab.write("strict.aflock", &policy("strict", ""));
    lab.write("base.aflock", &policy("base", ""));
    let more = format!(
        r#","extends":"base.aflock","sublayouts":[{{"name":"out","policy":{outer},"attestationPrefix":"o-"}}]"#
    );
    lab.write("root.aflock", &policy("root", &more));
    let governing = lab.open("root.aflock").unwrap();
    let names = |caller| governing.applying(caller).iter().map(|layer| layer.at.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(Caller::Main), ["base"]);
    assert_eq!(names(Caller::SubAgent("other")), ["base"]);
    assert_eq!(names(Caller::SubAgent("out")), ["base", "outer", "strict"]);
    assert_eq!(names(Caller::SubAgent("in")), ["base", "outer", "inner"]);
    assert_eq!(names(Caller::Untold), ["base", "outer", "strict", "inner"]);
    assert_eq!(governing.prefix(Caller::SubAgent("in")), Some("o-"));
    assert_eq!(governing.prefix(Caller::Main), None);
}

#[test]
fn required_signatures_hold_for_layers() {
    let lab = Lab::new();
    let state = lab.folder.path().join("state");
    fs::create_dir_all(state.join("trust")).unwrap();
    fs::write(state.join("trust/require-signed"), "").unwrap();
    lab.write("base.aflock", &policy("base", ""));
    lab.write("root.aflock", &policy("root", r#","extends":"base.aflock""#));
    let key = writ_evidence::keys::SigningKey::generate(writ_evidence::keys::Algorithm::Ed25519).unwrap();
    let trust = Trust::open(Some(&state));
    trust.pin(&key.public().to_pem(), Path::new("key")).unwrap();
    let sign = |name: &str| {
        let bytes = fs::read(lab.path(name)).unwrap();
        let envelope = writ_evidence::dsse::Envelope::sign(governing::PAYLOAD_TYPE, &bytes, &[&key]).unwrap();
        fs::write(lab.path(&format!("{name}.signed")), envelope.to_bytes()).unwrap();
    };
    sign("root.aflock");
    let error = governing::open(&lab.path("root.aflock.signed"), None, &trust).unwrap_err().to_string();
    assert!(error.contains("neither signed by a key you trust nor pinned"), "{error}");
    sign("base.aflock");
    lab.write("root.aflock", &policy("root", r#","extends":"base.aflock.signed""#));
    sign("root.aflock");
    let governing = governing::open(&lab.path("root.aflock.signed"), None, &trust).unwrap();
    assert_eq!(governing.layers[0].at.signed, "trusted");
    let inline = policy("root", &format!(r#","sublayouts":[{{"name":"x","policy":{}}}]"#, policy("i", "")));
    lab.write("root.aflock", &inline);
    sign("root.aflock");
    assert!(governing::open(&lab.path("root.aflock.signed"), None, &trust).is_ok(), "it stands in what is signed");
    assert!(matches!(json::parse(inline.as_bytes()).unwrap(), Value::Object(_)));
}
